"""What ADK, the model and the person read of a call that has ended."""

from datetime import UTC, datetime
from typing import Any

import pytest
from google.genai.types import Part

from adk_stream_protocol.adk.calls.outcomes import (
    OUTCOME_UNKNOWN,
    as_response,
    can_be_stored,
    ended_response,
    refusal_text,
)
from adk_stream_protocol.protocol.call_record import State
from support.records import record


@pytest.mark.parametrize(
    ("executor", "result", "response"),
    [
        ("server", {"response": {"paid": 5}, "state": {}}, {"paid": 5}),
        ("server", {"response": "paid", "state": {}}, {"result": "paid"}),
        ("browser", {"output": {"plays": 1}}, {"plays": 1}),
        ("browser", {"output": [1]}, {"result": [1]}),
        ("browser", {"error": "no sound"}, {"error": "no sound"}),
    ],
)
def test_a_result_is_the_response_whoever_ran_the_tool(executor: str, result: Any, response: Any) -> None:
    assert ended_response(record(state=State.DONE, executor=executor, result=result)) == response


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State.EXPIRED, "This call was not run: it expired, because it was not answered or not started in time."),
        (State.DENIED, "This call was not run: the user denied it."),
        (State.UNKNOWN, OUTCOME_UNKNOWN),
    ],
)
def test_a_call_without_a_result_says_why(state: State, text: str) -> None:
    assert ended_response(record(state=state)) == {"error": text}


def test_a_denial_gives_the_persons_reason() -> None:
    denied = record(state=State.DENIED, reason="too much")
    assert refusal_text(denied) == "This call was not run: the user denied it. Reason: too much"


def test_what_is_no_object_is_wrapped_as_adk_does() -> None:
    assert as_response(None) == {"result": None}


def nested(depth: int, inside: Any = None) -> Any:
    return inside if depth == 0 else {"in": nested(depth - 1, inside)}


class Unknown:
    pass


UNUSUAL: dict[str, tuple[Any, bool]] = {
    "nothing": (None, True),
    "a text": ("paid", True),
    "a large number": (2**70, True),
    "a fraction": (0.5, True),
    "no number": (float("nan"), False),
    "no finite number": ({"a": [float("-inf")]}, False),
    "a list": ([1, {"a": (2,)}], True),
    "a set with no number": ({float("nan")}, False),
    "keys that are no texts": ({1: 2}, False),
    "keys inside that are no texts": ({"a": {1: 2}}, False),
    "a date": ({"at": datetime(2026, 11, 19, tzinfo=UTC)}, True),
    "a model": (record(), False),
    "a model of Pydantic's": (Part(text="paid"), True),
    "an error": ({"error": ValueError("no")}, False),
    "something unknown": (Unknown(), False),
    "an iterator": (iter([1]), False),
    "deep": (nested(200), True),
    "deep lists": (nested(199, [1]), True),
    "too deep": (nested(201), False),
    "too deep lists": (nested(200, [1]), False),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_what_adk_cannot_store_is_known_before_it_tries(kind: str) -> None:
    value, is_storable = UNUSUAL[kind]
    assert can_be_stored(value) is is_storable


def test_what_contains_itself_cannot_be_stored() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = [loop, loop]
    assert not can_be_stored(loop)
