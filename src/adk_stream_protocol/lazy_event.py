"""An event that takes next to no memory until somebody waits for it."""

import asyncio


class LazyEvent:
    """An `asyncio.Event` takes 0.8 KiB, for a queue of those who wait. A run has half a dozen of them, and nearly
    always nobody waits."""

    __slots__ = ("_awaited", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._awaited: asyncio.Event | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._awaited is not None:
            self._awaited.set()
            self._awaited = None

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        if not self._is_set:
            if self._awaited is None:
                self._awaited = asyncio.Event()
            await self._awaited.wait()
