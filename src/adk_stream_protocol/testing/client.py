"""A client in the same process as the application that it calls."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.types import ASGIApp


@dataclass(frozen=True)
class Answer:
    """The response of the bridge: the chunks of a stream, or a refusal."""

    status: int
    chunks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    error: Mapping[str, str] | None = None
    raw: str = ""

    @property
    def text(self) -> str:
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")

    @property
    def types(self) -> list[str]:
        """The types of the chunks, in order. Deltas that follow each other count as one."""
        folded: list[str] = []
        for chunk in self.chunks:
            if not (chunk["type"].endswith("-delta") and folded and folded[-1] == chunk["type"]):
                folded.append(chunk["type"])
        return folded

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [chunk for chunk in self.chunks if chunk["type"] == kind]

    @property
    def message_id(self) -> str | None:
        return next((chunk.get("messageId") for chunk in self.of_type("start")), None)

    @property
    def approvals(self) -> list[dict[str, Any]]:
        """The calls that a person is asked to approve, as the tool parts that the client has."""
        parts = self._tool_parts()
        return [
            {**parts[chunk["toolCallId"]], "state": "approval-requested", "approval": {"id": chunk["approvalId"]}}
            for chunk in self.of_type("tool-approval-request")
        ]

    @property
    def browser_calls(self) -> list[dict[str, Any]]:
        """The calls that the browser is to run: without a result, and without an approval to wait for."""
        ended = ("tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request")
        asked = {chunk["toolCallId"] for chunk in self.chunks if chunk["type"] in ended}
        given = [chunk["toolCallId"] for chunk in self.of_type("tool-input-available")]
        parts = self._tool_parts()
        return [{**parts[call_id], "state": "input-available"} for call_id in given if call_id not in asked]

    def _tool_parts(self) -> dict[str, dict[str, Any]]:
        parts: dict[str, dict[str, Any]] = {}
        texts: dict[str, str] = {}
        for chunk in self.chunks:
            if chunk["type"] in ("tool-input-start", "tool-input-available"):
                call_id = chunk["toolCallId"]
                parts[call_id] = {"type": f"tool-{chunk['toolName']}", "toolCallId": call_id}
                texts.setdefault(call_id, "")
            if chunk["type"] == "tool-input-delta":
                texts[chunk["toolCallId"]] += chunk["inputTextDelta"]
            if chunk["type"] == "tool-input-available":
                parts[chunk["toolCallId"]]["input"] = chunk["input"]
        for call_id, text in texts.items():
            if text and "input" not in parts[call_id]:
                parts[call_id]["input"] = json.loads(text)
        return parts


class ChatClient:
    """Posts turns as `useChat` does, to an application in the same process."""

    def __init__(
        self,
        app: ASGIApp,
        path: str = "/api/chat",
        *,
        chat_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.chat_id = chat_id or f"chat-{secrets.token_hex(8)}"
        self._path = path
        self._headers = dict(headers or {})
        self._transport = httpx.ASGITransport(app)

    async def send(self, message: str, *, files: Sequence[Mapping[str, str]] = (), **body: Any) -> Answer:
        """Send a user message. `files`: mappings with `url` (data:), `mediaType` and perhaps `filename`."""
        parts = [{"type": "file", **file} for file in files]
        parts += [{"type": "text", "text": message}] if message else []
        posted = {"id": f"msg-{secrets.token_hex(8)}", "role": "user", "parts": parts}
        return await self.post({"id": self.chat_id, "trigger": "submit-message", "messages": [posted], **body})

    async def approve(self, answer: Answer) -> Answer:
        """Approve every call that this answer asks about."""
        return await self.reply(answer, [_decided(part, approved=True) for part in answer.approvals])

    async def deny(self, answer: Answer, reason: str | None = None) -> Answer:
        return await self.reply(answer, [_decided(part, approved=False, reason=reason) for part in answer.approvals])

    async def output(self, answer: Answer, output: Any) -> Answer:
        """Send this output for every call that the answer leaves to the browser."""
        parts = [{**part, "state": "output-available", "output": output} for part in answer.browser_calls]
        return await self.reply(answer, parts)

    async def reply(self, answer: Answer, parts: Sequence[Mapping[str, Any]], **body: Any) -> Answer:
        """Continue the message of this answer: `parts` are its tool parts, as the client has completed them."""
        message = {"id": answer.message_id, "role": "assistant", "parts": list(parts)}
        posted = {"messages": [message], "messageId": answer.message_id, "trigger": "submit-message"}
        return await self.post({"id": self.chat_id, **posted, **body})

    async def post(self, body: Mapping[str, Any] | bytes) -> Answer:
        """Post any body, unchanged."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **self._headers}
        async with httpx.AsyncClient(transport=self._transport, base_url="http://localhost") as http:
            response = await http.post(self._path, content=content, headers=headers)
        if response.status_code != 200:
            return Answer(response.status_code, error=response.json()["error"], raw=response.text)
        lines = [line.removeprefix("data: ") for line in response.text.split("\n") if line.startswith("data: ")]
        return Answer(200, [json.loads(line) for line in lines if line != "[DONE]"], raw=response.text)


def _decided(part: Mapping[str, Any], *, approved: bool, reason: str | None = None) -> dict[str, Any]:
    said = {**part["approval"], "approved": approved, **({"reason": reason} if reason else {})}
    return {**part, "state": "approval-responded", "approval": said}
