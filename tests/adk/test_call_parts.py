"""What a client is told of calls, from what happens to them and what is recorded."""

from typing import Any

import msgspec
import pytest

from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from support.records import paid, record
from support.tool_messages import LARGE, PAY, Message, told, types

CONFIRMATION = "adk_request_confirmation"


def browsers(state: State) -> CallRecord:
    return record(state=state, executor="browser", approval_id="a1")


# -- calls ------------------------------------------------------------------------------------------------------------


def test_a_call_is_shown_as_soon_as_it_is_known_who_may_act_on_it() -> None:
    at = Message()
    assert told(at.call("1")) == [("1", PAY, {"adk": {"a": 1}})]
    assert at.call("2", outlives_run=True) == []
    assert at.call("3", LARGE) == []
    assert told(at.settle()) == [("3", LARGE, {"adk": {"a": 1}})]
    assert [at.tools.outlives_the_run(id) for id in ("1", "2", "3", "9")] == [False, True, False, False]


def test_what_is_recorded_is_of_the_first_call_of_its_id() -> None:
    at = Message(record(approval_id="a1"))
    at.call("1")
    at.call("1/2")
    at.call("1/3", invocation_id="i2")
    assert [at.tools.is_to_be_asked(id, at.records) for id in ("1", "1/2", "1/3", "9")] == [True, False, False, False]


def test_a_call_is_found_by_the_id_of_its_question() -> None:
    at = Message(record("1"), record("2"))
    at.call("1")
    at.call("2")
    at.ask("2")
    assert at.tools.asked_as("q2", at.records) is at.records[CallKey("i1", "2")]
    assert at.tools.asked_as("q1", at.records) is None


def test_a_question_that_was_asked_again_is_found_by_its_last_id_alone() -> None:
    at = Message(record("1"))
    at.call("1")
    at.ask("1")
    at.go_on("1")
    at.tools.ask("1", "again", {}, at.records)
    assert at.tools.asked_as("again", at.records) is at.records[CallKey("i1", "1")]
    assert at.tools.asked_as("q1", at.records) is None


def test_a_client_can_answer_what_it_was_asked() -> None:
    free = record("3", State.APPROVED, executor="browser")
    at = Message(record("1", approval_id="a1"), record("2", approval_id="a2"), free, record("5", approval_id="a5"))
    at.call("1")
    at.call("2")
    at.call("3", outlives_run=True)
    at.call("4")

    def can_be_answered() -> list[bool]:
        return [at.tools.has_asked(CallKey("i1", id), at.records) for id in "12345"]

    assert can_be_answered() == [False, False, False, False, False]
    at.tools.before_results(["1"], at.records)
    assert can_be_answered() == [True, False, False, False, False]
    at.settle()
    assert can_be_answered() == [True, True, True, False, False]


def test_a_call_is_known_by_its_run_and_its_id() -> None:
    at = Message()
    at.call("1")
    assert at.tools.has_call(CallKey("i1", "1")) is True
    assert at.tools.has_call(CallKey("i2", "1")) is False


def test_a_person_is_waited_for_from_the_question_to_the_recorded_decision() -> None:
    at = Message(record("1"), record("2"), record("3", State.APPROVED))
    for id in ("1", "2", "3", "4"):
        at.call(id)
    for id in ("1", "3", "4"):
        at.ask(id)
    waits = [at.tools.waits_for_person(id, at.records) for id in ("1", "2", "3", "4", "9")]
    assert waits == [True, False, False, True, False]


# -- questions --------------------------------------------------------------------------------------------------------


def test_a_person_is_asked_once_with_what_is_recorded() -> None:
    at = Message(record(hint="Pay?", deadline=1.5), sdk_version=7)
    at.call()
    about = {"hint": "Pay?", "payload": {"to": ""}, "deadline": "1970-01-01T00:00:01.500Z"}
    assert told(at.ask()) == [("q1", "1", "Pay?", about), (about, "q1")]
    assert at.ask() == []


def test_a_question_has_what_there_is_of_it() -> None:
    for known in ([], [record()]):
        at = Message(*known, sdk_version=7)
        at.call()
        about = {"hint": "ADK asks.", "payload": {"to": ""}}
        assert told(at.ask()) == [("q1", "1", "ADK asks.", about), (about, "q1")]
    at = Message()
    at.call()
    assert msgspec.to_builtins(at.ask(question={"toolConfirmation": "?"})[1])["data"] == {}


TO_PROGRAMS = (
    "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected "
    "ToolConfirmation payload."
)


def test_what_adk_tells_programs_is_not_shown_to_people() -> None:
    question = {"toolConfirmation": {"hint": TO_PROGRAMS, "confirmed": False}}
    for known in ([], [record(hint=TO_PROGRAMS)]):
        at = Message(*known)
        at.call()
        assert msgspec.to_builtins(at.ask(question=question)[1])["data"] == {}
    at = Message(record(), style="confirmation-tool")
    at.call()
    at.ask(question=question)
    asked = msgspec.to_builtins(at.settle()[-1])["input"]
    assert asked == {"toolConfirmation": {"hint": "", "confirmed": False}}


def test_a_large_number_is_shown_as_text_to_whoever_is_asked() -> None:
    at = Message(record(arguments=LARGE))
    at.call(arguments=LARGE)
    out = at.ask(question={"toolConfirmation": {"payload": LARGE}})
    assert told(out)[0] == ("1", {"amount": str(2**53 + 1)}, {"adk": {"a": 1}})
    assert msgspec.to_builtins(out[-1])["data"] == {"payload": {"amount": str(2**53 + 1)}}


def test_the_confirmation_tool_asks_in_a_step_of_its_own() -> None:
    at = Message(record(), style="confirmation-tool")
    at.call(arguments=LARGE)
    assert types(at.ask(question={"originalFunctionCall": {"args": LARGE}})) == ["tool-input-available"]
    assert at.writer.tools.awaits_client
    out = at.settle()
    assert types(out) == ["finish-step", "start-step", "tool-input-start", "tool-input-available"]
    plain = msgspec.to_builtins(out[-1])
    assert (plain["toolCallId"], plain["toolName"]) == ("q1", CONFIRMATION)
    assert plain["input"] == {"originalFunctionCall": {"args": {"amount": str(2**53 + 1)}}}
    assert at.settle() == []
    assert types(at.writer.abort()) == ["finish-step", "abort"]
    assert at.writer.tools.can_take_result("q1")


@pytest.mark.parametrize("approved", [None, True, False])
def test_in_a_message_of_the_past_the_confirmation_tool_has_its_answer(approved: bool | None) -> None:
    at = Message(record(approved=approved, reason="So.", payload={"to": "Bob"}), style="confirmation-tool")
    at.call()
    at.ask()
    out = at.settle()
    said = {"confirmed": approved, "reason": "So.", "payload": {"to": "Bob"}}
    assert told(out)[4:] == ([] if approved is None else [("q1", said)])
    unrecorded = Message(style="confirmation-tool")
    unrecorded.call()
    unrecorded.ask()
    assert types(unrecorded.settle())[-1] == "tool-input-available"


def test_what_a_live_session_has_asked_is_told_from_the_record() -> None:
    at = Message(record(approval_id="a1", hint="Pay?", asked_payload={"to": ""}))
    at.call()
    out = [msgspec.to_builtins(chunk) for chunk in at.settle()]
    assert [chunk["type"] for chunk in out] == ["tool-approval-request", "data-adk-approval"]
    assert (out[0]["approvalId"], out[1]["data"]) == ("a1", {"hint": "Pay?", "payload": {"to": ""}})
    assert at.settle() == []
    assert not at.tools.is_to_be_asked("1", at.records)


@pytest.mark.parametrize("hint", [None, "Pay?"])
def test_the_confirmation_tool_asks_what_is_recorded(hint: str | None) -> None:
    at = Message(record(approval_id="a1", hint=hint), style="confirmation-tool")
    at.call()
    assert msgspec.to_builtins(at.settle()[-1])["input"] == {
        "originalFunctionCall": {"id": "1", "name": "pay", "args": PAY},
        "toolConfirmation": {"hint": hint or "", "confirmed": False},
    }


def test_what_has_its_result_is_not_asked_about() -> None:
    at = Message(record(approval_id="a1"))
    at.call()
    at.writer.tools.output("1", {})
    assert at.tools.before_results(["1"], at.records) == []
    assert at.settle() == []


def test_questions_of_a_live_session_come_before_the_results_they_are_about() -> None:
    at = Message(record("1", approval_id="a1"), record("2", approval_id="a2"), record("3"))
    for id in ("1", "2", "3"):
        at.call(id)
    assert at.tools.before_results(["3", "9"], at.records) == []
    out = at.tools.before_results(["1", "3", "9"], at.records)
    assert types(out) == ["tool-approval-request", "data-adk-approval"]
    assert at.tools.before_results(["1"], at.records) == []
    assert len(at.settle()) == 2
    large = Message(record())
    large.call("1", LARGE)
    assert large.tools.before_results(["1"], large.records) == []


def test_other_questions_of_the_confirmation_tool_wait_for_their_step() -> None:
    at = Message(record("1"), style="confirmation-tool")
    at.call("1")
    at.call("2")
    at.ask("1")
    assert at.tools.before_results(["2"], at.records) == []


def test_questions_before_results_are_whole() -> None:
    at = Message(record("1", approval_id="a1", arguments=LARGE), style="confirmation-tool")
    at.call("1", LARGE)
    assert types(at.tools.before_results(["1"], at.records))[-1] == "tool-input-available"
    browsers = Message(record("1", executor="browser", approval_id="a1", state=State.APPROVED))
    browsers.call("1", outlives_run=True)
    assert types(browsers.tools.before_results(["1"], browsers.records)) == [
        "tool-input-delta",
        "tool-approval-request",
        "data-adk-approval",
        "tool-input-available",
    ]


def test_what_outlives_the_run_is_told_by_its_record() -> None:
    at = Message(
        record("1", State.APPROVED, executor="browser"),
        record("2", executor="browser", approval_id="a2"),
        record("3", approval_id="a3"),
    )
    for id in ("1", "2", "3", "5"):
        at.call(id, outlives_run=True)
    at.call("4", outlives_run=True, is_input_request=True)
    out = [msgspec.to_builtins(chunk) for chunk in at.settle()]
    assert [(chunk["type"], chunk.get("toolCallId")) for chunk in out] == [
        ("tool-input-available", "1"),
        ("tool-input-delta", "2"),
        ("tool-approval-request", "2"),
        ("data-adk-approval", None),
        ("tool-input-available", "3"),
        ("tool-approval-request", "3"),
        ("data-adk-approval", None),
        ("tool-input-available", "4"),
    ]
    assert at.writer.tools.is_deferred("5")
    assert at.settle() == []


@pytest.mark.parametrize("state", [State.PENDING, State.APPROVED, State.DONE, State.DENIED])
def test_a_browsers_call_is_its_own_from_the_approval_on(state: State) -> None:
    at = Message(record(state=state, executor="browser", approval_id="a1"))
    at.call(outlives_run=True)
    is_given = state in (State.APPROVED, State.DONE)
    assert types(at.settle())[3:] == (["tool-input-available"] if is_given else [])


def test_a_browsers_call_is_shown_before_the_confirmation_tool_asks_about_it() -> None:
    at = Message(record(executor="browser", approval_id="a1"), style="confirmation-tool")
    at.call(outlives_run=True)
    out = at.settle()
    assert types(out) == [
        "tool-input-available",
        "finish-step",
        "start-step",
        "tool-input-start",
        "tool-input-available",
    ]
    assert at.tools.asked_as("a1", at.records) is at.records[CallKey("i1", "1")]


# -- segments ---------------------------------------------------------------------------------------------------------


def test_a_call_of_the_servers_is_at_work_after_its_answer() -> None:
    at = Message(record("1"), record("2"))
    at.call("1")
    at.call("2")
    at.ask("1")
    at.ask("2")
    assert types(at.go_on("1")) == ["start"]
    assert told(at.end()) == []
    assert types(at.writer.abort())[0] == "abort"


def test_a_call_that_is_answered_can_be_asked_about_again() -> None:
    at = Message(record("1"), record("2"))
    at.call("1")
    at.call("2")
    at.ask("1")
    at.go_on("2")
    assert at.ask("1") == []
    at.writer.abort()
    at.go_on("1")
    assert types(at.ask("1")) == ["tool-approval-request", "data-adk-approval"]


def test_a_call_at_work_whose_run_has_ended_stays_open() -> None:
    at = Message(record("1"), record("2"))
    at.call("1")
    at.call("2")
    at.ask("1")
    at.go_on("1")
    at.end()
    assert at.writer.tools.awaits_client
    assert types(at.writer.abort()) == ["abort"]


@pytest.mark.parametrize("style", ["approval-request", "confirmation-tool"])
def test_a_browsers_call_is_handed_over_when_it_is_approved(style: Any) -> None:
    at = Message(record(executor="browser", approval_id="a1"), style=style)
    at.call(outlives_run=True)
    at.settle()
    at.records = {CallKey("i1", "1"): record(executor="browser", approval_id="a1", state=State.APPROVED, approved=True)}
    out = at.go_on("1")
    handed = ["tool-input-available"] if style == "approval-request" else []
    assert types(out) == ["start", *handed]
    assert msgspec.to_builtins(out[0])["messageId"] == "m1"
    assert not at.writer.tools.can_take_result("a1")


@pytest.mark.parametrize("state", [State.PENDING, State.DENIED])
def test_a_browsers_call_that_is_not_approved_is_not_handed_over(state: State) -> None:
    at = Message(record(executor="browser", approval_id="a1"))
    at.call(outlives_run=True)
    at.settle()
    at.records = {CallKey("i1", "1"): record(executor="browser", approval_id="a1", state=state)}
    assert types(at.go_on("1")) == ["start"]
    at.writer.abort()
    at.records = {}
    assert types(at.go_on("1")) == ["start"]


def test_a_call_of_the_servers_is_not_handed_over() -> None:
    for found, outlives_run in ((record(state=State.APPROVED), True), (browsers(State.APPROVED), False)):
        at = Message(record(approval_id="a1"))
        at.call(arguments=LARGE, outlives_run=outlives_run)
        at.settle()
        at.records = {found.call: found}
        assert types(at.go_on("1")) == ["start"]


def test_a_browsers_call_that_nobody_has_answered_is_not_handed_over() -> None:
    approved = record(executor="browser", approval_id="a1", state=State.APPROVED)
    at = Message(record(executor="browser", approval_id="a1"))
    at.call(outlives_run=True)
    at.settle()
    at.records = {approved.call: approved}
    assert types(at.go_on("9")) == ["start"]


def test_what_the_client_has_sent_itself_is_told_to_other_readers() -> None:
    at = Message(paid("1", payload={"to": "Bob"}), record("2", approved=True), paid("3"), style="confirmation-tool")
    for id in ("1", "2", "3", "4"):
        at.call(id)
    at.ask("1")
    at.ask("2")
    at.settle()
    at.go_on("1", "2", known=("1", "3", "4"))
    keys = {CallKey("i1", id) for id in ("1", "2", "4")}
    assert told(at.tools.sent_by_client(at.records, keys)) == [
        ("1", {"paid": 5}),
        ("q1", {"confirmed": True, "payload": {"to": "Bob"}}),
        ("q2", {"confirmed": True}),
    ]
    at.tools._style = "approval-request"  # pyright: ignore[reportPrivateUsage]
    assert told(at.tools.sent_by_client(at.records, keys)) == [("1", {"paid": 5})]


def test_what_nobody_has_decided_is_not_told_as_said() -> None:
    at = Message(record("1"), record("2", approved=True), style="confirmation-tool")
    at.call("1")
    at.call("2")
    at.ask("1")
    at.settle()
    assert at.tools.sent_by_client(at.records, {CallKey("i1", "1"), CallKey("i1", "2")}) == []
