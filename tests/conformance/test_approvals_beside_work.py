"""Stock clients answer calls that wait while the server goes on with others. From 6.0.289 and 7.0.107 on, their helpers
post nothing while a call of the last step has no result; the first releases post in any case."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools import AgentTool, LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol import ChatBridge, client_tool
from adk_stream_protocol.testing import ScriptedLiveModel, ScriptedModel, call
from conformance.node import NodeDriver
from conformance.pages import WITH_APPROVALS, Conversation, Transport, approve, deny, ran, say
from support.apps import app_of, user_of
from support.live_server import serving
from support.pages import Till

every_release = pytest.mark.parametrize("release", WITH_APPROVALS)
every_way = pytest.mark.parametrize(
    ("transport", "release"),
    [*(("http", release) for release in WITH_APPROVALS), ("ours", "6"), ("ours", "7"), ("official", "7")],
)


def export() -> dict[str, str]:
    """Exports, which takes days."""
    return {"status": "in-progress"}


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


@contextmanager
def chat_with(node: NodeDriver, release: str, transport: Transport, agent: LlmAgent) -> Generator[Conversation]:
    run_config = RunConfig(response_modalities=[types.Modality.TEXT])
    with serving(app_of(ChatBridge(agent, user_id=user_of, run_config=run_config))) as origin:
        yield Conversation(node, release, origin, transport=transport)


@every_way
def test_an_approval_and_an_output_are_posted_beside_work_that_goes_on(
    node: NodeDriver, transport: Transport, release: str
) -> None:
    till = Till()
    script = [call("pay", amount=5), call("export"), call("where")], "Done."
    tools: list[Any] = [till.gated, LongRunningFunctionTool(export), client_tool(where)]
    agent = LlmAgent(name="helper", model=ScriptedLiveModel(script, family="3"), tools=tools)
    with chat_with(node, release, transport, agent) as chat:
        chat.open_page(say("Go."), approve(), ran("where", {"latitude": 1}), resend="both")
        assert till.paid == [5]
        assert chat.spoken == "Done."
        assert [tool.get("preliminary") for tool in chat.tools] == [True, None, None]
        assert chat.is_what_the_server_kept()


@every_way
@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # ADK's own
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
def test_an_approval_is_posted_that_waits_inside_an_agent_tool(
    node: NodeDriver, transport: Transport, release: str, yes: bool
) -> None:
    till = Till()
    inner = ScriptedModel([[call("pay", amount=5)], "Inner done."])
    cashier = AgentTool(LlmAgent(name="cashier", description="Pays.", model=inner, tools=[till.gated]))
    script = [call("cashier", request="Pay.")], "Done."
    agent = LlmAgent(name="helper", model=ScriptedLiveModel(script, family="3"), tools=[cashier])
    with chat_with(node, release, transport, agent) as chat:
        chat.open_page(say("Go."), approve() if yes else deny(), goes_on=True)
        assert till.paid == ([5] if yes else [])
        assert chat.spoken == "Done."
        assert [tool["state"] for tool in chat.tools] == [
            "output-available",
            "output-available" if yes else "output-denied",
        ]
        assert chat.is_what_the_server_kept()


@every_release
def test_an_approval_is_posted_that_an_agent_asks_for_while_it_runs_as_a_tool(node: NodeDriver, release: str) -> None:
    till = Till()
    cashier = LlmAgent(
        name="cashier",
        description="Pays.",
        model=ScriptedModel([[call("pay", amount=5)], "Paid."]),
        tools=[till.gated],
        mode="single_turn",
    )
    script = [call("cashier", request="Pay.")], "Done."
    agent = LlmAgent(name="helper", model=ScriptedModel(script), sub_agents=[cashier])
    with chat_with(node, release, "http", agent) as chat:
        chat.open_page(say("Go."), approve(), goes_on=True)
        assert till.paid == [5]
        assert chat.spoken == "Paid.Done."
        assert [tool["output"] for tool in chat.tools] == [{"result": "Paid."}, {"paid": 5}]
        assert chat.came_to_its_end()
        assert chat.is_what_the_server_kept()
