"""The HTTP surface as tables: every answer in them was given by a real application.

`python tests/transports/http_table.py` writes them into docs/reference/http.md; the diff then shows what has changed.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from google.genai import types
from starlette.requests import HTTPConnection

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import ChatClient, call
from support.apps import app_of, bridge_with
from support.asgi import Exchange, exchange

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
BEGIN, END = "<!-- begin: tests/transports/http_table.py -->", "<!-- end -->"
PREFIX = "/api/chat"
HOME = {"host": "chat.example"}
JSON = {"content-type": "application/json"}
DECISION = b'{"approved": true, "digest": "x"}'

PATHS = [
    "",
    "/{id}",
    "/{id}/messages",
    "/{id}/stream",
    "/{id}/stop",
    "/{id}/audit",
    "/{id}/files/{name}",
    "/approvals",
    "/approvals/{id}",
    "/elsewhere/{id}",
]
METHODS = ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT"]
ROUTES = [
    ("POST", ""),
    ("GET", ""),
    ("GET", "/{id}/messages"),
    ("GET", "/{id}/stream"),
    ("POST", "/{id}/stop"),
    ("DELETE", "/{id}"),
    ("GET", "/{id}/files/{name}"),
    ("GET", "/{id}/audit"),
    ("GET", "/approvals"),
    ("POST", "/approvals/{id}"),
]
CONDITIONS: list[tuple[str, str, dict[str, str]]] = [
    ("the caller's chat", "c1", {}),
    ("another user's", "c1", {"x-user": "bob"}),
    ("none", "c9", {}),
    ("an impossible id", "user", {}),
    ("nobody signed in", "c1", {"x-user": ""}),
    ("unknown `Host`", "c1", {"host": "rebound.example"}),
    ("page of another site", "c1", {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}),
    ("allowed origin", "c1", {"origin": "https://app.example", "sec-fetch-site": "cross-site"}),
]
FILE_HEADERS: list[tuple[str, str, dict[str, str]]] = [
    ("nothing", "", {}),
    ("`?version=0`", "version=0", {}),
    ("`?version=7`", "version=7", {}),
    ("`?version=x`", "version=x", {}),
    ("`Range: bytes=0-1`", "", {"range": "bytes=0-1"}),
    ("`Range: bytes=-2`", "", {"range": "bytes=-2"}),
    ("`Range: bytes=99-`", "", {"range": "bytes=99-"}),
    ("`Range: bytes=0-1,3-4`", "", {"range": "bytes=0-1,3-4"}),
    ("`Range: lines=1`", "", {"range": "lines=1"}),
    ("`If-None-Match:` its `ETag`", "", {"if-none-match": "ETAG"}),
    ('`If-None-Match: "other"`', "", {"if-none-match": '"other"'}),
    ('`If-Range: "other"`, `Range: bytes=0-1`', "", {"if-range": '"other"', "range": "bytes=0-1"}),
]


def turn(*parts: Any, **fields: Any) -> bytes:
    """`fields` of the request; None leaves one out."""
    message = {"id": "new", "role": "user", "parts": parts or [{"type": "text", "text": "hi"}]}
    body = {"id": "c1", "messages": [message], **fields}
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def message(**fields: Any) -> bytes:
    said = {"id": "new", "role": "user", "parts": [{"type": "text", "text": "hi"}], **fields}
    return turn(messages=[{name: value for name, value in said.items() if value is not None}])


def answer(approval_id: str) -> bytes:
    part = {
        "type": "tool-pay",
        "toolCallId": "x",
        "state": "approval-responded",
        "approval": {"id": approval_id, "approved": True},
    }
    return message(role="assistant", parts=[part])


def file(**fields: Any) -> bytes:
    return turn({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", **fields})


BODIES: list[tuple[str, bytes, dict[str, str]]] = [
    ("a new message", turn(), {}),
    ("`content-type: application/json; charset=utf-8`", turn(), {"content-type": "application/json; charset=utf-8"}),
    ("`content-type: text/plain`", turn(), {"content-type": "text/plain"}),
    ("a form", b"a=b", {"content-type": "application/x-www-form-urlencoded"}),
    ("`content-encoding: gzip`", turn(), {"content-encoding": "gzip"}),
    ("nothing", b"", {}),
    ("half of it", turn()[:40], {}),
    ("bytes that are no UTF-8", b'{"id": "\xff"}', {}),
    ("an array", b"[]", {}),
    ("100,000 brackets", b'{"id": "c1", "messages": ' + b"[" * 100_000, {}),
    ("no `id`", turn(id=None), {}),
    ("`id: 7`", turn(id=7), {}),
    ('`id: "a/b"`', turn(id="a/b"), {}),
    ('`id: "user"`', turn(id="user"), {}),
    ('`id: "approvals"`', turn(id="approvals"), {}),
    ("neither `messages` nor `message`", turn(messages=None), {}),
    ("`messages: []`", turn(messages=[]), {}),
    ("`messages: {}`", turn(messages={}), {}),
    ("a message without `role`", message(role=None), {}),
    ("a message without `parts`", message(parts=None), {}),
    ("a message with its parts in `content`", message(parts=None, content=[{"type": "text", "text": "hi"}]), {}),
    ("a message with its text in `content`", message(parts=None, content="hi"), {}),
    ("a message whose `parts` are strings", message(parts=["hi"]), {}),
    ("a message of the role `system`", message(role="system"), {}),
    ("a message with `id: 7`", message(id=7), {}),
    ("a message without `id`", message(id=None), {}),
    ("an empty text", turn({"type": "text", "text": " "}), {}),
    ("a text with a NUL character", turn({"type": "text", "text": "a\0b"}), {}),
    ("a text of 5 MiB", turn({"type": "text", "text": "x" * 5 * 1024 * 1024}), {}),
    ("a part of an unknown type", turn({"type": "video"}), {}),
    ("a file", file(), {}),
    ("a file at `http:`", file(url="http://files.example/a.png"), {}),
    ("a file that is no base64", file(url="data:image/png;base64,*"), {}),
    ('a file of `mediaType: "png"`', file(mediaType="png"), {}),
    ('`trigger: "other"`', turn(trigger="other"), {}),
    ("`sdkVersion: 4`", turn(sdkVersion=4), {}),
    ("`x-ai-sdk-version: 4`", turn(), {"x-ai-sdk-version": "4"}),
    ('`approvalStyle: "other"`', turn(approvalStyle="other"), {}),
    ("the id of an earlier message, with other words", message(id="u1", parts=[{"type": "text", "text": "other"}]), {}),
    ("`regenerate-message` without `messageId`", turn(messages=None, trigger="regenerate-message"), {}),
    (
        "`regenerate-message` of an unknown message",
        turn(messages=None, trigger="regenerate-message", messageId="m9"),
        {},
    ),
    ("an answer to no open call", answer("a9"), {}),
]


def user_of(connection: HTTPConnection) -> str | None:
    return connection.headers.get("x-user", "ann") or None


async def new_app() -> FastAPI:
    """Ann has said something in the chat c1, and got the file a.png."""

    async def draw(tool_context: Any) -> dict[str, str]:
        """Draws."""
        await tool_context.save_artifact("a.png", types.Part.from_bytes(data=b"12345", mime_type="image/png"))
        return {}

    bridge = bridge_with(
        [call("draw")],
        *["Hello."] * 4,
        tools=(draw,),
        user_id=user_of,
        allowed_origins=["https://app.example"],
        allowed_hosts=["chat.example"],
        limits=Limits(),
    )
    app = app_of(bridge)
    said = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Draw."}]}
    await ChatClient(app, headers=HOME).post({"id": "c1", "messages": [said]})
    return app


async def ask(
    method: str, path: str, chat_id: str = "c1", query: str = "", body: bytes = b"", **given: str
) -> Exchange:
    app = await new_app()
    headers = {"content-type": "", **HOME, **given}
    if headers.get("if-none-match") == "ETAG":
        headers["if-none-match"] = (await ask("GET", path)).headers["etag"]
    address = PREFIX + path.replace("{id}", chat_id).replace("{name}", "a.png")
    got = await exchange(app, method=method, path=address, query=query, headers=headers, body=body)
    check(got)
    return got


def check(got: Exchange) -> None:
    """What holds for every answer of a route."""
    if got.status >= 400 and got.body and b'"detail"' not in got.body:  # the application's own 404 and 405
        error = json.loads(got.body)["error"]
        assert set(error) == {"code", "message"}
        assert got.headers["content-type"] == "application/json"
        assert got.headers["cache-control"] == "private, no-store"
    if got.headers.get("content-type") == "application/json" and got.status < 400:
        is_kept = "etag" in got.headers
        assert got.headers["cache-control"] == ("private, no-cache" if is_kept else "private, no-store")
    if got.headers.get("content-type") == "text/event-stream":
        assert got.headers["cache-control"] == "no-cache, no-transform"
    assert got.status < 500


def code_of(got: Exchange) -> str:
    if got.status < 400 or not got.body or b'"error"' not in got.body:
        return ""
    return f"`{json.loads(got.body)['error']['code']}`"


def cell(got: Exchange) -> str:
    """A cell: the status, and the code of a refusal."""
    return " ".join(part for part in (str(got.status), code_of(got)) if part)


async def tables() -> str:
    return "\n\n".join([await methods(), await conditions(), await bodies(), await files()])


async def methods() -> str:
    rows = []
    for path in PATHS:
        cells = [cell(await ask(method, path)) for method in METHODS]
        rows.append([f"`{{prefix}}{path}`", *cells])
    return table(["Route", *METHODS], rows)


async def conditions() -> str:
    rows = []
    for method, path in ROUTES:
        cells = []
        for _, chat_id, headers in CONDITIONS:
            said = {"": turn(id=chat_id), "/approvals/{id}": DECISION}.get(path, b"") if method == "POST" else b""
            body, kind = (said, JSON) if said else (b"", {})
            got = await ask(method, path, chat_id, body=body, **kind, **headers)
            is_readable = got.headers.get("access-control-allow-origin") == headers.get("origin")
            assert is_readable == (headers.get("origin") in (None, "https://app.example"))
            cells.append(cell(got))
        rows.append([f"`{method} {{prefix}}{path}`", *cells])
    return table(["Request", *(name for name, _, _ in CONDITIONS)], rows)


async def bodies() -> str:
    rows = []
    for name, body, headers in BODIES:
        got = await ask("POST", "", body=body, **{**JSON, **headers})
        message = json.loads(got.body)["error"]["message"] if code_of(got) else "a stream"
        rows.append([name, str(got.status), code_of(got), message])
    return table(["`POST {prefix}` with", "Status", "Code", "Message"], rows)


async def files() -> str:
    rows = []
    for name, query, headers in FILE_HEADERS:
        got = await ask("GET", "/{id}/files/{name}", query=query, **headers)
        notable = ("content-range", "cache-control")
        shown = ", ".join(f"`{header}: {got.headers[header]}`" for header in notable if header in got.headers)
        rows.append([name, cell(got), f"{0 if code_of(got) else len(got.body)} bytes", shown])
    return table(["A file of 5 bytes, asked for with", "Answer", "Body", "Headers"], rows)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def written() -> str:
    return DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0].strip()


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{asyncio.run(tables())}\n\n{END}{after}")
    sys.exit()
