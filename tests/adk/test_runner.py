"""A runner from an agent, an App or a Runner."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.artifacts import InMemoryArtifactService
from google.adk.memory import InMemoryMemoryService
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool
from google.adk.workflow import BaseNode, Node, Workflow, node
from pydantic import BaseModel

from adk.agent_runs import pay
from adk_stream_protocol import client_tool
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.policy import ApprovalPolicy
from adk_stream_protocol.adk.runner import RunnerOptions, build_runner, resumable
from adk_stream_protocol.errors import ConfigurationError
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel
from support import releases

NO_OPTIONS = RunnerOptions()


def agent(*tools: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedModel(), tools=list(tools), **fields)


def gate() -> ApprovalGate:
    return ApprovalGate(MemoryStore(), ApprovalPolicy(), lease_s=10)


def test_an_agent_gets_a_resumable_app_of_its_name_and_services_in_memory() -> None:
    runner = build_runner(agent(), NO_OPTIONS, gate())
    assert runner.app_name == "helper"
    assert isinstance(runner.session_service, InMemorySessionService)
    assert isinstance(runner.artifact_service, InMemoryArtifactService)
    assert runner.memory_service is None
    assert runner.auto_create_session
    assert runner.resumability_config is not None
    assert runner.resumability_config.is_resumable


@pytest.mark.parametrize(
    "root",
    [
        SequentialAgent(name="line", sub_agents=[]),
        Workflow(name="flow", edges=[("START", LlmAgent(name="node", model=ScriptedModel()))]),
    ],
    ids=lambda root: type(root).__name__,
)
def test_any_root_that_an_app_takes_will_do(root: Any) -> None:
    assert build_runner(root, NO_OPTIONS, gate()).app_name == root.name


def test_given_names_and_services_are_used() -> None:
    given = {
        "app_name": "shop",
        "session_service": InMemorySessionService(),
        "artifact_service": InMemoryArtifactService(),
        "memory_service": InMemoryMemoryService(),
    }
    runner = build_runner(agent(), RunnerOptions(**given), gate())
    assert {name: getattr(runner, name) for name in given} == given


def test_an_app_keeps_its_name_and_its_own_choices() -> None:
    app = App(name="shop", root_agent=agent())
    runner = build_runner(app, NO_OPTIONS, gate())
    assert runner.agent is app.root_agent
    assert runner.app_name == "shop"
    assert runner.resumability_config is None


def test_the_gate_stands_before_the_plugins_of_an_app_and_the_app_itself_stays_as_it_was() -> None:
    own, first = BasePlugin(name="own"), gate()
    app = App(name="shop", root_agent=agent(), plugins=[own])
    runner = build_runner(app, NO_OPTIONS, first)
    assert runner.plugin_manager.plugins == [first, own]
    assert app.plugins == [own]


def test_the_gate_stands_before_the_plugins_of_a_runner() -> None:
    own, first = BasePlugin(name="own"), gate()
    app = App(name="shop", root_agent=agent(), plugins=[own])
    runner = Runner(app=app, session_service=InMemorySessionService())
    build_runner(runner, NO_OPTIONS, first)
    assert runner.plugin_manager.plugins == [first, own]


def test_a_runner_has_one_bridge_but_an_app_may_have_several() -> None:
    app = App(name="shop", root_agent=agent())
    runner = build_runner(app, NO_OPTIONS, gate())
    build_runner(app, NO_OPTIONS, gate())
    with pytest.raises(ConfigurationError, match="a Runner of its own"):
        build_runner(runner, NO_OPTIONS, gate())


WAITING = {
    "gated": FunctionTool(pay, require_confirmation=True),
    "gated at times": FunctionTool(pay, require_confirmation=lambda amount: amount > 5),
    "long-running": LongRunningFunctionTool(pay),
    "the browser's": client_tool(pay),
}


@pytest.mark.parametrize("kind", WAITING)
@pytest.mark.parametrize("wrapped", [App, Runner], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("deep", [False, True], ids=["at the root", "below"])
def test_tools_that_wait_need_an_app_that_can_go_on(kind: str, wrapped: type, deep: bool) -> None:
    root = agent(sub_agents=[LlmAgent(name="sub", tools=[WAITING[kind]])]) if deep else agent(WAITING[kind])

    def given(config: ResumabilityConfig | None) -> App | Runner:
        app = App(name="shop", root_agent=root, resumability_config=config)
        return app if wrapped is App else Runner(app=app, session_service=InMemorySessionService())

    with pytest.raises(ConfigurationError, match=r"'pay' waits for an answer.*is_resumable=True"):
        build_runner(given(None), NO_OPTIONS, gate())
    runner = build_runner(given(resumable()), NO_OPTIONS, gate())
    assert runner.resumability_config is not None


# -- workflow nodes that wait -----------------------------------------------------------------------------------------


def shown(amount: int) -> dict[str, int]:
    """Shows."""
    return {"shown": amount}


class Order(BaseModel):
    amount: int = 5


def flow(*nodes: Any, name: str = "flow", schema: Any = None) -> Workflow:
    return Workflow(name=name, edges=[("START", *nodes)], input_schema=schema)


def decorated() -> BaseNode:
    @node(require_confirmation=True)
    def charge(amount: int) -> int:
        """Pays."""
        return amount

    return charge


def confirmed() -> BaseNode:
    return node(pay, require_confirmation=True)


class Holder(Node):
    """A node of the application's that runs others itself."""

    held: list[BaseNode] | None = None
    by_name: dict[str, BaseNode] | None = None


WAITING_NODES: dict[str, Callable[[], BaseNode]] = {
    "a function": lambda: flow(confirmed()),
    "a function at times": lambda: flow(node(pay, require_confirmation=lambda amount: amount > 5)),
    "a decorated function": lambda: flow(shown, decorated()),
    "a named one": lambda: flow(node(pay, name="till", require_confirmation=True)),
    "below a workflow": lambda: flow(shown, flow(confirmed(), name="inner")),
    "on a route": lambda: Workflow(name="flow", edges=[("START", shown, {"yes": confirmed(), "no": agent()})]),
    "in parallel": lambda: flow(node(pay, require_confirmation=True, parallel_worker=True)),
    "a parallel workflow": lambda: flow(node(flow(confirmed(), name="inner"), parallel_worker=True)),
    "an agent's tool": lambda: agent(confirmed()),
    "a workflow as an agent's tool": lambda: agent(flow(confirmed(), name="inner")),
    "a workflow with a schema as an agent's tool": lambda: agent(flow(confirmed(), name="inner", schema=Order)),
    "of an agent in a workflow": lambda: flow(agent(confirmed())),
    "below a sub-agent": lambda: SequentialAgent(name="line", sub_agents=[agent(flow(confirmed(), name="inner"))]),
    "held by a node of the application's": lambda: flow(Holder(name="holder", held=[confirmed()])),
    "held under a name": lambda: flow(Holder(name="holder", by_name={"till": confirmed()})),
    **{f"a tool: {kind}": (lambda tool=tool: flow(shown, tool)) for kind, tool in WAITING.items()},
    "a named tool": lambda: flow(node(WAITING["gated"], name="till")),
    "the root itself": confirmed,
}


WORKFLOWS_AS_TOOLS = ("a workflow as an agent's tool", "below a sub-agent", "a free node as a tool")
TOOLS_AS_NODES = ("a tool: ", "a named tool")


def needed(place: str) -> pytest.MarkDecorator:
    as_node = releases.tool_nodes if place.startswith(TOOLS_AS_NODES) else releases.node_confirmation
    return releases.workflow_tools if place in WORKFLOWS_AS_TOOLS else as_node


@pytest.mark.parametrize("place", [pytest.param(place, marks=needed(place)) for place in WAITING_NODES])
@pytest.mark.parametrize("wrapped", ["agent", "App", "Runner"])
def test_a_workflow_node_may_wait(place: str, wrapped: str) -> None:
    given: Any = WAITING_NODES[place]()
    if wrapped != "agent":
        given = App(name="shop", root_agent=given, resumability_config=resumable())
    if wrapped == "Runner":
        given = Runner(app=given, session_service=InMemorySessionService())
    build_runner(given, NO_OPTIONS, gate())


OTHER_NODES: dict[str, Callable[[], BaseNode]] = {
    "an agent's tools wait": lambda: flow(shown, agent(*WAITING.values())),
    "nothing waits": lambda: flow(node(pay, require_confirmation=False), FunctionTool(shown)),
    "in an AgentTool": lambda: agent(AgentTool(agent(WAITING["gated"]))),
    "in an AgentTool's node": lambda: flow(AgentTool(agent(WAITING["gated"]))),
    "a free node as a tool": lambda: agent(flow(node(shown), name="inner")),
    "a free node with a schema as a tool": lambda: agent(flow(node(shown), name="inner", schema=Order)),
}


@pytest.mark.parametrize("place", [pytest.param(place, marks=needed(place)) for place in OTHER_NODES])
def test_other_nodes_are_taken(place: str) -> None:
    build_runner(OTHER_NODES[place](), NO_OPTIONS, gate())


@releases.node_confirmation
def test_what_stands_above_an_agent_is_not_its_own() -> None:
    below = agent()
    LlmAgent(name="above", sub_agents=[below], tools=[confirmed()])
    build_runner(below, NO_OPTIONS, gate())


def test_a_runner_is_used_as_it_is() -> None:
    runner = Runner(app_name="shop", agent=agent(), session_service=InMemorySessionService())
    assert build_runner(runner, NO_OPTIONS, gate()) is runner


@pytest.mark.parametrize(
    "beside",
    [
        {"app_name": "shop"},
        {"session_service": InMemorySessionService()},
        {"artifact_service": InMemoryArtifactService()},
        {"memory_service": InMemoryMemoryService()},
    ],
    ids=lambda beside: next(iter(beside)),
)
def test_a_runner_with_anything_beside_it_is_refused(beside: dict[str, Any]) -> None:
    runner = Runner(app_name="shop", agent=agent(), session_service=InMemorySessionService())
    with pytest.raises(ConfigurationError, match="brings its own"):
        build_runner(runner, RunnerOptions(**beside), gate())


def test_something_else_is_refused_by_its_type() -> None:
    with pytest.raises(ConfigurationError, match="not str"):
        build_runner("helper", NO_OPTIONS, gate())  # pyright: ignore[reportArgumentType]


FIRST_REQUEST = """
import asyncio, sys
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import ChatClient, ScriptedModel

bridge = ChatBridge(LlmAgent(name="helper", model=ScriptedModel(["Hello."])), user_id=lambda _: "ann")
app = FastAPI()
app.include_router(bridge.router("/api/chat"))
known = set(sys.modules)
assert asyncio.run(ChatClient(app).send("hi")).text == "Hello."
print("imported:", *(name for name in set(sys.modules) - known if name.startswith(("google.", "adk_stream"))))
"""


def test_the_first_request_imports_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", FIRST_REQUEST], capture_output=True, text=True, check=True)
    assert "imported:\n" in ran.stdout
