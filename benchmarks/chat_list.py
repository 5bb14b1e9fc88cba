"""What a list of chats costs, against one `list_sessions` of ADK's: the chats kept in SQLite and in PostgreSQL.

    python benchmarks/chat_list.py

50 chats of 40 turns, each with a call that was answered and one that waits; sessions and store in one database. The
median of paired rounds, and the CPU of 20 lists at once. PostgreSQL is the one of the tests (`pip install -e .[dev]`).
"""

import argparse
import asyncio
import logging
import statistics
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import httpx
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.store.sql import SqlStore
from adk_stream_protocol.testing import ScriptedModel
from support.databases import postgres_url, sqlite_url

CHATS, TURNS, AT_ONCE = 50, 40, 20


async def fill(sessions: DatabaseSessionService, store: SqlStore) -> None:
    for chat in range(CHATS):
        key = ChatKey("helper", "ann", f"c{chat}")
        session = await sessions.create_session(app_name="helper", user_id="ann", session_id=key.chat_id)
        for turn in range(TURNS):
            for author, role in (("user", "user"), ("helper", "model")):
                content = types.Content(role=role, parts=[types.Part(text="words " * 50)])
                event = Event(author=author, invocation_id=f"i{turn}", content=content)
                await sessions.append_event(session, event)
        for state in (State.DONE, State.APPROVED):
            call, result = CallKey("i0", state), {"output": "x" * 10_000} if state is State.DONE else None
            about: dict[str, Any] = {"tool": "look", "arguments": {}, "executor": "browser", "asked_at": 1.0}
            await store.add(CallRecord(chat=key, call=call, state=state, result=result, **about))


async def median_ms(rounds: int, *works: Callable[[], Awaitable[Any]]) -> list[list[float]]:
    """Paired: what disturbs one disturbs its neighbour."""
    figures: list[list[float]] = [[] for _ in works]
    for number in range(rounds + 2):
        for place, work in enumerate(works):
            began_at = time.perf_counter()
            await work()
            if number >= 2:  # what is imported, compiled and prepared on the way is paid once
                figures[place].append((time.perf_counter() - began_at) * 1e3)
    return figures


async def measure(name: str, url: str, rounds: int) -> None:
    sessions, store = DatabaseSessionService(url), SqlStore(url)
    await fill(sessions, store)
    agent = LlmAgent(name="helper", model=ScriptedModel([]))
    bridge = ChatBridge(agent, user_id=lambda _: "ann", session_service=sessions, store=store)
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:

        async def ours() -> None:
            response = await http.get("/api/chat", timeout=300)
            assert response.status_code == 200
            assert len(response.json()) == CHATS

        async def adks() -> None:
            await sessions.list_sessions(app_name="helper", user_id="ann")

        began_at = time.perf_counter()
        await ours()
        first_ms = (time.perf_counter() - began_at) * 1e3
        adk, mine = await median_ms(rounds, adks, ours)
        ratios = sorted(one / other for one, other in zip(mine, adk, strict=True))
        low, _, high = statistics.quantiles(ratios, n=4)
        began_at = time.process_time()
        await asyncio.gather(*(ours() for _ in range(AT_ONCE)))
        cpu_s = time.process_time() - began_at
    print(f"{CHATS} chats of {TURNS} turns in {name}, {rounds} rounds")
    print(f"  list_sessions of ADK  {statistics.median(adk):8.1f} ms")
    print(
        f"  GET list of chats     {statistics.median(mine):8.1f} ms,"
        f" {statistics.median(ratios):.2f} times that [{low:.2f}-{high:.2f}]; {first_ms:.0f} ms at first sight"
    )
    print(f"  {AT_ONCE} lists at once      {cpu_s:8.2f} s of CPU in this process")
    await bridge.aclose()
    await store.aclose()
    await sessions.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    for name, database in (("SQLite", sqlite_url), ("PostgreSQL", postgres_url)):
        with database() as url:
            asyncio.run(measure(name, url, rounds))


if __name__ == "__main__":
    main()
