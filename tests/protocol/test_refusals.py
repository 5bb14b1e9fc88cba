"""Calls that nobody will answer, what a list knows of them, and outcomes found again in a stream."""

from typing import Any

import msgspec

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.protocol.replay import Calls, ended_calls, replayed


def asked(state: State, runs: Any = "server", **fields: Any) -> CallRecord:
    key = {"chat": ChatKey("app", "ann", "c1"), "call": CallKey("i1", "1")}
    return CallRecord(**key, tool="pay", arguments={}, asked_at=0.0, executor=runs, state=state, **fields)


def test_what_nobody_will_answer_is_refused() -> None:
    assert call_record.refuse(asked(State.PENDING), reason="gone", now=1).state is State.DENIED
    left = call_record.refuse(asked(State.APPROVED, "browser"), reason="gone", now=1)
    assert (left.state, left.result) == (State.DONE, {"error": "Not run: gone."})
    begun = asked(State.STARTED, lease_token="run-1")
    assert call_record.refuse(begun, reason="gone", now=1) is begun


def test_outcomes_are_found_and_pieces_are_small() -> None:
    kinds = ("tool-input-available", "tool-output-available", "tool-output-error")
    chunks = [msgspec.json.encode({"type": kind, "toolCallId": kind[-5:], "input": {}}) for kind in kinds]
    assert ended_calls(chunks) == {"lable", "error"}
    pieces = list(replayed([], chunks, Calls(chunks), len(chunks), 1))
    assert len(pieces) == len(chunks) + 1


def test_who_is_waited_for_and_whose_result_is_elsewhere() -> None:
    assert asked(State.PENDING, deadline=5.0).waits(1)
    assert not asked(State.PENDING, deadline=5.0).waits(6)
    assert asked(State.APPROVED, "browser").waits(1)
    assert not asked(State.APPROVED).waits(1)
    assert asked(State.DONE).lacks_result
    assert not asked(State.DONE, result={}).lacks_result
