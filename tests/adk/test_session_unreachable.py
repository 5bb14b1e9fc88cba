"""Services of ADK that cannot be reached: what they would have answered is unavailable, and that is no bug of ours."""

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import ToolContext
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.testing import call
from support.conversations import conversation
from support.pages import Page, Till, page, results_told
from support.workers import answer_body

SECRET = "postgresql://ann:secret@db"
UNREACHABLE = {"code": "store-unavailable", "message": "Your chats cannot be reached right now. Try again."}


class Unreachable:
    """Fails when it is told to, whatever it is asked."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name != "is_down" and self.is_down:
            raise ConnectionRefusedError(SECRET)
        return super().__getattribute__(name)


class Sessions(Unreachable, InMemorySessionService):
    is_down: bool = False


class Rewinding(InMemorySessionService):
    """Fails at rewinds, before it stores them or after that."""

    is_stored = False

    async def append_event(self, session: Session, event: Event) -> Event:
        if not event.actions.rewind_before_invocation_id:
            return await super().append_event(session, event)
        if self.is_stored:
            await super().append_event(session, event)
        raise ConnectionRefusedError(SECRET)


class Forgetful(InMemorySessionService):
    """Fails at what comes after a rewind."""

    is_rewound = False

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.is_rewound:
            raise ConnectionRefusedError(SECRET)
        self.is_rewound = bool(event.actions.rewind_before_invocation_id)
        return await super().append_event(session, event)


class Artifacts(Unreachable, InMemoryArtifactService):
    is_down: bool = False


async def draw(tool_context: ToolContext) -> None:
    """Draws."""
    await tool_context.save_artifact("map.png", types.Part.from_bytes(data=b"x", mime_type="image/png"))


@asynccontextmanager
async def waiting() -> AsyncGenerator[tuple[Page, Till, Sessions, Artifacts]]:
    """A payment waits for its person."""
    till, sessions, artifacts = Till(), Sessions(), Artifacts()
    script = [call("draw")], [call("pay", amount=5)], "Paid.", "Hello."
    services: Any = {"session_service": sessions, "artifact_service": artifacts}
    async with page(*script, tools=(till.gated, draw), **services) as at:
        await at.say("Draw, and pay.")
        at.decide("pay")
        yield at, till, sessions, artifacts
        sessions.is_down = artifacts.is_down = False


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is told whoever runs the server."""
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return [record.getMessage() for record in told if record.name.startswith("adk_stream_protocol")]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/c1/messages"),
        ("GET", "/no-such/messages"),
        ("GET", "/c1/files/map.png"),
        ("GET", "/no-such/audit"),
        ("DELETE", "/c1"),
    ],
)
async def test_what_cannot_be_read_now_is_unavailable(method: str, path: str, caplog: pytest.LogCaptureFixture) -> None:
    async with waiting() as (at, _, sessions, artifacts):
        sessions.is_down = artifacts.is_down = True
        told = await at.chat.request_root(method, path)
        assert (told.status_code, told.json()) == (503, {"error": UNREACHABLE})
        service = "Artifacts" if "files" in path else "Sessions"
        assert logged(caplog) == [f"{service} cannot be used: ConnectionRefusedError"]
        assert SECRET not in caplog.text


async def test_an_answer_is_unavailable_and_not_recorded_and_can_be_sent_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with waiting() as (at, till, sessions, _):
        sessions.is_down = True
        refused = await at.chat.post(answer_body(at))
        assert (refused.status, refused.error) == (503, UNREACHABLE)
        assert logged(caplog) == ["Sessions cannot be used: ConnectionRefusedError"]
        sessions.is_down = False
        assert (await at.answer()).text == "Paid."
        assert till.paid == [5]


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("again", ["edit", "regenerate"])
async def test_a_turn_that_cannot_be_taken_back_is_unavailable(
    again: str, is_stored: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = Rewinding()
    sessions.is_stored = is_stored
    async with conversation("One.", "Two.", session_service=sessions) as chat:
        await chat.say("Count.")
        refused = await (chat.edit("u1", "Go on.") if again == "edit" else chat.regenerate("u1"))
        assert (refused.status, refused.error) == (503, UNREACHABLE)
        assert logged(caplog) == ["Rewinding cannot be used: ConnectionRefusedError"]
        assert (await chat.say("And?")).text == "Two."  # the chat is free


async def test_a_late_result_that_cannot_be_stored_again_after_a_rewind_is_stored_when_the_edit_comes_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    till, sessions = Till(), Forgetful()
    script = [call("pay", amount=5)], "Well.", "Paid.", "Other words."
    async with page(*script, tools=(till.gated,), session_service=sessions) as at:
        await at.say("Pay.")
        await at.say("Go on.")
        at.decide("pay")
        assert (await at.answer(0)).text == "Paid."
        refused = await at.chat.edit("u2", "Something else.")
        assert (refused.status, refused.error) == (503, UNREACHABLE)
        assert logged(caplog) == ["Forgetful cannot be used: ConnectionRefusedError"]
        sessions.is_rewound = False
        assert (await at.chat.edit("u2", "Something else.")).text == "Other words."
        assert results_told(at.chat.model) == [{"paid": 5}]
        assert till.paid == [5]


async def test_a_run_tells_its_client_no_more_of_it_than_of_any_other_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with waiting() as (at, _, sessions, _):
        sessions.is_down = True
        answer = await at.chat.say("Hello?")
        assert answer.chunks[-1] == {"type": "error", "errorText": "The agent could not answer. Try again."}
        assert SECRET not in json.dumps(answer.chunks)
        assert not any(SECRET in line for line in logged(caplog))


async def test_an_application_that_asks_for_a_history_gets_the_error_of_a_store_that_fails() -> None:
    async with waiting() as (at, _, sessions, _):
        bridge: ChatBridge = at.chat.bridge
        sessions.is_down = True
        with pytest.raises(StoreUnavailable) as failed:
            await bridge.messages("ann", "c1")
        assert SECRET not in str(failed.value)
        assert failed.value.__cause__ is None
