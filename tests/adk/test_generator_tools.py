"""A tool that yields is told at the start, by its name: when it runs, ADK names neither it nor the reason."""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.tools import FunctionTool
from google.adk.tools.agent_tool import AgentTool

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import ChatClient, ScriptedModel, call
from support.apps import app_of, user_of


def lines(count: int) -> Iterator[int]:
    """Lines, one by one."""
    yield from range(count)


async def prices(count: int) -> AsyncGenerator[int, None]:
    """Prices, one by one."""
    for number in range(count):
        yield number


async def pay(amount: int) -> str:
    """Sends money."""
    return f"{amount} sent"


def agent(*tools: Any, name: str = "helper") -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel([[call("lines", count=2)], "Done."]), tools=list(tools))


def warnings_of(root: Any, caplog: pytest.LogCaptureFixture) -> list[str]:
    ChatBridge(root, user_id=user_of)
    return [record.message for record in caplog.records if record.name.endswith("generator_tools")]


@pytest.mark.parametrize(
    "root",
    [
        agent(pay, lines),
        agent(FunctionTool(lines, require_confirmation=True)),
        SequentialAgent(name="first", sub_agents=[agent(lines)]),
        agent(AgentTool(agent(lines, name="inner"))),
    ],
    ids=["a function", "a tool", "an agent below", "an agent as a tool"],
)
def test_a_generator_is_told_with_what_to_do(root: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(root, caplog) == [
        "The tool lines is a generator, which ADK does not run. Return one result, such as a list."
    ]


def test_an_async_generator_is_for_live_sessions(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(agent(prices), caplog) == [
        "The tool prices is an async generator, which ADK runs in live sessions only. Return one result instead."
    ]


def test_other_tools_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(agent(pay, FunctionTool(pay)), caplog) == []


async def test_what_is_told_is_true() -> None:
    answer = await ChatClient(app_of(ChatBridge(agent(lines), user_id=user_of))).send("hi")
    outputs = [str(chunk["output"]) for chunk in answer.of_type("tool-output-available")]
    assert all("generator object" in output for output in outputs)  # older ADKs give the generator itself, newer fail
