"""What the session keeps but the conversation does not show: answers taken back, summaries, credentials."""

import warnings
from random import Random
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.events import Event, EventActions
from google.adk.events._rewind_events import _apply_rewinds
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk.test_translator_waiting_calls import consent
from adk_stream_protocol.adk.session import kept_events
from adk_stream_protocol.loop_share import LoopShare
from adk_stream_protocol.testing import ScriptedModel, call
from support.conversations import Conversation, Store, conversation, every_store, folded, reloaded


async def told(chat: Conversation) -> list[tuple[str, str]]:
    """The ids and words of all messages."""
    return [
        (message["id"], "".join(part.get("text", "") for part in message["parts"])) for message in await chat.messages()
    ]


def id_of(answer: Any) -> str:
    return answer.chunks[0]["messageId"]


@every_store
async def test_an_answer_given_anew_stands_in_the_place_of_the_old_one(store: Store) -> None:
    async with conversation("Hello.", "One.", "Two.", "Three.", store=store) as chat:
        first = await chat.say("hi")
        await chat.say("count")
        for words in ("Two.", "Three."):
            anew = await chat.regenerate("u2")
            assert await told(chat) == [
                ("u1", "hi"),
                (id_of(first), "Hello."),
                ("u2", "count"),
                (id_of(anew), words),
            ]


@every_store
async def test_an_earlier_answer_given_anew_ends_the_conversation_there(store: Store) -> None:
    async with conversation("Hello.", "One.", "Good day.", store=store) as chat:
        first = await chat.say("hi")
        await chat.say("count")
        anew = await chat.regenerate("u1", id_of(first))
        assert await told(chat) == [("u1", "hi"), (id_of(anew), "Good day.")]


@every_store
@pytest.mark.parametrize(("edited", "left"), [("u2", 2), ("u1", 0)])
async def test_an_edited_message_takes_the_place_of_the_old_one(store: Store, edited: str, left: int) -> None:
    async with conversation("Hello.", "One.", "Other.", "Last.", store=store) as chat:
        await chat.say("hi")
        await chat.say("count")
        before = await told(chat)
        anew = await chat.edit(edited, "something else")
        assert await told(chat) == [*before[:left], (edited, "something else"), (id_of(anew), "Other.")]
        after = await chat.say("and on")
        assert (await told(chat))[left + 2 :] == [("u3", "and on"), (id_of(after), "Last.")]


@every_store
async def test_an_approval_of_an_answer_taken_back_is_not_asked_for(store: Store) -> None:
    def pay() -> dict[str, str]:
        """Pays."""
        return {}

    tools = (FunctionTool(pay, require_confirmation=True),)
    async with conversation([call("pay")], "I would rather not.", store=store, tools=tools) as chat:
        await chat.say("Pay.")
        assert [listed["waiting"] for listed in await chat.chats()] == [True]
        anew = await chat.regenerate("u1")
        assert await told(chat) == [("u1", "Pay."), (id_of(anew), "I would rather not.")]
        assert [listed["waiting"] for listed in await chat.chats()] == [False]


async def test_what_rewinds_leave_is_what_adk_tells_the_model() -> None:
    random = Random(7)
    for _ in range(500):
        events: list[Event] = []
        for number in range(random.randint(0, 30)):
            invocation = f"i{random.randint(max(0, number // 3 - 1), number // 3)}"  # some come late
            target = f"i{random.randint(0, number // 3 + 1)}" if random.random() < 0.2 else None
            actions = EventActions(rewind_before_invocation_id=target)
            events.append(Event(author="helper", invocation_id=invocation, actions=actions))
        assert await kept_events(events, LoopShare()) == _apply_rewinds(events)


@every_store
async def test_a_summary_that_adk_keeps_for_the_model_is_no_message(store: Store) -> None:
    summarizer = LlmEventSummarizer(llm=ScriptedModel(["They greeted each other."] * 2))
    with warnings.catch_warnings():  # ADK calls it experimental
        warnings.simplefilter("ignore")
        config = EventsCompactionConfig(summarizer=summarizer, compaction_interval=1, overlap_size=0)
    agent = LlmAgent(name="helper", model=ScriptedModel(["Hello.", "Bye."]))
    app = App(name="helper", root_agent=agent, events_compaction_config=config)
    async with conversation(agent=app, store=store) as chat:
        answers = [folded(await chat.say("hi")), folded(await chat.say("bye"))]
        session = await chat.session()
        assert session
        assert [event for event in session.events if event.actions.compaction]
        messages = await chat.messages()
        assert messages[1::2] == answers
        assert [message["id"] for message in messages[::2]] == ["u1", "u2"]


@every_store
async def test_credentials_that_the_user_sent_are_never_shown(store: Store) -> None:
    def read_calendar(tool_context: ToolContext) -> dict[str, str]:
        """Needs consent."""
        tool_context.request_credential(consent())
        return {"status": "waits for consent"}

    async with conversation([call("read_calendar")], store=store, tools=(read_calendar,)) as chat:
        answer = await chat.say("What is on?")
        parts = await reloaded(chat, answer)
        (asked,) = [part for part in parts if part["type"] == "data-adk-auth-request"]
        session = await chat.session()
        assert session
        for metadata in (session.events[-1].custom_metadata, None):
            credential = types.FunctionResponse(
                id=asked["id"], name="adk_request_credential", response={"accessToken": "SECRET"}
            )
            content = types.Content(role="user", parts=[types.Part(function_response=credential)])
            invocation_id = session.events[-1].invocation_id
            await chat.append(
                Event(author="user", invocation_id=invocation_id, content=content, custom_metadata=metadata)
            )
        assert "SECRET" not in str(await chat.messages())
        assert "our-secret" not in str(await chat.messages())
        assert await reloaded(chat, answer) == parts
