"""A call is recorded as asked before ADK asks, and ADK asks when all tools of the same answer have ended. A run that
ends or is lost in between leaves no call that waits for ever, or that somebody approves for nothing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, Chain, Link, Nobody
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.testing import call
from support.approvers import groups_of, of, until
from support.pages import Page, Till, results_told
from support.workers import CHAT, Workers, words_body, workers

pytestmark = pytest.mark.virtual_time

UNASKED = "the run ended before anybody was asked"
CHAIN = Chain([Link(["group:managers"]), Link(["eva"])])
CHAINED: dict[str, Any] = {
    "approvals": ApprovalPolicy(decide=lambda asked: CHAIN if asked.tool == "pay" else Nobody()),
    "groups": groups_of,
}


class Sibling(Till):
    """A tool that looks at the account, for as long as it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def look(self) -> dict[str, str]:
        """Looks at the account."""
        self.looks.set()
        await self.goes_on.wait()
        return {"balance": "plenty"}


@asynccontextmanager
async def recorded(**options: Any) -> AsyncGenerator[tuple[Workers, Page, Sibling, "asyncio.Task[Any]"]]:
    """A payment is recorded as asked, and a tool of the same answer is at work."""
    till = Sibling()
    replies = [[call("pay", amount=5), call("look")], *["Well."] * 5]
    async with workers(*replies, tools=(till.gated, till.look), **options) as staff:
        at = staff.page()
        saying = asyncio.create_task(at.say("Pay."))
        await till.looks.wait()

        async def is_recorded() -> bool:
            return bool(await staff.records())

        await until(is_recorded)
        yield staff, at, till, saying
        till.goes_on.set()
        await asyncio.wait([saying])


async def is_settled(staff: Workers, at: Page, state: State) -> None:
    """Recorded, listed, shown and told in the same way, at the latest with the second thing that the user says."""
    assert (await at.chat.post(words_body("And?"))).status == 200
    assert (await at.chat.post(words_body("And now?", "another"))).status == 200
    told = results_told(staff.model)
    [found] = [record for record in await staff.records() if record.tool == "pay"]
    assert (found.state, found.delivered) == (state, True)
    [reason] = [found.result["response"]["error"] if found.result else found.reason]
    assert [result for result in told if reason in result["error"]]
    assert [chat["waiting"] for chat in await at.chat.chats()] == [False]
    [shown] = [
        part
        for message in await at.chat.messages(x_ai_sdk_version="6")
        for part in message["parts"]
        if part["type"] == "tool-pay"
    ]
    assert shown["state"] in ("output-denied", "output-error")


async def lost(staff: Workers) -> None:
    """What a worker leaves that dies now: ADK stores the question with the results of all tools."""
    chat: Any = staff.sessions
    del chat.sessions[CHAT.app_name][CHAT.user_id][CHAT.chat_id].events[2:]
    await staff.store.acquire(CHAT, 0)


@pytest.mark.parametrize("options", [{}, CHAINED], ids=["its user", "approvers"])
@pytest.mark.parametrize("recovers", [True, False], ids=["recovery is first", "the user is first"])
async def test_what_a_lost_run_had_not_asked_yet_waits_for_nobody(recovers: bool, options: dict[str, Any]) -> None:
    till = Till()
    async with workers([call("pay", amount=5)], "Well.", tools=(till.gated,), **options) as staff:
        await staff.page().say("Pay.")
        await lost(staff)
        other = staff.page()
        if recovers:
            await staff.recover(other)
            assert await staff.states() == [State.DENIED]
        staff.clock.now += 11
        await is_settled(staff, other, State.DENIED)
        assert (await staff.records())[0].reason == UNASKED
        assert await of(other, "mia", "managers").inbox() == []


async def test_what_approvers_have_approved_of_a_lost_run_that_had_not_asked_is_told_as_not_run() -> None:
    till = Till()
    async with workers([call("pay", amount=5)], "Well.", tools=(till.gated,), **CHAINED) as staff:
        await staff.page().say("Pay.")
        await lost(staff)
        other = staff.page()
        for approver in (of(other, "mia", "managers"), of(other, "eva")):
            assert (await approver.decide()).status_code == 200
        await staff.recover(other)
        assert await staff.states() == [State.FAILED]
        await is_settled(staff, other, State.FAILED)
        [found] = await staff.records()
        assert found.result is not None
        assert found.result["state"] == {}  # it has changed nothing
        assert till.paid == []


async def test_a_question_that_stands_in_the_session_goes_on_waiting_when_the_user_says_something_else() -> None:
    till = Till()
    async with workers([call("pay", amount=5)], "Well.", "Paid.", tools=(till.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        assert (await at.chat.post(words_body("And?"))).status == 200
        assert await staff.states() == [State.PENDING]
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        assert till.paid == [5]


@pytest.mark.parametrize("is_approved", [True, False], ids=["approved", "undecided"])
async def test_a_stop_before_adk_has_asked_ends_the_call_whatever_approvers_say(is_approved: bool) -> None:
    async with recorded(**CHAINED) as (staff, at, till, saying):
        if is_approved:
            for approver in (of(at, "mia", "managers"), of(at, "eva")):
                assert (await approver.decide()).status_code == 200
        assert await at.chat.stop() == 204
        await asyncio.wait([saying])
        state = State.FAILED if is_approved else State.DENIED
        assert await staff.states() == [state]
        await is_settled(staff, at, state)
        assert till.paid == []


async def test_what_approvers_approve_before_adk_has_asked_runs_as_soon_as_it_has() -> None:
    async with recorded(**CHAINED) as (_, at, till, _):
        for approver in (of(at, "mia", "managers"), of(at, "eva")):
            assert (await approver.decide()).status_code == 200
        till.goes_on.set()
        await until(lambda: till.paid == [5])


@pytest.mark.parametrize("options", [{}, CHAINED], ids=["its user", "approvers"])
async def test_a_restart_before_adk_has_asked_leaves_nothing_that_waits_for_ever(options: dict[str, Any]) -> None:
    async with recorded(**options) as (staff, at, till, saying):
        object.__setattr__(at.chat.bridge.limits, "drain_s", 1)
        await at.chat.bridge.drain()
        await asyncio.wait([saying])
        other = staff.page()
        await is_settled(staff, other, State.DENIED)
        assert till.paid == []
