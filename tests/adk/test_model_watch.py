"""Where the watch over a model's connections is, and what it leaves alone."""

import copy
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.models import BaseLlm, Gemini, LlmResponse
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.registry import LLMRegistry
from google.adk.workflow import Workflow
from google.genai import types

from adk_stream_protocol import Limits
from adk_stream_protocol.adk.calls.call_ids import CallIds
from adk_stream_protocol.adk.live.model_call_ids import ModelCallIds
from adk_stream_protocol.adk.live.model_connection import WatchedConnection
from adk_stream_protocol.adk.live.model_watch import (
    ModelWatch,
    current_watch,
    has_live_mode,
    live_model_of,
    watch_models,
)
from adk_stream_protocol.adk.live.talking_on import TalkingOn
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel

pytestmark = pytest.mark.virtual_time


class Observed:
    def __init__(self) -> None:
        self.withdrawn_ids: list[str] = []

    def withdrawn(self, call_ids: Sequence[str]) -> None:
        self.withdrawn_ids += call_ids

    def is_withdrawn(self, call_id: str) -> bool:
        return call_id == "of nobody"

    def connection_lost(self) -> None: ...

    def said_again(self) -> None: ...


def watch_of(observed: Observed) -> ModelWatch:
    return ModelWatch(Limits(), observed, TalkingOn(None), ModelCallIds(CallIds(())), lambda found: found)


async def waits(session: LiveSession) -> None:
    await session.expect("close")


def request() -> LlmRequest:
    return LlmRequest(live_connect_config=types.LiveConnectConfig())


async def is_watched(model: BaseLlm) -> bool:
    token = current_watch.set(watch_of(Observed()))
    try:
        async with model.connect(request()) as connection:
            return isinstance(connection, WatchedConnection)
    finally:
        current_watch.reset(token)


class ByName(ScriptedLiveModel):
    def __init__(self, model: str) -> None:
        super().__init__(waits, model=model)

    @classmethod
    def supported_models(cls) -> list[str]:
        return ["scripted-by-name"]


async def test_models_of_all_agents_are_watched_also_those_by_name() -> None:
    LLMRegistry.register(ByName)
    model, below = ScriptedLiveModel(waits), ScriptedLiveModel(waits)
    agents = [
        LlmAgent(name="a", model=model),
        LlmAgent(name="b", model="scripted-by-name", sub_agents=[LlmAgent(name="c")]),
        SequentialAgent(name="d", sub_agents=[LlmAgent(name="e", model=below)]),
        LlmAgent(name="f", model="of-nobody"),
    ]
    root = LlmAgent(name="root", model=model, sub_agents=agents)
    for _ in range(2):
        watch_models(root)
    found = [live_model_of(agent) for agent in (*agents[:2], agents[1].sub_agents[0], agents[2].sub_agents[0])]
    assert [await is_watched(each) for each in found if each is not None] == [True] * 4
    assert live_model_of(agents[3]) is None
    assert live_model_of(agents[2]) is None


async def test_models_of_agents_in_a_workflow_are_watched() -> None:
    model = ScriptedLiveModel(waits)
    watch_models(Workflow(name="flow", edges=[("START", LlmAgent(name="a", model=model))]))
    assert await is_watched(model)


async def test_without_a_live_run_of_ours_a_watched_model_connects_as_before() -> None:
    model = ScriptedLiveModel(waits)
    watch_models(LlmAgent(name="a", model=model))
    async with model.connect(request()) as connection:
        assert connection is model.sessions[0].connection


async def test_a_watched_model_keeps_its_class_and_its_copies_connect_as_themselves() -> None:
    model = Gemini(model="gemini-one")
    watch_models(LlmAgent(name="a", model=model))
    watched = type(model)
    assert (watched.__name__, watched.__module__, watched.__mro__[2]) == ("Gemini", Gemini.__module__, Gemini)
    assert model.model_dump() == Gemini(model="gemini-one").model_dump()
    for other in (model.model_copy(update={"model": "gemini-two"}), copy.deepcopy(model)):
        assert type(other) is watched
        assert other.connect.__self__ is other  # pyright: ignore
    watch_models(LlmAgent(name="a", model=model))
    assert type(model) is watched


class OnlyText(BaseLlm):
    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse()


async def test_a_model_without_live_mode_is_left_alone() -> None:
    model = OnlyText(model="only-text")
    watch_models(LlmAgent(name="a", model=model))
    assert type(model) is OnlyText
    assert not has_live_mode(model)
    assert has_live_mode(ScriptedLiveModel())


# -- connections ------------------------------------------------------------------------------------------------------


class Plain(BaseLlmConnection):
    """Of a model that reports no cancellations, and whose last turn is empty."""

    def __init__(self, *turns: list[LlmResponse]) -> None:
        self.turns = list(turns)
        self.received: list[Any] = []

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        for response in self.turns.pop(0) if self.turns else []:
            yield response

    async def send_history(self, history: list[types.Content]) -> None:
        self.received += history

    async def send_content(self, content: types.Content) -> None:
        self.received.append(content)

    async def send_realtime(self, blob: Any) -> None:
        self.received.append(blob)

    async def close(self) -> None:
        self.received.append("close")


@asynccontextmanager
async def dialled(connection: BaseLlmConnection) -> AsyncGenerator[BaseLlmConnection, None]:
    yield connection


async def test_everything_passes_as_it_comes_turn_by_turn() -> None:
    turns = [[LlmResponse(partial=True), LlmResponse(turn_complete=True)], [LlmResponse(turn_complete=True)]]
    plain = Plain(*turns)
    async with watch_of(Observed()).connect(dialled(plain), request()) as connection:
        assert [[each async for each in connection.receive()] for _ in range(3)] == [*turns, []]
        words, voice = types.UserContent("Hello"), types.Blob(data=b"12", mime_type="audio/pcm")
        await connection.send_history([words])
        await connection.send_content(words)
        await connection.send_realtime(voice)
        await connection.close()
        assert plain.received == [words, words, voice, "close"]


async def test_what_comes_is_read_while_nobody_takes_it() -> None:
    observed, model = Observed(), ScriptedLiveModel(waits)
    async with watch_of(observed).connect(model.connect(request()), request()):
        (session,) = model.sessions
        for _ in range(100):
            await session.say("word ")
        await session.cancel("c1", "c2")
        await session.taken()
        assert observed.withdrawn_ids == ["c1", "c2"]


async def test_words_for_a_conversation_that_begins_again_follow_its_history() -> None:
    watch = watch_of(Observed())
    first, second = Plain([LlmResponse(go_away=types.LiveServerGoAway())]), Plain()
    async with watch.connect(dialled(first), request()) as connection:
        await connection.send_content(types.UserContent("Hello"))
        _ = [each async for each in connection.receive()]
    history = types.UserContent("Of yesterday")
    begun = LlmRequest(contents=[history], live_connect_config=types.LiveConnectConfig())
    async with watch.connect(dialled(second), begun) as connection:
        assert second.received == []
        await connection.send_history([history])
        assert second.received == [history, types.UserContent("Hello")]


async def test_another_agent_gets_no_words_again_since_they_are_in_its_history() -> None:
    watch = watch_of(Observed())
    first, second = Plain(), Plain()
    async with watch.connect(dialled(first), request()) as connection:
        await connection.send_content(types.UserContent("Hello"))
    async with watch.connect(dialled(second), request()):
        assert second.received == []


async def test_a_go_away_before_an_answer_that_never_comes_is_not_lost() -> None:
    """ADK takes a turn without a response for the end of the connection."""
    leave = LlmResponse(go_away=types.LiveServerGoAway(time_left="60s"))
    async with watch_of(Observed()).connect(dialled(Plain([leave, leave])), request()) as connection:
        await connection.send_content(types.UserContent("Hello"))
        assert [each async for each in connection.receive()][:1] == [leave]
