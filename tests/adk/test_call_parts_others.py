"""What a client is told of calls that others decide about than its user: approvers, the policy, the application."""

from typing import Any

import msgspec
import pytest

from adk_stream_protocol.protocol.approval_chain import BY_POLICY, ChainLink
from adk_stream_protocol.protocol.call_keys import CallKey, work_key
from adk_stream_protocol.protocol.call_record import CallRecord, State
from support.records import paid, record
from support.tool_messages import LARGE, PAY, Message, told, types

CALL = CallKey("i1", "1")
BOB = ChainLink(approvers=("bob",))
BOB_APPROVED = ChainLink(approvers=("bob",), approved=True, decided_by="bob")
ANN = ChainLink(approvers=("ann",))


def chained(*chain: ChainLink, state: State = State.IN_CHAIN, **fields: Any) -> CallRecord:
    return record(state=state, chain=chain, **{"approval_id": "a1", **fields})


def cards(chunks: list[Any]) -> list[Any]:
    plain = [msgspec.to_builtins(chunk) for chunk in chunks]
    return [(chunk["id"], chunk["data"]["status"]) for chunk in plain if chunk["type"] == "data-adk-approval"]


def now_recorded(at: Message, found: CallRecord) -> None:
    at.records = {found.call: found}


# -- approvers --------------------------------------------------------------------------------------------------------


def test_a_call_that_others_decide_about_is_shown_and_nobody_is_asked() -> None:
    at = Message(chained(BOB))
    at.call()
    out = at.ask()
    assert (types(out), cards(out)) == (["data-adk-approval"], [("a1", "pending")])
    assert msgspec.to_builtins(out[0])["data"]["toolCallId"] == "1"
    assert at.writer.tools.awaits_client
    assert at.tools.asked_as("q1", at.records) is None
    assert at.ask() == []


def test_a_servers_call_with_large_numbers_is_shown_to_its_owner_as_to_approvers() -> None:
    at = Message(chained(BOB, arguments=LARGE))
    at.call(arguments=LARGE)
    out = at.settle()
    assert types(out) == ["tool-input-available", "data-adk-approval"]
    assert told(out)[0][1] == {"amount": str(2**53 + 1)}


def test_a_servers_call_is_at_work_when_all_have_approved() -> None:
    at = Message(chained(BOB))
    at.call()
    at.settle()
    assert types(at.go_on()) == ["start"]
    assert at.writer.tools.awaits_client
    now_recorded(at, chained(BOB_APPROVED, state=State.APPROVED, approved=True, version=1))
    out = at.go_on("1")
    assert (types(out), cards(out)) == (["start", "data-adk-approval"], [("a1", "approved")])
    assert not at.writer.tools.awaits_client
    at.end()
    assert at.writer.tools.awaits_client


def test_a_client_knows_how_far_a_chain_is_as_soon_as_it_was_shown() -> None:
    for approval_id in ("a1", None):
        at = Message(chained(BOB, approval_id=approval_id, question_id="q1"))
        at.call()
        assert at.tools.has_asked(CALL, at.records) is False
        at.ask()
        assert at.tools.has_asked(CALL, at.records) is True


def test_how_far_a_chain_is_is_told_once_and_again_when_it_moves() -> None:
    at = Message(chained(BOB, BOB))
    at.call()
    assert at.tools.is_to_be_asked("1", at.records)
    assert cards(at.settle()) == [("a1", "pending")]
    assert not at.tools.is_to_be_asked("1", at.records)
    assert at.settle() == []
    now_recorded(at, chained(BOB_APPROVED, BOB, version=1))
    assert at.tools.is_to_be_asked("1", at.records)
    assert cards(at.settle()) == [("a1", "pending")]
    assert at.settle() == []


def test_a_question_to_the_owner_is_asked_once_however_often_its_record_moves() -> None:
    for style in ("approval-request", "confirmation-tool"):
        at = Message(record(approval_id="a1"), style=style)
        at.call()
        at.settle()
        assert not at.tools.is_to_be_asked("1", at.records)
        now_recorded(at, record(approval_id="a1", version=1))
        assert not at.tools.is_to_be_asked("1", at.records)


def test_an_owner_who_is_a_link_is_asked_and_sees_the_rest() -> None:
    at = Message(chained(ANN, BOB))
    at.call()
    assert types(at.settle()) == ["tool-approval-request", "data-adk-approval"]
    assert types(at.go_on("1")) == ["start"]
    ann = ChainLink(approvers=("ann",), approved=True, decided_by="ann")
    now_recorded(at, chained(ann, BOB, version=1))
    assert types(at.go_on("1")) == ["start", "data-adk-approval"]
    assert types(at.go_on("1")) == ["start"]


@pytest.mark.parametrize("state", [State.IN_CHAIN, State.APPROVED, State.DONE, State.DENIED])
def test_a_browsers_call_that_others_decide_about_is_its_own_from_the_approval_on(state: State) -> None:
    at = Message(chained(BOB, state=state, executor="browser"))
    at.call(outlives_run=True)
    out = at.settle()
    is_given = state in (State.APPROVED, State.DONE)
    assert types(out) == [
        "tool-input-delta",
        "data-adk-approval",
        *(["tool-input-available"] if is_given else []),
    ]
    if is_given:
        assert told(out)[-1] == ("1", PAY, {"adk": {"a": 1}})


@pytest.mark.parametrize("style", ["approval-request", "confirmation-tool"])
def test_a_browsers_call_is_handed_over_when_others_have_approved(style: Any) -> None:
    at = Message(chained(BOB, executor="browser"), style=style)
    at.call(outlives_run=True)
    at.settle()
    now_recorded(at, chained(BOB_APPROVED, executor="browser", state=State.APPROVED, approved=True, version=1))
    assert types(at.go_on("1")) == ["start", "data-adk-approval", "tool-input-available"]


def test_a_call_without_a_record_is_handed_over_to_nobody() -> None:
    at = Message(style="confirmation-tool")
    at.call(outlives_run=True, is_input_request=True)
    at.settle()
    assert types(at.go_on("1")) == ["start"]


def test_a_denial_is_told_as_one_to_an_owner_who_was_asked_and_in_words_to_others() -> None:
    bob_denied = ChainLink(approvers=("bob",), approved=False, decided_by="bob")
    denied = chained(bob_denied, state=State.DENIED, approved=False, decided_by="bob", version=1)
    at = Message(chained(BOB))
    at.call()
    at.settle()
    now_recorded(at, denied)
    assert told(at.result()) == [("1", "This call was not run: an approver denied it.")]
    ann_denied = ChainLink(approvers=("ann",), approved=False, decided_by="ann")
    at = Message(chained(ANN))
    at.call()
    at.settle()
    now_recorded(at, chained(ann_denied, state=State.DENIED, approved=False, decided_by="ann", version=1))
    assert types(at.result()) == ["tool-output-denied"]


# -- the policy -------------------------------------------------------------------------------------------------------

AUTOMATIC = {"state": State.APPROVED, "approved": True, "decided_by": BY_POLICY, "approval_id": "a1"}
BY_THE_POLICY = {"status": "approved", "by": "policy"}


def test_a_servers_call_that_the_policy_has_approved_is_shown_as_approved() -> None:
    at = Message(record(**AUTOMATIC), sdk_version=7)
    at.call()
    out = at.settle()
    assert types(out) == ["tool-approval-request", "tool-approval-response", "data-adk-approval"]
    assert told(out) == [("a1", "1", True), ("a1", True), (BY_THE_POLICY, "a1")]
    assert not at.writer.tools.awaits_client
    assert not at.tools.is_to_be_asked("1", at.records)


def test_clients_that_know_only_questions_to_people_are_shown_the_card_alone() -> None:
    at = Message(record(**AUTOMATIC))
    at.call()
    assert told(at.settle()) == [(BY_THE_POLICY, "a1")]


def test_a_servers_call_with_large_numbers_is_shown_whole() -> None:
    at = Message(record(**AUTOMATIC, arguments=LARGE))
    at.call(arguments=LARGE)
    out = at.settle()
    assert types(out) == ["tool-input-available", "data-adk-approval"]
    assert told(out)[0][1] == {"amount": str(2**53 + 1)}


@pytest.mark.parametrize("outlives_run", [False, True])
def test_a_servers_call_that_the_policy_has_approved_and_that_has_not_begun_stays_open(outlives_run: bool) -> None:
    at = Message(record(**AUTOMATIC))
    at.call(outlives_run=outlives_run)
    at.end()
    assert types(at.writer.error("The run has failed.")) == ["finish-step", "error"]


@pytest.mark.parametrize(
    "found",
    [
        [],
        [chained(BOB)],
        [record(state=State.APPROVED, approved=True)],
        [record(**AUTOMATIC, executor="browser")],
    ],
    ids=["unknown", "in a chain", "approved by a person", "the browser's"],
)
def test_other_deferred_calls_are_as_they_are_when_their_run_ends(found: list[CallRecord]) -> None:
    at = Message(*found, sdk_version=7)
    at.call(outlives_run=True)
    assert at.end() == []
    assert at.writer.tools.is_deferred("1")


def test_a_call_that_was_asked_about_and_has_no_record_or_has_ended_does_not_go_on_after_its_run() -> None:
    for found in ([], [record(state=State.DONE)]):
        at = Message()
        at.call()
        at.ask()
        at.writer.tools.output("1", "begun", preliminary=True)
        at.go_on("1")
        at.records = {each.call: each for each in found}
        at.tools.leave_approved(at.records)
        assert "tool-output-error" in types(at.writer.pause_stopped())


@pytest.mark.parametrize(
    ("outlives_run", "found", "goes_on"),
    [
        (False, [], True),
        (True, [], None),
        (True, [record()], None),
        (True, [record(executor="browser")], False),
        (False, [record(executor="browser")], True),
        (True, [record("1", State.APPROVED, work_key(CALL).invocation_id, executor="browser")], True),
    ],
)
def test_the_server_goes_on_with_calls_of_its_own(outlives_run: bool, found: list[CallRecord], goes_on: Any) -> None:
    at = Message(*found)
    at.call(outlives_run=outlives_run)
    assert at.tools.goes_on("1", at.records) is goes_on


def test_a_servers_call_that_the_policy_has_approved_goes_on_after_its_run() -> None:
    at = Message(record(**AUTOMATIC), sdk_version=7)
    at.call()
    at.settle()
    at.tools.leave_approved(at.records)
    assert types(at.writer.pause_stopped()) == ["finish-step"]
    assert types(at.go_on("1")) == ["start"]
    assert told(at.writer.tools.output("1", {"paid": 5})) == [("1", {"paid": 5})]


def test_nobody_has_said_what_the_policy_has_decided() -> None:
    at = Message(record(**AUTOMATIC), style="confirmation-tool")
    at.call()
    at.settle()
    assert at.tools.sent_by_client(at.records, {CALL}) == []


def test_a_browsers_call_that_the_policy_has_approved_is_handed_over() -> None:
    at = Message(record(**AUTOMATIC, executor="browser"), sdk_version=7)
    at.call(outlives_run=True)
    out = at.settle()
    assert types(out) == [
        "tool-input-delta",
        "tool-approval-request",
        "tool-approval-response",
        "data-adk-approval",
        "tool-input-available",
    ]
    assert told(out)[-1] == ("1", PAY, {"adk": {"a": 1}})


# -- the confirmation tool, in a live session -------------------------------------------------------------------------


@pytest.mark.parametrize("known", [[], [record()], [record(approved=False, reason="So.")]])
def test_a_question_of_the_confirmation_tool_is_answered_before_the_result(known: list[CallRecord]) -> None:
    at = Message(style="confirmation-tool")
    at.call()
    at.ask()
    at.settle()
    at.records = {found.call: found for found in known}
    out = at.tools.before_results(["1"], at.records)
    is_decided = any(found.approved is not None for found in known)
    assert told(out) == ([("q1", {"confirmed": False, "reason": "So."})] if is_decided else [])
    assert not at.writer.tools.can_take_result("q1")
    assert at.tools.before_results(["1"], at.records) == []


def test_a_large_number_of_an_unrecorded_question_is_shown_as_text() -> None:
    at = Message()
    at.call()
    out = at.ask(question={"toolConfirmation": {"payload": LARGE}})
    assert msgspec.to_builtins(out[-1])["data"] == {"payload": {"amount": str(2**53 + 1)}}


# -- work that goes on ------------------------------------------------------------------------------------------------


def work(call_id: str = "1", state: State = State.APPROVED, **fields: Any) -> CallRecord:
    return record(call_id, state, work_key(CALL).invocation_id, executor="browser", **fields)


def at_work(*records: CallRecord) -> Message:
    """Both calls have returned their first words."""
    at = Message(*records)
    for id in ("1", "2"):
        at.call(id)
        at.writer.tools.output(id, "begun", preliminary=True)
    return at


def test_how_far_work_is_is_shown_at_its_call() -> None:
    at = at_work()
    assert told(at.tools.show_work(work("2", result={"output": "half"}))) == [("2", "half", True)]
    assert told(at.tools.show_work(work("1", result={"output": "half"}))) == [("1", "half", True)]
    assert told(at.tools.show_work(work("1", State.DONE, result={"output": "whole"}))) == [("1", "whole")]
    assert told(at.tools.show_work(work("2", State.DONE, result={"error": "No."}))) == [("2", "No.")]


def test_work_is_shown_where_there_is_something_to_show_and_a_place_for_it() -> None:
    at = at_work()
    assert at.tools.show_work(work("1")) == []
    assert at.tools.show_work(work("3", result={"output": "half"})) == []
    at.tools.show_work(work("1", State.DONE, result={"output": "whole"}))
    assert at.tools.show_work(work("1", result={"output": "half"})) == []


def test_a_message_knows_the_work_of_its_calls() -> None:
    at = at_work()
    left = record("2", State.APPROVED, executor="browser")
    found = [at.tools.has_work(each) for each in (work("1"), work("2"), work("3"), left)]
    assert found == [True, True, False, True]


def test_at_the_end_of_a_run_work_is_told_as_far_as_it_is() -> None:
    ended = work("2", State.DONE, result={"output": "whole"})
    at = at_work(ended)
    assert told(at.end()) == [("2", "whole")]


@pytest.mark.parametrize(
    ("of_work", "shown"),
    [
        (work(), ("1", {"status": "pending"}, True)),
        (work(result={"output": "half"}), ("1", "half", True)),
        (work(state=State.DONE, result={"output": "whole"}), ("1", "whole")),
        (work(state=State.DONE, result={"error": "No."}), ("1", "No.")),
    ],
)
def test_a_run_that_ends_before_its_work_has_a_first_word_ends_no_work(of_work: CallRecord, shown: Any) -> None:
    for records in ((of_work,), (paid("1"), of_work)):
        at = Message(*records)
        at.call()
        assert told(at.end()) == [shown]
        at = Message(*records)
        at.call()
        assert told(at.tools.recorded_end("1", at.records, ["1"]) or []) == [shown]


def test_work_is_not_shown_while_its_call_waits_for_a_person() -> None:
    at = Message(record("1"), work("1"))
    at.call()
    assert at.tools.recorded_end("1", at.records, ["1"]) is None
    assert told(at.end()) == []


def test_at_the_end_of_a_run_work_is_told_and_not_that_its_tool_has_returned() -> None:
    for going_on, shown in ((work("1"), []), (work("1", State.DONE, result={"output": "whole"}), [("1", "whole")])):
        at = at_work(paid("1"), going_on)
        assert told(at.end()) == shown


def test_work_that_has_begun_again_is_at_work_whatever_it_has_said_before() -> None:
    at = Message(work(state=State.STARTED, result={"output": "half"}))
    at.call()
    assert told(at.end()) == [("1", {"status": "pending"}, True)]


@pytest.mark.parametrize("is_closing", [False, True])
@pytest.mark.parametrize("of_work", [work("2"), work("2", result={"output": "half"})], ids=["begun", "half"])
def test_a_denial_comes_with_the_last_word_of_its_step_also_if_that_is_of_work(
    of_work: CallRecord, is_closing: bool
) -> None:
    at = Message(record("1", State.DENIED, approved=False), of_work, record("3"))
    for id in ("1", "2", "3"):
        at.call(id)
    at.result("1")
    out = at.tools.recorded_end("2", at.records, ("1", "2", "3") if is_closing else ())
    assert ("tool-output-denied" in types(out)) is is_closing
