"""Storms of two tabs and two workers on one chat, with every form of answer and with call ids that come again: when
they are over, everybody knows the same of every call."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from random import Random
from typing import Any

import pytest
from google.adk.sessions import DatabaseSessionService, InMemorySessionService

from adk_stream_protocol.store import open_store
from adk_stream_protocol.store.memory import MemoryStore
from faults.fast_disk import fast_sqlite_url
from faults.storms import Storm
from faults.unsteady import unsteady
from support import virtual_time
from support.apps import figure
from support.databases import postgres_url

STORMS = 1_000
AT_A_TIME = 16  # so that nobody waits for a database

NewStorm = Callable[[int], Storm]
Place = Callable[[], AbstractAsyncContextManager[NewStorm]]


@asynccontextmanager
async def in_memory() -> AsyncGenerator[NewStorm]:
    """Where nothing takes any time by itself, and the seed decides what comes first."""

    def new_storm(seed: int) -> Storm:
        random = Random(seed)
        store, sessions = unsteady(MemoryStore, random)(), unsteady(InMemorySessionService, random, 3)()
        return Storm(f"c{seed}", seed, store, sessions)

    yield new_storm


def in_database(database: Callable[[], AbstractContextManager[str]]) -> Place:
    @asynccontextmanager
    async def place() -> AsyncGenerator[NewStorm]:
        with database() as url:
            store = open_store(url)
            # By default 5 s. On a busy machine ADK's sessions would fail, and the storms would tell of nothing else.
            async with DatabaseSessionService(url, connect_args={"timeout": 60}) as sessions:
                yield lambda seed: Storm(f"c{seed}", seed, store, sessions)
                await store.aclose()

    return place


async def storms(place: Place, count: int) -> dict[int, list[str]]:
    """By their seeds, those after which somebody disagrees."""
    at_a_time = asyncio.Semaphore(AT_A_TIME)
    async with place() as new_storm:

        async def rage(seed: int) -> list[str]:
            async with at_a_time:
                return await new_storm(seed).rage()

        found = await asyncio.gather(*map(rage, range(count)))
    return {seed: texts for seed, texts in enumerate(found) if texts}


Run = Callable[[Coroutine[Any, Any, dict[int, list[str]]]], dict[int, list[str]]]


@pytest.mark.figures
@pytest.mark.parametrize(
    ("place", "count", "run"),
    [
        (in_memory, STORMS // 2, virtual_time.run),
        (in_database(fast_sqlite_url), STORMS // 4, asyncio.run),
        (in_database(postgres_url), STORMS // 4, asyncio.run),
    ],
    ids=["memory", "SQLite", "PostgreSQL"],
)
def test_whatever_two_tabs_do_on_two_workers_there_is_one_truth(
    place: Place, count: int, run: Run, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    began, count = time.monotonic(), figure(count)
    wrong = run(storms(place, count))
    with capsys.disabled():
        print(f"\n{count} storms on {request.node.callspec.id}: {time.monotonic() - began:.0f} s")
    assert not wrong, f"{len(wrong)} of {count} storms, by seed: {wrong}"
