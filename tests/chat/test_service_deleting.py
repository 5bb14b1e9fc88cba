"""A deletion has the chat to itself: it can be repeated, loses nobody's words, and its audit trail ends truly."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events.request_input import RequestInput
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools._request_input_tool import request_input
from google.adk.workflow import Workflow
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.errors import NotFound, StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from adk_stream_protocol.store.base import Lease
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from support.apps import app_of, user_of
from support.conversations import Conversation
from support.pages import Clock, Page, Slow, Till
from support.records import read_whole
from support.workers import CHAT, answer_body, outputs, words_body, workers

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]


class Unsteady(InMemoryArtifactService):
    """Fails once, or stands still, when a chat's files are looked for or deleted."""

    fails_at: str | None = None
    is_slow: bool = False

    def _fail(self, name: str) -> None:
        if self.fails_at == name:
            self.fails_at = None
            raise ConnectionError("the bucket is gone")

    async def list_artifact_keys(self, **about: Any) -> list[str]:
        self._fail("list_artifact_keys")
        if self.is_slow:
            await asyncio.sleep(3)
        return await super().list_artifact_keys(**about)

    async def delete_artifact(self, **about: Any) -> None:
        self._fail("delete_artifact")
        await super().delete_artifact(**about)


class FailsToDelete(InMemorySessionService):
    fails = True

    async def delete_session(self, **about: Any) -> None:
        if self.fails:
            self.fails = False
            raise ConnectionError("gone")
        await super().delete_session(**about)


async def delete(at: Page) -> int:
    return (await at.chat.request("DELETE")).status_code


async def write(tool_context: ToolContext) -> dict[str, Any]:
    """Writes a file."""
    await tool_context.save_artifact("note.txt", types.Part(text="hello"))
    return {}


# -- repeated ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails_at", ["list_artifact_keys", "delete_artifact"])
async def test_a_deletion_that_the_artifact_service_failed_can_be_repeated(fails_at: str) -> None:
    artifacts = Unsteady()
    replies = [[call("write")], "Written.", PAY]
    async with workers(*replies, tools=(write, Till().gated), artifact_service=artifacts) as staff:
        at = staff.page()
        await at.say("Write.")
        await at.say("Pay.")
        artifacts.fails_at = fails_at
        assert [await delete(at), await delete(at)] == [503, 204]
        assert await staff.records() == []
        assert (await at.chat.request("GET", "/messages")).status_code == 404
        assert await artifacts.list_artifact_keys(app_name="helper", user_id="ann", session_id="c1") == []


async def test_a_deletion_that_the_sessions_failed_can_be_repeated() -> None:
    async with workers(PAY, tools=(Till().gated,), sessions=FailsToDelete()) as staff:
        at = staff.page()
        await at.say("Pay.")
        assert [await delete(at), await delete(at)] == [503, 204]
        assert await staff.records() == []
        assert await delete(at) == 404


async def test_a_chat_whose_deletion_failed_can_be_used() -> None:
    artifacts = Unsteady()
    async with workers("One.", "Two.", artifact_service=artifacts) as staff:
        at = staff.page()
        await at.say("Hello.")
        artifacts.fails_at = "list_artifact_keys"
        assert await delete(at) == 503
        assert (await at.say("And?")).text == "Two."


# -- alone in the chat ------------------------------------------------------------------------------------------------


async def test_words_that_come_during_a_deletion_are_told_to_wait() -> None:
    artifacts = Unsteady()
    async with workers("One.", "Two.", artifact_service=artifacts) as staff:
        at = staff.page()
        await at.say("Hello.")
        artifacts.is_slow = True
        deleting = asyncio.create_task(delete(at))
        await asyncio.sleep(1)
        refused = await at.chat.post(words_body("And?"))
        assert (refused.status, len(staff.model.requests)) == (409, 1)
        assert await deleting == 204


@pytest.mark.parametrize("where", ["here", "on another worker"])
async def test_what_is_said_after_a_deletion_is_kept(where: str) -> None:
    artifacts, till = Unsteady(), Till()
    replies = [PAY, [call("pay", amount=6)], "Paid."]
    async with workers(*replies, tools=(till.gated,), artifact_service=artifacts) as staff:
        at = staff.page()
        await at.say("Pay.")
        artifacts.is_slow = True
        deleting = asyncio.create_task(delete(at))
        await asyncio.sleep(1)
        again = Page((at if where == "here" else staff.page()).chat)
        body = words_body("Pay 6.")
        answer = await again.chat.post(body)
        while answer.status == 409:
            await asyncio.sleep(0.5)
            answer = await again.chat.post(body)
        assert deleting.done()
        again.read(answer)
        assert [record.arguments for record in await staff.records()] == [{"amount": 6}]
        again.decide("pay")
        assert (await again.answer()).text == "Paid."
        assert till.paid == [6]


async def test_an_answer_that_comes_during_a_deletion_runs_nothing() -> None:
    artifacts, till = Unsteady(), Till()
    async with workers(PAY, tools=(till.gated,), artifact_service=artifacts) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        artifacts.is_slow = True
        deleting = asyncio.create_task(delete(at))
        await asyncio.sleep(1)
        answer = await at.chat.post(answer_body(at))
        assert answer.status in (200, 404)
        assert outputs(answer) == []
        assert await deleting == 204
        assert till.paid == []
        assert await staff.records() == []


FORM = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
ASK = call("adk_request_input", message="How many days?", response_schema=FORM)


class Slowly(InMemorySessionService):
    """Deletes sessions slowly."""

    async def delete_session(self, **about: Any) -> None:
        await asyncio.sleep(3)
        await super().delete_session(**about)


class AddsLate(MemoryStore):
    """Does not have the question when it is answered, adds it late, and gives leases back late."""

    late_s: float | None = None

    async def add(self, record: CallRecord) -> bool:
        if record.tool != "adk_request_input":
            return await super().add(record)
        if self.late_s is None:
            raise StoreUnavailable
        await asyncio.sleep(self.late_s)
        return await super().add(record)

    async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        await asyncio.sleep(1 if self.late_s is not None else 0)
        await super().release(lease, delivered, title)


async def asks(node_input: Any) -> Any:
    yield RequestInput(message="How many days?", response_schema=FORM)


def asker(kind: str) -> Any:
    if kind == "node":
        return Workflow(name="helper", edges=[("START", asks)])
    return LlmAgent(name="helper", model=ScriptedModel([[ASK], "Booked."]), tools=[request_input])


@pytest.mark.parametrize("where", ["here", "on another worker"])
@pytest.mark.parametrize("kind", ["form", "node"])
async def test_the_answer_to_a_question_that_comes_during_a_deletion_is_refused(kind: str, where: str) -> None:
    store, sessions = MemoryStore(clock=Clock()), Slowly()
    one, two = (ChatBridge(asker(kind), user_id=user_of, store=store, session_service=sessions) for _ in ("one", "two"))
    at = Page(Conversation(app_of(one), one))
    await at.say("Holidays.")
    at.output("adk_request_input", {"days": 5})
    other = at if where == "here" else Page(Conversation(app_of(two), two))
    deleting = asyncio.create_task(delete(other))
    await asyncio.sleep(1)
    answer = await at.chat.post(answer_body(at))
    assert (answer.status, await deleting) == (404, 204)
    assert await read_whole(store, CHAT) == []
    assert [entry.state for entry in await store.audit(CHAT)] == [State.APPROVED]
    for bridge in (one, two):
        await bridge.aclose()


@pytest.mark.parametrize("where", ["here", "on another worker"])
@pytest.mark.parametrize("late_s", [0, 1, 2.5, 10])
async def test_the_answer_to_a_question_that_was_not_recorded_is_not_left_either(late_s: float, where: str) -> None:
    """Its record is made with the answer: before the session is gone, before the deletion has ended, or after it."""
    store, sessions = AddsLate(clock=Clock()), Slowly()
    one, two = (
        ChatBridge(asker("node"), user_id=user_of, store=store, session_service=sessions) for _ in ("one", "two")
    )
    at = Page(Conversation(app_of(one), one))
    await at.say("Holidays.")
    assert await read_whole(store, CHAT) == []
    at.output("adk_request_input", {"days": 5})
    store.late_s = late_s
    other = at if where == "here" else Page(Conversation(app_of(two), two))
    deleting = asyncio.create_task(delete(other))
    await asyncio.sleep(1)
    answer = await at.chat.post(answer_body(at))
    assert (outputs(answer), await deleting) == ([], 204)
    assert answer.status == 404 or answer.chunks[-1]["errorText"] == NotFound.public_text
    await asyncio.sleep(30)
    assert await read_whole(store, CHAT) == []
    for bridge in (one, two):
        await bridge.aclose()


# -- while a tool runs ------------------------------------------------------------------------------------------------


async def test_a_deletion_waits_for_a_tool_that_has_begun_and_the_trail_ends_with_it() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        deleting = asyncio.create_task(delete(at))
        await asyncio.sleep(30)
        assert not deleting.done()
        slow.go_on.set()
        assert await deleting == 204
        assert outputs(await answering) == [{"paid": 5}]
        assert [entry.state for entry in await staff.trail()][-1] == State.DONE
        assert await staff.records() == []


async def test_a_deletion_waits_also_for_a_tool_that_nobody_approved() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(FunctionTool(slow.pay),)) as staff:
        at = staff.page()
        saying = asyncio.create_task(at.say("Pay."))
        await slow.started.wait()
        deleting = asyncio.create_task(delete(at))
        await asyncio.sleep(3)
        slow.go_on.set()
        assert await deleting == 204
        assert outputs(await saying) == [{"paid": 5}]


async def test_a_deletion_on_another_worker_leaves_a_running_tool_alone() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at, other = staff.page(), staff.page()
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        assert await delete(other) == 409
        slow.go_on.set()
        answer = await answering
        assert (outputs(answer), answer.text) == ([{"paid": 5}], "Paid.")
        assert [entry.state for entry in await staff.trail()][-1] == State.DONE
        await at.is_what_a_reload_shows()


async def test_a_deletion_on_another_worker_waits_for_a_run_that_ends_soon() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.gated,)) as staff:
        at, other = staff.page(), staff.page()
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        deleting = asyncio.create_task(delete(other))
        await asyncio.sleep(1)
        slow.go_on.set()
        assert (await answering).text == "Paid."
        assert await deleting == 204
        assert [entry.state for entry in await staff.trail()][-1] == State.DONE
