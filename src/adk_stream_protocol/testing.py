"""For tests of agents behind a bridge: a model that follows a script, and a client in the same process.

model = ScriptedModel([[call("get_weather", location="Oslo")], "It is sunny."])
bridge = ChatBridge(LlmAgent(name="helper", model=model, tools=[get_weather]), user_id=lambda _: "ann")
app = FastAPI()
app.include_router(bridge.router("/api/chat"))
answer = await ChatClient(app).send("Weather in Oslo?")
assert answer.text == "It is sunny."
"""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr
from starlette.types import ASGIApp

__all__ = ["Answer", "ChatClient", "ScriptedModel", "call", "text", "thought"]

Said = str | Sequence[types.Part] | Sequence[LlmResponse] | Exception
Reply = Said | Callable[[LlmRequest], Said]


def text(said: str) -> types.Part:
    return types.Part(text=said)


def thought(said: str) -> types.Part:
    return types.Part(text=said, thought=True)


def call(name: str, /, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=f"call-{secrets.token_hex(8)}", name=name, args=arguments))


class ScriptedModel(BaseLlm):
    """One reply of the script for each model call, streamed word by word the way Gemini does.

    A reply is a text, or parts; or `LlmResponse`s, which are given as they are; or an exception, which is raised; or a
    function of the request that returns one of these. A call beyond the script is a failure of the test.
    """

    model: str = "scripted"
    _script: list[Reply] = PrivateAttr(default_factory=list[Reply])
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list[LlmRequest])

    def __init__(self, script: Iterable[Reply] = (), **fields: Any) -> None:
        super().__init__(**fields)
        self._script = list(script)

    @property
    def requests(self) -> list[LlmRequest]:
        """What ADK has asked so far."""
        return self._requests

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(llm_request)
        if len(self.requests) > len(self._script):
            raise AssertionError(f"The script has {len(self._script)} replies; this is call {len(self.requests)}.")
        reply = self._script[len(self.requests) - 1]
        if callable(reply):
            reply = reply(llm_request)
        if isinstance(reply, Exception):
            raise reply
        if not isinstance(reply, str) and reply and isinstance(reply[0], LlmResponse):
            for response in cast(Sequence[LlmResponse], reply):
                await asyncio.sleep(0)  # a model that never waits starves everybody else
                yield response
            return
        parts = [text(reply)] if isinstance(reply, str) else list(cast(Sequence[types.Part], reply))
        for part in parts if stream else ():
            for word in _words(part):
                await asyncio.sleep(0)
                yield LlmResponse(content=types.Content(role="model", parts=[word]), partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            finish_reason=types.FinishReason.STOP,
            partial=False if stream else None,
        )


def _words(part: types.Part) -> Iterable[types.Part]:
    if not part.text:
        return [part]
    pieces = part.text.split(" ")
    spaced = [f"{piece} " for piece in pieces[:-1]] + [pieces[-1]]
    return [types.Part(text=piece, thought=part.thought) for piece in spaced if piece]


@dataclass(frozen=True)
class Answer:
    """What came back: the chunks of a stream, or a refusal."""

    status: int
    chunks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    error: Mapping[str, str] | None = None
    raw: str = ""

    @property
    def text(self) -> str:
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")

    @property
    def types(self) -> list[str]:
        """The chunks' types, in order, with deltas of one part folded into one."""
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
        """What a person is asked: parts of a message, as the client has them."""
        parts = self._tool_parts()
        return [
            {**parts[chunk["toolCallId"]], "state": "approval-requested", "approval": {"id": chunk["approvalId"]}}
            for chunk in self.of_type("tool-approval-request")
        ]

    @property
    def browser_calls(self) -> list[dict[str, Any]]:
        """What the browser is to run: calls without a result that nobody has to approve."""
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
        """One user message. `files`: mappings with `url` (data:), `mediaType` and perhaps `filename`."""
        parts = [{"type": "file", **file} for file in files]
        parts += [{"type": "text", "text": message}] if message else []
        posted = {"id": f"msg-{secrets.token_hex(8)}", "role": "user", "parts": parts}
        return await self.post({"id": self.chat_id, "trigger": "submit-message", "messages": [posted], **body})

    async def approve(self, answer: Answer) -> Answer:
        """Agree to everything that this answer asks for."""
        return await self.reply(answer, [_decided(part, approved=True) for part in answer.approvals])

    async def deny(self, answer: Answer, reason: str | None = None) -> Answer:
        return await self.reply(answer, [_decided(part, approved=False, reason=reason) for part in answer.approvals])

    async def output(self, answer: Answer, output: Any) -> Answer:
        """The browser's output, for every call that this answer leaves to it."""
        parts = [{**part, "state": "output-available", "output": output} for part in answer.browser_calls]
        return await self.reply(answer, parts)

    async def reply(self, answer: Answer, parts: Sequence[Mapping[str, Any]], **body: Any) -> Answer:
        """Go on with the message of this answer: `parts` are its tool parts, as the client has filled them in."""
        message = {"id": answer.message_id, "role": "assistant", "parts": list(parts)}
        posted = {"messages": [message], "messageId": answer.message_id, "trigger": "submit-message"}
        return await self.post({"id": self.chat_id, **posted, **body})

    async def post(self, body: Mapping[str, Any] | bytes) -> Answer:
        """Any body, as it is."""
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
