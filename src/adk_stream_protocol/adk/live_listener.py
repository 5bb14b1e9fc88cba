"""What a live session notifies the clients of its chat of."""

from typing import Protocol

from ..errors import BridgeError


class LiveListener(Protocol):
    """A client that is connected to the chat."""

    wants_pcm: bool
    """Whether voice comes in the stream, too."""

    def listens_to(self, chat_id: str) -> bool:
        """Whether it is still connected, and has not left this chat."""
        ...

    def turn(self, chat_id: str, message_id: str, user_message_id: str) -> None:
        """A message goes on, or begins, that no request of this client asked for."""
        ...

    def transcript(self, chat_id: str, role: str, message_id: str, text: str, *, is_final: bool) -> None: ...

    def audio(self, chat_id: str, samples: bytes, rate: int) -> None: ...

    def failed(self, chat_id: str, error: BridgeError) -> None:
        """The live session has failed, or cannot be opened for this client's voice."""
        ...

    def ended(self, chat_id: str) -> None:
        """The live session is over, whatever the reason. What waits for answers stays with the chat, or was refused."""
        ...

    def audio_clear(self, chat_id: str) -> None:
        """What was not played yet is not to be played."""
        ...
