"""What a long conversation costs before its first word: this library against bare ADK, in one process.

    python benchmarks/long_chat.py

CPU from the request to the first text in a chat of 1,000 events; the median of paired rounds. Each round is a copy of
the same conversation, so that none is longer than the other.
"""

import argparse
import asyncio
import copy
import json
import logging
import statistics
import time
import uuid
import warnings
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from adk_stream_protocol import ChatBridge

EVENTS = 1000
FIRST = "first-word"


class OneWord(BaseLlm):
    model: str = "one-word"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for partial in (True, False):
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=FIRST)]), partial=partial)


class Sessions(InMemorySessionService):
    """Counts who loads a session."""

    loads = 0

    async def get_session(self, **about: Any) -> Any:
        self.loads += 1
        return await super().get_session(**about)


async def long_chats(service: InMemorySessionService, app_name: str, count: int) -> None:
    session = await service.create_session(app_name=app_name, user_id="ann", session_id="chat-0")
    for number in range(EVENTS // 2):
        for author, role in (("user", "user"), ("helper", "model")):
            content = types.Content(role=role, parts=[types.Part(text=f"{author} says something, number {number}.")])
            await service.append_event(session, Event(author=author, invocation_id=f"e-{number}", content=content))
    kept = service.sessions[app_name]["ann"]
    for number in range(1, count):
        kept[f"chat-{number}"] = copy.deepcopy(kept["chat-0"])
        kept[f"chat-{number}"].id = f"chat-{number}"


async def bare(runner: Runner, chat_id: str) -> float:
    content = types.Content(role="user", parts=[types.Part(text="go")])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    began_at, first_at = time.process_time(), 0.0
    async for event in runner.run_async(user_id="ann", session_id=chat_id, new_message=content, run_config=config):
        if not first_at and event.content and any(part.text for part in event.content.parts or ()):
            first_at = time.process_time()
    return first_at - began_at


async def ours(app: FastAPI, chat_id: str) -> float:
    message = {"id": uuid.uuid4().hex, "role": "user", "parts": [{"type": "text", "text": "go"}]}
    body = json.dumps({"id": chat_id, "messages": [message]}).encode()
    sent, first_at = False, 0.0

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            await asyncio.get_running_loop().create_future()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal first_at
        if not first_at and FIRST.encode() in message.get("body", b""):
            first_at = time.process_time()

    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/api/chat", "raw_path": b"/api/chat", "query_string": b"", "root_path": "", "state": {},
        "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("localhost", 80),
    }  # fmt: skip
    began_at = time.process_time()
    await app(scope, receive, send)
    return first_at - began_at


async def measure(rounds: int) -> None:
    agents = [LlmAgent(name="helper", model=OneWord()) for _ in range(2)]
    services = Sessions(), Sessions()
    for service in services:
        await long_chats(service, "helper", rounds + 2)
    # Resumable, as every bridge is: that costs ADK something, and is not ours to count.
    app_of_adk = App(name="helper", root_agent=agents[0], resumability_config=ResumabilityConfig(is_resumable=True))
    runner = Runner(app=app_of_adk, session_service=services[0])
    bridge = ChatBridge(agents[1], user_id=lambda _: "ann", session_service=services[1])
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    figures: list[tuple[float, float]] = []
    for number in range(rounds + 2):
        services[0].loads = services[1].loads = 0
        pair = await bare(runner, f"chat-{number}"), await ours(app, f"chat-{number}")
        if number >= 2:  # what is imported and compiled on the way is paid once
            figures.append(pair)
    ratios = sorted(mine / adk for adk, mine in figures)
    low, _, high = statistics.quantiles(ratios, n=4)
    adk_ms = statistics.median(adk for adk, _ in figures) * 1e3
    print(f"CPU to the first text in a chat of {EVENTS} events, {rounds} rounds")
    print(f"  bare ADK      {adk_ms:6.1f} ms, {services[0].loads} session loads")
    print(
        f"  this library  {statistics.median(ratios):6.2f} times that [{low:.2f}-{high:.2f}], {services[1].loads} loads"
    )
    await bridge.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    asyncio.run(measure(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
