"""Many attempts at one thing, each by a seed of its own."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from support import virtual_time

Attempt = Callable[[int], Awaitable[tuple[str, list[str]]]]
"""Takes a seed. Gives how it ended, and what was wrong."""


def play_seeds(count: int, attempt: Attempt, longest_s: float) -> tuple[Counter[str], dict[int, list[str]]]:
    """How the attempts ended, and by seed what was wrong. An attempt that takes longer than `longest_s` fails."""

    async def in_time(seed: int) -> tuple[str, list[str]]:
        async with asyncio.timeout(longest_s):
            return await attempt(seed)

    ends, wrong = Counter[str](), dict[int, list[str]]()
    for seed in range(count):
        end, found = virtual_time.run(in_time(seed))
        ends[end] += 1
        if found:
            wrong[seed] = found
    return ends, wrong
