"""What a history, an edit and an answer cost as a chat grows, and how long each holds the event loop.

    python benchmarks/chat_length.py [turns ...]

A turn is four events: the user's words, a call, its result, the answer. ADK's own loading of the session is measured
apart, in memory and in SQLite: the requests run on sessions that are loaded for nothing, so that the rest is this
library's work, and in an edit ADK's run on what is left. At the end, a history of 1,000 events with ADK's own services,
loading included, and one that has not changed (304), each beside one load: the median of paired rounds and their
quartiles, with the CPU of all threads. All other figures are CPU of the event loop's thread. All are without
Python's garbage collector: it runs when it likes, and stops everything for as long as the whole process is large.
"""

import asyncio
import gc
import json
import logging
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService, Session
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.adk.session import MessageIds

TURNS = (250, 500, 1000, 2000)
ROUNDS = 5
STORED_TURNS = 250  # ADK would take minutes to store a long chat
PAIRS = 21
KEY = {"app_name": "helper", "user_id": "ann", "session_id": "c"}


class OneWord(BaseLlm):
    model: str = "one-word"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Done.")]))


class LoadedForNothing(InMemorySessionService):
    """Sessions that are not copied. What a request adds is forgotten when the next one begins."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self._session = Session(id="c", app_name="helper", user_id="ann", state={})
        self._events = events
        self.forget()

    def forget(self) -> None:
        self._session.events = list(self._events)

    async def get_session(self, **_: Any) -> Session:
        return self._session

    async def append_event(self, session: Session, event: Event) -> Event:
        self._session.events.append(event)
        return event


def turn(number: int) -> list[Event]:
    ids = MessageIds(user_message_id=f"u{number}", message_id=f"m{number}").metadata()
    call = types.FunctionCall(id=f"c{number}", name="look_up", args={"topic": f"topic {number}"})
    result = types.FunctionResponse(id=f"c{number}", name="look_up", response={"found": "a line or two " * 10})
    parts = (
        ("user", "user", types.Part(text=f"Question {number}: what is there to be said of it?")),
        ("helper", "model", types.Part(function_call=call)),
        ("helper", "user", types.Part(function_response=result)),
        ("helper", "model", types.Part(text="An answer of a few sentences. " * 10)),
    )
    return [
        Event(
            author=author,
            invocation_id=f"i{number}",
            content=types.Content(role=role, parts=[part]),
            custom_metadata=ids,
        )
        for author, role, part in parts
    ]


async def measured(work: Awaitable[Any]) -> tuple[float, float]:
    """CPU, and the longest stretch of it without a turn for anybody else, in ms."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    gc.collect()
    gc.disable()
    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    began_at = time.thread_time()
    await work
    took = time.thread_time() - began_at
    await asyncio.sleep(0)
    ticking.cancel()
    gc.enable()
    return took * 1e3, longest * 1e3


async def cpu_ms(work: Awaitable[Any]) -> float:
    """Of all threads: databases have their own."""
    gc.collect()
    gc.disable()
    began_at = time.process_time()
    await work
    took = time.process_time() - began_at
    gc.enable()
    return took * 1e3


async def median(work: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    await work()  # what is imported and compiled on the way is paid once
    figures = [await measured(work()) for _ in range(ROUNDS)]
    return statistics.median(total for total, _ in figures), statistics.median(longest for _, longest in figures)


def repeat_events(path: Path, times: int) -> None:
    """ADK would take minutes to store a long chat."""
    with sqlite3.connect(path) as database:
        columns = [row[1] for row in database.execute("pragma table_info(events)") if row[1] != "id"]
        database.execute(
            "with recursive copies(n) as (select 1 union all select n + 1 from copies where n < ?) "
            f"insert into events (id, {', '.join(columns)}) select id || n, {', '.join(columns)} from events, copies",
            (times,),
        )


async def load(turns: int) -> tuple[float, float]:
    """Bare ADK: the session out of memory, and out of SQLite."""
    memory = InMemorySessionService()
    await memory.create_session(**KEY)
    memory.sessions["helper"]["ann"]["c"].events.extend(event for number in range(turns) for event in turn(number))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chats.db")
        async with DatabaseSessionService(f"sqlite+aiosqlite:///{path}") as sqlite:
            session = await sqlite.create_session(**KEY)
            for event in turn(0):
                await sqlite.append_event(session, event)
            repeat_events(path, turns - 1)
            in_memory, _ = await median(lambda: memory.get_session(**KEY))
            in_sqlite, _ = await median(lambda: sqlite.get_session(**KEY))
    return in_memory, in_sqlite


async def histories(turns: int, rounds: int) -> None:
    """`GET .../messages` with ADK's own services, beside loading the session with the same service."""
    with tempfile.TemporaryDirectory() as folder:
        async with DatabaseSessionService(f"sqlite+aiosqlite:///{Path(folder, 'chats.db')}") as sqlite:
            for name, service in (("memory", InMemorySessionService()), ("SQLite", sqlite)):
                session = await service.create_session(**KEY)
                for event in (event for number in range(turns) for event in turn(number)):
                    await service.append_event(session, event)
                await compare_with_load(name, service, rounds)


async def compare_with_load(name: str, service: BaseSessionService, rounds: int) -> None:
    agent = LlmAgent(name="helper", model=OneWord())
    bridge = ChatBridge(agent, user_id=lambda _: "ann", app_name="helper", session_service=service)
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:

        async def get(known: str, status: int) -> httpx.Response:
            headers = {"if-none-match": known} if known else {}
            response = await http.get("/api/chat/c/messages", headers=headers)
            assert response.status_code == status
            return response

        tag = (await get("", 200)).headers["etag"]
        figures: list[tuple[float, float, float]] = []
        for number in range(rounds + 2):  # paired: what disturbs one disturbs its neighbour
            works = service.get_session(**KEY), get("", 200), get(tag, 304)
            load, whole, unchanged = [await cpu_ms(work) for work in works]
            if number >= 2:  # what is imported and compiled on the way is paid once
                figures.append((load, whole, unchanged))
    print(f"       load from {name}: {statistics.median(load for load, _, _ in figures):.1f} ms of CPU", end="")
    for what, place in (("GET messages", 1), ("unchanged", 2)):
        ratios = sorted(figure[place] / figure[0] for figure in figures)
        low, _, high = statistics.quantiles(ratios, n=4)
        print(f"; {what} {statistics.median(ratios):.2f} times that [{low:.2f}-{high:.2f}]", end="")
    print()
    await bridge.aclose()


async def measure(turns: int) -> None:
    in_memory, in_sqlite = await load(turns)
    service = LoadedForNothing([event for number in range(turns) for event in turn(number)])
    bridge = ChatBridge(
        LlmAgent(name="helper", model=OneWord()), user_id=lambda _: "ann", app_name="helper", session_service=service
    )
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:

        async def history() -> None:
            response = await http.get("/api/chat/c/messages")
            assert response.status_code == 200

        async def post(**body: Any) -> httpx.Response:
            service.forget()
            headers = {"content-type": "application/json"}
            return await http.post("/api/chat", content=json.dumps({"id": "c", **body}), headers=headers)

        async def edit() -> None:
            message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Something else."}]}
            response = await post(trigger="submit-message", messageId="u1", messages=[message])
            assert response.status_code == 200
            assert "Done." in response.text

        async def unknown() -> None:
            response = await post(trigger="regenerate-message", messageId="nobody-knows")
            assert response.status_code == 404

        for what, work in (("history", history), ("edit", edit), ("unknown id", unknown)):
            took, longest = await median(work)
            print(
                f"{turns:6} {what:12} {took:9.1f} {took / turns * 1e3:9.0f} {took / in_memory:9.2f}"
                f" {took / in_sqlite:9.2f} {longest:9.1f}"
            )
    print(f"{turns:6} {'bare load':12} {in_memory:9.1f} (memory) {in_sqlite:9.1f} (SQLite)")
    await bridge.aclose()


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    print(f"{'turns':>6} {'':12} {'ms':>9} {'us/turn':>9} {'x memory':>9} {'x SQLite':>9} {'held, ms':>9}")
    for turns in [int(given) for given in sys.argv[1:]] or TURNS:
        asyncio.run(measure(turns))
    print(f"A history of {4 * STORED_TURNS} events, all of it with its load, {PAIRS} rounds")
    asyncio.run(histories(STORED_TURNS, PAIRS))


if __name__ == "__main__":
    main()
