"""A run in one write per step: it takes its chat, moves its calls, marks what was delivered, and lets go."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, Pool, event

from adk_stream_protocol.protocol.call_record import (
    CallKey,
    CallRecord,
    NotAllowed,
    State,
    claim,
    expire,
    finish,
    lose_run,
    start,
)
from adk_stream_protocol.store.base import Acquired, Lease, Store, advance
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, approve, asked, deny, held, states, trail

# -- taking a chat ----------------------------------------------------------------------------------------------------


async def test_whoever_asks_for_a_chat_is_shown_its_calls_and_the_time_also_if_it_is_held(
    stores: Stores, clock: Clock
) -> None:
    calls = [asked("call-1"), asked("call-2")]

    async with stores.open(clock) as store:
        for approval in [*calls, asked(chat=OTHER_CHAT)]:
            await store.add(approval)
        first = await store.acquire(CHAT, 10)
        assert first.lease is not None
        assert first == Acquired(Lease(CHAT, first.lease.token), await store.read(CHAT))
        assert first.snapshot.records == calls
        clock.now = 1001.5
        second = await store.acquire(CHAT, 10)
        assert second.lease is None
        assert (second.snapshot.records, second.snapshot.now) == (calls, 1001.5)
        assert await store.renew(first.lease, 10)


@pytest.mark.parametrize("is_free", [True, False], ids=["free", "held"])
async def test_what_is_to_change_is_written_also_if_the_chat_is_held(
    stores: Stores, clock: Clock, is_free: bool
) -> None:
    async with stores.open(clock) as store:
        for name in ("call-1", "call-2", "call-3"):
            await store.add(asked(name))
        if not is_free:
            await held(store)
        clock.now = 1001.0
        first, third = approve(asked("call-1"), 1001.0), deny(asked("call-3"), 1001.0)
        got = await store.acquire(CHAT, 10, [(asked("call-1"), first), (asked("call-3"), third)])
        assert (got.lease is not None) is is_free
        assert got.snapshot == await store.read(CHAT)
        assert got.snapshot.records == [first, asked("call-2"), third]
        assert sorted((await trail(store))[3:]) == ["approved", "denied"]
        assert (await store.audit(CHAT))[-1].at == 1001.0


async def test_a_change_that_somebody_has_overtaken_is_left_out_and_the_others_are_not(
    stores: Stores, clock: Clock
) -> None:
    async with stores.open(clock) as store:
        for name in ("call-1", "call-2"):
            await store.add(asked(name))
        denied = deny(asked("call-1"), 1000.5)
        await store.compare_and_set(asked("call-1"), denied)
        names = ("call-1", "never asked", "call-2")
        got = await store.acquire(CHAT, 10, [(asked(name), approve(asked(name), 1001.0)) for name in names])
        assert got.lease is not None
        assert got.snapshot.records == [denied, approve(asked("call-2"), 1001.0)]
        assert await trail(store) == ["pending", "pending", "denied", "approved"]


async def test_whoever_takes_the_chat_sees_what_it_has_changed_itself(stores: Stores, clock: Clock) -> None:
    late = asked(deadline=1005.0)

    async with stores.open(clock) as store:
        await store.add(late)
        clock.now = 1005.0
        got = await store.acquire(CHAT, 10, [(late, expire(late, now=clock.now))])
        assert [each.state for each in got.snapshot.records] == [State.EXPIRED]


# -- several moves in one write ---------------------------------------------------------------------------------------


def taken_up(approved: CallRecord, token: str) -> tuple[CallRecord, CallRecord]:
    claimed = claim(approved, digest=approved.digest, lease_token=token)
    return claimed, start(claimed, lease_token=token)


async def test_several_steps_are_one_write_and_a_line_of_the_trail_each(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        approved = approve(asked(), 1000.0)
        await store.compare_and_set(asked(), approved)
        lease = await held(store)
        claimed, started = taken_up(approved, lease.token)
        assert await store.compare_and_set(approved, claimed, started, lease=lease)
        assert (await store.read(CHAT)).records == [started]
        assert started.version == 3
        entries = await store.audit(CHAT)
        assert [entry.state for entry in entries] == ["pending", "approved", "claimed", "started"]
        assert [entry.by for entry in entries[2:]] == [lease.token, lease.token]


async def test_of_several_steps_none_is_written_by_who_came_second_or_lost_the_chat(
    stores: Stores, clock: Clock
) -> None:
    async with stores.open(clock) as store:
        approved = approve(asked(), 1000.0)
        await store.add(approved)
        lease = await held(store)
        other = await held(store, OTHER_CHAT)
        steps = taken_up(approved, lease.token)
        assert not await store.compare_and_set(asked(), *steps, lease=lease)
        assert not await store.compare_and_set(approved, *steps, lease=other)
        clock.now += 10
        assert not await store.compare_and_set(approved, *steps, lease=lease)
        assert (await store.read(CHAT)).records == [approved]
        assert await trail(store) == ["approved"]


async def test_of_the_old_and_the_new_holder_only_the_new_one_starts_the_tool(stores: Stores, clock: Clock) -> None:
    """The old one was only slow: it wakes up after its call was handed on."""
    async with stores.open(clock) as store:
        call = asked().call
        await store.add(asked(state=State.APPROVED, approved=True, decided_at=1000.0, decided_by="ann"))
        old = await held(store)
        await advance(store, CHAT, call, lambda it, now: claim(it, digest=it.digest, lease_token=old.token), lease=old)
        clock.now += 10
        new = await held(store)
        await advance(store, CHAT, call, lambda it, now: lose_run(it, living_run=new.token), lease=new)
        await advance(store, CHAT, call, lambda it, now: claim(it, digest=it.digest, lease_token=new.token), lease=new)
        with pytest.raises(NotAllowed):
            await advance(store, CHAT, call, lambda it, now: start(it, lease_token=old.token), lease=old)
        await advance(store, CHAT, call, lambda it, now: start(it, lease_token=new.token), lease=new)
        await advance(store, CHAT, call, lambda it, now: finish(it, lease_token=new.token, result=1), lease=new)
        assert [entry.state for entry in await store.audit(CHAT)].count("started") == 1


# -- what was delivered -----------------------------------------------------------------------------------------------


async def marks(store: Store) -> list[bool | None]:
    return [approval.delivered for approval in (await store.read(CHAT)).records]


@pytest.mark.parametrize("given", [True, False, None])
async def test_a_new_call_is_not_delivered_and_no_move_says_otherwise(
    stores: Stores, clock: Clock, given: bool | None
) -> None:
    new = asked(delivered=given)

    async with stores.open(clock) as store:
        await store.add(new)
        assert await marks(store) == [False]
        assert await store.compare_and_set(new, approve(new, 1001.0))
        assert await marks(store) == [False]
        await store.acquire(CHAT, 10, [(new, deny(new, 1001.0))])
        assert await marks(store) == [False]


@pytest.mark.parametrize("given", [False, None])
async def test_what_was_delivered_stays_so_whatever_is_written_later(
    stores: Stores, clock: Clock, given: bool | None
) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        await store.release(await held(store), [asked().call])
        assert await marks(store) == [True]
        copy = asked(delivered=given)  # a mark is no move: who has read the call before may still move it
        approved = approve(copy, 1001.0)
        assert await store.compare_and_set(copy, approved)
        await store.acquire(CHAT, 10, [(approved, msgspec.structs.replace(approved, version=2))])
        assert await marks(store) == [True]
        assert await trail(store) == ["pending", "approved", "approved"]


async def test_only_the_calls_that_were_delivered_are_marked(stores: Stores, clock: Clock) -> None:
    keys = [asked(name).call for name in ("call-1", "call-3")]

    async with stores.open(clock) as store:
        for name in ("call-1", "call-2", "call-3"):
            await store.add(asked(name))
            await store.add(asked(name, chat=OTHER_CHAT))
        lease = await held(store)
        await store.release(lease, [*keys, CallKey("inv-2", "call-2"), CallKey("inv-1", "never asked")])
        assert await marks(store) == [True, False, True]
        assert not any(approval.delivered for approval in (await store.read(OTHER_CHAT)).records)
        assert await states(store) == ["pending"] * 3
        assert await trail(store) == ["pending"] * 3
        assert not await store.renew(lease, 10)


async def test_who_has_lost_the_chat_marks_what_it_delivered_and_gives_nothing_back(
    stores: Stores, clock: Clock
) -> None:
    async with stores.open(clock) as store:
        for name in ("call-1", "call-2"):
            await store.add(asked(name))
        lost = await held(store)
        clock.now += 10
        holder = await held(store)
        await store.release(lost, {asked("call-2").call})
        assert await marks(store) == [False, True]
        assert await store.renew(holder, 10)
        await store.release(holder, (asked("call-1").call,))
        assert await marks(store) == [True, True]
        assert not await store.renew(holder, 10)


# -- one transaction --------------------------------------------------------------------------------------------------

ONE_TRANSACTION: dict[str, Callable[[Store, Lease], Awaitable[Any]]] = {
    "acquire": lambda store, _: store.acquire(OTHER_CHAT, 10),
    "acquire with changes": lambda store, _: store.acquire(
        CHAT, 10, [(asked(name), approve(asked(name), 1001.0)) for name in ("call-1", "call-2", "call-3")]
    ),
    "compare and set": lambda store, lease: store.compare_and_set(
        asked(), approve(asked(), 1001.0), *taken_up(approve(asked(), 1001.0), "run"), lease=lease
    ),
    "release": lambda store, lease: store.release(lease, [asked("call-1").call, asked("call-2").call]),
    "forget": lambda store, lease: store.forget(lease),
}


@pytest.mark.parametrize("name", ONE_TRANSACTION)
async def test_each_step_of_a_run_is_one_transaction_on_one_connection(
    databases: Stores, clock: Clock, name: str
) -> None:
    seen: list[str] = []

    def note_statement(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        seen.extend([statement] if statement.startswith("BEGIN") else [])

    watched: list[tuple[Any, str, Any]] = [
        (Pool, "checkout", lambda *_: seen.append("checkout")),
        (Engine, "commit", lambda *_: seen.append("commit")),
        (Engine, "rollback", lambda *_: seen.append("rollback")),
        (Engine, "before_cursor_execute", note_statement),
    ]

    async with databases.open(clock) as store:
        for call in ("call-1", "call-2", "call-3"):
            await store.add(asked(call))
        lease = await held(store)
        for target, what, listener in watched:
            event.listen(target, what, listener)
        try:
            result = await ONE_TRANSACTION[name](store, lease)
        finally:
            for target, what, listener in watched:
                event.remove(target, what, listener)
        assert result is not False
    begun = ["BEGIN IMMEDIATE"] if databases.url.startswith("sqlite") else []
    assert seen == ["checkout", *begun, "commit"]
