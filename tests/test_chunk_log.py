"""The log: one writer, any number of cursors."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.chunk_log import ChunkLog


def test_every_cursor_reads_the_same_chunks_from_where_it_stands() -> None:
    log = ChunkLog("s")
    log.append([b"1", b"2"])
    log.append([b"3"])
    assert [log.since(cursor, 100) for cursor in (0, 1, 3)] == [[b"1", b"2", b"3"], [b"2", b"3"], []]


def test_watchers_are_woken_by_chunks_and_by_the_end_until_they_leave() -> None:
    log, stays, leaves = ChunkLog("s"), asyncio.Event(), asyncio.Event()
    log.watch(stays)
    log.watch(leaves)
    log.append([b"1"])
    assert stays.is_set()
    assert leaves.is_set()
    stays.clear()
    leaves.clear()
    log.unwatch(leaves)
    assert not log.is_closed
    log.close()
    assert log.is_closed
    assert stays.is_set()
    assert not leaves.is_set()


def test_a_piece_has_what_fits_and_at_least_one_chunk() -> None:
    log = ChunkLog("s")
    log.append([b"1234", b"56", b"7", b"1234567890", b"1"])
    assert [log.since(cursor, 7) for cursor in range(6)] == [
        [b"1234", b"56", b"7"],  # exactly the bound
        [b"56", b"7"],
        [b"7"],
        [b"1234567890"],  # over it, but somebody has to take it
        [b"1"],
        [],
    ]
    assert log.since(0, 18) == log.since(0, 10**9) == [b"1234", b"56", b"7", b"1234567890", b"1"]
    assert log.since(0, 17) == [b"1234", b"56", b"7", b"1234567890"]


@given(st.lists(st.lists(st.binary(min_size=1, max_size=30), max_size=5), max_size=8), st.integers(1, 100))
def test_pieces_are_bounded_as_full_as_can_be_and_together_everything(
    appended: list[list[bytes]], max_bytes: int
) -> None:
    log = ChunkLog("s")
    for chunks in appended:
        log.append(chunks)
    read: list[bytes] = []
    while piece := log.since(len(read), max_bytes):
        assert len(piece) == 1 or len(b"".join(piece)) <= max_bytes
        read += piece
        following = log.since(len(read), max_bytes)
        assert not following or len(b"".join([*piece, following[0]])) > max_bytes
    everything = [chunk for chunks in appended for chunk in chunks]
    assert read == everything
    assert len(log) == len(everything)
    assert log.size_bytes == len(b"".join(everything))


def test_the_size_is_that_of_all_chunks() -> None:
    log = ChunkLog("s")
    assert (log.size_bytes, len(log)) == (0, 0)
    log.append([b"123", b""])
    log.append([b"45"])
    assert (log.size_bytes, len(log)) == (5, 3)


def test_readers_are_told_of_when_they_come_and_when_they_are_gone() -> None:
    log, one, other = ChunkLog("s"), asyncio.Event(), asyncio.Event()
    assert not log.is_read
    seen: list[bool] = []
    log.on_readers_changed = lambda: seen.append(log.is_read)
    log.watch(one)
    log.watch(other)
    log.unwatch(one)
    assert log.is_read  # by the other
    log.append([b"1"])
    log.close()
    log.unwatch(other)
    assert not log.is_read
    assert seen == [True, True, True, False]
