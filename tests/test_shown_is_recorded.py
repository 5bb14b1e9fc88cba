"""A payment that was made is shown as made, whatever goes wrong after it: now, after a reload, and when asked again."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.artifacts import InMemoryArtifactService
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol.adk.request import request_run
from adk_stream_protocol.adk.runner import resumable
from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ScriptedModel, call
from support.pages import Clock, Page, page, results_told

CHAT = ChatKey("helper", "ann", "c1")
PAID = {"paid": 5}
MINUTE, DAY = 60, 24 * 3600


class Sessions(InMemorySessionService):
    """Loses the result of the payment, as a database does that fails over."""

    fails = False

    async def append_event(self, session: Any, event: Any) -> Any:
        if self.fails and any(response.name == "pay" for response in event.get_function_responses()):
            raise ConnectionError("a failover")
        return await super().append_event(session, event)


class AuditPlugin(BasePlugin):
    """A user's own, that posts to a log service."""

    def __init__(self) -> None:
        super().__init__(name="audit")
        self.fails = self.is_slow = False
        self.is_at_work = asyncio.Event()

    async def after_tool_callback(self, **_: Any) -> None:
        if self.fails:
            raise RuntimeError("the log service is down")
        if self.is_slow:
            self.is_at_work.set()
            await asyncio.sleep(60)


class Artifacts(InMemoryArtifactService):
    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "fails", False)

    async def get_artifact_version(self, **about: Any) -> Any:
        if self.__dict__.get("fails"):
            raise ConnectionError("the bucket is gone")
        return await super().get_artifact_version(**about)


class Office:
    """Everything behind a page on which one payment waits, and what can go wrong with it."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.clock = Clock()
        self.store = MemoryStore(clock=self.clock)
        self.sessions = Sessions()
        self.plugin = AuditPlugin()
        self.artifacts = Artifacts()
        self.model = ScriptedModel([[call("pay", amount=5)], "Paid.", "So it is.", "So it is."])

    async def pay(self, amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        await tool_context.save_artifact("receipt.txt", types.Part(text="paid"))
        self.paid.append(amount)
        return {"paid": amount}

    @asynccontextmanager
    async def page(self, **options: Any) -> AsyncGenerator[Page]:
        agent = LlmAgent(name="helper", model=self.model, tools=[FunctionTool(self.pay, require_confirmation=True)])
        app = App(
            name="helper",
            root_agent=agent,
            plugins=[self.plugin],
            resumability_config=resumable(),
        )
        given = {"record": self.store, "session_service": self.sessions, "artifact_service": self.artifacts}
        async with page(agent=app, **{**given, **options}) as at:
            yield at

    async def state(self) -> State:
        (record,) = (await self.store.read(CHAT)).records
        return record.state

    def works_again(self) -> None:
        self.sessions.fails = self.plugin.fails = self.plugin.is_slow = False


FAILURES = ("append", "plugin", "artifacts", "stop")
every_failure = pytest.mark.parametrize("failure", FAILURES)


async def approve_while(failure: str, office: Office, at: Page) -> Answer:
    """The payment is approved and made, and this goes wrong after it."""
    await at.say("Pay.")
    office.sessions.fails = failure == "append"
    office.plugin.fails = failure == "plugin"
    office.plugin.is_slow = failure == "stop"
    object.__setattr__(office.artifacts, "fails", failure == "artifacts")
    at.decide("pay")
    if failure != "stop":
        answer = await at.answer()
    else:
        answering = asyncio.create_task(at.answer())
        await office.plugin.is_at_work.wait()
        await at.chat.stop()
        answer = await answering
    assert office.paid == [5]
    assert await office.state() is State.DONE
    return answer


def outputs(answer: Answer) -> list[Any]:
    return [chunk["output"] for chunk in answer.of_type("tool-output-available")]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_run, "STOP_GRACE_S", 0.05)


# -- shown ------------------------------------------------------------------------------------------------------------


@every_failure
async def test_a_payment_that_was_made_is_told_as_made(failure: str) -> None:
    office = Office()
    async with office.page() as at:
        answer = await approve_while(failure, office, at)
        assert outputs(answer) == [PAID]
        assert (at.part("pay")["state"], at.part("pay")["output"]) == ("output-available", PAID)


@every_failure
async def test_a_payment_that_was_made_is_shown_as_made_after_a_reload(failure: str) -> None:
    office = Office()
    async with office.page() as at:
        await approve_while(failure, office, at)
        tab = await at.second_tab()
        assert (tab.part("pay")["state"], tab.part("pay")["output"]) == ("output-available", PAID)


@every_failure
async def test_whoever_asks_again_about_a_payment_that_was_made_is_told_so(failure: str) -> None:
    office = Office()
    async with office.page() as at:
        asked = await approve_while(failure, office, at)
        office.works_again()
        said = {"id": at.part("pay")["approval"]["id"], "approved": True}
        part = {**at.part("pay"), "state": "approval-responded", "approval": said}
        part.pop("output")
        message = {"id": asked.message_id, "role": "assistant", "parts": [part]}
        again = await at.chat.post({"id": "c1", "messages": [message], "messageId": asked.message_id})
        assert outputs(again) == [PAID]
        assert office.paid == [5]
        tab = await at.second_tab()
        assert (tab.part("pay")["state"], tab.part("pay")["output"]) == ("output-available", PAID)


# -- told to the model ------------------------------------------------------------------------------------------------


@every_failure
@pytest.mark.parametrize("later_s", [1, 61 * MINUTE, 90 * DAY])
async def test_the_model_hears_of_a_payment_with_the_users_next_words(failure: str, later_s: float) -> None:
    office = Office()
    async with office.page() as at:
        await approve_while(failure, office, at)
        office.works_again()
        office.clock.now += later_s
        await at.chat.bridge.recover()
        await asyncio.sleep(0)
        while at.chat.is_running:
            await asyncio.sleep(0)
        await at.say("Did it work?")
        assert PAID in results_told(at.chat.model)
        assert office.paid == [5]


async def test_the_model_is_told_of_a_lost_result_once() -> None:
    office = Office()
    async with office.page() as at:
        await approve_while("append", office, at)
        office.works_again()
        await at.say("Did it work?")
        await at.say("Really?")
        assert results_told(at.chat.model).count(PAID) == 1


# -- artifacts --------------------------------------------------------------------------------------------------------


async def test_the_conversation_is_read_while_the_artifact_service_fails() -> None:
    office = Office()
    async with office.page() as at:
        await approve_while("artifacts", office, at)
        assert (await at.chat.request("GET", "/messages")).status_code == 200


async def test_the_chats_are_listed_while_the_artifact_service_fails() -> None:
    office = Office()
    async with office.page() as at:
        await approve_while("artifacts", office, at)
        assert (await at.chat.request_root("GET")).status_code == 200


async def test_an_answer_goes_on_while_the_artifact_service_fails() -> None:
    office = Office()
    async with office.page() as at:
        answer = await approve_while("artifacts", office, at)
        assert answer.text == "Paid."
        assert not answer.of_type("error")
