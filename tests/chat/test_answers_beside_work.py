"""Calls that wait for the client while the server goes on with others: stock clients find the first in the last step,
and the others in a step before it."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events.request_input import RequestInput
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.workflow import Workflow
from pydantic import BaseModel

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import Reply, ScriptedModel, call
from support import releases
from support.pages import STEP, Page, Till, page, results_told
from support.workers import answer_body

STATUS = {"status": "in-progress"}
PLACE = {"latitude": 1}


def export() -> dict[str, str]:
    """Exports, which takes days."""
    return STATUS


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


def agent(name: str, *script: Reply, tools: list[Any], **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(script), tools=tools, **fields)


def last_step(at: Page) -> list[dict[str, Any]]:
    parts = at.messages[-1]["parts"]
    return parts[len(parts) - parts[::-1].index(STEP) :]


def nothing_unfinished_beside(at: Page, *tools: str) -> bool:
    """What the stock helpers look at before they post."""
    waiting = [part for part in last_step(at) if "toolCallId" in part]
    return sorted(part["type"] for part in waiting) == sorted(f"tool-{tool}" for tool in tools)


async def test_a_long_running_call_stands_before_the_calls_of_its_answer_that_wait() -> None:
    till = Till()
    script = [call("pay", amount=5), call("export"), call("where")], "Done."
    tools = till.gated, LongRunningFunctionTool(export), client_tool(where)
    async with page(*script, tools=tools) as at:
        await at.say("Go.")
        assert nothing_unfinished_beside(at, "pay", "where")
        assert (at.part("export")["output"], at.part("export")["preliminary"]) == (STATUS, True)
        await at.is_what_a_reload_shows()
        at.decide("pay")
        at.output("where", PLACE)
        assert (await at.answer()).text == "Done."
        assert till.paid == [5]
        await at.is_what_a_reload_shows()


async def test_a_long_running_call_that_is_the_clients_stands_with_the_others() -> None:
    def ask_boss() -> None:
        """Somebody else answers."""

    till = Till()
    script = [call("ask_boss"), call("pay", amount=5)], "Done."
    async with page(*script, tools=(LongRunningFunctionTool(ask_boss), till.gated)) as at:
        await at.say("Go.")
        assert nothing_unfinished_beside(at, "ask_boss", "pay")
        at.decide("pay")
        at.output("ask_boss", {"allowed": True})
        assert (await at.answer()).text == "Done."
        await at.is_what_a_reload_shows()


async def test_calls_that_only_go_on_share_one_step() -> None:
    script = [call("export"), call("export")], "Started."
    async with page(*script, tools=(LongRunningFunctionTool(export),)) as at:
        assert (await at.say("Go.")).text == "Started."
        assert at.states() == ["output-available"] * 2
        await at.is_what_a_reload_shows()


async def test_a_result_comes_after_a_long_running_call_of_the_same_answer() -> None:
    def weather() -> dict[str, str]:
        """Tells."""
        return {"sky": "clear"}

    script = [call("weather"), call("export")], "Done."
    async with page(*script, tools=(weather, LongRunningFunctionTool(export))) as at:
        assert (await at.say("Go.")).text == "Done."
        assert [part.get("preliminary") for part in at.parts()] == [True, None]
        await at.is_what_a_reload_shows()


async def test_a_call_beside_a_browser_s_is_shown_while_it_runs() -> None:
    shown: list[bool] = []

    async def weather() -> dict[str, str]:
        """Tells."""
        log = at.chat.bridge._service.running("ann", "c1")  # pyright: ignore[reportPrivateUsage]
        while log is None or b"tool-input-available" not in b"".join(log.since(0, 1000)):
            await asyncio.sleep(0.01)
        shown.append(True)
        return {"sky": "clear"}

    script = [call("weather"), call("where")], "Done."
    async with page(*script, tools=(weather, client_tool(where))) as at:
        async with asyncio.timeout(10):
            await at.say("Go.")
        assert shown == [True]
        await at.is_what_a_reload_shows()


def single_turn(till: Till) -> LlmAgent:
    """Its sub-agent runs as its tool, and pays."""
    cashier = agent(
        "cashier", [call("pay", amount=5)], "Paid.", tools=[till.gated], mode="single_turn", description="Pays."
    )
    return agent("root", [call("cashier", request="Pay.")], "Done.", tools=[], sub_agents=[cashier])


@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_what_an_agent_asks_while_it_runs_as_a_tool_runs_once_if_it_is_approved(yes: bool) -> None:
    till = Till()
    async with page(agent=single_turn(till)) as at:
        await at.say("Go.")
        assert (at.states("pay"), till.paid) == (["approval-requested"], [])
        at.decide("pay", approved=yes)
        await asyncio.gather(*(at.chat.post(answer_body(at)) for _ in range(4)))
        assert till.paid == ([5] if yes else [])


@releases.agents_as_tools_go_on
async def test_what_an_agent_asks_while_it_runs_as_a_tool_stands_after_its_call_whose_output_follows() -> None:
    till = Till()
    async with page(agent=single_turn(till)) as at:
        await at.say("Go.")
        assert nothing_unfinished_beside(at, "pay")
        assert at.part("cashier")["preliminary"] is True
        await at.is_what_a_reload_shows()
        at.decide("pay")
        assert (await at.answer()).text == "Paid.Done."
        assert at.part("cashier")["output"] == {"result": "Paid."}
        assert "preliminary" not in at.part("cashier")
        await at.is_what_a_reload_shows()


@releases.workflow_tools_in_one_step
async def test_what_a_workflow_asks_that_runs_as_a_tool_stands_after_its_call_whose_output_follows() -> None:
    class Query(BaseModel):
        name: str = ""

    async def ask(node_input: Any) -> Any:
        yield RequestInput(message="Sure?")

    def find(node_input: Any) -> dict[str, Any]:
        return {"found": node_input}

    flow = Workflow(name="lookup", description="Looks up.", edges=[("START", ask, find)], input_schema=Query)
    async with page([call("lookup", name="Ann")], "Done.", tools=(flow,)) as at:
        await at.say("Go.")
        assert nothing_unfinished_beside(at, "adk_request_input")
        await at.is_what_a_reload_shows()
        at.output("adk_request_input", "yes")
        assert (await at.answer()).text == "Done."
        assert at.part("lookup")["output"] == {"found": "yes"}
        assert results_told(at.chat.model)[-1] == {"found": "yes"}
        await at.is_what_a_reload_shows()


def time_off(days: int, tool_context: ToolContext) -> dict[str, Any]:
    """Reads the payload without looking whether it is there, as Google's own sample does."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="How many?", payload={"approved_days": 2})
        return {"status": "asked"}
    return {"days": tool_context.tool_confirmation.payload["approved_days"]}


async def test_an_approval_without_a_payload_gives_the_tool_what_it_has_asked_with() -> None:
    async with page([call("time_off", days=5)], "Have fun.", tools=(FunctionTool(time_off),)) as at:
        await at.say("Holidays.")
        at.decide("time_off")
        await at.answer()
        assert at.part("time_off")["output"] == {"days": 2}
        await at.is_what_a_reload_shows()


async def test_a_payload_that_comes_with_the_approval_counts() -> None:
    async with page([call("time_off", days=5)], "Have fun.", tools=(FunctionTool(time_off),)) as at:
        await at.say("Holidays.")
        at.decide("time_off", payload={"approved_days": 5})
        await at.answer()
        assert at.part("time_off")["output"] == {"days": 5}
