"""The gate as ADK calls it: what it notes of a call, before the tool and after it."""

import asyncio
import logging
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from adk_stream_protocol import ApprovalRequest, Nobody
from adk_stream_protocol.adk import versions
from adk_stream_protocol.adk.calls.outcomes import OUTCOME_UNKNOWN
from adk_stream_protocol.adk.calls.waiting import current_chat
from adk_stream_protocol.protocol.digest import cannot_be_shown
from support.at_the_gate import AtTheGate
from support.gated_calls import KEY, pay
from support.records import CHAT, paid
from support.session_events import ASKS, answering, calling

pytestmark = pytest.mark.virtual_time


PAYS = FunctionTool(pay)


async def test_a_tool_is_at_work_from_its_beginning_to_its_end() -> None:
    at = await AtTheGate.opened()
    assert await at.before(PAYS) is None
    assert at.leased.at_work == at.leased.unstored == {KEY}
    assert await at.after(PAYS, {"paid": 5}) is None
    assert at.leased.at_work == set()
    assert at.leased.unstored == {KEY}  # until the session has its result


async def test_a_call_that_is_refused_never_was_at_work() -> None:
    at = await AtTheGate.opened()
    at.tool_context.tool_confirmation = ToolConfirmation(confirmed=True)
    observed = at.observe()
    assert await at.before(PAYS) == {"error": "This call was not run: nobody has approved it."}
    assert at.leased.at_work == at.leased.unstored == set()
    assert observed.told == []


async def test_a_run_that_is_about_to_end_begins_no_tool() -> None:
    at = await AtTheGate.opened()
    at.leased.begins_nothing = True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(at.before(PAYS), 3600)
    assert at.leased.at_work == set()


async def test_a_policy_that_outlives_its_run_begins_no_tool() -> None:
    def decide(_: ApprovalRequest) -> Any:
        at.leased.begins_nothing = True
        return Nobody

    at = await AtTheGate.opened(decide=decide)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(at.before(PAYS), 3600)
    assert at.leased.at_work == set()


async def test_nobody_waits_for_the_result_of_a_call_that_is_left_to_the_client() -> None:
    at, tool = await AtTheGate.opened(), LongRunningFunctionTool(pay)
    observed = at.observe()
    assert await at.before(tool) is None
    assert await at.after(tool) is None
    assert at.leased.at_work == at.leased.unstored == set()
    assert observed.told == [("began", "1"), ("left", "1")]


async def test_nobody_waits_for_a_tool_whose_end_the_gate_cannot_treat() -> None:
    at = await AtTheGate.opened()
    await at.before(PAYS)
    at.tool_context.request_confirmation(hint="Sure?")
    at.store.failures = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        await at.after(PAYS)
    assert at.leased.at_work == set()


@pytest.mark.parametrize("has_given_up", [False, True])
async def test_a_model_that_is_gone_gets_no_result(has_given_up: bool) -> None:
    at = await AtTheGate.opened()
    observed = at.observe(has_given_up=has_given_up)
    await at.before(PAYS)
    if has_given_up:
        with pytest.raises(asyncio.CancelledError):
            await at.after(PAYS, {"paid": 5})
    else:
        assert await at.after(PAYS, {"paid": 5}) is None
    assert observed.told == [("began", "1"), ("settled", "1")]


async def test_a_tool_that_asks_by_itself_is_recorded_with_what_it_asks_and_the_policys_hint() -> None:
    at = await AtTheGate.opened()
    await at.before(PAYS)
    at.tool_context.request_confirmation(hint="Sure?", payload={"to": ""})
    assert await at.after(PAYS) is None
    assert at.tool_context.actions.requested_tool_confirmations["1"].hint == "Pay it?"
    (found,) = (await at.store.read(CHAT)).records
    assert (found.hint, found.asked_payload, found.approval_id) == ("Pay it?", {"to": ""}, None)


async def test_a_question_that_cannot_be_recorded_is_not_asked() -> None:
    at = await AtTheGate.opened()
    await at.before(PAYS)
    at.tool_context.request_confirmation(hint="Sure?")
    at.store.is_failing_reads = True
    assert await at.after(PAYS) == {"error": "This call was not run: approvals cannot be recorded right now."}
    assert at.tool_context.actions.requested_tool_confirmations == {}


@pytest.mark.parametrize("chat_id", ["c1", "inner"])
async def test_a_call_in_a_session_of_its_own_is_nested_in_the_live_chats(chat_id: str) -> None:
    at, tool = await AtTheGate.opened(chat_id), LongRunningFunctionTool(pay)
    observed = at.observe()
    observed.happens = at.output
    current_chat.set(at.leased)
    await at.before(tool)
    is_nested = chat_id == "inner"
    assert await at.after(tool) == ({"seat": 7} if is_nested else None)
    (found,) = (await at.store.read(CHAT)).records
    assert found.is_nested is (True if is_nested else None)
    waited = [("waits", "1"), ("goes on", "1"), ("settled", "1")]
    assert observed.told == [("began", "1"), *(waited if is_nested else [("left", "1")])]


@pytest.mark.parametrize("code", ["INVOCATION_ABORTED", "SOMETHING_ELSE"])
async def test_what_adk_writes_about_a_run_that_it_aborts_is_what_is_recorded(code: str) -> None:
    at = await AtTheGate.opened()
    at.leased.records[KEY] = paid("1")
    event: Event = answering("1")
    event.error_code = code
    event.get_function_responses()[0].response = {"error": "aborted"}
    assert await at.gate.on_event_callback(invocation_context=at.context, event=event) is None
    told = event.get_function_responses()[0].response
    assert told == ({"paid": 5} if code == "INVOCATION_ABORTED" else {"error": "aborted"})


# -- remote agents ----------------------------------------------------------------------------------------------------


def asked_by_remote(about: dict[str, Any]) -> Event:
    """As ADK relays it."""
    question = types.FunctionCall(id="q1", name=ASKS, args={"originalFunctionCall": about})
    relayed = {"a2a:response": {"id": "task-1"}}
    return calling(question, in_message=None, long_running_tool_ids={"q1"}, custom_metadata=relayed)


@pytest.fixture
def answers_reach_remote_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with newer releases: with others nobody is asked."""
    monkeypatch.setattr(versions, "ANSWERS_REACH_REMOTE_AGENTS", True)
    monkeypatch.setattr(versions, "REMOTE_SUB_AGENTS_GO_ON", True)


@pytest.mark.usefixtures("answers_reach_remote_agents")
@pytest.mark.parametrize(
    ("about", "arguments"),
    [({"id": "1", "name": "pay", "args": {"amount": 5}}, {"amount": 5}), ({"id": "1", "name": "pay"}, {})],
)
async def test_what_a_remote_agent_asks_is_recorded_once_and_asked_as_often_as_adk_relays_it(
    about: dict[str, Any], arguments: dict[str, Any]
) -> None:
    at = await AtTheGate.opened()
    for _ in range(2):
        event = asked_by_remote(about)
        assert await at.gate.on_event_callback(invocation_context=at.context, event=event) is None
        assert ([call.id for call in event.get_function_calls()], event.long_running_tool_ids) == (["q1"], {"q1"})
    (found,) = (await at.store.read(CHAT)).records
    assert (found.call, found.tool, found.arguments, found.question_id) == (KEY, "pay", arguments, "q1")
    assert found.made_in == {"agent": "a", "remote": True}
    assert at.leased.records == {KEY: found}


@pytest.mark.usefixtures("answers_reach_remote_agents")
async def test_what_a_remote_agent_asks_and_nobody_can_record_is_not_asked(caplog: pytest.LogCaptureFixture) -> None:
    at, event = await AtTheGate.opened(), asked_by_remote({"id": "1", "name": "pay", "args": {"amount": float("nan")}})
    assert await at.gate.on_event_callback(invocation_context=at.context, event=event) is None
    assert (event.content, event.long_running_tool_ids) == (None, set())
    assert (await at.store.read(CHAT)).records == []
    reason = cannot_be_shown({"amount": float("nan")})
    logged = [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.ERROR]
    assert logged == [f"a remote agent's question was not asked: This call was not run: {reason}."]


# -- a call that turns out to be another one --------------------------------------------------------------------------


@pytest.mark.parametrize("is_live", [False, True])
async def test_a_call_that_is_not_what_was_shown_fails_and_is_over(is_live: bool) -> None:
    at = await AtTheGate.opened()
    observed = at.observe() if is_live else None
    at.leased.records[KEY] = paid("1")
    at.leased.begin(KEY)
    response = await at.gate.fail(PAYS, at.tool_context, "It is another one.")
    assert response == {"error": OUTCOME_UNKNOWN}  # the store has no such call
    assert (at.leased.at_work, at.leased.unstored) == (set(), set())
    assert observed is None or observed.told == [("settled", "1")]


async def test_a_call_of_another_chat_that_is_not_what_was_shown_fails() -> None:
    at = await AtTheGate.opened("elsewhere")
    assert await at.gate.fail(PAYS, at.tool_context, "It is another one.") == {"error": "It is another one."}
