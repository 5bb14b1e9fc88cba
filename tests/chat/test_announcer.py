"""The application is notified of calls that wait for somebody."""

import asyncio
from typing import Any

import pytest

from adk_stream_protocol import ChatBridge, WaitingCall
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.approvers import CHAINED, of, until
from support.pages import Clock, Till, page


async def test_the_application_is_told_of_each_link_after_it_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    told: list[WaitingCall] = []

    async def on_waiting(waiting: WaitingCall) -> None:
        told.append(waiting)
        raise RuntimeError("secret")

    options = {**CHAINED, "on_waiting": on_waiting}
    async with page([call("pay", amount=5)], "Paid.", tools=(Till().gated,), **options) as at:
        await at.say("Pay.")
        await until(lambda: len(told) == 1)
        (card,) = await of(at, "max", "managers").inbox()
        assert (told[0].id, told[0].approvers, told[0].link) == (card["id"], ("group:managers",), 0)
        assert (told[0].tool, told[0].arguments, told[0].chat.user_id) == ("pay", {"amount": 5}, "ann")
        assert told[0].digest == card["digest"]
        await of(at, "max", "managers").decide()
        await until(lambda: len(told) == 2)
        assert (told[1].approvers, told[1].link) == (("eva",), 1)
    assert "on_waiting failed" in caplog.text
    assert "secret" not in caplog.text


async def test_it_is_recorded_when_the_application_is_told() -> None:
    listed: list[Any] = []

    async def on_waiting(waiting: WaitingCall) -> None:
        listed.extend(card["id"] for card in await of(at, "max", "managers").inbox() if card["id"] == waiting.id)

    options = {**CHAINED, "on_waiting": on_waiting}
    async with page([call("pay", amount=5)], tools=(Till().gated,), **options) as at:
        await at.say("Pay.")
        await until(lambda: listed)


async def test_what_a_lost_worker_has_not_told_is_told_by_another() -> None:
    told: list[str] = []

    async def on_waiting(waiting: WaitingCall) -> None:
        told.append(waiting.id)

    clock = Clock()
    store = MemoryStore(clock=clock)
    async with page([call("pay", amount=5)], tools=(Till().gated,), record=store, **CHAINED) as at:
        await at.say("Pay.")  # and its worker tells nobody
        other = ChatBridge(at.chat.runner.agent, user_id=lambda _: "ann", store=store, on_waiting=on_waiting)
        await other.recover()
        assert told == []  # the worker may be about to
        clock.now += 11
        for _ in range(2):
            await other.recover()
            await until(lambda: told)
        (card,) = await of(at, "max", "managers").inbox()
        assert told == [card["id"]]
        await other.aclose()


async def test_an_application_that_hangs_stops_nothing_and_is_not_told_again_meanwhile() -> None:
    told: list[str] = []
    go_on = asyncio.Event()

    async def on_waiting(waiting: WaitingCall) -> None:
        told.append(waiting.id)
        await go_on.wait()

    clock, till = Clock(), Till()
    options = {**CHAINED, "on_waiting": on_waiting, "record": MemoryStore(clock=clock)}
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), **options) as at:
        await at.say("Pay.")
        await until(lambda: told)
        for _ in range(3):
            clock.now += 11
            async with asyncio.timeout(10):
                await at.chat.bridge.recover()
        assert len(told) == 1
        await of(at, "max", "managers").decide()
        await of(at, "eva").decide()
        await until(lambda: till.paid == [5])
        go_on.set()
