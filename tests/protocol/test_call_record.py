"""The table of waiting calls, move by move: what may follow what, who may move it, and what is written down."""

import msgspec
import pytest

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.approval_chain import Chain
from adk_stream_protocol.protocol.call_record import FINAL, TABLE, CallRecord, Move, NotAllowed, State
from protocol.approval_calls import (
    BROWSER,
    DEADLINE,
    MOVES,
    ONE_LINK,
    SERVER,
    TWO_LINKS,
    changed,
    claim,
    decide,
    take_output,
)

# Written out once more, so that a slip in the table is not taken over by its test.
EXPECTED = {
    ("pending", "approve"): "approved",
    ("pending", "deny"): "denied",
    ("pending", "expire"): "expired",
    ("pending", "withdraw"): "withdrawn",
    ("in-chain", "approve link"): "in-chain",
    ("in-chain", "approve"): "approved",
    ("in-chain", "deny"): "denied",
    ("in-chain", "expire"): "expired",
    ("in-chain", "withdraw"): "withdrawn",
    ("approved", "claim"): "claimed",
    ("approved", "take output"): "done",
    ("approved", "expire"): "expired",
    ("approved", "give up"): "failed",
    ("approved", "withdraw"): "withdrawn",
    ("claimed", "start"): "started",
    ("claimed", "lose run"): "approved",
    ("started", "finish"): "done",
    ("started", "fail"): "failed",
    ("started", "lose run"): "outcome-unknown",
}
FINAL_STATES = {"denied", "expired", "done", "failed", "outcome-unknown", "withdrawn", "unrecognized"}


def off_the_table(call: CallRecord, move: Move) -> CallRecord | str:
    """Whoever comes too late is told what is recorded; whoever would act on it is refused."""
    learns = {"approve", "deny", "expire", "lose run", "give up", "withdraw"} | (
        {"take output"} if call.state.value in FINAL_STATES else set()
    )
    learns |= {"approve link"} if call.is_decided else set()
    return call if move.value in learns else f"{move.value} while {call.state.value}"


def attempt(move: Move, call: CallRecord) -> CallRecord | str:
    try:
        return MOVES[move](call)
    except NotAllowed as refusal:
        return str(refusal)


def chain_for(state: State, move: Move) -> Chain | None:
    if move is Move.APPROVE_LINK:
        return TWO_LINKS
    return ONE_LINK if state is State.IN_CHAIN else None


@pytest.mark.parametrize("move", list(Move))
@pytest.mark.parametrize("state", list(State))
def test_a_call_moves_as_the_table_says_and_not_otherwise(state: State, move: Move) -> None:
    only = {Move.CLAIM: [SERVER], Move.GIVE_UP: [SERVER], Move.TAKE_OUTPUT: [BROWSER]}
    kinds = only.get(move, [SERVER, BROWSER])
    for kind in kinds:
        call = changed(kind, state=state, lease_token="run-1", version=7, browser_deadline=DEADLINE)
        call = changed(call, chain=chain_for(state, move))
        after = attempt(move, call)
        expected = EXPECTED.get((state.value, move.value))
        if expected is None:
            told = off_the_table(call, move)
            assert after == told
            assert (after is call) == (told is call)
        else:
            assert isinstance(after, CallRecord)
            assert (after.state.value, after.version) == (expected, 8)


def test_the_table_is_the_one_that_is_documented() -> None:
    assert {(state.value, move.value): after.value for (state, move), after in TABLE.items()} == EXPECTED
    assert {state.value for state in FINAL} == FINAL_STATES


@pytest.mark.parametrize("state", list(State))
def test_a_call_knows_whether_it_is_final_and_whether_it_is_decided(state: State) -> None:
    call = changed(SERVER, state=state)
    assert call.is_final is (state.value in FINAL_STATES)
    assert call.is_decided is (state.value not in ("pending", "in-chain"))
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
def test_a_denial_is_recorded_with_its_reason_and_without_a_payload(call: CallRecord) -> None:
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
    assert call_record.expire(SERVER, now=DEADLINE) == changed(SERVER, state=State.EXPIRED, version=1)


@pytest.mark.parametrize("call", [SERVER, decide(SERVER), BROWSER, decide(BROWSER, browser_s=60.0)])
def test_a_withdrawal_keeps_what_the_person_said_and_is_told_to_whoever_answers_later(call: CallRecord) -> None:
    withdrawn = call_record.withdraw(call)
    assert withdrawn == changed(call, state=State.WITHDRAWN, version=call.version + 1)
    assert decide(withdrawn, approved=True) is withdrawn
    if call.executor == "browser":
        assert take_output(withdrawn) is withdrawn


def test_the_life_of_a_servers_call_is_recorded_step_by_step() -> None:
    approved = decide(SERVER)
    claimed = claim(approved)
    assert claimed == changed(approved, state=State.CLAIMED, lease_token="run-1", version=2)
    started = call_record.start(claimed, lease_token="run-1")
    assert started == changed(claimed, state=State.STARTED, version=3)
    done = call_record.finish(started, lease_token="run-1", result={"paid": 5})
    assert done == changed(started, state=State.DONE, result={"paid": 5}, version=4)
    failed = call_record.fail(started, lease_token="run-1", result={"error": "no funds"})
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
    free = call_record.lose_run(claimed, living_run=living_run)
    assert free == changed(claimed, state=State.APPROVED, lease_token=None, version=3)
    assert claim(free, lease_token="run-2") == changed(free, state=State.CLAIMED, lease_token="run-2", version=4)


def test_a_call_whose_run_is_lost_after_the_start_is_never_claimed_again() -> None:
    started = call_record.start(claim(decide(SERVER)), lease_token="run-1")
    unknown = call_record.lose_run(started, living_run="run-2")
    assert unknown == changed(started, state=State.UNKNOWN, lease_token=None, version=4)
    with pytest.raises(NotAllowed, match=r"^claim while outcome-unknown$"):
        claim(unknown, lease_token="run-2")


@pytest.mark.parametrize("state", [State.CLAIMED, State.STARTED])
def test_a_run_that_lives_is_not_lost(state: State) -> None:
    held = changed(SERVER, state=state, lease_token="run-1")
    assert call_record.lose_run(held, living_run="run-1") is held


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_second_decision_is_told_the_first_outcome(first: bool, second: bool) -> None:
    decided = decide(SERVER, first, now=2.0)
    assert decide(decided, second, now=3.0, reason="I changed my mind.", payload="x", browser_s=60.0) is decided
    assert decide(decided, second, now=DEADLINE + 1) is decided


# --- how it is kept


def test_a_fresh_call_has_nothing_on_record_but_what_was_asked() -> None:
    asked = {
        "chat": SERVER.chat,
        "call": SERVER.call,
        "tool": "pay",
        "arguments": {},
        "executor": "server",
        "state": State.PENDING,
        "asked_at": 1.0,
    }
    fresh = CallRecord(**asked)
    others = {name: getattr(fresh, name) for name in CallRecord.__struct_fields__ if name not in asked}
    assert others.pop("version") == 0
    assert set(others.values()) == {None}
    assert msgspec.json.encode(fresh) == (
        b'{"chat":["shop","ann","chat-1"],"call":["e-1","call-1"],"tool":"pay","arguments":{},"runs":"server",'
        b'"state":"pending","asked_at":1.0}'
    )


def test_a_call_is_read_back_from_a_store_as_it_was() -> None:
    approved = decide(BROWSER, browser_s=60.0, reason="Yes.", payload=[1])
    for call in (
        SERVER,
        approved,
        take_output(approved),
        call_record.start(claim(decide(SERVER)), lease_token="run-1"),
    ):
        assert msgspec.json.decode(msgspec.json.encode(call), type=CallRecord) == call


def test_the_names_of_states_stay_since_stores_keep_them() -> None:
    names = [
        "pending",
        "in-chain",
        "approved",
        "denied",
        "expired",
        "claimed",
        "started",
        "done",
        "failed",
        "outcome-unknown",
    ]
    names.append("withdrawn")
    assert [state.value for state in State if state is not State.UNRECOGNIZED] == names


def test_a_state_of_a_later_version_is_read_and_can_only_be_told() -> None:
    written = msgspec.json.encode(SERVER).replace(b'"pending"', b'"postponed"')
    call = msgspec.json.decode(written, type=CallRecord)
    assert call == changed(SERVER, state=State.UNRECOGNIZED)
    assert State.UNRECOGNIZED == "unrecognized"
    assert (call.is_decided, call.is_answered, call.is_final) == (True, True, True)


def test_no_move_leads_to_what_only_a_later_version_knows() -> None:
    assert State.UNRECOGNIZED not in TABLE.values()
    assert State.UNRECOGNIZED not in {state for state, _ in TABLE}


def test_no_move_changes_whether_the_outcome_was_delivered_nor_what_was_kept_with_the_question() -> None:
    kept = {"message_id": "message-1", "prepared": {"model": "a"}, "asked_payload": {"limit": 1}, "delivered": False}
    for state, move in TABLE:
        kind = BROWSER if move is Move.TAKE_OUTPUT else SERVER
        call = changed(kind, state=state, lease_token="run-1", browser_deadline=DEADLINE, **kept)
        call = changed(call, chain=chain_for(state, move))
        after = MOVES[move](call)
        assert after is not call
        assert {name: getattr(after, name) for name in kept} == kept


def test_a_record_is_never_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        SERVER.state = State.APPROVED  # pyright: ignore


def test_a_record_is_written_with_the_names_of_its_fields() -> None:
    with pytest.raises(TypeError):
        CallRecord(SERVER.chat, SERVER.call, "pay", {}, "server", State.PENDING, 1.0)  # pyright: ignore


def test_a_call_that_is_given_up_says_why_and_a_browsers_call_never_is() -> None:
    approved = decide(SERVER)
    given_up = call_record.give_up(approved, result="not run")
    assert given_up == changed(approved, state=State.FAILED, result="not run", version=2)
    browsers = decide(BROWSER)
    assert call_record.give_up(browsers, result="not run") is browsers
