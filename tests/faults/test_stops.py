"""Stop means stop: the model is closed, no task is left, and nothing is added to the session afterwards."""

import asyncio
import json
from collections.abc import AsyncGenerator
from random import Random

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr
from starlette.types import ASGIApp

from adk_stream_protocol import ChatBridge
from support.apps import app_of, figure, runner_of, user_of
from support.asgi import exchange
from support.conversations import other_tasks

STOPS = 200


class EndlessModel(BaseLlm):
    """Talks as fast as it can, for ever, and knows when it was closed."""

    model: str = "endless"
    _open: list[int] = PrivateAttr(default_factory=list[int])

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._open.append(1)
        try:
            while True:
                await asyncio.sleep(0)
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="bla ")]), partial=True)
        finally:
            self._open.pop()


class StopButton:
    """Pressed when so many chunks have been read."""

    def __init__(self, app: ASGIApp, chat_id: str, after: int) -> None:
        self._app, self._path, self._left = app, f"/api/chat/{chat_id}/stop", after
        self._press: asyncio.Task[object] | None = None

    def see(self, data: bytes) -> None:
        self._left -= data.count(b"\ndata: ")
        if self._left <= 0 and self._press is None:
            self._press = asyncio.create_task(exchange(self._app, path=self._path))

    async def pressed(self) -> None:
        assert self._press
        await self._press


@pytest.mark.figures
async def test_a_fast_model_is_stopped_for_good_within_a_hundred_chunks() -> None:
    model, random = EndlessModel(), Random(3)
    bridge = ChatBridge(LlmAgent(name="helper", model=model), user_id=user_of)
    app, service = app_of(bridge), runner_of(bridge).session_service
    ours = other_tasks()
    for number in range(figure(STOPS)):
        chat_id = f"c{number}"
        stop_button = StopButton(app, chat_id, after=random.randint(0, 100))
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        body = json.dumps({"id": chat_id, "messages": [message]}).encode()
        answer = await exchange(app, body=body, on_send=stop_button.see)
        await stop_button.pressed()
        assert answer.body.endswith(b'data: {"type":"abort"}\n\ndata: [DONE]\n\n')
        assert not model.is_open
        session = await service.get_session(app_name="helper", user_id="ann", session_id=chat_id)
        assert session
        for _ in range(20):
            await asyncio.sleep(0)
        after = await service.get_session(app_name="helper", user_id="ann", session_id=chat_id)
        assert after
        assert len(after.events) == len(session.events)
        assert other_tasks() == ours
