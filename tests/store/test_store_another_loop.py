"""The same store in another event loop, with connections of its own: leases are renewed there while the first loop is
busy."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, closing
from typing import Any, TypeVar

import pytest
from sqlalchemy import make_url

from adk_stream_protocol.store.base import Store
from adk_stream_protocol.store.sql import SqlStore
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, asked, held, in_sqlite, lease_of, postgres_connection
from support.databases import postgres_url

_T = TypeVar("_T")


def in_a_thread(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """In a loop of its own. The caller's is blocked meanwhile."""
    results: list[_T] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(work())))
    thread.start()
    thread.join()
    return results[0]


async def test_a_lease_is_renewed_in_another_loop(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        clock.now += 9

        async def renew() -> bool:
            other = store.for_another_loop()
            renewed = await other.renew(lease, 10)
            if other is not store:
                await other.aclose()
            return renewed

        assert in_a_thread(renew)
        clock.now += 9
        assert await lease_of(store) is None
        clock.now += 1
        assert await lease_of(store) is not None
        assert not in_a_thread(renew)


async def test_another_loop_has_all_of_the_store(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:

        async def use() -> Store:
            other = store.for_another_loop()
            assert await other.add(asked())
            assert await lease_of(other, OTHER_CHAT) is not None
            if other is not store:
                await other.aclose()
            return other

        in_a_thread(use)
        assert (await store.read(CHAT)).records == [asked()]
        assert await lease_of(store, OTHER_CHAT) is None
        assert await lease_of(store) is not None  # closing the other one has not closed this one


async def test_another_loop_connects_when_it_has_to() -> None:
    with postgres_url() as url:
        store = SqlStore(url)
        lease = await held(store)
        async with postgres_connection(url) as looking:

            async def connections() -> int:
                return await looking.fetchval(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid()"
                )

            assert await connections() == 1
            other = store.for_another_loop()
            assert await connections() == 1
            assert all(await asyncio.gather(*(other.renew(lease, 10) for _ in range(20))))
            assert 2 <= await connections() <= 3
            await other.aclose()
        await store.aclose()


async def test_another_loop_does_not_wait_for_the_connections_of_the_first(databases: Stores) -> None:
    async with databases.open() as store, AsyncExitStack() as busy:
        lease = await held(store)
        assert isinstance(store, SqlStore)
        for _ in range(15):  # all there are
            await busy.enter_async_context(store._one_statement())  # pyright: ignore[reportPrivateUsage]
        reading = asyncio.create_task(store.read(CHAT))
        other = store.for_another_loop()
        assert await other.renew(lease, 10)
        assert not reading.done()
        await other.aclose()
        await busy.aclose()
        await reading


# -- SQLite: one writer at a time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["the holder", "somebody else"])
async def test_a_holder_that_a_writer_has_kept_from_renewing_comes_first(first: str) -> None:
    """A transaction of whoever shares the file, ADK's sessions say, stands still together with its event loop."""
    for _ in range(3):
        async with AsyncExitStack() as opened:
            url = opened.enter_context(in_sqlite()).url
            here, there = SqlStore(url), SqlStore(url)
            for store in (here, there):
                opened.push_async_callback(store.aclose)
                await store.read(CHAT)
            other = here.for_another_loop()
            opened.push_async_callback(other.aclose)
            file = opened.enter_context(closing(sqlite3.connect(make_url(url).database or "", isolation_level=None)))
            lease = await held(here, lasts_s=0.1)
            file.execute("BEGIN IMMEDIATE")
            if first == "the holder":
                renewing = asyncio.create_task(other.renew(lease, 10))
                await asyncio.sleep(0.5)
                file.execute("COMMIT")
                acquired = await there.acquire(CHAT, 10)
            else:
                acquiring = asyncio.create_task(there.acquire(CHAT, 10))
                await asyncio.sleep(0.5)
                renewing = asyncio.create_task(other.renew(lease, 10))
                await asyncio.sleep(0.05)
                file.execute("COMMIT")
                acquired = await acquiring
            assert (await renewing, acquired.lease) == (True, None)
