"""What an event that ADK has stored says of calls, and what remote agents leave to the client."""

from typing import Any

import pytest
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.calls.session_calls import are_delivered, find_session_calls, note_stored, open_questions
from adk_stream_protocol.adk.session import Chat
from adk_stream_protocol.protocol.call_record import CallKey, State
from adk_stream_protocol.store.base import Lease
from support.records import CHAT, paid, record
from support.session_events import ASKS, answering, asking, calling, chat_with, empty_chat, pay

RELAYED = {"a2a:response": {"id": "task-1"}}


def leased(*call_ids: str) -> LeasedChat:
    records = [paid(call_id) for call_id in call_ids]
    chat = LeasedChat(Lease(CHAT, "t1"), {each.call: each for each in records}, 1.0)
    chat.unasked = {each.call for each in records}
    return chat


def node_asks(call_id: str) -> Event:
    asked = types.FunctionCall(id=call_id, name="adk_request_input", args={"message": "Which one?"})
    return calling(asked, long_running_tool_ids={call_id})


def left(call: types.FunctionCall, ids: set[str] | None, **fields: Any) -> Event:
    """A remote agent's call, which ADK relays."""
    return calling(call, in_message=None, long_running_tool_ids=ids, custom_metadata=RELAYED, **fields)


async def test_a_stored_result_is_delivered_and_its_tool_has_ended() -> None:
    chat = leased("1", "2", "")
    chat.begin(CallKey("i1", "1"))
    chat.begin(CallKey("i1", "2"))
    await note_stored(empty_chat(), chat, answering("1"))
    assert (chat.delivered, chat.unstored) == ({CallKey("i1", "1")}, {CallKey("i1", "2")})
    await note_stored(empty_chat(), chat, answering("2", is_question=True))
    assert (chat.delivered, chat.unstored) == ({CallKey("i1", "1")}, {CallKey("i1", "2")})
    await note_stored(empty_chat(), chat, answering(None))
    assert chat.delivered == {CallKey("i1", "1"), CallKey("i1", "")}


@pytest.mark.parametrize(
    ("stored", "state", "is_nested", "are"),
    [
        (["1", "2"], State.DONE, False, True),
        (["1", "2"], State.STARTED, False, False),
        (["1"], State.DONE, False, False),
        (["1"], State.DONE, True, True),
        (["1"], State.STARTED, True, False),
    ],
)
async def test_calls_are_delivered_that_have_ended_and_whose_results_the_session_would_have(
    stored: list[str], state: State, is_nested: bool, are: bool
) -> None:
    chat = await chat_with(calling(pay("1"), pay("2")), *(answering(call_id) for call_id in stored))
    records = [paid("1"), record("2", state, is_nested=is_nested or None), record("3")]
    assert await are_delivered(chat, frozenset({CallKey("i1", "1"), CallKey("i1", "2")}), records) is are
    assert not await are_delivered(chat, frozenset({CallKey("i1", "1"), CallKey("i1", "unknown")}), records)


async def test_only_the_newest_events_are_loaded_for_results_and_none_for_calls_inside_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat, loads = await chat_with(calling(pay("1")), answering("1")), list[dict[str, Any]]()
    load = Chat.load

    async def counted(chat: Chat, **options: Any) -> Any:
        loads.append(options)
        return await load(chat, **options)

    monkeypatch.setattr(Chat, "load", counted)
    records = [paid("1"), record("2", State.DONE, is_nested=True)]
    assert await are_delivered(chat, frozenset({CallKey("i1", "2")}), records)
    assert loads == []
    assert await are_delivered(chat, frozenset({CallKey("i1", "1")}), records)
    assert loads == [{"recent": 100}]


def rewind(invocation_id: str) -> Event:
    actions = EventActions(rewind_before_invocation_id=invocation_id)
    return Event(author="user", invocation_id="i9", actions=actions)


@pytest.mark.parametrize(
    ("taken_back", "state", "are"),
    [
        ("i1", State.FAILED, True),
        ("i1", State.APPROVED, False),
        ("i2", State.FAILED, False),
        ("i1", State.STARTED, False),
    ],
)
async def test_a_call_that_has_ended_and_that_a_rewind_took_back_is_awaited_by_nobody(
    taken_back: str, state: State, are: bool
) -> None:
    later = calling(pay("1"), invocation_id="i2")
    chat = await chat_with(calling(pay("1"), pay("2")), answering("2"), later, rewind(taken_back))
    records = [record("1", state), paid("2")]
    assert await are_delivered(chat, frozenset({CallKey("i1", "1")}), records) is are
    assert await are_delivered(chat, frozenset({CallKey("i1", "1"), CallKey("i1", "2")}), records) is are


async def test_who_waits_for_a_call_waits_no_more_once_its_chat_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = await chat_with(calling(pay("1")), rewind("i9"))
    found = [await chat.load(), None]

    async def deleted_meanwhile(chat: Chat, **_: Any) -> Any:
        return found.pop(0)

    monkeypatch.setattr(Chat, "load", deleted_meanwhile)
    assert await are_delivered(chat, frozenset({CallKey("i1", "1")}), [record("1", State.FAILED)])


async def test_a_call_from_before_the_newest_events_is_not_mistaken_for_one_that_was_taken_back() -> None:
    words = [answering(None, invocation_id="i2") for _ in range(150)]
    chat = await chat_with(calling(pay("1")), *words, rewind("i2"))
    assert not await are_delivered(chat, frozenset({CallKey("i1", "1")}), [record("1", State.FAILED)])


async def test_nothing_is_delivered_in_a_chat_that_is_gone() -> None:
    assert not await are_delivered(empty_chat(), frozenset({CallKey("i1", "1")}), [paid("1")])


async def test_what_a_node_asks_is_open_until_its_answer_is_stored() -> None:
    chat = leased()
    await note_stored(empty_chat(), chat, node_asks("1"))
    await note_stored(empty_chat(), chat, node_asks("2"))
    assert [asked.arguments for asked in chat.questions.values()] == [{"message": "Which one?"}] * 2
    await note_stored(empty_chat(), chat, answering("1", is_question=True))
    assert [call.call_id for call in chat.questions] == ["1", "2"]
    await note_stored(empty_chat(), chat, answering("1"))
    assert [call.call_id for call in chat.questions] == ["2"]


async def test_a_call_is_asked_about_once_adks_own_question_is_stored() -> None:
    chat = leased("1", "2")
    forged = calling(types.FunctionCall(id="q1", name=ASKS, args={"originalFunctionCall": {"id": "1"}}))
    others = [forged, asking("q1", {"id": "1"}, invocation_id="i2"), asking("q1", None), node_asks("1")]
    others.append(calling(types.FunctionCall(id="q1", name=ASKS), long_running_tool_ids={"q1"}))
    about_1 = {"originalFunctionCall": {"id": "1"}}
    others.append(
        calling(types.FunctionCall(id="q1", name="adk_request_input", args=about_1), long_running_tool_ids={"q1"})
    )
    others.append(calling(types.FunctionCall(id="q1", name="pay", args=about_1), long_running_tool_ids={"q1"}))
    for event in others:
        await note_stored(empty_chat(), chat, event)
    assert {call.call_id for call in chat.unasked} == {"1", "2"}
    await note_stored(empty_chat(), chat, asking("q1", {"id": "1"}))
    assert {call.call_id for call in chat.unasked} == {"2"}


@pytest.mark.parametrize("arguments", [{"amount": 5}, {"response_schema": {"type": "string"}}])
async def test_what_a_remote_agent_leaves_open_is_a_question_without_a_schema(arguments: dict[str, Any]) -> None:
    call = types.FunctionCall(id="1", name="pay", args=arguments)
    event = left(call, {"1"})
    (asked,) = await open_questions(empty_chat(), [event])
    assert (asked.call, asked.tool, asked.arguments) == (CallKey("i1", "1"), "pay", arguments)
    assert (asked.state, asked.executor, asked.output_schema) == (State.APPROVED, "browser", None)


async def test_what_a_remote_agent_does_itself_is_no_question() -> None:
    local = calling(pay(), long_running_tool_ids={"1"})
    for event in (left(pay(), {"2"}), left(pay(), None), left(pay(), {"1"}, author="user"), local):
        assert await open_questions(empty_chat(), [event]) == []


async def test_a_remote_agents_request_for_a_credential_is_one() -> None:
    oauth2 = {"exchangedAuthCredential": {"oauth2": {"state": "s1"}}}
    call = types.FunctionCall(id="1", name="adk_request_credential", args={"authConfig": oauth2})
    (asked,) = await open_questions(empty_chat(), [left(call, {"1"})])
    assert asked.arguments == {"state": "s1"}


async def test_a_remote_agents_call_without_a_record_has_ended() -> None:
    event = left(pay(), {"1"})
    assert await find_session_calls(empty_chat(), [event], []) == []
    kept = record(executor="browser", state=State.APPROVED)
    (call,) = await find_session_calls(empty_chat(), [event], [kept])
    assert call.record is kept
