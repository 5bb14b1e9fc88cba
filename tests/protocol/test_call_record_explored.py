"""No world that waiting calls can get into breaks a promise, and the walk through them all notices each mistake."""

from collections.abc import Callable
from typing import Any

import pytest

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import TABLE, CallRecord, Move, State
from protocol.approval_worlds import GATED, OWNER, UNGATED, Explorer, World, changed


@pytest.mark.parametrize("first", [GATED, UNGATED], ids=["gated", "ungated"])
def test_no_world_breaks_a_promise_and_every_move_is_made_in_some(first: World) -> None:
    explored = Explorer(first).run()
    assert explored.worlds > 1_000
    of_chains = {State.IN_CHAIN}  # in test_approval_chain_explored.py
    assert explored.moves == {(state, after) for (state, _), after in TABLE.items() if state not in of_chains}


# --- would it notice? Each of these makes one mistake.

Plant = Callable[[pytest.MonkeyPatch], None]


def row(state: State, move: Move, after: State) -> Plant:
    return lambda patch: patch.setitem(TABLE, (state, move), after)


def function(name: str, mistaken: Callable[..., Any]) -> Plant:
    real = getattr(call_record, name)
    return lambda patch: patch.setattr(call_record, name, lambda *args, **given: mistaken(real, *args, **given))


def both(*plants: Plant) -> Plant:
    return lambda patch: [plant(patch) for plant in plants] and None


def never(name: str) -> Plant:
    return lambda patch: patch.setattr(CallRecord, name, property(lambda approval: False))


def as_if(**fields: Any) -> Callable[..., CallRecord]:
    """A move that takes the call for another one, and writes its own fields back."""

    def move(real: Callable[..., CallRecord], approval: CallRecord, **given: Any) -> CallRecord:
        own = {name: getattr(approval, name) for name in fields}
        other = changed(approval, **fields)
        after = real(other, **given)
        return approval if after is other else changed(after, **own)

    return move


def without_row(state: State, move: Move) -> Plant:
    return lambda patch: patch.delitem(TABLE, (state, move))


def forgetting(**fields: Any) -> Callable[..., CallRecord]:
    return lambda real, approval, **given: changed(real(approval, **given), **fields)


PLANTED: dict[str, tuple[Plant, str]] = {
    "claimed without a decision": (row(State.PENDING, Move.CLAIM, State.CLAIMED), "is not the recorded one"),
    "claimed after a denial": (row(State.DENIED, Move.CLAIM, State.CLAIMED), "the first word does not stand"),
    "claimed again after the end": (row(State.DONE, Move.CLAIM, State.CLAIMED), "a final state moved"),
    "claimed again when unknown": (row(State.UNKNOWN, Move.CLAIM, State.CLAIMED), "a lost start is not"),
    "a denial approves": (row(State.PENDING, Move.DENY, State.APPROVED), "the first word does not stand"),
    "an expired call is approved": (row(State.PENDING, Move.EXPIRE, State.APPROVED), "taken without an approval"),
    "a lost start runs again": (row(State.STARTED, Move.LOSE_RUN, State.APPROVED), "a lost start is not"),
    "a lost claim is given up": (row(State.CLAIMED, Move.LOSE_RUN, State.UNKNOWN), "a lost claim was not given back"),
    "the start is not noted": (row(State.CLAIMED, Move.START, State.CLAIMED), "the tool ran twice"),
    "finished before the start": (row(State.CLAIMED, Move.FINISH, State.DONE), "a result without a run"),
    "output without approval": (row(State.PENDING, Move.TAKE_OUTPUT, State.DONE), "an output was taken without"),
    "nothing can be claimed": (without_row(State.APPROVED, Move.CLAIM), "could not be claimed"),
    "nothing can fail": (without_row(State.STARTED, Move.FAIL), "could not go on"),
    "no output can be taken": (without_row(State.APPROVED, Move.TAKE_OUTPUT), "an output in time was not taken"),
    "a withdrawn call is claimed": (row(State.WITHDRAWN, Move.CLAIM, State.CLAIMED), "a withdrawal does not stand"),
    "a withdrawal approves": (row(State.PENDING, Move.WITHDRAW, State.APPROVED), "a withdrawal does not stand"),
    "a withdrawal denies": (row(State.APPROVED, Move.WITHDRAW, State.DENIED), "a withdrawal does not stand"),
    "a started call is withdrawn": (row(State.STARTED, Move.WITHDRAW, State.WITHDRAWN), "a call ran that was"),
    "a claimed call is withdrawn": (row(State.CLAIMED, Move.WITHDRAW, State.WITHDRAWN), "or what a run has"),
    "nothing pending can be withdrawn": (without_row(State.PENDING, Move.WITHDRAW), "could not be withdrawn"),
    "nothing approved can be withdrawn": (without_row(State.APPROVED, Move.WITHDRAW), "could not be withdrawn"),
    "nobody withdraws": (function("withdraw", lambda real, approval: approval), "could not be withdrawn"),
    "the deadline still counts as in time": (
        function("_is_late", lambda real, approval, now: real(approval, now - 1)),
        "taken without an approval",
    ),
    "the tick before the deadline is late": (
        function("_is_late", lambda real, approval, now: real(approval, now + 1)),
        "expired before its time",
    ),
    "an approval lapses before its time": (
        function("expire_unclaimed", lambda real, approval, **given: real(approval, **given | {"recover_s": 2})),
        "expired before its time",
    ),
    "an approval lapses after its time": (
        function("expire_unclaimed", lambda real, approval, **given: real(approval, **given | {"recover_s": 4})),
        "an old approval still counts",
    ),
    "a browser's approval lapses": (
        function("expire_unclaimed", as_if(executor="server")),
        "of the browser's call lapsed",
    ),
    "the server's calls are never late": (
        function("_is_late", lambda real, approval, now: approval.executor == "browser" and real(approval, now)),
        "the tool ran without an approval in time",
    ),
    "an output is never late": (
        function("_is_late", lambda real, approval, now: approval.state is State.PENDING and real(approval, now)),
        "an output was taken too late",
    ),
    "anybody decides": (
        function("decide", lambda real, approval, **given: real(approval, **given | {"by": OWNER})),
        "a stranger moved a call",
    ),
    "anybody answers": (
        function("take_output", lambda real, approval, **given: real(approval, **given | {"by": OWNER})),
        "a stranger moved a call",
    ),
    "nobody is heard": (function("decide", lambda real, approval, **_: approval), "a word in time did not count"),
    "the same word is taken twice": (
        both(never("is_decided"), row(State.APPROVED, Move.APPROVE, State.APPROVED)),
        "a later decision changed something",
    ),
    "a second word is refused": (never("is_decided"), "a later decision was not told"),
    "a second word frees the call": (
        function("decide", lambda real, approval, **given: changed(real(approval, **given), lease_token=None)),
        "a move without a new version",
    ),
    "the word is not written down": (function("decide", forgetting(decided_at=None)), "is not the recorded one"),
    "the result is not written down": (function("finish", forgetting(result=None)), "not that of the run"),
    "the output is not written down": (function("take_output", forgetting(result=None)), "not the one that was taken"),
    "the last output counts": (both(never("is_final"), row(State.DONE, Move.TAKE_OUTPUT, State.DONE)), "two outputs"),
    "any arguments will do": (
        function(
            "claim",
            lambda real, approval, *, digest, lease_token: real(
                approval, digest=approval.digest, lease_token=lease_token
            ),
        ),
        "the tool ran with other arguments",
    ),
    "the server runs the browser's tool": (function("claim", as_if(executor="server")), "the server ran the browser's"),
    "the browser answers for the server": (
        function("take_output", as_if(executor="browser")),
        "a browser answered for",
    ),
    "any run may go on": (function("_require_lease", lambda *_: None), "a run that did not hold it"),
    "a living run is lost": (
        function("lose_run", lambda real, approval, living_run: real(approval, living_run="nobody")),
        "a run was lost that lives",
    ),
    "a move without a version": (
        function("_moved", lambda real, approval, move, **given: changed(real(approval, move, **given), version=0)),
        "a move without a new version",
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_exploration_finds_a_mistake(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, broken_promise = PLANTED[mistake]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=broken_promise):
        Explorer(GATED).run()
