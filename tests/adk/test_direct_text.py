"""Words go past ADK, and nobody can tell: streams, histories and sessions are what they were."""

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.planners import PlanReActPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from adk.agent_runs import called, model_says
from adk_stream_protocol.adk import runner as runner_module
from adk_stream_protocol.adk.request import direct_text
from adk_stream_protocol.testing import ScriptedModel, call, text
from support import releases
from support.apps import figure
from support.conversations import Conversation, conversation, hanging

WORDS = "One two three four five six seven eight nine ten."


def look(city: str) -> dict[str, str]:
    return {"weather": f"fine in {city}"}


def thinking() -> list[Any]:
    return [types.Part(text="First I think about it. ", thought=True), text("Then I say it.")]


def alone(*script: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedModel(script), **options)


def named(name: str, *script: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(script), **options)


def delegating() -> LlmAgent:
    inner = named("inner", "The inner agent says this.", description="Knows.")
    return alone([text("I ask."), call("inner", request="What?")], "So it says.", tools=[AgentTool(inner)])


def transferring() -> LlmAgent:
    other = named("other", "Now I speak, at some length.")
    return alone([text("Over."), call("transfer_to_agent", agent_name="other")], sub_agents=[other])


AGENTS: dict[str, Callable[[], Any]] = {
    "words": lambda: alone(WORDS),
    "thoughts": lambda: alone(thinking()),
    "a tool between words": lambda: alone([text("Let me see. "), call("look", city="Rome")], WORDS, tools=[look]),
    "two calls": lambda: alone([text("Twice. "), call("look", city="A"), call("look", city="B")], WORDS, tools=[look]),
    "an agent as a tool": delegating,
    "a transfer": transferring,
    "one after the other": lambda: SequentialAgent(name="helper", sub_agents=[named("a", WORDS), named("b", WORDS)]),
    "both at once": lambda: ParallelAgent(name="helper", sub_agents=[named("a", WORDS), named("b", WORDS)]),
}  # fmt: skip


async def read(agent: Any, *, is_on: bool) -> tuple[Any, Any, Any]:
    """What a client reads, what a reload shows, and what the session has."""
    async with conversation(agent=agent, direct_text=is_on) as chat:
        told = await chat.say("Go on.")
        session = await chat.session()
        stored = [event.model_dump(mode="json", exclude_none=True) for event in session.events] if session else []
        return masked(told.chunks), masked(await chat.messages()), masked(stored)


def masked(found: Any) -> Any:
    """Without what each run makes up: ids and times."""
    return re.sub(
        r"(msg|e|adk)-[\w-]{8,}|call-[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}|'timestamp': [\d.]+", "*", repr(found)
    )


@pytest.mark.parametrize("kind", AGENTS)
async def test_streams_histories_and_sessions_are_the_same(kind: str) -> None:
    on, off = await read(AGENTS[kind](), is_on=True), await read(AGENTS[kind](), is_on=False)
    if kind == "both at once":  # whose word comes first is chance
        on, off = (sorted(on[0]), sorted(on[1])), (sorted(off[0]), sorted(off[1]))
    assert on == off


# -- what goes past ADK -----------------------------------------------------------------------------------------------


async def through_adk(agent: Any, **options: Any) -> int:
    """How many pieces of text ADK was given."""
    async with conversation(agent=agent, **options) as chat:
        seen = count_partial_events(chat)
        assert (await chat.say("Go on.")).text.endswith(WORDS)
        return len(seen)


def count_partial_events(chat: Conversation) -> list[Event]:
    seen: list[Event] = []
    real = chat.runner.run_async

    async def run_async(**given: Any) -> AsyncGenerator[Event, None]:
        async for event in real(**given):
            if event.partial:
                seen.append(event)
            yield event

    chat.runner.run_async = run_async  # pyright: ignore
    return seen


ALL = len(WORDS.split())


@releases.direct_text
async def test_adk_gets_the_first_piece_of_a_model_call() -> None:
    seen = await through_adk(alone(WORDS))
    assert 1 <= seen < ALL / 2


@releases.direct_text
async def test_each_model_call_begins_in_adk() -> None:
    agent = alone([text("Let me see. "), call("look", city="Rome")], WORDS, tools=[look])
    assert 2 <= await through_adk(agent) < ALL


class Watching(BasePlugin):
    async def after_model_callback(self, **given: Any) -> None:
        return None


class Listening(BasePlugin):
    async def on_event_callback(self, **given: Any) -> None:
        return None


class Harmless(BasePlugin):
    async def before_model_callback(self, **given: Any) -> None:
        return None


def with_plugin(plugin: BasePlugin) -> App:
    return App(name="helper", root_agent=alone(WORDS), plugins=[plugin], resumability_config=runner_module.resumable())


WATCHED: dict[str, Callable[[], Any]] = {
    "a plugin that sees responses": lambda: with_plugin(Watching("watching")),
    "a plugin that sees events": lambda: with_plugin(Listening("listening")),
    "a callback of the agent": lambda: alone(WORDS, after_model_callback=lambda **_: None),
    "a planner": lambda: alone(WORDS, planner=PlanReActPlanner()),
    "a code executor": lambda: alone(WORDS, code_executor=UnsafeLocalCodeExecutor()),
}


@pytest.mark.parametrize("kind", WATCHED)
async def test_whoever_watches_sees_every_piece(kind: str) -> None:
    assert await through_adk(WATCHED[kind]()) == ALL


@releases.direct_text
async def test_a_plugin_that_sees_no_pieces_changes_nothing() -> None:
    assert await through_adk(with_plugin(Harmless("harmless"))) < ALL / 2


async def test_it_can_be_switched_off() -> None:
    assert await through_adk(alone(WORDS), direct_text=False) == ALL


async def test_an_adk_that_is_not_tested_gets_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_text.adk_version, "__version__", "2.99.0")
    assert await through_adk(alone(WORDS)) == ALL


async def test_who_exports_spans_sees_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
    assert await through_adk(alone(WORDS)) == ALL


@releases.direct_text
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


async def test_without_a_run_of_ours_a_model_is_what_it_was() -> None:
    agent = alone(WORDS)
    before = type(agent.model)
    async with conversation(agent=agent):
        model = agent.canonical_model
        assert isinstance(model, before)
        assert type(model).__name__ == before.__name__
        request = LlmRequest(contents=[types.Content(role="user", parts=[text("Hello.")])])
        assert len([_ async for _ in model.generate_content_async(request, stream=True)]) == ALL + 1


async def test_a_run_without_streaming_has_no_pieces() -> None:
    config = RunConfig(streaming_mode=StreamingMode.NONE)
    assert await through_adk(alone(WORDS), run_config=config) == 0


@releases.direct_text
@pytest.mark.parametrize(
    ("agent", "line"), [(alone(WORDS), "is on"), (with_plugin(Watching("watching")), "'watching'")]
)
async def test_one_line_at_the_start_says_whether_it_is_on(
    agent: Any, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, direct_text.__name__):
        async with conversation(agent=agent):
            (record,) = [found for found in caplog.records if found.name == direct_text.__name__]
            assert line in record.getMessage()


async def test_a_model_that_adk_does_not_know_is_left_to_adk() -> None:
    async with conversation(agent=LlmAgent(name="helper", model="no-such-model")) as chat:
        assert (await chat.say("Hello?")).chunks[-1]["type"] == "error"


# -- ends in the middle -----------------------------------------------------------------------------------------------


async def test_what_was_half_said_is_kept_when_the_run_is_stopped() -> None:
    model, agent = hanging("Once ", "upon ", "a ", "time", script=("Next.",))
    async with conversation(agent=agent) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        await chat.stop()
        assert (await answer).text == "Once upon a time"
        assert [part["text"] for part in (await chat.messages())[-1]["parts"] if "text" in part] == ["Once upon a time"]
        assert (await chat.say("And now?")).text == "Next."


class Chatty(ScriptedModel):
    """Never waits, and never ends by itself."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        while True:
            yield LlmResponse(content=types.Content(role="model", parts=[text("word ")]), partial=True)


async def test_a_model_that_never_waits_lets_others_run_and_can_be_stopped() -> None:
    async with conversation(agent=LlmAgent(name="helper", model=Chatty())) as chat:
        answer = asyncio.create_task(chat.say("Talk."))
        while not chat.is_running:
            await asyncio.sleep(0)
        await chat.stop()
        assert (await answer).chunks[-1] == {"type": "abort"}


# -- anything that a model may stream ---------------------------------------------------------------------------------


def any_script(chance: random.Random) -> list[Any]:
    """Model calls with pieces of all kinds; each ends with the whole, and all but the last call a tool."""
    return [any_reply(chance, number, is_last=False) for number in range(chance.randrange(3))] + [
        any_reply(chance, 9, is_last=True)
    ]


def any_reply(chance: random.Random, number: int, *, is_last: bool) -> list[LlmResponse]:
    pieces: list[types.Part] = []
    for _ in range(chance.randrange(12)):
        word = chance.choice(["a ", "", "bc", "\n", "d e ", "é"])
        pieces.append(types.Part(text=word, thought=chance.random() < 0.3 or None))
    streamed: list[LlmResponse] = []
    rest = list(pieces)
    while rest:
        together, rest = rest[: (size := chance.choice([1, 1, 1, 1, 2]))], rest[size:]
        extra: dict[str, Any] = {}
        if chance.random() < 0.1:
            extra["usage_metadata"] = types.GenerateContentResponseUsageMetadata(total_token_count=3)
        streamed.append(model_says(*together, partial=True, **extra))
    whole = joined(pieces)
    calls = [] if is_last else [called(f"c{number}", "look", city="Rome")]
    if calls and chance.random() < 0.5:
        streamed.append(model_says(*calls, partial=True))
    finish = types.FinishReason.STOP
    return [*streamed, model_says(*(whole or [text("!")]), *calls, partial=False, finish_reason=finish)]


def joined(pieces: list[types.Part]) -> list[types.Part]:
    whole: list[types.Part] = []
    for piece in pieces:
        if whole and whole[-1].thought == piece.thought:
            whole[-1] = types.Part(text=(whole[-1].text or "") + (piece.text or ""), thought=piece.thought)
        elif piece.text:
            whole.append(piece)
    return whole


@pytest.mark.figures
async def test_whatever_a_model_streams_the_client_reads_the_same() -> None:
    for seed in range(figure(5_000)):
        scripts = [any_script(random.Random(seed)) for _ in range(2)]
        on = await read(alone(*scripts[0], tools=[look]), is_on=True)
        off = await read(alone(*scripts[1], tools=[look]), is_on=False)
        assert on == off, seed
