"""Long work on the event loop, a slice at a time.

Slices and not threads, since slices stand in a queue: several threads that compute would all compete with the loop for
the interpreter. The price is that the work itself takes longer. Decision 25 has the figures.
"""

import asyncio
import time
from weakref import WeakKeyDictionary

LONGEST_SLICE_S = 0.005
"""How long work that grows with a chat holds the event loop before all others get their turn. After its first slice
such work stands in a queue, and only one gets a slice in a turn of the loop. The smallest thing that is done in one go
is one event, one message or one chunk."""

_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class LoopShare:
    """What one piece of work takes of the event loop. Work that fits into one slice is not interrupted at all."""

    def __init__(self) -> None:
        self._ends_at = time.perf_counter() + LONGEST_SLICE_S

    async def give_way(self) -> None:
        """To be called for every item of the work: others get their turn when the slice is used up."""
        if time.perf_counter() < self._ends_at:
            return
        async with _queues.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            await asyncio.sleep(0)
        self._ends_at = time.perf_counter() + LONGEST_SLICE_S
