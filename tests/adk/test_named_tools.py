"""A name in an `ApprovalPolicy` that no tool has is an error at the start, or one warning once all tools are known."""

import logging
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.tools import BaseTool, FunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset

from adk_stream_protocol import ApprovalPolicy, ChatBridge, ConfigurationError
from adk_stream_protocol.testing import ChatClient, ScriptedLiveModel
from support.apps import app_of, user_of
from support.live_client import live_socket


def pay(amount: int) -> str:
    """Sends money."""
    return f"{amount} sent"


class Tills(BaseToolset):
    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [FunctionTool(pay, require_confirmation=True)]


def agent(*tools: Any, name: str = "cashier", **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLiveModel(["Hello."] * 3), tools=list(tools), **options)


def bridge(root: Any, **policy: Any) -> ChatBridge:
    return ChatBridge(root, user_id=user_of, approvals=ApprovalPolicy(**policy))


TYPO = "ApprovalPolicy(hints=...) names 'pya', and no tool of the agent has that name. Did you mean 'pay'?"


@pytest.mark.parametrize(
    "root",
    [
        agent(pay),
        agent(FunctionTool(pay)),
        SequentialAgent(name="first", sub_agents=[agent(pay)]),
        agent(AgentTool(agent(pay, name="inner"))),
    ],
    ids=["a function", "a tool", "an agent below", "an agent as a tool"],
)
def test_a_typo_is_an_error_where_all_tools_are_known(root: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        bridge(root, hints={"pya": "Pay?"})
    assert str(refused.value) == TYPO
    bridge(root, hints={"pay": "Pay?"}, cards={"pay": {}}, edits={"pay": {}})


@pytest.mark.parametrize("option", ["cards", "edits"])
def test_cards_and_edits_are_checked_like_hints(option: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"\({option}=\.\.\.\) names 'refund', and no tool of the agent has"):
        bridge(agent(pay), **{option: {"refund": {}}})


@pytest.mark.parametrize(
    "root",
    [BaseAgent(name="of_its_own"), agent(before_model_callback=lambda **_: None)],
    ids=["an agent of another kind", "a callback that may add tools"],
)
def test_whoever_may_have_any_tool_is_believed(root: Any, caplog: pytest.LogCaptureFixture) -> None:
    bridge(root, hints={"pya": "Pay?"})
    assert not caplog.records


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.endswith(".named_tools")]


async def test_a_typo_is_one_warning_after_the_tools_of_a_toolset_were_listed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    client = ChatClient(app_of(bridge(agent(Tills()), hints={"pya": "Pay?", "pay": "Pay?"})))
    assert not warnings_in(caplog)
    for _ in range(2):
        await client.send("hi")
    assert warnings_in(caplog) == [TYPO]


async def test_in_a_live_session_too(caplog: pytest.LogCaptureFixture) -> None:
    async with live_socket(app_of(bridge(agent(Tills()), hints={"pya": "Pay?"}))) as client:
        await client.say("hi")
    assert warnings_in(caplog) == [TYPO]


async def test_names_that_another_agents_toolset_may_bring_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    other = agent(Tills(), name="other")
    client = ChatClient(app_of(bridge(agent(Tills(), sub_agents=[other]), hints={"pya": "Pay?"})))
    await client.send("hi")
    assert not warnings_in(caplog)
