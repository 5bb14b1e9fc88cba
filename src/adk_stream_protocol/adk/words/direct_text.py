"""Direct text: the words of a model go straight into the stream of a run, past ADK.

ADK takes 200 to 500 us for each piece of text that a model streams, and does nothing with it: a session stores whole
events only. So a piece that continues the part that the run writes at the moment skips ADK. The first piece of each
model call, and whatever is not plain text, goes through ADK as always. Each turn of a live model is such a call.

Where somebody could watch the pieces inside ADK, direct text is off: see `direct_agents.py`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from functools import cache
from operator import attrgetter
from types import new_class
from typing import Any, Protocol, cast

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from .merged_text import merged
from .model_ways import ModelWays

AGENT_LABEL = "adk_agent_name"
_TAKEN_IN_A_ROW = 16
"""A model that has many pieces ready lets others run after this many."""
_TURNS_THROUGH_ADK = 8
_WAITS = 3
"""How often a model call waits for it. Where agents speak in turns, it is in vain."""
_NOTHING = types.Content(role="model", parts=[])
_AMBIGUOUS = types.Content(role="model", parts=[])
_what_adk_must_see = attrgetter(
    "finish_reason",
    "error_code",
    "turn_complete",
    "interrupted",
    "input_transcription",
    "output_transcription",
    "live_session_resumption_update",
    "voice_activity",
)
"""What ends or interrupts something, or has words of its own. Gemini sends it apart from text; other models may not."""


class Grow(Protocol):
    def __call__(self, text: str, *, is_thought: bool) -> bool:
        """Write one more piece of the part that the last event has added to; False if that part cannot take it."""
        ...


class DirectText:
    """Of one run. A model call is named by an object of its own."""

    def __init__(self, ways: ModelWays, grow: Grow) -> None:
        self._ways = ways
        self._grow = grow
        self._speaking: set[str] = set()
        self._given: dict[object, types.Content | None] = {}  # to ADK: the last of each model call
        self._growing: object | None = None  # the model call whose piece was the last event to come out of ADK

    def send(
        self, responses: AsyncGenerator[LlmResponse, None], model: BaseLlm, agent: str
    ) -> AsyncGenerator[LlmResponse, None]:
        """What of a model's responses is for ADK: all of them, if another model of the agent's calls this one, or it
        calls itself. It speaks to that one then."""
        if agent in self._speaking:
            return responses
        if self._ways.direct.get(agent) is model:
            return self.skim(responses, agent)
        return self._merge(responses, agent) if self._ways.merged.get(agent) is model else responses

    async def _merge(
        self, responses: AsyncGenerator[LlmResponse, None], agent: str
    ) -> AsyncGenerator[LlmResponse, None]:
        self._speaking.add(agent)
        try:
            async with aclosing(merged(responses)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._speaking.discard(agent)

    async def skim(self, responses: AsyncGenerator[LlmResponse, None], agent: str) -> AsyncGenerator[LlmResponse, None]:
        """What of a model's responses is for ADK."""
        model_call, taken, waits, is_behind = object(), 0, _WAITS, False
        self._speaking.add(agent)
        try:
            async with aclosing(responses):
                async for response in responses:
                    if waits and response.partial and model_call in self._given and self._growing is not model_call:
                        waits -= 1
                        await self._until_growing(model_call)
                    if self._growing is model_call:
                        if self._take(response):
                            taken, is_behind = taken + 1, True
                            if taken % _TAKEN_IN_A_ROW == 0:
                                await asyncio.sleep(0)
                            continue
                        self._growing = None  # until this has come out: nothing may overtake it
                    if is_behind and not response.partial:
                        is_behind = False
                        yield _sign_of_life()
                    self._note_given(model_call, response.content)
                    yield response
        except Exception:
            if is_behind:  # a callback may answer for the model
                yield _sign_of_life()
            raise
        finally:
            self._speaking.discard(agent)
            self._given.pop(model_call, None)

    async def _until_growing(self, model_call: object) -> None:
        """Several pieces that come at once: the first of them needs some turns of the loop to come out of ADK."""
        for _ in range(_TURNS_THROUGH_ADK):
            await asyncio.sleep(0)
            if self._growing is model_call:
                return

    def _note_given(self, model_call: object, content: types.Content | None) -> None:
        last = self._given.get(model_call)
        if last is _AMBIGUOUS or (last is content and last is not None):
            content = _AMBIGUOUS  # a model that streams one object again and again: its events cannot be told apart
        self._given[model_call] = content

    def _take(self, response: LlmResponse) -> bool:
        parts = response.content.parts if response.content is not None else None
        if not response.partial or not parts or len(parts) != 1:
            return False
        text = parts[0].text
        if not text or any(_what_adk_must_see(response)):
            return False
        return self._grow(text, is_thought=bool(parts[0].thought))

    def pause(self) -> None:
        """The segment ends, and the model does not."""
        self._growing = None

    def came_out(self, event: Event) -> None:
        """Each event of ADK's, when it is written."""
        content = event.content
        self._growing = None
        if event.partial and content is not None and content.parts:  # without parts, it is not what the run has written
            self._growing = next((call for call, given in self._given.items() if given is content), None)


def _sign_of_life() -> LlmResponse:
    """ADK dates the whole by the last piece that it saw. Databases sort events by this date."""
    return LlmResponse(content=_NOTHING, partial=True)


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
        agent = (llm_request.config.labels or {}).get(AGENT_LABEL)
        return responses if direct is None or agent is None else direct.send(responses, cast(BaseLlm, self), agent)


@cache
def _skimmed_class(model_class: type[BaseLlm]) -> type[Any]:
    names = {"__module__": model_class.__module__, "__qualname__": model_class.__qualname__}
    return new_class(model_class.__name__, (_SkimmedModel, model_class), exec_body=lambda body: body.update(names))


def prepare_model(agent: LlmAgent) -> BaseLlm | None:
    """The agent's model, whose words can be skimmed from now on. None if ADK cannot find it, and will say so; or if its
    class cannot be extended."""
    try:
        model = agent.canonical_model
    except Exception:
        return None
    if not isinstance(model, _SkimmedModel):
        try:
            object.__setattr__(model, "__class__", _skimmed_class(type(model)))
        except Exception:  # a mock, or a class that lets nobody extend it
            return None
    return model
