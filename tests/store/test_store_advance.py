"""`advance` on every store: it moves a call or says why not, and whoever was overtaken is told what counts."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adk_stream_protocol.protocol.call_record import CallKey, ChatKey, NotAllowed, State, claim, decide, expire, start
from adk_stream_protocol.store.base import Snapshot, Step, Store, advance
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, approve, asked, deny, states, trail


class Overtaken:
    """A store in which somebody is faster, once, between a read and what follows it."""

    def __init__(self, store: Store, faster: Callable[[], Awaitable[Any]]) -> None:
        self._store = store
        self._faster = [faster]

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        snapshot = await self._store.read(chat, call)
        while self._faster:
            await self._faster.pop()()
        return snapshot

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_whoever_was_overtaken_is_told_the_recorded_outcome(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        slower: Any = Overtaken(store, lambda: advance(store, CHAT, asked().call, deny))
        clock.now = 1001.0
        told = await advance(slower, CHAT, asked().call, approve)
        assert (told.state, told.reason) == (State.DENIED, "too much")
        assert [told] == (await store.read(CHAT)).records
        assert await trail(store) == ["pending", "denied"]


async def test_a_move_gets_the_stores_time(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked("in time", deadline=1010.0))
        await store.add(asked("late", deadline=1010.0))
        clock.now = 1009.999
        assert (await advance(store, CHAT, asked("in time").call, approve)).decided_at == 1009.999
        clock.now = 1010.0
        assert (await advance(store, CHAT, asked("late").call, approve)).state is State.EXPIRED
        assert await states(store) == ["approved", "expired"]


async def test_a_move_that_changes_nothing_is_not_written(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked(deadline=2000.0))
        same = await advance(store, CHAT, asked().call, lambda approval, now: expire(approval, now=now))
        assert same == asked(deadline=2000.0)
        assert await trail(store) == ["pending"]


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(lambda approval, now: decide(approval, by="bob", approved=True, now=now), id="somebody else"),
        pytest.param(lambda approval, now: claim(approval, digest=approval.digest, lease_token="r"), id="not approved"),
        pytest.param(lambda approval, now: start(approval, lease_token="r"), id="not the holder"),
    ],
)
async def test_a_move_that_the_table_forbids_leaves_the_call_alone(stores: Stores, clock: Clock, move: Any) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        with pytest.raises(NotAllowed):
            await advance(store, CHAT, asked().call, move)
        assert (await store.read(CHAT)).records == [asked()]
        assert await trail(store) == ["pending"]


async def test_an_unknown_call_is_not_moved(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        with pytest.raises(NotAllowed, match="unknown call"):
            await advance(store, CHAT, CallKey("inv-1", "invented"), approve)
        with pytest.raises(NotAllowed, match="unknown call"):
            await advance(store, OTHER_CHAT, asked().call, approve)


# -- several moves, and what is known already -------------------------------------------------------------------------


class CountingReads:
    """A store that counts how often it is read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        self.reads += 1
        return await self._store.read(chat, call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def taking_up(token: str) -> list[Step]:
    return [
        lambda found, _: claim(found, digest=found.digest, lease_token=token),
        lambda found, _: start(found, lease_token=token),
    ]


async def test_several_moves_are_made_in_one_write_or_not_at_all(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        with pytest.raises(NotAllowed, match="claim while pending"):
            await advance(store, CHAT, asked().call, *taking_up("run"))
        assert await trail(store) == ["pending"]
        started = await advance(store, CHAT, asked().call, approve, *taking_up("run"))
        assert (started.state, started.lease_token, started.version) == (State.STARTED, "run", 3)
        assert (await store.read(CHAT)).records == [started]
        assert await trail(store) == ["pending", "approved", "claimed", "started"]


async def test_a_move_of_several_that_changes_nothing_leaves_no_trace(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked(deadline=2000.0))
        moved = await advance(store, CHAT, asked().call, lambda found, now: expire(found, now=now), approve, approve)
        assert (moved.state, moved.version) == (State.APPROVED, 1)
        assert await trail(store) == ["pending", "approved"]


async def test_what_is_known_is_not_read_again(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        lease, known = await store.acquire(CHAT, 10)
        counting: Any = CountingReads(store)
        clock.now = 1005.0
        moved = await advance(counting, CHAT, asked().call, approve, lease=lease, known=known)
        assert moved.decided_at == 1000.0  # when it was read
        assert await states(store) == ["approved"]
        assert counting.reads == 0


async def test_what_is_not_among_the_known_is_read(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        known = await store.read(CHAT)
        await store.add(asked())
        assert (await advance(store, CHAT, asked().call, approve, known=known)).state is State.APPROVED
        with pytest.raises(NotAllowed, match="unknown call"):
            await advance(store, CHAT, asked("invented").call, approve, known=known)


async def test_what_is_known_and_was_overtaken_is_read_once_more(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        known = await store.read(CHAT)
        await advance(store, CHAT, asked().call, deny)
        counting: Any = CountingReads(store)
        assert (await advance(counting, CHAT, asked().call, approve, known=known)).state is State.DENIED
        assert counting.reads == 1
        assert await trail(store) == ["pending", "denied"]


async def test_nobody_is_refused_for_what_was_so_before(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        known = await store.read(CHAT)
        await advance(store, CHAT, asked().call, approve)
        started = await advance(store, CHAT, asked().call, *taking_up("run"), known=known)
        assert started.state is State.STARTED
        with pytest.raises(NotAllowed, match="claim while started"):
            await advance(store, CHAT, asked().call, *taking_up("run"), known=await store.read(CHAT))


async def test_who_lost_the_chat_is_told_so_also_of_what_was_known(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        lease, known = await store.acquire(CHAT, 10)
        clock.now += 10
        with pytest.raises(NotAllowed, match="the lease is gone"):
            await advance(store, CHAT, asked().call, approve, lease=lease, known=known)
        assert await states(store) == ["pending"]
