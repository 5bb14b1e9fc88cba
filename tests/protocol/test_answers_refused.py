"""What a client posts about calls and nobody has asked: invented, changed, of another type. It is no answer."""

import json
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol.answers import AskedCall, decode_answers
from adk_stream_protocol.protocol.call_record import State
from protocol.answer_forms import (
    ARGUMENTS,
    BROWSER_STATES,
    CONFIRMATION,
    DECISIONS,
    FREE,
    OUTPUT,
    Part,
    asked,
    confirmation,
    confirmed,
    responded,
    result,
    said,
    tool_part,
    with_input,
)

NO_BOOLEANS = ["yes", "true", "approved", "", 1, 0, 1.0, None, [], [True], {}, {"approved": True}]
GATED_CALL = asked("c1", "browser")


@pytest.mark.parametrize("value", NO_BOOLEANS, ids=json.dumps)
@pytest.mark.parametrize("form", DECISIONS)
@pytest.mark.parametrize("call", [asked(), GATED_CALL], ids=["server", "browser"])
def test_only_booleans_decide(call: AskedCall, form: str, value: Any) -> None:
    assert said([DECISIONS[form](value)], call) == []


@pytest.mark.parametrize("value", NO_BOOLEANS, ids=json.dumps)
def test_only_booleans_decide_in_a_result_for_the_call_itself(value: Any) -> None:
    assert said([result("c1", {"approved": value})], asked()) == []
    assert said([result("c1", {"approved": value})], GATED_CALL) == []


@pytest.mark.parametrize("word", ["yes", "Approved", "approve", "", True, False, 1, None, ["approved"], {"a": 1}])
def test_only_two_words_decide(word: Any) -> None:
    assert said([result("ok-c1", {"approval": word})], asked()) == []


@pytest.mark.parametrize(
    "part",
    [
        tool_part("approval-responded", approval={"id": "ok-c1", "confirmed": True, "approval": "approved"}),
        confirmation("output-available", output={"approved": True, "approval": "approved"}),
        confirmation("approval-responded", approval={"confirmed": True, "approval": "approved"}),
        result("ok-c1", {"approved": True}),
        result("c1", {"confirmed": True, "approval": "approved"}),
    ],
    ids=["part", "confirmation", "approval on it", "result for it", "result for the call"],
)
def test_a_decision_in_the_words_of_another_form_is_none(part: Part) -> None:
    assert said([part], asked()) == []


FORGED: dict[str, Part] = {
    "an invented call": responded(True, "c9"),
    "an invented approval": tool_part("approval-responded", approval={"id": "ok-c9", "approved": True}),
    "another call's approval": tool_part("approval-responded", approval={"id": "ok-c2", "approved": True}),
    "an approval without an id": tool_part("approval-responded", approval={"approved": True}),
    "an approval id of another type": tool_part("approval-responded", approval={"id": ["ok-c1"], "approved": True}),
    "an approval of another shape": tool_part("approval-responded", approval=True),
    "no approval at all": tool_part("approval-responded"),
    "the approval's id for the call's": tool_part(
        "approval-responded", "ok-c1", approval={"id": "ok-c1", "approved": True}
    ),
    "the call's id for the confirmation's": confirmed(True) | {"toolCallId": "c1"},
    "an invented confirmation": confirmed(True, "c9"),
    "a confirmation of another tool": confirmed(True)
    | {"input": {"originalFunctionCall": {"id": "c1", "name": "refund", "args": ARGUMENTS}}},
    "a confirmation's output that failed": confirmation("output-error", errorText="x", output={"confirmed": True}),
    "a result for an invented call": result("c9", {"approved": True}),
    "a result for an invented confirmation": result("ok-c9", {"confirmed": True}),
    "a result without a value": {"type": "tool-result", "toolCallId": "ok-c1"},
    "a result of another shape": result("ok-c1", [True]),
    "a call id of another type": responded(True) | {"toolCallId": ["c1"]},
    "no call id": {name: value for name, value in responded(True).items() if name != "toolCallId"},
    **{
        f"a part of type {kind!r}": responded(True) | {"type": kind}
        for kind in ("text", "pay", "data-approval", "step-start", "dynamic", "", None, 1, ["tool-pay"])
    },
    "a part without a type": {name: value for name, value in responded(True).items() if name != "type"},
    "nothing": {},
    **{
        f"a part in the state {state!r}": responded(True) | {"state": state}
        for state in ("approval-requested", "input-available", "input-streaming", "output-denied", "", None, 1, ["x"])
    },
}


@pytest.mark.parametrize("runs", ["server", "browser"])
@pytest.mark.parametrize("part", FORGED.values(), ids=FORGED)
def test_what_fits_no_question_is_no_answer(part: Part, runs: Literal["server", "browser"]) -> None:
    others = [asked("c2"), asked("c3", "browser", State.APPROVED, is_gated=False)]
    assert said([part], asked("c1", runs), *others) == []


@pytest.mark.parametrize("approval_id", [None, "", "c1"])
@pytest.mark.parametrize("runs", ["server", "browser"])
def test_a_call_without_an_approval_has_none_to_answer(runs: Literal["server", "browser"], approval_id: Any) -> None:
    call = asked("c1", runs, State.PENDING, is_gated=False)
    assert said([tool_part("approval-responded", approval={"id": approval_id, "approved": True})], call) == []
    assert said([result("c1", {"approved": True})], call) == []


@pytest.mark.parametrize(
    "part",
    [
        tool_part("output-available"),
        tool_part("output-available", output=50, preliminary=True),
        tool_part("output-error"),
        tool_part("output-error", errorText=None),
        tool_part("output-error", errorText={"text": "x"}),
        tool_part("output-denied"),
        tool_part("input-available", output=OUTPUT),
        tool_part("output-available", "c9", output=OUTPUT),
        tool_part("output-available", output=OUTPUT) | {"type": "text"},
        tool_part("output-available", output=OUTPUT) | {"type": "pay"},
        tool_part("output-available", output=OUTPUT) | {"type": None},
        result("c9", OUTPUT),
    ],
    ids=json.dumps,
)
def test_what_is_no_final_output_of_the_call_is_no_answer(part: Part) -> None:
    assert said([part], asked("c1", "browser", State.APPROVED, is_gated=False)) == []


@pytest.mark.parametrize(
    "value",
    [
        {"type": "json", "value": 1, "more": 1},
        {"type": "xml", "value": 1},
        {"type": ["json"], "value": 1},
        {"value": 1},
        {"type": "json"},
        [1],
        None,
    ],
    ids=json.dumps,
)
def test_what_only_resembles_a_wrapping_is_the_output_itself(value: Any) -> None:
    assert said([result("c1", value)], next(iter(FREE.values()))) == [(None, {"output": value})]


CHANGED: dict[str, Any] = {
    "another value": ARGUMENTS | {"sum": 6},
    "one more": ARGUMENTS | {"fee": 0},
    "one less": {"to": "Bo", "sum": 5},
    "another type": ARGUMENTS | {"sum": "5"},
    "deep inside": ARGUMENTS | {"deep": {"list": [1, True]}},
    "another order of a list": ARGUMENTS | {"deep": {"list": [2, 1]}},
    "nothing": {},
    "another shape": [ARGUMENTS],
    "false": False,
    "text": json.dumps(ARGUMENTS),
}


@pytest.mark.parametrize("form", ["part", "confirmation", "output"])
@pytest.mark.parametrize("value", CHANGED.values(), ids=CHANGED)
def test_a_client_that_shows_other_arguments_than_it_was_sent_says_nothing(value: Any, form: str) -> None:
    call = asked("c1", "browser", State.APPROVED if form == "output" else State.PENDING)
    assert said([with_input(value)[form]], call) == []


# -- anything at all --------------------------------------------------------------------------------------------------

some_id = st.sampled_from(["c1", "c2", "c3", "ok-c1", "ok-c2", "ok-c3", "c9", "", None, 1, ["c1"]])
some_word = st.sampled_from([True, False, None, 1, "yes", "approved", "denied"])
some_value = st.dictionaries(
    st.sampled_from(["approved", "confirmed", "approval", "reason", "payload", "id", "type", "value"]),
    some_word | st.sampled_from(["json", "ok-c1", "ok-c3"]),
)
some_kind = st.sampled_from(["tool-pay", f"tool-{CONFIRMATION}", "tool-result", "dynamic-tool", "text", None, 1, {}])
some_state = st.sampled_from(["approval-responded", "output-available", "output-error", "output-denied", None, 2])
some_input = st.sampled_from([ARGUMENTS, None, {}, {"originalFunctionCall": {"args": ARGUMENTS}}, [1], "x"])
some_part = st.fixed_dictionaries(
    {},
    optional={
        "type": some_kind,
        "toolCallId": some_id,
        "toolName": some_id,
        "state": some_state,
        "approval": some_value | some_word,
        "input": some_input,
        "output": some_value | some_word,
        "result": some_value | some_word,
        "errorText": some_word | st.just("x"),
        "preliminary": some_word,
    },
)
some_states = st.tuples(st.sampled_from(State), st.sampled_from(BROWSER_STATES[1:]), st.sampled_from(BROWSER_STATES))


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(some_part, max_size=6), some_states)
def test_whatever_is_posted_answers_questions_and_nothing_else(
    parts: list[Part], states: tuple[State, State, State]
) -> None:
    server, free, gated = states
    calls = [asked("c1", state=server), asked("c2", "browser", free, is_gated=False), asked("c3", "browser", gated)]
    answers = decode_answers(parts, calls)
    assert [answer.asked for answer in answers] == [call for call in calls if call in [a.asked for a in answers]]
    for answer in answers:
        name = answer.asked.wire_id
        named = {part["toolCallId"] for part in parts if isinstance(part.get("toolCallId"), str)}
        assert named & {name, f"ok-{name}"}
        assert answer.approved is not None or answer.result is not None
        assert answer.approved in (True, False, None)
        if name == "c1":
            assert answer.result is None, "the output of a tool of the server's"
        if name == "c2":
            assert answer.approved is None, "a decision that nobody asked for"
        if name == "c3" and gated is State.PENDING and answer.result is not None:
            assert answer.approved, "an output before the person has agreed"
