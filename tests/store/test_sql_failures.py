"""A store whose database fails: nothing is half done, nothing is told, and nothing stays behind."""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallKey, decide
from adk_stream_protocol.store.base import Lease, Store
from adk_stream_protocol.store.sql import SqlStore
from store.stores import CHAT, Clock, Stores, asked, postgres_connection
from support.databases import own_server, postgres_url, shared_server

EVERY_USE: list[Callable[[Store], Awaitable[Any]]] = [
    lambda store: store.read(CHAT),
    lambda store: store.read(CHAT, CallKey("inv-1", "call-1")),
    lambda store: store.add(asked("new")),
    lambda store: store.compare_and_set(asked(), asked(version=1)),
    lambda store: store.compare_and_set(asked(), asked(version=1), asked(version=2), lease=Lease(CHAT, "token")),
    lambda store: store.acquire(CHAT, 10),
    lambda store: store.acquire(CHAT, 10, [(asked(), asked(version=1))]),
    lambda store: store.renew(Lease(CHAT, "token"), 10),
    lambda store: store.release(Lease(CHAT, "token")),
    lambda store: store.release(Lease(CHAT, "token"), [asked().call]),
    lambda store: store.abandoned(5),
    lambda store: store.audit(CHAT),
    lambda store: store.waiting("app", ["ann"], 10),
    lambda store: store.find_asked("app", "ask-1"),
    lambda store: store.unannounced("app", 5),
    lambda store: store.mark_announced(asked()),
    lambda store: store.forget(Lease(CHAT, "token")),
]


async def assert_unavailable(store: Store) -> None:
    for use in EVERY_USE:
        with pytest.raises(StoreUnavailable) as raised:
            await use(store)
        assert str(raised.value) == StoreUnavailable.public_text
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__


async def test_a_stopped_postgresql_is_unavailable_until_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    with own_server() as server, server.database() as url:
        store = SqlStore(url)
        try:
            await store.add(asked(arguments={"card": "4242"}))
            server.stop()
            with caplog.at_level(logging.DEBUG, "adk_stream_protocol"):
                await assert_unavailable(store)
            server.start()
            (found,) = (await store.read(CHAT)).records
            assert found.version == 0
            assert await store.compare_and_set(found, decide(found, by="ann", approved=True, now=1.0))
        finally:
            await store.aclose()
    said = {record.getMessage() for record in caplog.records if record.name.startswith("adk_stream_protocol")}
    assert said
    assert all(line.startswith("The store's database failed: ") for line in said)
    assert all(line.rsplit(": ", 1)[1].isidentifier() for line in said)


async def test_a_broken_connection_is_replaced() -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "

    with postgres_url() as url:
        store = SqlStore(url)
        await asyncio.gather(*(store.read(CHAT) for _ in range(5)))
        async with postgres_connection(url) as other:
            assert len(await other.fetch(f"{cut} pg_backend_pid()")) == 5
        await store.read(CHAT)
        await store.aclose()


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("postgresql+asyncpg://ann:hunter2@127.0.0.1:1/chats", id="nobody listens"),
        pytest.param("postgresql+asyncpg://ann:hunter2@name.invalid/chats", id="no such host"),
        pytest.param("postgresql+asyncpg://ann:hunter2@/chats?host=/nowhere", id="no socket"),
        pytest.param("sqlite+aiosqlite:////nowhere/hunter2/store.db", id="no folder"),
    ],
)
async def test_a_database_that_is_not_there_is_unavailable_and_its_url_is_told_to_nobody(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqlStore(url)
    with caplog.at_level(logging.DEBUG):
        await assert_unavailable(store)
    await store.aclose()
    assert "hunter2" not in caplog.text


async def test_a_server_without_the_database_is_unavailable() -> None:
    store = SqlStore(shared_server().url("missing"))
    await assert_unavailable(store)
    await store.aclose()


async def test_a_store_works_once_its_database_is_there(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite+aiosqlite:///{tmp_path}/later/store.db")
    with pytest.raises(StoreUnavailable):
        await store.read(CHAT)
    (tmp_path / "later").mkdir()
    assert await store.add(asked())
    await store.aclose()


async def test_a_damaged_file_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"This is no database. " * 500)

    store = SqlStore(f"sqlite+aiosqlite:///{tmp_path}/store.db")
    await assert_unavailable(store)
    await store.aclose()


async def wait_until_nobody_is_connected(url: str, user: str) -> None:
    """The server takes a moment to notice."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = $1 AND pid <> "
    async with postgres_connection(url) as connection:
        while await connection.fetchval(f"{count} pg_backend_pid()", user):
            await asyncio.sleep(0)


async def execute(url: str, *statements: str) -> None:
    engine = create_async_engine(url)
    async with engine.begin() as connection:
        for statement in statements:
            await connection.exec_driver_sql(statement)
    await engine.dispose()


async def test_a_user_who_may_not_create_tables_can_use_those_there_are() -> None:
    with postgres_url() as url:
        guests = SqlStore(url.replace("postgres@", "guest@"))
        await execute(url, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
        with pytest.raises(StoreUnavailable):
            await guests.read(CHAT)
        await wait_until_nobody_is_connected(url, "guest")
        owners = SqlStore(url)
        await owners.add(asked())
        await execute(url, *(f"GRANT SELECT ON adk_stream_{name} TO guest" for name in ("approvals", "leases")))
        assert (await guests.read(CHAT)).records == [asked()]
        await guests.aclose()
        await owners.aclose()


async def test_nothing_is_recorded_without_its_trail(databases: Stores, clock: Clock) -> None:
    async with databases.open(clock) as store:
        await store.add(asked())
        await execute(databases.url, "ALTER TABLE adk_stream_audit RENAME TO elsewhere")
        with pytest.raises(StoreUnavailable):
            await store.add(asked("call-2"))
        with pytest.raises(StoreUnavailable):
            await store.compare_and_set(asked(), decide(asked(), by="ann", approved=True, now=1.0))
        with pytest.raises(StoreUnavailable):
            await store.acquire(CHAT, 10, [(asked(), decide(asked(), by="ann", approved=True, now=1.0))])
        assert (await store.read(CHAT)).records == [asked()]
        assert (await store.acquire(CHAT, 10)).lease  # which the one that failed has not kept


async def test_whoever_is_cancelled_leaves_a_call_with_its_trail_or_neither(databases: Stores, clock: Clock) -> None:
    async with databases.open(clock) as store:
        await store.read(CHAT)
        for steps in range(60):  # each a little further than the one before
            adding = asyncio.ensure_future(store.add(asked(str(steps))))
            for _ in range(steps):
                await asyncio.sleep(0)
            adding.cancel()
            await asyncio.wait([adding])
        assert await store.add(asked("last"))
    async with databases.open(clock) as store:
        calls = {approval.call for approval in (await store.read(CHAT)).records}
        assert {entry.call for entry in await store.audit(CHAT)} == calls


async def test_what_was_begun_comes_to_its_end_before_the_store_is_closed(databases: Stores, clock: Clock) -> None:
    """A connection that is cut off in the midst of a statement may never be closed."""
    async with databases.open(clock) as store:
        adding = [asyncio.ensure_future(store.add(asked(str(n)))) for n in range(30)]
        await asyncio.sleep(0)
        for one in adding:
            one.cancel()
        await asyncio.wait(adding)
        assert all(one.cancelled() for one in adding)
    async with databases.open(clock) as store:
        assert len((await store.read(CHAT)).records) == len(await store.audit(CHAT)) == 30


# -- what stays behind ------------------------------------------------------------------------------------------------


def test_closing_leaves_no_thread_and_no_connection(databases: Stores) -> None:
    before = set(threading.enumerate())

    async def use() -> None:
        async with databases.open() as store:
            await asyncio.gather(*(store.read(CHAT) for _ in range(20)), *(store.acquire(CHAT, 1) for _ in range(20)))
            await store.aclose()  # and once more with the block
        if databases.url.startswith("postgresql"):
            await wait_until_nobody_is_connected(databases.url, "postgres")

    asyncio.run(use())  # a loop has threads of its own until it ends
    assert set(threading.enumerate()) == before


async def test_an_unused_store_opens_nothing(tmp_path: Path) -> None:
    await SqlStore(f"sqlite+aiosqlite:///{tmp_path}/store.db").aclose()
    assert os.listdir(tmp_path) == []


async def test_its_tables_are_told_apart_from_all_others(databases: Stores) -> None:
    async with databases.open() as store:
        await store.read(CHAT)
    engine = create_async_engine(databases.url)
    async with engine.connect() as connection:
        tables = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
    await engine.dispose()
    assert sorted(tables) == [f"adk_stream_{name}" for name in ("approvals", "audit", "chats", "leases", "waiting")]
