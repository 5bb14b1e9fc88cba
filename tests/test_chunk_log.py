"""The log: one writer, any number of cursors."""

import asyncio
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.chunk_log import ChunkLog, LogReader
from adk_stream_protocol.errors import TooMany
from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import encode_chunks


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


@given(st.lists(st.lists(st.binary(max_size=30).map(b"x".__add__), max_size=5), max_size=8), st.integers(1, 100))
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


# -- readers ----------------------------------------------------------------------------------------------------------


def long_log() -> ChunkLog:
    log = ChunkLog("s")
    for number in range(5_000):
        call = f"call-{number}"
        input_chunks = [c.ToolInputStart(call, "pay"), c.ToolInputAvailable(call, "pay", {"to": "Bo"})]
        log.append(encode_chunks([*input_chunks, c.ToolOutputAvailable(call, {"paid": 1}), c.TextDelta("t", "word")]))
    return log


def test_a_reader_costs_what_it_has_taken() -> None:
    log = long_log()
    tracemalloc.start()
    try:
        readers = [LogReader(log, 1000, replays_until=len(log)) for _ in range(100)]
        first = [reader.take() for reader in readers]
        later = [log.since(100, 1000) for _ in range(100)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < len(first[0]) < 50
    assert 0 < len(later[0]) < 50
    assert held < 100 * 20_000  # all of the log's places alone would be 160 KB each


def test_a_piece_looks_at_no_more_of_the_log_than_its_size() -> None:
    """Also when nothing of it is told."""
    log = ChunkLog("s")
    preview = encode_chunks([c.ToolInputDelta("c1", "x" * 10)] * 1000)
    log.append(encode_chunks([c.ToolInputStart("c1", "pay")]))
    log.append(preview)
    log.append(encode_chunks([c.ToolInputAvailable("c1", "pay", 1), c.ToolOutputAvailable("c1", 1)]))
    pieces = list(log.replayed(len(log), 1000))
    assert len(pieces) >= sum(map(len, preview)) // 1100
    kinds = [json.loads(chunk)["type"] for piece in pieces for _, chunk in piece]
    assert kinds == ["tool-input-start", "tool-input-delta", "tool-output-available"]


def test_a_replay_stays_what_it_was_when_its_reader_came() -> None:
    """A call that ends while it is being told is not told in two ways."""
    log = ChunkLog("s")
    asked = encode_chunks(
        [c.ToolInputStart("c1", "pay"), c.ToolInputDelta("c1", "{}"), c.ToolInputAvailable("c1", "pay", {})]
    )
    log.append(asked)
    reader = LogReader(log, 1, replays_until=len(log))
    told = [*reader.take(), *reader.take()]
    log.append(encode_chunks([c.ToolOutputAvailable("c1", 1)]))
    while reader.has_more:
        told += reader.take()
    assert [chunk for _, chunk in told] == log.since(0, 10**6)
    finished = [chunk for piece in log.replayed(len(log), 1) for _, chunk in piece]
    assert [json.loads(chunk)["type"] for chunk in finished] == [
        "tool-input-start",
        "tool-input-delta",
        "tool-output-available",
    ]


def test_a_full_log_takes_no_more_readers_until_one_leaves() -> None:
    log, waker = ChunkLog("s"), asyncio.Event()
    log.require_room(1)
    log.watch(waker)
    log.require_room(2)
    with pytest.raises(TooMany):
        log.require_room(1)
    log.unwatch(waker)
    log.require_room(1)


@pytest.mark.parametrize("steps", range(5))
async def test_whoever_is_cancelled_while_the_last_reader_leaves_is_cancelled(steps: int) -> None:
    log, reader = ChunkLog("s"), asyncio.Event()
    log.watch(reader)
    waiting = asyncio.create_task(log.is_left(60))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    log.unwatch(reader)
    for _ in range(steps):
        await asyncio.sleep(0)
    was_done = waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert was_done or waiting.cancelled()
