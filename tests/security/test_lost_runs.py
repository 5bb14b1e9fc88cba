"""Bridges look for approved calls that nobody runs. They must not find what a person has stopped, and not be held up
by what cannot be done."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallRecord, State
from adk_stream_protocol.store.base import advance
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from security.bank import Asked, Bank
from support.asgi import exchange

LEASE_S = 10.0


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class SlowStore(MemoryStore):
    """Stands still before one move of a call's, as a database in trouble does."""

    def __init__(self, clock: Clock, before: State) -> None:
        super().__init__(clock=clock)
        self._before = before
        self.is_reached = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def compare_and_set(self, old: CallRecord, *new: Any, **options: Any) -> bool:
        if any(isinstance(step, CallRecord) and step.state is self._before for step in new):
            self.is_reached.set()
            await self.goes_on.wait()
        return await super().compare_and_set(old, *new, **options)


async def look_for_lost_runs(bridge: ChatBridge, asked: Asked, clock: Clock) -> None:
    clock.now += LEASE_S + 1
    await bridge.recover()
    while bridge._service.running("ann", asked.chat_id) is not None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("before", [State.CLAIMED, State.STARTED])
async def test_what_was_stopped_before_it_began_is_not_done_later(before: State) -> None:
    clock = Clock()
    store = SlowStore(clock, before)
    bank = Bank([call("pay", amount=1, to="Hanako")], "Stopped.", "Fine.", "Fine.", store=store)
    asked = await bank.asks()
    approving = asyncio.create_task(asked.client.approve(asked.answer))
    await store.is_reached.wait()
    assert (await exchange(bank.app, path=f"/api/chat/{asked.chat_id}/stop")).status == 204
    store.goes_on.set()
    assert (await approving).chunks[-1]["type"] == "abort"
    await look_for_lost_runs(bank.bridge, asked, clock)
    await asked.client.send("And now?")
    await look_for_lost_runs(bank.bridge, asked, clock)
    await asked.client.approve(asked.answer)
    assert bank.runs == []


@asynccontextmanager
async def left_behind(*amounts: int) -> AsyncGenerator[tuple[Bank, list[Asked], Clock]]:
    """Payments that were approved by a worker which died then and there."""
    clock = Clock()
    asking = [[call("pay", amount=amount, to="Hanako")] for amount in amounts]
    bank = Bank(*asking, *["Paid."] * len(amounts), store=MemoryStore(clock=clock))
    chats = [await bank.asks() for _ in amounts]
    for asked in chats:
        (pending,) = (await bank.store.read(asked.chat)).records
        await advance(
            bank.store,
            asked.chat,
            pending.call,
            lambda found, now: call_record.decide(found, by="ann", approved=True, now=now),
        )
    yield bank, chats, clock


async def test_what_was_left_behind_is_done_once() -> None:
    async with left_behind(1, 2) as (bank, chats, clock):
        for _ in range(3):
            for asked in chats:
                await look_for_lost_runs(bank.bridge, asked, clock)
        assert sorted(bank.runs) == [("pay", 1, "Hanako"), ("pay", 2, "Hanako")]


class OneBrokenSession(InMemorySessionService):
    broken: str | None = None

    async def get_session(self, *, session_id: str, **others: Any) -> Any:
        if session_id == self.broken:
            raise RuntimeError("this row cannot be read")
        return await super().get_session(session_id=session_id, **others)


@pytest.mark.parametrize("broken", [0, 1])
async def test_one_chat_that_cannot_be_read_keeps_no_other_waiting(broken: int) -> None:
    async with left_behind(1, 2) as (bank, chats, clock):
        sessions = OneBrokenSession()
        sessions.sessions, sessions.broken = bank.sessions.sessions, chats[broken].chat_id
        bridge = bank.bridge_with([bank.gated_pay()], session_service=sessions)
        await look_for_lost_runs(bridge, chats[1 - broken], clock)
        assert bank.runs == [("pay", 2 - broken, "Hanako")]


async def test_what_cannot_be_done_is_not_tried_for_ever() -> None:
    """Its tool is gone with the last release, say. Every try is written into the session."""
    async with left_behind(1) as (bank, (asked,), clock):
        bridge = bank.bridge_with([bank.balance], limits=Limits(lease_s=LEASE_S))
        for _ in range(50):
            await look_for_lost_runs(bridge, asked, clock)
        session = await bank.sessions.get_session(app_name="bank", user_id="ann", session_id=asked.chat_id)
        assert session
        answers = [event for event in session.events if event.author == "user" and event.get_function_responses()]
        assert len(answers) < 10
