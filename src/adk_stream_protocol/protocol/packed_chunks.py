"""Encoded chunks, most of them packed: for a word of an answer, its object and its frame are ten times the word."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, overload

_BLOCK = 64  # chunks
_SHORT = 2**16  # bytes: places in such a block take two bytes each, and nearly all blocks are such
_KEPT = 16  # the newest ones, which readers are about to take, stay as they are


class _Block(NamedTuple):
    """What all chunks of it begin with, the rest of them as one text, and where each of them begins in it."""

    prefix: bytes
    rests: bytes
    starts: "array[int]"


def _pack(chunks: list[bytes]) -> _Block:
    first, last = min(chunks), max(chunks)  # what these two have in common, all have
    common = next((at for at, byte in enumerate(first) if byte != last[at]), len(first))
    rests = [chunk[common:] for chunk in chunks]
    starts = list(accumulate(map(len, rests), initial=0))
    return _Block(first[:common], b"".join(rests), array("H" if starts[-1] < _SHORT else "I", starts))


class PackedChunks(Sequence[bytes]):
    """Grows at its end."""

    __slots__ = ("_blocks", "_newest")

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._newest: list[bytes] = []

    def extend(self, chunks: Iterable[bytes]) -> None:
        self._newest += chunks
        while len(self._newest) >= _BLOCK + _KEPT:
            self._blocks.append(_pack(self._newest[:_BLOCK]))
            self._newest = self._newest[_BLOCK:]

    def __len__(self) -> int:
        return len(self._blocks) * _BLOCK + len(self._newest)

    def since(self, start: int, max_bytes: int) -> list[bytes]:
        """As many as fit into `max_bytes`, but at least one. No other chunk is unpacked for it."""
        newest = start - len(self._blocks) * _BLOCK
        if newest >= len(self._newest) - 1:  # nearly always: a reader waits for the next word
            return self._newest[newest:]
        taken: list[bytes] = []
        for place in range(start, len(self)):
            max_bytes -= self._size(place)
            if max_bytes < 0 and taken:
                break
            taken.append(self[place])
        return taken

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

    def _size(self, place: int) -> int:
        packed = len(self._blocks) * _BLOCK
        if place >= packed:
            return len(self._newest[place - packed])
        block, at = self._blocks[place // _BLOCK], place % _BLOCK
        return len(block.prefix) + block.starts[at + 1] - block.starts[at]

    def _unpack(self, place: int) -> bytes:
        prefix, rests, starts = self._blocks[place // _BLOCK]
        at = place % _BLOCK
        return prefix + rests[starts[at] : starts[at + 1]]
