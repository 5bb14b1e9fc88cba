"""What a live socket does not take: too much, or in the wrong form."""

import asyncio
import base64
import json
from typing import Any

import pytest

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import LiveSession
from support.live_client import LiveClient
from transports.live_apps import answers_for_ever, live_app, ping

pytestmark = pytest.mark.virtual_time

CANARY = "canary-91c4"
KIB = 1024


async def refusals(client: LiveClient) -> list[str]:
    """The codes of our own frames that were refused so far."""
    await ping(client)
    return [frame["code"] for frame in client.frames["-"] if frame["type"] == "error"]


# -- sizes ------------------------------------------------------------------------------------------------------------


async def test_the_body_of_a_send_counts_too() -> None:
    limits = Limits(max_json_bytes=10 * KIB)
    async with live_app(answers_for_ever, limits=limits) as live, live.socket() as client:
        for field in ("body", "headers"):
            answer = await client.say("Hello", **{field: {"x": "y" * 11 * KIB}})
            assert answer.error
            assert answer.error["code"] == "too-large"
        assert live.runs == 0


@pytest.mark.parametrize("size", [32 * KIB, 32 * KIB + 2, 64 * KIB + 2])
@pytest.mark.parametrize("form", ["binary", "base64"])
async def test_a_frame_of_voice_has_at_most_32_kib(size: int, form: str) -> None:
    heard: list[bytes] = []

    async def server(session: LiveSession) -> None:
        heard.append((await session.expect_audio()).data or b"")
        await session.expect("close")

    async with live_app(server, speaks=True) as live, live.attached() as client:
        samples = bytes(size)
        if form == "binary":
            client.send_frame(samples)
        else:
            client.tell("audio", data=base64.b64encode(samples).decode())
        if size > 32 * KIB:
            assert await refusals(client) == ["too-large"]
            assert live.runs == 0
        else:
            assert await refusals(client) == []
            await asyncio.sleep(1)
            assert heard == [samples]


OWN_KINDS = [
    "ping",
    "attach",
    "detach",
    "voice-start",
    "voice-end",
    "activity-start",
    "activity-end",
    "interrupt",
    "stop",
]


def padded(frame: dict[str, Any], size: int) -> str:
    bare = len(json.dumps({**frame, "more": ""}))
    return json.dumps({**frame, "more": "x" * (size - bare)})


@pytest.mark.parametrize("kind", OWN_KINDS)
async def test_our_own_frames_have_at_most_4_kib(kind: str) -> None:
    async with live_app(answers_for_ever) as live, live.attached() as client:
        frame = {"type": kind, "requestId": "-", "id": "chat-1"}
        client.send_frame(padded(frame, 4 * KIB))
        assert await refusals(client) == []
        client.send_frame(padded(frame, 4 * KIB + 1))
        assert await refusals(client) == ["too-large"]


@pytest.mark.parametrize("kind", ["resume", "abort"])
async def test_a_request_that_is_too_large_is_refused_under_its_id(kind: str) -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        client.send_frame(padded({"type": kind, "requestId": "r1", "id": "chat-1"}, 4 * KIB + 1))
        answer = await client.answer("r1")
        assert answer.error
        assert (answer.error["type"], answer.error["code"]) == ("error", "too-large")


# -- binary frames ----------------------------------------------------------------------------------------------------


async def test_voice_needs_a_chat_to_go_to() -> None:
    async with live_app(answers_for_ever, speaks=True) as live, live.socket(speaks=True) as client:
        client.send_frame(b"\1\0")
        for kind in ("activity-start", "activity-end", "interrupt", "stop"):
            client.tell(kind)
        client.tell("audio", data="AQA=")
        assert await refusals(client) == ["malformed"] * 6
        assert {frame["message"] for frame in client.frames["-"] if frame["type"] == "error"} == {
            "Attach to a chat first: send `attach` with its `id`."
        }
        assert live.runs == 0


async def test_binary_frames_need_the_subprotocol() -> None:
    async with live_app(answers_for_ever, speaks=True) as live, live.attached(speaks=False) as client:
        client.send_frame(b"\1\0")
        assert await refusals(client) == ["malformed"]
        assert live.runs == 0


@pytest.mark.parametrize("samples", [b"\0", b"\1\2\3", bytes(32 * KIB - 1)])
async def test_voice_has_two_bytes_a_sample(samples: bytes) -> None:
    async with live_app(answers_for_ever, speaks=True) as live, live.attached() as client:
        client.send_frame(samples)
        client.tell("audio", data=base64.b64encode(samples).decode())
        assert await refusals(client) == ["malformed"] * 2
        assert live.runs == 0


async def test_empty_voice_does_not_reach_the_model() -> None:
    async with live_app(answers_for_ever, speaks=True) as live, live.attached() as client:
        client.send_frame(b"")
        client.tell("audio", data="")
        await ping(client)
        await asyncio.sleep(1)
        assert [received for session in live.model.sessions for received in session.received] == []


@pytest.mark.parametrize("data", ["*", "AQA", "AQA=\n", CANARY])
async def test_voice_that_is_not_base64_is_refused(data: str) -> None:
    async with live_app(answers_for_ever, speaks=True) as live, live.attached() as client:
        client.tell("audio", data=data)
        assert await refusals(client) == ["malformed"]
        assert CANARY not in json.dumps(client.everything)
        assert live.runs == 0
