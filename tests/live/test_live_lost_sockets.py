"""The socket is lost for good while something waits: the run ends, the question stays, and every door answers it."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import ApprovalPolicy, client_tool
from adk_stream_protocol.testing import call
from live.live_pages import (
    DEADLINE_S,
    DENIED,
    EXPIRED,
    GRACE_S,
    D,
    E,
    O,
    X,
    approved,
    both_families,
    live_world,
    segment,
    step,
    told_results,
)
from support.pages import Page, Till

pytestmark = pytest.mark.virtual_time

PLACE = {"latitude": 1}

decisions = pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Tells where the browser is."""


FREE, GATED = client_tool(where), client_tool(where, approve=True)


# -- the socket is lost for good --------------------------------------------------------------------------------------


@both_families
async def test_an_approval_outlives_its_socket_and_its_run(family: str) -> None:
    till = Till()
    async with live_world([call("pay", amount=5)], family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        assert world.is_live
        await world.run_ended()
        assert await world.states() == ["pending"]
        page = at.over_http()
        await page.is_what_a_reload_shows()
        assert page.states() == ["approval-requested"]
        assert (await world.chat.chats())[0]["waiting"] is True
        assert till.paid == []


@both_families
@decisions
@pytest.mark.parametrize("door", ["HTTP", "a new socket"])
async def test_what_a_lost_socket_has_asked_is_answered_once(family: str, yes: bool, door: str) -> None:
    till = Till()
    script = [call("pay", amount=5)], "Done.", "Hello."
    async with live_world(*script, family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await world.run_ended()
        card = dict(at.part("pay"))
        async with world.socket() as back:
            page: Page = at.over_http()
            if door == "a new socket":
                page = back
                back.take_over(at)
            page.decide("pay", approved=yes)
            answer = await page.answer()
            assert answer.types == segment(*(O if yes else D), *X)
            assert told_results(world.model) == [{"paid": 5} if yes else DENIED]
            await page.is_what_a_reload_shows()
            again = await back.send_parts(answer.message_id or "", approved(card, not yes))
            assert again.types == segment(*(O if yes else D), *step())
            posted = {"id": answer.message_id, "role": "assistant", "parts": [approved(card, not yes)]}
            again = await world.chat.post({"id": "c1", "messageId": answer.message_id, "messages": [posted]})
            assert again.types == segment(*(O if yes else D), *step())
            assert till.paid == ([5] if yes else [])
            assert len(world.model.requests) == 2
            assert (await back.say("Hello?")).text == "Hello."


@both_families
@pytest.mark.parametrize("yes", [(True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("order", ["together", (0, 1), (1, 0)], ids=str)
async def test_several_calls_that_a_lost_socket_has_asked_are_answered_in_any_way(
    family: str, yes: tuple[bool, bool], order: Any
) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_world(calls, "Done.", family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await world.run_ended()
        page = at.over_http()
        await page.is_what_a_reload_shows()
        for number in (0, 1) if order == "together" else order:
            page.decide("pay", number, approved=yes[number])
            if order != "together":
                answer = await page.answer()
        if order == "together":
            answer = await page.answer()
        assert answer.text == "Done."
        results = [{"paid": amount} if says else DENIED for amount, says in zip((5, 6), yes, strict=True)]
        assert sorted(map(str, told_results(world.model))) == sorted(map(str, results))
        assert sorted(till.paid) == [amount for amount, says in zip((5, 6), yes, strict=True) if says]
        await page.is_what_a_reload_shows()


@both_families
async def test_of_two_calls_one_was_approved_before_the_socket_was_lost(family: str) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_world(calls, "Done.", family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
            at.decide("pay", 0)
            assert (await at.answer()).types == segment(*O)
        await world.run_ended()
        page = at.over_http()
        assert till.paid == [5]
        assert in_any_order(await world.chat.messages()) == in_any_order(page.messages)
        page.decide("pay", 1)
        assert (await page.answer()).text == "Done."
        assert till.paid == [5, 6]
        assert sorted(map(str, told_results(world.model))) == ["{'paid': 5}", "{'paid': 6}"]
        assert in_any_order(await world.chat.messages()) == in_any_order(page.messages)


def in_any_order(messages: list[dict[str, Any]]) -> list[Any]:
    """What is told of approvals beside their cards has no order of its own."""
    return [
        (
            [part for part in message["parts"] if part["type"] != "data-adk-approval"],
            {part["id"]: part["data"] for part in message["parts"] if part["type"] == "data-adk-approval"},
        )
        for message in messages
    ]


@both_families
@pytest.mark.parametrize("tool", [FREE, GATED], ids=["free", "gated"])
async def test_a_browsers_call_outlives_its_socket(family: str, tool: Any) -> None:
    async with live_world([call("where")], "There.", family=family, tools=(tool,)) as world:
        async with world.socket() as at:
            await at.say("Where?")
        await world.run_ended()
        page = at.over_http()
        await page.is_what_a_reload_shows()
        if tool is GATED:
            page.decide("where")
        page.output("where", PLACE)
        assert (await page.answer()).text == "There."
        assert told_results(world.model) == [PLACE]
        await page.is_what_a_reload_shows()


@both_families
async def test_what_a_lost_socket_has_asked_still_has_its_deadline(family: str) -> None:
    till = Till()
    async with live_world([call("pay", amount=5)], "Too late.", family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await asyncio.sleep(DEADLINE_S + 1)
        page = at.over_http()
        page.decide("pay")
        assert (await page.answer()).types == segment(*E, *X)
        assert told_results(world.model) == [EXPIRED]
        assert till.paid == []
        await page.is_what_a_reload_shows()


@both_families
async def test_a_socket_that_comes_back_in_time_finds_its_session_waiting(family: str) -> None:
    till = Till()
    async with live_world([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await asyncio.sleep(GRACE_S - 1)
        async with world.socket() as back:
            back.take_over(at)
            back.decide("pay")
            assert (await back.answer()).types == segment(*O, *X)
        assert till.paid == [5]
        assert len(world.model.sessions) == 1


@both_families
async def test_new_words_after_a_lost_socket_leave_its_question_open(family: str) -> None:
    till = Till()
    script = [call("pay", amount=5)], "It is noon.", "Paid."
    async with live_world(*script, family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await world.run_ended()
        page = at.over_http()
        assert (await page.say("What time is it?")).text == "It is noon."
        page.decide("pay")
        assert (await page.answer(0)).text == "Paid."
        assert till.paid == [5]
        await page.is_what_a_reload_shows()


@both_families
async def test_a_call_that_works_when_the_socket_is_lost_comes_to_its_end(family: str) -> None:
    done: list[int] = []

    async def pay(amount: int) -> dict[str, int]:
        """Pays, slowly."""
        await asyncio.sleep(3 * GRACE_S)
        done.append(amount)
        return {"paid": amount}

    async with live_world(
        [call("pay", amount=5)],
        "Paid.",
        family=family,
        tools=(FunctionTool(pay, require_confirmation=True),),
    ) as world:
        async with world.socket() as at:
            await at.say("Pay.")
            answering = asyncio.create_task(at.send_parts(at.messages[-1]["id"], approved(at.part("pay"))))
            await asyncio.sleep(1)
            answering.cancel()
        await asyncio.sleep(5 * GRACE_S)
        assert (done, world.is_live) == ([5], False)
        assert await world.states() == ["done"]


# -- lost, but not for good -------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("door", ["HTTP", "a new socket"])
async def test_what_is_answered_while_nobody_is_connected_is_taken_up_by_the_session_that_waits(
    family: str, door: str
) -> None:
    till = Till()
    async with live_world([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await asyncio.sleep(GRACE_S / 2)
        if door == "HTTP":
            page = at.over_http()
            page.decide("pay")
            assert (await page.answer()).types == segment(*O, *X)
        else:
            async with world.socket() as back:
                back.take_over(at)
                back.decide("pay")
                assert (await back.answer()).types == segment(*O, *X)
        assert (till.paid, len(world.model.sessions)) == ([5], 1)
        await world.run_ended()


@both_families
async def test_a_deadline_that_passes_while_nobody_is_connected_is_told_to_whoever_comes_back(family: str) -> None:
    till = Till()
    soon = ApprovalPolicy(deadline_s=GRACE_S / 3)
    script = [call("pay", amount=5)], "Too late.", "Hello."
    async with live_world(*script, family=family, tools=(till.gated,), approvals=soon) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await asyncio.sleep(GRACE_S / 2)
        assert told_results(world.model) == [EXPIRED]
        async with world.socket() as back:
            back.messages = await world.chat.messages()
            assert back.states() == ["output-error"]
            assert back.messages[-1]["parts"][-1]["text"] == "Too late."
            assert (await back.say("Hello?")).text == "Hello."
            assert len(world.model.sessions) == 1
        assert till.paid == []


# -- the socket is lost for a while -----------------------------------------------------------------------------------


@both_families
async def test_a_turn_that_nobody_was_there_for_is_told_to_whoever_comes_next_and_once(family: str) -> None:
    script = [call("pay", amount=5)], "Too late."
    policy = ApprovalPolicy(deadline_s=GRACE_S / 2)
    async with live_world(*script, family=family, tools=(Till().gated,), approvals=policy) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await asyncio.sleep(GRACE_S * 0.75)
        async with world.socket() as back, world.socket() as second:
            back.take_over(at)
            back.client.tell("attach", id="c1")
            assert (await back.unasked_turn()).text == "Too late."
            assert back.states() == ["output-error"]
            await back.is_what_a_reload_shows()
            second.client.tell("attach", id="c1")
            await second.client.own("attached")
            assert second.turns_told == 0
