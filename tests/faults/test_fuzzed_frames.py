"""Any frame gets one typed refusal or has its effect; the socket and its sessions are as good as before."""

import asyncio
import base64
import json
import logging
from collections import Counter
from random import Random
from typing import Any

import pytest

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.errors import MalformedRequest
from adk_stream_protocol.protocol.frames import decode_frame
from faults.fuzzing import ODD_VALUES, RAW_VALUES, garble, mutate, random_json
from support import virtual_time
from support.apps import figure
from support.live_client import LiveClient
from support.older_client import OlderClient, is_one_stream, older_socket
from transports.live_apps import answers_for_ever, live_app, ping

FRAMES = 10_000
SETTLED_S = 0.001  # of a time in which whatever can happen has happened before any of it goes by

TYPES = {
    "chunk",
    "end",
    "start",
    "no-active",
    "error",
    "pong",
    "attached",
    "detached",
    "voice",
    "turn",
    "transcript",
    "audio",
    "audio-clear",
}
CODES = {"malformed", "too-large", "not-found", "run-active", "output-does-not-fit"}
NAMES = ["type", "requestId", "id", "messages", "data", "body"]
CHATS = [*["chat-1"] * 12, *["chat-2"] * 8, "Grüße", "", "a/b", "user", "..", "x" * 129, "c:"]


def text_part(random: Random) -> dict[str, Any]:
    return {"type": "text", "text": random.choice(["Hello", "", " ", "\0", "🎈", "x" * 2_000])}


def message(random: Random) -> dict[str, Any]:
    if random.random() < 0.3:
        part = {
            "type": random.choice(["tool-locate", "dynamic-tool", "tool-adk_request_confirmation"]),
            "toolCallId": random.choice(["call-1", "", "adk-1"]),
            "state": random.choice(["output-available", "approval-responded", "output-error", "input-available"]),
            "approval": {"id": "adk-1", "approved": random.choice([True, False, None, "yes"])},
            "output": random.choice(ODD_VALUES),
        }
        return {"id": random.choice(["m1", "msg-1"]), "role": "assistant", "parts": [part]}
    return {"id": f"u{random.randrange(10)}", "role": "user", "parts": [text_part(random)]}


def valid_frame(random: Random, number: int) -> dict[str, Any]:
    chat_id, request_id = random.choice(CHATS), random.choice([*[f"f{number}"] * 6, "f1", "-"])
    match random.choice(["send", "send", "send", "resume", "abort", "attach", "audio", "ours"]):
        case "send":
            extra = random.choice([{}, {"body": {"pcmChunks": True}}, {"headers": {"x-ai-sdk-version": "7"}}])
            trigger = random.choice(["submit-message", "submit-message", "regenerate-message"])
            frame = {"type": "send", "requestId": request_id, "id": chat_id, "trigger": trigger}
            return {**frame, "messages": [message(random) for _ in range(random.choice([1, 1, 2]))], **extra}
        case "resume":
            last = random.choice([None, -1, 0, 3, 10**9, -(10**9)])
            return {"type": "resume", "requestId": request_id, "id": chat_id, "lastSequence": last}
        case "abort":
            return {"type": "abort", "requestId": request_id}
        case "attach":
            return {"type": "attach", "requestId": "-", "id": chat_id}
        case "audio":
            data = random.choice(["AAA=", "", "A", "*", base64.b64encode(random.randbytes(640)).decode(), "A" * 90_000])
            return {"type": "audio", "requestId": "-", "data": data}
        case _:
            kinds = [
                "ping",
                "activity-start",
                "activity-end",
                "interrupt",
                "stop",
                "voice-start",
                "voice-end",
                "detach",
            ]
            return {"type": random.choice(kinds), "requestId": "-", "id": chat_id, "sdkVersion": random.choice([6, 7])}


def fuzzed(random: Random, number: int) -> str | bytes:
    frame = valid_frame(random, number)
    match random.randrange(-2, 9):
        case -2 | -1 | 0:
            return json.dumps(frame, ensure_ascii=random.random() < 0.5)
        case 1 | 2:
            return json.dumps(mutate(frame, random), ensure_ascii=random.random() < 0.5)
        case 3:
            return garble(json.dumps(frame), random)
        case 4:
            name = random.choice(list(frame))
            given = json.dumps({**frame, name: "HERE"})
            return given.replace('"HERE"', random.choice(RAW_VALUES))
        case 5:
            return json.dumps(random_json(random, NAMES), ensure_ascii=random.random() < 0.5)
        case 6:
            return random.randbytes(random.randrange(200)).decode("utf-8", "surrogateescape")
        case 7:
            return random.randbytes(random.choice([0, 1, 2, 3, 640, 641, 32 * 1024, 32 * 1024 + 2, 100_000]))
        case _:
            return random.choice(RAW_VALUES)


def locate() -> None:
    """Where the user is."""


def expects_refusal(frame: str | bytes, *, takes_binary: bool, attached: bool) -> bool:
    if isinstance(frame, bytes):
        return not takes_binary or not attached or len(frame) % 2 == 1 or not 0 < len(frame) <= 32 * 1024
    try:
        decode_frame(frame)
    except MalformedRequest:
        return True
    return False


class Fuzzing:
    """One socket under fire."""

    def __init__(self, client: LiveClient, *, takes_binary: bool) -> None:
        self.client = client
        self.takes_binary = takes_binary
        self.outcomes: Counter[str] = Counter()

    async def throw(self, frame: str | bytes) -> None:
        seen = len(self.client.everything)
        attached = any(isinstance(told, dict) and told["type"] == "attached" for told in self.client.everything)
        self.client.send_frame(frame)
        await asyncio.sleep(SETTLED_S)
        came = [told for told in self.client.everything[seen:] if isinstance(told, dict)]
        assert {told["type"] for told in came} <= TYPES
        errors = [told for told in came if told["type"] == "error"]
        assert len(errors) <= 1, errors
        if expects_refusal(frame, takes_binary=self.takes_binary, attached=attached):
            assert errors, "it was neither refused nor could it be read"
            assert len(came) == 1
        for error in errors:
            assert error["code"] in CODES, error
            assert set(error) == {"type", "requestId", "code", "message" if error["requestId"] == "-" else "errorText"}
            assert "Traceback" not in json.dumps(error)
        self.outcomes[errors[0]["code"] if errors else "taken"] += 1
        await ping(self.client)


async def talks_as_ever(client: LiveClient, number: int) -> None:
    """In the chats that were fuzzed, and in one that was not."""
    for chat_id in ("chat-1", "chat-2", f"calm-{number}"):
        said = {"id": f"calm-{number}", "role": "user", "parts": [{"type": "text", "text": "Are you there?"}]}
        request_id = f"calm-{number}-{chat_id}"
        frame = {"type": "send", "requestId": request_id, "id": chat_id, "messages": [said]}
        client.send_frame(frame)
        answer = await client.answer(request_id)
        assert (answer.status, answer.text) == (200, "Yes."), (chat_id, answer)
        client.send_frame({"type": "abort", "requestId": request_id})


@pytest.mark.figures
def test_ten_thousand_frames_do_no_harm(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.INFO)
    outcomes: Counter[str] = Counter()
    limits = Limits(max_frames_per_s=10**6, max_audio_frames_per_s=10**6)
    on_each_socket = 250

    async def scenario(seed: int) -> None:
        random, takes_binary = Random(seed), seed % 2 == 0
        async with live_app(answers_for_ever, tools=(client_tool(locate),), limits=limits) as live:
            async with live.socket(speaks=takes_binary) as client:
                await ping(client)  # the first frame decides which frames a socket speaks
                fuzzing = Fuzzing(client, takes_binary=takes_binary)
                for number in range(on_each_socket):
                    frame = fuzzed(random, number)
                    try:
                        await fuzzing.throw(frame)
                    except BaseException as error:
                        error.add_note(f"seed {seed}, frame {number}: {frame[:300]!r}")
                        raise
                    if number % 50 == 49:
                        await talks_as_ever(client, number)
                assert client.close_code is None
            async with live.socket() as again:
                await talks_as_ever(again, on_each_socket)
        outcomes.update(fuzzing.outcomes)

    for seed in range(figure(FRAMES) // on_each_socket):
        virtual_time.run(scenario(seed))
    assert min(outcomes["malformed"], outcomes["taken"]) > figure(FRAMES) // 10
    ours = [record for record in caplog.records if record.name.startswith(("adk_stream_protocol", "asyncio"))]
    assert [record.getMessage() for record in ours if record.levelno >= logging.WARNING or record.exc_info] == []
    with capsys.disabled():
        print(f"\n{outcomes.total()} frames: {dict(outcomes)}", end=" ")


# -- the older frames -------------------------------------------------------------------------------------------------

OLDER_TYPES = ["message", "message", "message", "tool_result", "tool-result", "ping"]


def older_frame(random: Random) -> dict[str, Any]:
    kind = random.choice(OLDER_TYPES)
    fields: dict[str, Any]
    match kind:
        case "message":
            said = message(random)
            if random.random() < 0.3:
                said["content"] = random.choice([said.pop("parts"), "Hello"])
            fields = {"messages": [said], "id": random.choice(CHATS), "messageId": "m1"}
        case "ping":
            fields = {"timestamp": random.choice([1, 1.5, None, "now"])}
        case _:
            fields = {"toolCallId": random.choice(["call-1", "", "adk-1", 7]), "result": random.choice(ODD_VALUES)}
    head = {"type": kind, "version": random.choice(["1.0", "1.0", "1.0", "1.0", "2.0", 1])}
    return {**head, "data": fields} if random.random() < 0.5 else {**head, **fields}


def fuzzed_older(random: Random, number: int) -> str | bytes:
    frame = older_frame(random)
    match random.randrange(8):
        case 0 | 1 | 2:
            return json.dumps(frame, ensure_ascii=random.random() < 0.5)
        case 3 | 4:
            return json.dumps(mutate(frame, random), ensure_ascii=random.random() < 0.5)
        case 5:
            return garble(json.dumps(frame), random)
        case 6:
            return json.dumps({**frame, random.choice(list(frame)): "HERE"}).replace(
                '"HERE"', random.choice(RAW_VALUES)
            )
        case _:
            return fuzzed(random, number)


async def throw_older(client: OlderClient, frame: str | bytes) -> str:
    """Gives the code of its refusal, or what else came of it."""
    seen = len(client.texts)
    client.send_frame(frame)
    await asyncio.sleep(SETTLED_S)
    came = client.texts[seen:]
    pongs = [text for text in came if not text.startswith("data: ")]
    types = client.types[len(client.types) - (len(came) - len(pongs)) :]
    if "error" in types:
        (refusal,) = [chunk for chunk in client.chunks[-len(types) :] if chunk["type"] == "error"]
        assert types == ["error", "[DONE]"]
        assert set(refusal) == {"type", "errorText", "code"}
        assert refusal["code"] in CODES
        return refusal["code"]
    if pongs:
        (pong,) = pongs
        assert json.loads(pong)["type"] == "pong"
        assert not types
        return "pong"
    assert is_one_stream(types)
    return "told"


@pytest.mark.figures
def test_frames_of_the_notes_do_no_harm_either(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each gets one refusal, one answer or one stream from its start to its end."""
    caplog.set_level(logging.INFO)
    outcomes: Counter[str] = Counter()
    limits = Limits(max_frames_per_s=10**6, max_audio_frames_per_s=10**6)
    on_each_socket = 250

    async def scenario(seed: int) -> None:
        random = Random(seed)
        app = live_app(answers_for_ever, tools=(client_tool(locate),), limits=limits)
        chat = random.choice(["chat-1", None])
        async with app as live, older_socket(live.app, chat=chat) as client:
            assert await throw_older(client, '{"type": "ping", "version": "1.0"}') == "pong"
            for number in range(on_each_socket):
                frame = fuzzed_older(random, number)
                try:
                    outcomes[await throw_older(client, frame)] += 1
                except BaseException as error:
                    error.add_note(f"seed {seed}, frame {number}: {frame[:300]!r}")
                    raise
            assert client.close_code is None
            client.write("Are you there?")
            await asyncio.sleep(SETTLED_S)
            assert client.types[-1] == "[DONE]"
            assert client.text.endswith("Yes.")

    for seed in range(figure(FRAMES) // on_each_socket):
        virtual_time.run(scenario(seed))
    assert min(outcomes["malformed"], outcomes["told"], outcomes["pong"]) > figure(FRAMES) // 50
    ours = [record for record in caplog.records if record.name.startswith(("adk_stream_protocol", "asyncio"))]
    assert [record.getMessage() for record in ours if record.levelno >= logging.WARNING or record.exc_info] == []
    with capsys.disabled():
        print(f"\n{outcomes.total()} older frames: {dict(outcomes)}", end=" ")
