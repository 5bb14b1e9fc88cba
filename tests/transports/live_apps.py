"""Applications with a live socket, for tests that look at the socket itself."""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm import BaseLlm
from google.genai import types
from starlette.types import Message

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.protocol.frames import SUBPROTOCOL
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from support import virtual_time
from support.apps import app_of, user_of
from support.asgi import exchange
from support.conversations import end_soon, other_tasks
from support.live_client import LiveClient, live_socket

LONGER_THAN_ANY_TEST_S = 10_000
RATE = 16_000
"""Samples a second of the user's voice."""
SMALL_GRACE = Limits(live_grace_s=1)


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a time of its own: what is waited for takes no time, and what never comes is a failure at once."""

    async def bounded() -> None:
        async with asyncio.timeout(LONGER_THAN_ANY_TEST_S):
            await scenario()

    virtual_time.run(bounded())


@dataclass(frozen=True)
class LiveApp:
    bridge: ChatBridge
    app: FastAPI
    model: Any

    def socket(
        self, user: str = "ann", *, speaks: bool = False, **options: Any
    ) -> AbstractAsyncContextManager[LiveClient]:
        """`speaks`: offers the subprotocol of clients with binary frames."""
        subprotocols = options.pop("subprotocols", (SUBPROTOCOL,) if speaks else ())
        chat_id = options.pop("chat_id", "chat-1")
        client = options.pop("client", None) or LiveClient(chat_id)
        return live_socket(self.app, user, subprotocols=subprotocols, client=client, **options)

    @asynccontextmanager
    async def attached(self, user: str = "ann", chat_id: str = "chat-1", **options: Any) -> AsyncGenerator[LiveClient]:
        """A socket that speaks for a chat."""
        async with self.socket(user, chat_id=chat_id, **{"speaks": True, **options}) as client:
            client.tell("attach", id=chat_id)
            await client.own("attached")
            yield client

    async def messages(self, user: str = "ann", chat_id: str = "chat-1") -> list[dict[str, Any]]:
        path = f"/api/chat/{chat_id}/messages"
        answer = await exchange(self.app, method="GET", path=path, headers={"x-user": user})
        assert answer.status == 200
        return json.loads(answer.body)

    @property
    def runs(self) -> int:
        """How many chats have a run, be it that it waits."""
        return len(list(self.bridge._service._leases))  # pyright: ignore


@asynccontextmanager
async def live_app(
    script: Any = (),
    *,
    family: str = "2.5",
    model: BaseLlm | None = None,
    tools: tuple[Any, ...] = (),
    speaks: bool = False,
    **options: Any,
) -> AsyncGenerator[LiveApp]:
    """An agent on a script, a coroutine that plays the model, or another `model`. Afterwards nothing may be left."""
    model = model or ScriptedLiveModel(script, family=family)
    modality = types.Modality.AUDIO if speaks else types.Modality.TEXT
    given: dict[str, Any] = {"user_id": user_of, "run_config": RunConfig(response_modalities=[modality])}
    bridge = ChatBridge(LlmAgent(name="helper", model=model, tools=list(tools)), **{**given, **options})
    yield LiveApp(bridge, app_of(bridge), model)
    end_soon(bridge)
    await bridge.aclose()
    await nothing_left()
    assert not bridge._service._live._listeners  # pyright: ignore


async def nothing_left() -> None:
    for _ in range(20):  # tasks that were cancelled need a few turns of the loop
        await asyncio.sleep(0)
    assert not other_tasks()


async def answers_for_ever(session: LiveSession) -> None:
    """A model that says yes to everything."""
    while (received := await session.expect()).kind != "close":
        if received.asks_for_reply:
            await session.answer("Yes.")


async def talks_for_ever(session: LiveSession) -> None:
    """A model that begins an answer and does not come to its end."""
    await session.expect_text()
    await session.say("Well, ")
    await session.expect("close")


def answers_after(go_on: asyncio.Event) -> Callable[[LiveSession], Awaitable[None]]:
    """A model that begins an answer, and comes to its end when it may go on."""

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("Well, ")
        await go_on.wait()
        await session.answer("fine.")
        await session.expect("close")

    return server


def said(text: str, id: str = "u1") -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def chunks(client: LiveClient, request_id: str) -> list[dict[str, Any]]:
    return [frame["chunk"] for frame in client.frames.get(request_id, []) if frame["type"] == "chunk"]


async def ping(client: LiveClient) -> None:
    """Returns when everything that was sent before has been read."""
    pongs = sum(frame["type"] == "pong" for frame in client.frames.get("-", []))
    client.tell("ping")
    await client.own("pong", pongs + 1)


async def resume(client: LiveClient, request_id: str, **fields: Any) -> list[dict[str, Any]]:
    """All frames that a resume brings."""
    seen = len(client.frames.get(request_id, []))
    client.send_frame({"type": "resume", "requestId": request_id, "id": "chat-1", **fields})
    got: list[dict[str, Any]] = []

    def has_ended() -> bool:
        got[:] = client.frames.get(request_id, [])[seen:]
        return bool(got) and got[-1]["type"] in ("end", "error", "no-active")

    await client.until(has_ended)
    return got


def sequences(frames: list[dict[str, Any]]) -> list[int]:
    return [frame["sequence"] for frame in frames if frame["type"] == "chunk"]


@dataclass(eq=False)
class Reader(LiveClient):
    """A client that knows whether it was ever accepted, and reads only as long as the test wants."""

    accepted: bool = False
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    is_stuck: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reads.set()

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self.accepted = True
        elif message["type"] == "websocket.send" and not self.reads.is_set():
            self.is_stuck.set()
            await self.reads.wait()
        await super().send(message)


# -- voice -------------------------------------------------------------------------------------------------------------

FRAME = 2 * RATE // 50  # bytes of 20 ms
both_families = pytest.mark.parametrize("family", ["2.5", "3"])
both_forms = pytest.mark.parametrize("form", ["binary", "base64"])


def sound(ms: int) -> bytes:
    """Samples that are loud, and each of them another than those around it."""
    count = ms * RATE // 1000
    return struct.pack(f"<{count}h", *(9_000 + position % 7_000 for position in range(count)))


def speak(client: LiveClient, samples: bytes, *, form: str = "binary") -> None:
    for start in range(0, len(samples), FRAME):
        frame = samples[start : start + FRAME]
        if form == "binary":
            client.send_frame(frame)
        else:
            client.tell("audio", data=base64.b64encode(frame).decode())


def heard(client: LiveClient, form: str = "binary") -> bytes:
    """All of the model's voice that has come."""
    if form == "binary":
        assert not any("data" in frame for frame in own(client, "audio"))
        return b"".join(client.binary)
    assert client.binary == []
    return b"".join(base64.b64decode(frame["data"]) for frame in own(client, "audio"))


def own(client: LiveClient, kind: str) -> list[dict[str, Any]]:
    return [frame for frame in client.frames.get("-", []) if frame["type"] == kind]


def kinds(client: LiveClient) -> list[str]:
    """What came, in its order, transcripts and chunks left out."""
    names = ["binary" if isinstance(frame, bytes) else frame["type"] for frame in client.everything]
    return [name for name in names if name in ("audio", "binary", "audio-clear", "turn")]


def texts(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (message["role"], "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text"))
        for message in messages
    ]
