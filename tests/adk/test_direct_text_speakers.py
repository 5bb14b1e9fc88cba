"""Words that go past ADK: whose they are, who hears them, and when an answer was given."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.platform import time as adk_time
from google.genai import types
from pydantic import PrivateAttr

from adk.direct_runs import ALL, WORDS, alone, piece, whole
from adk_stream_protocol.testing import ScriptedModel, text
from support import releases
from support.conversations import Conversation, conversation

pytestmark = releases.direct_text


class Censoring(ScriptedModel):
    """Speaks with another model, and leaves out a word of what that one says."""

    _inner: ScriptedModel = PrivateAttr()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in self._inner.generate_content_async(llm_request, stream):
            if not response.partial:
                yield whole(CENSORED)
            elif text_of(response) != "nine ":
                yield response


CENSORED = WORDS.replace("nine ", "")


def text_of(response: LlmResponse) -> str:
    return (response.content.parts[0].text if response.content and response.content.parts else "") or ""


def censoring(inner: ScriptedModel) -> Censoring:
    model = Censoring()
    model._inner = inner
    return model


async def test_a_model_that_speaks_to_another_model_is_heard_by_it() -> None:
    shared = ScriptedModel([WORDS, WORDS])
    careful = LlmAgent(name="careful", model=censoring(shared))
    agent = SequentialAgent(name="helper", sub_agents=[LlmAgent(name="plain", model=shared), careful])
    async with conversation(agent=agent) as chat:
        assert (await chat.say("Go on.")).text == WORDS + CENSORED


async def test_a_model_that_is_replaced_later_is_heard_by_the_new_one() -> None:
    agent = alone(WORDS)
    async with conversation(agent=agent) as chat:
        agent.model = censoring(agent.model)  # pyright: ignore
        assert (await chat.say("Go on.")).text == CENSORED


class Retrying(ScriptedModel):
    """Asks itself again, and leaves out what it has said already."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if not self.requests:
            self.requests.append(llm_request)
            async for response in self.generate_content_async(llm_request, stream):
                if not response.partial:
                    yield whole(CENSORED)
                elif text_of(response) != "nine ":
                    yield response
            return
        async for response in super().generate_content_async(llm_request, stream):
            yield response


async def test_a_model_that_asks_itself_hears_all_of_it() -> None:
    async with conversation(agent=LlmAgent(name="helper", model=Retrying(["", WORDS]))) as chat:
        assert (await chat.say("Go on.")).text == CENSORED


class InTurns(ScriptedModel):
    """Two of them speak in turns, one response each."""

    _turn: Callable[[], Any] = PrivateAttr()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in super().generate_content_async(llm_request, stream):
            await self._turn()
            yield response


def in_turns(order: str, **scripts: list[LlmResponse]) -> list[LlmAgent]:
    """`order`: who says something, by name."""
    turns, agents, spoken = asyncio.Condition(), list[LlmAgent](), [0]

    def turn_of(name: str) -> Callable[[], Any]:
        async def turn() -> None:
            async with turns:
                await turns.wait_for(lambda: order[spoken[0]] == name)
                for _ in range(20):  # what was said before comes out of ADK meanwhile
                    await asyncio.sleep(0)
                spoken[0] += 1
                turns.notify_all()

        return turn

    for name, script in scripts.items():
        model = InTurns([script])
        model._turn = turn_of(name)
        agents.append(LlmAgent(name=name, model=model))
    return agents


async def test_nobodys_words_get_into_what_another_agent_says() -> None:
    """A piece without content says nothing about who speaks."""
    a = [piece("a1 "), piece("a2 "), piece("a3 "), piece("a4"), whole("a1 a2 a3 a4")]
    b = [
        piece(grounding_metadata=types.GroundingMetadata()),
        piece("b1 "),
        piece("b2 "),
        piece("b3"),
        whole("b1 b2 b3"),
    ]
    agent = ParallelAgent(name="helper", sub_agents=in_turns("aabbbbaaab", a=a, b=b))
    async with conversation(agent=agent) as chat:
        parts = [part["text"] for part in (await told_parts(chat)) if part["type"] == "text"]
        assert sorted(parts) == ["a1 a2 a3 a4", "b1 b2 b3"]


async def told_parts(chat: Conversation) -> list[dict[str, Any]]:
    texts: dict[str, dict[str, Any]] = {}
    for chunk in (await chat.say("Go on.")).chunks:
        if chunk["type"] == "text-start":
            texts[chunk["id"]] = {"type": "text", "text": ""}
        elif chunk["type"] == "text-delta":
            texts[chunk["id"]]["text"] += chunk["delta"]
    return list(texts.values())


class OneObject(ScriptedModel):
    """Streams one object again and again."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        content = types.Content(role="model", parts=[text("ha ")])
        for _ in range(5):
            yield LlmResponse(content=content, partial=True)
        for _ in range(5):
            await asyncio.sleep(0)
            yield LlmResponse(content=content, partial=True)
        yield whole("ha " * 10)


async def test_a_model_that_streams_one_object_is_understood() -> None:
    async with conversation(agent=LlmAgent(name="helper", model=OneObject())) as chat:
        assert (await chat.say("Laugh.")).text == "ha " * 10


# -- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("kind", ["whole", "error"])
async def test_an_answer_is_dated_when_it_ends(kind: str, *, is_on: bool) -> None:
    """Databases sort events by their dates, and lists of chats too."""
    clock = [1000.0]

    class Slow(ScriptedModel):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            for word in WORDS.split():
                clock[0] += 60
                for _ in range(10):
                    await asyncio.sleep(0)
                yield piece(f"{word} ")
            if kind == "error":
                raise RuntimeError("the line is dead")
            yield whole(f"{WORDS} ")

    agent = LlmAgent(name="helper", model=Slow(), on_model_error_callback=lambda **_: whole("Sorry."))
    adk_time.set_time_provider(lambda: clock[0])
    async with conversation(agent=agent, direct_text=is_on) as chat:
        await chat.say("Go on.")
        session = await chat.session()
        answers = [event for event in session.events if event.author == "helper" and event.content]  # pyright: ignore
        assert [event.timestamp for event in answers] == [1000.0 + 60 * ALL]
