"""Any HTTP request gets its answer or one typed refusal, and the chats are as good as before."""

import asyncio
import itertools
import json
import logging
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.artifacts import FileArtifactService, InMemoryArtifactService
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ChatBridge, client_tool
from adk_stream_protocol.testing import ChatClient, Reply, ScriptedModel, call
from faults.fuzzing import ODD_VALUES, RAW_VALUES, garble, mutate, random_json
from support.apps import app_of, figure, user_of
from support.asgi import Exchange, exchange

REQUESTS = 10_000
IN_ONE_APPLICATION = 250
AT_ONCE = 4  # so that they also meet

CODES = {
    *("malformed", "no-user", "cross-site", "not-found", "run-active", "too-large", "wrong-media-type"),
    *("range-not-satisfiable", "output-does-not-fit", "refused"),
}
METHODS = [*["POST"] * 20, *["GET"] * 8, *["DELETE"] * 2, "HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "get", "X"]
CHATS = [*["c1"] * 8, *["c2"] * 4, "c3", "Grüße", "user", "..", ".", "c:", "a b", "x" * 129, "\0", "%00", "🎈", "{id}"]
TAILS = [
    *("", "/messages", "/stream", "/stop", "/files/a.png", "/files/note.txt", "/files/", "/files/../../etc/passwd"),
    *(
        "/files/user:a.png",
        "/files/a/b/c",
        "/files/\0",
        "/files/🎈",
        "/files/" + "x" * 500,
        "/live",
        "/nothing",
        "/",
        "//",
    ),
]
NAMES = ["id", "messages", "message", "role", "parts", "type", "text", "trigger", "messageId", "sdkVersion", "output"]
HEADERS: dict[str, list[str]] = {
    "content-type": [*["application/json"] * 12, "application/json; charset=utf-8", "text/plain", "", "a/b;c", "🎈"],
    "content-encoding": ["identity", "gzip", ""],
    "content-length": ["0", "-1", "99999999999999999999", "x"],
    "x-ai-sdk-version": ["5", "6.0.1", "7", "8", "", "five", "9" * 5_000],
    "x-user": [*["ann"] * 5, "bob", "", "🎈"],
    "origin": ["https://app.example", "https://evil.example", "null", "", "http://[", "http://localhost:99999"],
    "sec-fetch-site": ["same-origin", "cross-site", "none", "", "x, y"],
    "host": ["localhost", "", "[::1", "a:b:c", "x" * 3_000],
    "range": ["bytes=0-1", "bytes=9-", "bytes=-", "bytes=-5", "bytes=5-1", "x", f"bytes={'9' * 5_000}-"],
    "if-none-match": ["*", '"x"', "W/", ""],
    "if-range": ['"x"', ""],
    "last-event-id": ["", "-", "x-1", "a-99999999999999999999", "🎈-1", "\x01"],
    "accept": ["text/event-stream", "*/*", ""],
    "transfer-encoding": ["chunked", "x"],
}
numbers = itertools.count()


def locate() -> None:
    """Where the user is."""


async def pay(amount: int) -> dict[str, Any]:
    """Pays."""
    return {"paid": amount}


async def draw(tool_context: ToolContext) -> dict[str, Any]:
    """Draws."""
    await tool_context.save_artifact("a.png", types.Part.from_bytes(data=b"12345", mime_type="image/png"))
    return {}


class Talkative(ScriptedModel):
    """Answers, or calls one of its tools, in turns."""

    def next_reply(self, request: LlmRequest) -> Reply:
        parts = request.contents[-1].parts or []
        if any(part.function_response for part in parts) or any(part.text == "Are you there?" for part in parts):
            return "Yes."
        return ["Yes.", "Yes.", [call("draw")], [call("pay", amount=5)], [call("locate")]][next(numbers) % 5]


# -- requests ---------------------------------------------------------------------------------------------------------


def answer_part(random: Random, seen: list[dict[str, Any]]) -> dict[str, Any]:
    """About a call that was asked, or one that was not."""
    asked = [chunk for chunk in seen if "toolCallId" in chunk]
    about = random.choice(asked) if asked and random.random() < 0.8 else {"toolCallId": "call-1", "approvalId": "adk-1"}
    return {
        "type": random.choice(
            ["tool-pay", "tool-locate", "dynamic-tool", "tool-adk_request_confirmation", "tool-result"]
        ),
        "toolName": random.choice(["pay", "locate"]),
        "toolCallId": about["toolCallId"],
        "state": random.choice(["approval-responded", "approval-responded", "output-available", "output-error"]),
        "approval": {"id": about.get("approvalId", "adk-1"), "approved": random.choice([True, False, "yes"])},
        "output": random.choice(ODD_VALUES),
        "errorText": random.choice(["No.", "\0"]),
    }


def valid_turn(random: Random, seen: list[dict[str, Any]]) -> dict[str, Any]:
    starts = [chunk["messageId"] for chunk in seen if chunk.get("messageId")] or ["m1"]
    said: dict[str, Any] = {"id": f"u{random.randrange(30)}", "role": "user"}
    said["parts"] = [{"type": "text", "text": random.choice(["Hello", " ", "x" * 3_000, "🎈", "a\0b"])}]
    if random.random() < 0.15:
        url = random.choice(
            ["data:text/plain;base64,AAAA", "data:,hi", "data:x", "http://x/", "data:text/plain;base64,*"]
        )
        said["parts"].append({"type": "file", "mediaType": random.choice(["text/plain", "x"]), "url": url})
    if random.random() < 0.35:
        said = {"id": random.choice(starts), "role": "assistant", "parts": [answer_part(random, seen)]}
    turn = {"id": random.choice(CHATS), "messages": [said]}
    if random.random() < 0.2:
        turn["trigger"] = random.choice(["regenerate-message", "submit-message"])
        turn["messageId"] = random.choice([*starts, "u1", "u2"])
    if random.random() < 0.1:
        turn["approvalStyle"] = random.choice(["confirmation-tool", "approval-request"])
    return turn


def body(random: Random, seen: list[dict[str, Any]]) -> bytes:
    turn = valid_turn(random, seen)
    match random.randrange(10):
        case 0 | 1 | 2 | 3:
            text = json.dumps(turn)
        case 4 | 5:
            text = json.dumps(mutate(turn, random))
        case 6:
            text = garble(json.dumps(turn), random)
        case 7:
            text = json.dumps({**turn, random.choice(list(turn)): "HERE"}).replace('"HERE"', random.choice(RAW_VALUES))
        case 8:
            text = json.dumps(random_json(random, NAMES))
        case _:
            return random.randbytes(random.randrange(300))
    return text.encode("utf-8", "surrogatepass")


def headers(random: Random) -> dict[str, str]:
    given = {"content-type": random.choice(HEADERS["content-type"])}
    for name in random.sample(list(HEADERS), random.choice([0, 0, 1, 1, 2, 3])):
        given[name] = random.choice(HEADERS[name])
    return given


def request(random: Random, seen: list[dict[str, Any]]) -> dict[str, Any]:
    method = random.choice(METHODS)
    is_turn = method == "POST" and random.random() < 0.9
    path = (
        "/api/chat" if is_turn or random.random() < 0.2 else f"/api/chat/{random.choice(CHATS)}{random.choice(TAILS)}"
    )
    query = random.choice(
        [*[""] * 5, "version=0", "version=99", "version=²", "message=m1", "message=%00", "%", "a=b&a=c"]
    )
    return {"method": method, "path": path, "query": query, "headers": headers(random), "body": body(random, seen)}


# -- answers ----------------------------------------------------------------------------------------------------------


def outcome(method: str, answer: Exchange) -> str:
    """What it was, after it was checked."""
    assert 200 <= answer.status < 500, answer.body[:300]
    if answer.status < 400:
        return str(answer.status)
    if method == "HEAD" and answer.body == b"":
        return str(answer.status)
    told = json.loads(answer.body)
    if set(told) == {"detail"}:  # the application's own: there is no such route
        assert answer.status in (404, 405)
        return str(answer.status)
    assert set(told) == {"error"}
    assert set(told["error"]) == {"code", "message"}
    assert told["error"]["code"] in CODES, told
    assert "Traceback" not in told["error"]["message"]
    assert answer.headers["cache-control"] == "private, no-store"
    return told["error"]["code"]


def chunks_of(answer: Exchange) -> list[dict[str, Any]]:
    if answer.headers.get("content-type") != "text/event-stream":
        return []
    lines = [line.removeprefix(b"data: ") for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


@asynccontextmanager
async def application(folder: Path | None) -> AsyncGenerator[FastAPI]:
    """With a database and files if there is a folder for them, else in memory."""
    sessions, artifacts, store = InMemorySessionService(), InMemoryArtifactService(), "memory"
    if folder is not None:
        store = f"sqlite+aiosqlite:///{folder}/chats.db"
        sessions, artifacts = DatabaseSessionService(store), FileArtifactService(str(folder / "files"))
    tools = [client_tool(locate), FunctionTool(pay, require_confirmation=True), draw]
    bridge = ChatBridge(
        LlmAgent(name="helper", model=Talkative([]), tools=tools),
        user_id=user_of,
        session_service=sessions,
        artifact_service=artifacts,
        store=store,
        allowed_origins=["https://app.example"],
    )
    yield app_of(bridge)
    await bridge.aclose()
    if isinstance(sessions, DatabaseSessionService):
        await sessions.close()


async def talks_as_ever(app: FastAPI) -> None:
    """In the chats that were fuzzed, and in one that was not."""
    for chat_id in ("c1", "c2", "calm"):
        client, patience = ChatClient(app, chat_id=chat_id), 20
        while (answer := await client.send("Are you there?")).status == 409 and patience:
            patience -= 1
            await asyncio.sleep(1)  # as its Retry-After says: lost work of the chat is being taken up
        assert (answer.status, answer.text) == (200, "Yes."), (chat_id, answer)
        history = await exchange(app, method="GET", path=f"/api/chat/{chat_id}/messages")
        assert history.status == 200


@pytest.mark.figures
def test_ten_thousand_requests_are_answered_or_refused_properly(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outcomes: Counter[str] = Counter()

    async def scenario(seed: int) -> None:
        random, seen = Random(seed), list[dict[str, Any]]()
        folder = tmp_path / str(seed) if seed % 4 == 0 else None
        if folder is not None:
            folder.mkdir()

        async def ask(app: FastAPI, number: int) -> None:
            asked = request(random, seen)
            try:
                answer = await asyncio.wait_for(exchange(app, **asked), 60)
                outcomes[outcome(asked["method"], answer)] += 1
                seen.extend(chunks_of(answer))
                del seen[:-200]
            except BaseException as error:
                error.add_note(f"seed {seed}, request {number}: {str(asked)[:600]}")
                raise

        async with application(folder) as app:
            for number in range(0, IN_ONE_APPLICATION, AT_ONCE):
                await asyncio.gather(*(ask(app, number + place) for place in range(AT_ONCE)))
            await talks_as_ever(app)

    for seed in range(figure(REQUESTS) // IN_ONE_APPLICATION):
        asyncio.run(scenario(seed))
    assert min(outcomes["malformed"], outcomes["200"]) > figure(REQUESTS) // 20
    ours = [record for record in caplog.records if record.name.startswith("adk_stream_protocol")]
    assert [record.getMessage() for record in ours if record.levelno >= logging.ERROR] == []
    with capsys.disabled():
        print(f"\n{outcomes.total()} requests: {dict(outcomes)}", end=" ")
