"""Encoded chunks, most of them packed: an object for each word of an answer would be as large as the word again."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import overload

_BLOCK = 64  # chunks; the newest ones, which readers are about to take, stay as they are


class PackedChunks(Sequence[bytes]):
    """Grows at its end."""

    __slots__ = ("_blocks", "_newest")

    def __init__(self) -> None:
        self._blocks: list[tuple[bytes, array[int]]] = []  # a block is one text, and where each of its chunks begins
        self._newest: list[bytes] = []

    def extend(self, chunks: Iterable[bytes]) -> None:
        self._newest += chunks
        while len(self._newest) >= 2 * _BLOCK:
            packed, self._newest = self._newest[:_BLOCK], self._newest[_BLOCK:]
            self._blocks.append((b"".join(packed), array("Q", accumulate(map(len, packed), initial=0))))

    def __len__(self) -> int:
        return len(self._blocks) * _BLOCK + len(self._newest)

    def since(self, start: int) -> list[bytes]:
        """What readers ask for all the time, mostly for the newest."""
        newest = start - len(self._blocks) * _BLOCK
        return self._newest[newest:] if newest >= 0 else self[start:]

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        packed = len(self._blocks) * _BLOCK
        if isinstance(place, int):
            place = place if place >= 0 else len(self) + place
            return self._newest[place - packed] if place >= packed else self._unpack(place)
        start, stop, _ = place.indices(len(self))
        unpacked = [self._unpack(each) for each in range(start, min(stop, packed))]
        return unpacked + self._newest[max(start - packed, 0) : max(stop - packed, 0)]

    def _unpack(self, place: int) -> bytes:
        block, starts = self._blocks[place // _BLOCK]
        at = place % _BLOCK
        return block[starts[at] : starts[at + 1]]
