"""The timers of a live session: one for each message."""

import asyncio
from collections.abc import Callable
from typing import Any

from ...protocol.live_effects import Timer
from ...protocol.live_facts import TimerFired


class LiveTimers:
    def __init__(self, feed: Callable[[TimerFired], Any]) -> None:
        self._feed = feed
        self._started: dict[str, asyncio.TimerHandle] = {}

    def start(self, timer: Timer, seconds: float) -> None:
        """Replaces the timer that its message had."""
        self.cancel(timer.message)
        self._started[timer.message] = asyncio.get_running_loop().call_later(seconds, self._feed, TimerFired(timer))

    def cancel(self, message: str) -> None:
        started = self._started.pop(message, None)
        if started is not None:
            started.cancel()

    def cancel_all(self) -> None:
        for started in self._started.values():
            started.cancel()
