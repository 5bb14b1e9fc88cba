"""Which agents' words may go past ADK (`direct_text.py`): those that nobody inside ADK watches.

Pieces of text are watched by plugins, callbacks and tracers, and by code that ADK's own events go through: an agent, a
runner or a patch that has its own way to run. Such code may even change or hold back a piece, so it shuts direct text.
"""

import logging
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from google.adk import version as adk_version
from google.adk.agents import LlmAgent
from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.flows.llm_flows.base_llm_flow import BaseLlmFlow
from google.adk.models.base_llm import BaseLlm
from google.adk.planners import BuiltInPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from opentelemetry import _logs as otel_logs  # pyright: ignore[reportPrivateImportUsage]
from opentelemetry import metrics as otel_metrics
from opentelemetry import trace as otel_trace

from ..node_tree import all_nodes
from .direct_text import AGENT_LABEL, prepare_model
from .model_ways import ModelWays

logger = logging.getLogger(__name__)
_adk_logger = logging.getLogger("google_adk")

_TESTED_ADK = ("2.13.",)

_RUNS = (
    "run",
    "run_async",
    "_run_impl",
    "_run_async_impl",
    "_run_with_lifecycle",
    "_llm_flow",
    "canonical_model_async",
    "run_live",
    "_run_live_impl",
)
"""What the events of an agent, and those of the agents below it, go through."""
_RUNNER_RUNS = (
    "run_async",
    "_run_node_async",
    "_consume_event_queue",
    "_process_event_with_plugin_callbacks",
    "run_live",
    "_exec_with_plugin",
)
_FLOW_RUNS = (
    "run_async",
    "_run_one_step_async",
    "_postprocess_async",
    "_call_llm_async",
    "_handle_after_model_callback",
    "run_live",
    "_finalize_model_response_event",
)


def find_ways(runner: Runner, gate: BasePlugin, *, direct: bool, merge: bool) -> Callable[[], ModelWays]:
    """What says at the start of a run which way the words of each agent go, with the models that they speak with. Logs
    whether words go past ADK, or why not."""
    agents = [agent for agent in all_nodes(runner.agent) if isinstance(agent, LlmAgent)]
    unwatched = _DirectAgents(runner, gate, agents)
    reason = next(_lasting_reasons(runner), None) if direct else "direct_text=False"
    shut_by = reason or next(unwatched.reasons(), None)
    open_for = dict[str, BaseLlm] if reason else unwatched.open_for
    if open_for():
        logger.info("direct text is on: words go past ADK")
    else:
        logger.info("direct text is off: %s", shut_by or "every agent has callbacks, a planner or a code executor")
    return lambda: ModelWays(open_for(), _models_by_name(agents, _is_disguised) if merge else {})


class _DirectAgents:
    """Looks again for each run: an application may add plugins and callbacks, or replace models, when it likes."""

    def __init__(self, runner: Runner, gate: BasePlugin, agents: list[LlmAgent]) -> None:
        self._plugins = runner.plugin_manager
        self._gate = gate
        self._agents = agents

    def open_for(self) -> dict[str, BaseLlm]:
        if next(self.reasons(), None) is not None:
            return {}
        return _models_by_name(self._agents, _is_watched)

    def reasons(self) -> Iterator[str]:
        if is_traced():
            yield "OpenTelemetry has a provider, and ADK tells it about each piece"
        if _adk_logger.isEnabledFor(logging.DEBUG):
            yield "ADK logs each piece, with the level DEBUG"
        for plugin in self._plugins.plugins:
            for name in ("after_model_callback", "on_event_callback"):
                method = getattr(plugin, name)
                if plugin is not self._gate and getattr(method, "__func__", None) is not getattr(BasePlugin, name):
                    yield f"the plugin {plugin.name!r} has an {name}"


def _models_by_name(agents: list[LlmAgent], is_left_out: Callable[[LlmAgent], bool]) -> dict[str, BaseLlm]:
    models: dict[str, BaseLlm] = {}
    left_out: set[str] = set()
    for agent in agents:
        model = None if is_left_out(agent) else prepare_model(agent)
        if model is None or models.get(agent.name, model) is not model:
            left_out.add(agent.name)  # agents of one name cannot be told apart
        else:
            models[agent.name] = model
    for name in left_out:
        models.pop(name, None)
    return models


def _lasting_reasons(runner: Runner) -> Iterator[str]:
    if not adk_version.__version__.startswith(_TESTED_ADK):
        yield f"it is not tested with google-adk {adk_version.__version__}"
    if not all(_is_adks_own(type(runner), name) for name in _RUNNER_RUNS):
        yield "the runner has its own way to run"
    if not all(_is_adks_own(BaseLlmFlow, name) for name in _FLOW_RUNS):
        yield "something has patched ADK"
    for node in all_nodes(runner.agent):
        # Below an LlmAgent that transfers, any other agent of the tree may run: one such agent shuts it for all.
        if any(True for _ in _below(node)) and not all(_is_adks_own(type(node), name) for name in _RUNS):
            yield f"the agent {node.name!r} has its own way to run"


def _below(node: Any) -> Iterator[LlmAgent]:
    return (below for below in all_nodes(node) if isinstance(below, LlmAgent))


def _is_adks_own(owner: type[Any], name: str) -> bool:
    value = getattr(owner, name, None)
    method = value.fget if isinstance(value, property) else value
    if method is None:
        return True
    is_plain = isinstance(method, FunctionType) and not hasattr(method, "__wrapped__")
    return is_plain and method.__module__.startswith("google.adk.")


def _is_watched(agent: LlmAgent) -> bool:
    """Whether the agent itself looks at partial responses, or changes them."""
    if agent.after_model_callback:
        return True
    planner = type(agent.planner) if agent.planner is not None else BuiltInPlanner
    has_planner = planner.process_planning_response is not BuiltInPlanner.process_planning_response  # as ADK asks
    has_executor = agent.code_executor is not None and not isinstance(agent.code_executor, BuiltInCodeExecutor)
    return has_planner or has_executor or _is_disguised(agent)


def _is_disguised(agent: LlmAgent) -> bool:
    """Whether its model calls do not say whose they are."""
    config = agent.generate_content_config
    return config is not None and AGENT_LABEL in (config.labels or ())


def is_traced() -> bool:
    """Whether spans, log records or metrics go anywhere: ADK makes some of partial responses."""
    return not (
        isinstance(otel_trace.get_tracer_provider(), otel_trace.ProxyTracerProvider | otel_trace.NoOpTracerProvider)
        and type(otel_logs.get_logger_provider()).__module__.startswith("opentelemetry._logs")
        and type(otel_metrics.get_meter_provider()).__module__.startswith("opentelemetry.metrics")
    )
