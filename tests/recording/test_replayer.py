"""A recording, served again: by the command as people start it, and by its application in this process."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from fastapi import FastAPI

from adk_stream_protocol import cli
from adk_stream_protocol.demo.identity import LoopbackIdentity
from adk_stream_protocol.demo.server import build_replay_server, build_server
from adk_stream_protocol.protocol.frames import SUBPROTOCOL
from adk_stream_protocol.recording.reader import read_recording
from adk_stream_protocol.recording.recorder import Recording
from adk_stream_protocol.recording.replayer import Replay
from adk_stream_protocol.testing import ChatClient
from recording.test_reader import Line, write
from support import virtual_time
from support.apps import bridge_with
from support.live_client import PATIENCE_S, Closed, live_socket

BASELINES = Path(__file__).parents[1] / "baselines"
COMMAND = Path(sys.executable).with_name("adk-stream")
NOT_BUILT = Path("nowhere")
Chunk = dict[str, Any]
Result = TypeVar("Result")


def app_of(file: Path, speed: float = 1) -> FastAPI:
    return build_replay_server(Replay(read_recording(file), speed=speed), page=NOT_BUILT)


def lines_of(file: Path) -> list[Line]:
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]]


def recorded_turns(file: Path) -> list[list[Chunk]]:
    """The chunks of each answer, as the file has them."""
    turns: dict[Any, list[Chunk]] = {}
    for line in lines_of(file):
        if line["direction"] == "chunk" and line["chunk"] != "[DONE]":
            turns.setdefault(line["exchange"], []).append(line["chunk"])
        elif line["direction"] == "frame" and line.get("frame", {}).get("type") == "chunk":
            turns.setdefault(line["frame"]["requestId"], []).append(line["frame"]["chunk"])
    return list(turns.values())


def without_deadline(chunks: list[Chunk]) -> list[Chunk]:
    copied: list[Chunk] = json.loads(json.dumps(chunks))
    for chunk in copied:
        if chunk["type"] == "data-adk-approval":
            del chunk["data"]["deadline"]
    return copied


def browse(app: FastAPI, what: Callable[[httpx.AsyncClient], Awaitable[Result]]) -> Result:
    async def browsing() -> Result:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as browser:
            return await what(browser)

    return asyncio.run(browsing())


# -- the baselines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "file", sorted(BASELINES.iterdir()), ids=lambda file: file.name.removesuffix("-baseline.jsonl")
)
def test_every_baseline_is_replayed_over_http_and_over_a_socket(file: Path) -> None:
    turns = recorded_turns(file)

    async def over_http() -> list[list[Chunk]]:
        client = ChatClient(app_of(file), headers={"host": "localhost"})
        return [(await client.send("whatever")).chunks for _ in turns]

    async def over_a_socket() -> list[list[Chunk]]:
        async with live_socket(app_of(file), headers={"host": "localhost"}) as client:
            return [(await client.say("whatever")).chunks for _ in turns]

    assert [without_deadline(turn) for turn in virtual_time.run(over_http())] == list(map(without_deadline, turns))
    assert [without_deadline(turn) for turn in virtual_time.run(over_a_socket())] == list(map(without_deadline, turns))


def test_an_approval_that_is_replayed_leaves_time_to_decide() -> None:
    app = app_of(BASELINES / "process_payment-approved-sse-baseline.jsonl")
    asked = asyncio.run(ChatClient(app, headers={"host": "localhost"}).send("pay"))
    (about,) = [chunk["data"] for chunk in asked.chunks if chunk["type"] == "data-adk-approval"]
    assert datetime.fromisoformat(about["deadline"]) > datetime.now(UTC)


async def test_a_turn_that_nobody_asked_for_is_announced_and_read() -> None:
    file = BASELINES / "process_payment-expired-bidi-baseline.jsonl"
    turns = recorded_turns(file)

    async with live_socket(app_of(file), headers={"host": "localhost"}) as client:
        assert (await client.resume()).status == 204  # nothing runs yet
        await client.say("pay")
        announced = await client.own("turn")
        assert (announced["id"], announced["messageId"]) == ("chat-1", "msg-2")
        expired = await client.resume()
        assert without_deadline(expired.chunks) == without_deadline(turns[1])
        assert (await client.resume()).status == 204


# -- order and time ---------------------------------------------------------------------------------------------------


def two_turns(file: Path) -> Path:
    def turn(exchange: int, at: float, text: str) -> list[Line]:
        said = {"exchange": exchange, "direction": "chunk"}
        return [
            {"exchange": exchange, "at": at, "direction": "request", "method": "POST", "path": "/p/api/chat"},
            {"exchange": exchange, "at": at, "direction": "response", "status": 200},
            {**said, "at": at + 30, "chunk": {"type": "start", "messageId": text}},
            {**said, "at": at + 30.05, "chunk": {"type": "text-start", "id": "t"}},
            {**said, "at": at + 99, "chunk": {"type": "text-delta", "id": "t", "delta": text}},
            {**said, "at": at + 99, "chunk": {"type": "text-end", "id": "t"}},
            {**said, "at": at + 99, "chunk": "[DONE]"},
        ]

    return write(file, *turn(1, 0, "One."), *turn(2, 200, "Two."))


async def test_each_chat_gets_the_answers_in_their_order_until_the_recording_ends(tmp_path: Path) -> None:
    app = app_of(two_turns(tmp_path / "chat.jsonl"), speed=1000)

    one, another = (ChatClient(app, chat_id=chat_id, headers={"host": "localhost"}) for chat_id in ("a", "b"))
    assert [(await one.send("x")).text, (await another.send("x")).text] == ["One.", "One."]
    assert (await one.send("x")).text == "Two."
    over = await one.send("x")
    assert over.status == 404
    assert over.error == {"code": "not-found", "message": "The recording ends here. A new chat begins it again."}
    assert (await another.send("x")).text == "Two."


@pytest.mark.parametrize(("speed", "seconds"), [(1, 0.45), (0.5, 0.9), (10, 0.045)])
def test_pauses_are_as_they_were_but_never_long(tmp_path: Path, speed: float, seconds: float) -> None:
    app = app_of(two_turns(tmp_path / "chat.jsonl"), speed)

    async def took() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await ChatClient(app, headers={"host": "localhost"}).send("x")
        return loop.time() - before

    assert virtual_time.run(took()) == pytest.approx(seconds)


def test_a_replay_that_is_closed_ends_its_streams_at_once(tmp_path: Path) -> None:
    replay = Replay(read_recording(two_turns(tmp_path / "chat.jsonl")), speed=1e-9)

    async def closing() -> list[bytes]:
        reading = asyncio.create_task(_collected(replay))
        await asyncio.sleep(0)
        await replay.aclose()
        return await asyncio.wait_for(reading, 60)

    assert asyncio.run(closing()) == []


async def _collected(replay: Replay) -> list[bytes]:
    return [chunk async for chunk in replay.chunks(replay.next_turn("a"))]


# -- what else a recording has ----------------------------------------------------------------------------------------


def test_what_was_recorded_is_what_is_served_again(tmp_path: Path) -> None:
    """A real recording: a turn, a refusal, a list, a history."""
    file, identity = tmp_path / "chat.jsonl", LoopbackIdentity()

    async def everything(app: FastAPI) -> list[Any]:
        client = ChatClient(app, chat_id="chat-1", headers={"host": "localhost"})
        got: list[Any] = [(await client.send("hi")).chunks, (await client.post(b'{"id": "chat-1"}')).error]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as browser:
            for path in ("", "/chat-1/messages", "/other/messages", "/chat-1/stream"):
                answer = await browser.get(f"/api/chat{path}")
                got.append((answer.status_code, answer.content))
        return got

    with Recording(file) as recording:
        bridge = bridge_with("Hello there.", user_id=identity)
        said = asyncio.run(everything(build_server(bridge, identity, loopback_only=True, recording=recording)))
    assert said[0]
    assert said[1]["code"] == "malformed"
    assert [status for status, _ in said[2:]] == [200, 200, 404, 204]
    assert asyncio.run(everything(app_of(file))) == said


def test_what_was_not_recorded_is_empty_or_not_found(tmp_path: Path) -> None:
    app = app_of(two_turns(tmp_path / "chat.jsonl"))

    async def answers(browser: httpx.AsyncClient) -> list[tuple[int, str]]:
        asked = [
            ("GET", "/api/chat"),
            ("GET", "/api/chat/a/messages"),
            ("GET", "/api/chat/a/stream"),
            ("GET", "/api/chat/a/files/x.png"),
            ("POST", "/api/chat/a/stop"),
            ("DELETE", "/api/chat/a"),
            ("GET", "/api/chatty"),
            ("GET", "/api/chat/approvals"),
        ]
        answers = [await browser.request(method, path) for method, path in asked]
        return [(answer.status_code, answer.text[:20]) for answer in answers]

    got = browse(app, answers)
    assert got[0] == (200, "[]")
    assert [status for status, _ in got[1:]] == [404, 204, 404, 204, 204, 404, 200]


def test_decisions_of_an_inbox_are_no_turns_and_nothing_waits_in_it_any_more(tmp_path: Path) -> None:
    body = {"approvals": [{"id": "adk-1"}], "cursor": None}
    inbox = [
        {"exchange": 8, "direction": "request", "method": "GET", "path": "/api/chat/approvals"},
        {"exchange": 8, "direction": "response", "status": 200, "body": body},
        {"exchange": 9, "direction": "request", "method": "POST", "path": "/api/chat/approvals/adk-1"},
        {"exchange": 9, "direction": "response", "status": 404, "body": {"error": {"code": "not-found"}}},
    ]
    turns = lines_of(two_turns(tmp_path / "turns.jsonl"))
    file = write(tmp_path / "chat.jsonl", *inbox, *turns)
    assert len(read_recording(file).turns) == 2
    answer = browse(app_of(file), lambda browser: browser.get("/api/chat/approvals"))
    assert answer.json() == {"approvals": [], "cursor": None}


@pytest.mark.parametrize("first", [{"direction": "open", "path": "/p/api/chat/live"}, None], ids=["socket", "request"])
def test_a_recording_made_below_a_path_is_served_where_the_chat_api_is(tmp_path: Path, first: Line | None) -> None:
    asked = {"exchange": 3, "direction": "request", "method": "GET", "path": "/p/api/chat/a/messages"}
    response = {"exchange": 3, "direction": "response", "status": 200, "body": [{"id": "m"}]}
    turns = lines_of(two_turns(tmp_path / "turns.jsonl"))
    opened = [] if first is None else [{"exchange": 4, **first}]
    app = app_of(write(tmp_path / "chat.jsonl", *opened, asked, response, *turns))
    answer = browse(app, lambda browser: browser.get("/api/chat/a/messages"))
    assert (answer.status_code, answer.json()) == (200, [{"id": "m"}])


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"id": 1}'])
def test_a_malformed_request_is_refused(tmp_path: Path, body: bytes) -> None:
    app = app_of(two_turns(tmp_path / "chat.jsonl"))
    answer = browse(app, lambda browser: browser.post("/api/chat", content=body))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed")


async def test_a_refusal_is_replayed_over_a_socket_too(tmp_path: Path) -> None:
    asked = {"direction": "request", "method": "POST", "path": "/api/chat"}
    response = {"direction": "response", "status": 409, "body": {"error": {"code": "run-active", "message": "Wait."}}}
    file = write(
        tmp_path / "chat.jsonl", asked, response, {**asked, "exchange": 2}, {**response, "exchange": 2, "body": [1]}
    )

    async with live_socket(app_of(file), headers={"host": "localhost"}) as client:
        errors = [(await client.say("x")).error for _ in range(3)]
        assert [error and (error["code"], error["errorText"]) for error in errors[:2]] == [
            ("run-active", "Wait."),
            ("internal", ""),
        ]
        assert errors[2] is not None
        assert errors[2]["errorText"].startswith("The recording ends here.")


# -- sockets ----------------------------------------------------------------------------------------------------------


async def test_a_socket_lives_and_can_be_attached_and_an_answer_aborted(tmp_path: Path) -> None:
    app = app_of(two_turns(tmp_path / "chat.jsonl"), speed=1e-9)

    async with live_socket(app, headers={"host": "localhost"}, subprotocols=(SUBPROTOCOL,)) as client:
        client.tell("ping")
        await client.own("pong")
        client.tell("attach", id="chat-1")
        assert (await client.own("attached"))["id"] == "chat-1"
        client.send_frame(b"\0\0")  # voice, to nobody
        client.send_frame("not a frame")
        assert (await client.own("error"))["code"] == "malformed"
        request = client.start_send({"id": "u", "role": "user", "parts": []})
        client.tell("ping")
        await client.own("pong", 2)
        (telling,) = [task for task in asyncio.all_tasks() if task.get_name() == f"adk-stream replay {request}"]
        client.send_frame({"type": "abort", "requestId": request})
        ended, _ = await asyncio.wait([telling], timeout=PATIENCE_S)
        assert ended
        assert request not in client.frames
    assert client.subprotocol == SUBPROTOCOL


async def test_a_page_of_another_site_gets_no_socket(tmp_path: Path) -> None:
    app = app_of(two_turns(tmp_path / "chat.jsonl"))

    headers = {"host": "localhost:8000", "origin": "https://attacker.example"}
    async with live_socket(app, headers=headers) as client:
        with pytest.raises(Closed) as refused:
            await client.own("pong")
        assert refused.value.code == 1008


def test_a_host_name_of_another_machine_is_refused(tmp_path: Path) -> None:
    app = app_of(two_turns(tmp_path / "chat.jsonl"))
    answer = browse(app, lambda browser: browser.get("/api/chat", headers={"host": "attacker.example"}))
    assert answer.status_code == 400


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "inf", "fast"])
def test_a_malformed_speed_is_refused(tmp_path: Path, speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["replay", str(two_turns(tmp_path / "chat.jsonl")), f"--speed={speed}"])
    assert "--speed" in capsys.readouterr().err


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_serves_a_recording_until_a_signal(tmp_path: Path) -> None:
    file = BASELINES / "get_weather-sse-baseline.jsonl"
    command = [COMMAND, "replay", str(file), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if "Uvicorn running on" in line)
        url = f"{said.partition('running on ')[2].split(' ')[0]}/api/chat"
        answer = httpx.post(url, json={"id": "a", "messages": []}, trust_env=False, timeout=60)
        process.terminate()
        _, rest = process.communicate(timeout=180)
    events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    assert [json.loads(event) for event in events] == recorded_turns(file)[0]
    assert "Traceback" not in rest
