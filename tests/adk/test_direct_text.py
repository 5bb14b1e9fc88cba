"""Words go past ADK, and nobody can tell: streams, histories and sessions are what they were."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.planners import BuiltInPlanner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.workflow import Workflow
from google.genai import types
from pydantic import BaseModel

from adk.agent_runs import called, streamed_call
from adk.direct_runs import ALL, WORDS, alone, look, masked, named, piece, read, through_adk, whole
from adk_stream_protocol import Limits
from adk_stream_protocol.adk.request.request_run import RequestRun
from adk_stream_protocol.testing import ScriptedModel, call, text
from support import fake_gemini, releases
from support.conversations import conversation, hanging
from support.fake_gemini import FakeGemini

pytestmark = releases.direct_text


class Answer(BaseModel):
    answer: str


def thinking() -> list[Any]:
    return [types.Part(text="First I think about it. ", thought=True), text("Then I say it.")]


def delegating() -> LlmAgent:
    inner = named("inner", "The inner agent says this.", description="Knows.")
    return alone([text("I ask."), call("inner", request="What?")], "So it says.", tools=[AgentTool(inner)])


def transferring() -> LlmAgent:
    other = named("other", "Now I speak, at some length.")
    return alone([text("Over."), call("transfer_to_agent", agent_name="other")], sub_agents=[other])


def inheriting() -> LlmAgent:
    """Both speak with the model of the upper one."""
    other = LlmAgent(name="other")
    return alone([text("Over."), call("transfer_to_agent", agent_name="other")], WORDS, sub_agents=[other])


def arguments_in_pieces() -> list[LlmResponse]:
    begun = [piece("Let me "), piece("see. "), piece(streamed_call("c1", "look"))]
    streamed = [piece(streamed_call(None, None, ("$.city", letter))) for letter in "Rome"]
    return [*begun, *streamed, piece(streamed_call(None, None, goes_on=None)),
            whole("Let me see. ", called("c1", "look", city="Rome"))]  # fmt: skip


def failing(*pieces: str) -> Callable[[LlmRequest], list[LlmResponse]]:
    def fail(_: LlmRequest) -> list[LlmResponse]:
        class Broken(list[LlmResponse]):
            def __iter__(self) -> Any:
                yield from map(piece, pieces)
                raise RuntimeError("the line is dead")

        return Broken([piece("")])

    return fail


USAGE = types.GenerateContentResponseUsageMetadata(total_token_count=3)

AGENTS: dict[str, Callable[[], Any]] = {
    "words": lambda: alone(WORDS),
    "thoughts": lambda: alone(thinking()),
    "thoughts of a planner": lambda: alone(
        thinking(), planner=BuiltInPlanner(thinking_config=types.ThinkingConfig(include_thoughts=True))
    ),
    "a tool between words": lambda: alone([text("Let me see. "), call("look", city="Rome")], WORDS, tools=[look]),
    "two calls": lambda: alone([text("Twice. "), call("look", city="A"), call("look", city="B")], WORDS, tools=[look]),
    "arguments in pieces": lambda: alone(arguments_in_pieces(), WORDS, tools=[look]),
    "an agent as a tool": delegating,
    "a transfer": transferring,
    "one model for two agents": inheriting,
    "one after the other": lambda: SequentialAgent(name="helper", sub_agents=[named("a", WORDS), named("b", WORDS)]),
    "again and again": lambda: LoopAgent(
        name="helper", sub_agents=[named("a", WORDS, [text("Enough."), call("exit_loop")], "", tools=[exit_loop])]
    ),
    "both at once": lambda: ParallelAgent(name="helper", sub_agents=[named("a", WORDS), named("b", WORDS)]),
    "a workflow": lambda: Workflow(name="flow", edges=[("START", named("a", WORDS), named("b", WORDS))]),
    "a schema": lambda: alone('{"answer": "It is so."}', output_schema=Answer, output_key="said"),
    "a key": lambda: alone(WORDS, output_key="said"),
    "nothing in a piece": lambda: alone([piece("a "), piece(""), piece(), piece("b "), piece("c"), whole("a b c")]),
    "counts in each piece": lambda: alone(
        [piece(word, usage_metadata=USAGE, model_version="m") for word in "abcd"] + [whole("abcd")]
    ),
    "a piece after the whole": lambda: alone([piece("a "), piece("b"), whole("a b"), piece("c "), piece("d")]),
    "two wholes": lambda: alone([piece("a "), piece("b"), whole("a b"), piece("c "), piece("d"), whole("c d")]),
    "no whole": lambda: alone([piece("a "), piece("b "), piece("c ")]),
    "a reason in a piece": lambda: alone(
        [piece("a "), piece("b "), piece("c", finish_reason=types.FinishReason.MAX_TOKENS), whole("a b c")]
    ),
    "what was said aloud in a piece": lambda: alone(
        [piece("a "), piece("b "), piece("c ", output_transcription=types.Transcription(text="c")), whole("a b c ")]
    ),
    "an error in the middle": lambda: alone(failing("a ", "b ", "c ")),
    "an error that a callback answers": lambda: alone(
        failing("a ", "b ", "c "), on_model_error_callback=lambda **_: whole("Sorry.")
    ),
    "an answer from before the model": lambda: alone(before_model_callback=lambda **_: whole(WORDS)),
}


@pytest.mark.parametrize("kind", AGENTS)
async def test_streams_histories_and_sessions_are_the_same(kind: str) -> None:
    on, off = await read(AGENTS[kind](), is_on=True), await read(AGENTS[kind](), is_on=False)
    if kind == "both at once":  # whose word comes first is chance
        on, off = (sorted(on[0]), sorted(on[1])), (sorted(off[0]), sorted(off[1]))
    assert on == off


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
async def test_what_is_logged_is_the_same(level: int, caplog: pytest.LogCaptureFixture) -> None:
    logged: list[list[str]] = []
    for is_on in (True, False):
        caplog.clear()
        with caplog.at_level(level):
            agent = alone([text("Let me see. "), call("look", city="Rome")], WORDS, tools=[look])
            await read(agent, is_on=is_on)
        lines = [f"{record.name} {record.levelname} {masked(record.getMessage())}" for record in caplog.records]
        logged.append([line for line in lines if "direct text" not in line])
    assert logged[0] == logged[1] != []


# -- what goes past ADK -----------------------------------------------------------------------------------------------


async def test_adk_gets_the_first_piece_of_a_model_call() -> None:
    assert 1 <= await through_adk(alone(WORDS)) < ALL / 2


async def test_each_model_call_begins_in_adk() -> None:
    agent = alone([text("Let me see. "), call("look", city="Rome")], WORDS, tools=[look])
    assert 2 <= await through_adk(agent) < ALL


class Named(ScriptedModel):
    """ADK makes it from its name."""

    def __init__(self, **fields: Any) -> None:
        super().__init__([WORDS] * 2, **fields)

    @classmethod
    def supported_models(cls) -> list[str]:
        return ["scripted-by-name"]


class Wrapping(ScriptedModel):
    """A user's own class, with a way of its own to stream."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in super().generate_content_async(llm_request, stream):
            yield response


def by_name() -> LlmAgent:
    LLMRegistry.register(Named)
    return LlmAgent(name="helper", model="scripted-by-name")


ANY_MODEL: dict[str, Callable[[], Any]] = {
    "by name": by_name,
    "a class of the user's own": lambda: LlmAgent(name="helper", model=Wrapping([WORDS])),
    "of a sub-agent": lambda: SequentialAgent(name="helper", sub_agents=[named("b", WORDS)]),
    "of an agent in parallel": lambda: ParallelAgent(name="helper", sub_agents=[named("b", WORDS)]),
    "of the agent that it is handed over to": inheriting,
    "of a workflow": lambda: Workflow(name="flow", edges=[("START", named("a", WORDS))]),
}


@pytest.mark.parametrize("kind", ANY_MODEL)
async def test_the_words_of_any_model_go_past_adk(kind: str) -> None:
    assert await through_adk(ANY_MODEL[kind]()) < ALL


async def test_the_words_of_gemini_go_past_adk() -> None:
    pieces = [fake_gemini.text(f"{word} ") for word in WORDS.split()[:-1]] + [fake_gemini.text(WORDS.split()[-1])]
    with FakeGemini([[*pieces, fake_gemini.finish()]]) as service:
        agent = LlmAgent(name="helper", model=service.model())
        assert isinstance(agent.canonical_model, Gemini)
        assert await through_adk(agent) < ALL


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


async def test_a_model_that_adk_does_not_know_is_left_to_adk() -> None:
    async with conversation(agent=LlmAgent(name="helper", model="no-such-model")) as chat:
        assert (await chat.say("Hello?")).chunks[-1]["type"] == "error"


async def test_a_model_whose_class_cannot_be_extended_is_left_to_adk() -> None:
    class Closed(ScriptedModel):
        def __init_subclass__(cls, *, licence: str, **_: Any) -> None:
            raise AssertionError

    assert await through_adk(LlmAgent(name="helper", model=Closed([WORDS]))) == ALL


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

    word: str = "word "

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        while True:
            yield piece(self.word)


async def test_a_model_that_never_waits_lets_others_run_and_can_be_stopped() -> None:
    async with conversation(agent=LlmAgent(name="helper", model=Chatty())) as chat:
        answer = asyncio.create_task(chat.say("Talk."))
        while not chat.is_running:
            await asyncio.sleep(0)
        await chat.stop()
        assert (await answer).chunks[-1] == {"type": "abort"}


async def test_an_answer_that_is_too_long_ends_soon_and_is_stopped_once() -> None:
    agent, most = LlmAgent(name="helper", model=Chatty(word="word " * 2_000)), 100_000
    async with conversation(agent=agent, limits=Limits(max_log_bytes=most)) as chat:
        stopped: list[RequestRun] = []
        stop_soon = RequestRun.stop_soon

        def counted(run: RequestRun) -> None:
            stopped.append(run)
            stop_soon(run)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RequestRun, "stop_soon", counted)
            answer = await chat.say("Talk.")
        assert (answer.chunks[-1]["finishReason"], len(stopped)) == ("length", 1)
        assert len(answer.text) < 2 * most
