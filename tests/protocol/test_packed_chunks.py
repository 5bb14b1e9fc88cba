"""A log that is packed is read like a list."""

import random

import pytest

from adk_stream_protocol.protocol.packed_chunks import PackedChunks

CHUNKS = [b"x" * (number % 7) + b"%d" % number for number in range(1000)]


def packed(count: int, together: int) -> PackedChunks:
    chunks = PackedChunks()
    for start in range(0, count, together):
        chunks.extend(CHUNKS[start : min(start + together, count)])
    return chunks


@pytest.mark.parametrize("together", [1, 3, 200, 1000])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 127, 128, 129, 500, 1000])
def test_every_place_and_every_slice_is_that_of_a_list(count: int, together: int) -> None:
    chunks, chance = packed(count, together), random.Random(count)
    assert len(chunks) == count
    assert list(chunks) == CHUNKS[:count]
    for _ in range(50):
        start, stop = chance.randrange(-5, count + 5), chance.randrange(-5, count + 5)
        assert chunks[start:stop] == CHUNKS[:count][start:stop]
        assert chunks[start:] == CHUNKS[:count][start:]
        assert chunks[:stop] == CHUNKS[:count][:stop]
    for place in range(count + 1):
        assert chunks.since(place) == CHUNKS[:count][place:]
    for place in range(-count, count):
        assert chunks[place] == CHUNKS[:count][place]


@pytest.mark.parametrize("count", [0, 10, 300])
@pytest.mark.parametrize("beyond", [0, 1000])
def test_there_is_nothing_beyond_the_end(count: int, beyond: int) -> None:
    with pytest.raises(IndexError):
        packed(count, 7)[count + beyond]
