"""When a live run ends by itself: nobody listens, the model is lost, or request mode waits for the chat."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ..failures import LOST_MODEL
from ..run import RunContext
from .input_queue import LiveInput
from .live_message import SessionEnd
from .live_segments import LiveSegments

logger = logging.getLogger(__name__)

_TICK_S = 1
_CANCEL_AGAIN_S = 0.1


class LiveWatch:
    """
    | About | Attributes |
    |---|---|
    | what it watches | `_context`, `_segments`, `_input`, `_task` |
    | the model | `_heard_at`, `_watched_at` |
    | whoever wants the chat | `ends_when_idle` |
    | its timers | `_timer`, `_grace`, `_on_tick` |
    """

    def __init__(
        self, context: RunContext, segments: LiveSegments, live_input: LiveInput, on_tick: Callable[[], None]
    ) -> None:
        """`on_tick`: called each second."""
        self.ends_when_idle = False
        self._on_tick = on_tick
        self._context = context
        self._segments = segments
        self._input = live_input
        self._task: asyncio.Task[Any] | None = None
        self._heard_at = self._watched_at = asyncio.get_running_loop().time()
        self._timer: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None

    def start(self, task: "asyncio.Task[Any]") -> None:
        """`task`: of the run."""
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def stop(self) -> None:
        for timer in (self._timer, self._grace):
            if timer is not None:
                timer.cancel()

    # -- clients ------------------------------------------------------------------------------------------------------

    def listeners_changed(self, *, is_attended: bool) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        if not is_attended and not self._segments.is_ending:
            self._grace = asyncio.get_running_loop().call_later(self._context.limits.live_grace_s, self._nobody_listens)

    def _nobody_listens(self) -> None:
        turns = self._segments.turns
        if turns.is_at_work:  # it may be paying: let it finish
            self._grace = asyncio.get_running_loop().call_later(_TICK_S, self._nobody_listens)
            return
        if turns.open_message is not None:
            self._segments.end.by = "stop"
        self.cancel()

    @property
    def is_idle(self) -> bool:
        return self._segments.turns.open_message is None and not self._segments.turns.is_at_work

    # -- the model ----------------------------------------------------------------------------------------------------

    def heard(self) -> None:
        """The model has said something."""
        self._heard_at = asyncio.get_running_loop().time()

    def _tick(self) -> None:
        """ADK does not report that its sending task has died."""
        message, now = self._segments.turns.open_message, asyncio.get_running_loop().time()
        if message is None or message.calls:
            self._heard_at = now
        was_blocked = now - self._watched_at > 2 * _TICK_S  # what came in meanwhile is heard first
        self._watched_at = now
        is_silent = now - self._heard_at > self._context.limits.live_silence_s
        is_stuck = self._input.untaken_s() > self._context.limits.send_timeout_s
        if (is_silent or is_stuck) and not was_blocked:
            logger.error("live session %s lost its model", self._context.chat.chat_id)
            self._segments.end = SessionEnd("failure", LOST_MODEL)
            self.cancel()
        elif self.ends_when_idle and self.is_idle:
            self.cancel()
        elif not self._segments.is_ending:
            self._on_tick()
            self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    # -- the end ------------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        if self._task is not None and not self._segments.is_ending:
            # What is answered from here on is for others to take up: a result that comes now would reach no model.
            self._segments.is_ending = True
            self._task.cancel()
            self._cancel_later()

    def _cancel_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_CANCEL_AGAIN_S, self._cancel_again)

    def _cancel_again(self) -> None:
        """ADK loses a cancellation that comes while it leaves a connection, and dials again. A tool that is at work may
        be cleaning up, and is cancelled once."""
        if self._task is not None and not self._task.done():
            if not self._segments.turns.is_at_work:
                self._task.cancel()
            self._cancel_later()
