"""Conversations with a bridge in the same process: a browser's side of one chat, and the stores behind it."""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService, Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.workflow import BaseNode
from google.genai import types
from pydantic import PrivateAttr

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import Answer, ChatClient, Reply, ScriptedModel, text
from protocol.segment_checker import check_segment
from support.apps import app_of, runner_of, user_of
from support.virtual_time import LEASES

PATIENCE_S = 30

# -- stores -----------------------------------------------------------------------------------------------------------

Store = Callable[[], AbstractAsyncContextManager[BaseSessionService]]


@asynccontextmanager
async def in_memory() -> AsyncGenerator[BaseSessionService]:
    yield InMemorySessionService()


@asynccontextmanager
async def sqlite_file(path: Path | None = None) -> AsyncGenerator[BaseSessionService]:
    with tempfile.TemporaryDirectory() as folder:
        yield SqliteSessionService(str(path or Path(folder, "chats.db")))


@asynccontextmanager
async def database(path: Path | None = None) -> AsyncGenerator[BaseSessionService]:
    with tempfile.TemporaryDirectory() as folder:
        async with DatabaseSessionService(f"sqlite+aiosqlite:///{path or Path(folder, 'chats.db')}") as service:
            yield service


every_store = pytest.mark.parametrize("store", [in_memory, sqlite_file, database])


# -- one chat ---------------------------------------------------------------------------------------------------------


class Conversation:
    """What one user's browser does in one chat. Its messages are called u1, u2 and so on."""

    def __init__(self, app: FastAPI, bridge: ChatBridge, *, chat_id: str = "c1", user: str = "ann") -> None:
        self.app = app
        self.bridge = bridge
        self.chat_id = chat_id
        self.headers = {"x-user": user}
        self.prefix = "/api/chat"
        self._said = 0

    def of(self, *, chat_id: str | None = None, user: str | None = None) -> "Conversation":
        """Another chat or another user of the same application."""
        return Conversation(self.app, self.bridge, chat_id=chat_id or self.chat_id, user=user or self.headers["x-user"])

    async def say(self, words: str, *, files: tuple[Mapping[str, str], ...] = (), **body: Any) -> Answer:
        self._said += 1
        parts = [*({"type": "file", **file} for file in files), {"type": "text", "text": words}]
        message = {"id": f"u{self._said}", "role": "user", "parts": parts}
        return await self.post({"id": self.chat_id, "trigger": "submit-message", "messages": [message], **body})

    async def regenerate(self, last_user_message: str, message_id: str | None = None) -> Answer:
        """As `regenerate()` does: what is answered anew is gone from the messages, up to the user's last one."""
        message = {"id": last_user_message, "role": "user", "parts": [{"type": "text", "text": "not looked at"}]}
        named = {"messageId": message_id} if message_id else {}
        return await self.post({"id": self.chat_id, "trigger": "regenerate-message", "messages": [message], **named})

    async def edit(self, message_id: str, words: str) -> Answer:
        """As `sendMessage({text, messageId})` does."""
        message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": words}]}
        body = {"id": self.chat_id, "trigger": "submit-message", "messageId": message_id, "messages": [message]}
        return await self.post(body)

    async def post(self, body: Mapping[str, Any]) -> Answer:
        return await ChatClient(self.app, self.prefix, headers=self.headers).post(body)

    async def request(self, method: str, path: str = "", **options: Any) -> httpx.Response:
        """`path` below this chat's address."""
        return await self.request_root(method, f"/{quote(self.chat_id, safe='')}{path}", **options)

    async def request_root(self, method: str, path: str = "", **options: Any) -> httpx.Response:
        """`path` below the bridge's address."""
        return await self.fetch(method, f"{self.prefix}{path}", **options)

    async def fetch(self, method: str, url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.request(method, url, headers={**self.headers, **(headers or {})})

    async def messages(self, **headers: str) -> list[dict[str, Any]]:
        response = await self.request("GET", "/messages", headers={k.replace("_", "-"): v for k, v in headers.items()})
        assert response.status_code == 200, response.text
        return response.json()

    async def chats(self) -> list[dict[str, Any]]:
        return (await self.request_root("GET")).json()

    async def stop(self) -> int:
        return (await self.request("POST", "/stop")).status_code

    @property
    def runner(self) -> Runner:
        return runner_of(self.bridge)

    @property
    def model(self) -> ScriptedModel:
        return self.runner.agent.model  # pyright: ignore

    @property
    def is_running(self) -> bool:
        return self.bridge._service.running(self.headers["x-user"], self.chat_id) is not None

    async def session(self) -> Session | None:
        return await self.runner.session_service.get_session(
            app_name=self.runner.app_name, user_id=self.headers["x-user"], session_id=self.chat_id
        )

    async def append(self, *events: Event) -> None:
        """What another client of the same session, or ADK itself, has stored."""
        session = await self.session()
        if session is None:
            session = await self.runner.session_service.create_session(
                app_name=self.runner.app_name, user_id=self.headers["x-user"], session_id=self.chat_id
            )
        for event in events:
            await self.runner.session_service.append_event(session, event)


@asynccontextmanager
async def conversation(
    *replies: Reply,
    store: Store = in_memory,
    record: Any = "memory",
    agent: BaseNode | App | Runner | None = None,
    tools: tuple[Any, ...] = (),
    chat_id: str = "c1",
    **options: Any,
) -> AsyncGenerator[Conversation]:
    """With a helper that follows a script, or with an agent of the test's own. `store`: of the sessions; `record`: of
    the calls that wait."""
    async with store() as service:
        spoken_to = agent or LlmAgent(name="helper", model=ScriptedModel(replies), tools=list(tools))
        services = {} if isinstance(spoken_to, Runner) else {"session_service": service}
        bridge = ChatBridge(spoken_to, **{"user_id": user_of, "store": record, **services, **options})
        yield Conversation(app_of(bridge), bridge, chat_id=chat_id)
        end_soon(bridge)
        await bridge.aclose()


class HangingModel(ScriptedModel):
    """Says its first words, then hangs until it is told to go on. After that it follows its script."""

    _words: tuple[str, ...] = PrivateAttr(default=())
    _hangs: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _go_on: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _is_closed: bool = PrivateAttr(default=False)

    def __init__(self, *words: str, script: tuple[Reply, ...] = ()) -> None:
        super().__init__(["", *script])
        self._words = words

    @property
    def hangs(self) -> asyncio.Event:
        return self._hangs

    @property
    def go_on(self) -> asyncio.Event:
        return self._go_on

    @property
    def is_closed(self) -> bool:
        """Whether its first generator has come to an end, of whatever kind."""
        return self._is_closed

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if self.requests:
            async for response in super().generate_content_async(llm_request, stream):
                yield response
            return
        self.requests.append(llm_request)
        try:
            for word in self._words:
                yield LlmResponse(content=types.Content(role="model", parts=[text(word)]), partial=True)
            for _ in range(5):  # ADK hands them on through a queue
                await asyncio.sleep(0)
            self._hangs.set()
            await self._go_on.wait()
            yield LlmResponse(content=types.Content(role="model", parts=[text("".join(self._words))]), partial=False)
        finally:
            self._is_closed = True


def hanging(*words: str, script: tuple[Any, ...] = ()) -> tuple[HangingModel, LlmAgent]:
    model = HangingModel(*words, script=script)
    return model, LlmAgent(name="helper", model=model)


class Endless:
    """A tool that comes to no end by itself."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.was_cancelled = False

    async def endless(self) -> dict[str, str]:
        """Endless."""
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return {"ok": "yes"}


def checked(answer: Answer) -> list[str]:
    """The types of a stream that no client may take exception to."""
    check_segment(answer.chunks, 6)
    return answer.types


def end_soon(bridge: ChatBridge) -> None:
    """Tools that never end keep no test waiting."""
    object.__setattr__(bridge.limits, "drain_s", 0.05)


def other_tasks() -> set[asyncio.Task[Any]]:
    """But for the look at lost runs and what keeps leases, which go on as long as their bridge."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}  # pyright: ignore
    return {task for task in tasks if task.get_name() not in ("adk-stream recovery", LEASES)}


def asked_parts(request: LlmRequest) -> list[Any]:
    """What a model was asked, in short: texts as they are, calls and results by name."""
    short: list[Any] = []
    for content in request.contents:
        for part in content.parts or ():
            if part.function_call is not None:
                short.append({"call": part.function_call.name})
            elif part.function_response is not None:
                short.append({"result": part.function_response.response})
            else:
                short.append(part.text)
    return short


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0)


# -- what a client makes of a stream ----------------------------------------------------------------------------------


def folded(answer: Answer) -> dict[str, Any]:
    """The message that a client of AI SDK 6 or 7 has after this stream, made from the bytes on the wire alone."""
    message: dict[str, Any] = {"id": "", "role": "assistant", "parts": []}
    fold_into(message, answer)
    return message


def fold_into(message: dict[str, Any], answer: Answer) -> None:
    """One more segment of a message, which may have been filled in by the client since the last."""
    texts: dict[str, dict[str, Any]] = {}
    arguments: dict[str, str] = {}
    unseen_steps = 0
    for chunk in answer.chunks:
        kind = chunk["type"]
        if kind == "start-step":
            unseen_steps += 1
            continue
        if kind in ("finish-step", "abort", "error") or (kind == "finish" and "messageMetadata" not in chunk):
            continue
        message["parts"] += [{"type": "step-start"}] * unseen_steps
        unseen_steps = 0
        if "messageMetadata" in chunk:
            message["metadata"] = {**message.get("metadata", {}), **chunk["messageMetadata"]}
        if kind == "start":
            message["id"] = chunk["messageId"]
        elif kind in ("text-start", "reasoning-start"):
            texts[chunk["id"]] = _picked(chunk, "providerMetadata") | {
                "type": kind.removesuffix("-start"),
                "text": "",
            }
            message["parts"].append(texts[chunk["id"]])
        elif kind in ("text-delta", "reasoning-delta"):
            texts[chunk["id"]]["text"] += chunk["delta"]
        elif kind in ("text-end", "reasoning-end"):
            texts.pop(chunk["id"]).update(_picked(chunk, "providerMetadata", "citations"), state="done")
        elif kind.startswith("data-"):
            _fold_data(chunk, message["parts"])
        elif kind in ("file", "source-url", "source-document", "reasoning-file"):
            message["parts"].append(chunk)
        elif kind.startswith("tool-"):
            _fold_tool(chunk, message["parts"], arguments)


async def reloaded(chat: Conversation, answer: Answer) -> list[dict[str, Any]]:
    """The parts of the last message after a reload, once they are seen to be those that the client had."""
    message = (await chat.messages())[-1]
    assert message == folded(answer)
    return [part for part in message["parts"] if part["type"] != "step-start"]


def _fold_data(chunk: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    for part in parts:
        if "id" in chunk and part["type"] == chunk["type"] and part.get("id") == chunk["id"]:
            part["data"] = chunk["data"]
            return
    parts.append(chunk)


def _fold_tool(chunk: dict[str, Any], parts: list[dict[str, Any]], arguments: dict[str, str]) -> None:
    kind = chunk["type"]
    if kind == "tool-approval-response":
        asked = next(part for part in parts if part.get("approval", {}).get("id") == chunk["approvalId"])
        asked["approval"]["approved"] = chunk["approved"]
        asked["state"] = "approval-responded"
        return
    call_id = chunk["toolCallId"]
    part = next((part for part in parts if part.get("toolCallId") == call_id), None)
    if kind == "tool-input-start":
        arguments[call_id] = ""
        if part is None:
            name = chunk["toolName"]
            typed = {"type": "dynamic-tool", "toolName": name} if chunk.get("dynamic") else {"type": f"tool-{name}"}
            part = {**typed, **_picked(chunk, "toolCallId", "providerExecuted")}
            parts.append(part)
        part["state"] = "input-streaming"
        part.pop("input", None)
        return
    assert part is not None, f"No tool invocation found for {call_id}"
    if kind == "tool-input-delta":
        arguments[call_id] += chunk["inputTextDelta"]
        with suppress(json.JSONDecodeError):  # what is not whole yet would be mended and shown
            part["input"] = json.loads(arguments[call_id])
        return
    part.update(_picked(chunk, "input", "output", "errorText"))
    if kind == "tool-input-available":
        part["state"] = "input-available"
        if "providerMetadata" in chunk:
            part["callProviderMetadata"] = chunk["providerMetadata"]
    elif kind == "tool-approval-request":
        approval = {"id": chunk["approvalId"]}
        if "reason" in chunk:
            approval |= {"requestReason": chunk["reason"], "descriptor": chunk["approvalDescriptor"]}
        if "isAutomatic" in chunk:
            approval["isAutomatic"] = chunk["isAutomatic"]
        part.update(state="approval-requested", approval=approval)
    elif kind == "tool-output-available":
        part["state"] = "output-available"
        part.pop("preliminary", None)
        part.update(_picked(chunk, "preliminary"))
    elif kind in ("tool-output-error", "tool-input-error"):
        part["state"] = "output-error"
        part.pop("output", None)
        part.pop("preliminary", None)
    elif kind == "tool-output-denied":
        part["state"] = "output-denied"


def _picked(chunk: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: chunk[name] for name in names if name in chunk}
