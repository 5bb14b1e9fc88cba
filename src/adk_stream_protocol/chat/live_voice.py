"""A live session, as seen by the transport that carries its user's voice."""

from typing import Protocol, final


class LiveVoice(Protocol):
    @property
    def is_ending(self) -> bool:
        """Whether the session accepts nothing any more: voice needs a new one."""
        ...

    def hear(self, samples: bytes) -> None:
        """The user speaks: 16-bit little-endian mono samples at 16 kHz."""
        ...

    def send_activity_start(self) -> None:
        """The user begins to speak, where the model does not detect it."""
        ...

    def send_activity_end(self) -> None:
        """The user has stopped speaking, where the model does not detect it."""
        ...

    def interrupt(self) -> None:
        """Drop the rest of the model's current message."""
        ...


@final
class DroppedVoice:
    """The voice of a client whose session was stopped or deleted, and that has not asked for a new one."""

    is_ending = True

    def hear(self, samples: bytes) -> None:
        pass

    def send_activity_start(self) -> None:
        pass

    def send_activity_end(self) -> None:
        pass

    def interrupt(self) -> None:
        pass
