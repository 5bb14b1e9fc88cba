"""This library as a case."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def ours(agent: LlmAgent) -> AsyncIterator[ServedTurn]:
    """The whole way from the request body to server-sent events, through the library's own router."""
    bridge = ChatBridge(agent, user_id=lambda connection: USER_ID)
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))

    async def run(chat_id: str, output: Output) -> None:
        await post(app, "/api/chat", _body(chat_id), output.write)

    async with app.router.lifespan_context(app):
        yield ServedTurn(run, text_read_by(ai_sdk_text))


def _body(chat_id: str) -> bytes:
    message = {
        "id": f"u{next(_turn_numbers)}",
        "role": "user",
        "parts": [{"type": "text", "text": PROMPT}],
    }
    return json.dumps({"id": chat_id, "trigger": "submit-message", "messages": [message]}).encode()
