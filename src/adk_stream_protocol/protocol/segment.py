"""Whether chunks can be written: a segment is open from its `start` to its terminal chunk."""

from ..errors import LocalProtocolError


class Segment:
    def __init__(self) -> None:
        self._is_started = False
        self._is_ended = False

    def start(self) -> None:
        if self._is_started:
            raise LocalProtocolError("start twice")
        self._is_started = True

    def end(self) -> None:
        self.require_open()
        self._is_ended = True

    def renew(self) -> None:
        """The message goes on in another segment."""
        self._is_started = self._is_ended = False

    def require_open(self) -> None:
        if not self._is_started or self._is_ended:
            raise LocalProtocolError("the segment is not open")
