"""What a client posts about calls: every form is the same answer, and counts where the call waits for it."""

from dataclasses import replace
from typing import Any

import pytest

from adk_stream_protocol.protocol.answers import AskedCall, decode_answers
from adk_stream_protocol.protocol.call_record import CallKey, State
from protocol.answer_forms import (
    ARGUMENTS,
    DECISIONS,
    FREE,
    GATED,
    OUTPUT,
    OUTPUTS,
    SERVER,
    WORDS,
    Part,
    Said,
    asked,
    confirmed,
    responded,
    result,
    said,
    tool_part,
    with_input,
)


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("form", DECISIONS)
@pytest.mark.parametrize("call", [*SERVER, *GATED])
def test_a_decision_in_any_form_is_the_same_decision_also_when_it_was_made_before(
    call: str, form: str, approved: bool
) -> None:
    assert said([DECISIONS[form](approved)], (SERVER | GATED)[call]) == [(approved, None)]


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("call", [*SERVER, *GATED])
def test_a_word_for_the_confirmation_is_a_decision(call: str, approved: bool) -> None:
    assert said([result("ok-c1", {"approval": WORDS[approved]})], (SERVER | GATED)[call]) == [(approved, None)]


@pytest.mark.parametrize("form", DECISIONS)
@pytest.mark.parametrize("call", FREE)
def test_nobody_decides_about_a_call_that_needs_no_approval(call: str, form: str) -> None:
    assert said([DECISIONS[form](True)], FREE[call]) == []


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("call", [*SERVER, *GATED, *FREE])
def test_a_result_for_the_call_itself_is_a_decision_where_there_is_one_to_make_or_was(
    call: str, approved: bool
) -> None:
    value = {"approved": approved, "user_message": "Because."}
    expected = (None, {"output": value}) if call in FREE else (approved, None)
    assert said([result("c1", value)], (SERVER | GATED | FREE)[call]) == [expected]


@pytest.mark.parametrize("call", [*SERVER, *GATED, *FREE])
def test_a_result_that_says_more_than_a_decision_is_the_output_of_a_browser_that_may_act(call: str) -> None:
    value = {"approved": True, "latitude": 60}
    is_decision = call in SERVER or call == f"gated browser, {State.PENDING}"
    expected = (True, None) if is_decision else (None, {"output": value})
    assert said([result("c1", value)], (SERVER | GATED | FREE)[call]) == [expected]


@pytest.mark.parametrize("form", OUTPUTS)
@pytest.mark.parametrize("call", [*SERVER, *GATED, *FREE])
def test_an_output_counts_for_calls_of_the_browser_that_wait_for_nobody_else(call: str, form: str) -> None:
    part, output = OUTPUTS[form]
    counts = call in FREE or (call in GATED and State.PENDING not in call)
    assert said([part], (SERVER | GATED | FREE)[call]) == ([(None, output)] if counts else [])


@pytest.mark.parametrize("form", ["output", "output, dynamic", "no output", "error"])
@pytest.mark.parametrize("call", [*SERVER, *GATED])
def test_an_approval_and_an_output_may_come_in_one_part_of_a_browsers_call(call: str, form: str) -> None:
    part, output = OUTPUTS[form]
    both = {**part, "approval": {"id": "ok-c1", "approved": True}}
    assert said([both], (SERVER | GATED)[call]) == ([(True, output)] if call in GATED else [])


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("call", [*SERVER, *GATED])
def test_an_approval_and_an_output_may_come_in_two_results(call: str, in_order: bool) -> None:
    parts = [result("ok-c1", {"approval": "approved"}), result("c1", OUTPUT)]
    output = {"output": OUTPUT} if call in GATED else None
    assert said(parts if in_order else parts[::-1], (SERVER | GATED)[call]) == [(True, output)]


@pytest.mark.parametrize(
    "parts",
    [
        [{**tool_part("output-available", output=OUTPUT), "approval": {"id": "ok-c1", "approved": False}}],
        [result("ok-c1", {"approval": "denied"}), result("c1", OUTPUT)],
        [confirmed(False), tool_part("output-available", output=OUTPUT)],
    ],
    ids=["one part", "two results", "two parts"],
)
def test_beside_a_denial_an_output_says_nothing(parts: list[Part]) -> None:
    assert said(parts, asked("c1", "browser")) == [(False, None)]


@pytest.mark.parametrize("state", ["output-available", "output-error", "output-denied"])
@pytest.mark.parametrize("part", [confirmed(True), responded(True)], ids=["confirmation", "approval"])
def test_beside_the_result_of_a_servers_call_its_approval_is_about_the_past(part: Part, state: str) -> None:
    ended = tool_part(state, output=OUTPUT, errorText="Failed.")
    assert said([part, ended], asked()) == []
    assert said([ended, part], asked()) == []
    other = {**ended, "toolCallId": "c2"}
    assert said([part, other], asked()) == [(True, None)]


def test_a_reason_beside_a_decision_makes_no_output_of_it() -> None:
    for call in GATED.values():
        assert said([result("c1", {"approved": True, "reason": "Because."})], call) == [(True, None)]


# -- what the client shows of the call --------------------------------------------------------------------------------

SAME: dict[str, Any] = {
    "the same": ARGUMENTS,
    "in another order": {"deep": {"list": [1, 2]}, "sum": 5, "to": "Bo"},
    "as JavaScript writes numbers": ARGUMENTS | {"sum": 5.0},
    "left out": None,
}


@pytest.mark.parametrize("form", ["part", "confirmation", "output"])
@pytest.mark.parametrize("value", SAME.values(), ids=SAME)
def test_arguments_that_mean_what_was_sent_are_as_good_as_those(value: Any, form: str) -> None:
    call = asked("c1", "browser", State.APPROVED if form == "output" else State.PENDING)
    expected: Said = (None, {"output": OUTPUT}) if form == "output" else (True, None)
    assert said([with_input(value)[form]], call) == [expected]


def test_a_number_that_javascript_would_round_is_the_string_that_was_sent() -> None:
    part = responded(True) | {"input": {"id": "9007199254740993"}}
    assert said([part], asked(arguments={"id": 2**53 + 1})) == [(True, None)]
    assert said([part], asked(arguments={"id": 2**53 + 2})) == []
    rounded = responded(True) | {"input": {"id": 9007199254740992}}
    assert said([rounded], asked(arguments={"id": 2**53 + 1})) == []


def test_an_id_that_two_calls_have_names_neither() -> None:
    """In chats of older versions, where a model has numbered its calls anew in every answer."""
    first = replace(asked("0", invocation="e1"), approval_id="q1")
    second = replace(asked("0", invocation="e2"), approval_id="q2")
    part = {"type": "tool-result", "toolCallId": "0", "toolName": "pay", "result": {"approved": True}}
    assert said([part], first) == [(True, None)]
    assert said([part], first, second) == []
    assert said([part | {"toolCallId": "q2", "result": {"confirmed": True}}], first, second) == [(True, None)]


# -- several calls ----------------------------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_the_questions() -> None:
    calls = [asked("c1"), asked("c2", "browser", State.APPROVED, is_gated=False), asked("c3", "browser")]
    parts = [confirmed(False, "c3"), result("c2", OUTPUT), {"type": "text", "text": "hi"}, responded(True, "c1")]
    assert [answer.asked for answer in decode_answers(parts, calls)] == calls
    assert said(parts, *calls) == [(True, None), (None, {"output": OUTPUT}), (False, None)]


def test_there_is_one_answer_for_a_call_whatever_is_said_of_it() -> None:
    parts = [responded(True), confirmed(False), responded(True), result("c1", {"approved": False})]
    assert len(said(parts, asked())) == 1
    outputs = [tool_part("output-available", output=1), tool_part("output-error", errorText="x"), result("c1", 2)]
    assert len(said(outputs, asked("c1", "browser", State.APPROVED, is_gated=False))) == 1


def test_an_answer_says_of_which_call_it_is_and_nothing_that_was_not_said() -> None:
    [answer] = decode_answers(iter([result("c1", OUTPUT)]), [next(iter(FREE.values()))])
    assert answer.asked.key == CallKey("e-1", "c1")
    assert (answer.approved, answer.reason, answer.payload) == (None, None, None)


def test_only_calls_that_are_answered_have_an_answer() -> None:
    assert said([responded(True, "c2")], asked("c1"), asked("c2"), asked("c3")) == [(True, None)]
    assert said([], asked("c1")) == []
    assert said([responded(True)]) == []


def test_an_approval_finds_its_call_where_a_model_has_numbered_its_calls_anew() -> None:
    first, second = asked("0", invocation="e-1"), asked("0", invocation="e-2")
    second = AskedCall(wire_id="0", approval_id="ok-again", record=second.record)
    for call in (first, second):
        part = tool_part("approval-responded", "0", approval={"id": call.approval_id, "approved": True})
        assert [answer.asked for answer in decode_answers([part], [first, second])] == [call]


# -- what is said beside it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        ({}, None),
        ({"reason": "Too much."}, "Too much."),
        ({"user_message": "Too much."}, "Too much."),
        ({"reason": "This.", "user_message": "Not this."}, "This."),
        ({"reason": ""}, None),
        ({"reason": 1}, None),
        ({"reason": ["x"]}, None),
        ({"reason": "x" * 2000}, "x" * 2000),
        ({"reason": "é" * 2001}, "é" * 2000),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("form", [responded, confirmed, lambda yes, **more: result("c1", {"approved": yes, **more})])
def test_a_reason_is_text_and_no_longer_than_a_model_should_read(form: Any, beside: Any, reason: str | None) -> None:
    [answer] = decode_answers([form(False, **beside)], [asked()])
    assert (answer.approved, answer.reason) == (False, reason)


@pytest.mark.parametrize("payload", [None, 0, "x", {"sum": 3}, [1]])
def test_a_payload_comes_with_the_decision(payload: Any) -> None:
    for part in (confirmed(True, payload=payload), result("ok-c1", {"confirmed": True, "payload": payload})):
        [answer] = decode_answers([part], [asked()])
        assert (answer.approved, answer.payload) == (True, payload)
