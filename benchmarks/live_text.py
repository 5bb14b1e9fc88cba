"""What a streamed word of a live session costs: this library against bare `run_live`, in one process.

    python benchmarks/live_text.py [rounds]

Both are an application with a WebSocket, called without a network: one sends each word of `run_live` as a small JSON
frame, as one would write it without a bridge, the other is the bridge. The figure is the CPU of a whole answer, divided
by its words; ratios are taken inside paired rounds.
"""

import asyncio
import gc
import json
import logging
import statistics
import sys
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, WebSocket
from google.adk.agents import LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from adk_stream_protocol import ChatBridge

WORDS = 1000
WORD = "word "
LAST = "the-end"


class Speaker(BaseLlmConnection):
    """Answers what it is told with one long answer, a word for each turn of the loop."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[None] = asyncio.Queue()

    async def send_history(self, history: list[types.Content]) -> None: ...

    async def send_content(self, content: types.Content) -> None:
        self._asked.put_nowait(None)

    async def send_realtime(self, blob: Any) -> None: ...

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        await self._asked.get()
        for number in range(WORDS):
            await asyncio.sleep(0)
            word = LAST if number == WORDS - 1 else WORD
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=word)]), partial=True)
        whole = WORD * (WORDS - 1) + LAST
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=whole)]), partial=False)
        yield LlmResponse(turn_complete=True)
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None: ...


class SpeakingModel(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        raise NotImplementedError
        yield

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        yield Speaker()


def speaker() -> LlmAgent:
    return LlmAgent(name="speaker", model=SpeakingModel(model="speaking"))


def bare_app() -> FastAPI:
    app, runner = FastAPI(), InMemoryRunner(speaker(), app_name="speaker")

    @app.websocket("/api/chat/live")
    async def live(websocket: WebSocket) -> None:
        await websocket.accept()
        frame = json.loads(await websocket.receive_text())
        session = await runner.session_service.create_session(app_name="speaker", user_id="bench")
        queue = LiveRequestQueue()
        said = frame["messages"][-1]["parts"][0]["text"]
        queue.send_content(types.Content(role="user", parts=[types.Part(text=said)]))
        config = RunConfig(response_modalities=["TEXT"])  # pyright: ignore
        async for event in runner.run_live(
            user_id="bench", session_id=session.id, live_request_queue=queue, run_config=config
        ):
            for part in (event.content.parts if event.content and event.partial else None) or ():
                await websocket.send_text(json.dumps({"type": "text-delta", "delta": part.text}))
            if event.turn_complete:
                break
        queue.close()

    return app


def bridge_app() -> FastAPI:
    config = RunConfig(response_modalities=["TEXT"])  # pyright: ignore
    bridge = ChatBridge(speaker(), user_id=lambda _: "bench", run_config=config)
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    return app


async def answer_cost(app: FastAPI, chat_id: str) -> float:
    """CPU in us for each word of one answer, from the frame that asks to the last word's frame."""
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    asks = {"type": "send", "requestId": "r", "id": chat_id, "trigger": "submit-message", "messages": [message]}
    incoming: list[dict[str, Any]] = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": json.dumps(asks)},
    ]
    has_ended, words, ended_at = asyncio.Event(), 0, 0.0

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop(0)
        await has_ended.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(sent: dict[str, Any]) -> None:
        nonlocal words, ended_at
        text = sent.get("text") or ""
        words += text.count(WORD)
        if LAST in text and not ended_at:
            ended_at = time.process_time()
            has_ended.set()

    scope = {
        "type": "websocket", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "ws", "subprotocols": [],
        "path": "/api/chat/live", "raw_path": b"/api/chat/live", "query_string": b"", "root_path": "", "state": {},
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("localhost", 80),
    }  # fmt: skip
    began_at = time.process_time()
    serving = asyncio.create_task(app(scope, receive, send))  # pyright: ignore
    await has_ended.wait()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    if words != WORDS - 1:
        raise SystemExit(f"{words + 1} words of {WORDS} came")
    return (ended_at - began_at) / WORDS * 1e6


async def measure(rounds: int) -> None:
    cases: dict[str, Callable[[str], Awaitable[float]]] = {}
    for name, app in (("bare", bare_app()), ("bridge", bridge_app())):
        cases[name] = lambda chat_id, app=app: answer_cost(app, chat_id)
    found: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name in cases if number % 2 else reversed(cases):
            gc.collect()
            figure = await cases[name](f"chat-{number}")
            if number:  # the first round imports and compiles
                found[name].append(figure)
    ratios = [ours / bare for bare, ours in zip(found["bare"], found["bridge"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    print(f"CPU of a word of a live session, {WORDS} words, {rounds} rounds")
    print(f"  bare run_live  {statistics.median(found['bare']):6.1f} us")
    print(f"  this library   {middle:6.2f} times that [{low:.2f}-{high:.2f}]")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 21))
