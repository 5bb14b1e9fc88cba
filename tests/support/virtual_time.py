"""An event loop whose clock jumps to the next timer as soon as there is nothing else to do."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import pytest

from adk_stream_protocol.chat import lease_keeper

_Result = TypeVar("_Result")

LONGER_THAN_ANY_TEST_S = 10_000


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """For code that never waits for anything but its own tasks and timers."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Threads take real time: the timeout that Python 3.12 and newer give them would be over at once."""
        await super().shutdown_default_executor()

    def _run_once(self) -> None:
        scheduled: list[Any] = self._scheduled  # pyright: ignore
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1  # pyright: ignore
            heapq.heappop(scheduled)._scheduled = False
        fires = self._now + self._clock_resolution  # pyright: ignore -- timers do so a little early
        if scheduled and (not self._ready or scheduled[0]._when <= fires):  # pyright: ignore
            self._now = max(self._now, scheduled[0]._when)
        super()._run_once()  # pyright: ignore


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """What keeps leases does so in this loop, too: in a thread it would have another time. What never comes
    is a failure at once."""

    async def bounded() -> _Result:
        async with asyncio.timeout(LONGER_THAN_ANY_TEST_S):
            return await work

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease_keeper, "run_in_a_thread", _run_in_this_loop)
        return runner.run(bounded())


def _run_in_this_loop(
    work: Callable[[], Coroutine[Any, Any, None]],
) -> tuple[asyncio.AbstractEventLoop, Future[None]]:
    has_ended = Future[None]()
    task = asyncio.create_task(work(), name=LEASES)
    task.add_done_callback(lambda _: has_ended.set_result(None))
    return asyncio.get_running_loop(), has_ended


LEASES = "adk-stream leases"
"""The tasks that keep them."""


def block(seconds: float) -> None:
    """What a function does that takes its time on the loop: nobody else gets a turn meanwhile."""
    asyncio.get_running_loop()._now += seconds  # pyright: ignore
