"""Nodes that a workflow makes while it runs cannot be looked at when the bridge is built. Nobody answers what they ask:
no tool of theirs runs that a person would have to approve."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import Context
from google.adk.tools import FunctionTool
from google.adk.workflow import START, Workflow, node

from adk_stream_protocol.testing import ChatClient
from support.apps import app_of, user_of

from adk_stream_protocol import ChatBridge  # isort: skip


def bridge_around(made: Any) -> ChatBridge:
    @node(rerun_on_resume=True)
    async def runs_another(ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        yield await ctx.run_node(made(), node_input={"amount": 5})

    return ChatBridge(Workflow(name="flow", edges=[(START, runs_another)]), user_id=user_of)


async def test_a_gated_tool_in_a_node_that_was_made_while_running_is_not_run() -> None:
    paid: list[int] = []

    async def pay(amount: int = 5) -> dict[str, int]:
        """Pays."""
        paid.append(amount)
        return {"paid": amount}

    for made in (
        lambda: node(FunctionTool(pay, require_confirmation=True)),
        lambda: node(pay, require_confirmation=True),
    ):
        client = ChatClient(app_of(bridge_around(made)))
        answer = await client.send("Pay.")
        assert answer.status == 200
        assert answer.approvals == []
        assert answer.browser_calls == []
        assert paid == []
    await ChatClient(app_of(bridge_around(lambda: node(pay)))).send("Pay.")
    assert paid == [5], "without the gate it would have run"
