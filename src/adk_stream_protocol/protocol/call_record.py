"""The life of a call that waits for somebody: one table, and the only functions that move a call along it.

Two kinds of calls wait. A tool of the server's waits for a person's approval; a tool of the browser's waits for the
browser's output, and before that, if it is to be approved, for the person. What is not in the table cannot happen;
what the table allows is guarded here: who decides, in time, on which arguments, and which run holds the call.
"""

from enum import StrEnum
from typing import Any, Literal, NamedTuple

import msgspec

from .digest import digest_of_call


class State(StrEnum):
    PENDING = "pending"  # asked, and nobody has decided
    APPROVED = "approved"  # may run once; a browser's call without approval is born here
    DENIED = "denied"
    EXPIRED = "expired"  # the deadline was first
    CLAIMED = "claimed"  # one run has taken it, and has not touched the tool yet
    STARTED = "started"  # the tool may have had its effect from here on
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "outcome-unknown"  # its run was lost after the start: never run again
    UNRECOGNIZED = "unrecognized"  # what a later version of this library wrote: read, and never moved or written

    @classmethod
    def _missing_(cls, value: object) -> "State":
        return cls.UNRECOGNIZED


class Move(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    EXPIRE = "expire"
    CLAIM = "claim"
    START = "start"
    FINISH = "finish"
    FAIL = "fail"
    TAKE_OUTPUT = "take output"
    LOSE_RUN = "lose run"
    GIVE_UP = "give up"


TABLE: dict[tuple[State, Move], State] = {
    (State.PENDING, Move.APPROVE): State.APPROVED,
    (State.PENDING, Move.DENY): State.DENIED,
    (State.PENDING, Move.EXPIRE): State.EXPIRED,
    (State.APPROVED, Move.CLAIM): State.CLAIMED,
    (State.APPROVED, Move.TAKE_OUTPUT): State.DONE,
    (State.APPROVED, Move.EXPIRE): State.EXPIRED,
    (State.APPROVED, Move.GIVE_UP): State.FAILED,
    (State.CLAIMED, Move.START): State.STARTED,
    (State.CLAIMED, Move.LOSE_RUN): State.APPROVED,
    (State.STARTED, Move.FINISH): State.DONE,
    (State.STARTED, Move.FAIL): State.FAILED,
    (State.STARTED, Move.LOSE_RUN): State.UNKNOWN,
}

FINAL = frozenset(State) - {state for state, _ in TABLE}


class ChatKey(NamedTuple):
    """Whose chat it is, and which."""

    app_name: str
    user_id: str
    chat_id: str


class CallKey(NamedTuple):
    """A call within its chat. Some models number their calls anew in every answer, so the invocation belongs to it."""

    invocation_id: str
    call_id: str


class Approval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything known about one waiting call. `version` counts its moves."""

    chat: ChatKey
    call: CallKey
    tool: str
    arguments: Any
    runs: Literal["server", "browser"]
    state: State
    asked_at: float
    approval_id: str | None = None
    """Under which the person is asked, if there is anything to approve. None for a server's call that ADK itself asks
    about: that has ADK's id."""
    hint: str | None = None
    output_schema: Any = None
    deadline: float | None = None
    """Until when the person may decide."""
    browser_deadline: float | None = None
    """Until when the browser may answer, once it may act."""
    approved: bool | None = None
    """What the person said, also when it was too late."""
    decided_at: float | None = None
    decided_by: str | None = None
    reason: str | None = None
    payload: Any = None
    run: str | None = None
    """Which run holds the call."""
    result: Any = None
    version: int = 0
    # Workers of older versions drop these three when they move a call: nothing may depend on them.
    message_id: str | None = None
    """The assistant's message that the call belongs to."""
    prepared: Any = None
    """What the application's `prepare` chose for the run."""
    asked_payload: Any = None
    """What the tool asks the person to fill in."""
    delivered: bool | None = None
    """Whether the outcome stands in ADK's session, or needs to no more; None if an older version has asked. No move
    changes it."""

    @property
    def digest(self) -> str:
        return digest_of_call(self.tool, self.arguments)

    @property
    def due_at(self) -> float | None:
        """Until when whoever is asked now may answer."""
        return self.deadline if self.state is State.PENDING else self.browser_deadline

    def waits(self, now: float) -> bool:
        """Whether somebody is asked, and still has time."""
        is_open = self.state is State.PENDING or (self.state is State.APPROVED and self.runs == "browser")
        return is_open and not _is_late(self, now)

    @property
    def lacks_result(self) -> bool:
        """Whether the store has its result, and did not read it: see `Store.read`."""
        return self.state in (State.DONE, State.FAILED) and self.result is None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def is_decided(self) -> bool:
        """Whether a decision would come too late: it learns what was recorded."""
        return self.state is not State.PENDING

    @property
    def is_answered(self) -> bool:
        """Whether whoever was asked has had their say: a person about a tool of ours, the browser about its own."""
        return self.is_decided if self.runs == "server" else self.is_final


class NotAllowed(Exception):
    """The call is not where this move could begin, or not for whoever asks for it."""


def decide(
    approval: Approval,
    *,
    by: str,
    approved: bool,
    now: float,
    reason: str | None = None,
    payload: Any = None,
    browser_s: float | None = None,
) -> Approval:
    """The person's word. The first one counts; to all others this gives what is recorded. `browser_s`: how long the
    browser has for its output from now on."""
    if by != approval.chat.user_id:
        raise NotAllowed("decided by somebody else")
    if approval.is_decided:
        return approval
    said: dict[str, Any] = {"approved": approved, "decided_at": now, "decided_by": by, "reason": reason}
    if _is_late(approval, now):
        return _moved(approval, Move.EXPIRE, **said)
    if not approved:
        return _moved(approval, Move.DENY, **said)
    browser_deadline = now + browser_s if approval.runs == "browser" and browser_s is not None else None
    return _moved(approval, Move.APPROVE, **said, payload=payload, browser_deadline=browser_deadline)


def expire(approval: Approval, *, now: float) -> Approval:
    """Let the deadline count, if it has passed."""
    if (approval.state, Move.EXPIRE) in TABLE and _is_late(approval, now):
        return _moved(approval, Move.EXPIRE)
    return approval


def expire_unclaimed(approval: Approval, *, now: float, recover_s: float) -> Approval:
    """Let an approval of a server's call lapse that nobody has acted on for so long."""
    is_waiting = approval.runs == "server" and approval.state is State.APPROVED
    if is_waiting and approval.decided_at is not None and now >= approval.decided_at + recover_s:
        return _moved(approval, Move.EXPIRE)
    return approval


def claim(approval: Approval, *, digest: str, run: str) -> Approval:
    """One run takes the call, with the arguments that the person saw and no others."""
    if approval.runs != "server" or digest != approval.digest:
        raise NotAllowed("not what was approved")
    return _moved(approval, Move.CLAIM, run=run)


def start(approval: Approval, *, run: str) -> Approval:
    _require_holder(approval, run)
    return _moved(approval, Move.START)


def finish(approval: Approval, *, run: str, result: Any) -> Approval:
    _require_holder(approval, run)
    return _moved(approval, Move.FINISH, result=result)


def fail(approval: Approval, *, run: str, result: Any) -> Approval:
    _require_holder(approval, run)
    return _moved(approval, Move.FAIL, result=result)


def take_output(approval: Approval, *, by: str, result: Any, now: float) -> Approval:
    """The browser's output, once, and while its time lasts."""
    if approval.runs != "browser" or by != approval.chat.user_id:
        raise NotAllowed("not the browser's call")
    if approval.is_final:
        return approval
    if approval.state is State.APPROVED and _is_late(approval, now):
        return _moved(approval, Move.EXPIRE)
    return _moved(approval, Move.TAKE_OUTPUT, result=result)


def refuse(approval: Approval, *, reason: str, now: float) -> Approval:
    """Nobody will answer the call any more."""
    user = approval.chat.user_id
    if approval.state is State.PENDING:
        return decide(approval, by=user, approved=False, now=now, reason=reason)
    if approval.runs == "browser" and approval.state is State.APPROVED:
        return take_output(approval, by=user, result={"error": f"Not run: {reason}."}, now=now)
    return approval  # its tool is running, or has run


def lose_run(approval: Approval, *, living_run: str | None) -> Approval:
    """The run that held the call is gone, since another one (or none) has its chat now."""
    if (approval.state, Move.LOSE_RUN) in TABLE and approval.run != living_run:
        return _moved(approval, Move.LOSE_RUN, run=None)
    return approval


def give_up(approval: Approval, *, result: Any) -> Approval:
    """The run that should have taken the call up ended without it, and has told its client so: nobody does it later."""
    if approval.runs == "server" and approval.state is State.APPROVED:
        return _moved(approval, Move.GIVE_UP, result=result)
    return approval


def _is_late(approval: Approval, now: float) -> bool:
    return approval.due_at is not None and now >= approval.due_at


def _require_holder(approval: Approval, run: str) -> None:
    if approval.run != run:
        raise NotAllowed("held by another run")


def _moved(approval: Approval, move: Move, **changes: Any) -> Approval:
    state = TABLE.get((approval.state, move))
    if state is None:
        raise NotAllowed(f"{move} while {approval.state}")
    return msgspec.structs.replace(approval, state=state, version=approval.version + 1, **changes)
