"""Large frames: decoded once and off the event loop, and taken if their files fit into a frame. Threads have no virtual
time, so these tests run in real time."""

import base64
import threading
from typing import Any

import pytest

from adk_stream_protocol import Limits
from adk_stream_protocol.chat import service
from adk_stream_protocol.protocol import frames
from transports.live_apps import answers_for_ever, live_app, ping, sound, speak

MIB = 1024 * 1024
LOOP = threading.main_thread()


def image(size: int) -> dict[str, Any]:
    url = "data:image/png;base64," + base64.b64encode(bytes(size)).decode()
    return {"id": "u1", "role": "user", "parts": [{"type": "file", "mediaType": "image/png", "url": url}]}


@pytest.fixture(name="decoded")
def decoded_where(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, threading.Thread]]:
    """What is done with a frame, and in which thread."""
    done: list[tuple[str, threading.Thread]] = []

    def noting(name: str, function: Any) -> Any:
        def noted(*arguments: Any, **options: Any) -> Any:
            done.append((name, threading.current_thread()))
            return function(*arguments, **options)

        return noted

    for name in ("decode_frame", "decode_request_id"):
        monkeypatch.setattr(frames, name, noting(name, getattr(frames, name)))
    monkeypatch.setattr(frames.Send, "digest", noting("digest", frames.Send.digest))
    monkeypatch.setattr(service, "read_turn", noting("read_turn", service.read_turn))
    return done


async def test_a_good_frame_is_decoded_once(decoded: list[tuple[str, threading.Thread]]) -> None:
    async with live_app(answers_for_ever) as live, live.attached() as client:
        await client.say("Hello")
        speak(client, sound(20), form="base64")
        await ping(client)
    assert [name for name, _ in decoded] == [
        "decode_frame",
        "decode_frame",
        "digest",
        "read_turn",
        *["decode_frame"] * 2,
    ]
    assert {thread for _, thread in decoded} == {LOOP}


async def test_a_large_frame_is_decoded_once_and_off_the_event_loop(
    decoded: list[tuple[str, threading.Thread]],
) -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        assert (await client.answer(client.start_send(image(MIB)))).text == "Yes."
    assert [name for name, _ in decoded] == ["decode_frame", "digest", "read_turn"]
    assert LOOP not in {thread for _, thread in decoded}


async def test_a_message_in_the_body_is_decoded_off_the_event_loop(
    decoded: list[tuple[str, threading.Thread]],
) -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        answer = await client.say("Ignored", body={"message": image(MIB)})
        assert answer.text == "Yes."
    assert LOOP not in {thread for _, thread in decoded}


async def test_a_large_frame_that_is_none_is_refused_off_the_event_loop(
    decoded: list[tuple[str, threading.Thread]],
) -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        client.send_frame('{"requestId":"r1","type":"nonsense","x":"' + "y" * MIB + '"}')
        answer = await client.answer("r1")
        assert answer.error is not None
        assert answer.error["code"] == "malformed"
    assert [name for name, _ in decoded] == ["decode_frame", "decode_request_id"]
    assert LOOP not in {thread for _, thread in decoded}


@pytest.mark.parametrize(
    "size",
    [pytest.param(30_000_000, id="its-json-is-too-long"), pytest.param(34_000_000, id="the-whole-frame-is")],
)
async def test_a_send_that_is_too_large_is_refused_under_its_own_id(size: int) -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        answer = await client.say("x" * size, request_id="r1")
        assert answer.error
        assert (answer.error["requestId"], answer.error["code"]) == ("r1", "too-large")
        assert answer.error["errorText"].startswith("The request is too large")
        assert live.runs == 0
        client.messages.clear()
        assert (await client.say("Hello")).text == "Yes."


@pytest.mark.parametrize("size", [6 * MIB, 11 * MIB])
async def test_a_send_with_a_large_file_is_taken(size: int) -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        assert (await client.answer(client.start_send(image(size)))).text == "Yes."
        assert len(live.model.sessions) == 1


def test_the_largest_file_fits_into_a_frame_of_plain_uvicorn() -> None:
    limits, uvicorns = Limits(), 16 * MIB
    assert limits.max_frame_bytes <= uvicorns
    assert limits.max_socket_file_bytes * 4 / 3 + MIB < uvicorns


@pytest.mark.parametrize(
    ("files", "is_refused"), [([11 * MIB + 1000], True), ([6 * MIB, 6 * MIB + 1000], True), ([5 * MIB, 6 * MIB], False)]
)
async def test_a_file_that_only_http_takes_is_refused_with_what_to_do(files: list[int], is_refused: bool) -> None:
    parts = [image(size)["parts"][0] for size in files]
    async with live_app(answers_for_ever) as live, live.socket() as client:
        answer = await client.answer(client.start_send({"id": "u1", "role": "user", "parts": parts}))
        if not is_refused:
            assert answer.text == "Yes."
            return
        assert answer.error is not None
        assert answer.error["code"] == "too-large"
        assert answer.error["errorText"] == (
            "This is too large for a WebSocket: a file may have 11 MiB there, and the whole frame 16 MiB. "
            "Stop the live session, then send it over HTTP."
        )
        assert live.runs == 0


async def test_a_file_that_http_does_not_take_either_is_not_sent_there() -> None:
    limits = Limits(max_file_bytes=MIB)
    async with live_app(answers_for_ever, limits=limits) as live, live.socket() as client:
        answer = await client.answer(client.start_send(image(MIB + 1000)))
        assert answer.error is not None
        assert answer.error["errorText"].startswith("A file is too large: ")
