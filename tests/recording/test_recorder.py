"""What a recording holds, what it leaves out, and that the chat does not notice."""

import asyncio
import json
import os
import re
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from adk_stream_protocol.demo.identity import LoopbackIdentity
from adk_stream_protocol.demo.server import PREFIX, build_server
from adk_stream_protocol.recording.recorder import Recorder, Recording
from adk_stream_protocol.testing import Answer, ChatClient, Reply, call
from support.apps import bridge_with
from support.asgi import exchange
from support.live_client import live_socket

DOCUMENTED = Path(__file__).parents[2] / "docs" / "reference" / "recording.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "chat.jsonl"


@pytest.fixture
def recording(file: Path) -> Generator[Recording]:
    with Recording(file) as recording:
        yield recording


def recorded_server(recording: Recording, *replies: Reply, tools: tuple[Any, ...] = ()) -> ASGIApp:
    identity = LoopbackIdentity()
    bridge = bridge_with(*replies, tools=tools, user_id=identity)
    return build_server(bridge, identity, loopback_only=True, recording=recording)


def lines_of(file: Path) -> list[dict[str, Any]]:
    *lines, rest = file.read_text().split("\n")
    assert rest == "", "half a line"
    return [json.loads(line) for line in lines]


def without_time(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "at"}


def turn(text: str = "Hello?", chat_id: str = "chat-1") -> dict[str, Any]:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": chat_id, "messages": [message]}


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


def test_a_turn_is_its_request_its_status_and_each_of_its_chunks(file: Path, recording: Recording) -> None:
    answer = asyncio.run(ChatClient(recorded_server(recording, "Hello there.")).post(turn()))
    assert answer.text == "Hello there."
    assert [without_time(line) for line in lines_of(file)] == [
        {"exchange": 1, "direction": "request", "method": "POST", "path": PREFIX, "body": turn()},
        {"exchange": 1, "direction": "response", "status": 200},
        *({"exchange": 1, "direction": "chunk", "chunk": chunk} for chunk in answer.chunks),
        {"exchange": 1, "direction": "chunk", "chunk": "[DONE]"},
    ]


def test_time_begins_with_the_recording_and_never_runs_backwards(file: Path, recording: Recording) -> None:
    asyncio.run(ChatClient(recorded_server(recording, "Hello there.")).post(turn()))
    times = [line["at"] for line in lines_of(file)]
    assert times[0] >= 0
    assert times == sorted(times)


def test_what_a_client_has_read_is_in_the_file_already(file: Path, recording: Recording) -> None:
    read: list[tuple[int, int]] = []

    def compare(piece: bytes) -> None:
        kinds = [line["direction"] for line in lines_of(file)]
        read.append((piece.count(b"data: "), kinds.count("chunk")))

    app = recorded_server(recording, "One word after the other.")
    asyncio.run(exchange(app, path=PREFIX, headers={"host": "localhost"}, body=encoded(turn()), on_send=compare))
    sent = 0
    for chunks, in_file in read:
        sent += chunks
        assert in_file == sent
    assert len(read) > 1


def test_exchanges_at_the_same_time_have_different_numbers(file: Path, recording: Recording) -> None:
    app = recorded_server(recording, "Hello there.", "Hello there.")

    async def both() -> list[Answer]:
        return await asyncio.gather(*(ChatClient(app).post(turn(chat_id=chat_id)) for chat_id in ("chat-1", "chat-2")))

    answers = asyncio.run(both())
    lines = lines_of(file)
    chats = {line["exchange"]: line["body"]["id"] for line in lines if line["direction"] == "request"}
    assert sorted(chats) == [1, 2]
    for number, chat_id in chats.items():
        chunks = [line["chunk"] for line in lines if line["exchange"] == number and line["direction"] == "chunk"]
        assert chunks == [*answers[("chat-1", "chat-2").index(chat_id)].chunks, "[DONE]"]
    numbers = [line["exchange"] for line in lines]
    assert numbers != sorted(numbers), "they did not run at the same time, so nothing was shown"


REFUSED = {
    "a chat that asks nothing": (encoded({"id": "chat-1", "messages": []}), {"body": {"id": "chat-1", "messages": []}}),
    "half of its JSON": (b'{"id": "chat', {"text": '{"id": "chat'}),
    "bytes that are no text": (b'{"id": "\xff"}', {"text": '{"id": "�"}'}),
    "a depth nobody can read": (b"[" * 5000 + b"]" * 5000, {"text": "[" * 5000 + "]" * 5000}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_is_recorded_with_its_body_and_with_what_was_refused(
    file: Path, recording: Recording, why: str
) -> None:
    body, recorded = REFUSED[why]
    refused = asyncio.run(ChatClient(recorded_server(recording)).post(body))
    assert refused.status == 400
    assert [without_time(line) for line in lines_of(file)] == [
        {"exchange": 1, "direction": "request", "method": "POST", "path": PREFIX, **recorded},
        {"exchange": 1, "direction": "response", "status": 400, "body": {"error": refused.error}},
    ]


def test_a_request_whose_body_nobody_reads_is_recorded_without_it(file: Path, recording: Recording) -> None:
    app = recorded_server(recording)
    headers = {"host": "localhost", "content-type": "text/plain"}
    answer = asyncio.run(exchange(app, path=PREFIX, headers=headers, body=b"Hello?"))
    assert answer.status == 415
    assert [without_time(line) for line in lines_of(file)] == [
        {"exchange": 1, "direction": "request", "method": "POST", "path": PREFIX},
        {"exchange": 1, "direction": "response", "status": 415, "body": json.loads(answer.body)},
    ]


def test_the_other_routes_are_recorded_and_the_page_and_preflights_are_not(file: Path, recording: Recording) -> None:
    app = recorded_server(recording, "Hello there.")

    async def browse() -> dict[str, Any]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as browser:
            await browser.get("/")
            await browser.options(PREFIX)
            await browser.get("/api/chatter")
            await browser.post(PREFIX, json=turn())
            asked = {
                "messages": await browser.get(f"{PREFIX}/chat-1/messages"),
                "chats": await browser.get(PREFIX),
                "stream": await browser.get(f"{PREFIX}/chat-1/stream"),
                "stop": await browser.post(f"{PREFIX}/chat-1/stop"),
                "delete": await browser.delete(f"{PREFIX}/chat-1"),
            }
            return {name: response.json() if response.content else None for name, response in asked.items()}

    answers = asyncio.run(browse())
    later = [without_time(line) for line in lines_of(file) if line["exchange"] > 1]
    assert later == [
        {"exchange": 2, "direction": "request", "method": "GET", "path": f"{PREFIX}/chat-1/messages"},
        {"exchange": 2, "direction": "response", "status": 200, "body": answers["messages"]},
        {"exchange": 3, "direction": "request", "method": "GET", "path": PREFIX},
        {"exchange": 3, "direction": "response", "status": 200, "body": answers["chats"]},
        {"exchange": 4, "direction": "request", "method": "GET", "path": f"{PREFIX}/chat-1/stream"},
        {"exchange": 4, "direction": "response", "status": 204},
        {"exchange": 5, "direction": "request", "method": "POST", "path": f"{PREFIX}/chat-1/stop"},
        {"exchange": 5, "direction": "response", "status": 204},
        {"exchange": 6, "direction": "request", "method": "DELETE", "path": f"{PREFIX}/chat-1"},
        {"exchange": 6, "direction": "response", "status": 204},
    ]
    assert [line["path"] for line in lines_of(file) if line["exchange"] == 1 and "path" in line] == [PREFIX]


def test_headers_cookies_and_queries_are_not_recorded(file: Path, recording: Recording) -> None:
    secret = "hunter2"
    app = recorded_server(recording, "Hello there.")
    headers = {"host": "localhost", "authorization": secret, "cookie": f"a={secret}", "x-demo-user": secret}
    answer = asyncio.run(exchange(app, path=PREFIX, query=f"token={secret}", headers=headers, body=encoded(turn())))
    assert answer.status == 200
    assert lines_of(file)[-1]["chunk"] == "[DONE]"
    assert secret not in file.read_text()


def test_numbers_keys_and_words_stay_as_they_came(file: Path, recording: Recording) -> None:
    odd = '{"zebra": 1.0, "apple": 12345678901234567890123, "tiny": 1e-400,\n "word": "gr\\u00fcn\\u2028und 🎵"}'
    body = odd.encode()[:-1] + b", " + encoded(turn())[1:]
    written = '{"zebra":1.0,"apple":12345678901234567890123,"tiny":1e-400,"word":"gr\\u00fcn\\u2028und 🎵",'
    asyncio.run(ChatClient(recorded_server(recording, "Grün\u2028und 🎵.")).post(body))
    lines = file.read_text().split("\n")
    assert f'"body":{written}' in lines[0]
    assert any("🎵" in line for line in lines[2:])


async def test_a_request_is_in_the_file_before_it_is_served(file: Path, recording: Recording) -> None:
    found: list[str] = []

    async def look(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            while (await receive())["more_body"]:
                assert len(lines_of(file)) == 1
        found.append(lines_of(file)[-1]["method"])

    await exchange(Recorder(look, recording, PREFIX), method="GET", path=PREFIX)
    await exchange(Recorder(look, recording, PREFIX), method="POST", path=PREFIX, body=[b"[1,", b"2]"])
    assert found == ["GET", "POST"]
    assert lines_of(file)[-1]["body"] == [1, 2]


def test_a_reader_who_leaves_ends_its_exchange_without_done(file: Path, recording: Recording) -> None:
    app = recorded_server(recording, "One word after the other.", "Another answer.")
    leave = {"headers": {"host": "localhost"}, "leave_after": lambda piece: b"text-delta" in piece}

    async def leave_and_come_back() -> Answer:
        await exchange(app, path=PREFIX, body=encoded(turn()), **leave)
        return await ChatClient(app).post(turn(chat_id="chat-2"))

    assert asyncio.run(leave_and_come_back()).text == "Another answer."
    ends = {line["exchange"]: line for line in lines_of(file)}
    assert ends[1]["chunk"] != "[DONE]"
    assert ends[2]["chunk"] == "[DONE]"


def test_events_in_pieces_and_comments_between_them_are_the_same_chunks(file: Path, recording: Recording) -> None:
    stream = b': ping\n\nid: s-0\ndata: {"type":"start"}\n\n: ping\n\ndata: {"type":"finish"}\n\ndata: [DONE]\n\n'

    async def drip(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for byte in stream:
            await send({"type": "http.response.body", "body": bytes([byte]), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    assert asyncio.run(exchange(Recorder(drip, recording, PREFIX), path=PREFIX)).body == stream
    chunks = [line["chunk"] for line in lines_of(file) if line["direction"] == "chunk"]
    assert chunks == [{"type": "start"}, {"type": "finish"}, "[DONE]"]


def test_a_file_of_the_chat_is_recorded_without_its_contents(file: Path, recording: Recording) -> None:
    async def save_note(tool_context: Any) -> str:
        from google.genai import types

        note = types.Part(inline_data=types.Blob(data=b"%PDF contents", mime_type="application/pdf"))
        await tool_context.save_artifact("note.pdf", note)
        return "saved"

    app = recorded_server(recording, [call("save_note")], "Done.", tools=(save_note,))

    async def download() -> httpx.Response:
        await ChatClient(app).post(turn())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as browser:
            return await browser.get(f"{PREFIX}/chat-1/files/note.pdf")

    assert asyncio.run(download()).content == b"%PDF contents"
    assert without_time(lines_of(file)[-1]) == {"exchange": 2, "direction": "response", "status": 200}


# -- the file ---------------------------------------------------------------------------------------------------------


def test_only_the_owner_may_read_the_file_whatever_the_umask(file: Path) -> None:
    before = os.umask(0)
    try:
        with Recording(file):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_file_that_exists_is_left_alone(file: Path) -> None:
    file.write_text("an older recording\n")
    with pytest.raises(FileExistsError):
        Recording(file)
    assert file.read_text() == "an older recording\n"


def test_a_link_to_elsewhere_is_not_followed(file: Path, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        Recording(file)
    assert not (tmp_path / "elsewhere").exists()


def test_a_recording_of_nothing_leaves_no_file(file: Path) -> None:
    with Recording(file):
        assert file.exists()
    assert not file.exists()


async def test_the_page_about_recordings_names_the_fields_that_are_written(file: Path, recording: Recording) -> None:
    app = recorded_server(recording, "Hello there.")

    await ChatClient(app).post(turn())
    await ChatClient(app).post(b"{")
    async with live_socket(app, headers={"host": "127.0.0.1"}) as client:
        client.tell("ping")
        client.send_frame("{")
        client.send_frame(b"12")
        await client.own("error", 2)
    written = {name for line in lines_of(file) for name in line}
    documented = re.findall(r"^\| `(\w+)` \|", DOCUMENTED.read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(written)
