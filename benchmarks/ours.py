"""This library as a case. It is imported late, so that the other cases can be measured without it."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from itertools import count

from asgi_call import post
from cases import PROMPT, USER_ID, Output, ServedTurn, text_read_by
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.events import Event
from sse_text import ai_sdk_text

_turn_numbers = count()

encode_events: Callable[[list[Event]], list[bytes]] | None = None


def bridge_is_installed() -> bool:
    """Only a bridge that is not there is passed over; one that fails to import must fail the benchmark."""
    return find_spec("adk_stream_protocol") is not None and find_spec("adk_stream_protocol.bridge") is not None


@asynccontextmanager
async def ours(agent: LlmAgent) -> AsyncIterator[ServedTurn]:
    """The whole way from the request body to server-sent events, through the library's own router."""
    from adk_stream_protocol import ChatBridge

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
