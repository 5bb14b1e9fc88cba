"""How a call waits and begins in live mode, step by step."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from adk_stream_protocol import Nobody, client_tool
from adk_stream_protocol.adk.calls import live_gate
from adk_stream_protocol.adk.calls.gated_call import STORE_DOWN
from adk_stream_protocol.adk.calls.waiting import current_chat, outer_call
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import State
from support.at_the_gate import AtTheGate
from support.gated_calls import KEY, PAY, pay
from support.records import CHAT

pytestmark = pytest.mark.virtual_time

NOT_APPROVED = {"error": "This call was not run: nobody has approved it."}
DENIED = {"error": "This call was not run: the user denied it."}


def beside(tool: BaseTool) -> BaseTool:
    """ADK reads from the model while it runs."""
    tool.behavior = types.Behavior.NON_BLOCKING
    return tool


async def stream(amount: int) -> AsyncGenerator[int, None]:
    """Counts."""
    yield amount


async def begins(tool: BaseTool, chat_id: str = CHAT.chat_id, listed: bool = True) -> tuple[object, Any]:
    """The task that the run is told of, and what is left of ADK's list of tools that it cancels."""
    at = await AtTheGate.opened(chat_id)
    observed = at.observe()
    current_chat.set(at.leased)
    at.context._active_background_tools = {"1": "this", "2": "another"} if listed else None  # pyright: ignore
    live_gate.notify_begun(at.call(tool), at.tool_context)
    assert observed.told == [("began", "1")]
    return observed.beside, at.context._active_background_tools  # pyright: ignore[reportPrivateUsage]


async def test_a_tool_beside_the_conversation_is_not_cancelled_with_its_agent() -> None:
    here = asyncio.current_task()
    assert await begins(beside(FunctionTool(pay))) == (here, {"2": "another"})
    assert await begins(beside(FunctionTool(pay)), listed=False) == (here, None)
    assert await begins(beside(BaseTool(name="plain", description="Has no function."))) == (here, {"2": "another"})


async def test_in_a_session_of_its_own_an_agent_s_list_is_left_alone() -> None:
    assert await begins(beside(FunctionTool(pay)), "inner") == (asyncio.current_task(), {"1": "this", "2": "another"})


@pytest.mark.parametrize("tool", [FunctionTool(pay), beside(FunctionTool(stream))], ids=["blocking", "streaming"])
async def test_other_tools_end_with_their_agent(tool: BaseTool) -> None:
    assert await begins(tool) == (None, {"1": "this", "2": "another"})


async def test_nobody_is_told_in_request_mode() -> None:
    at = await AtTheGate.opened()
    live_gate.notify_begun(at.call(beside(FunctionTool(pay))), at.tool_context)


def cannot_say(amount: int) -> bool:
    raise ValueError


async def test_a_tool_that_cannot_say_whether_it_asks_is_left_to_adk() -> None:
    at = await AtTheGate.opened()
    at.observe()
    tool = FunctionTool(pay, require_confirmation=cannot_say)
    assert await live_gate.ask_if_needed(at.call(tool), PAY, at.tool_context) is None
    assert (await at.store.read(CHAT)).records == []


GATED = FunctionTool(pay, require_confirmation=True)
UNSURE = FunctionTool(pay, require_confirmation=cannot_say)


@pytest.mark.parametrize("tool", [GATED, UNSURE, FunctionTool(pay)], ids=["gated", "unsure", "ungated"])
@pytest.mark.parametrize("approved", [False, True])
async def test_whoever_the_policy_names_is_asked_whatever_the_tool_says(tool: BaseTool, approved: bool) -> None:
    at = await AtTheGate.opened()
    at.observe().happens = lambda: at.decide(approved=approved)
    call = at.call(tool)
    call.verdict = "owner"
    outer_call.set(None)
    assert await live_gate.ask_if_needed(call, PAY, at.tool_context) == (None if approved else DENIED)
    (found,) = (await at.store.read(CHAT)).records
    assert found.state is (State.STARTED if approved else State.DENIED)
    assert outer_call.get() == (KEY if approved else None)


@pytest.mark.parametrize("tool", [GATED, UNSURE, FunctionTool(pay)], ids=["gated", "unsure", "ungated"])
async def test_what_the_policy_waives_is_recorded_where_somebody_would_have_been_asked(tool: BaseTool) -> None:
    at = await AtTheGate.opened(decide=lambda _: Nobody)
    observed = at.observe()
    outer_call.set(None)
    assert await at.before(tool) is None
    found = (await at.store.read(CHAT)).records
    assert [record.state for record in found] == ([State.STARTED] if tool is GATED else [])
    assert observed.told == [("began", "1")]
    assert outer_call.get() == KEY


async def test_what_the_policy_waives_does_not_run_while_the_store_is_down() -> None:
    at = await AtTheGate.opened()
    at.observe()
    at.store.failures = [StoreUnavailable()]
    call = at.call(GATED)
    call.verdict = "nobody"
    outer_call.set(None)
    assert await live_gate.ask_if_needed(call, PAY, at.tool_context) == {"error": STORE_DOWN}
    assert outer_call.get() is None


@pytest.mark.parametrize("chat_id", ["c1", "inner"])
async def test_only_calls_of_the_chats_own_session_have_others_nested_in_them(chat_id: str) -> None:
    at = await AtTheGate.opened(chat_id)
    at.observe()
    current_chat.set(at.leased)
    outer_call.set(None)
    assert await at.before(FunctionTool(pay)) is None
    assert outer_call.get() == (KEY if chat_id == "c1" else None)


class AsksItself(BaseTool):
    def __init__(self) -> None:
        super().__init__(name="pay", description="Asks, and pays.")
        self.runs = 0

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        self.runs += 1
        return {"paid": args["amount"]}


@pytest.mark.parametrize("approved", [False, True])
async def test_a_tool_that_has_asked_itself_runs_again_only_if_it_is_approved(approved: bool) -> None:
    at, tool = await AtTheGate.opened(), AsksItself()
    observed = at.observe()
    observed.happens = lambda: at.decide(approved=approved)
    await at.before(tool)
    at.tool_context.request_confirmation(hint="Sure?")
    assert await at.after(tool) == ({"paid": 5} if approved else DENIED)
    assert tool.runs == (1 if approved else 0)
    again = [("began", "1")] if approved else []
    assert observed.told == [("began", "1"), ("waits", "1"), ("goes on", "1"), *again, ("settled", "1")]


async def test_a_tool_that_has_asked_itself_runs_again_at_once_if_the_policy_asks_nobody() -> None:
    at, tool = await AtTheGate.opened(), AsksItself()
    observed = at.observe()
    call = at.call(tool)
    call.verdict = "nobody"
    at.tool_context.request_confirmation(hint="Sure?", payload={"to": "Bob"})
    assert await live_gate.run_again(call, PAY, at.tool_context) == {"paid": 5}
    assert (tool.runs, observed.told) == (1, [("began", "1")])
    assert at.tool_context.tool_confirmation == ToolConfirmation(confirmed=True, payload={"to": "Bob"})
    (found,) = (await at.store.read(CHAT)).records
    assert (found.state, found.decided_by) == (State.DONE, "by policy")


async def test_what_is_approved_while_the_run_ends_is_left_to_the_next_one() -> None:
    at = await AtTheGate.opened()

    async def approve() -> None:
        at.leased.begins_nothing = True
        await at.decide(approved=True)

    observed = at.observe()
    observed.happens = approve
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(at.before(GATED), 3600)
    (found,) = (await at.store.read(CHAT)).records
    assert found.state is State.APPROVED
    assert observed.told == [("waits", "1"), ("goes on", "1"), ("abandoned", "1")]


async def test_what_is_approved_inside_a_tool_while_a_request_run_ends_is_given_up_with_it() -> None:
    at = await AtTheGate.opened("inner")

    async def approve() -> None:
        at.leased.begins_nothing = True
        await at.decide(approved=True)

    observed = at.observe(is_live=False)
    observed.happens = approve
    current_chat.set(at.leased)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(at.before(GATED), 3600)
    assert observed.told == [("waits", "1"), ("goes on", "1"), ("abandoned", "1")]


async def test_a_browsers_call_whose_chat_is_gone_was_not_run() -> None:
    at = await AtTheGate.opened()
    at.observe().happens = lambda: at.store.forget(at.leased.lease)
    assert await at.before(client_tool(pay)) == NOT_APPROVED
