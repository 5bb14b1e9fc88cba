"""A server that goes lets tools finish, tells its readers, and leaves everything else to the next one."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, Nobody, Owner
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.testing import Answer, call
from support.asgi import Exchange, exchange
from support.pages import Page, Slow, Till, results_told
from support.workers import answer_body, outputs, words_body, workers

pytestmark = pytest.mark.virtual_time

RESTARTS = "The server restarts"
ENDINGS = ("drain", "aclose")
PAY = [call("pay", amount=5)]

both_endings = pytest.mark.parametrize("ending", ENDINGS)


def end(at: Page, ending: str = "drain") -> "asyncio.Task[None]":
    return asyncio.create_task(getattr(at.chat.bridge, ending)())


async def a_while() -> None:
    await asyncio.sleep(1)  # of the loop's own time


async def begin_to_pay(at: Page, slow: Slow) -> "asyncio.Task[Answer]":
    """Returns when the tool has begun. The task reads the answer."""
    await at.say("Pay.")
    at.decide("pay")
    answering = asyncio.create_task(at.answer())
    await slow.started.wait()
    return answering


def thinking(busy: Slow) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def think() -> dict[str, Any]:
        """Takes its time."""
        return await busy.pay(0)

    return think


async def answer_while_it_thinks(at: Page, busy: Slow) -> "tuple[asyncio.Task[Answer], asyncio.Task[Answer]]":
    """Another message is being answered while the approval comes. The tasks read both."""
    await at.say("Pay.")
    other = asyncio.create_task(at.chat.of().post(words_body("Think.")))
    await busy.started.wait()
    at.decide("pay")
    answering = asyncio.create_task(at.chat.post(answer_body(at)))
    await a_while()
    return other, answering


# -- a tool that has begun --------------------------------------------------------------------------------------------


@both_endings
async def test_a_tool_that_has_begun_is_waited_for_and_recorded(ending: str) -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at = staff.page()
        answering = await begin_to_pay(at, slow)
        draining = end(at, ending)
        await a_while()
        assert not draining.done()
        slow.go_on.set()
        await draining
        (record,) = await staff.records()
        assert (record.state, record.result["response"]) == (State.DONE, {"paid": 5})
        await answering


@both_endings
async def test_the_result_of_a_tool_that_was_waited_for_stands_in_the_session(ending: str) -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", "Fine.", tools=(slow.gated,)) as staff:
        at = staff.page()
        answering = await begin_to_pay(at, slow)
        draining = end(at, ending)
        await a_while()
        slow.go_on.set()
        await draining
        await answering
        assert [record.delivered for record in await staff.records()] == [True]
        await staff.page().chat.say("And?")
        assert results_told(staff.model) == [{"paid": 5}]


@both_endings
async def test_the_reader_of_a_tool_that_was_waited_for_is_told_its_result_and_that_the_server_restarts(
    ending: str,
) -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at = staff.page()
        answering = await begin_to_pay(at, slow)
        draining = end(at, ending)
        await a_while()
        slow.go_on.set()
        answer = await answering
        assert outputs(answer) == [{"paid": 5}]
        assert answer.chunks[-1]["type"] == "error"
        assert RESTARTS in answer.chunks[-1]["errorText"]
        await draining


async def test_the_next_server_shows_a_tool_that_was_waited_for_as_done() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at = staff.page()
        answering = await begin_to_pay(at, slow)
        draining = end(at)
        await a_while()
        slow.go_on.set()
        await asyncio.gather(draining, answering)
        tab = await Page(staff.page().chat).second_tab()
        assert (tab.part("pay")["state"], tab.part("pay")["output"]) == ("output-available", {"paid": 5})
        await staff.recover(tab)
        assert slow.paid == [5]


async def test_a_tool_that_nobody_reads_is_waited_for_too() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        body = json.dumps(answer_body(at)).encode()
        reading = asyncio.create_task(exchange(at.chat.app, body=body, leave_after=lambda _: True))
        await slow.started.wait()
        await reading
        draining = end(at)
        await a_while()
        slow.go_on.set()
        await draining
        assert await staff.states() == [State.DONE]


async def test_a_tool_that_takes_too_long_is_left_as_unknown() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at = staff.page()
        answering = await begin_to_pay(at, slow)
        started = asyncio.get_running_loop().time()
        await at.chat.bridge.drain()
        assert 25 <= asyncio.get_running_loop().time() - started < 30
        await answering
        assert await staff.states() == [State.UNKNOWN]


# -- what has not begun -----------------------------------------------------------------------------------------------


async def test_what_waits_for_its_person_goes_on_waiting() -> None:
    till = Till()
    async with workers(PAY, "Paid.", tools=(till.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        await at.chat.bridge.drain()
        assert await staff.states() == [State.PENDING]
        at.chat = staff.page().chat
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        assert till.paid == [5]
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("verdict", [None, Owner()], ids=["the tool asks", "the policy asks"])
async def test_what_is_asked_beside_a_tool_that_is_waited_for_goes_on_waiting(verdict: Owner | None) -> None:
    till, busy = Till(), Slow()
    policy = ApprovalPolicy(decide=(lambda asked: verdict if asked.tool == "pay" else Nobody()) if verdict else None)
    tools = (till.gated, thinking(busy))
    async with workers([*PAY, call("think")], "Paid.", tools=tools, approvals=policy) as staff:
        at = staff.page()
        answering = asyncio.create_task(at.say("Pay, and think."))
        await busy.started.wait()
        draining = end(at)
        await a_while()
        busy.go_on.set()
        await asyncio.gather(draining, answering)
        assert await staff.states() == [State.PENDING]
        at.chat = staff.page().chat
        at.messages = await at.chat.messages()
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        assert till.paid == [5]


async def test_what_is_approved_and_has_not_begun_is_done_by_the_next_server_once() -> None:
    till, busy = Till(), Slow()
    async with workers(PAY, [call("think")], "Paid.", tools=(till.gated, thinking(busy))) as staff:
        at = staff.page()
        other, answering = await answer_while_it_thinks(at, busy)
        draining = end(at)
        await a_while()
        busy.go_on.set()
        await asyncio.gather(draining, other, answering)
        assert await staff.states() == [State.APPROVED]
        assert till.paid == []
        next_one = staff.page()
        for _ in range(3):
            await staff.recover(next_one)
        assert till.paid == [5]
        assert await staff.states() == [State.DONE]


async def test_whoever_waits_with_an_answer_is_told_that_the_server_restarts() -> None:
    till, busy = Till(), Slow()
    async with workers(PAY, [call("think")], "Paid.", tools=(till.gated, thinking(busy))) as staff:
        at = staff.page()
        other, answering = await answer_while_it_thinks(at, busy)
        draining = end(at)
        answer = await answering
        assert (answer.status, answer.types) == (200, ["start", "error"])
        assert RESTARTS in answer.chunks[-1]["errorText"]
        busy.go_on.set()
        await asyncio.gather(draining, other)


# -- new requests -----------------------------------------------------------------------------------------------------


def refusal(answer: Exchange) -> tuple[int, str, str | None]:
    return answer.status, json.loads(answer.body)["error"]["code"], answer.headers.get("retry-after")


@pytest.mark.parametrize("what", ["words", "an answer"])
@pytest.mark.parametrize("when", ["while it waits for a tool", "afterwards"])
async def test_new_requests_are_told_to_come_again(what: str, when: str) -> None:
    till, busy = Till(), Slow()

    async def think() -> dict[str, Any]:
        """Takes its time."""
        return await busy.pay(0)

    async with workers(PAY, [call("think")], tools=(till.gated, think)) as staff:
        at = staff.page()
        await at.say("Pay.")
        thinking = at.chat.of(chat_id="c2")
        other = asyncio.create_task(thinking.say("Think."))
        await busy.started.wait()
        draining = end(at)
        await a_while()
        if when == "afterwards":
            busy.go_on.set()
            await draining
        at.decide("pay")
        body = answer_body(at) if what == "an answer" else words_body("Hello.")
        refused = await exchange(at.chat.app, body=json.dumps(body).encode())
        assert refusal(refused) == (503, "restarting", "1")
        assert await staff.states() == [State.PENDING]
        busy.go_on.set()
        await asyncio.gather(draining, other)
