"""What the gate refuses, and what it writes down: nothing runs without its record, and what ran is recorded."""

import asyncio
import copy
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, client_tool
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.chat.leases import Change, ChatLeases
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.store.base import Acquired, Lease
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support import releases
from support.pages import Clock, Page, Slow, Till, page, results_told

CHAT = ChatKey("helper", "ann", "c1")
NOT_APPROVED = "This call was not run: nobody has approved it."
ELSEWHERE = "This call was not run: another run has taken it up."
ADKS_HINT = (
    "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected "
    "ToolConfirmation payload."
)


def paying() -> list[types.Part]:
    return [call("pay", amount=5)]


async def states(store: MemoryStore, chat: ChatKey = CHAT) -> list[State]:
    return [approval.state for approval in (await store.read(chat)).records]


async def decides(at: Page, *, approved: bool = True) -> dict[str, Any]:
    """A person's decision; gives the request, so that it can be sent again."""
    at.decide("pay", approved=approved)
    return {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}


def confirmed(at: Page) -> types.Content:
    """The answer that ADK waits for, made by somebody who knows ADK."""
    approval_id = at.part("pay")["approval"]["id"]
    said = types.FunctionResponse(id=approval_id, name="adk_request_confirmation", response={"confirmed": True})
    return types.Content(role="user", parts=[types.Part(function_response=said)])


def saying(words: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=words)])


def runs_of(at: Page) -> ChatLeases:
    return at.chat.bridge._service._leases  # pyright: ignore


async def lease_of(at: Page) -> LeasedChat:
    leased = await runs_of(at).begin(CHAT)
    assert leased is not None
    return leased


async def becomes(store: MemoryStore, state: State, **fields: Any) -> CallRecord:
    """The payment, after somebody has moved it along."""
    (found,) = (await store.read(CHAT)).records
    moved = msgspec.structs.replace(found, state=state, approved=True, version=found.version + 1, **fields)
    assert await store.compare_and_set(found, moved)
    return moved


async def run_past_the_bridge(at: Page, content: types.Content) -> list[Event]:
    runner = at.chat.runner
    running = runner.run_async(user_id="ann", session_id="c1", new_message=content, run_config=RunConfig())
    return [event async for event in running]


# -- nothing runs without its record ----------------------------------------------------------------------------------


@pytest.mark.parametrize("recorded", ["pending", "approved", "forgotten"])
async def test_a_run_past_the_bridge_runs_no_gated_tool(recorded: str) -> None:
    till, store = Till(), MemoryStore()
    async with page(paying(), "Refused.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        if recorded == "approved":
            await becomes(store, State.APPROVED)
        elif recorded == "forgotten":
            store._records.pop(CHAT)  # pyright: ignore
        before = await states(store)
        await run_past_the_bridge(at, confirmed(at))
        assert till.paid == []
        assert results_told(at.chat.model) == [{"error": NOT_APPROVED}]
        assert await states(store) == before


async def test_a_run_past_the_bridge_asks_nobody() -> None:
    till, store = Till(), MemoryStore()
    async with page("Hello.", paying(), "Refused.", tools=(till.gated,), record=store) as at:
        await at.say("hi")
        events = await run_past_the_bridge(at, saying("Pay."))
        assert till.paid == []
        assert not any(event.actions.requested_tool_confirmations for event in events)
        assert results_told(at.chat.model) == [
            {"error": "This call was not run: there is no client here that could answer it."}
        ]
        assert await states(store) == []


def pay(amount: int) -> None:
    """Pays."""


async def test_a_run_past_the_bridge_leaves_no_call_to_a_client() -> None:
    store = MemoryStore()
    async with page(paying(), tools=(LongRunningFunctionTool(pay),), record=store) as at:
        events = await run_past_the_bridge(at, saying("Pay."))
        assert [part.name for event in events for part in event.get_function_calls()] == ["pay"]
        assert await states(store) == []


@pytest.mark.parametrize("record", ["forgotten", "pending", "other arguments", "other tool"])
async def test_the_lease_of_a_chat_is_not_enough_to_run_what_is_not_recorded_as_approved(record: str) -> None:
    till, store = Till(), MemoryStore()
    async with page(paying(), "Refused.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        (asked,) = (await store.read(CHAT)).records
        changes: dict[str, Any] = {
            "forgotten": {},
            "pending": {},
            "other arguments": {"arguments": {"amount": 6}, "state": State.APPROVED},
            "other tool": {"tool": "tip", "state": State.APPROVED},
        }
        store._records.pop(CHAT)  # pyright: ignore
        if record != "forgotten":
            await store.add(msgspec.structs.replace(asked, **changes[record]))
        lease = await lease_of(at)
        await run_past_the_bridge(at, confirmed(at))
        await runs_of(at).end(lease)
        assert till.paid == []
        assert results_told(at.chat.model) == [{"error": NOT_APPROVED}]


@pytest.mark.parametrize("other_has", ["the call", "the chat"])
async def test_what_another_run_has_taken_up_is_left_to_it(other_has: str) -> None:
    till, clock = Till(), Clock()
    store = MemoryStore(clock=clock)
    async with page(paying(), "Refused.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        lease = await lease_of(at)
        if other_has == "the call":
            recorded = await becomes(store, State.CLAIMED, lease_token="another")
        else:
            recorded = await becomes(store, State.APPROVED)
            clock.now += 10
            assert (await store.acquire(CHAT, 10)).lease
        await run_past_the_bridge(at, confirmed(at))
        await runs_of(at).end(lease)
        assert till.paid == []
        assert results_told(at.chat.model) == [{"error": ELSEWHERE}]
        assert (await store.read(CHAT)).records == [recorded]


UNKNOWN = "The server stopped while this call was running. Whether it took effect is unknown; it was not run again."
RESULT = {"response": {"paid": 5}, "state": {}}


@pytest.mark.parametrize(
    ("state", "told"),
    [(State.STARTED, {"error": UNKNOWN}), (State.UNKNOWN, {"error": UNKNOWN}), (State.DONE, {"paid": 5})],
)
async def test_what_another_run_has_begun_is_not_said_to_have_not_run(state: State, told: dict[str, Any]) -> None:
    """It may have come to its end between our look at it and our claim."""

    class Overtaking(MemoryStore):
        overtakes = False

        async def renew(self, lease: Lease, lasts_s: float) -> bool:
            if self.overtakes:
                await becomes(self, state, lease_token="another", result=RESULT if state is State.DONE else None)
            return await super().renew(lease, lasts_s)

    till, store = Till(), Overtaking()
    async with page(paying(), "Refused.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        lease = await lease_of(at)
        await becomes(store, State.APPROVED)
        store.overtakes = True
        await run_past_the_bridge(at, confirmed(at))
        store.overtakes = False
        await runs_of(at).end(lease)
        assert till.paid == []
        assert results_told(at.chat.model) == [told]


async def test_nothing_begins_with_a_lease_that_was_lost_before_what_a_lost_run_has_left_is_in_order() -> None:
    class Distant(MemoryStore):
        async def acquire(self, chat: ChatKey, lasts_s: float, changes: Sequence[Change] = ()) -> Acquired:
            acquired = await super().acquire(chat, lasts_s, changes)
            clock.now += lasts_s  # and meanwhile somebody else comes
            await super().acquire(chat, lasts_s)
            return acquired

    clock = Clock()

    store = Distant(clock=clock)
    begun: dict[str, Any] = {"state": State.STARTED, "approved": True, "lease_token": "dead"}
    call = CallKey("invocation", "call")
    await store.add(CallRecord(chat=CHAT, call=call, tool="pay", arguments={}, executor="server", asked_at=0, **begun))
    runs = ChatLeases(store, ApprovalGate(store, ApprovalPolicy(), 10), ApprovalPolicy(), 10)
    assert await runs.begin(CHAT) is None
    assert CHAT not in runs
    assert [found.state for found in (await store.read(CHAT)).records] == [State.STARTED]


async def test_a_lease_that_ran_out_unnoticed_is_good_as_long_as_nobody_has_taken_it() -> None:
    till, clock = Till(), Clock()
    store = MemoryStore(clock=clock)
    async with page(paying(), "Paid.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        lease = await lease_of(at)
        await becomes(store, State.APPROVED)
        clock.now += 3600
        await run_past_the_bridge(at, confirmed(at))
        await runs_of(at).end(lease)
        assert till.paid == [5]
        assert await states(store) == [State.DONE]


async def test_the_end_of_an_earlier_run_takes_nothing_from_the_one_that_is_there() -> None:
    till, store = Till(), MemoryStore()
    async with page(paying(), "Paid.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        lease = await lease_of(at)
        await becomes(store, State.APPROVED)
        gate = at.chat.runner.plugin_manager.get_plugin("adk_stream_approvals")
        assert isinstance(gate, ApprovalGate)
        gate.end_run(Lease(CHAT, "earlier"))
        await run_past_the_bridge(at, confirmed(at))
        assert till.paid == [5]
        await runs_of(at).end(lease)
        gate.end_run(lease.lease)  # once more: there is nothing to end


async def test_arguments_that_were_changed_in_the_session_are_not_run() -> None:
    till, service = Till(), InMemorySessionService()
    async with page(paying(), "Refused.", tools=(till.gated,), session_service=service) as at:
        await at.say("Pay.")
        for event in service.sessions["helper"]["ann"]["c1"].events:
            for asked in event.get_function_calls():
                arguments: Any = asked.args
                arguments.get("originalFunctionCall", {"args": arguments})["args"]["amount"] = 5000
        answer = await at.chat.post(await decides(at))
        assert answer.status == 200
        assert till.paid == []
        assert results_told(at.chat.model) == [{"error": NOT_APPROVED}]


# -- what is recorded -------------------------------------------------------------------------------------------------

NOW = Clock().now


@pytest.mark.parametrize(
    ("tool", "fields"),
    [
        (
            FunctionTool(pay, require_confirmation=True),
            {"executor": "server", "state": State.PENDING, "deadline": NOW + 600, "hint": ADKS_HINT},
        ),
        (
            client_tool(pay, approve=True),
            {"executor": "browser", "state": State.PENDING, "deadline": NOW + 600},
        ),
        (client_tool(pay), {"executor": "browser", "state": State.APPROVED, "browser_deadline": NOW + 60}),
        (LongRunningFunctionTool(pay), {"executor": "browser", "state": State.APPROVED}),
    ],
    ids=["gated", "gated in the browser", "free in the browser", "long-running"],
)
async def test_a_call_that_waits_is_recorded_with_all_that_is_known_of_it(tool: Any, fields: dict[str, Any]) -> None:
    store = MemoryStore(clock=Clock())
    async with page(paying(), tools=(tool,), record=store) as at:
        await at.say("Pay.")
        session = await at.chat.session()
        assert session is not None
        key = CallKey(session.events[-1].invocation_id, at.part("pay")["toolCallId"])
        (recorded,) = (await store.read(CHAT)).records
        known: dict[str, Any] = {"message_id": at.messages[-1]["id"], "delivered": False, **fields}
        assert msgspec.structs.replace(recorded, approval_id=None, question_id=None, sdk_version=None) == CallRecord(
            chat=CHAT, call=key, tool="pay", arguments={"amount": 5}, asked_at=NOW, **known
        )


async def test_questions_about_calls_of_the_browsers_have_ids_of_their_own() -> None:
    store = MemoryStore()
    calls = [call("pay", amount=5), call("pay", amount=5)]
    async with page(calls, tools=(client_tool(pay, approve=True),), record=store) as at:
        await at.say("Pay.")
        ids = [approval.approval_id for approval in (await store.read(CHAT)).records]
        assert ids == [part["approval"]["id"] for part in at.parts("pay")]
        assert len(set(ids)) == 2


@releases.cancelled_tools
async def test_a_tool_that_is_stopped_is_recorded_at_once_as_of_unknown_outcome() -> None:
    slow, store = Slow(), MemoryStore()
    async with page(paying(), tools=(slow.gated,), record=store) as at:
        await at.say("Pay.")
        lease = await lease_of(at)
        await becomes(store, State.APPROVED)
        running = asyncio.create_task(run_past_the_bridge(at, confirmed(at)))
        await slow.started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await states(store) == [State.UNKNOWN]
        await runs_of(at).end(lease)


class ForgetfulService(InMemorySessionService):
    """Loses the results of a tool while it is told to."""

    loses = False

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.loses and any(response.name == "pay" for response in event.get_function_responses()):
            raise ConnectionError
        return await super().append_event(session, event)


async def test_a_recorded_result_is_delivered_with_its_state_if_the_session_has_never_seen_it() -> None:
    runs: list[int] = []

    def pay(amount: int, tool_context: ToolContext) -> dict[str, int]:
        """Pays."""
        runs.append(amount)
        tool_context.state["balance"] = 1000 - amount
        return {"paid": amount}

    service = ForgetfulService()
    gated = FunctionTool(pay, require_confirmation=True)
    async with page(paying(), "Paid.", tools=(gated,), session_service=service) as at:
        await at.say("Pay.")
        service.loses = True
        request = await decides(at)
        assert (await at.chat.post(request)).types[-1] == "error"
        session = await at.chat.session()
        assert session is not None
        assert "balance" not in session.state
        service.loses = False
        again = await at.chat.post(request)
        assert again.text == "Paid."
        assert [chunk["output"] for chunk in again.of_type("tool-output-available")] == [{"paid": 5}]
        session = await at.chat.session()
        assert session is not None
        assert session.state["balance"] == 995
        assert runs == [5]


@pytest.mark.parametrize("approved", [True, False])
async def test_adk_is_told_what_the_person_said(approved: bool) -> None:
    """Where it says no, not even ADK without a gate would run the tool."""
    till = Till()
    async with page(paying(), "Done.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        await at.chat.post(await decides(at, approved=approved))
        session = await at.chat.session()
        responses = [r for event in session.events for r in event.get_function_responses()] if session else []
        said = [r.response for r in responses if r.name == "adk_request_confirmation"]
        assert said == [{"confirmed": approved}]


async def test_the_audit_trail_tells_what_was_asked_decided_and_run() -> None:
    clock = Clock()
    till, store = Till(), MemoryStore(clock=clock)
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with page(calls, "Done.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        clock.now += 7
        at.decide("pay", 0)
        at.decide("pay", 1, approved=False, reason="Too much.")
        await at.answer()
        trail = await store.audit(CHAT)
        five, six = ([entry for entry in trail if entry.call.call_id == made.function_call.id] for made in calls)
        assert [entry.state for entry in five] == ["pending", "approved", "claimed", "started", "done"]
        assert [entry.state for entry in six] == ["pending", "denied"]
        assert [entry.arguments for entry in five] == [{"amount": 5}, None, None, None, None]
        assert len({entry.digest for entry in five}) == 1
        assert five[0].digest != six[0].digest
        assert [entry.by for entry in six] == [None, "ann"]
        assert (six[1].approved, six[1].reason) == (False, "Too much.")
        assert (five[1].by, five[1].approved) == ("ann", True)
        assert five[2].by == five[3].by == five[4].by != "ann"
        assert [entry.at - trail[0].at for entry in six] == [0, 7]
