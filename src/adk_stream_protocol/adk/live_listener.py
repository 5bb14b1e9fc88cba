"""What a live session notifies the clients of its chat of."""

from typing import Protocol


class LiveListener(Protocol):
    """A client that is connected to the chat."""

    is_gone: bool
    """Whether it is so no more."""
    wants_pcm: bool
    """Whether voice is to be told in the stream, too."""

    def turn(self, chat_id: str, message_id: str, user_message_id: str) -> None:
        """A message goes on, or begins, that no request of this client asked for."""
        ...

    def transcript(self, chat_id: str, role: str, message_id: str, text: str, *, is_final: bool) -> None: ...

    def audio(self, chat_id: str, samples: bytes, rate: int) -> None: ...

    def audio_clear(self, chat_id: str) -> None:
        """What was not played yet is not to be played."""
        ...

    def failed(self, chat_id: str, text: str) -> None:
        """The session has failed, and no stream can say so."""
        ...
