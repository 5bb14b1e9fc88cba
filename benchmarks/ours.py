"""This library as a case."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count

from asgi_call import post
from cases import PROMPT, USER_ID, Output, ServedTurn, text_read_by
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.events import Event
from sse_text import ai_sdk_text

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.protocol import sse
from adk_stream_protocol.protocol.chunks import encode_chunks

_turn_numbers = count()


def encode_events(events: list[Event]) -> list[bytes]:
    """What stands between ADK's events and the socket: translation, JSON, framing."""
    translator = Translator(root_author=events[0].author)
    frames: list[bytes] = []
    written = 0
    for chunks in [translator.start("m"), *map(translator.feed, events), translator.finish()]:
        if chunks:
            frames.append(sse.encode_events(b"abcd", list(enumerate(encode_chunks(chunks), written))))
            written += len(chunks)
    return frames


def encode_words(first: Event, words: list[str]) -> list[bytes]:
    """The same for words that go past ADK, behind the first one."""
    translator = Translator(root_author=first.author)
    frames = [sse.encode_events(b"abcd", list(enumerate(encode_chunks(translator.start("m")))))]
    frames += [sse.encode_events(b"abcd", [(1, chunk)]) for chunk in encode_chunks(translator.feed(first))]
    for place, word in enumerate(words, 2):
        chunk = translator.grow(word, is_thought=False) or b""
        frames.append(sse.encode_events(b"abcd", [(place, chunk)]))
    return frames


@asynccontextmanager
async def ours(agent: LlmAgent, **options: bool) -> AsyncIterator[ServedTurn]:
    """The whole way from the request body to server-sent events, through the library's own router."""
    bridge = ChatBridge(agent, user_id=lambda connection: USER_ID, **options)
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))

    async def run(chat_id: str, output: Output) -> None:
        await post(app, "/api/chat", _body(chat_id), output.write)

    async with app.router.lifespan_context(app):
        yield ServedTurn(run, text_read_by(ai_sdk_text))


def ours_through_adk(agent: LlmAgent) -> AbstractAsyncContextManager[ServedTurn]:
    """With every word through ADK, as where somebody watches them."""
    return ours(agent, direct_text=False)


def ours_merged(agent: LlmAgent) -> AbstractAsyncContextManager[ServedTurn]:
    """The same, with the words that are ready together as one."""
    return ours(agent, direct_text=False, merge_text=True)


def _body(chat_id: str) -> bytes:
    message = {
        "id": f"u{next(_turn_numbers)}",
        "role": "user",
        "parts": [{"type": "text", "text": PROMPT}],
    }
    return json.dumps({"id": chat_id, "trigger": "submit-message", "messages": [message]}).encode()
