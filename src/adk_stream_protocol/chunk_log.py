"""The log of one stream segment. A run appends; a reader is a cursor, be it slow, dropped, second or resumed."""

import asyncio
from collections.abc import Sequence


class ChunkLog:
    """Encoded chunks in order; closed after the terminal one."""

    def __init__(self, segment: str) -> None:
        self.segment = segment
        self._chunks: list[bytes] = []
        self._closed = False
        self._wakers: set[asyncio.Event] = set()

    def append(self, chunks: Sequence[bytes]) -> None:
        self._chunks.extend(chunks)
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    @property
    def is_closed(self) -> bool:
        return self._closed

    def since(self, cursor: int) -> list[bytes]:
        """All that is ready after the cursor: what is ready together leaves together."""
        return self._chunks[cursor:]

    def watch(self, waker: asyncio.Event) -> None:
        """Set `waker` whenever there may be something to read, until `unwatch`."""
        self._wakers.add(waker)

    def unwatch(self, waker: asyncio.Event) -> None:
        self._wakers.discard(waker)

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()
