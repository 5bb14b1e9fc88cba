"""A payment was made. Then whatever can fail fails, at each of the awaits until the stream has ended: the payment is
recorded, shown and told as what it was, or as unknown by everybody."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.sessions import DatabaseSessionService, InMemorySessionService

from adk_stream_protocol import Limits
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.store.sql import SqlStore
from faults.paying_chat import PATIENCE_S, PayingChat, UsersPlugin
from faults.unsteady import Fault
from support import virtual_time
from support.databases import sqlite_url
from support.truth import disagreements

FULL_SIZE = bool(os.environ.get("FULL_SIZE"))

# Each in a time of its own, where waiting for a lease to run out costs nothing; or with a short one.
Services = Callable[[Fault, Callable[[], Exception]], AbstractAsyncContextManager[dict[str, Any]]]


class LogServiceDown(Exception):
    pass


@asynccontextmanager
async def in_memory(fault: Fault, store_error: Callable[[], Exception]) -> AsyncGenerator[dict[str, Any]]:
    loop = asyncio.get_running_loop()
    healthy = MemoryStore(clock=lambda: 1_000_000 + loop.time())
    store = fault.in_service(MemoryStore, store_error)()
    vars(store).update(vars(healthy))
    sessions = fault.in_service(InMemorySessionService, ConnectionError)()
    yield {"store": store, "healthy_store": healthy, "sessions": sessions}


@asynccontextmanager
async def in_sqlite(fault: Fault, store_error: Callable[[], Exception]) -> AsyncGenerator[dict[str, Any]]:
    with sqlite_url() as url:
        stores = {"store": fault.in_service(SqlStore, store_error)(url), "healthy_store": SqlStore(url)}
        sessions = fault.in_service(DatabaseSessionService, ConnectionError)(url)
        try:
            yield {**stores, "sessions": sessions, "limits": Limits(lease_s=0.3)}
        finally:
            for store in stores.values():
                await store.aclose()
            await sessions.close()


async def pay_and_fail(services: Services, fault: Fault, store_error: Callable[[], Exception]) -> list[str]:
    async with services(fault, store_error) as given:

        async def works() -> None:
            fault.arm()  # the tool has nothing more to do

        chat = PayingChat(
            **given,
            artifacts=fault.in_service(InMemoryArtifactService, ConnectionError)(),
            plugin=fault.in_service(UsersPlugin, LogServiceDown)(name="users"),
            works=works,
        )
        await chat.tab.say("Pay.")
        is_answered = False
        try:
            async with asyncio.timeout(PATIENCE_S):
                await chat.tab.decide(chat.tab.part("pay"), approved=True)
            is_answered = True
            fault.disarm()
            await chat.tab.reload()
            world = await chat.settled(record_was_unreadable=any("Store." in name for name in fault.hit))
        except TimeoutError:
            return ["the chat takes no turn any more" if is_answered else "the answer never ends"]
        finally:
            fault.disarm()
            await chat.bridge.aclose()
        return disagreements(world)


KINDS: dict[str, dict[str, bool]] = {
    "once": {},
    "from then on": {"is_lasting": True},
    "after its work was done": {"is_late": True},
}


@pytest.mark.figures
@pytest.mark.parametrize("store_error", [StoreUnavailable, ConnectionError])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("services", "run", "step"),
    [(in_memory, virtual_time.run, 1), (in_sqlite, asyncio.run, 1 if FULL_SIZE else 7)],
    ids=["memory", "SQLite"],
)
def test_a_failure_at_any_await_after_a_payment_leaves_one_truth(
    services: Services,
    run: Callable[[Any], list[str]],
    step: int,
    kind: str,
    store_error: type[Exception],
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong: dict[str, list[str]] = {}
    hit: list[str] = []
    for at in count(1, step):
        fault = Fault(at, **KINDS[kind])
        found = run(pay_and_fail(services, fault, store_error))
        if not fault.hit:
            break
        hit.append(fault.hit[0])
        if found:
            wrong[f"{at} {fault.hit[0]}"] = found
    with capsys.disabled():
        print(f"\n{len(hit)} failures {kind}: {', '.join(dict.fromkeys(hit))}")
    assert not wrong, f"{len(wrong)} of {len(hit)}: {wrong}"
    assert len(hit) * step > 10
