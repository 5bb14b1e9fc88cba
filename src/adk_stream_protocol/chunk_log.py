"""The log of one stream segment. A run appends. Every reader is a cursor: slow, dropped, second or resumed."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .errors import TooMany
from .lazy_event import LazyEvent
from .protocol.packed_chunks import PackedChunks
from .protocol.replay import Calls, Event, replayed

_TOO_MANY_READERS = "This answer is read in too many places at once. Close one of them, then try again."


class ChunkLog:
    """Encoded chunks in order; closed after the terminal one."""

    def __init__(self, segment: str, earlier: Sequence[bytes] = ()) -> None:
        """`earlier`: the earlier segments of the same message, for readers that have none of them."""
        self.segment = segment
        self.earlier = earlier
        self.size_bytes = 0
        self.on_readers_changed: Callable[[], None] = lambda: None
        self._chunks = PackedChunks()
        self._calls = Calls(earlier)
        self._closed = False
        self._wakers: set[asyncio.Event] = set()
        self._left = LazyEvent()

    def append(self, chunks: Sequence[bytes]) -> None:
        self._chunks.extend(chunks)
        self._calls.add(chunks)
        for chunk in chunks:
            self.size_bytes += len(chunk)
        self._wake()

    def told(self) -> list[bytes]:
        """The message so far, to be read again as one: with the first start, and without the ends."""
        return [*self.earlier, *self._chunks[1 if self.earlier else 0 : -1]]

    def close(self) -> None:
        self._closed = True
        self._wake()

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def is_read(self) -> bool:
        return bool(self._wakers)

    @property
    def reader_count(self) -> int:
        return len(self._wakers)

    def __len__(self) -> int:
        return len(self._chunks)

    def since(self, cursor: int, max_bytes: int) -> list[bytes]:
        """The chunks after the cursor: as many as fit into `max_bytes`, but at least one."""
        return self._chunks.since(cursor, max_bytes)

    def replayed(self, until: int, max_bytes: int) -> Iterator[list[Event]]:
        """The whole message up to a place, in pieces."""
        return replayed(self.earlier, self._chunks, self._calls, until, max_bytes)

    def require_room(self, max_readers: int) -> None:
        if self.reader_count >= max_readers:
            raise TooMany(_TOO_MANY_READERS)

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
        """Whether all readers have left, or leave within this time. Before its first reader came, nobody has left."""
        try:
            async with asyncio.timeout(within_s):
                await self._left.wait()
        except TimeoutError:
            return False
        return True


@dataclass(frozen=True)
class Reading:
    """What a request reads."""

    log: ChunkLog
    is_replay: bool = False
    """Whether its client has nothing of the message yet: it gets the message as it is now."""


class LogReader:
    """Reads a log piece by piece. No piece is made before it is taken."""

    def __init__(self, log: ChunkLog, max_bytes: int, *, cursor: int = 0, replays_until: int | None = None) -> None:
        """`cursor`: where it begins in the log. `replays_until`: it begins with a replay up to this place."""
        self._log = log
        self._max_bytes = max_bytes
        self._cursor = cursor if replays_until is None else replays_until
        self._replay = None if replays_until is None else log.replayed(replays_until, max_bytes)
        self._left: list[Event] = []

    def take(self) -> list[Event]:
        """The next piece. It may be empty even if there is more."""
        if self._left:
            taken, self._left = self._left, []
            return taken
        if self._replay is not None:
            piece = next(self._replay, None)
            if piece is not None:
                return piece
            self._replay = None
        chunks = self._log.since(self._cursor, self._max_bytes)
        events: list[Event] = list(enumerate(chunks, self._cursor))
        self._cursor += len(chunks)
        return events

    async def skip(self, count: int) -> bool:
        """Skip `count` chunks; False if there are fewer."""
        while count > 0:
            taken = self.take()
            self._left = taken[count:]
            count -= len(taken)
            if count > 0 and not self.has_more:
                return False
            await asyncio.sleep(0)
        return True

    @property
    def has_more(self) -> bool:
        return bool(self._left) or self._replay is not None or self._cursor < len(self._log)

    @property
    def is_at_end(self) -> bool:
        return self._log.is_closed and not self.has_more
