"""Who may move a waiting call, until when, on which arguments, and by which run."""

from typing import Any

import msgspec
import pytest

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallRecord, Move, NotAllowed, State
from adk_stream_protocol.protocol.digest import digest_of_call
from protocol.approval_calls import BROWSER, DEADLINE, MOVES, MS, SERVER, changed, claim, decide, take_output


@pytest.mark.parametrize("state", list(State))
def test_nobody_decides_for_somebody_else(state: State) -> None:
    for by in ("eve", "", "Ann", "chat-1", "shop"):
        with pytest.raises(NotAllowed, match=r"^decided by somebody else$"):
            decide(changed(SERVER, state=state), by=by)


@pytest.mark.parametrize("state", list(State))
def test_nobody_answers_for_somebody_elses_browser(state: State) -> None:
    for by in ("eve", "", "Ann", "chat-1", "shop"):
        with pytest.raises(NotAllowed, match=r"^not the browser's call$"):
            take_output(changed(BROWSER, state=state), by=by)


@pytest.mark.parametrize("state", list(State))
def test_a_browser_gives_no_output_for_a_servers_call(state: State) -> None:
    with pytest.raises(NotAllowed, match=r"^not the browser's call$"):
        take_output(changed(SERVER, state=state))


@pytest.mark.parametrize(
    ("now", "approved", "denied"),
    [
        (DEADLINE - MS, State.APPROVED, State.DENIED),
        (DEADLINE, State.EXPIRED, State.EXPIRED),
        (DEADLINE + MS, State.EXPIRED, State.EXPIRED),
    ],
)
@pytest.mark.parametrize("call", [SERVER, BROWSER], ids=["server", "browser"])
def test_a_decision_counts_until_the_deadline(call: CallRecord, now: float, approved: State, denied: State) -> None:
    assert decide(call, True, now=now, browser_s=60.0).state is approved
    assert decide(call, False, now=now, browser_s=60.0).state is denied


@pytest.mark.parametrize("past_ms", [-1, 0, 1])
@pytest.mark.parametrize(
    "call",
    [
        changed(BROWSER, browser_deadline=1.0),
        changed(BROWSER, state=State.APPROVED, deadline=1.0, browser_deadline=DEADLINE),
    ],
    ids=["pending", "approved"],
)
def test_a_waiting_call_expires_from_the_deadline_of_its_state_on(call: CallRecord, past_ms: int) -> None:
    after = call_record.expire(call, now=DEADLINE + past_ms * MS)
    assert after == (call if past_ms < 0 else changed(call, state=State.EXPIRED, version=1))


def test_an_approved_call_of_the_servers_does_not_expire() -> None:
    approved = decide(SERVER, browser_s=60.0)
    assert call_record.expire(approved, now=1e12) is approved


@pytest.mark.parametrize("past_ms", [-1, 0, 1])
def test_an_approval_of_a_servers_call_that_nobody_acts_on_lapses(past_ms: int) -> None:
    approved = decide(SERVER, now=2.0)
    after = call_record.expire_unclaimed(approved, now=62.0 + past_ms * MS, recover_s=60.0)
    if past_ms < 0:
        assert after is approved
    else:
        assert after == changed(approved, state=State.EXPIRED, version=2)


@pytest.mark.parametrize("runs", ["server", "browser"])
@pytest.mark.parametrize("state", list(State))
def test_nothing_else_lapses(state: State, runs: str) -> None:
    call = changed(SERVER, executor=runs, state=state, lease_token="run-1", decided_at=2.0)
    if (state, runs) == (State.APPROVED, "server"):
        call = changed(call, decided_at=None)  # nobody has decided, so no time has begun
    assert call_record.expire_unclaimed(call, now=1e12, recover_s=60.0) is call


@pytest.mark.parametrize("past_ms", [-1, 0, 1])
def test_an_output_counts_until_the_browsers_deadline(past_ms: int) -> None:
    approved = decide(BROWSER, now=2.0, browser_s=60.0)
    after = take_output(approved, now=62.0 + past_ms * MS)
    in_time = changed(approved, state=State.DONE, result="Tokyo", version=2)
    assert after == (in_time if past_ms < 0 else changed(approved, state=State.EXPIRED, version=2))


def test_without_a_deadline_nothing_is_late() -> None:
    for_ever = changed(BROWSER, deadline=None)
    assert call_record.expire(for_ever, now=1e12) is for_ever
    approved = decide(for_ever, now=1e12)
    assert approved.state is State.APPROVED
    assert take_output(approved, now=2e12).state is State.DONE


def test_an_output_before_the_approval_is_refused_also_when_it_is_late() -> None:
    for now in (2.0, DEADLINE):
        with pytest.raises(NotAllowed, match=r"^take output while pending$"):
            take_output(BROWSER, now=now)


@pytest.mark.parametrize(
    "other",
    [
        digest_of_call("pay", {"to": "Bob", "amount": 6}),
        digest_of_call("pay", {"to": "Bob"}),
        digest_of_call("refund", {"to": "Bob", "amount": 5}),
        "",
    ],
)
def test_other_arguments_than_those_approved_are_not_claimed(other: str) -> None:
    with pytest.raises(NotAllowed, match=r"^not what was approved$"):
        claim(decide(SERVER), digest=other)


def test_the_digest_is_that_of_the_tool_and_its_arguments() -> None:
    assert SERVER.digest == digest_of_call("pay", {"amount": 5, "to": "Bob"})
    assert claim(decide(SERVER), digest=SERVER.digest).state is State.CLAIMED


def test_a_run_of_the_server_does_not_claim_the_browsers_call() -> None:
    with pytest.raises(NotAllowed, match=r"^not what was approved$"):
        claim(decide(BROWSER))


@pytest.mark.parametrize("holder", ["run-2", None])
@pytest.mark.parametrize(
    ("move", "state"),
    [(Move.START, State.CLAIMED), (Move.FINISH, State.STARTED), (Move.FAIL, State.STARTED)],
)
def test_only_the_run_that_holds_a_call_moves_it(move: Move, state: State, holder: str | None) -> None:
    with pytest.raises(NotAllowed, match=r"^leased to another run$"):
        MOVES[move](changed(SERVER, state=state, lease_token=holder))


NESTED = {
    "pending": (SERVER, State.DENIED),
    "approved": (decide(SERVER), State.FAILED),
    "the browser's": (decide(BROWSER), State.DONE),
    "started": (changed(SERVER, state=State.STARTED, lease_token="run-1"), State.STARTED),
    "denied": (decide(SERVER, approved=False), State.DENIED),
}


@pytest.mark.parametrize(("call", "state"), NESTED.values(), ids=NESTED)
def test_a_call_of_a_nested_agent_ends_with_the_run_that_it_waited_in(call: CallRecord, state: State) -> None:
    ended = call_record.end_nested(changed(call, is_nested=True), reason="the session has ended", now=2.0)
    assert ended.state is state
    said = (ended.reason or "") + str(ended.result)
    assert ("the session has ended" in said) == (call.state is not state)
    assert call_record.end_nested(call, reason="the session has ended", now=2.0) is call


def test_what_a_nested_call_leaves_is_an_error_and_no_state() -> None:
    ended = call_record.end_nested(changed(decide(SERVER), is_nested=True), reason="it is over", now=2.0)
    assert ended.result == {"response": {"error": "Not run: it is over."}, "state": {}}
    lost = changed(SERVER, state=State.UNKNOWN, is_nested=True)
    assert call_record.end_nested(lost, reason="it is over", now=2.0) is lost


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("call", [SERVER, BROWSER], ids=["the server's", "the browser's"])
def test_only_open_calls_wait_and_only_until_their_deadline(call: CallRecord, state: State) -> None:
    found = changed(call, state=state, browser_deadline=DEADLINE)
    is_open = state in (State.PENDING, State.IN_CHAIN) or (state is State.APPROVED and call is BROWSER)
    assert found.waits(DEADLINE - MS) is is_open
    assert found.waits(DEADLINE) is False


@pytest.mark.parametrize("result", [None, {}], ids=["not read", "read"])
@pytest.mark.parametrize("state", State)
def test_only_ended_calls_lack_a_result_that_was_not_read(state: State, result: object) -> None:
    has_one = state in (State.DONE, State.FAILED)
    assert changed(SERVER, state=state, result=result).lacks_result is (has_one and result is None)


def test_a_browser_call_that_is_refused_has_an_error_for_its_output() -> None:
    refused = call_record.refuse(decide(BROWSER), reason="it is over", now=2.0)
    assert (refused.state, refused.result) == (State.DONE, {"error": "Not run: it is over."})
    expired = changed(BROWSER, state=State.EXPIRED)
    assert call_record.refuse(expired, reason="it is over", now=2.0) is expired


def test_the_lease_is_stored_under_its_old_name() -> None:
    stored = msgspec.json.decode(msgspec.json.encode(changed(SERVER, lease_token="run-1")))
    assert stored["run"] == "run-1"


@pytest.mark.parametrize(
    ("about", "ends"),
    [
        ({}, False),
        ({"is_nested": True}, True),
        ({"made_in": {}}, False),
        ({"made_in": {"delegated": False}}, False),
        ({"made_in": {"something": True}}, False),
        ({"made_in": {"delegated": True}}, True),
    ],
)
def test_only_its_own_run_continues_what_was_made_inside_of_one(about: dict[str, Any], ends: bool) -> None:
    call = changed(SERVER, **about)
    assert call.ends_with_run is ends
    ended = call_record.end_nested(call, reason="the run ended", now=1.0)
    assert (ended is call) is not ends
