"""Merged text: the words that a model has ready when ADK asks for the next one go through ADK as one piece.

For agents whose words somebody watches inside ADK, so that they cannot go past it (`direct_text.py`). Nothing waits for
a word that is not there yet.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from google.adk.models.llm_response import LlmResponse
from google.genai import types

_IN_A_ROW = 16
"""A model that never waits lets others run after this many pieces, as it would on its way through ADK."""
_PLAIN_RESPONSE = {"content", "partial", "model_version"}
_PLAIN_PART = {"text", "thought"}

_Kind = tuple[bool, str | None, str | None]


async def merged(responses: AsyncGenerator[LlmResponse, None]) -> AsyncGenerator[LlmResponse, None]:
    """What of a model's responses ADK gets. The model has a task of its own, so that it goes on while ADK works."""
    ahead = _Ahead()
    model = asyncio.create_task(ahead.fill(responses), name="adk-stream model")
    model.add_done_callback(lambda _: ahead.has_news.set())
    try:
        while ahead.waiting or not model.done():
            if ahead.waiting:
                yield ahead.take()
                ahead.note_asked()
            else:
                ahead.has_news.clear()
                await ahead.has_news.wait()
        await model  # raises what the model has raised, after its words
    finally:
        model.cancel()
        await asyncio.wait([model])


class _Ahead:
    """What a model has said and ADK has not asked for yet."""

    def __init__(self) -> None:
        self.waiting: deque[LlmResponse] = deque()
        self.has_news = asyncio.Event()
        self._is_asked = asyncio.Event()

    async def fill(self, responses: AsyncGenerator[LlmResponse, None]) -> None:
        async with aclosing(responses):
            async for response in responses:
                self.waiting.append(response)
                self.has_news.set()
                if _kind(response) is None:  # the model is ahead with words only
                    self._is_asked.clear()
                    await self._is_asked.wait()
                elif len(self.waiting) % _IN_A_ROW == 0:
                    await asyncio.sleep(0)

    def note_asked(self) -> None:
        """ADK has done with what it was given."""
        if not self.waiting:
            self._is_asked.set()

    def take(self) -> LlmResponse:
        first = self.waiting.popleft()
        kind = _kind(first)
        texts = [_text(first)]
        while kind is not None and self.waiting and _kind(self.waiting[0]) == kind:
            texts.append(_text(self.waiting.popleft()))
        if kind is None or len(texts) == 1:
            return first
        is_thought, role, _ = kind
        part = types.Part(text="".join(texts), thought=is_thought or None)
        return first.model_copy(update={"content": types.Content(role=role, parts=[part])})


def _kind(response: LlmResponse) -> _Kind | None:
    """Pieces of one kind can be merged; None if there is more to a response than a piece of text."""
    content = response.content
    if not response.partial or content is None or not content.parts or len(content.parts) != 1:
        return None
    part = content.parts[0]
    if not part.text or not _has_only(part, _PLAIN_PART) or not _has_only(response, _PLAIN_RESPONSE):
        return None
    return bool(part.thought), content.role, response.model_version


def _has_only(found: types.Part | LlmResponse, names: set[str]) -> bool:
    return not any(value is not None and name not in names for name, value in vars(found).items())


def _text(response: LlmResponse) -> str:
    parts = response.content.parts if response.content is not None else None
    return (parts[0].text if parts else None) or ""
