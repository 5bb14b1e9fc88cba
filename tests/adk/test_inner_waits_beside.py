"""Request mode: what stands in one answer of the model beside an agent that runs as a tool, while one of its calls
waits. ADK stores the results of one answer together, so all of them go on until then."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext

from adk.test_inner_waits import ASK, PAY, agent, shop
from adk_stream_protocol import ApprovalPolicy, Nobody, Owner, call_ref, client_tool
from adk_stream_protocol.testing import ScriptedModel, call
from support.pages import Till, page

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own
]

PENDING = {"status": "pending"}
BY_POLICY = ApprovalPolicy(decide=lambda asked: Owner() if asked.tool == "pay" else Nobody())


async def look() -> dict[str, str]:
    """Looks at the account."""
    return {"balance": "plenty"}


async def refund(amount: int) -> dict[str, int]:
    """Pays back."""
    return {"refunded": amount}


async def export(tool_context: ToolContext) -> dict[str, str]:
    """Exports, which takes days."""
    call_ref(tool_context)
    return {"status": "begun"}


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


def last_step(at: Any) -> list[dict[str, Any]]:
    parts = at.messages[-1]["parts"]
    start = max(place for place, part in enumerate(parts) if part["type"] == "step-start")
    return [part for part in parts[start:] if "toolCallId" in part]


BESIDE: dict[str, tuple[Any, Any, Any, Any]] = {
    "an ordinary tool": (look, call("look"), PENDING, {"balance": "plenty"}),
    "a payment that the policy allows": (
        FunctionTool(refund, require_confirmation=True),
        call("refund", amount=2),
        {"refunded": 2},
        {"refunded": 2},
    ),
    "long-running work": (LongRunningFunctionTool(export), call("export"), PENDING, {"status": "begun"}),
}


@pytest.mark.parametrize("is_first", [True, False], ids=["before it", "after it"])
@pytest.mark.parametrize("beside", BESIDE)
async def test_what_goes_on_beside_a_call_that_waits_stands_before_it_and_gets_its_result(
    beside: str, is_first: bool
) -> None:
    tool, made, meanwhile, result = BESIDE[beside]
    till, name = Till(), made.function_call.name
    cashier = agent("cashier", PAY, "Inner done.", tools=[till.gated])
    outer = [made, *ASK] if is_first else [*ASK, made]
    tools = (AgentTool(cashier), tool)
    async with shop(outer, "Outer done.", cashier=cashier, tools=tools, approvals=BY_POLICY) as (_, at):
        await at.say("Pay.")
        assert at.part(name)["output"] == meanwhile
        assert [part["type"] for part in last_step(at)] == ["tool-pay"]
        await at.is_what_a_reload_shows()
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
        assert (at.part(name)["state"], at.part(name)["output"]) == ("output-available", result)
        await at.is_what_a_reload_shows()
        assert till.paid == [5]


async def test_a_browsers_call_beside_a_call_that_waits_is_the_clients_to_answer() -> None:
    till = Till()
    cashier = agent("cashier", PAY, "Inner done.", tools=[till.gated])
    async with shop(
        [call("where"), *ASK], "Outer done.", cashier=cashier, tools=(AgentTool(cashier), client_tool(where))
    ) as (_, at):
        await at.say("Pay.")
        assert (at.states("where"), at.states("pay")) == (["input-available"], ["approval-requested"])
        await at.is_what_a_reload_shows()


class Slow(ScriptedModel):
    """Pauses before each word, for less than the time after which a stream with an open question ends."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in super().generate_content_async(llm_request, stream):
            await asyncio.sleep(0.03)
            yield response


@pytest.mark.parametrize("direct_text", [True, False])
async def test_words_of_another_agent_beside_it_come_before_the_stream_ends(direct_text: bool) -> None:
    till, words = Till(), "word " * 20
    cashier = agent("cashier", PAY, "Inner done.", tools=[till.gated])
    asking = agent("asking", ASK, "Outer done.", tools=[AgentTool(cashier)])
    both = ParallelAgent(name="both", sub_agents=[asking, LlmAgent(name="talking", model=Slow([words]))])
    async with page(agent=both, direct_text=direct_text) as at:
        asked = await at.say("Pay, and talk.")
        assert (asked.text, at.states("pay")) == (words, ["approval-requested"])
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
    assert till.paid == [5]
