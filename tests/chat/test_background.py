"""Work that goes on after the headers of its request were sent: its failures are in the stream."""

import asyncio

import msgspec
import pytest

from adk_stream_protocol.adk.run import RESTARTING
from adk_stream_protocol.chat.background import BackgroundWork
from adk_stream_protocol.chat.closed_logs import closed_log, failed_log
from adk_stream_protocol.chunk_log import ChunkLog, Reading
from adk_stream_protocol.errors import BridgeError, NotFound, RunActive
from adk_stream_protocol.protocol.chunks import Finish, Start


def texts(log: ChunkLog) -> list[str]:
    assert log.is_closed
    chunks = [msgspec.json.decode(chunk) for chunk in log.since(0, 1000)]
    assert [chunk["type"] for chunk in chunks] == ["start", "error"]
    return [chunks[0].get("messageId"), chunks[1]["errorText"]]


async def raises(error: Exception) -> Reading:
    raise error


@pytest.mark.parametrize(
    ("error", "failure", "text"),
    [
        (RunActive(), None, RunActive.public_text),
        (RunActive(), "Kept.", "Kept."),
        (NotFound(), "Kept.", NotFound.public_text),
        (ValueError("SECRET"), None, BridgeError.public_text),
        (ValueError("SECRET"), "Kept.", "Kept."),
    ],
)
async def test_a_failure_is_read_in_the_stream(error: Exception, failure: str | None, text: str) -> None:
    reading = await BackgroundWork().start(raises(error), "m1", failure)
    assert texts(reading.log) == ["m1", text]


async def test_a_drain_ends_work_that_has_not_even_begun() -> None:
    background = BackgroundWork()

    async def waits() -> Reading:
        await asyncio.sleep(60)
        raise AssertionError

    reading = background.start(waits(), "m1", "Kept.")
    await background.drain()
    assert texts((await reading).log) == ["m1", RESTARTING]


async def test_a_log_that_is_written_in_one_go_is_closed() -> None:
    log = await closed_log([Start("m1"), Finish("stop")])
    assert (len(log), log.is_closed) == (2, True)
    assert failed_log(None, "x").segment != failed_log(None, "x").segment
