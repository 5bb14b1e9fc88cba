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
