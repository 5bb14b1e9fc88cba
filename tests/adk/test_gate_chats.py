"""Which chat a call belongs to at the gate, and what the gate tells of it."""

import asyncio
from typing import Any

import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.workflow import node
from google.genai import types

from adk_stream_protocol import call_ref, client_tool
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.calls.long_running import STILL_AT_WORK, work_record
from adk_stream_protocol.adk.calls.waiting import current_chat
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import ChatKey, State
from support.at_the_gate import AtTheGate
from support.gated_calls import KEY, PAY, logged, pay
from support.records import CHAT
from support.session_events import calling
from support.session_events import pay as call_of_pay

pytestmark = pytest.mark.virtual_time

PAYS = FunctionTool(pay)
NO_CLIENT = {"error": "This call was not run: there is no client here that could answer it."}


async def another_live_chat(at: AtTheGate) -> LeasedChat:
    """That the same worker runs, and whose task this is."""
    lease, snapshot = await at.store.acquire(ChatKey("helper", "ann", "c2"), 30)
    assert lease is not None
    other = LeasedChat.taken(lease, snapshot)
    at.gate.begin_run(other)
    observer: Any = object()
    at.gate.go_live(lease, observer)
    assert other.live_observer is observer
    assert current_chat.get() is other
    return other


async def test_a_call_of_a_chat_that_is_run_here_is_its_own_whoever_runs_it() -> None:
    at = await AtTheGate.opened()
    other = await another_live_chat(at)
    assert await at.before(PAYS) is None
    assert (at.leased.at_work, other.at_work) == ({KEY}, set())


async def test_a_live_chat_that_has_ended_has_no_calls_nested_in_it() -> None:
    at = await AtTheGate.opened("inner")
    other = await another_live_chat(at)
    at.gate.end_run(other.lease)
    assert await at.before(client_tool(pay)) == NO_CLIENT
    assert (await at.store.read(other.key)).records == []


async def test_what_a_live_session_says_is_told_to_its_run() -> None:
    at = await AtTheGate.opened()
    observed: Any = at.observe()
    routed: list[Any] = []
    observed.route = lambda *told: routed.append(told)
    event: Event = calling(call_of_pay())
    assert await at.gate.on_event_callback(invocation_context=at.context, event=event) is None
    assert routed == [(event, at.context.session)]


async def test_a_tool_in_a_node_that_needs_nobody_is_at_work_like_any_other() -> None:
    at = await AtTheGate.opened()
    at.tool_context._node = node(PAYS)  # pyright: ignore[reportPrivateUsage]
    assert await at.before(PAYS) is None
    assert at.leased.at_work == {KEY}


async def test_a_browsers_call_is_opened_though_adk_has_a_confirmation_of_it() -> None:
    at = await AtTheGate.opened()
    at.tool_context.tool_confirmation = ToolConfirmation(confirmed=True)
    assert await at.before(client_tool(pay)) is None
    (found,) = (await at.store.read(CHAT)).records
    assert (found.executor, found.state) == ("browser", State.APPROVED)


def cannot_say(amount: int) -> bool:
    raise ValueError("secret")


@pytest.mark.parametrize("is_live", [False, True])
async def test_a_browsers_tool_that_cannot_say_whether_it_asks_fails(
    is_live: bool, caplog: pytest.LogCaptureFixture
) -> None:
    at, tool = await AtTheGate.opened(), client_tool(pay, approve=cannot_say)
    if is_live:
        at.observe()
        assert await at.before(tool) == {"error": "The tool pay failed."}
        assert logged(caplog) == ["pay was not run, because its `approve` failed: ValueError"]
    else:
        with pytest.raises(ValueError, match="secret"):
            await at.before(tool)
        assert logged(caplog) == []
    assert (await at.store.read(CHAT)).records == []


async def test_a_tool_that_returns_nothing_has_a_result() -> None:
    at = await AtTheGate.opened()
    observed = at.observe()
    await at.before(PAYS)
    assert await at.after(PAYS) is None
    assert at.leased.unstored == {KEY}
    assert observed.told == [("began", "1"), ("settled", "1")]


async def test_whether_work_has_ended_is_read_only_if_somebody_can_have_told_its_end() -> None:
    at, tool = await AtTheGate.opened(), LongRunningFunctionTool(pay)
    await at.before(tool)
    at.store.reads = 0
    assert await at.after(tool) is None
    assert at.store.reads == 1  # to leave the call to the client


async def test_what_the_model_is_told_of_work_is_nobodys_to_change() -> None:
    at, tool = await AtTheGate.opened(), LongRunningFunctionTool(pay)
    await at.before(tool)
    call_ref(at.tool_context)
    begun = work_record(CHAT, KEY, "pay", PAY)
    await at.store.add(begun)
    assert await at.store.compare_and_set(begun, call_record.complete(begun, result={"output": 5}))
    told = await at.after(tool)
    told["status"] = "changed by a callback of the application"
    assert STILL_AT_WORK == {"status": "pending"}


async def test_in_a_live_session_a_tool_that_asks_by_itself_asks_under_an_id_of_ours() -> None:
    at = await AtTheGate.opened()
    asked: list[str | None] = []

    async def decide() -> None:
        asked.extend(found.approval_id for found in (await at.store.read(CHAT)).records)
        await at.decide(approved=False)

    at.observe().happens = decide
    await at.before(PAYS)
    at.tool_context.request_confirmation(hint="Sure?")
    await asyncio.wait_for(at.after(PAYS), 60)
    assert [type(approval_id) for approval_id in asked] == [str]


async def test_models_are_called_without_names_to_look_for() -> None:
    at = await AtTheGate.opened()
    request = LlmRequest()
    context = CallbackContext(at.context)
    await at.gate.before_model_callback(callback_context=context, llm_request=request)


SOUND = types.Part(inline_data=types.Blob(data=b"0", mime_type="audio/pcm"))


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("said", [SOUND, types.Part(text="one more ")], ids=["sound", "words"])
async def test_what_is_said_is_told_to_a_live_run_alone(said: types.Part, is_live: bool) -> None:
    at, routed = await AtTheGate.opened(), list[Any]()
    if is_live:
        observed: Any = at.observe()
        observed.route = lambda *told: routed.append(told)
    event = Event(author="a", content=types.Content(role="model", parts=[said]), partial=True)
    assert await at.gate.on_event_callback(invocation_context=at.context, event=event) is None
    assert routed == ([(event, at.context.session)] if is_live else [])


@pytest.mark.parametrize(("branch", "is_live", "is_delegated"), [("a.b@1", True, True), ("a.b@1", False, False)])
async def test_a_call_is_delegated_only_in_a_live_session(branch: str, is_live: bool, is_delegated: bool) -> None:
    at = await AtTheGate.opened()
    if is_live:
        at.observe()
    at.context.branch = branch
    assert at.call(PAYS).is_delegated is is_delegated


async def test_the_result_of_a_call_inside_a_tool_has_no_place_in_the_session() -> None:
    at = await AtTheGate.opened("inner")
    at.observe(is_live=False)
    current_chat.set(at.leased)
    await at.before(PAYS)
    assert at.leased.unstored == {KEY}
    await at.after(PAYS, {"paid": 5})
    assert at.leased.unstored == set()


@pytest.mark.parametrize("is_live", [False, True])
async def test_a_task_is_refused_in_a_live_session_alone(is_live: bool) -> None:
    at, task = await AtTheGate.opened(), FunctionTool(pay)
    task._defers_response = True  # pyright: ignore[reportPrivateUsage]
    if is_live:
        at.observe()
    await at.before(task)
    refused = await at.after(task, None)
    assert ("cannot work in a live session" in refused["error"]) if is_live else refused is None


async def test_a_call_that_is_not_what_was_shown_has_failed() -> None:
    at = await AtTheGate.opened()
    observed = at.observe()
    observed.happens = lambda: at.decide(approved=True)
    tool = FunctionTool(pay, require_confirmation=True)
    assert await at.before(tool) is None
    assert await at.gate.fail(tool, at.tool_context, "Changed.") == {"error": "Changed."}
    (found,) = (await at.store.read(CHAT)).records
    assert (found.state, found.result["response"]) == (State.FAILED, {"error": "Changed."})
    assert observed.told[-1] == ("settled", "1")


async def test_temporary_state_is_not_recorded() -> None:
    at = await AtTheGate.opened()
    at.observe().happens = lambda: at.decide(approved=True)
    tool = FunctionTool(pay, require_confirmation=True)
    assert await at.before(tool) is None
    at.tool_context.state.update({"temp:token": "secret", "paid": 5})
    assert await at.after(tool, {"paid": 5}) is None
    (found,) = (await at.store.read(CHAT)).records
    assert found.result["state"] == {"paid": 5}


async def test_what_is_left_of_a_result_whose_chat_was_deleted_is_unknown() -> None:
    at = await AtTheGate.opened()
    at.observe().happens = lambda: at.decide(approved=True)
    tool = FunctionTool(pay, require_confirmation=True)
    assert await at.before(tool) is None
    await at.store.forget(at.leased.lease)
    assert "is unknown" in (await at.after(tool, {"paid": 5}))["error"]
