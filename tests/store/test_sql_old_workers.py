"""Tables of an older version, and its workers beside those of this one, as while a deployment is replaced."""

import asyncio
from typing import Any

import msgspec
from sqlalchemy import inspect, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.protocol.call_record import CallRecord, State, claim, finish, start
from adk_stream_protocol.store.base import advance
from adk_stream_protocol.store.sql import SqlStore
from store.old_worker import FIELDS, old_worker
from store.stores import CHAT, Clock, Stores, approve, asked, held, trail

KEPT_WITH_THE_QUESTION: dict[str, Any] = {
    "message_id": "message-1",
    "prepared": {"model": "large"},
    "asked_payload": {"limit": None},
    "question_id": "adk-1",
    "card": {"title": "Pay?"},
    "edits": {"type": "object"},
    "sdk_version": 6,
    "is_nested": True,
    "made_in": {"agent": "payer", "outer": None, "outlives": False},
}
"""What an old worker drops when it moves a call that waits for the chat's owner."""


async def columns_of(url: str) -> list[str]:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        found = await connection.run_sync(lambda sync: inspect(sync).get_columns("adk_stream_approvals"))
    await engine.dispose()
    return [column["name"] for column in found]


async def tables_of(url: str) -> list[str]:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        found = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
    await engine.dispose()
    return found


async def all_of(url: str, columns: str) -> list[Any]:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        rows = await connection.execute(text(f"SELECT {columns} FROM adk_stream_approvals ORDER BY id"))
        found = [tuple(row) for row in rows]
    await engine.dispose()
    return found


def by_old(call_id: str = "call-1", **fields: Any) -> CallRecord:
    """A call that a worker of the older version has asked about: nothing says whether its outcome was delivered."""
    return asked(call_id, **{"delivered": None, **fields})


async def test_a_table_of_an_older_version_gets_the_columns_and_keeps_its_rows(databases: Stores, clock: Clock) -> None:
    everything = "id, chat, call, state, runs, decided_at, version, record"

    async with old_worker(databases.url) as old:
        for name in ("call-1", "call-2", "call-3"):
            await old.add(name)
        await old.approve("call-2")
    old_columns = set(await columns_of(databases.url))
    before = await all_of(databases.url, everything)
    async with databases.open(clock) as store:
        calls = (await store.read(CHAT)).records
        assert [(each.state, each.delivered) for each in calls] == [
            ("pending", None),
            ("approved", None),
            ("pending", None),
        ]
        assert calls[0] == by_old()
        assert await trail(store) == ["pending", "pending", "pending", "approved"]
    assert await all_of(databases.url, everything) == before
    assert await all_of(databases.url, "delivered") == [(None,)] * 3
    columns = await columns_of(databases.url)
    assert set(columns) - old_columns == {"delivered", "due_at", "due_version", "asked_as", "brief"}
    assert len(columns) == len(set(columns))
    assert {"adk_stream_waiting", "adk_stream_chats"} <= set(await tables_of(databases.url))


async def test_a_table_that_has_some_of_the_columns_gets_the_others(databases: Stores, clock: Clock) -> None:
    async with old_worker(databases.url) as old:
        await old.add("call-1")
        engine = create_async_engine(databases.url)
        async with engine.begin() as connection:
            await connection.execute(text("ALTER TABLE adk_stream_approvals ADD COLUMN delivered BOOLEAN"))
            await connection.execute(text("UPDATE adk_stream_approvals SET delivered = true"))
        await engine.dispose()
        async with databases.open(clock) as store:
            assert (await store.read(CHAT)).records == [asked(delivered=True)]
            await store.add(asked("call-2", approval_id="adk-2"))
            found = await store.find_asked("app", "adk-2")
            assert [record.call.call_id for record in found.records] == ["call-2"]


def test_of_a_record_an_old_worker_knows_the_fields_that_all_depend_on() -> None:
    """Beside them there are those that it drops, and those of states that it does not know and so does not move."""
    fields = {field.encode_name for field in msgspec.structs.fields(CallRecord)}
    assert fields - set(FIELDS) - KEPT_WITH_THE_QUESTION.keys() == {"delivered", "chain", "replaces"}


async def test_workers_that_start_at_once_on_an_older_table_all_succeed(databases: Stores) -> None:
    async with old_worker(databases.url) as old:
        await old.add("call-1")
        workers = [SqlStore(databases.url) for _ in range(10)]
        try:
            for snapshot in await asyncio.gather(*(worker.read(CHAT) for worker in workers)):
                assert snapshot.records == [by_old()]
            assert (await old.read("call-1"))["state"] == "pending"
        finally:
            for worker in workers:
                await worker.aclose()


async def test_what_an_old_worker_asks_and_moves_is_read_moved_and_marked_by_a_new_one(
    databases: Stores, clock: Clock
) -> None:
    async with old_worker(databases.url) as old:
        await old.add("before")
        await old.read("before")  # its statements are prepared: the table changes under them
        async with databases.open(clock) as store:
            assert (await store.read(CHAT)).records == [by_old("before")]
            await old.add("after")
            await old.approve("after")
            await old.approve("before")
            calls = (await store.read(CHAT)).records
            assert [(each.call.call_id, each.state, each.delivered) for each in calls] == [
                ("before", "approved", None),
                ("after", "approved", None),
            ]
            lease = await held(store)
            done = await advance(
                store,
                CHAT,
                calls[0].call,
                lambda found, _: claim(found, digest=found.digest, lease_token=lease.token),
                lambda found, _: start(found, lease_token=lease.token),
                lambda found, _: finish(found, lease_token=lease.token, result="paid"),
                lease=lease,
                known=await store.read(CHAT),
            )
            assert (done.state, done.delivered) == (State.DONE, None)
            await store.release(lease, [done.call])
            assert [each.delivered for each in (await store.read(CHAT)).records] == [True, None]
            told = await old.read("before")
            assert (told["state"], told["result"], told["version"]) == ("done", "paid", 4)


async def test_what_a_new_worker_asks_is_moved_by_an_old_one_and_keeps_its_mark(
    databases: Stores, clock: Clock
) -> None:
    new = asked(**KEPT_WITH_THE_QUESTION)

    async with databases.open(clock) as store:
        await store.add(new)
        assert (await store.read(CHAT)).records == [new]
        async with old_worker(databases.url) as old:  # which finds the new table when it starts
            assert not (await old.read("call-1")).keys() & {"delivered", *KEPT_WITH_THE_QUESTION}
            await old.approve("call-1")
            (found,) = (await store.read(CHAT)).records
            assert found == approve(asked(), 1001.0)  # what the old worker does not know is gone, but not the mark
            assert found.delivered is False

            lease = await held(store)
            await store.release(lease, [found.call])
            await old.move("call-1", state="claimed", lease_token="old")
            await old.move("call-1", state="started")
            (found,) = (await store.read(CHAT)).records
            assert (found.state, found.version, found.delivered) == (State.STARTED, 3, True)
            assert not await store.compare_and_set(new, approve(new, 1002.0))  # the old worker was first
            assert await trail(store) == ["pending", "approved", "claimed", "started"]

            await old.forget()
            assert (await store.read(CHAT)).records == []


async def test_a_state_of_a_later_version_is_read_marked_and_never_written(databases: Stores, clock: Clock) -> None:
    async with old_worker(databases.url) as later, databases.open(clock) as store:
        await store.add(asked())
        await later.move("call-1", state="postponed")
        (found,) = (await store.read(CHAT)).records
        assert found == asked(state=State.UNRECOGNIZED, version=1)
        assert await advance(store, CHAT, found.call, approve) == found
        lease = await held(store)
        await store.release(lease, [found.call])
        assert (await store.read(CHAT)).records == [msgspec.structs.replace(found, delivered=True)]
        assert (await later.read("call-1"))["state"] == "postponed"
        assert await trail(store) == ["pending", "postponed"]
