"""Nodes that a workflow makes while it runs. None of them can ask for approval: nobody could be shown what runs."""

import logging
from typing import Any

import pytest
from google.adk.agents.context import Context
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.workflow import Workflow, node

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import Answer
from support.pages import Till, page

REFUSED = {
    "error": "This call was not run: a node of a workflow cannot ask for approval. Put its tool into an LlmAgent."
}


async def made_in_a_flow(tool: Any, results: list[Any]) -> tuple[Answer, list[Any]]:
    """The answer of a workflow that makes a node of the tool, and the session's events."""

    @node(rerun_on_resume=True)
    async def makes_it(ctx: Context) -> None:
        results.append(await ctx.run_node(node(tool), {"amount": 5}))

    async with page(agent=Workflow(name="flow", edges=[("START", makes_it)])) as at:
        answer = await at.say("Pay.")
        runner = at.chat.runner
        session = await runner.session_service.get_session(app_name=runner.app_name, user_id="ann", session_id="c1")
        assert session is not None
        return answer, session.events


def fails(amount: int) -> bool:
    raise ValueError


def pay(amount: int) -> None:
    """Pays."""


@pytest.mark.parametrize(
    "tool",
    [
        FunctionTool(pay, require_confirmation=True),
        FunctionTool(pay, require_confirmation=fails),
        LongRunningFunctionTool(pay),
        client_tool(pay),
    ],
    ids=["gated", "perhaps gated", "long-running", "of the browser"],
)
async def test_a_tool_that_waits_is_refused_in_a_node(tool: Any) -> None:
    results: list[Any] = []
    answer, _ = await made_in_a_flow(tool, results)
    assert results == [REFUSED]
    assert answer.types == ["start", "finish"]


@pytest.mark.parametrize("gated", [False, lambda amount: False], ids=["never", "not now"])
async def test_other_tools_run_in_a_node(gated: Any) -> None:
    till, results = Till(), list[Any]()
    await made_in_a_flow(FunctionTool(till.pay, require_confirmation=gated), results)
    assert (till.paid, results) == ([5], [{"paid": 5}])


async def test_a_node_that_asks_by_itself_ends_the_run_and_opens_no_question(caplog: pytest.LogCaptureFixture) -> None:
    def asks(tool_context: ToolContext, amount: int) -> None:
        """Asks."""
        tool_context.request_confirmation(hint="Sure?")

    answer, events = await made_in_a_flow(FunctionTool(asks), [])
    assert answer.types == ["start", "error"]
    assert [call.name for event in events for call in event.get_function_calls()] == []
    assert [event.long_running_tool_ids for event in events if event.long_running_tool_ids] == []
    assert "WORKFLOW_NODE_ASKS" in [event.error_code for event in events]
    logged = [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.ERROR]
    assert logged == ["a workflow node asked for approval: put its tool into an LlmAgent"]
