"""How a segment ends, as far as its events say."""

from typing import Any

from google.adk.events import Event

from ...protocol.chunks import FinishReason
from ..event_parts import FINISH_REASONS, TURN_ENDS
from ..failures import public_failure_text
from .usage import Usage


class Ending:
    def __init__(self) -> None:
        self.reason: FinishReason | None = None
        self.failure: str | None = None
        """What the client reads if the run failed."""
        self._is_interrupted = False
        self._usage = Usage()  # of all segments

    def new_segment(self) -> None:
        self.reason = self.failure = None
        self._is_interrupted = False

    def add(self, event: Event) -> None:
        self._usage.add(event)
        if event.finish_reason is not None:
            self.reason = FINISH_REASONS.get(event.finish_reason.value, "other")
        if event.turn_complete_reason is not None:
            self.reason = TURN_ENDS.get(event.turn_complete_reason.value, "content-filter")
        if event.interrupted:
            self._is_interrupted = True
        if event.error_code is None:
            if event.content is not None:
                self.failure = None  # the run went on after it
            return
        known = FINISH_REASONS.get(event.error_code)
        if known is not None:
            self.reason = known
        else:
            self.failure = public_failure_text(event.error_code)

    def metadata(self, limit: str | None = None) -> dict[str, Any] | None:
        """For the message. `limit`: the one that ended the run."""
        used = self._usage.metadata()
        if limit is not None:
            return {**(used or {}), "limit": limit}
        return {**(used or {}), "interrupted": True} if self._is_interrupted else used
