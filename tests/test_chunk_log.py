"""The log: one writer, any number of cursors."""

import asyncio

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
