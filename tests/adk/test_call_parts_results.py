"""What a client is told of the ends of calls."""

from typing import Any

import pytest

from adk_stream_protocol.adk.translate.call_parts import recorded_chunk
from adk_stream_protocol.protocol.call_record import CallRecord, State
from support.records import paid, record
from support.tool_messages import LARGE, Message, told, types

DENIED = "This call was not run: the user denied it."
EXPIRED = "This call was not run: it expired, because it was not answered or not started in time."
WITHDRAWN = "This call was not run: the model withdrew it before it began."


def played(call_id: str = "1", **fields: Any) -> CallRecord:
    return record(call_id, State.DONE, executor="browser", result={"output": {"plays": 1}}, **fields)


@pytest.mark.parametrize(
    ("found", "type", "shown"),
    [
        (paid(), "tool-output-available", {"paid": 5}),
        (record(state=State.DONE, result={"response": 5}), "tool-output-available", {"result": 5}),
        (record(state=State.FAILED, result={"response": {"error": "No."}}), "tool-output-error", "No."),
        (record(state=State.FAILED, result={"response": {"error": 5}}), "tool-output-error", "5"),
        (
            record(state=State.DONE, result={"response": {"error": "No.", "code": 5}}),
            "tool-output-available",
            {"error": "No.", "code": 5},
        ),
        (played(), "tool-output-available", {"plays": 1}),
        (record(state=State.DONE, executor="browser", result={"output": "This."}), "tool-output-available", "This."),
        (
            record(state=State.DONE, executor="browser", result={"output": {"error": "No."}}),
            "tool-output-available",
            {"error": "No."},
        ),
        (record(state=State.DONE, executor="browser", result={"error": "No."}), "tool-output-error", "No."),
        (
            record(state=State.DONE, result={"response": {"output": 1}, "output": 2}),
            "tool-output-available",
            {"output": 1},
        ),
        (record(state=State.EXPIRED), "tool-output-error", EXPIRED),
        (record(state=State.DENIED), "tool-output-error", DENIED),
        (record(state=State.WITHDRAWN), "tool-output-error", WITHDRAWN),
    ],
)
def test_a_call_came_to_what_the_record_has(found: CallRecord, type: str, shown: Any) -> None:
    chunk = recorded_chunk("1", found)
    assert (types([chunk]), told([chunk])) == ([type], [("1", shown)])


# -- results that come from ADK ---------------------------------------------------------------------------------------


def test_adks_own_event_tells_the_result_of_a_servers_call() -> None:
    at = Message(paid("1"), record("2"))
    for id in ("1", "2", "3"):
        at.call(id)
    assert [at.result(id) for id in ("1", "2", "3", "9")] == [None, None, None, None]


def test_a_browsers_result_is_told_as_it_was_sent() -> None:
    at = Message(played("1"), record("2", executor="browser", state=State.APPROVED))
    at.call("1")
    at.call("2")
    assert told(at.result("1")) == [("1", {"plays": 1})]
    assert at.result("2") is None


def test_a_result_that_the_client_has_is_not_told_again() -> None:
    at = Message(played("1"))
    at.call("1", outlives_run=True)
    at.settle()
    at.go_on("1", known=("1",))
    assert at.result("1") == []
    assert not at.writer.tools.can_take_result("1")


@pytest.mark.parametrize(
    ("state", "approved", "is_denied"),
    [
        (State.DENIED, False, True),
        (State.EXPIRED, False, True),
        (State.EXPIRED, True, False),
        (State.EXPIRED, None, False),
        (State.UNRECOGNIZED, False, False),
        (State.WITHDRAWN, True, False),
        (State.WITHDRAWN, None, False),
    ],
)
def test_a_denial_is_told_as_one(state: State, approved: bool | None, is_denied: bool) -> None:
    at = Message(record(state=state, approved=approved))
    at.call()
    at.ask()
    assert types(at.result()) == (["tool-output-denied"] if is_denied else [])
    if not is_denied:
        assert types(at.tools.recorded_end("1", at.records, ())) == ["tool-output-error"]


def test_a_denial_is_told_in_words_to_clients_that_have_none() -> None:
    at = Message(record(state=State.DENIED, approved=False), style="confirmation-tool", sdk_version=5)
    at.call()
    at.ask()
    at.settle()
    assert told(at.result()) == [("1", DENIED)]


@pytest.mark.parametrize(
    ("end", "told_by"),
    [
        (paid("2"), "the record"),
        (record("2", State.UNKNOWN), "the record"),
        (record("2", State.DENIED, approved=False), "the record"),
        (played("2"), "the record"),
        (played("2"), "ADK"),
    ],
    ids=["done", "unknown", "denied", "known", "known, and in an event"],
)
@pytest.mark.parametrize("is_closing", [False, True])
def test_a_denial_comes_with_the_last_result_of_its_step(end: CallRecord, told_by: str, is_closing: bool) -> None:
    """Clients do not send what they know of other calls while their step holds a denied one."""
    at = Message(record("1", State.DENIED, approved=False), end, record("3"))
    is_known = end.executor == "browser"
    for id in ("1", "2", "3"):
        at.call(id, outlives_run=id == "2" and is_known)
    if is_known:
        at.ask("1")
        at.ask("3")
        at.settle()
        at.go_on("1", "2", "3", known=("2",))
    closing = ("1", "2", "3") if is_closing else ()
    at.result("1")
    tell = at.tools.recorded_end if told_by == "the record" else at.tools.result
    assert ("tool-output-denied" in types(tell("2", at.records, closing))) is is_closing


def test_a_denial_comes_at_once_where_all_results_come_together() -> None:
    at = Message(record("1", State.DENIED, approved=False), record("2"))
    at.call("1")
    at.call("2")
    assert types(at.result("1", ("1", "2"))) == ["tool-output-denied"]


# -- ends that come from the record -----------------------------------------------------------------------------------


def test_what_adk_has_sealed_is_told_if_it_is_recorded() -> None:
    at = Message(paid("1"), record("2"))
    for id in ("1", "2", "3"):
        at.call(id)
    assert told(at.tools.recorded_end("1", at.records, ())) == [("1", {"paid": 5})]
    assert [at.tools.recorded_end(id, at.records, ()) for id in ("2", "3", "9")] == [None, None, None]


def test_at_the_end_of_a_run_what_is_recorded_is_told() -> None:
    at = Message(paid("1"), record("2"), record("3", State.UNKNOWN), record("5", State.APPROVED))
    for id in ("1", "2", "3", "4", "5"):
        at.call(id)
    at.ask("2")
    out = at.end()
    assert [chunk[0] for chunk in told(out)] == ["1", "3"]
    assert types(out) == ["tool-output-available", "tool-output-error"]
    assert types(at.writer.abort())[:2] == ["tool-output-error"] * 2


def test_at_the_end_of_a_run_nothing_is_told_twice() -> None:
    at = Message(paid("1"), paid("2"))
    at.call("1")
    at.call("2")
    at.writer.tools.output("1", {"paid": 5})
    assert [chunk[0] for chunk in told(at.end())] == ["2"]
    assert at.end() == []


def test_at_the_end_of_a_run_what_a_live_session_asked_is_told_first() -> None:
    at = Message(paid("1", approval_id="a1"))
    at.call("1")
    assert types(at.end()) == ["tool-approval-request", "data-adk-approval", "tool-output-available"]


def test_at_the_end_of_a_run_a_held_call_is_shown_before_its_end() -> None:
    at = Message(paid("1"))
    at.call("1", LARGE)
    assert types(at.end()) == ["tool-input-available", "tool-output-available"]
    browsers = Message(record("1", State.EXPIRED, executor="browser", approval_id="a1"))
    browsers.call("1", outlives_run=True)
    assert types(browsers.end()) == [
        "tool-input-delta",
        "tool-approval-request",
        "data-adk-approval",
        "tool-output-error",
    ]


def test_at_the_end_of_a_run_what_the_client_knows_is_not_told() -> None:
    at = Message(played("1"))
    at.call("1", outlives_run=True)
    at.settle()
    at.go_on("1", known=("1",))
    assert at.end() == []
    assert not at.writer.tools.can_take_result("1")


def test_a_call_at_work_waits_for_whoever_goes_on_with_it() -> None:
    at = Message(record("1", State.APPROVED), record("2", State.APPROVED))
    at.call("1")
    at.call("2")
    at.ask("1")
    at.go_on("1")
    at.end()
    assert types(at.writer.error("Stopped.")) == ["error"]
    assert at.writer.tools.can_take_result("1")


def test_a_call_that_is_taken_up_after_all_is_told_its_end() -> None:
    at = Message(record("1"))
    at.call("1")
    at.ask("1")
    at.writer.tools.error("1", "The server stopped.")
    at.settle()
    at.go_on("1")
    at.records = {paid("1").call: paid("1")}
    assert told(at.end()) == [("1", {"paid": 5})]
