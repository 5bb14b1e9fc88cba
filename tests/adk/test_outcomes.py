"""What ADK, the model and the person read of a call that has ended."""

from typing import Any

import pytest

from adk_stream_protocol.adk.calls.outcomes import OUTCOME_UNKNOWN, as_response, ended_response, refusal_text
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
