"""A model that follows a script."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any, TypeGuard

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

Spoken = str | Sequence[types.Part] | Sequence[LlmResponse]
Said = Spoken | Exception
Reply = Said | Callable[[LlmRequest], Said]


def text(said: str) -> types.Part:
    return types.Part(text=said)


def thought(said: str) -> types.Part:
    return types.Part(text=said, thought=True)


def call(name: str, /, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=f"call-{secrets.token_hex(8)}", name=name, args=arguments))


class ScriptedModel(BaseLlm):
    """Gives one reply of the script for each model call, word by word as Gemini streams it.

    A reply is a text, or parts; or `LlmResponse`s, which are passed on unchanged; or an exception, which is raised; or
    a function of the request that returns one of these. A model call after the end of the script fails the run: its
    answer has an `error` chunk.
    """

    model: str = "scripted"
    _script: list[Reply] = PrivateAttr(default_factory=list[Reply])
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list[LlmRequest])

    def __init__(self, script: Iterable[Reply] = (), **fields: Any) -> None:
        super().__init__(**fields)
        self._script = list(script)

    @property
    def requests(self) -> list[LlmRequest]:
        """The requests that ADK has sent so far."""
        return self._requests

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = self.next_reply(llm_request)
        if is_responses(said):
            for response in said:
                await asyncio.sleep(0)  # lets other tasks run: a model that never waits would block them
                yield response
            return
        parts = parts_of(said)
        for part in parts if stream else ():
            for word in words_of(part):
                await asyncio.sleep(0)
                yield LlmResponse(content=types.Content(role="model", parts=[word]), partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            finish_reason=types.FinishReason.STOP,
            partial=False if stream else None,
        )

    def next_reply(self, llm_request: LlmRequest) -> Spoken:
        """The script's reply to this request, which is added to `requests`."""
        self.requests.append(llm_request)
        if len(self.requests) > len(self._script):
            raise AssertionError(f"The script has {len(self._script)} replies; this is call {len(self.requests)}.")
        reply = self._script[len(self.requests) - 1]
        if callable(reply):
            reply = reply(llm_request)
        if isinstance(reply, Exception):
            raise reply
        return reply


def is_responses(said: Spoken) -> TypeGuard[Sequence[LlmResponse]]:
    return not isinstance(said, str) and bool(said) and isinstance(said[0], LlmResponse)


def parts_of(said: Spoken) -> list[types.Part]:
    if isinstance(said, str):
        return [text(said)]
    return [part for part in said if isinstance(part, types.Part)]


def words_of(part: types.Part) -> Iterable[types.Part]:
    if not part.text:
        return [part]
    pieces = part.text.split(" ")
    spaced = [f"{piece} " for piece in pieces[:-1]] + [pieces[-1]]
    return [types.Part(text=piece, thought=part.thought) for piece in spaced if piece]
