"""The table of a waiting call: its states, and which move leads from which to which. call_record.py makes the moves."""

from enum import StrEnum


class State(StrEnum):
    PENDING = "pending"  # the owner is asked, and has not decided yet
    IN_CHAIN = "in-chain"  # others are asked, one after the other; a worker that knows no chains leaves it alone
    APPROVED = "approved"  # may run once; a browser's call that needs no approval starts here
    DENIED = "denied"
    EXPIRED = "expired"  # the deadline passed first
    CLAIMED = "claimed"  # one run has taken it, and has not started the tool yet
    STARTED = "started"  # from here on the tool may have had its effect
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "outcome-unknown"  # its run was lost after the start; it is never run again
    WITHDRAWN = "withdrawn"  # the model took it back before it began
    UNRECOGNIZED = "unrecognized"  # written by a later version of this library: read, never moved or written

    @classmethod
    def _missing_(cls, value: object) -> "State":
        return cls.UNRECOGNIZED


class Move(StrEnum):
    APPROVE = "approve"
    APPROVE_LINK = "approve link"
    DENY = "deny"
    EXPIRE = "expire"
    CLAIM = "claim"
    START = "start"
    FINISH = "finish"
    FAIL = "fail"
    TAKE_OUTPUT = "take output"
    LOSE_RUN = "lose run"
    GIVE_UP = "give up"
    WITHDRAW = "withdraw"


TABLE: dict[tuple[State, Move], State] = {
    (State.PENDING, Move.APPROVE): State.APPROVED,
    (State.PENDING, Move.DENY): State.DENIED,
    (State.PENDING, Move.EXPIRE): State.EXPIRED,
    (State.PENDING, Move.WITHDRAW): State.WITHDRAWN,
    (State.IN_CHAIN, Move.APPROVE_LINK): State.IN_CHAIN,
    (State.IN_CHAIN, Move.APPROVE): State.APPROVED,
    (State.IN_CHAIN, Move.DENY): State.DENIED,
    (State.IN_CHAIN, Move.EXPIRE): State.EXPIRED,
    (State.IN_CHAIN, Move.WITHDRAW): State.WITHDRAWN,
    (State.APPROVED, Move.CLAIM): State.CLAIMED,
    (State.APPROVED, Move.TAKE_OUTPUT): State.DONE,
    (State.APPROVED, Move.EXPIRE): State.EXPIRED,
    (State.APPROVED, Move.GIVE_UP): State.FAILED,
    (State.APPROVED, Move.WITHDRAW): State.WITHDRAWN,
    (State.CLAIMED, Move.START): State.STARTED,
    (State.CLAIMED, Move.LOSE_RUN): State.APPROVED,
    (State.STARTED, Move.FINISH): State.DONE,
    (State.STARTED, Move.FAIL): State.FAILED,
    (State.STARTED, Move.LOSE_RUN): State.UNKNOWN,
}

FINAL = frozenset(State) - {state for state, _ in TABLE}
UNDECIDED = frozenset({State.PENDING, State.IN_CHAIN})
