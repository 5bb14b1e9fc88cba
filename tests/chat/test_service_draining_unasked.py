"""A server that goes while a message is to go on without a request of its client: the next one goes on with it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, Chain, Link, Nobody
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.testing import call
from chat.test_completions import ROWS, Exports
from support import releases
from support.approvers import Approver
from support.pages import Page, Slow, Till, results_told
from support.workers import Workers, words_body, workers

pytestmark = pytest.mark.virtual_time


class Thinking(Slow):
    """A tool that keeps the chat busy."""

    async def think(self) -> dict[str, Any]:
        """Takes its time."""
        return await self.pay(0)


async def begin_to_think(at: Page, busy: Thinking) -> "asyncio.Task[Any]":
    other = asyncio.create_task(at.chat.of().post(words_body("Think.")))
    await busy.started.wait()
    return other


async def drain(at: Page, busy: Thinking, other: "asyncio.Task[Any]") -> None:
    draining = asyncio.create_task(at.chat.bridge.drain())
    await asyncio.sleep(1)
    busy.go_on.set()
    await asyncio.gather(draining, other)


async def next_server(staff: Workers) -> Page:
    at = staff.page()
    for _ in range(3):
        await asyncio.sleep(1)
        await staff.recover(at)
    return at


@asynccontextmanager
async def after_a_denial_and_a_drain() -> AsyncGenerator[tuple[Workers, Till]]:
    till, busy = Till(), Thinking()
    policy = ApprovalPolicy(decide=lambda request: Chain([Link(["max"])]) if request.tool == "pay" else Nobody())
    replies = [call("pay", amount=5)], [call("think")], "Thought.", "Not paid."
    async with workers(*replies, tools=(till.gated, busy.think), approvals=policy) as staff:
        at = staff.page()
        await at.say("Pay.")
        other = await begin_to_think(at, busy)
        denied = await Approver(at.chat.app, "max").decide(False, reason="Not now.")
        assert denied.status_code == 200
        await drain(at, busy, other)
        yield staff, till


async def test_what_was_denied_in_the_inbox_is_not_run_by_the_next_server() -> None:
    async with after_a_denial_and_a_drain() as (staff, till):
        assert (await staff.states(), till.paid) == ([State.DENIED], [])
        await next_server(staff)
        assert (await staff.states(), till.paid) == ([State.DENIED], [])


@releases.goes_on_after_drain
async def test_a_denial_in_the_inbox_is_told_by_the_next_server() -> None:
    async with after_a_denial_and_a_drain() as (staff, _):
        after = await next_server(staff)
        assert [record.delivered for record in await staff.records()] == [True]
        assert "Not paid." in str(await after.chat.messages())
        assert "Not now." in str(results_told(staff.model))


@releases.goes_on_after_drain
@pytest.mark.parametrize("when", ["before", "while", "after"])
@pytest.mark.parametrize("first_word", [None, {"status": "in-progress"}])
async def test_the_end_of_a_long_running_call_is_told_by_the_next_server(when: str, first_word: Any) -> None:
    exports, busy = Exports(first_word), Thinking()
    replies = [[call("export")], *(["Started."] if first_word else []), [call("think")], "Thought.", "All exported."]
    async with workers(*replies, tools=(exports.tool, busy.think)) as staff:
        at = staff.page()
        await at.say("Export.")
        other = await begin_to_think(at, busy)
        if when == "before":
            await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        draining = asyncio.create_task(at.chat.bridge.drain())
        await asyncio.sleep(1)
        if when == "while":
            await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        busy.go_on.set()
        await asyncio.gather(draining, other)
        if when == "after":
            await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        after = await next_server(staff)
        assert "All exported." in str(await after.chat.messages())
        assert ROWS in results_told(staff.model)
