"""What a client that speaks can do with a live session."""

from typing import Protocol


class LiveVoice(Protocol):
    @property
    def is_ending(self) -> bool:
        """Whether it takes nothing more."""
        ...

    def hear(self, samples: bytes) -> None: ...

    def interrupt(self) -> None:
        """The user does not want the rest of this answer."""
        ...

    def send_activity_start(self) -> None: ...

    def send_activity_end(self) -> None: ...
