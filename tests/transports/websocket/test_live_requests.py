"""The requests of all live sockets: opened once, read from any chunk, and known for a while after their end."""

import asyncio

import pytest

from adk_stream_protocol.chunk_log import ChunkLog, LogReader, Reading
from adk_stream_protocol.errors import MalformedRequest, RunActive, TooMany
from adk_stream_protocol.transports.websocket.live_requests import LiveRequests, RequestStream

KEY = ("ann", "chat-1", "r1")


def log_of(*sizes: int, earlier: int = 0) -> ChunkLog:
    log = ChunkLog("s", [b"e" * 10] * earlier)
    log.append([bytes([65 + number]) * size for number, size in enumerate(sizes)])
    return log


def taken(reader: LogReader) -> list[bytes]:
    """All there is, piece by piece."""
    chunks: list[bytes] = []
    while reader.has_more:
        chunks += [chunk for _, chunk in reader.take()]
    return chunks


async def test_a_stream_that_replays_goes_on_into_the_log() -> None:
    log = log_of(1, 1, earlier=3)
    stream = RequestStream.replaying(log)
    log.append([b"x", b"y"])
    everything = [b"e" * 10] * 3 + [b"B", b"x", b"y"]  # the second `start` of one message is left out
    for sequence in range(7):
        for max_bytes in (1, 25, 1000):
            assert taken(await stream.reader(sequence, max_bytes)) == everything[sequence:]
    for sequence in (-1, 7):
        with pytest.raises(MalformedRequest):
            await stream.reader(sequence, 1000)
    reader = await stream.reader(6, 1000)
    assert (reader.has_more, reader.is_at_end) == (False, False)
    log.append([b"z"])
    assert (reader.has_more, taken(reader)) == (True, [b"z"])
    log.close()
    assert (reader.is_at_end, stream.has_ended) == (True, True)


async def test_a_stream_is_read_from_any_chunk() -> None:
    stream = RequestStream(log_of(1, 1))
    assert [taken(await stream.reader(sequence, 1)) for sequence in range(3)] == [[b"A", b"B"], [b"B"], []]
    for sequence in (-1, 3):
        with pytest.raises(MalformedRequest):
            await stream.reader(sequence, 1)


async def test_a_stream_comes_in_pieces_of_a_bounded_size() -> None:
    reader = await RequestStream.replaying(log_of(100, 100, 100, earlier=20)).reader(0, 50)
    pieces: list[int] = []
    while reader.has_more:
        pieces.append(sum(len(chunk) for _, chunk in reader.take()))
    assert sum(pieces) == 20 * 10 + 200
    assert max(pieces) <= 100  # one chunk at least, however large


@pytest.mark.virtual_time
async def test_a_request_is_opened_once_however_many_ask_and_one_that_leaves_stops_nobody() -> None:
    async def begin() -> Reading:
        begun.append(1)
        await opened.wait()
        return Reading(log)

    begun: list[int] = []
    log, opened, requests = log_of(1), asyncio.Event(), LiveRequests(30)
    asking = [asyncio.create_task(requests.open(KEY, b"asked", begin)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    opened.set()
    got = await asyncio.gather(*asking[1:])
    found = await requests.find(KEY)
    assert all(each.log is log for each in (*got, found) if each)
    assert begun == [1]
    with pytest.raises(MalformedRequest):
        await requests.open(KEY, b"something else", begin)
    assert await requests.find(("bob", *KEY[1:])) is None
    await requests.aclose()


@pytest.mark.virtual_time
async def test_a_refusal_is_remembered_for_a_while() -> None:
    async def begin() -> Reading:
        begun.append(1)
        raise RunActive

    begun: list[int] = []
    requests = LiveRequests(30)
    for _ in range(2):
        with pytest.raises(RunActive):
            await requests.open(KEY, b"", begin)
    with pytest.raises(RunActive):
        await requests.find(KEY)
    assert begun == [1]
    await asyncio.sleep(100)
    assert await requests.find(KEY) is None


@pytest.mark.virtual_time
async def test_only_so_many_requests_of_a_user_are_remembered() -> None:
    async def begin() -> Reading:
        return Reading(log)

    log, requests = log_of(1), LiveRequests(30)
    log.close()
    for number in range(250):
        await requests.open(("ann", "chat-1", f"sent-{number}"), b"", begin)
        requests.add(("ann", "chat-1", f"resumed-{number}"), RequestStream.replaying(log))
    with pytest.raises(TooMany):
        await requests.open(KEY, b"", begin)
    with pytest.raises(TooMany):
        requests.add(KEY, RequestStream(log))
    assert await requests.open(("ann", "chat-1", "sent-1"), b"", begin)  # those that are known are no more
    await requests.open(("bob", *KEY[1:]), b"", begin)
    await asyncio.sleep(100)
    await requests.open(KEY, b"", begin)
    await requests.aclose()


@pytest.mark.virtual_time
async def test_what_is_being_opened_ends_with_the_server() -> None:
    async def begin() -> ChunkLog:
        await asyncio.Event().wait()
        raise AssertionError

    requests = LiveRequests(30)
    asking = asyncio.create_task(requests.open(KEY, b"", begin))
    await asyncio.sleep(0)
    await requests.aclose()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert asyncio.all_tasks() == {asyncio.current_task()}
