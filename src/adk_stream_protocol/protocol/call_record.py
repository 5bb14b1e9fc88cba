"""The life of a call that waits for somebody: one table, and the only functions that move a call along it.

Two kinds of calls wait. A tool of the server's waits for a person's approval; a tool of the browser's waits for the
browser's output, and before that, if it is to be approved, for the person. What is not in the table cannot happen;
what the table allows is guarded here: who decides, in time, on which arguments, and which run holds the call.
"""

from collections.abc import Mapping
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


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything known about one waiting call. `version` counts its moves."""

    chat: ChatKey
    call: CallKey
    tool: str
    arguments: Any
    executor: Literal["server", "browser"] = msgspec.field(name="runs")
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
    lease_token: str | None = msgspec.field(default=None, name="run")
    """The lease of the run that executes the call."""
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
        is_open = self.state is State.PENDING or (self.state is State.APPROVED and self.executor == "browser")
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
        return self.is_decided if self.executor == "server" else self.is_final


Records = Mapping[CallKey, CallRecord]
"""What is recorded of a chat's calls."""


class NotAllowed(Exception):
    """The call is not where this move could begin, or not for whoever asks for it."""


def decide(
    record: CallRecord,
    *,
    by: str,
    approved: bool,
    now: float,
    reason: str | None = None,
    payload: Any = None,
    browser_s: float | None = None,
) -> CallRecord:
    """The person's word. The first one counts; to all others this gives what is recorded. `browser_s`: how long the
    browser has for its output from now on."""
    if by != record.chat.user_id:
        raise NotAllowed("decided by somebody else")
    if record.is_decided:
        return record
    said: dict[str, Any] = {"approved": approved, "decided_at": now, "decided_by": by, "reason": reason}
    if _is_late(record, now):
        return _moved(record, Move.EXPIRE, **said)
    if not approved:
        return _moved(record, Move.DENY, **said)
    browser_deadline = now + browser_s if record.executor == "browser" and browser_s is not None else None
    return _moved(record, Move.APPROVE, **said, payload=payload, browser_deadline=browser_deadline)


def expire(record: CallRecord, *, now: float) -> CallRecord:
    """Let the deadline count, if it has passed."""
    if (record.state, Move.EXPIRE) in TABLE and _is_late(record, now):
        return _moved(record, Move.EXPIRE)
    return record


def expire_unclaimed(record: CallRecord, *, now: float, recover_s: float) -> CallRecord:
    """Let an approval of a server's call lapse that nobody has acted on for so long."""
    is_waiting = record.executor == "server" and record.state is State.APPROVED
    if is_waiting and record.decided_at is not None and now >= record.decided_at + recover_s:
        return _moved(record, Move.EXPIRE)
    return record


def claim(record: CallRecord, *, digest: str, lease_token: str) -> CallRecord:
    """One run takes the call, with the arguments that the person saw and no others."""
    if record.executor != "server" or digest != record.digest:
        raise NotAllowed("not what was approved")
    return _moved(record, Move.CLAIM, lease_token=lease_token)


def start(record: CallRecord, *, lease_token: str) -> CallRecord:
    _require_holder(record, lease_token)
    return _moved(record, Move.START)


def finish(record: CallRecord, *, lease_token: str, result: Any) -> CallRecord:
    _require_holder(record, lease_token)
    return _moved(record, Move.FINISH, result=result)


def fail(record: CallRecord, *, lease_token: str, result: Any) -> CallRecord:
    _require_holder(record, lease_token)
    return _moved(record, Move.FAIL, result=result)


def take_output(record: CallRecord, *, by: str, result: Any, now: float) -> CallRecord:
    """The browser's output, once, and while its time lasts."""
    if record.executor != "browser" or by != record.chat.user_id:
        raise NotAllowed("not the browser's call")
    if record.is_final:
        return record
    if record.state is State.APPROVED and _is_late(record, now):
        return _moved(record, Move.EXPIRE)
    return _moved(record, Move.TAKE_OUTPUT, result=result)


def refuse(record: CallRecord, *, reason: str, now: float) -> CallRecord:
    """Nobody will answer the call any more."""
    user = record.chat.user_id
    if record.state is State.PENDING:
        return decide(record, by=user, approved=False, now=now, reason=reason)
    if record.executor == "browser" and record.state is State.APPROVED:
        return take_output(record, by=user, result={"error": f"Not run: {reason}."}, now=now)
    return record  # its tool is running, or has run


def lose_run(record: CallRecord, *, living_run: str | None) -> CallRecord:
    """The run that held the call is gone, since another one (or none) has its chat now."""
    if (record.state, Move.LOSE_RUN) in TABLE and record.lease_token != living_run:
        return _moved(record, Move.LOSE_RUN, lease_token=None)
    return record


def give_up(record: CallRecord, *, result: Any) -> CallRecord:
    """The run that should have taken the call up ended without it, and has told its client so: nobody does it later."""
    if record.executor == "server" and record.state is State.APPROVED:
        return _moved(record, Move.GIVE_UP, result=result)
    return record


def _is_late(record: CallRecord, now: float) -> bool:
    return record.due_at is not None and now >= record.due_at


def _require_holder(record: CallRecord, lease_token: str) -> None:
    if record.lease_token != lease_token:
        raise NotAllowed("held by another run")


def _moved(record: CallRecord, move: Move, **changes: Any) -> CallRecord:
    state = TABLE.get((record.state, move))
    if state is None:
        raise NotAllowed(f"{move} while {record.state}")
    return msgspec.structs.replace(record, state=state, version=record.version + 1, **changes)
