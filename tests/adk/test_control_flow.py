"""Control flow of ADK's is told from tools of the same name by what the agent has."""

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.tools import AgentTool, FunctionTool, exit_loop, transfer_to_agent
from google.adk.workflow import BaseNode, Workflow
from pydantic import BaseModel

from adk.agent_runs import called, run, weather
from adk_stream_protocol.adk.control_flow import control_flow_by_author, control_flow_of
from adk_stream_protocol.adk.event_parts import CONTROL_FLOW
from adk_stream_protocol.testing import ScriptedModel


class Verdict(BaseModel):
    good: bool


def agent(name: str = "root", *script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(script or ["Hello."]), **fields)


def own(name: str) -> Callable[[], dict[str, bool]]:
    """A tool of the application's."""

    def tool() -> dict[str, bool]:
        """Does something."""
        return {"done": True}

    tool.__name__ = name
    return tool


def below_another(**fields: Any) -> LlmAgent:
    """The agent `sub`, with a parent and a peer."""
    sub = agent("sub", **fields)
    agent("root", sub_agents=[sub, agent("peer")])
    return sub


def alone(**fields: Any) -> dict[str, Any]:
    return {"disallow_transfer_to_parent": True, "disallow_transfer_to_peers": True, **fields}


AGENTS: dict[str, tuple[Callable[[], LlmAgent], set[str]]] = {
    "a plain agent": (agent, set()),
    "with tools": (lambda: agent(tools=[weather]), set()),
    "with a sub-agent": (lambda: agent(sub_agents=[agent("sub")]), {"transfer_to_agent"}),
    "with a sub-agent for a task": (lambda: agent(sub_agents=[agent("sub", mode="task")]), set()),
    "with a sub-agent for one turn": (lambda: agent(sub_agents=[agent("sub", mode="single_turn")]), set()),
    "with a workflow below": (lambda: agent(sub_agents=[LoopAgent(name="loop")]), {"transfer_to_agent"}),
    "a sub-agent": (below_another, {"transfer_to_agent"}),
    "a sub-agent that may go to its peers": (
        lambda: below_another(disallow_transfer_to_parent=True),
        {"transfer_to_agent"},
    ),
    "a sub-agent that may go back": (lambda: below_another(disallow_transfer_to_peers=True), {"transfer_to_agent"}),
    "a sub-agent that may go nowhere": (lambda: below_another(**alone()), set()),
    "with exit_loop": (lambda: agent(tools=[exit_loop]), {"exit_loop"}),
    "with exit_loop as a tool": (lambda: agent(tools=[FunctionTool(exit_loop)]), {"exit_loop"}),
    "with transfer_to_agent": (lambda: agent(tools=[transfer_to_agent]), {"transfer_to_agent"}),
    "with a schema": (lambda: agent(output_schema=Verdict), set()),
    "with a schema and tools": (lambda: agent(output_schema=Verdict, tools=[weather]), {"set_model_response"}),
    "for a task": (lambda: agent(mode="task"), {"finish_task"}),
    "for a task with a schema": (lambda: agent(mode="task", output_schema=Verdict), {"finish_task"}),
    **{f"with its own {name}": (lambda name=name: agent(tools=[own(name)]), set()) for name in sorted(CONTROL_FLOW)},
}


@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_has_what_adk_gives_it(kind: str) -> None:
    make, expected = AGENTS[kind]
    made = make()
    assert control_flow_of(made) == expected
    if kind.startswith("with its own"):
        return
    seen: list[set[str]] = []
    made.before_model_callback = lambda callback_context, llm_request: seen.append(set(llm_request.tools_dict))
    run(made)
    assert seen[0] & CONTROL_FLOW == expected, "what ADK offers to the model is another thing"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("transfer_to_agent", lambda: {"sub_agents": [agent("sub")]}),
        ("set_model_response", lambda: {"output_schema": Verdict}),
        ("finish_task", lambda: {"mode": "task"}),
    ],
)
def test_a_tool_of_the_application_s_is_no_control_flow_though_adk_has_one_of_its_name(
    name: str, fields: Callable[[], dict[str, Any]]
) -> None:
    for tool in (own(name), FunctionTool(own(name), require_confirmation=True), AgentTool(agent(name))):
        assert name not in control_flow_of(agent(tools=[tool], **fields()))


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent, LoopAgent])
def test_agents_below_others_are_found_by_name(kind: type[SequentialAgent | ParallelAgent | LoopAgent]) -> None:
    root = kind(name="root", sub_agents=[agent("a", tools=[exit_loop]), agent("b")])
    # ADK adds this tool when a live run of the sequence begins.
    sequence = {"task_completed"} if kind is SequentialAgent else set[str]()
    assert control_flow_by_author(root) == {"a": {"exit_loop"} | sequence, "b": sequence}


def test_a_sequence_s_own_tool_is_control_flow_also_after_a_live_run_has_added_it() -> None:
    def task_completed() -> str:
        """As ADK's own, by the module that it is defined in."""
        return "done"

    task_completed.__module__ = "google.adk.agents.sequential_agent"
    adks, ours = agent("a", tools=[task_completed]), agent("b", tools=[own("task_completed")])
    SequentialAgent(name="root", sub_agents=[adks, ours])
    assert "task_completed" in control_flow_of(adks)
    assert "task_completed" not in control_flow_of(ours)


def calling_authors(root: BaseNode) -> set[str]:
    return {event.author for event in run(root).events if event.get_function_calls()}


def test_agents_for_tasks_are_found_by_the_name_that_their_events_have() -> None:
    task = agent("task", [called("f", "finish_task", result="ok")], mode="task")
    root = agent("asks", [called("c", "task", request="Go.")], "Done.", sub_agents=[task])
    assert control_flow_by_author(root) == {"asks": frozenset(), "task": {"finish_task", "transfer_to_agent"}}
    assert calling_authors(root) == {"asks", "task"}


def test_agents_in_workflows_are_found_by_the_name_that_their_events_have() -> None:
    inner = Workflow(name="inner", edges=[("START", agent("looks", [called("c", "exit_loop")], tools=[exit_loop]))])
    root = Workflow(name="flow", edges=[("START", inner)])
    assert control_flow_by_author(root) == {"looks": {"exit_loop"}}
    assert calling_authors(root) == {"looks"}


def test_two_agents_of_one_name_have_in_common_what_both_have() -> None:
    inner = Workflow(name="inner", edges=[("START", agent("a"))])
    root = Workflow(name="flow", edges=[("START", agent("a", tools=[exit_loop]), inner)])
    assert control_flow_by_author(root) == {"a": frozenset()}
