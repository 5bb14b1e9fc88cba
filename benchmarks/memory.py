"""What a running answer holds: bare ADK, this library with a reader, and with a reader that never reads.

    .bench-venv/bin/python benchmarks/memory.py

Counts Python's own allocations of answers that have said their words and have not ended yet.
"""

# ruff: noqa: E402
import sys

sys.dont_write_bytecode = False

import argparse
import asyncio
import gc
import json
import logging
import tracemalloc
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from asgi_call import post
from cases import USER_ID, BareRuns
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types
from ours import _body
from pydantic import PrivateAttr
from report import machine_facts
from scripted_model import AGENT_NAME, script_of

from adk_stream_protocol import ChatBridge, Limits


class ParkedModel(BaseLlm):
    """Says its words, then waits for ever."""

    model: str = "parked"
    words: tuple[str, ...]
    _parked: int = PrivateAttr(default=0)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for word in self.words:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=word)]), partial=True)
        self._parked += 1
        await asyncio.Event().wait()


async def _held(model: ParkedModel, start: Callable[[str], Awaitable[Any]], streams: int) -> float:
    """KiB for each answer."""
    tasks = [asyncio.ensure_future(start("warm"))]
    await _until_parked(model, 1)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    tasks += [asyncio.ensure_future(start(f"c{number}")) for number in range(streams)]
    await _until_parked(model, 1 + streams)
    gc.collect()
    held = (tracemalloc.get_traced_memory()[0] - before) / streams / 1024
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return held


async def _until_parked(model: ParkedModel, count: int) -> None:
    while model._parked < count:  # noqa: ASYNC110 -- for many answers
        await asyncio.sleep(0.01)
    for _ in range(50):
        await asyncio.sleep(0)


async def _bare(words: tuple[str, ...], streams: int) -> float:
    model = ParkedModel(words=words)
    async with aclosing(BareRuns(LlmAgent(name=AGENT_NAME, model=model))) as runs:

        async def read(chat_id: str) -> None:
            async for _ in runs.events_of_turn(chat_id):
                pass

        return await _held(model, read, streams)


async def _ours(words: tuple[str, ...], streams: int, write: Callable[[bytes], None] | None) -> float:
    """`write`: of a reader; without one, the client stops reading after the headers."""
    model = ParkedModel(words=words)
    limits = Limits(max_runs_per_user=streams + 1)
    bridge = ChatBridge(LlmAgent(name=AGENT_NAME, model=model), user_id=lambda _: USER_ID, limits=limits)
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))

    async def read(chat_id: str) -> None:
        await post(_stuck(app) if write is None else app, "/api/chat", _body(chat_id), write or (lambda _: None))

    async with app.router.lifespan_context(app):
        return await _held(model, read, streams)


def _stuck(app: Any) -> Any:
    async def call(scope: Any, receive: Any, send: Any) -> None:
        async def send_never(message: Any) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()
            await send(message)

        await app(scope, receive, send_never)

    return call


async def _measured(streams: int, words: int) -> dict[str, float]:
    said = script_of(words, "nap").deltas
    tracemalloc.start()
    return {
        "bare ADK": await _bare(said, streams),
        "bare ADK after one word": await _bare(said[:1], streams),  # what ADK sees of words that go past it
        "ours": await _ours(said, streams, lambda _: None),
        "ours, a reader that never reads": await _ours(said, streams, None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--words", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable()  # ADK complains about each answer that has not ended
    found: dict[str, dict[str, float]] = {}
    for words in options.words:
        found[f"{words} words"] = measured = asyncio.run(_measured(options.streams, words))
        print(f"{words} words: " + ", ".join(f"{case} {kib:.0f} KiB" for case, kib in measured.items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"facts": machine_facts(), "memory": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
