"""`advance` on every store: it moves a call or says why not, and whoever was overtaken is told what counts."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adk_stream_protocol.protocol.approvals import CallKey, ChatKey, NotAllowed, State, claim, decide, expire, start
from adk_stream_protocol.store.base import Snapshot, Store, advance
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, approve, asked, deny, states, trail
from support.conversations import run


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


def test_whoever_was_overtaken_is_told_the_recorded_outcome(stores: Stores, clock: Clock) -> None:
    async def scenario() -> None:
        async with stores.open(clock) as store:
            await store.add(asked())
            slower: Any = Overtaken(store, lambda: advance(store, CHAT, asked().call, deny))
            clock.now = 1001.0
            told = await advance(slower, CHAT, asked().call, approve)
            assert (told.state, told.reason) == (State.DENIED, "too much")
            assert [told] == (await store.read(CHAT)).approvals
            assert await trail(store) == ["pending", "denied"]

    run(scenario)


def test_a_move_gets_the_stores_time(stores: Stores, clock: Clock) -> None:
    async def scenario() -> None:
        async with stores.open(clock) as store:
            await store.add(asked("in time", deadline=1010.0))
            await store.add(asked("late", deadline=1010.0))
            clock.now = 1009.999
            assert (await advance(store, CHAT, asked("in time").call, approve)).decided_at == 1009.999
            clock.now = 1010.0
            assert (await advance(store, CHAT, asked("late").call, approve)).state is State.EXPIRED
            assert await states(store) == ["approved", "expired"]

    run(scenario)


def test_a_move_that_changes_nothing_is_not_written(stores: Stores, clock: Clock) -> None:
    async def scenario() -> None:
        async with stores.open(clock) as store:
            await store.add(asked(deadline=2000.0))
            same = await advance(store, CHAT, asked().call, lambda approval, now: expire(approval, now=now))
            assert same == asked(deadline=2000.0)
            assert await trail(store) == ["pending"]

    run(scenario)


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(lambda approval, now: decide(approval, by="bob", approved=True, now=now), id="somebody else"),
        pytest.param(lambda approval, now: claim(approval, digest=approval.digest, run="r"), id="not approved"),
        pytest.param(lambda approval, now: start(approval, run="r"), id="not the holder"),
    ],
)
def test_a_move_that_the_table_forbids_leaves_the_call_alone(stores: Stores, clock: Clock, move: Any) -> None:
    async def scenario() -> None:
        async with stores.open(clock) as store:
            await store.add(asked())
            with pytest.raises(NotAllowed):
                await advance(store, CHAT, asked().call, move)
            assert (await store.read(CHAT)).approvals == [asked()]
            assert await trail(store) == ["pending"]

    run(scenario)


def test_an_unknown_call_is_not_moved(stores: Stores, clock: Clock) -> None:
    async def scenario() -> None:
        async with stores.open(clock) as store:
            await store.add(asked())
            with pytest.raises(NotAllowed, match="unknown call"):
                await advance(store, CHAT, CallKey("inv-1", "invented"), approve)
            with pytest.raises(NotAllowed, match="unknown call"):
                await advance(store, OTHER_CHAT, asked().call, approve)

    run(scenario)
