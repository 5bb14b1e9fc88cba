"""The gate as ADK calls it, where the policy, the application or a provider has something to say about a call."""

import copy
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.auth.auth_tool import AuthConfig
from google.adk.events import Event
from google.adk.tools import BaseTool, FunctionTool, LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol import ApprovalRequest, Nobody, Owner, call_ref, client_tool
from adk_stream_protocol.adk.calls.credentials import CONSENT_NEEDED
from adk_stream_protocol.adk.calls.gated_call import STORE_DOWN
from adk_stream_protocol.adk.calls.long_running import work_record
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_keys import work_key
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from support.at_the_gate import AtTheGate
from support.gated_calls import KEY, PAY, pay
from support.records import CHAT
from support.session_events import calling

pytestmark = pytest.mark.virtual_time

PAYS, GATED = FunctionTool(pay), FunctionTool(pay, require_confirmation=True)
ASKS = {"error": "This tool call requires confirmation, please approve or reject."}


async def records(at: AtTheGate) -> list[CallRecord]:
    return (await at.store.read(CHAT)).records


def owner(_: ApprovalRequest) -> Any:
    return Owner


def nobody(_: ApprovalRequest) -> Any:
    return Nobody


# -- the policy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [PAYS, GATED], ids=["ungated", "gated"])
async def test_adk_asks_whom_the_policy_names(tool: BaseTool) -> None:
    at = await AtTheGate.opened(decide=owner)
    assert await at.before(tool) == ASKS
    assert at.tool_context.actions.requested_tool_confirmations.keys() == {"1"}
    assert at.tool_context.actions.skip_summarization is True
    assert at.leased.at_work == {CallKey("i1", "1")}  # a run that is drained waits for the question
    assert await at.after(tool, ASKS) is None
    assert (at.leased.at_work, at.leased.unstored) == (set(), {CallKey("i1", "1")})
    (found,) = await records(at)
    assert (found.state, found.approval_id) == (State.PENDING, None)


@pytest.mark.parametrize("tool", [PAYS, GATED], ids=["ungated", "gated"])
async def test_what_the_policy_waives_is_recorded_if_the_tool_requires_it(tool: BaseTool) -> None:
    at = await AtTheGate.opened(decide=nobody)
    assert await at.before(tool) is None
    assert [found.state for found in await records(at)] == ([State.STARTED] if tool is GATED else [])


async def test_without_a_policy_it_is_adk_that_asks() -> None:
    at = await AtTheGate.opened()
    assert await at.before(GATED) is None
    assert await records(at) == []


async def test_the_policy_is_asked_about_a_copy_of_what_the_tool_gets() -> None:
    heard: list[ApprovalRequest] = []

    def decide(request: ApprovalRequest) -> Any:
        heard.append(copy.deepcopy(request))
        request.arguments.clear()  # pyright: ignore[reportAttributeAccessIssue]
        return Nobody

    at = await AtTheGate.opened(decide=decide)
    at.tool_context.state["limit"] = 7
    assert await at.before(GATED) is None
    (request,) = heard
    assert (request.user, request.tool, request.agent, request.arguments) == ("ann", "pay", "a", PAY)
    assert request.state["limit"] == 7
    (found,) = await records(at)
    assert found.arguments == PAY == {"amount": 5}


async def test_the_policy_is_not_asked_about_what_is_no_tool_of_the_application() -> None:
    at = await AtTheGate.opened(decide=owner)
    assert await at.before(BaseTool(name="missing", description="")) is None
    at = await AtTheGate.opened(decide=owner)
    at.context.agent = LlmAgent(name="a", sub_agents=[LlmAgent(name="b")])
    assert await at.before(FunctionTool(transfer_to_agent)) is None


def transfer_to_agent(amount: int) -> None:
    """ADK's own."""


@pytest.mark.parametrize("decide", [owner, nobody])
@pytest.mark.parametrize("approve", [False, True])
async def test_a_browsers_call_is_opened_as_the_policy_says(decide: Any, approve: bool) -> None:
    at = await AtTheGate.opened(decide=decide)
    assert await at.before(client_tool(pay, approve=approve)) is None
    (found,) = await records(at)
    assert found.state is (State.PENDING if decide is owner else State.APPROVED)
    assert (found.approval_id is not None) is (decide is owner or approve)


async def test_a_chat_that_is_not_run_here_asks_nobody() -> None:
    no_client = {"error": "This call was not run: there is no client here that could answer it."}
    for decide, refused in ((owner, no_client), (nobody, None), (None, None)):
        at = await AtTheGate.opened("elsewhere", decide=decide)
        assert await at.before(PAYS) == refused
        assert at.leased.at_work == set()


# -- work that goes on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [PAYS, LongRunningFunctionTool(pay)], ids=["plain", "long-running"])
@pytest.mark.parametrize("result", [{"status": "begun"}, None], ids=["a word", "nothing"])
@pytest.mark.parametrize("is_named", [True, False])
async def test_work_goes_on_after_the_first_word_of_a_call_that_has_a_name(
    tool: BaseTool, result: Any, is_named: bool
) -> None:
    at = await AtTheGate.opened()
    assert await at.before(tool) is None
    if is_named:
        call_ref(at.tool_context)
    assert await at.after(tool, result) is None
    opened = [found for found in await records(at) if found.is_work]
    assert [found.call for found in opened] == ([work_key(KEY)] if is_named and result and tool is not PAYS else [])


async def test_the_end_of_work_may_come_before_the_tool_returns() -> None:
    at, tool = await AtTheGate.opened(), LongRunningFunctionTool(pay)
    assert await at.before(tool) is None
    call_ref(at.tool_context)
    begun = work_record(CHAT, KEY, "pay", PAY)
    await at.store.add(begun)
    assert await at.store.compare_and_set(begun, call_record.complete(begun, result={"output": 5}))
    assert await at.after(tool) == {"status": "pending"}
    assert [found.call for found in await records(at)] == [work_key(KEY)]  # and none is left to the client


@pytest.mark.parametrize("is_live", [False, True])
async def test_a_call_that_cannot_be_left_to_the_client_says_so(is_live: bool) -> None:
    at, tool = await AtTheGate.opened(), LongRunningFunctionTool(pay)
    if is_live:
        observed = at.observe()
    assert await at.before(tool) is None
    at.store.failures = [StoreUnavailable()]
    assert await at.after(tool) == {"error": STORE_DOWN}
    if is_live:
        assert observed.told == [("began", "1"), ("settled", "1")]  # pyright: ignore[reportPossiblyUnbound]


# -- credentials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_live", [False, True])
async def test_a_tool_that_asks_for_a_credential_waits_for_it_only_where_adk_does_not_ask(is_live: bool) -> None:
    at = await AtTheGate.opened()
    if is_live:
        at.observe()
    await at.before(PAYS)
    asked: Any = at.tool_context.actions.requested_auth_configs
    asked["1"] = asked["2"] = AuthConfig.model_construct()
    at.store.failures = [StoreUnavailable()]  # so that it need not wait
    assert await at.after(PAYS) == ({"error": STORE_DOWN} if is_live else None)
    assert asked.keys() == ({"2"} if is_live else {"1", "2"})


@pytest.mark.parametrize("is_live", [False, True])
async def test_a_toolset_that_asks_for_a_credential_ends_a_live_session(is_live: bool) -> None:
    at = await AtTheGate.opened()
    routed: list[Event] = []
    if is_live:
        observed: Any = at.observe()
        observed.route = lambda event, _: routed.append(event)
    request = types.FunctionCall(id="c", name="adk_request_credential", args={})
    event = calling(request, long_running_tool_ids={"c"})
    instead = await at.gate.on_event_callback(invocation_context=at.context, event=event)
    if is_live:
        assert instead is not None
        assert (instead.error_code, instead.content, instead.long_running_tool_ids) == (CONSENT_NEEDED, None, None)
    else:
        assert instead is None
    assert routed == []
