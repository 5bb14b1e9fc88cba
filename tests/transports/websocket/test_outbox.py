"""What waits to be sent: frames in their order, and voice that had to wait together."""

import asyncio

import pytest
from starlette.types import Message, Send
from starlette.websockets import WebSocket

from adk_stream_protocol import Limits
from adk_stream_protocol.transports.websocket.outbox import Outbox
from transports.live_apps import FRAME

pytestmark = pytest.mark.virtual_time

MOST = 9600


async def outbox_of(send: Send) -> Outbox:
    async def receive() -> Message:
        return {"type": "websocket.connect"}

    websocket = WebSocket({"type": "websocket", "headers": []}, receive, send)
    await websocket.receive()
    await websocket.accept()
    return Outbox(websocket, Limits())


async def sent(*frames: str | bytes) -> list[str | bytes]:
    """What a socket that was busy until now is given, in as many messages."""
    got: list[str | bytes] = []

    async def send(message: Message) -> None:
        if message["type"] == "websocket.send":
            got.append(message.get("text") or message["bytes"])

    outbox = await outbox_of(send)
    for frame in frames:
        outbox.put(frame)
    sending = asyncio.create_task(outbox.send_all())
    while sum(map(len, got)) < sum(map(len, frames)):
        await asyncio.sleep(0)
    sending.cancel()
    return got


async def test_voice_that_had_to_wait_goes_together() -> None:
    assert await sent(b"ab", b"cd", b"ef") == [b"abcdef"]
    assert await sent(b"ab") == [b"ab"]


async def test_a_fifth_of_a_second_goes_together_at_most() -> None:
    frames = [bytes([number]) * FRAME for number in range(40)]
    got = await sent(*frames)
    assert b"".join(frame for frame in got if isinstance(frame, bytes)) == b"".join(frames)
    assert [len(frame) for frame in got] == [MOST // FRAME * FRAME, MOST // FRAME * FRAME, 10 * FRAME]
    assert await sent(b"a" * MOST, b"b") == [b"a" * MOST, b"b"]
    assert await sent(b"a" * (MOST - 1), b"b", b"c") == [b"a" * (MOST - 1) + b"b", b"c"]


async def test_nothing_else_goes_together_and_nothing_changes_places() -> None:
    assert await sent("one", "two", b"a", b"b", "rate", b"c", "three", b"d", b"e") == [
        "one",
        "two",
        b"ab",
        "rate",
        b"c",
        "three",
        b"de",
    ]


async def test_a_client_that_takes_nothing_for_a_while_is_stuck_also_when_it_took_the_first_frames() -> None:
    clock, taken = asyncio.get_running_loop().time, list[float]()

    async def send(message: Message) -> None:
        if message["type"] == "websocket.send":
            taken.append(clock())
            await asyncio.sleep(20 if len(taken) < 3 else 1_000)

    outbox = await outbox_of(send)
    sending = asyncio.create_task(outbox.send_all())
    for frame in ("one", "two", "three"):
        outbox.put(frame)
    await outbox.is_stuck.wait()
    assert clock() - taken[2] == pytest.approx(Limits().send_timeout_s, abs=0.1)
    sending.cancel()
