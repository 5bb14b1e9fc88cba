"""Answers while something runs: they wait for their turn, share a segment, are read again, are stopped."""

import asyncio
import copy
import json
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import ApprovalPolicy, Limits, client_tool
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.chat.leases import ChatLeases
from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey, State, claim, start
from adk_stream_protocol.store.base import advance
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, call
from store.stores import asked
from support.conversations import folded, until
from support.leases import ended
from support.pages import Clock, Page, Slow, Till, page, results_told

CHAT = ChatKey("helper", "ann", "c1")


def request_of(at: Page) -> dict[str, Any]:
    """What the page would post now."""
    return {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}


def read(text: str) -> Answer:
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return Answer(200, [json.loads(line) for line in lines if line != "[DONE]"], raw=text)


# -- waiting for one's turn -------------------------------------------------------------------------------------------


async def test_an_answer_waits_for_the_end_of_another_turn() -> None:
    till, chatting, go_on = Till(), asyncio.Event(), asyncio.Event()

    async def think() -> dict[str, str]:
        """Thinks."""
        chatting.set()
        await go_on.wait()
        return {}

    script = [call("pay", amount=5)], [call("think")], "It is noon.", "Paid."
    async with page(*script, tools=(till.gated, think)) as at:
        await at.say("Pay.")
        at.decide("pay")
        request = request_of(at)
        other_turn = asyncio.create_task(at.say("What time is it?"))
        await chatting.wait()
        answer = asyncio.create_task(at.chat.post(request))
        decided = at.chat.bridge._service._store  # pyright: ignore
        while (await decided.read(CHAT)).records[0].state is State.PENDING:
            await asyncio.sleep(0)
        assert not answer.done()
        assert till.paid == []
        go_on.set()
        assert (await other_turn).text == "It is noon."
        late = await answer
        assert (late.status, late.text) == (200, "Paid.")
        assert late.message_id == request["messageId"]
        assert till.paid == [5]


async def test_new_words_while_an_answer_is_taken_up_are_told_to_wait() -> None:
    slow = Slow()
    async with page([call("pay", amount=5)], "Paid.", tools=(slow.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        answer = asyncio.create_task(at.chat.post(request_of(at)))
        await slow.started.wait()
        assert (await at.say("Hello?")).status == 409
        slow.go_on.set()
        assert (await answer).text == "Paid."


@pytest.mark.parametrize("second_says", [True, False], ids=["approves", "denies"])
async def test_a_second_tab_reads_the_segment_that_takes_its_call_up(second_says: bool) -> None:
    slow = Slow()
    async with page([call("pay", amount=5)], "Paid.", tools=(slow.gated,)) as at:
        await at.say("Pay.")
        tab = await at.second_tab()
        at.decide("pay")
        tab.decide("pay", approved=second_says)
        first = asyncio.create_task(at.answer())
        await slow.started.wait()
        second = asyncio.create_task(tab.answer())
        slow.go_on.set()
        assert (await first).chunks == (await second).chunks
        assert at.states() == tab.states() == ["output-available"]
        assert slow.paid == [5]
        assert len(at.chat.model.requests) == 2


async def test_two_tabs_that_decide_on_different_calls_at_once_both_come_to_the_end() -> None:
    slow = Slow()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with page(calls, "Done.", tools=(slow.gated,)) as at:
        await at.say("Pay.")
        tab = await at.second_tab()
        at.decide("pay", 0)
        tab.decide("pay", 1, approved=False)
        first = asyncio.create_task(at.answer())
        await slow.started.wait()
        second = asyncio.create_task(tab.chat.post(request_of(tab)))
        slow.go_on.set()
        assert (await first).text == ""
        assert (await second).text == "Done."
        assert slow.paid == [5]
        assert len(results_told(at.chat.model)) == 2
        (_, told) = await at.chat.messages()
        states = [part["state"] for part in told["parts"] if "toolCallId" in part]
        assert states == ["output-available", "output-denied"]


async def test_fifty_approvals_at_once_run_the_tool_once_and_all_learn_its_result() -> None:
    till, limits = Till(), Limits(max_waiting_answers_per_user=50, max_readers_per_run=50)
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), limits=limits) as at:
        await at.say("Pay.")
        at.decide("pay")
        answers = await asyncio.gather(*(at.chat.post(request_of(at)) for _ in range(50)))
        assert {answer.status for answer in answers} == {200}
        outputs = [chunk["output"] for answer in answers for chunk in answer.of_type("tool-output-available")]
        assert outputs == [{"paid": 5}] * 50
        assert till.paid == [5]
        assert len(at.chat.model.requests) == 2


# -- readers ----------------------------------------------------------------------------------------------------------


async def test_a_reader_who_comes_back_in_the_middle_of_a_continuation_gets_the_whole_message() -> None:
    slow = Slow()

    def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
        """Runs in the browser."""

    script = [call("where")], [call("pay", amount=5)], "Paid."
    async with page(*script, tools=(client_tool(where), slow.gated)) as at:
        await at.say("Go.")
        at.output("where", {"latitude": 1})
        await at.answer()
        at.decide("pay")
        first = asyncio.create_task(at.answer())
        await slow.started.wait()
        assert await at.chat.messages() == at.messages[:1]
        again = asyncio.create_task(at.chat.request("GET", "/stream"))
        log = at.chat.bridge._service.running("ann", "c1")
        assert log is not None
        await until(lambda: len(log._wakers) == 2)  # pyright: ignore
        slow.go_on.set()
        await first
        replayed = read((await again).text)
        assert replayed.types.count("start") == 1
        assert replayed.message_id == at.messages[-1]["id"]
        given = {chunk["toolName"] for chunk in replayed.of_type("tool-input-available")}
        assert given == {"pay"}  # the browser's call has its result: nobody may run it again
        message = folded(replayed)
        assert message["id"] == at.messages[-1]["id"]
        told = copy.deepcopy(at.messages[-1]["parts"])
        for part in told:
            part.get("approval", {}).pop("approved", None)  # a replay does not tell what the client said
        assert message["parts"] == told


async def test_a_cursor_of_a_continuation_goes_on_behind_it() -> None:
    slow = Slow()
    async with page([call("pay", amount=5)], "Paid.", tools=(slow.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        first = asyncio.create_task(at.answer())
        await slow.started.wait()
        log = at.chat.bridge._service.running("ann", "c1")
        assert log is not None
        headers = {"last-event-id": f"{log.segment}-{len(log) - 1}"}
        again = asyncio.create_task(at.chat.request("GET", "/stream", headers=headers))
        await until(lambda: len(log._wakers) == 2)  # pyright: ignore
        slow.go_on.set()
        whole, rest = (await first).chunks, read((await again).text).chunks
        assert rest == whole[-len(rest) :]
        assert rest[0]["type"] == "tool-output-available"


# -- calls that a run did not take up ---------------------------------------------------------------------------------

LEASE_S = 10
PAYMENT = asked(chat=CHAT, state=State.APPROVED, approved=True, decided_at=Clock().now, decided_by="ann")


def worker(store: MemoryStore) -> ChatLeases:
    return ChatLeases(store, ApprovalGate(store, ApprovalPolicy(), LEASE_S), ApprovalPolicy(), LEASE_S)


async def held_by(runs: ChatLeases) -> LeasedChat:
    held = await runs.begin(CHAT)
    assert held is not None
    return held


async def brought_to(reached: State, store: MemoryStore, held: LeasedChat) -> CallRecord:
    """The payment, as far as the holder of its chat has come with it."""
    lease, key = held.lease, PAYMENT.call
    if reached in (State.CLAIMED, State.STARTED):
        digest = PAYMENT.digest
        await advance(
            store, CHAT, key, lambda found, _: claim(found, digest=digest, lease_token=lease.token), lease=lease
        )
    if reached is State.STARTED:
        await advance(store, CHAT, key, lambda found, _: start(found, lease_token=lease.token), lease=lease)
    (payment,) = (await store.read(CHAT)).records
    assert payment.state is reached
    return payment


@pytest.mark.parametrize("reached", [State.APPROVED, State.CLAIMED, State.STARTED])
async def test_a_worker_whose_lease_was_taken_over_leaves_its_successors_call_as_it_is(reached: State) -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    await store.add(PAYMENT)
    late, successor = worker(store), worker(store)
    lost = await held_by(late)
    await brought_to(State.CLAIMED, store, lost)
    clock.now += LEASE_S
    held = await held_by(successor)
    payment, trail = await brought_to(reached, store, held), await store.audit(CHAT)
    await late.end_run(ended(lost, frozenset({PAYMENT.call})))
    assert (await store.read(CHAT)).records == [payment]
    assert await store.audit(CHAT) == trail
    await successor.end(held)


@pytest.mark.parametrize(
    ("reached", "left"),
    [(State.APPROVED, State.FAILED), (State.CLAIMED, State.FAILED), (State.STARTED, State.UNKNOWN)],
)
async def test_the_holder_of_a_chat_leaves_no_call_to_be_run_later(reached: State, left: State) -> None:
    store = MemoryStore(clock=Clock())
    await store.add(PAYMENT)
    runs = worker(store)
    held = await held_by(runs)
    await brought_to(reached, store, held)
    await runs.end_run(ended(held, frozenset({PAYMENT.call})))
    (payment,) = (await store.read(CHAT)).records
    assert payment.state is left
    if left is State.FAILED:
        told = {"error": "This call was not run: the server failed before it began."}
        assert payment.result == {"response": told, "state": {}}


# -- asked again, while the message goes on with another call ---------------------------------------------------------


async def test_an_answer_that_comes_again_is_told_its_own_outcome_and_not_another_ones() -> None:
    till, slow = Till(), Slow()
    slow_pay = FunctionTool(slow.pay, require_confirmation=True)
    slow_pay.name = "slow_pay"
    script = [call("pay", amount=5), call("slow_pay", amount=6)], "Paid both."
    async with page(*script, tools=(till.gated, slow_pay)) as at:
        await at.say("Pay.")
        at.decide("pay")
        first = request_of(at)
        assert (await at.answer()).of_type("tool-output-available")
        at.decide("slow_pay")
        second = asyncio.create_task(at.answer())
        await slow.started.wait()
        again = await at.chat.post(first)
        assert [chunk["output"] for chunk in again.of_type("tool-output-available")] == [{"paid": 5}]
        slow.go_on.set()
        assert (await second).text == "Paid both."
        assert (till.paid, slow.paid) == ([5], [6])
