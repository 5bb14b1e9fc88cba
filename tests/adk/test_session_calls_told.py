"""Calls that only the application answers, found in a chat's events and records: credentials and work that goes on."""

import asyncio
from typing import Any

import pytest
from google.adk.events import Event
from google.genai import types

from adk_stream_protocol.adk.calls.credentials import GRANTED
from adk_stream_protocol.adk.calls.session_calls import SessionCall, find_session_calls, open_questions
from adk_stream_protocol.protocol.call_keys import CallKey, work_key
from adk_stream_protocol.protocol.call_record import CallRecord, State
from support.records import record
from support.session_events import answering, calling, empty_chat, pay

CREDENTIAL = "adk_request_credential"


def found(events: list[Event], *records: CallRecord) -> list[SessionCall]:
    return asyncio.run(find_session_calls(empty_chat(), events, records))


def asks_for_credential(call_id: str = "1") -> Event:
    oauth2 = {"exchangedAuthCredential": {"oauth2": {"state": "s1"}}}
    call = types.FunctionCall(id=call_id, name=CREDENTIAL, args={"authConfig": oauth2})
    return calling(call, long_running_tool_ids={call_id})


def credential(state: State, result: Any = None) -> CallRecord:
    return record(state=state, tool=CREDENTIAL, executor="browser", result=result)


@pytest.mark.parametrize(
    ("kept", "is_undelivered"),
    [
        (credential(State.APPROVED), False),
        (credential(State.DONE, {"output": {"authType": "apiKey"}}), True),
        (credential(State.DONE, GRANTED), False),
        (credential(State.DENIED), False),
        (record(state=State.DONE, tool="locate", executor="browser", result=GRANTED), True),
        (record(state=State.DENIED, tool="locate", executor="browser"), True),
    ],
)
def test_an_answer_that_was_never_recorded_cannot_be_delivered(kept: CallRecord, is_undelivered: bool) -> None:
    (call,) = found([asks_for_credential()], kept)
    assert call.is_undelivered is is_undelivered
    assert call.is_credential is (kept.tool == CREDENTIAL)


async def test_a_request_for_a_credential_is_open_until_it_is_answered() -> None:
    events = [asks_for_credential("1"), asks_for_credential("2"), answering("2")]
    (request,) = await open_questions(empty_chat(), events)
    assert (request.call, request.tool, request.arguments) == (CallKey("i1", "1"), CREDENTIAL, {"state": "s1"})
    assert request.asked_at == events[0].timestamp


async def test_what_a_node_asks_has_the_schema_of_its_answer() -> None:
    schema = {"type": "string", "pattern": "^[a-z]+$"}  # an application's own: its patterns count
    asked = types.FunctionCall(id="1", name="adk_request_input", args={"message": "?", "response_schema": schema})
    (question,) = await open_questions(empty_chat(), [calling(asked, long_running_tool_ids={"1"})])
    assert question.output_schema == schema


# -- work that goes on ------------------------------------------------------------------------------------------------


def ended(call_id: str, author: str) -> Event:
    return answering(call_id).model_copy(update={"author": author})


def work(call_id: str = "1", **fields: Any) -> CallRecord:
    place = work_key(CallKey("i1", call_id)).invocation_id
    return record(call_id, State.DONE, place, executor="browser", result={"output": 5}, **fields)


def test_work_is_found_at_its_call_beside_an_approval_of_it() -> None:
    made = calling(pay("1"), pay("2"), long_running_tool_ids={"1", "2"})
    approved = record("2", State.APPROVED, approval_id="live-2")
    first, second, asked = found([made], work("1"), work("2"), approved)
    assert asked.record is approved
    for call, id in ((first, "1"), (second, "2")):
        assert call.record == work(id)
        assert (call.wire_id, call.approval_id, call.message_id, call.asked_by) == (id, None, "m1", made)


def test_the_end_of_work_is_what_no_tool_has_returned() -> None:
    made = calling(pay("1"), long_running_tool_ids={"1"})
    for events, has_end in (
        ([made], False),
        ([made, ended("1", "a")], False),  # its first word
        ([made, ended("1", "a"), ended("1", "user")], True),
    ):
        (call,) = found(events, work())
        assert (call.has_result, call.is_undelivered) == (has_end, not has_end)
