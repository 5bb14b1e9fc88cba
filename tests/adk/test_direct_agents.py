"""Who watches words inside ADK sees all of them: plugins, callbacks, tracers, agents and runners of another kind."""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.events import Event
from google.adk.flows.llm_flows.base_llm_flow import BaseLlmFlow
from google.adk.planners import BuiltInPlanner, PlanReActPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from adk.direct_runs import ALL, WORDS, alone, named, pieces_through_adk, through_adk
from adk_stream_protocol.adk import runner as runner_module
from adk_stream_protocol.adk.words import direct_agents
from support import releases
from support.conversations import conversation

pytestmark = releases.direct_text


class Watching(BasePlugin):
    async def after_model_callback(self, **given: Any) -> None:
        return None


class Listening(BasePlugin):
    async def on_event_callback(self, **given: Any) -> None:
        return None


class Harmless(BasePlugin):
    async def before_model_callback(self, **given: Any) -> None:
        return None


async def see_response(**given: Any) -> None:
    return None


def with_method_of_its_own() -> BasePlugin:
    plugin = Harmless("patched")
    plugin.after_model_callback = see_response
    return plugin


def with_plugin(plugin: BasePlugin) -> App:
    return App(name="helper", root_agent=alone(WORDS), plugins=[plugin], resumability_config=runner_module.resumable())


class Routing(BaseAgent):
    """An application's own agent. The events of others go through its hands."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            async for event in agent.run_async(ctx):
                yield event


class Censoring(LlmAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        async for event in super()._run_async_impl(ctx):
            yield event


class Own(LlmAgent):
    """Adds something, and changes nothing."""

    department: str = "sales"

    def greet(self) -> str:
        return self.department


class WatchingRunner(Runner):
    async def run_async(self, **given: Any) -> AsyncGenerator[Event, None]:  # pyright: ignore
        async for event in super().run_async(**given):
            yield event


class CensoringPlanner(BuiltInPlanner):
    """ADK lets any planner change responses that has its own way to process them."""

    def process_planning_response(self, callback_context: Any, response_parts: list[types.Part]) -> Any:
        return response_parts


def censoring() -> Censoring:
    return Censoring(**alone(WORDS).model_dump(include={"name"}), model=alone(WORDS).model)


WATCHED: dict[str, Callable[[], Any]] = {
    "a plugin that sees responses": lambda: with_plugin(Watching("watching")),
    "a plugin that sees events": lambda: with_plugin(Listening("listening")),
    "a plugin with a method of its own": lambda: with_plugin(with_method_of_its_own()),
    "a callback of the agent": lambda: alone(WORDS, after_model_callback=lambda **_: None),
    "a callback of a sub-agent": lambda: SequentialAgent(
        name="helper", sub_agents=[named("sub", WORDS, after_model_callback=lambda **_: None)]
    ),
    "a planner": lambda: alone(WORDS, planner=PlanReActPlanner()),
    "a planner of the application's own": lambda: alone(
        WORDS, planner=CensoringPlanner(thinking_config=types.ThinkingConfig())
    ),
    "a code executor": lambda: alone(WORDS, code_executor=UnsafeLocalCodeExecutor()),
    "an agent that runs others": lambda: Routing(name="helper", sub_agents=[named("sub", WORDS)]),
    "an agent that changes events": censoring,
    "an agent above": lambda: Routing(
        name="helper", sub_agents=[SequentialAgent(name="all", sub_agents=[named("sub", WORDS)])]
    ),
    "another name in the label": lambda: alone(
        WORDS, generate_content_config=types.GenerateContentConfig(labels={"adk_agent_name": "helper"})
    ),
    "a runner": lambda: WatchingRunner(
        app_name="app", agent=alone(WORDS), session_service=InMemorySessionService(), auto_create_session=True
    ),
}


@pytest.mark.parametrize("kind", WATCHED)
async def test_whoever_watches_sees_every_piece(kind: str) -> None:
    assert await through_adk(WATCHED[kind]()) == ALL


UNWATCHED: dict[str, Callable[[], Any]] = {
    "a plugin that sees no pieces": lambda: with_plugin(Harmless("harmless")),
    "a class that only adds": lambda: Own(name="helper", model=alone(WORDS).model),
    "an application's own agent beside": lambda: SequentialAgent(
        name="helper", sub_agents=[Routing(name="none"), named("sub", WORDS)]
    ),
    "a runner of the user's own": lambda: Runner(
        app_name="app", agent=alone(WORDS), session_service=InMemorySessionService(), auto_create_session=True
    ),
}


@pytest.mark.parametrize("kind", UNWATCHED)
async def test_who_sees_no_pieces_changes_nothing(kind: str) -> None:
    assert await through_adk(UNWATCHED[kind]()) < ALL / 2


def add_plugin(runner: Runner) -> None:
    runner.plugin_manager.register_plugin(Watching("late"))


def add_callback(runner: Runner) -> None:
    runner.agent.after_model_callback = lambda **_: None  # pyright: ignore


@pytest.mark.parametrize("add", [add_plugin, add_callback])
async def test_who_begins_to_watch_later_sees_every_piece_from_then_on(add: Callable[[Runner], None]) -> None:
    async with conversation(agent=alone(WORDS, WORDS)) as chat:
        assert await pieces_through_adk(chat) < ALL / 2
        add(chat.runner)
        assert await pieces_through_adk(chat) == ALL


async def test_it_can_be_switched_off() -> None:
    assert await through_adk(alone(WORDS), direct_text=False) == ALL


@pytest.mark.parametrize("release", ["2.10.0", "2.12.0", "2.14.0", "3.0.0"])
async def test_an_adk_that_is_not_tested_gets_every_piece(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_agents.adk_version, "__version__", release)
    assert await through_adk(alone(WORDS)) == ALL


async def test_who_patches_adk_sees_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs do that record what agents say."""
    real = BaseLlmFlow._call_llm_async  # pyright: ignore

    async def recorded(self: Any, *given: Any) -> AsyncGenerator[Any, None]:
        async for response in real(self, *given):
            yield response

    monkeypatch.setattr(BaseLlmFlow, "_call_llm_async", recorded)
    assert await through_adk(alone(WORDS)) == ALL


PROVIDERS: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "spans": (trace, "_TRACER_PROVIDER", TracerProvider),
    "log records": (_logs._internal, "_LOGGER_PROVIDER", LoggerProvider),  # pyright: ignore
    "metrics": (metrics._internal, "_METER_PROVIDER", MeterProvider),  # pyright: ignore
}


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_who_exports_telemetry_sees_every_piece(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, provider = PROVIDERS[kind]
    monkeypatch.setattr(module, name, provider())
    assert await through_adk(alone(WORDS)) == ALL


async def test_who_logs_each_piece_sees_every_piece(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "google_adk"):
        assert await through_adk(alone(WORDS)) == ALL


async def test_a_model_that_is_called_through_the_live_api_is_left_to_adk() -> None:
    """With `support_cfc`, ADK opens a connection instead of asking for content."""
    async with conversation(agent=alone(WORDS), run_config=RunConfig(support_cfc=True)) as chat:
        await chat.say("Go on.")
        assert chat.model.requests == []


async def test_a_watched_agent_does_not_shut_out_others() -> None:
    watched = named("a", WORDS, after_model_callback=lambda **_: None)
    both = SequentialAgent(name="helper", sub_agents=[watched, named("b", WORDS)])
    assert ALL < await through_adk(both) < 1.5 * ALL


async def test_two_agents_of_one_name_are_one_if_one_is_watched() -> None:
    watched = named("a", WORDS, after_model_callback=lambda **_: None)
    inner = SequentialAgent(name="inner", sub_agents=[named("b", WORDS)])
    both = SequentialAgent(name="helper", sub_agents=[watched, inner])
    object.__setattr__(inner.sub_agents[0], "name", "a")
    assert await through_adk(both) == 2 * ALL


# -- the line at the start --------------------------------------------------------------------------------------------


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.INFO, direct_agents.__name__):
        yield lambda: [found.getMessage() for found in caplog.records if found.name == direct_agents.__name__]


SAID: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "direct text is on: words go past ADK": (lambda: alone(WORDS), {}),
    "direct text is off: direct_text=False": (lambda: alone(WORDS), {"direct_text": False}),
    "direct text is off: the plugin 'watching' has an after_model_callback": (
        WATCHED["a plugin that sees responses"],
        {},
    ),
    "direct text is off: the agent 'helper' has its own way to run": (WATCHED["an agent that runs others"], {}),
    "direct text is off: the runner has its own way to run": (WATCHED["a runner"], {}),
    "direct text is off: every agent has callbacks, a planner or a code executor": (WATCHED["a planner"], {}),
}


@pytest.mark.parametrize("line", SAID)
async def test_one_line_says_whether_it_is_on_or_why_not(line: str, lines: Callable[[], list[str]]) -> None:
    make, options = SAID[line]
    async with conversation(agent=make(), **options) as chat:
        assert lines() == [line]
        await chat.say("Go on.")
        assert lines() == [line]
