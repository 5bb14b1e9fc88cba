"""A session has ADK's mark at the end of an agent only where somebody could resume the run."""

import warnings
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event, EventActions
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types

from adk.agent_runs import pay, weather
from adk_stream_protocol import ChatBridge, client_tool
from adk_stream_protocol.adk.calls.ends_of_agents import leave_out_mark, resumable
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.protocol.call_record import CallRecord
from adk_stream_protocol.store.base import Lease, Snapshot
from adk_stream_protocol.testing import ChatClient, ScriptedModel, call
from support.records import CHAT, record


class Chat:
    """A chat with an agent, and what its session has of each event: who speaks, and marks."""

    def __init__(self, agent: Any) -> None:
        self._service = InMemorySessionService()
        options: dict[str, Any] = {"app_name": "root"} if not isinstance(agent, App) else {}
        bridge = ChatBridge(agent, user_id=lambda _: "ann", session_service=self._service, **options)
        app = FastAPI()
        app.include_router(bridge.router("/api/chat"))
        self.client = ChatClient(app, chat_id="c")

    async def stored(self) -> list[Event]:
        session = await self._service.get_session(app_name="root", user_id="ann", session_id="c")
        assert session is not None
        return session.events

    async def marks(self) -> int:
        return sum(bool(event.actions.end_of_agent) for event in await self.stored())


def agent(*script: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedModel(script), **options)


async def test_words_alone_are_two_events() -> None:
    chat = Chat(agent("Hello you.", "And again."))
    assert (await chat.client.send("hi")).text == "Hello you."
    assert (await chat.client.send("hi")).text == "And again."
    assert [event.author for event in await chat.stored()] == ["user", "root", "user", "root"]


async def test_a_call_that_waits_for_nobody_leaves_no_mark() -> None:
    chat = Chat(agent([call("weather", city="Rome")], "Clear.", tools=[weather]))
    assert (await chat.client.send("hi")).text == "Clear."
    assert await chat.marks() == 0
    assert len(await chat.stored()) == 4


async def test_a_run_that_was_resumed_is_marked() -> None:
    tools = [FunctionTool(pay, require_confirmation=True)]
    chat = Chat(agent([call("pay", amount=5)], "Paid.", "Once.", tools=tools))
    asked = await chat.client.send("pay")
    assert await chat.marks() == 0
    assert (await chat.client.approve(asked)).text == "Paid."
    assert await chat.marks() == 1
    assert (await chat.client.send("how often?")).text == "Once."
    assert await chat.marks() == 1


@client_tool
def where() -> dict[str, str]:
    """Where the user is."""
    raise NotImplementedError


async def test_a_run_that_a_browser_has_answered_is_marked() -> None:
    chat = Chat(agent([call("where")], "In Rome.", tools=[where]))
    asked = await chat.client.send("where am I?")
    assert (await chat.client.output(asked, {"city": "Rome"})).text == "In Rome."
    assert await chat.marks() == 1


async def test_an_agent_with_others_below_it_is_marked() -> None:
    below = LlmAgent(name="below", description="Knows.", model=ScriptedModel([]))
    chat = Chat(agent("Hello.", sub_agents=[below]))
    await chat.client.send("hi")
    assert await chat.marks() == 1


async def test_an_application_of_the_users_own_is_marked() -> None:
    with warnings.catch_warnings():  # ADK calls it experimental
        warnings.simplefilter("ignore")
        config = ResumabilityConfig(is_resumable=True)
    chat = Chat(App(name="root", root_agent=agent("Hello."), resumability_config=config))
    await chat.client.send("hi")
    assert await chat.marks() == 1


def left_out(mark: Event, *earlier: Event, root: Any = None, leased: LeasedChat | None = None) -> bool:
    """Whether ADK's session does not get this event, after these."""
    context: Any = SimpleNamespace(
        resumability_config=resumable(), agent=root or agent(), session=SimpleNamespace(events=list(earlier))
    )
    leave_out_mark(mark, context, leased or LeasedChat.taken(Lease(CHAT, "run"), Snapshot([], 0)))
    return bool(mark.partial)


def is_left_out(
    *earlier: Event, records: tuple[CallRecord, ...] = (), questions: tuple[CallRecord, ...] = (), **actions: Any
) -> bool:
    """Whether the mark of the run `i1` is left out, after these events and with these records."""
    leased = LeasedChat.taken(Lease(CHAT, "run"), Snapshot(list(records), 0))
    leased.questions = {found.call: found for found in questions}
    mark = Event(author="root", invocation_id="i1", actions=EventActions(end_of_agent=True, **actions))
    return left_out(mark, *earlier, leased=leased)


def waiting(invocation_id: str) -> Event:
    return Event(author="root", invocation_id=invocation_id, long_running_tool_ids={"1"})


def test_a_call_that_is_marked_as_long_running_may_be_answered() -> None:
    said = Event(author="root", invocation_id="i1")
    assert is_left_out(said)
    assert not is_left_out(waiting("i1"), said)
    assert is_left_out(waiting("i0"), said)
    assert not is_left_out(Event(author="root", invocation_id="i0"), waiting("i1"), said)


def test_a_recorded_call_may_be_answered() -> None:
    assert not is_left_out(records=(record("1", invocation_id="i1"),))
    assert is_left_out(records=(record("1", invocation_id="i0"),))
    assert not is_left_out(questions=(record("1", invocation_id="i1"),))


def test_a_mark_that_says_more_is_stored() -> None:
    assert not is_left_out(state_delta={"seen": True})
    assert not is_left_out(agent_state={"step": 1})


def test_other_events_are_stored() -> None:
    said = types.Content(role="model", parts=[types.Part(text="Bye.")])
    mark = EventActions(end_of_agent=True)
    assert left_out(Event(author="root", invocation_id="i1", actions=mark.model_copy()))
    assert not left_out(Event(author="root", invocation_id="i1"))
    assert not left_out(Event(author="root", invocation_id="i1", actions=mark.model_copy(), content=said))
    assert not left_out(Event(author="below", invocation_id="i1", actions=mark.model_copy()))


def test_an_agent_of_another_kind_is_marked() -> None:
    mark = Event(author="root", invocation_id="i1", actions=EventActions(end_of_agent=True))
    assert not left_out(mark, root=BaseAgent(name="root"))


def test_the_bridges_own_application_can_be_resumed() -> None:
    assert resumable.__wrapped__().is_resumable  # not the one that was made before
