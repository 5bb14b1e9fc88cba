"""The application's policy says who is asked about a call: nobody, the owner, or others. If it fails, the owner is."""

import logging
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, FunctionTool, ToolContext

from adk_stream_protocol import ApprovalPolicy, ApprovalRequest, Chain, Link, Nobody, Owner, client_tool
from adk_stream_protocol.testing import ScriptedModel, call
from support.approvers import Approver
from support.pages import Till, page, results_told


def paying() -> list[Any]:
    return [call("pay", amount=5)]


@pytest.mark.parametrize("answer", [Nobody, Nobody()])
@pytest.mark.parametrize("sdk_version", [5, 6, 7])
async def test_nobody_is_asked_about_a_tool_that_requires_confirmation(answer: Any, sdk_version: int) -> None:
    till = Till()
    policy = ApprovalPolicy(decide=lambda _: answer)
    async with page(paying(), "Paid.", tools=(till.gated,), approvals=policy, sdk_version=sdk_version) as at:
        said = await at.say("Pay.")
        assert till.paid == [5]
        assert at.part("pay")["output"] == {"paid": 5}
        (data,) = said.of_type("data-adk-approval")
        assert data["data"] == {"status": "approved", "by": "policy"}
        if sdk_version == 7:
            (request,) = said.of_type("tool-approval-request")
            assert request["isAutomatic"] is True
            (response,) = said.of_type("tool-approval-response")
            assert response == {"type": response["type"], "approvalId": request["approvalId"], "approved": True}
            assert said.types.index("tool-approval-response") < said.types.index("tool-output-available")
        else:
            assert not {"tool-approval-request", "tool-approval-response"} & set(said.types)
        await at.is_what_a_reload_shows()
        trail = await at.chat.bridge.audit("ann", "c1")
        assert [entry.state for entry in trail] == ["approved", "claimed", "started", "done"]
        assert (trail[0].by, trail[0].approved, trail[0].arguments) == ("by policy", True, {"amount": 5})


async def test_nobody_is_asked_about_a_tool_that_asks_by_itself() -> None:
    till = Till()

    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Sure?", payload={"to": "Bob"})
            return {}
        assert tool_context.tool_confirmation.payload == {"to": "Bob"}
        return await till.pay(amount)

    policy = ApprovalPolicy(decide=lambda _: Nobody)
    async with page(paying(), "Paid.", tools=(FunctionTool(pay),), approvals=policy) as at:
        await at.say("Pay.")
        assert (till.paid, at.part("pay")["output"]) == ([5], {"paid": 5})
        trail = await at.chat.bridge.audit("ann", "c1")
        assert [entry.state for entry in trail] == ["approved", "claimed", "started", "done"]


@pytest.mark.parametrize("is_gated", [True, False])
async def test_the_owner_is_asked_whether_the_tool_requires_it_or_not(is_gated: bool) -> None:
    till = Till()
    tool = till.gated if is_gated else FunctionTool(till.pay)
    async with page(paying(), "Paid.", tools=(tool,), approvals=ApprovalPolicy(decide=lambda _: Owner)) as at:
        await at.say("Pay.")
        assert (at.states("pay"), till.paid) == (["approval-requested"], [])
        at.decide("pay")
        await at.answer()
        assert till.paid == [5]
        await at.is_what_a_reload_shows()


async def test_a_denied_call_of_a_tool_without_a_gate_does_not_run() -> None:
    till = Till()
    options: dict[str, Any] = {"approvals": ApprovalPolicy(decide=lambda _: Owner())}
    async with page(paying(), "Not paid.", tools=(FunctionTool(till.pay),), **options) as at:
        await at.say("Pay.")
        at.decide("pay", approved=False, reason="No.")
        await at.answer()
        assert (till.paid, at.states("pay")) == ([], ["output-denied"])
        assert results_told(at.chat.model) == [{"error": "This call was not run: the user denied it. Reason: No."}]


def fails(_: ApprovalRequest) -> Any:
    raise RuntimeError("secret")


async def fails_later(_: ApprovalRequest) -> Any:
    raise RuntimeError("secret")


WRONG = {
    "an exception": fails,
    "an exception later": fails_later,
    "None": lambda _: None,
    "a bool": lambda _: True,
    "a chain without links": lambda _: Chain([]),
    "a link without approvers": lambda _: Chain([Link([])]),
    "an approver that is no text": lambda _: Chain([Link([7])]),  # pyright: ignore[reportArgumentType]
    "a link that is none": lambda _: Chain(["max"]),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("decide", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("is_gated", [True, False])
async def test_a_policy_that_fails_asks_the_owner(
    decide: Any, is_gated: bool, caplog: pytest.LogCaptureFixture
) -> None:
    till = Till()
    tool = till.gated if is_gated else FunctionTool(till.pay)
    with caplog.at_level(logging.DEBUG):
        async with page(paying(), "Paid.", tools=(tool,), approvals=ApprovalPolicy(decide=decide)) as at:
            await at.say("Pay.")
            assert (at.states("pay"), till.paid) == (["approval-requested"], [])
    assert "the policy failed" in caplog.text
    assert "secret" not in caplog.text


async def test_the_policy_knows_who_wants_what_in_which_state() -> None:
    asked: list[ApprovalRequest] = []

    async def decide(request: ApprovalRequest) -> Any:
        asked.append(request)
        request.arguments["amount"] = 1_000_000  # pyright: ignore[reportIndexIssue]
        return Nobody

    till = Till()
    options: dict[str, Any] = {
        "approvals": ApprovalPolicy(decide=decide),
        "prepare": lambda *_: {"state_delta": {"limit": 7}},
    }
    async with page(paying(), "Paid.", tools=(FunctionTool(till.pay),), **options) as at:
        await at.say("Pay.")
        (request,) = asked
        assert (request.user, request.tool, request.agent, request.state["limit"]) == ("ann", "pay", "helper", 7)
        assert till.paid == [5]  # the policy has a copy
        assert await at.chat.bridge.audit("ann", "c1") == []  # nobody would have been asked without it either


async def test_a_resumed_call_is_not_asked_about_again() -> None:
    asked: list[str] = []

    def decide(request: ApprovalRequest) -> Any:
        asked.append(request.tool)
        return Owner

    options: dict[str, Any] = {"approvals": ApprovalPolicy(decide=decide)}
    async with page(paying(), "Paid.", tools=(FunctionTool(Till().pay),), **options) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert asked == ["pay"]


async def test_adks_own_control_flow_is_not_asked_about() -> None:
    till = Till()
    payer = LlmAgent(name="payer", model=ScriptedModel([paying(), "Paid."]), tools=[till.gated], description="Pays.")
    transfer = [call("transfer_to_agent", agent_name="payer")]
    root = LlmAgent(name="root", model=ScriptedModel([transfer]), sub_agents=[payer])
    asked: list[tuple[str, str]] = []

    def decide(request: ApprovalRequest) -> Any:
        asked.append((request.agent, request.tool))
        return Nobody

    async with page(agent=root, approvals=ApprovalPolicy(decide=decide)) as at:
        await at.say("Pay.")
        assert (asked, till.paid) == ([("payer", "pay")], [5])


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # ADK's own
async def test_a_policy_asks_about_the_calls_of_an_agent_that_is_a_tool() -> None:
    till = Till()
    inner = LlmAgent(name="inner", model=ScriptedModel([paying(), "?"]), tools=[FunctionTool(till.pay)])
    outer = LlmAgent(name="outer", model=ScriptedModel([[call("inner", request="pay")], "?"]), tools=[AgentTool(inner)])

    def decide(request: ApprovalRequest) -> Any:
        return Owner if request.tool == "pay" else Nobody

    async with page(agent=outer, approvals=ApprovalPolicy(decide=decide)) as at:
        await at.say("Pay.")
        assert (till.paid, at.states("pay")) == ([], ["approval-requested"])
        at.decide("pay")
        await at.answer()
        assert till.paid == [5]


@pytest.mark.parametrize("approve", [True, False])
async def test_a_browsers_tool_is_gated_or_waived_by_the_policy(approve: bool) -> None:
    tool = client_tool("locate", "Where?", output={"type": "string"}, approve=approve)
    asking = ApprovalPolicy(decide=lambda _: Owner)
    async with page([call("locate")], "There.", tools=(tool,), approvals=asking) as at:
        await at.say("Where?")
        assert at.states("locate") == ["approval-requested"]
    waiving = ApprovalPolicy(decide=lambda _: Nobody)
    async with page([call("locate")], "There.", tools=(tool,), approvals=waiving) as at:
        await at.say("Where?")
        assert at.states("locate") == ["input-available"]
        at.output("locate", "Tokyo")
        assert (await at.answer()).text == "There."
        await at.is_what_a_reload_shows()


async def test_a_single_name_is_one_approver() -> None:
    policy = ApprovalPolicy(decide=lambda _: Chain([Link("max")]))
    async with page(paying(), "Paid.", tools=(Till().gated,), approvals=policy) as at:
        await at.say("Pay.")
        assert len(await Approver(at.chat.app, "max").inbox()) == 1
        assert await Approver(at.chat.app, "m").inbox() == []


async def test_questions_have_the_ids_that_are_recorded() -> None:
    async with page(paying(), tools=(Till().gated,)) as at:
        await at.say("Pay.")
        (entry,) = await at.chat.bridge.audit("ann", "c1")
        assert entry.approval_id == at.part("pay")["approval"]["id"]
