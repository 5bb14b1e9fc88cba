"""Long work on the event loop, one slice of time after the other.

Slices and not threads: slices wait in a queue, while several computing threads would all compete with the loop for the
interpreter. The price is that the work itself takes longer. Decision 25 has the figures.
"""

import asyncio
import time
from weakref import WeakKeyDictionary

LONGEST_SLICE_S = 0.005
"""How long work that grows with a chat may block the event loop. After its first slice, such work waits in a queue, and
the loop runs one slice of it at a time. One event, one message or one chunk is never split."""

_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class LoopShare:
    """The share that one piece of work has of the event loop. Work that fits into one slice is not interrupted."""

    def __init__(self) -> None:
        self._ends_at = time.perf_counter() + LONGEST_SLICE_S

    async def give_way(self) -> None:
        """Call this for every item of the work. When the slice is used up, others run first."""
        if time.perf_counter() < self._ends_at:
            return
        async with _queues.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            await asyncio.sleep(0)
        self._ends_at = time.perf_counter() + LONGEST_SLICE_S
