"""How many frames a live socket takes, and what becomes of a client that sends more."""

import asyncio

import pytest

from adk_stream_protocol import Limits
from support.live_client import LiveClient
from transports.live_apps import answers_for_ever, live_app
from transports.websocket.test_live_limits import refusals

pytestmark = pytest.mark.virtual_time


async def test_frames_come_50_a_second_on_average_of_ten() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        for _ in range(510):
            client.tell("ping")
        await client.own("error", 10)
        kinds = [frame["type"] for frame in client.frames["-"]]
        assert kinds == ["pong"] * 500 + ["error"] * 10
        assert client.frames["-"][-1]["code"] == "rate-limited"
        await asyncio.sleep(1)
        for _ in range(51):
            client.tell("ping")
        await client.own("error", 11)
        assert [frame["type"] for frame in client.frames["-"]][510:] == ["pong"] * 50 + ["error"]


FEW = Limits(max_frames_per_s=1, max_audio_frames_per_s=2)


@pytest.mark.parametrize("form", ["binary", "base64"])
async def test_voice_has_a_rate_of_its_own(form: str) -> None:
    def speak(client: LiveClient) -> None:
        client.send_frame(b"\1\0") if form == "binary" else client.tell("audio", data="AQA=")

    async with live_app(answers_for_ever, speaks=True, limits=FEW) as live, live.attached() as client:
        for _ in range(25):
            speak(client)
        assert await refusals(client) == ["rate-limited"] * 5
        for _ in range(15):
            client.tell("ping")
        await client.own("error", 5 + 7)  # one frame was the `attach`, one the ping above
        await asyncio.sleep(1)
        for _ in range(3):  # two are allowed by now
            speak(client)
        await client.own("error", 5 + 7 + 1)


async def test_a_request_that_comes_too_often_is_refused_under_its_id() -> None:
    async with live_app(answers_for_ever, limits=FEW) as live, live.socket() as client:
        for _ in range(10):
            client.tell("ping")
        answer = await client.say("Hello")
        assert answer.error
        assert answer.error["code"] == "rate-limited"
        assert live.runs == 0
        await asyncio.sleep(10)
        assert (await client.say("Hello")).text == "Yes."


async def test_what_cannot_be_read_counts_as_a_frame() -> None:
    async with live_app(answers_for_ever, limits=FEW) as live, live.socket() as client:
        for _ in range(12):
            client.send_frame("nonsense")
        await client.own("error", 12)
        codes = [frame["code"] for frame in client.frames["-"]]
        assert codes[:10] == ["malformed"] * 10
        assert set(codes[10:]) <= {"malformed", "rate-limited"}
        client.tell("ping")
        assert (await client.own("error", 13))["code"] == "rate-limited"


@pytest.mark.parametrize("form", ["text", "binary"])
async def test_a_client_that_ignores_its_refusals_is_closed_and_no_other(form: str) -> None:
    frame, allowed = ("{}", 10) if form == "text" else (b"\1\0", 20)
    async with live_app(answers_for_ever, speaks=True, limits=FEW) as live, live.socket(speaks=True) as flooding:
        for _ in range(2 * allowed):
            flooding.send_frame(frame)
        await flooding.own("error", 2 * allowed - 1)
        assert flooding.close_code is None
        for _ in range(100):
            flooding.send_frame(frame)
        await flooding.until(lambda: flooding.close_code)
        assert flooding.close_code == 1008
        assert len(flooding.frames["-"]) <= 2 * allowed
        async with live.socket() as calm:
            assert (await calm.say("Hello")).text == "Yes."
