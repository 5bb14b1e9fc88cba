"""A run belongs to its session: how it is stopped, bounded and outlived by its stream."""

import asyncio
import logging
from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import ToolContext

from adk_stream_protocol.adk.request import request_run
from adk_stream_protocol.adk.run import LEASE_LOST
from adk_stream_protocol.adk.session import MessageIds
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ScriptedModel, call, text
from support import releases
from support.conversations import (
    Endless,
    asked_parts,
    checked,
    conversation,
    hanging,
    other_tasks,
)
from support.pages import Clock

ABORT = {"type": "abort"}


# -- stop -------------------------------------------------------------------------------------------------------------


async def test_a_stop_closes_the_model_and_leaves_no_task() -> None:
    model, agent = hanging("Once ", "upon a time", script=("Next.",))
    async with conversation(agent=agent) as chat:
        tasks = other_tasks()
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        await chat.stop()
        assert model.is_closed
        told = await answer
        assert checked(told) == [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "abort",
        ]
        assert told.text == "Once upon a time"
        assert other_tasks() == tasks
        assert (await chat.say("And now?")).text == "Next."


@releases.abort_signal
async def test_a_stop_ends_the_tool_and_seals_its_call() -> None:
    tool = Endless()
    async with conversation([text("Working."), call("endless")], "Next.", tools=(tool.endless,)) as chat:
        tasks = other_tasks()
        answer = asyncio.create_task(chat.say("Work."))
        await tool.started.wait()
        await chat.stop()
        assert tool.was_cancelled
        told = await answer
        assert checked(told)[-4:] == ["start-step", "message-metadata", "finish-step", "abort"]
        assert len(told.of_type("tool-output-error")) == 1
        assert other_tasks() == tasks
        assert (await chat.say("And now?")).text == "Next."
        sealed = [part for part in asked_parts(chat.model.requests[1]) if isinstance(part, dict)]
        assert [list(part) for part in sealed] == [["call"], ["result"]]
        assert "error" in sealed[1]["result"]


async def test_a_stop_closes_all_that_parallel_agents_have_open() -> None:
    tool = Endless()
    speaking, _ = hanging("Meanwhile I")
    working = ScriptedModel([[call("endless"), call("endless")]])
    agents = [
        LlmAgent(name="left", model=speaking),
        LlmAgent(name="right", model=working, tools=[tool.endless]),
    ]
    async with conversation(agent=ParallelAgent(name="both", sub_agents=agents)) as chat:
        tasks = other_tasks()
        answer = asyncio.create_task(chat.say("Go."))
        await tool.started.wait()
        await speaking.hangs.wait()
        await chat.stop()
        told = await answer
        checked(told)
        assert told.chunks[-1] == ABORT
        assert len(told.of_type("tool-output-error")) == 2
        assert len(told.of_type("text-end")) == 1
        assert other_tasks() == tasks


async def test_the_next_turn_may_come_the_moment_the_stream_ends() -> None:
    model, agent = hanging("Once", script=("Next.",))
    async with conversation(agent=agent) as chat:

        async def one_after_the_other() -> list[Answer]:
            return [await chat.say("A story."), await chat.say("At once.")]

        both = asyncio.create_task(one_after_the_other())
        await model.hangs.wait()
        await chat.stop()
        stopped, following = await both
        assert stopped.chunks[-1] == ABORT
        assert following.text == "Next."


@pytest.mark.parametrize(
    ("root", "grace_s"),
    [(None, 3600), (SequentialAgent, 0.05), (ParallelAgent, 0.05), (LoopAgent, 0.05)],
    ids=["a model agent listens", "a sequence does not", "parallel agents do not", "a loop does not"],
)
async def test_a_model_is_closed_by_a_stop_whether_its_agent_listens_or_not(
    root: Any, grace_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_run, "STOP_GRACE_S", grace_s)

    model, agent = hanging("Once ", "upon a time")
    async with conversation(agent=root(name="root", sub_agents=[agent]) if root else agent) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        async with asyncio.timeout(5):
            await chat.stop()
        assert model.is_closed
        assert (await answer).chunks[-1] == ABORT


class Stubborn:
    """A tool that takes no notice of being cancelled, until it is released."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    async def stubborn(self) -> dict[str, str]:
        """Does not listen."""
        self.started.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue
        return {"ok": "yes"}


async def test_a_tool_that_does_not_listen_does_not_keep_the_stream_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_run, "STOP_GRACE_S", 0.01)

    tool = Stubborn()
    async with conversation([call("stubborn")], "Next.", tools=(tool.stubborn,)) as chat:
        answer = asyncio.create_task(chat.say("Work."))
        await tool.started.wait()
        try:
            async with asyncio.timeout(5):
                await chat.stop()
                told = await answer
        finally:
            tool.release.set()
        assert checked(told)[-1] == "abort"
        assert (await chat.say("And now?")).text == "Next."


async def test_a_second_stop_while_the_first_stores_the_words_does_not_lose_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_run, "STOP_GRACE_S", 0)

    storing, stored = asyncio.Event(), asyncio.Event()

    class SlowService(InMemorySessionService):
        async def append_event(self, session: Session, event: Event) -> Event:
            if event.content and event.content.parts and event.content.parts[0].text == "Once":
                storing.set()
                await stored.wait()
            return await super().append_event(session, event)

    model, agent = hanging("Once", script=("Next.",))
    async with conversation(agent=agent, session_service=SlowService()) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        first = asyncio.create_task(chat.stop())
        await storing.wait()
        second = asyncio.create_task(chat.stop())
        for _ in range(20):  # until the second has lost its patience
            await asyncio.sleep(0)
        stored.set()
        assert [await first, await second] == [204, 204]
        async with asyncio.timeout(5):
            assert (await answer).chunks[-1] == ABORT
        assert (await chat.say("And now?")).text == "Next."


# -- sessions that are not there or do not listen ---------------------------------------------------------------------


async def test_a_runner_that_creates_no_sessions_gets_one_at_the_first_turn() -> None:
    model = ScriptedModel(["Hello.", "Again."])
    agent = LlmAgent(name="helper", model=model)
    runner = Runner(agent=agent, app_name="mine", session_service=InMemorySessionService())
    async with conversation(agent=runner) as chat:
        assert checked(await chat.say("hi"))[0] == "start"
        assert (await chat.say("hi again")).text == "Again."
        assert asked_parts(model.requests[1]) == ["hi", "Hello.", "hi again"]


class BrokenService(InMemorySessionService):
    """Fails as soon as it is told to."""

    fails = False

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.fails:
            raise ConnectionError("SECRET host")
        return await super().append_event(session, event)


async def test_a_store_that_fails_at_the_end_of_a_stopped_run_does_not_keep_the_stream_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = BrokenService()
    model, agent = hanging("Once", script=("Next.",))
    async with conversation(agent=agent, session_service=service) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        service.fails = True
        await chat.stop()
        told = await answer
        checked(told)
        assert told.chunks[-1]["type"] in ("abort", "error")
        assert "SECRET" not in told.raw
        service.fails = False
        assert (await chat.say("And now?")).text == "Next."
    assert "SECRET" not in "".join(r.getMessage() for r in caplog.records if r.name.startswith("adk_stream"))


async def test_a_missing_key_is_named_in_the_last_error_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(name, raising=False)
    async with conversation(agent=LlmAgent(name="helper", model="gemini-flash-latest")) as chat:
        assert (await chat.say("Hello.")).chunks[-1]["type"] == "error"
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert told[-1].endswith(". Gemini needs a key: set GOOGLE_API_KEY before the server starts")


async def test_a_store_that_fails_in_the_middle_is_one_error_and_the_next_turn_works() -> None:
    service = BrokenService()

    def break_store() -> dict[str, str]:
        """Breaks the store."""
        service.fails = True
        return {}

    async with conversation([call("break_store")], "Next.", tools=(break_store,), session_service=service) as chat:
        told = await chat.say("Go.")
        checked(told)
        assert told.chunks[-1]["type"] == "error"
        service.fails = False
        assert (await chat.say("And now?")).text == "Next."


async def test_a_run_that_lost_its_chat_without_notice_writes_nothing_when_it_fails() -> None:
    """As a process does that stood still for longer than its lease."""
    clock = Clock()
    store = MemoryStore(clock=clock)

    async def stand_still(tool_context: ToolContext) -> None:
        """Meanwhile another worker takes the chat."""
        clock.now += 3600
        session = tool_context.session
        assert (await store.acquire(ChatKey(session.app_name, session.user_id, session.id), 30)).lease is not None
        raise ConnectionError("the session has changed")

    async with conversation([call("stand_still")], tools=(stand_still,), record=store) as chat:
        told = await chat.say("Go.")
        assert told.chunks[-1] == {"type": "error", "errorText": LEASE_LOST}
        session = await chat.session()
        assert session is not None
        assert [MessageIds.of(event).ended_by for event in session.events] == [None] * len(session.events)
