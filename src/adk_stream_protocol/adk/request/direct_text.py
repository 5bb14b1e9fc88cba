"""Direct text: the words of a model go straight into the stream of a run, past ADK.

ADK takes 200 to 500 us for each piece of text that a model streams, and does nothing with it: a session stores whole
events only. So a piece that continues the part that the run writes at the moment skips ADK. The first piece of each
model call, and whatever is not plain text, goes through ADK as always.

Where a plugin, a callback or a tracer could watch the pieces inside ADK, direct text is off: see `open_for_agents`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from functools import cache
from types import new_class
from typing import Any, cast

from google.adk import version as adk_version
from google.adk.agents import LlmAgent
from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.planners import BuiltInPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.genai import types
from opentelemetry import _logs as otel_logs  # pyright: ignore[reportPrivateImportUsage]
from opentelemetry import metrics as otel_metrics
from opentelemetry import trace as otel_trace

from ...protocol.chunks import AnyChunk
from ..node_tree import all_nodes
from ..translate.translator import Translator

logger = logging.getLogger(__name__)

_TESTED_ADK = ("2.13.",)
_AGENT_LABEL = "adk_agent_name"
_TAKEN_IN_A_ROW = 16
"""A model that has many pieces ready lets others run after this many, as it would on its way through ADK."""


class DirectText:
    """Of one run. A model call is named by an object of its own."""

    def __init__(
        self,
        open_for: frozenset[str],
        translator: Translator,
        write: Callable[[list[AnyChunk]], None],
        abort: asyncio.Event,
    ) -> None:
        """`open_for`: the names of the agents whose models may use it."""
        self._open_for = open_for
        self._translator = translator
        self._write = write
        self._abort = abort
        self._given: dict[object, types.Content | None] = {}  # to ADK: the last of each model call
        self._growing: object | None = None  # the model call whose piece was the last event to come out of ADK

    def is_open_for(self, request: LlmRequest) -> bool:
        labels = request.config.labels
        return labels is not None and labels.get(_AGENT_LABEL) in self._open_for

    async def skim(self, responses: AsyncGenerator[LlmResponse, None]) -> AsyncGenerator[LlmResponse, None]:
        """What of a model's responses is for ADK."""
        model_call, taken = object(), 0
        try:
            async with aclosing(responses):
                async for response in responses:
                    if self._growing is model_call and self._take(response):
                        taken += 1
                        if taken % _TAKEN_IN_A_ROW == 0:
                            await asyncio.sleep(0)
                        continue
                    if self._growing is model_call:
                        self._growing = None  # until this has come out: nothing may overtake it
                    self._given[model_call] = response.content
                    yield response
        finally:
            self._given.pop(model_call, None)

    def _take(self, response: LlmResponse) -> bool:
        parts = response.content.parts if response.content is not None else None
        if not response.partial or not parts or len(parts) != 1 or self._abort.is_set():
            return False
        text = parts[0].text
        if not text or response.finish_reason is not None or response.error_code is not None:
            return False
        chunks = self._translator.grow(text, is_thought=bool(parts[0].thought))
        if chunks is None:
            return False
        self._write(chunks)
        return True

    def pause(self) -> None:
        """The segment ends, and the model does not."""
        self._growing = None

    def came_out(self, event: Event) -> None:
        """Each event of ADK's, when it is written."""
        content = event.content
        found = (call for call, given in self._given.items() if given is content) if event.partial else ()
        self._growing = next(iter(found), None)


# -- how it gets between ADK and its models ---------------------------------------------------------------------------

current_direct_text: ContextVar[DirectText | None] = ContextVar("current_direct_text", default=None)
"""Of the run that this task belongs to."""


class _SkimmedModel:
    """Overrides one method of a model's class. Without a run of ours it does nothing."""

    __slots__ = ()

    def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        responses = cast(BaseLlm, super()).generate_content_async(llm_request, stream=stream)
        direct = current_direct_text.get() if stream else None
        return responses if direct is None or not direct.is_open_for(llm_request) else direct.skim(responses)


@cache
def _skimmed_class(model_class: type[BaseLlm]) -> type[Any]:
    names = {"__module__": model_class.__module__, "__qualname__": model_class.__qualname__}
    return new_class(model_class.__name__, (_SkimmedModel, model_class), exec_body=lambda body: body.update(names))


def open_for_agents(runner: Runner, gate: BasePlugin) -> frozenset[str]:
    """The names of the agents whose words go directly, which their models are prepared for. Logs why there are none."""
    reason = next(_watchers(runner, gate), None)
    agents = [] if reason else [agent for agent in all_nodes(runner.agent) if isinstance(agent, LlmAgent)]
    unwatched = [agent for agent in agents if not _is_watched(agent)]
    for agent in unwatched:
        _prepare_model(agent)
    if unwatched:
        logger.info("direct text is on: words go past ADK")
    else:
        logger.info("direct text is off: %s", reason or "every agent has callbacks, a planner or a code executor")
    names = [agent.name for agent in unwatched]
    return frozenset(names) - {agent.name for agent in agents if agent not in unwatched}


def _watchers(runner: Runner, gate: BasePlugin) -> Iterator[str]:
    if not adk_version.__version__.startswith(_TESTED_ADK):
        yield f"it is not tested with google-adk {adk_version.__version__}"
    for plugin in runner.plugin_manager.plugins:
        for name in ("after_model_callback", "on_event_callback"):
            if plugin is not gate and getattr(type(plugin), name) is not getattr(BasePlugin, name):
                yield f"the plugin {plugin.name!r} has an {name}"


def _is_watched(agent: LlmAgent) -> bool:
    """Whether the agent itself looks at partial responses, or changes them."""
    has_planner = agent.planner is not None and not isinstance(agent.planner, BuiltInPlanner)
    has_executor = agent.code_executor is not None and not isinstance(agent.code_executor, BuiltInCodeExecutor)
    return bool(agent.canonical_after_model_callbacks) or has_planner or has_executor


def _prepare_model(agent: LlmAgent) -> None:
    try:
        model = agent.canonical_model
    except Exception:  # ADK raises it when the model is used
        return
    if not isinstance(model, _SkimmedModel):
        object.__setattr__(model, "__class__", _skimmed_class(type(model)))


def is_traced() -> bool:
    """Whether spans, log records or metrics go anywhere: ADK makes some of partial responses."""
    return not (
        isinstance(otel_trace.get_tracer_provider(), otel_trace.ProxyTracerProvider | otel_trace.NoOpTracerProvider)
        and type(otel_logs.get_logger_provider()).__module__.startswith("opentelemetry._logs")
        and type(otel_metrics.get_meter_provider()).__module__.startswith("opentelemetry.metrics")
    )
