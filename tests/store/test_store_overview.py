"""What a list of chats asks of a store: titles, and whether somebody is waited for; and results only when asked for."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import make_url

from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_keys import work_key
from adk_stream_protocol.protocol.call_record import (
    CallKey,
    CallRecord,
    ChatKey,
    State,
    complete,
    decide,
    report,
    take_output,
)
from adk_stream_protocol.store.base import Listed, Store, advance, load_results
from adk_stream_protocol.store.tables import chat_text
from store.old_worker import old_worker
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, asked, deny, held, postgres_connection

WHERE: dict[str, Any] = {"executor": "browser", "tool": "where"}
OPEN_FOR_BROWSER: dict[str, Any] = {**WHERE, "state": State.APPROVED}


async def listed(store: Store, chat: ChatKey = CHAT) -> Listed:
    return (await store.overview([chat]))[chat]


async def done(store: Store, call_id: str, result: Any) -> CallRecord:
    """A browser's call with its output, which the session has."""
    await store.add(asked(call_id, **OPEN_FOR_BROWSER))
    lease = await held(store)
    ended = await advance(
        store,
        CHAT,
        CallKey("inv-1", call_id),
        lambda found, now: take_output(found, by="ann", result=result, now=now),
    )
    await store.release(lease, [ended.call])
    return ended


# -- titles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("title", ["Hello", "", "a\u0000b", "漢字 👩‍👩‍👧 ' \" \\ %s :x ?"])
async def test_a_title_is_kept_with_the_release(stores: Stores, clock: Clock, title: str) -> None:
    async with stores.open(clock) as store:
        assert await store.overview([CHAT, OTHER_CHAT]) == {CHAT: Listed(), OTHER_CHAT: Listed()}
        await store.release(await held(store), title=title)
        assert await store.overview([CHAT, OTHER_CHAT]) == {CHAT: Listed(title), OTHER_CHAT: Listed()}
        await store.release(await held(store))
        assert (await listed(store)).title == title
        await store.release(await held(store), title="edited")
        assert (await listed(store)).title == "edited"


async def test_whoever_has_lost_the_chat_gives_it_no_title(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lost = await held(store)
        clock.now += 10
        lease = await held(store)
        await store.release(lost, title="late")
        assert await listed(store) == Listed()
        await store.release(lease, title="in time")
        assert (await listed(store)).title == "in time"


async def test_a_title_that_is_found_later_replaces_none(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        assert await store.keep_title(CHAT, "found")
        assert not await store.keep_title(CHAT, "found")
        assert not await store.keep_title(CHAT, "found again")
        assert (await listed(store)).title == "found"
        await store.release(await held(store), title="edited")
        assert not await store.keep_title(CHAT, "found")
        assert (await listed(store)).title == "edited"


async def test_a_forgotten_chat_has_no_title_and_gets_none_from_who_is_late(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for _ in range(2):  # it may be begun anew under its id
            await store.add(asked())
            await store.release(await held(store), title="secret")
            assert await listed(store) == Listed("secret", is_waiting=True)
            lease = await held(store)
            assert await store.forget(lease)
            assert await listed(store) == Listed()
            assert not await store.keep_title(CHAT, "secret")
            assert await listed(store) == Listed()
            await store.release(lease)


async def test_titles_of_chats_that_look_alike_are_told_apart(stores: Stores, clock: Clock) -> None:
    chats = [
        ChatKey("app", "ann", "c1"),
        ChatKey("app", "Ann", "c1"),
        ChatKey("app", "ann", "%"),
        ChatKey("a", "b", ""),
    ]

    async with stores.open(clock) as store:
        for place, chat in enumerate(chats):
            await store.release(await held(store, chat), title=str(place))
        assert await store.overview(chats) == {chat: Listed(str(place)) for place, chat in enumerate(chats)}
        assert await store.overview([]) == {}


# -- who is waited for ------------------------------------------------------------------------------------------------


def denied(found: CallRecord) -> CallRecord:
    return deny(found, 1000.0)


def approved(found: CallRecord) -> CallRecord:
    return decide(found, by="ann", approved=True, now=1000.0, browser_s=60)


def answered(found: CallRecord) -> CallRecord:
    return take_output(approved(found), by="ann", result={"output": 1}, now=1000.0)


def as_it_is(found: CallRecord) -> CallRecord:
    return found


OPEN = (State.PENDING, State.IN_CHAIN, State.APPROVED)

CHAINED: dict[str, Any] = {"state": State.IN_CHAIN, "chain": (ChainLink(approvers=("eva",)),)}

# what was asked, what became of it, and how long it waits: for ever, never, or until then
WAITING: dict[str, tuple[dict[str, Any], Callable[[CallRecord], CallRecord], float | None]] = {
    "a question": ({}, as_it_is, None),
    "a question with a deadline": ({"deadline": 1600.0, "browser_deadline": 5.0}, as_it_is, 1600.0),
    "a question that is denied": ({"deadline": 1600.0}, denied, 0),
    "a question that is approved: the server's turn": ({"deadline": 1600.0}, approved, 0),
    "a link of a chain": ({**CHAINED, "deadline": 1600.0}, as_it_is, 1600.0),
    "a link of a chain without a deadline": (CHAINED, as_it_is, None),
    "a browser's call": (OPEN_FOR_BROWSER, as_it_is, None),
    "a browser's call with a deadline": ({**OPEN_FOR_BROWSER, "browser_deadline": 1060.0}, as_it_is, 1060.0),
    "a browser's question": ({**WHERE, "deadline": 1600.0}, as_it_is, 1600.0),
    "a browser's question that is approved": ({**WHERE, "deadline": 1600.0}, approved, 1060.0),
    "a browser's question that is answered": ({**WHERE, "deadline": 1600.0}, answered, 0),
    "a state of a later version": ({"state": State.UNRECOGNIZED}, as_it_is, 0),
    **{f"a call that is {state}": ({"state": state}, as_it_is, 0) for state in State if state not in OPEN},
}


@pytest.mark.parametrize("kind", WAITING)
async def test_a_chat_waits_as_long_as_a_call_of_its_does(stores: Stores, clock: Clock, kind: str) -> None:
    fields, move, until = WAITING[kind]
    times = [1000.0, 1059.0, 1060.0, 1599.0, 1600.0, 1e9]

    async with stores.open(clock) as store:
        await store.add(asked(**fields))
        await advance(store, CHAT, CallKey("inv-1", "call-1"), lambda found, _: move(found))
        for clock.now in times:
            assert (await listed(store)).is_waiting is (until is None or clock.now < until)
        assert not (await listed(store, OTHER_CHAT)).is_waiting


async def test_work_that_goes_on_waits_for_nobody_and_is_kept_with_its_progress(stores: Stores, clock: Clock) -> None:
    key = work_key(CallKey("inv-1", "call-1"))
    async with stores.open(clock) as store:
        await store.add(asked(call=key, **OPEN_FOR_BROWSER))
        assert not (await listed(store)).is_waiting
        await advance(store, CHAT, key, lambda found, _: report(found, output={"percent": 10}))
        assert not (await listed(store)).is_waiting
        assert [record.result for record in (await store.read(CHAT)).records] == [{"output": {"percent": 10}}]
        await advance(store, CHAT, key, lambda found, _: complete(found, result={"output": 1}))
        assert [record.state for record in (await store.read(CHAT)).records] == [State.DONE]


async def test_what_a_worker_of_an_older_version_asks_and_moves_waits_by_its_record(
    databases: Stores, clock: Clock
) -> None:
    async with old_worker(databases.url) as old:
        await old.add("call-1")
        async with databases.open(clock) as store:
            assert (await listed(store)).is_waiting
            await old.move("call-1", deadline=1600.0)
            assert (await listed(store)).is_waiting
            clock.now = 1600.0
            assert not (await listed(store)).is_waiting
            await old.move("call-1", state="denied", approved=False)
            # What this version has asked, and the older one moves: the browser has more time than the person had.
            await store.add(asked("call-2", deadline=1700.0, **WHERE))
            clock.now = 1800.0
            assert not (await listed(store)).is_waiting
            await old.move("call-2", state="approved", approved=True, browser_deadline=1900.0)
            assert (await listed(store)).is_waiting
            clock.now = 1900.0
            assert not (await listed(store)).is_waiting
            await old.move("call-2", state="done", result={"output": 1})
            clock.now = 1000.0
            assert not (await listed(store)).is_waiting


async def test_the_calls_that_wait_are_found_by_an_index_of_their_own(databases: Stores, clock: Clock) -> None:
    query = (
        "SELECT due_at FROM adk_stream_approvals"
        f" WHERE chat IN ('{chat_text(CHAT)}') AND state IN ('pending', 'approved') AND (due_at IS NULL OR due_at > 5)"
    )

    async with databases.open(clock) as store:
        await store.add(asked())
        assert (await listed(store)).is_waiting
    if databases.url.startswith("sqlite"):
        with closing(sqlite3.connect(make_url(databases.url).database or "")) as file:
            plan = str(file.execute(f"EXPLAIN QUERY PLAN {query}").fetchall())
    else:
        async with postgres_connection(databases.url) as connection:
            await connection.execute("SET enable_seqscan = off")
            plan = str(await connection.fetch(f"EXPLAIN {query}"))
    assert "adk_stream_open" in plan


# -- results ----------------------------------------------------------------------------------------------------------


async def test_a_result_is_read_with_its_chat_until_it_is_delivered(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        ended = await done(store, "call-1", {"output": "x" * 1000})
        await store.add(asked("call-2", **OPEN_FOR_BROWSER))
        await advance(store, CHAT, CallKey("inv-1", "call-2"), lambda found, _: answered(found))
        for found in (await store.read(CHAT), (await store.acquire(CHAT, 10)).snapshot):
            first, second = found.records
            assert (first.state, first.result, first.delivered) == (State.DONE, None, True)
            assert first.lacks_result
            assert (second.result, second.delivered) == ({"output": 1}, False)
            assert not second.lacks_result
        (alone,) = (await store.read(CHAT, ended.call)).records
        assert (alone.result, alone.delivered) == (ended.result, True)


async def test_results_are_read_by_their_calls(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        ended = [await done(store, f"call-{number}", {"output": number}) for number in range(4)]
        calls = [each.call for each in ended]
        assert await store.results(CHAT, calls[1:3]) == {calls[1]: {"output": 1}, calls[2]: {"output": 2}}
        assert await store.results(OTHER_CHAT, calls) == {}
        assert await store.results(CHAT, []) == {}
        records = {found.call: found for found in (await store.read(CHAT)).records}
        await load_results(store, CHAT, records, [*calls[:2], CallKey("inv-1", "unknown")])
        assert [records[call].result for call in calls] == [{"output": 0}, {"output": 1}, None, None]


async def test_a_worker_of_an_older_version_finds_results_where_it_looks_for_them(
    databases: Stores, clock: Clock
) -> None:
    async with databases.open(clock) as store, old_worker(databases.url) as old:
        await done(store, "call-1", {"output": "mine"})
        assert (await old.read("call-1"))["result"] == {"output": "mine"}


async def test_results_of_older_versions_are_left_out_too_and_read_once_more(databases: Stores, clock: Clock) -> None:
    large = {"output": "x" * 5000}

    async with old_worker(databases.url) as old:
        await old.add("call-1")
        await old.move("call-1", state="done", result=large)
        async with databases.open(clock) as store:
            (found,) = (await store.read(CHAT)).records
            assert (found.result, found.delivered) == (large, None)
            await store.release(await held(store), [found.call])
            assert (await store.read(CHAT)).records[0].lacks_result
            await store.release(await held(store))
            assert await brief_sizes(databases.url) == [True]
            assert (await store.read(CHAT)).records[0].lacks_result
            assert await store.results(CHAT, [found.call]) == {found.call: large}
            assert (await old.read("call-1"))["result"] == large


async def brief_sizes(url: str) -> list[bool]:
    """Whether what is read of each call is short."""
    query = "SELECT length(brief) < 1000 FROM adk_stream_approvals"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(make_url(url).database or "")) as file:
            return [bool(row[0]) for row in file.execute(query).fetchall()]
    async with postgres_connection(url) as connection:
        return [row[0] for row in await connection.fetch(query)]
