"""The table of waiting calls, move by move: what may follow what, who may move it, and what is written down."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from adk_stream_protocol.protocol import approvals
from adk_stream_protocol.protocol.approvals import (
    FINAL,
    TABLE,
    Approval,
    CallKey,
    ChatKey,
    Move,
    NotAllowed,
    State,
)
from adk_stream_protocol.protocol.digest import digest_of_call

MS = 0.001
DEADLINE = 600.0
SERVER = Approval(
    chat=ChatKey("shop", "ann", "chat-1"),
    call=CallKey("e-1", "call-1"),
    tool="pay",
    arguments={"to": "Bob", "amount": 5},
    runs="server",
    state=State.PENDING,
    asked_at=1.0,
    deadline=DEADLINE,
)


def changed(approval: Approval, **changes: Any) -> Approval:
    return msgspec.structs.replace(approval, **changes)


BROWSER = changed(SERVER, tool="location", arguments={}, runs="browser", approval_id="approval-1", hint="Where?")

# Written out once more, so that a slip in the table is not taken over by its test.
EXPECTED = {
    ("pending", "approve"): "approved",
    ("pending", "deny"): "denied",
    ("pending", "expire"): "expired",
    ("approved", "claim"): "claimed",
    ("approved", "take output"): "done",
    ("approved", "expire"): "expired",
    ("approved", "give up"): "failed",
    ("claimed", "start"): "started",
    ("claimed", "lose run"): "approved",
    ("started", "finish"): "done",
    ("started", "fail"): "failed",
    ("started", "lose run"): "outcome-unknown",
}
FINAL_STATES = {"denied", "expired", "done", "failed", "outcome-unknown"}


def decide(approval: Approval, approved: bool = True, **given: Any) -> Approval:
    return approvals.decide(approval, **{"by": "ann", "approved": approved, "now": 2.0, **given})


def claim(approval: Approval, **given: Any) -> Approval:
    return approvals.claim(approval, **{"digest": approval.digest, "run": "run-1", **given})


def take_output(approval: Approval, **given: Any) -> Approval:
    return approvals.take_output(approval, **{"by": "ann", "result": "Tokyo", "now": 2.0, **given})


# Each move as somebody makes it who may: only the table stands in the way.
MOVES: dict[Move, Callable[[Approval], Approval]] = {
    Move.APPROVE: decide,
    Move.DENY: lambda approval: decide(approval, approved=False),
    Move.EXPIRE: lambda approval: approvals.expire(approval, now=DEADLINE),
    Move.CLAIM: claim,
    Move.START: lambda approval: approvals.start(approval, run="run-1"),
    Move.FINISH: lambda approval: approvals.finish(approval, run="run-1", result="paid"),
    Move.FAIL: lambda approval: approvals.fail(approval, run="run-1", result="no funds"),
    Move.TAKE_OUTPUT: take_output,
    Move.LOSE_RUN: lambda approval: approvals.lose_run(approval, living_run="run-2"),
    Move.GIVE_UP: lambda approval: approvals.give_up(approval, result="not run"),
}


def off_the_table(call: Approval, move: Move) -> Approval | str:
    """Whoever comes too late is told what is recorded; whoever would act on it is refused."""
    learns = {"approve", "deny", "expire", "lose run", "give up"} | (
        {"take output"} if call.state.value in FINAL_STATES else set()
    )
    return call if move.value in learns else f"{move.value} while {call.state.value}"


def attempt(move: Move, call: Approval) -> Approval | str:
    try:
        return MOVES[move](call)
    except NotAllowed as refusal:
        return str(refusal)


@pytest.mark.parametrize("move", list(Move))
@pytest.mark.parametrize("state", list(State))
def test_a_call_moves_as_the_table_says_and_not_otherwise(state: State, move: Move) -> None:
    only = {Move.CLAIM: [SERVER], Move.GIVE_UP: [SERVER], Move.TAKE_OUTPUT: [BROWSER]}
    kinds = only.get(move, [SERVER, BROWSER])
    for kind in kinds:
        call = changed(kind, state=state, run="run-1", version=7, browser_deadline=DEADLINE)
        after = attempt(move, call)
        expected = EXPECTED.get((state.value, move.value))
        if expected is None:
            told = off_the_table(call, move)
            assert after == told
            assert (after is call) == (told is call)
        else:
            assert isinstance(after, Approval)
            assert (after.state.value, after.version) == (expected, 8)


def test_the_table_is_the_one_that_is_documented() -> None:
    assert {(state.value, move.value): after.value for (state, move), after in TABLE.items()} == EXPECTED
    assert {state.value for state in FINAL} == FINAL_STATES


@pytest.mark.parametrize("state", list(State))
def test_a_call_knows_whether_it_is_final_and_whether_it_is_decided(state: State) -> None:
    call = changed(SERVER, state=state)
    assert call.is_final is (state.value in FINAL_STATES)
    assert call.is_decided is (state.value != "pending")
    assert call.is_answered is call.is_decided


@pytest.mark.parametrize("state", list(State))
def test_a_browsers_call_is_answered_when_nothing_can_come_of_it_any_more(state: State) -> None:
    assert changed(BROWSER, state=state).is_answered is (state.value in FINAL_STATES)


# --- what is recorded


def test_an_approval_of_a_servers_call_is_recorded_and_sets_it_no_deadline() -> None:
    moved = decide(SERVER, now=5.0, reason="It is due.", payload={"limit": 9}, browser_s=60.0)
    assert moved == changed(
        SERVER,
        state=State.APPROVED,
        approved=True,
        decided_at=5.0,
        decided_by="ann",
        reason="It is due.",
        payload={"limit": 9},
        browser_deadline=None,
        version=1,
    )


@pytest.mark.parametrize(("browser_s", "deadline"), [(60.0, 65.0), (0.0, 5.0), (None, None)])
def test_an_approval_of_a_browsers_call_gives_the_browser_its_own_time(
    browser_s: float | None, deadline: float | None
) -> None:
    moved = decide(BROWSER, now=5.0, browser_s=browser_s)
    assert moved == changed(
        BROWSER,
        state=State.APPROVED,
        approved=True,
        decided_at=5.0,
        decided_by="ann",
        browser_deadline=deadline,
        version=1,
    )


@pytest.mark.parametrize("call", [SERVER, BROWSER], ids=["server", "browser"])
def test_a_denial_is_recorded_with_its_reason_and_without_a_payload(call: Approval) -> None:
    moved = decide(call, approved=False, now=5.0, reason="Too much.", payload="no", browser_s=60.0)
    assert moved == changed(
        call,
        state=State.DENIED,
        approved=False,
        decided_at=5.0,
        decided_by="ann",
        reason="Too much.",
        version=1,
    )


@pytest.mark.parametrize("approved", [True, False])
def test_a_word_that_comes_too_late_is_recorded_and_does_not_count(approved: bool) -> None:
    moved = decide(BROWSER, approved, now=DEADLINE, reason="Sorry.", payload="late", browser_s=60.0)
    assert moved == changed(
        BROWSER,
        state=State.EXPIRED,
        approved=approved,
        decided_at=DEADLINE,
        decided_by="ann",
        reason="Sorry.",
        version=1,
    )


def test_a_deadline_that_passes_says_nothing_in_the_persons_name() -> None:
    assert approvals.expire(SERVER, now=DEADLINE) == changed(SERVER, state=State.EXPIRED, version=1)


def test_the_life_of_a_servers_call_is_recorded_step_by_step() -> None:
    approved = decide(SERVER)
    claimed = claim(approved)
    assert claimed == changed(approved, state=State.CLAIMED, run="run-1", version=2)
    started = approvals.start(claimed, run="run-1")
    assert started == changed(claimed, state=State.STARTED, version=3)
    done = approvals.finish(started, run="run-1", result={"paid": 5})
    assert done == changed(started, state=State.DONE, result={"paid": 5}, version=4)
    failed = approvals.fail(started, run="run-1", result={"error": "no funds"})
    assert failed == changed(started, state=State.FAILED, result={"error": "no funds"}, version=4)


def test_a_browsers_output_is_recorded_once_and_told_to_the_second() -> None:
    approved = decide(BROWSER, browser_s=60.0)
    done = take_output(approved, result="Tokyo")
    assert done == changed(approved, state=State.DONE, result="Tokyo", version=2)
    assert take_output(done, result="Osaka", now=1e9) is done


def test_a_browsers_call_without_approval_takes_its_output_at_once() -> None:
    born_approved = changed(BROWSER, state=State.APPROVED, approval_id=None)
    assert take_output(born_approved) == changed(born_approved, state=State.DONE, result="Tokyo", version=1)


@pytest.mark.parametrize("living_run", ["run-2", None])
def test_a_call_whose_run_is_lost_before_the_start_may_be_claimed_again(living_run: str | None) -> None:
    claimed = claim(decide(SERVER))
    free = approvals.lose_run(claimed, living_run=living_run)
    assert free == changed(claimed, state=State.APPROVED, run=None, version=3)
    assert claim(free, run="run-2") == changed(free, state=State.CLAIMED, run="run-2", version=4)


def test_a_call_whose_run_is_lost_after_the_start_is_never_claimed_again() -> None:
    started = approvals.start(claim(decide(SERVER)), run="run-1")
    unknown = approvals.lose_run(started, living_run="run-2")
    assert unknown == changed(started, state=State.UNKNOWN, run=None, version=4)
    with pytest.raises(NotAllowed, match=r"^claim while outcome-unknown$"):
        claim(unknown, run="run-2")


@pytest.mark.parametrize("state", [State.CLAIMED, State.STARTED])
def test_a_run_that_lives_is_not_lost(state: State) -> None:
    held = changed(SERVER, state=state, run="run-1")
    assert approvals.lose_run(held, living_run="run-1") is held


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_second_decision_is_told_the_first_outcome(first: bool, second: bool) -> None:
    decided = decide(SERVER, first, now=2.0)
    assert decide(decided, second, now=3.0, reason="I changed my mind.", payload="x", browser_s=60.0) is decided
    assert decide(decided, second, now=DEADLINE + 1) is decided


# --- who, in time, on which arguments, by which run


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
def test_a_decision_counts_until_the_deadline(call: Approval, now: float, approved: State, denied: State) -> None:
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
def test_a_waiting_call_expires_from_the_deadline_of_its_state_on(call: Approval, past_ms: int) -> None:
    after = approvals.expire(call, now=DEADLINE + past_ms * MS)
    assert after == (call if past_ms < 0 else changed(call, state=State.EXPIRED, version=1))


def test_an_approved_call_of_the_servers_does_not_expire() -> None:
    approved = decide(SERVER, browser_s=60.0)
    assert approvals.expire(approved, now=1e12) is approved


@pytest.mark.parametrize("past_ms", [-1, 0, 1])
def test_an_output_counts_until_the_browsers_deadline(past_ms: int) -> None:
    approved = decide(BROWSER, now=2.0, browser_s=60.0)
    after = take_output(approved, now=62.0 + past_ms * MS)
    in_time = changed(approved, state=State.DONE, result="Tokyo", version=2)
    assert after == (in_time if past_ms < 0 else changed(approved, state=State.EXPIRED, version=2))


def test_without_a_deadline_nothing_is_late() -> None:
    for_ever = changed(BROWSER, deadline=None)
    assert approvals.expire(for_ever, now=1e12) is for_ever
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
    with pytest.raises(NotAllowed, match=r"^held by another run$"):
        MOVES[move](changed(SERVER, state=state, run=holder))


# --- how it is kept


def test_a_fresh_call_has_nothing_on_record_but_what_was_asked() -> None:
    asked = {
        "chat": SERVER.chat,
        "call": SERVER.call,
        "tool": "pay",
        "arguments": {},
        "runs": "server",
        "state": State.PENDING,
        "asked_at": 1.0,
    }
    fresh = Approval(**asked)
    others = {name: getattr(fresh, name) for name in Approval.__struct_fields__ if name not in asked}
    assert others.pop("version") == 0
    assert set(others.values()) == {None}
    assert msgspec.json.encode(fresh) == (
        b'{"chat":["shop","ann","chat-1"],"call":["e-1","call-1"],"tool":"pay","arguments":{},"runs":"server",'
        b'"state":"pending","asked_at":1.0}'
    )


def test_a_call_is_read_back_from_a_store_as_it_was() -> None:
    approved = decide(BROWSER, browser_s=60.0, reason="Yes.", payload=[1])
    for call in (SERVER, approved, take_output(approved), approvals.start(claim(decide(SERVER)), run="run-1")):
        assert msgspec.json.decode(msgspec.json.encode(call), type=Approval) == call


def test_the_names_of_states_stay_since_stores_keep_them() -> None:
    names = ["pending", "approved", "denied", "expired", "claimed", "started", "done", "failed", "outcome-unknown"]
    assert [state.value for state in State] == names


def test_a_record_is_never_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        SERVER.state = State.APPROVED  # pyright: ignore


def test_a_record_is_written_with_the_names_of_its_fields() -> None:
    with pytest.raises(TypeError):
        Approval(SERVER.chat, SERVER.call, "pay", {}, "server", State.PENDING, 1.0)  # pyright: ignore


def test_a_call_that_is_given_up_says_why_and_a_browsers_call_never_is() -> None:
    approved = decide(SERVER)
    given_up = approvals.give_up(approved, result="not run")
    assert given_up == changed(approved, state=State.FAILED, result="not run", version=2)
    browsers = decide(BROWSER)
    assert approvals.give_up(browsers, result="not run") is browsers
