"""An open microphone and no live session: the model is dialled with pauses, and whoever is there is told why."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from google.adk.models import BaseLlm, LlmResponse
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.sessions import InMemorySessionService
from google.genai import types

from adk_stream_protocol import Limits
from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from support.asgi import exchange
from support.live_client import LiveClient
from support.records import record
from transports.live_apps import LiveApp, answers_for_ever, live_app, nothing_left, own, ping, said, sound

pytestmark = pytest.mark.virtual_time

FAILED = "The agent could not answer. Try again."
NO_LIVE_MODE = (
    "This agent's model has no live mode. Write to it without a live session, or give the agent a live model: "
    "for Gemini, one that supports bidiGenerateContent."
)


class Refusing(ScriptedLiveModel):
    """Refuses the first connections."""

    refuses: int = 1_000_000
    dials: list[float] = []  # noqa: RUF012 -- pydantic copies it

    @asynccontextmanager
    async def connect(self, llm_request: Any) -> AsyncGenerator[BaseLlmConnection, None]:
        self.dials.append(asyncio.get_running_loop().time())
        if len(self.dials) <= self.refuses:
            raise RuntimeError("429 quota exceeded")
        async with super().connect(llm_request) as connection:
            yield connection


class Prepared:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: Any) -> dict[str, Any]:
        self.count += 1
        return {}


async def speak_for(seconds: float, *clients: LiveClient) -> None:
    for _ in range(round(seconds * 50)):
        for client in clients:
            client.send_frame(sound(20))
        await asyncio.sleep(0.02)
    for client in clients:
        await ping(client)


def errors(client: LiveClient) -> list[tuple[str, str]]:
    return [(frame["code"], frame["message"]) for frame in own(client, "error")]


def dropped_frames(live: LiveApp) -> int:
    return live.bridge._service._live._refused_voice.dropped_frames  # pyright: ignore


async def test_a_model_that_refuses_is_dialled_with_growing_pauses_and_each_failure_is_told_once() -> None:
    model, prepare = Refusing(answers_for_ever), Prepared()
    async with live_app(model=model, speaks=True, prepare=prepare) as live, live.attached() as client:
        await speak_for(10, client)
        pauses = [after - before for before, after in zip(model.dials, model.dials[1:], strict=False)]
        assert pauses == pytest.approx([0.5, 1, 2, 4], abs=0.1)
        assert prepare.count == len(model.dials) == 5
        assert errors(client) == [("live-failed", FAILED)] * 5
        assert dropped_frames(live) == pytest.approx(500, abs=10)


async def test_the_pauses_are_bounded() -> None:
    model = Refusing(answers_for_ever)
    limits = Limits(max_live_backoff_s=3)
    async with live_app(model=model, speaks=True, limits=limits) as live, live.attached() as client:
        await speak_for(30, client)
        pauses = [after - before for before, after in zip(model.dials, model.dials[1:], strict=False)]
        assert pauses[2:] == pytest.approx([2, *([3] * len(pauses[3:]))], abs=0.1)
        assert live.runs == 0


async def test_everybody_who_is_connected_is_told_also_who_comes_later_and_speaks() -> None:
    model = Refusing(answers_for_ever)
    limits = Limits(live_backoff_s=100)
    async with (
        live_app(model=model, speaks=True, limits=limits) as live,
        live.attached() as one,
        live.attached() as two,
    ):
        await speak_for(1, one)
        assert errors(one) == errors(two) == [("live-failed", FAILED)]
        async with live.attached() as three:
            assert errors(three) == []
            one.tell("voice-end")
            await speak_for(1, three)
            assert errors(three) == [("live-failed", FAILED)]
        assert errors(one) == errors(two) == [("live-failed", FAILED)]
        assert len(model.dials) == 1


async def test_what_is_written_is_sent_at_once_and_fails_with_an_error_of_its_own() -> None:
    model = Refusing(answers_for_ever)
    limits = Limits(live_backoff_s=100)
    async with live_app(model=model, speaks=True, limits=limits) as live, live.attached() as client:
        await speak_for(1, client)
        told = await client.say("Hello")
        assert (told.chunks[-1]["type"], told.chunks[-1]["errorText"]) == ("error", FAILED)
        assert len(model.dials) == 2
        assert live.runs == 0


async def test_voice_is_heard_again_as_soon_as_the_model_takes_it() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.output_transcript("I hear you.", finished=True)
        await session.turn_complete()
        await session.expect("close")

    model = Refusing(server, refuses=2)
    async with live_app(model=model, speaks=True) as live, live.attached() as client:
        await speak_for(5, client)
        assert errors(client) == [("live-failed", FAILED)] * 2
        assert len(model.dials) == 3
        assert (await client.resume()).text == "I hear you."
        assert live.runs == 1


async def test_a_session_that_had_spoken_is_opened_again_after_the_first_pause() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.output_transcript("Well.", finished=True)
        await session.turn_complete()
        await asyncio.sleep(1)
        raise RuntimeError

    model = Refusing(server, refuses=0)
    async with live_app(model=model, speaks=True) as live, live.attached() as client:
        await speak_for(10, client)
        pauses = [after - before for before, after in zip(model.dials, model.dials[1:], strict=False)]
        assert pauses == pytest.approx([1.5] * len(pauses), abs=0.1)
        assert len(errors(client)) == len(pauses) == 6
        assert live.runs == 1
    await nothing_left()


# -- request mode has the chat ----------------------------------------------------------------------------------------


class SlowInRequestMode(ScriptedLiveModel):
    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.sleep(20)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="done")]))


async def test_a_chat_that_request_mode_holds_tells_a_speaker_once_and_hears_him_afterwards() -> None:
    model, prepare = SlowInRequestMode(answers_for_ever), Prepared()
    async with live_app(model=model, speaks=True, prepare=prepare) as live, live.attached() as client:
        body = json.dumps({"id": "chat-1", "messages": [said("hi")]}).encode()
        headers = {"x-user": "ann", "content-type": "application/json"}
        asking = asyncio.create_task(exchange(live.app, method="POST", path="/api/chat", headers=headers, body=body))
        await asyncio.sleep(0.1)
        await speak_for(10, client)
        assert [code for code, _ in errors(client)] == ["run-active"]
        assert prepare.count == 2
        assert dropped_frames(live) == 500
        assert (await asking).status == 200
        await speak_for(1, client)
        assert [code for code, _ in errors(client)] == ["run-active"]
        assert (len(model.sessions), prepare.count) == (1, 3)


class Lost(InMemorySessionService):
    """A database that was lost, or what it has is."""

    def __init__(self, failure: Exception) -> None:
        super().__init__()
        self.loads = 0
        self._failure = failure

    async def get_session(self, **_: Any) -> Any:
        self.loads += 1
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ConnectionError(), ("store-unavailable", "Your chats cannot be reached right now. Try again.")),
        (UnicodeError(), ("internal", "The server failed. Try again.")),
    ],
)
async def test_a_session_that_cannot_be_opened_for_any_reason_is_tried_with_pauses_and_told_once(
    failure: Exception, told: tuple[str, str]
) -> None:
    store, sessions = MemoryStore(), Lost(failure)
    key = ChatKey("helper", "ann", "chat-1")
    await store.add(msgspec.structs.replace(record(state=State.DENIED), chat=key))  # to be told with the next words
    options: dict[str, Any] = {"store": store, "session_service": sessions}
    async with live_app(answers_for_ever, speaks=True, **options) as live, live.attached() as client:
        await speak_for(10, client)
        assert errors(client) == [told]
        assert (sessions.loads, live.runs) == (5, 0)


# -- no live mode -----------------------------------------------------------------------------------------------------


class OnlyText(BaseLlm):
    model: str = "only-text"

    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello.")]))


async def test_a_model_without_live_mode_is_refused_with_a_sentence_that_says_so() -> None:
    async with live_app(model=OnlyText()) as live, live.attached() as client:
        refused = await client.say("Hello")
        assert refused.error is not None
        assert (refused.error["code"], refused.error["errorText"]) == ("no-live-mode", NO_LIVE_MODE)
        await speak_for(1, client)
        assert errors(client) == [("no-live-mode", NO_LIVE_MODE)]
        assert live.runs == 0
