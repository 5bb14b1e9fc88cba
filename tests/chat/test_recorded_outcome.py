"""The segment in which a client reads what became of calls."""

import json

import msgspec

from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.chat.answers import DecodedAnswers
from adk_stream_protocol.chat.closed_logs import failed_log, new_log
from adk_stream_protocol.chat.recorded_outcome import encode_recorded_outcome
from adk_stream_protocol.protocol.call_record import CallKey, State
from support.records import paid, record
from support.segments import Segment, asked_about, written
from support.session_events import answering, empty_chat


async def test_a_result_that_is_in_the_session_is_told_again() -> None:
    at = Segment([*asked_about("1", "2"), answering("1"), answering("2")], paid("1"), paid("2"))
    log = await at.outcome("1")
    assert log.is_closed
    assert written(log) == [
        ("start", "client-1"),
        ("tool-output-available", "1"),
        ("start-step", None),
        ("finish-step", None),
        ("finish", None),
    ]


async def test_a_denial_is_told_as_the_message_has_it() -> None:
    at = Segment([*asked_about("1"), answering("1")], record("1", State.DENIED, approved=False))
    assert ("tool-output-denied", "1") in written(await at.outcome("1"))


async def test_a_recorded_end_is_told_though_the_session_has_none() -> None:
    at = Segment(asked_about("1"), paid("1"))
    assert ("tool-output-available", "1") in written(await at.outcome("1"))


async def test_the_end_of_a_call_that_is_not_in_the_message_any_more_is_told_from_its_record() -> None:
    at = Segment(asked_about("1", "2", "3"), paid("1"), record("2"), paid("3"))
    del at.leased.records[CallKey("i1", "3")]
    told = written(await at.outcome("1", "2", "3", events=[]))
    assert told[:2] == [("start", "client-1"), ("tool-output-available", "1")]
    assert [chunk for chunk in told if chunk[1] in ("2", "3")] == []


async def test_a_chat_without_a_session_has_the_record() -> None:
    at = Segment(asked_about("1"), paid("1"))
    decoded = DecodedAnswers("m1", at.answers("1"), frozenset(), [])
    records = at.leased.records
    log = await encode_recorded_outcome(empty_chat(), Translator(root_author="a"), records, decoded, "client-1")
    assert ("tool-output-available", "1") in written(log)


async def test_calls_of_which_the_session_has_no_events_are_told_too() -> None:
    inner = msgspec.structs.replace(paid("1"), is_nested=True, message_id="m1")
    at = Segment([*asked_about("1"), answering("1")], inner)
    shown = written(await at.outcome("1", events=asked_about("2")))
    assert shown.count(("tool-output-available", "1")) == 1


async def test_a_failure_is_a_segment_with_its_reason() -> None:
    log = failed_log("m1", "No.")
    assert [json.loads(chunk) for chunk in log.since(0, 1000)] == [
        {"type": "start", "messageId": "m1"},
        {"type": "error", "errorText": "No."},
    ]
    assert log.is_closed
    assert log.segment != failed_log("m1", "No.").segment
    assert not new_log().is_closed
    assert new_log().segment != new_log().segment
