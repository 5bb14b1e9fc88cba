"""A log that is packed is read like a list."""

import random
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.protocol.packed_chunks import PackedChunks

CHUNKS = [b"x" * (number % 7) + b"%d" % number for number in range(1000)]


def packed(count: int, together: int) -> PackedChunks:
    chunks = PackedChunks()
    for start in range(0, count, together):
        chunks.extend(CHUNKS[start : min(start + together, count)])
    return chunks


@pytest.mark.parametrize("together", [1, 3, 200, 1000])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 79, 80, 81, 143, 144, 300])
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
        assert chunks.since(place, 10**9) == CHUNKS[:count][place:]
    for place in range(-count, count):
        assert chunks[place] == CHUNKS[:count][place]


@pytest.mark.parametrize("count", [0, 10, 300])
@pytest.mark.parametrize("beyond", [0, 1000])
def test_there_is_nothing_beyond_the_end(count: int, beyond: int) -> None:
    with pytest.raises(IndexError):
        packed(count, 7)[count + beyond]


@pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**16 + 1, 2**20])
def test_blocks_may_be_of_any_size(size: int) -> None:
    """A block is of 64 chunks, and what they have in common is not counted."""
    chunks = [b"a" * (size - 63), *(b"%c" % (48 + number) for number in range(63)), *[b"z"] * 16]
    packed = PackedChunks()
    packed.extend(chunks)
    assert list(packed) == chunks


@given(st.lists(st.binary(max_size=6), min_size=100, max_size=200), st.binary(max_size=6))
def test_whatever_chunks_have_in_common_they_come_out_as_they_went_in(chunks: list[bytes], prefix: bytes) -> None:
    chunks = [prefix + chunk for chunk in chunks]
    packed = PackedChunks()
    packed.extend(chunks)
    assert list(packed) == chunks
    for start in range(len(chunks)):
        taken = packed.since(start, 40)
        assert taken == chunks[start : start + len(taken)]
        assert len(taken) == 1 or sum(map(len, taken)) <= 40
        assert start + len(taken) == len(chunks) or sum(map(len, chunks[start : start + len(taken) + 1])) > 40


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_a_word_in_the_log_is_not_much_more_than_the_word() -> None:
    chunks = PackedChunks()
    for number in range(10_000):
        chunks.extend([b'{"type":"text-delta","id":"0","delta":"w%04d "}' % number])
    assert tracemalloc.get_traced_memory()[0] < 10_000 * 20  # the word and its end are eight bytes, its place four


@pytest.mark.usefixtures("traced")
def test_what_is_not_taken_is_not_copied() -> None:
    chunks = PackedChunks()
    chunks.extend([b"small" if number % 2 else b"large" * 100_000 for number in range(200)])
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert chunks.since(1, 100) == [b"small"]
    assert tracemalloc.get_traced_memory()[1] - before < 10_000
