"""What the gate refuses, and what it writes down: nothing runs without its record, and what ran is recorded."""

import copy
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol.protocol.approvals import Approval, ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.conversations import run
from support.pages import Clock, Page, Till, page, results_told

CHAT = ChatKey("helper", "ann", "c1")
NOT_APPROVED = "This call was not run: nobody has approved it."
STORE_DOWN = "This call was not run: approvals cannot be recorded right now."


def paying() -> list[types.Part]:
    return [call("pay", amount=5)]


async def states(store: MemoryStore, chat: ChatKey = CHAT) -> list[State]:
    return [approval.state for approval in (await store.read(chat)).approvals]


async def decides(at: Page, *, approved: bool = True) -> dict[str, Any]:
    """A person's decision; gives the request, so that it can be sent again."""
    at.decide("pay", approved=approved)
    return {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}


def confirmed(at: Page) -> types.Content:
    """The answer that ADK waits for, made by somebody who knows ADK."""
    approval_id = at.part("pay")["approval"]["id"]
    said = types.FunctionResponse(id=approval_id, name="adk_request_confirmation", response={"confirmed": True})
    return types.Content(role="user", parts=[types.Part(function_response=said)])


async def run_past_the_bridge(at: Page, content: types.Content) -> list[Event]:
    runner = at.chat.runner
    running = runner.run_async(user_id="ann", session_id="c1", new_message=content, run_config=RunConfig())
    return [event async for event in running]


# -- nothing runs without its record ----------------------------------------------------------------------------------


@pytest.mark.parametrize("recorded", ["pending", "approved", "forgotten"])
def test_a_run_past_the_bridge_runs_no_gated_tool(recorded: str) -> None:
    async def scenario() -> None:
        till, store = Till(), MemoryStore()
        async with page(paying(), "Refused.", tools=(till.gated,), record=store) as at:
            await at.say("Pay.")
            if recorded == "approved":
                (pending,) = (await store.read(CHAT)).approvals
                approved = {"state": State.APPROVED, "approved": True, "version": 1}
                await store.compare_and_set(pending, Approval(**{**_fields(pending), **approved}))
            elif recorded == "forgotten":
                await store.forget(CHAT)
            before = await states(store)
            await run_past_the_bridge(at, confirmed(at))
            assert till.paid == []
            assert results_told(at.chat.model) == [{"error": NOT_APPROVED}]
            assert await states(store) == before

    run(scenario)


def _fields(approval: Approval) -> dict[str, Any]:
    return {name: getattr(approval, name) for name in approval.__struct_fields__}


def test_a_run_past_the_bridge_asks_nobody() -> None:
    async def scenario() -> None:
        till, store = Till(), MemoryStore()
        async with page("Hello.", paying(), "Refused.", tools=(till.gated,), record=store) as at:
            await at.say("hi")
            events = await run_past_the_bridge(at, types.Content(role="user", parts=[types.Part(text="Pay.")]))
            assert till.paid == []
            assert not any(event.actions.requested_tool_confirmations for event in events)
            assert results_told(at.chat.model) == [
                {"error": "This call was not run: there is no client here that could answer it."}
            ]
            assert await states(store) == []

    run(scenario)


@pytest.mark.parametrize("record", ["forgotten", "pending", "other arguments", "other tool"])
def test_the_lease_of_a_chat_is_not_enough_to_run_what_is_not_recorded_as_approved(record: str) -> None:
    async def scenario() -> None:
        till, store = Till(), MemoryStore()
        async with page(paying(), "Refused.", tools=(till.gated,), record=store) as at:
            await at.say("Pay.")
            (asked,) = (await store.read(CHAT)).approvals
            changes: dict[str, Any] = {
                "forgotten": {},
                "pending": {},
                "other arguments": {"arguments": {"amount": 6}, "state": State.APPROVED},
                "other tool": {"tool": "tip", "state": State.APPROVED},
            }
            await store.forget(CHAT)
            if record != "forgotten":
                await store.add(Approval(**{**_fields(asked), **changes[record]}))
            held = await at.chat.bridge._runs.begin(CHAT)  # pyright: ignore
            assert held is not None
            await run_past_the_bridge(at, confirmed(at))
            await at.chat.bridge._runs.end(held.lease)  # pyright: ignore
            assert till.paid == []
            assert results_told(at.chat.model) == [{"error": NOT_APPROVED}]

    run(scenario)


def test_arguments_that_were_changed_in_the_session_are_not_run() -> None:
    async def scenario() -> None:
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

    run(scenario)


# -- what is recorded -------------------------------------------------------------------------------------------------


class ForgetfulService(InMemorySessionService):
    """Loses the results of a tool while it is told to."""

    loses = False

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.loses and any(response.name == "pay" for response in event.get_function_responses()):
            raise ConnectionError
        return await super().append_event(session, event)


def test_a_recorded_result_is_delivered_with_its_state_if_the_session_has_never_seen_it() -> None:
    async def scenario() -> None:
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

    run(scenario)


@pytest.mark.parametrize("approved", [True, False])
def test_adk_is_told_what_the_person_said(approved: bool) -> None:
    """Where it says no, not even ADK without a gate would run the tool."""

    async def scenario() -> None:
        till = Till()
        async with page(paying(), "Done.", tools=(till.gated,)) as at:
            await at.say("Pay.")
            await at.chat.post(await decides(at, approved=approved))
            session = await at.chat.session()
            responses = [r for event in session.events for r in event.get_function_responses()] if session else []
            said = [r.response for r in responses if r.name == "adk_request_confirmation"]
            assert said == [{"confirmed": approved}]

    run(scenario)


def test_the_audit_trail_tells_what_was_asked_decided_and_run() -> None:
    async def scenario() -> None:
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

    run(scenario)
