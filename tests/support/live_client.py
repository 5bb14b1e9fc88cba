"""A client of live mode in the same process: one ASGI WebSocket, frames in and out."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

from adk_stream_protocol.testing import Answer

PATIENCE_S = 20
_NUMBERS = itertools.count()  # of requests and messages, in all clients


class Closed(Exception):
    """The server has closed the socket, or never opened it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"closed with {code}")
        self.code = code


@dataclass(eq=False)
class LiveClient:
    """What is sent and received on one socket. Frames are kept by their request ids, ours under "-"."""

    chat_id: str = "chat-1"
    frames: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    binary: list[bytes] = field(default_factory=list[bytes])
    everything: list[Any] = field(default_factory=list[Any])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    subprotocol: str | None = None
    close_code: int | None = None
    _to_server: "asyncio.Queue[Message]" = field(default_factory=lambda: asyncio.Queue[Message]())
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    # -- plain frames -------------------------------------------------------------------------------------------------

    def send_frame(self, frame: dict[str, Any] | str | bytes) -> None:
        if isinstance(frame, bytes):
            self._to_server.put_nowait({"type": "websocket.receive", "bytes": frame})
        else:
            text = frame if isinstance(frame, str) else json.dumps(frame)
            self._to_server.put_nowait({"type": "websocket.receive", "text": text})

    def tell(self, kind: str, **fields: Any) -> None:
        self.send_frame({"type": kind, "requestId": "-", **fields})

    async def until(self, found: Any) -> Any:
        """Wait for what `found` returns to be true, and give it."""
        async with asyncio.timeout(PATIENCE_S):
            while not (result := found()):
                if self.close_code is not None:
                    raise Closed(self.close_code)
                self._changed.clear()
                await self._changed.wait()
            return result

    async def own(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The frame of ours of this kind, or the `count`th of them."""

        def found() -> dict[str, Any] | None:
            told = [frame for frame in self.frames.get("-", []) if frame["type"] == kind]
            return told[count - 1] if len(told) >= count else None

        return await self.until(found)

    def disconnect(self) -> None:
        self._to_server.put_nowait({"type": "websocket.disconnect", "code": 1006})

    # -- requests -----------------------------------------------------------------------------------------------------

    def new_request(self) -> str:
        return f"r{next(_NUMBERS)}"

    def start_send(self, message: dict[str, Any], **fields: Any) -> str:
        request_id = fields.pop("request_id", None) or self.new_request()
        self.messages = [known for known in self.messages if known["id"] != message["id"]] + [message]
        frame = {"type": "send", "requestId": request_id, "id": self.chat_id, "trigger": "submit-message"}
        self.send_frame({**frame, "messages": self.messages, "headers": {}, "body": {}, **fields})
        return request_id

    async def answer(self, request_id: str) -> Answer:
        """The whole stream of a request, or its refusal."""

        def ended() -> bool:
            told = self.frames.get(request_id, [])
            return bool(told) and told[-1]["type"] in ("end", "error", "no-active")

        await self.until(ended)
        told = self.frames[request_id]
        chunks = [frame for frame in told if frame["type"] == "chunk"]
        numbers = [frame["sequence"] for frame in chunks]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
        if told[-1]["type"] == "error":
            return Answer(400, [frame["chunk"] for frame in chunks], told[-1])
        return Answer(204 if told[-1]["type"] == "no-active" else 200, [frame["chunk"] for frame in chunks])

    async def say(self, text: str, **fields: Any) -> Answer:
        number = next(_NUMBERS)
        message = {"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": text}]}
        return await self.answer(self.start_send(message, **fields))

    async def reply(self, message_id: str, *parts: dict[str, Any]) -> Answer:
        """Answers to calls of a message."""
        return await self.answer(self.start_reply(message_id, *parts))

    def start_reply(self, message_id: str, *parts: dict[str, Any]) -> str:
        message = {"id": message_id, "role": "assistant", "parts": list(parts)}
        return self.start_send(message, messageId=message_id)

    async def decide(self, asked: Answer, *, approved: bool, reason: str | None = None) -> Answer:
        """Answer everything that a person was asked in this answer."""
        parts = decisions(asked, approved=approved, reason=reason)
        return await self.reply(asked.chunks[0]["messageId"], *parts)

    async def output(self, asked: Answer, output: Any) -> Answer:
        """Answer the calls of the browser in this answer."""
        return await self.reply(asked.chunks[0]["messageId"], *outputs(asked, output))

    async def resume(self, **fields: Any) -> Answer:
        request_id = fields.pop("requestId", None) or self.new_request()
        self.send_frame(
            {"type": "resume", "requestId": request_id, "id": self.chat_id, "headers": {}, "body": {}, **fields}
        )
        return await self.answer(request_id)

    # -- ASGI ---------------------------------------------------------------------------------------------------------

    async def receive(self) -> Message:
        return await self._to_server.get()

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self.subprotocol = message.get("subprotocol")
        elif message["type"] == "websocket.close":
            self.close_code = message.get("code", 1000)
        elif message.get("bytes") is not None:
            self.binary.append(message["bytes"])
            self.everything.append(message["bytes"])
        else:
            frame = json.loads(message["text"])
            self.frames.setdefault(frame["requestId"], []).append(frame)
            self.everything.append(frame)
        self._changed.set()


def tool_parts(asked: Answer) -> dict[str, dict[str, Any]]:
    """What a client knows of the calls of an answer, by their ids."""
    known: dict[str, dict[str, Any]] = {}
    for chunk in asked.chunks:
        call_id = chunk.get("toolCallId", "")
        if chunk["type"] == "tool-input-start":
            known[call_id] = {"type": f"tool-{chunk['toolName']}", "toolCallId": call_id, "state": "input-streaming"}
        elif chunk["type"] == "tool-input-available":
            known.setdefault(call_id, {"type": f"tool-{chunk['toolName']}", "toolCallId": call_id})
            known[call_id].update(state="input-available", input=chunk["input"])
        elif chunk["type"] == "tool-approval-request":
            known[call_id].update(state="approval-requested", approval={"id": chunk["approvalId"]})
        elif chunk["type"] == "tool-output-available":
            known.setdefault(call_id, {"toolCallId": call_id}).update(state="output-available", output=chunk["output"])
    return known


def decisions(asked: Answer, *, approved: bool, reason: str | None = None) -> list[dict[str, Any]]:
    said = {"approved": approved} | ({"reason": reason} if reason else {})
    return [
        {**part, "state": "approval-responded", "approval": {**part["approval"], **said}}
        for part in tool_parts(asked).values()
        if part["state"] == "approval-requested"
    ]


def outputs(asked: Answer, output: Any) -> list[dict[str, Any]]:
    return [
        {**part, "state": "output-available", "output": output}
        for part in tool_parts(asked).values()
        if part["state"] == "input-available"
    ]


@asynccontextmanager
async def live_socket(
    app: ASGIApp,
    user: str = "ann",
    *,
    chat_id: str = "chat-1",
    headers: dict[str, str] | None = None,
    subprotocols: tuple[str, ...] = (),
    client: LiveClient | None = None,
    query: str = "",
) -> AsyncGenerator[LiveClient]:
    """A socket to `/api/chat/live`. Leaving the block is losing it."""
    client = client or LiveClient(chat_id)
    given = {"host": "testserver", "x-user": user, **(headers or {})}
    scope: dict[str, Any] = {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": "/api/chat/live",
        "raw_path": b"/api/chat/live",
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "subprotocols": list(subprotocols),
        "client": ("127.0.0.1", 1),
        "server": ("testserver", 80),
    }
    client._to_server.put_nowait({"type": "websocket.connect"})  # pyright: ignore[reportPrivateUsage]
    serving = asyncio.create_task(app(scope, client.receive, client.send))
    try:
        yield client
    finally:
        client.disconnect()
        await asyncio.wait_for(serving, PATIENCE_S)
