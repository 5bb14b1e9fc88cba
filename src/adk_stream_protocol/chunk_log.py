"""The log of one stream segment. A run appends; a reader is a cursor, be it slow, dropped, second or resumed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class ChunkLog:
    """Encoded chunks in order; closed after the terminal one."""

    def __init__(self, segment: str, earlier: Sequence[bytes] = ()) -> None:
        """`earlier`: the segments before it of the same message, for readers who begin with none of them."""
        self.segment = segment
        self.earlier = earlier
        self.size_bytes = 0
        self.on_readers_changed: Callable[[], None] = lambda: None
        self._chunks: list[bytes] = []
        self._closed = False
        self._wakers: set[asyncio.Event] = set()
        self._left = asyncio.Event()

    def append(self, chunks: Sequence[bytes]) -> None:
        self._chunks.extend(chunks)
        for chunk in chunks:
            self.size_bytes += len(chunk)
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def is_read(self) -> bool:
        return bool(self._wakers)

    def __len__(self) -> int:
        return len(self._chunks)

    def since(self, cursor: int, max_bytes: int) -> list[bytes]:
        """What is ready after the cursor: what is ready together leaves together, up to a bound but at least one."""
        ready = self._chunks[cursor:]
        if self.size_bytes <= max_bytes:
            return ready
        taken = 0
        for count, chunk in enumerate(ready):
            taken += len(chunk)
            if taken > max_bytes:
                return ready[: max(count, 1)]
        return ready

    def watch(self, waker: asyncio.Event) -> None:
        """Set `waker` whenever there may be something to read, until `unwatch`."""
        self._wakers.add(waker)
        self._left.clear()
        self.on_readers_changed()

    def unwatch(self, waker: asyncio.Event) -> None:
        self._wakers.discard(waker)
        if not self._wakers:
            self._left.set()
        self.on_readers_changed()

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    async def is_left(self, within_s: float) -> bool:
        """Whether nobody reads it any more, or stops to within a while. Its first reader may still be on its way."""
        try:
            await asyncio.wait_for(self._left.wait(), within_s)
        except TimeoutError:
            return False
        return True


@dataclass(frozen=True)
class Reading:
    """What a request reads."""

    log: ChunkLog
    is_replay: bool = False
    """Whether its client begins with none of the message: it is told what the message is by now."""
