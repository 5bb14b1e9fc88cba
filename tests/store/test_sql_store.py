"""The store in a database: shared by workers, by the database's clock, and beside ADK's sessions."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.genai import types
from sqlalchemy import make_url

from adk_stream_protocol.protocol.call_record import CallRecord, NotAllowed, State, decide
from adk_stream_protocol.store.base import Lease, Store, advance
from adk_stream_protocol.store.sql import SqlStore
from store.stores import CHAT, Clock, Stores, asked, held, lease_of, postgres_connection
from support.conversations import PATIENCE_S
from support.databases import postgres_url, sqlite_url

# -- many workers -----------------------------------------------------------------------------------------------------


async def test_two_stores_of_one_database_see_each_other(databases: Stores, clock: Clock) -> None:
    async with databases.open(clock) as one, databases.open(clock) as other:
        assert await one.add(asked())
        assert not await other.add(asked())
        approved = decide(asked(), by="ann", approved=True, now=1000.0)
        assert await other.compare_and_set(asked(), approved)
        assert not await one.compare_and_set(asked(), approved)
        assert (await one.read(CHAT)).records == [approved]
        lease = await held(one)
        assert await lease_of(other) is None
        assert await other.renew(lease, 20)
        await other.release(lease)
        assert await other.abandoned(0) == [CHAT]
        assert await one.audit(CHAT) == await other.audit(CHAT)


async def test_what_was_stored_is_there_after_a_restart(databases: Stores, clock: Clock) -> None:
    async with databases.open(clock) as store:
        await store.add(asked())
    async with databases.open(clock) as store:
        assert (await store.read(CHAT)).records == [asked()]


async def test_workers_that_start_at_once_on_an_empty_database_all_succeed(databases: Stores) -> None:
    workers = [SqlStore(databases.url) for _ in range(10)]
    try:
        added = await asyncio.gather(*(worker.add(asked()) for worker in workers))
        assert added.count(True) == 1
    finally:
        for worker in workers:
            await worker.aclose()


TESTS = str(Path(__file__).parents[1])
RACES = 40

# Asks like the test itself, in a process of its own, and says how often it was the first.
WORKER = f"""
import asyncio, sys
sys.path.append(sys.argv[2])
from store.stores import asked
from adk_stream_protocol.store.sql import SqlStore

async def main():
    store = SqlStore(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum([await store.add(asked(str(n))) for n in range({RACES})]))
    await store.aclose()

asyncio.run(main())
"""


def test_processes_share_one_database(databases: Stores) -> None:
    command = [sys.executable, "-W", "error", "-c", WORKER, databases.url, TESTS]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

    async def races() -> None:
        async with databases.open() as store:
            won = sum([await store.add(asked(str(n))) for n in range(RACES)])
            won_elsewhere = await asyncio.to_thread(worker.communicate, timeout=PATIENCE_S)
            assert won + int(won_elsewhere[0]) == RACES
            assert len((await store.read(CHAT)).records) == len(await store.audit(CHAT)) == RACES

    with subprocess.Popen(command, **pipes) as worker:
        assert worker.stdin
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
        worker.stdin.write("go\n")
        worker.stdin.flush()
        asyncio.run(races())
    assert worker.returncode == 0


async def test_writers_of_many_rows_never_wait_for_each_other_in_a_ring(databases: Stores) -> None:
    """PostgreSQL would break the ring after a second, and one of them would fail."""
    names = [f"call-{n}" for n in range(8)]

    async def takes(store: Store, random: Random) -> None:
        calls = list((await store.read(CHAT)).records)
        random.shuffle(calls)
        changes = [(call, msgspec.structs.replace(call, version=call.version + 1)) for call in calls]
        await store.acquire(CHAT, random.choice([0, 0.01]), changes)

    async def marks(store: Store, random: Random) -> None:
        await store.release(Lease(CHAT, "lost"), [asked(name).call for name in random.sample(names, 8)])

    async def moves(store: Store, random: Random) -> None:
        await advance(
            store,
            CHAT,
            asked(random.choice(names)).call,
            lambda old, _: msgspec.structs.replace(old, version=old.version + 1),
        )

    async def forgets(store: Store, random: Random) -> None:
        if lease := await lease_of(store, lasts_s=0.05):
            if await store.forget(lease):
                await asyncio.gather(*(store.add(asked(name)) for name in random.sample(names, 8)))
            await store.release(lease)

    async def work(store: Store, seed: int) -> None:
        random = Random(seed)
        for _ in range(15):
            with suppress(NotAllowed):  # forgotten in between
                await random.choice([takes, marks, moves, forgets])(store, random)

    async with databases.open() as one, databases.open() as other:
        for name in names:
            await one.add(asked(name))
        await asyncio.gather(*(work(store, seed) for seed in range(8) for store in (one, other)))


async def test_who_forgets_a_chat_and_who_marks_its_calls_take_them_in_one_order() -> None:
    change = "UPDATE adk_stream_approvals SET delivered = true WHERE id = $1"

    with postgres_url() as url:
        store = SqlStore(url)
        async with postgres_connection(url) as marker, postgres_connection(url) as watcher:
            by_key = "SELECT id FROM adk_stream_approvals ORDER BY call"
            for name in ("call-1", "call-2"):
                await store.add(asked(name))
            ids = [row["id"] for row in await watcher.fetch(by_key)]
            # Whoever takes them as they lie there, and not by their key, meets the second one first.
            await watcher.execute("UPDATE adk_stream_approvals SET id = id + 10 WHERE id = $1", ids[0])
            await marker.execute("BEGIN")
            await marker.execute(change, ids[0] + 10)
            forgetting = asyncio.ensure_future(store.forget(await held(store)))
            while not await watcher.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.01)
            await marker.execute(change, ids[1])
            await marker.execute("COMMIT")
            assert await forgetting
        await store.aclose()


async def test_a_reader_does_not_wait_for_a_writer(databases: Stores, clock: Clock) -> None:
    """Another process may be in the midst of writing, and stay there."""
    async with databases.open(clock) as store:
        await store.add(asked())
        async with unfinished_write(databases.url):
            assert (await store.read(CHAT)).records == [asked()]
            assert await store.abandoned(0) == []


@asynccontextmanager
async def unfinished_write(url: str) -> AsyncGenerator[None]:
    change = "UPDATE adk_stream_approvals SET state = 'denied'"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(make_url(url).database or "", isolation_level=None)) as file:
            file.execute("BEGIN EXCLUSIVE")
            file.execute(change)
            yield
        return
    async with postgres_connection(url) as connection:
        await connection.execute(f"BEGIN; {change}")
        yield


async def test_it_shares_a_database_with_adks_sessions(databases: Stores, clock: Clock) -> None:
    async with DatabaseSessionService(databases.url) as sessions, databases.open(clock) as store:
        session = await sessions.create_session(app_name="app", user_id="ann", session_id="c1")
        assert await store.add(asked())
        said = types.Content(role="user", parts=[types.Part(text="Pay.")])
        writing = sessions.append_event(session, Event(author="user", content=said))
        moving = advance(store, CHAT, asked().call, lambda old, now: decide(old, by="ann", approved=True, now=now))
        await asyncio.gather(writing, moving)
        found = await sessions.get_session(app_name="app", user_id="ann", session_id="c1")
        assert found
        assert len(found.events) == 1
        await sessions.delete_session(app_name="app", user_id="ann", session_id="c1")
        assert [approval.state for approval in (await store.read(CHAT)).records] == ["approved"]


# -- one clock --------------------------------------------------------------------------------------------------------


async def test_a_worker_with_a_wrong_clock_keeps_to_the_databases(
    databases: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time

    async with databases.open() as store, databases.open() as skewed:
        long = await held(store, lasts_s=60)
        short = await held(store, CHAT._replace(chat_id="c2"), 0)
        now = (await store.read(CHAT)).now
        for name, deadline in (("ahead", now + 60), ("behind", now)):
            await store.add(asked(name, deadline=deadline))
        await store.add(asked(chat=short.chat))

        monkeypatch.setattr(time, "time", lambda: right() + 300)
        assert await lease_of(skewed) is None
        assert await skewed.abandoned(0) == [short.chat]
        assert (await approved(skewed, "ahead", lease=long)).state is State.APPROVED

        monkeypatch.setattr(time, "time", lambda: right() - 300)
        assert (await approved(skewed, "behind")).state is State.EXPIRED
        assert not await skewed.compare_and_set(asked(chat=short.chat), asked(chat=short.chat, version=1), lease=short)
        assert await lease_of(skewed, short.chat)


async def approved(store: Store, name: str, lease: Lease | None = None) -> CallRecord:
    return await advance(
        store, CHAT, asked(name).call, lambda old, now: decide(old, by="ann", approved=True, now=now), lease=lease
    )


async def test_the_time_is_postgresqls() -> None:
    clock = "SELECT extract(epoch FROM clock_timestamp())::float8"

    with postgres_url() as url:
        store = SqlStore(url)
        async with postgres_connection(url) as connection:
            before = await connection.fetchval(clock)
            await store.add(asked())
            read = (await store.read(CHAT)).now
            (entry,) = await store.audit(CHAT)
            assert before <= entry.at <= read <= await connection.fetchval(clock)
        await store.aclose()


async def test_the_time_of_sqlite_is_the_epochs_to_the_millisecond() -> None:
    with sqlite_url() as url:
        store = SqlStore(url)
        await store.add(asked())
        before = time.time()
        now = (await store.read(CHAT)).now
        assert before - 0.002 <= now <= time.time() + 0.002
        await store.aclose()
