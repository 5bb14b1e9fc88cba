"""Events of calls that ADK's session has none of: made of records, and placed as they were told."""

from typing import Any

import msgspec
from google.adk.events import Event
from google.genai import types

from adk_stream_protocol.adk.calls.inner_calls import name_inner_calls, with_inner_calls
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.session import MessageIds
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from adk_stream_protocol.store.base import Lease
from support.records import CHAT

IDS = MessageIds(user_message_id="u1", message_id="m1")


def inner(call_id: str, asked_at: float = 1, **changes: Any) -> CallRecord:
    record = CallRecord(
        chat=CHAT,
        call=CallKey("inner", call_id),
        tool="pay",
        arguments={"amount": 5},
        executor="server",
        state=State.PENDING,
        asked_at=asked_at,
        approval_id=f"a{call_id}",
        message_id="m1",
        is_nested=True,
        made_in={"agent": "cashier", "outer": "o1", "outlives": False},
    )
    return msgspec.structs.replace(record, **changes)


def done(call_id: str, **changes: Any) -> CallRecord:
    about: dict[str, Any] = {"result": {"response": {"paid": 5}, "state": {}}, "decided_at": 2.0}
    return inner(call_id, state=State.DONE, **{**about, **changes})


def said(text: str = "Hello.", ids: MessageIds = IDS, **fields: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return Event(author="root", invocation_id="i1", content=content, custom_metadata=ids.metadata(), **fields)


def read(events: list[Event]) -> list[str]:
    """One short line for each event."""
    lines: list[str] = []
    for event in events:
        calls = [f"{call.id}?" for call in event.get_function_calls()]
        results = [f"{result.id}={result.response}" for result in event.get_function_responses()]
        lines += calls or results or ["text"]
    return lines


def leased() -> LeasedChat:
    return LeasedChat(Lease(CHAT, "token"), {}, 0.0)


def test_without_such_calls_events_stay_what_they_are() -> None:
    events = [said()]
    assert with_inner_calls(events, [inner("1", is_nested=None)]) is events


def test_what_was_told_before_an_event_is_placed_before_it() -> None:
    chat, event = leased(), said()
    chat.unplaced += [
        ("call", CallKey("inner", "1")),
        ("answer", CallKey("inner", "1")),
        ("result", CallKey("inner", "1")),
    ]
    name_inner_calls(event, chat)
    assert chat.unplaced == []
    events = with_inner_calls([said(), event, said()], [done("1")])
    assert read(events) == ["text", "1?", "a1={}", "1={'paid': 5}", "text", "text"]
    made = events[1]
    assert (made.author, made.branch, made.invocation_id) == ("cashier", "cashier@o1", "inner")
    assert MessageIds.of(made).message_id == "m1"


def test_events_that_are_not_stored_name_nothing() -> None:
    chat = leased()
    chat.unplaced.append(("call", CallKey("inner", "1")))
    voice = types.Part(inline_data=types.Blob(data=b"", mime_type="audio/pcm"))
    for event in (
        said(partial=True),
        Event(author="root"),
        Event(author="root", content=types.Content(parts=[voice])),
    ):
        name_inner_calls(event, chat)
        assert not any("inner" in key for key in event.custom_metadata or {})
    name_inner_calls(Event(author="root", output={"a": 1}), chat)
    assert chat.unplaced == []


def test_what_no_event_names_follows_its_message_in_the_order_of_time() -> None:
    other = MessageIds(user_message_id="u2", message_id="m2")
    records = [inner("2", asked_at=3), done("1"), inner("3", message_id="gone")]
    events = with_inner_calls([said(), said(ids=other)], records)
    assert read(events) == ["text", "1?", "a1={}", "2?", "1={'paid': 5}", "text"]


def test_what_is_known_to_have_been_told_counts_more_than_time() -> None:
    told: Any = [("call", CallKey("inner", "2")), ("call", CallKey("inner", "1"))]
    assert read(with_inner_calls([said()], [inner("1"), inner("2", asked_at=3)], told)) == ["text", "2?", "1?"]


def test_a_result_that_nobody_has_loaded_is_there_without_its_words() -> None:
    assert read(with_inner_calls([said()], [done("1", result=None)]))[-1] == "1={}"


def test_an_output_of_the_browser_is_its_users() -> None:
    record = inner("1", executor="browser", state=State.DONE, approval_id=None, result={"output": {"latitude": 1}})
    *_, result = with_inner_calls([said()], [record])
    assert (result.author, read([result])) == ("user", ["1={'latitude': 1}"])
