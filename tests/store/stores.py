"""The stores under test, one clock that stands still until it is moved, and calls to put into them."""

import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

import asyncpg
from sqlalchemy import make_url

from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State, decide
from adk_stream_protocol.store.base import Lease, Store
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.store.sql import SqlStore
from support.databases import postgres_url, sqlite_url

CHAT = ChatKey("app", "ann", "c1")
OTHER_CHAT = ChatKey("app", "ann", "c2")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Stores:
    """Opens stores, and closes them with the block. Those of a database are all of the same one."""

    def __init__(self, make: Callable[[Callable[[], float] | None], Store], url: str = "") -> None:
        self._make = make
        self.url = url

    @asynccontextmanager
    async def open(self, clock: Callable[[], float] | None = None) -> AsyncGenerator[Store]:
        store = self._make(clock)
        try:
            yield store
        finally:
            await store.aclose()


@contextmanager
def in_memory() -> Generator[Stores]:
    yield Stores(lambda clock: MemoryStore(clock=clock or time.time))


@contextmanager
def in_sqlite() -> Generator[Stores]:
    with sqlite_url() as url:
        yield Stores(lambda clock: SqlStore(url, clock=clock), url)


@contextmanager
def in_postgres() -> Generator[Stores]:
    with postgres_url() as url:
        yield Stores(lambda clock: SqlStore(url, clock=clock), url)


IN_DATABASES: dict[str, Callable[[], AbstractContextManager[Stores]]] = {"sqlite": in_sqlite, "postgres": in_postgres}
EVERYWHERE = {"memory": in_memory, **IN_DATABASES}


def asked(call_id: str = "call-1", *, chat: ChatKey = CHAT, **fields: Any) -> CallRecord:
    """A payment of the server's that waits for its approval."""
    known: dict[str, Any] = {
        "call": CallKey("inv-1", call_id),
        "tool": "pay",
        "arguments": {"amount": 5},
        "executor": "server",
        "state": State.PENDING,
        "asked_at": 1000.0,
        "delivered": False,  # as every store reads what it was given
    }
    return CallRecord(chat=chat, **(known | fields))


def approve(approval: CallRecord, now: float) -> CallRecord:
    return decide(approval, by="ann", approved=True, now=now)


def deny(approval: CallRecord, now: float) -> CallRecord:
    return decide(approval, by="ann", approved=False, now=now, reason="too much")


async def lease_of(store: Store, chat: ChatKey = CHAT, lasts_s: float = 10) -> Lease | None:
    return (await store.acquire(chat, lasts_s)).lease


async def held(store: Store, chat: ChatKey = CHAT, lasts_s: float = 10) -> Lease:
    lease = await lease_of(store, chat, lasts_s)
    assert lease is not None
    return lease


async def states(store: Store, chat: ChatKey = CHAT) -> list[str]:
    return [approval.state for approval in (await store.read(chat)).records]


async def trail(store: Store, chat: ChatKey = CHAT) -> list[str]:
    return [entry.state for entry in await store.audit(chat)]


@asynccontextmanager
async def postgres_connection(url: str) -> AsyncGenerator[Any]:
    """Past the store, to look at what it does."""
    parts = make_url(url)
    place: dict[str, Any] = dict(parts.query)
    connection = await asyncpg.connect(user=parts.username, database=parts.database, **place)
    try:
        yield connection
    finally:
        connection.terminate()  # whatever it was in the midst of
