"""Session services that raise where others find nothing: strangers learn no more from them."""

import asyncio
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session

from adk_stream_protocol.testing import ScriptedModel
from support.conversations import conversation


class SessionsOfOthersRaise(InMemorySessionService):
    """As `VertexAiSessionService` does, whose session ids are those of all users."""

    async def get_session(self, *, app_name: str, user_id: str, session_id: str, **options: Any) -> Session | None:
        for owner, sessions in self.sessions.get(app_name, {}).items():
            if session_id in sessions and owner != user_id:
                raise ValueError(f"Session {session_id} does not belong to user {user_id}.")
        return await super().get_session(app_name=app_name, user_id=user_id, session_id=session_id, **options)


def observed(response: httpx.Response) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    return response.status_code, response.content, sorted(response.headers.raw)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/messages", 404),
        ("HEAD", "/messages", 404),
        ("DELETE", "", 404),
        ("GET", "/stream", 204),
        ("POST", "/stop", 204),
        ("GET", "/files/a.png", 404),
    ],
)
async def test_a_foreign_chat_looks_like_none(method: str, path: str, status: int) -> None:
    async with conversation("Hello.", session_service=SessionsOfOthersRaise()) as chat:
        await chat.say("hi")
        eve = chat.of(user="eve")
        foreign, none = await eve.request(method, path), await eve.of(chat_id="c9").request(method, path)
        assert observed(foreign) == observed(none)
        assert foreign.status_code == status
        assert len(await chat.messages()) == 2


@pytest.mark.parametrize("again", [False, True])
async def test_a_turn_in_a_foreign_chat_says_nothing_of_it(again: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with conversation("Hello.", "Never.", session_service=SessionsOfOthersRaise()) as chat:
        answer = await chat.say("hi")
        eve = chat.of(user="eve")
        got = await (eve.regenerate("u1", answer.message_id) if again else eve.say("hi"))
        assert (got.status, got.types[-1]) == (200, "error")
        assert "belong" not in got.raw
        assert "eve" not in got.raw
        assert len(chat.model.requests) == 1


class BrokenSessions(InMemorySessionService):
    async def get_session(self, **_: Any) -> Session | None:
        return Session.model_validate({"id": 7})  # raises a kind of ValueError


async def test_a_session_that_cannot_be_read_is_no_session_that_is_missing() -> None:
    async with conversation("Hello.", session_service=BrokenSessions()) as chat:
        assert (await chat.request("GET", "/messages")).status_code == 500


# -- a chat that is deleted while it is taken back --------------------------------------------------------------------


class DeletedWhileReading(InMemorySessionService):
    """Somebody deletes the session after it was read for the `at`th time from now on."""

    at: int | None = None

    async def get_session(self, **key: Any) -> Session | None:
        session = await super().get_session(**key)
        if self.at is not None:
            self.at -= 1
            if self.at == 0:
                await self.delete_session(**{name: key[name] for name in ("app_name", "user_id", "session_id")})
        return session

    async def append_event(self, session: Session, event: Event) -> Event:
        if session.id not in self.sessions.get(session.app_name, {}).get(session.user_id, {}):
            raise ValueError(f"Session {session.id} not found.")  # as the services with a database do
        return await super().append_event(session, event)


@pytest.mark.parametrize("how", ["edit", "regenerate", "regenerate by id"])
@pytest.mark.parametrize("at", range(1, 5))
async def test_to_take_back_a_chat_that_is_deleted_meanwhile_is_no_failure_of_ours(how: str, at: int) -> None:
    sessions = DeletedWhileReading()
    agent = LlmAgent(name="helper", model=ScriptedModel(["Hello."] * 3))
    async with conversation(agent=agent, session_service=sessions) as chat:
        answer = await chat.say("hi")
        sessions.at = at
        match how:
            case "edit":
                got = await chat.edit("u1", "Hello?")
            case "regenerate":
                got = await chat.regenerate("u1", answer.message_id)
            case _:
                named = {"id": "c1", "trigger": "regenerate-message", "messageId": answer.message_id}
                got = await chat.post(named)
        assert got.status in (200, 404)
        sessions.at = None
        assert (await chat.say("hi again")).text == "Hello."


@pytest.mark.parametrize("rounds", range(5))
async def test_edits_and_deletions_at_the_same_time_are_answered_properly(rounds: int) -> None:
    async with conversation(*["Hello."] * 20) as chat:
        await chat.say("hi")
        edits = [chat.edit("u1", f"Hello {n}?") for n in range(3)]
        gone = [asyncio.sleep(0.001 * rounds), chat.request("DELETE")]
        statuses = [
            result.status_code if isinstance(result, httpx.Response) else result and result.status
            for result in await asyncio.gather(*edits[:2], *gone, edits[2])
        ]
        assert {status for status in statuses if status is not None} <= {200, 204, 404, 409}
