"""Runs with direct text and without, and what is left of each."""

import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk.agent_runs import model_says
from adk_stream_protocol.testing import ScriptedModel
from support.conversations import Conversation, conversation

WORDS = "One two three four five six seven eight nine ten."
ALL = len(WORDS.split())


def look(city: str) -> dict[str, str]:
    return {"weather": f"fine in {city}"}


def named(name: str, *script: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(script), **options)


def alone(*script: Any, **options: Any) -> LlmAgent:
    return named("helper", *script, **options)


def piece(*parts: Any, **fields: Any) -> LlmResponse:
    return model_says(*parts, partial=True, **fields)


def whole(*parts: Any) -> LlmResponse:
    return model_says(*parts, partial=False, finish_reason=types.FinishReason.STOP)


async def read(agent: Any, *, is_on: bool, **options: Any) -> tuple[str, str, str]:
    """What a client reads, what a reload shows, and what the session has."""
    async with conversation(agent=agent, direct_text=is_on, **options) as chat:
        return await read_turn(chat)


async def read_turn(chat: Conversation, read_as: Callable[[list[Any]], Any] = list) -> tuple[str, str, str]:
    told = await chat.say("Go on.")
    session = await chat.session()
    stored = [event.model_dump(mode="json", exclude_none=True) for event in session.events] if session else []
    return masked(read_as(told.chunks)), masked(await chat.messages()), masked(stored)


def masked(found: Any) -> str:
    """Without what each run makes up: ids and times."""
    return re.sub(
        r"(msg|e|adk)-[\w-]{8,}|call-[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}|'timestamp': [\d.]+", "*", repr(found)
    )


async def through_adk(agent: Any, **options: Any) -> int:
    """How many pieces of text ADK was given."""
    async with conversation(agent=agent, **options) as chat:
        return await pieces_through_adk(chat)


async def pieces_through_adk(chat: Conversation) -> int:
    seen: list[Event] = []
    real = type(chat.runner).run_async

    async def run_async(**given: Any) -> AsyncGenerator[Event, None]:
        async for event in real(chat.runner, **given):
            if event.partial and event.content and event.content.parts:
                seen.append(event)
            yield event

    chat.runner.run_async = run_async  # pyright: ignore
    assert (await chat.say("Go on.")).text.endswith(WORDS)
    return len(seen)
