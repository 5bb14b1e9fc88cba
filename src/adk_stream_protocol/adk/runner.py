"""The ADK runner behind a bridge, made of what the application has: an agent, an `App` or a `Runner`."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from google.adk.apps import App, ResumabilityConfig
from google.adk.artifacts import BaseArtifactService, InMemoryArtifactService
from google.adk.memory import BaseMemoryService
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.workflow import BaseNode
from google.genai import types

from ..errors import ConfigurationError
from .calls.ends_of_agents import resumable
from .calls.gated_nodes import put_gate_before_nodes
from .calls.nested_remotes import let_remote_agents_wait
from .node_tree import all_nodes
from .versions import RUNS_IMPORT_PROVIDERS, log_lacks, refuse_tool_node

AgentLike = BaseNode | App | Runner


@dataclass(frozen=True, kw_only=True)
class RunnerOptions:
    """What an application may choose for the runner of an agent or an `App`. A `Runner` brings its own."""

    app_name: str | None = None
    session_service: BaseSessionService | None = None
    artifact_service: BaseArtifactService | None = None
    memory_service: BaseMemoryService | None = None


_IMPORTED_BY_RUNS = (
    "agents.remote_a2a_agent",
    "apps.compaction",
    "auth.auth_preprocessor",
    "flows.llm_flows.auto_flow",
    "flows.llm_flows.single_flow",
    "telemetry.node_tracing",
    "workflow._llm_agent_wrapper",
    "workflow._node_runner_utils",
    "workflow._dynamic_node_scheduler",
    "workflow._workflow",
)
"""What ADK imports in its first run, with two hundred other modules: a fifth of a second."""


def import_ahead() -> None:
    """So that the first user does not wait for it. What cannot be imported is none of ours: ADK tries again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _IMPORTED_BY_RUNS:
            with suppress(Exception):
                import_module(f"google.adk.{name}")
        if RUNS_IMPORT_PROVIDERS:
            with suppress(Exception):
                import_module("google.adk.flows.llm_flows.contents")._id_pairing_model_types()
    # Pydantic builds these two, which each request to a model has, when they are first used.
    types.GenerateContentConfig()
    types.LiveConnectConfig()


_SERVICES = {
    "session_service": BaseSessionService,
    "artifact_service": BaseArtifactService,
    "memory_service": BaseMemoryService,
}


def build_runner(agent: AgentLike, options: RunnerOptions, gate: BasePlugin) -> Runner:
    log_lacks()
    import_ahead()
    put_gate_before_nodes()
    let_remote_agents_wait()
    if isinstance(agent, Runner):
        if any(vars(options).values()):
            raise ConfigurationError("A Runner brings its own name and services: give them to the Runner.")
        if agent.plugin_manager.get_plugin(gate.name) is not None:
            raise ConfigurationError("This Runner has a ChatBridge already: give each bridge a Runner of its own.")
        _require_resumable(agent.agent, agent.resumability_config)
        _refuse_tool_nodes(agent.agent)
        agent.plugin_manager.plugins.insert(0, gate)
        return agent
    if isinstance(agent, App):
        _require_resumable(agent.root_agent, agent.resumability_config)
        app = agent
    elif isinstance(agent, BaseNode):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may be untyped
        app = App(name=options.app_name or agent.name, root_agent=agent, resumability_config=resumable())
    else:
        raise ConfigurationError(f"A ChatBridge needs an ADK agent, App or Runner, not {type(agent).__name__}.")
    _refuse_tool_nodes(app.root_agent)
    for option, kind in _SERVICES.items():
        given = getattr(options, option)
        if given is not None and not isinstance(given, kind):
            raise ConfigurationError(f"{option} must be a {kind.__name__} of ADK's, not {type(given).__name__}.")
    return Runner(
        app=app.model_copy(update={"plugins": [gate, *app.plugins]}),
        app_name=options.app_name,
        session_service=options.session_service or InMemorySessionService(),
        artifact_service=options.artifact_service or InMemoryArtifactService(),
        memory_service=options.memory_service,
        auto_create_session=True,  # saves a look-up before every run
    )


def _require_resumable(root: Any, config: ResumabilityConfig | None) -> None:
    if config is not None and config.is_resumable:
        return
    waiting = next(_waiting_tools(root), None)
    if waiting is not None:
        raise ConfigurationError(
            f"The tool {waiting!r} waits for an answer, so its App must be resumable: "
            "App(..., resumability_config=ResumabilityConfig(is_resumable=True))."
        )


def _refuse_tool_nodes(root: Any) -> None:
    for node in all_nodes(root):
        refuse_tool_node(node)


def _waiting_tools(agent: Any) -> Iterator[str]:
    for tool in getattr(agent, "tools", None) or ():
        if _waits(tool):
            yield getattr(tool, "name", type(tool).__name__)
    for below in getattr(agent, "sub_agents", None) or ():
        yield from _waiting_tools(below)


def _waits(tool: Any) -> bool:
    return bool(getattr(tool, "_require_confirmation", False) or getattr(tool, "is_long_running", False))
