"""The record of a call that waits for somebody: one table of its states, and the only functions that move it.

Two kinds of calls wait. A tool of the server waits for a person's approval. A tool of the browser waits for the
browser's output, and before that, if it needs an approval, for the person. A move that is not in the table is not
allowed. The functions here check the rest: who decides, whether in time, on which arguments, and under which lease.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import msgspec

from .digest import digest_of_call


class State(StrEnum):
    PENDING = "pending"  # nobody has decided yet
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


class ChatKey(NamedTuple):
    """A chat and its owner."""

    app_name: str
    user_id: str
    chat_id: str


class CallKey(NamedTuple):
    """A call within its chat. Some models reuse call ids in every answer, so the invocation is part of the key."""

    invocation_id: str
    call_id: str


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is known about one waiting call. `version` counts its moves.

    | About | Fields |
    |---|---|
    | the call | `chat`, `call`, `tool`, `arguments`, `executor`, `output_schema`, `message_id`, `prepared` |
    | the question | `asked_at`, `approval_id`, `hint`, `asked_payload`, `deadline`, `browser_deadline` |
    | the answer | `approved`, `decided_at`, `decided_by`, `reason`, `payload` |
    | what came of it | `state`, `version`, `lease_token`, `result`, `delivered` |
    """

    chat: ChatKey
    call: CallKey
    tool: str
    arguments: Any
    executor: Literal["server", "browser"] = msgspec.field(name="runs")
    state: State
    asked_at: float
    approval_id: str | None = None
    """The id under which the person is asked, if there is anything to approve. None for a server's call that ADK
    itself asks about: that has ADK's id."""
    hint: str | None = None
    output_schema: Any = None
    deadline: float | None = None
    """Until when the person may decide."""
    browser_deadline: float | None = None
    """Until when the browser may answer, after it was allowed to act."""
    approved: bool | None = None
    """What the person decided, even if it was too late."""
    decided_at: float | None = None
    decided_by: str | None = None
    reason: str | None = None
    payload: Any = None
    lease_token: str | None = msgspec.field(default=None, name="run")
    """The lease of the run that executes the call."""
    result: Any = None
    version: int = 0
    # Workers of older versions drop the next four fields when they move a call: nothing may depend on them.
    message_id: str | None = None
    """The assistant's message that the call belongs to."""
    prepared: Any = None
    """What the application's `prepare` chose for the run."""
    asked_payload: Any = None
    """What the tool asks the person to fill in."""
    is_nested: bool | None = None
    """An agent that runs as a tool has made the call: only the run that it waits in can continue it."""
    delivered: bool | None = None
    """Whether ADK's session has the outcome, or does not need it any more; None if an older version made the record.
    No move changes it."""

    @property
    def digest(self) -> str:
        return digest_of_call(self.tool, self.arguments)

    @property
    def due_at(self) -> float | None:
        """Until when the person or browser that is asked now may answer."""
        return self.deadline if self.state is State.PENDING else self.browser_deadline

    def waits(self, now: float) -> bool:
        """Whether a person or a browser may still answer."""
        is_open = self.state is State.PENDING or (self.state is State.APPROVED and self.executor == "browser")
        return is_open and not _is_late(self, now)

    @property
    def lacks_result(self) -> bool:
        """Whether the store has a result that it did not read: see `Store.read`."""
        return self.state in (State.DONE, State.FAILED) and self.result is None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def is_decided(self) -> bool:
        """Whether a further decision would change nothing."""
        return self.state is not State.PENDING

    @property
    def is_answered(self) -> bool:
        """Whether the answer is recorded: a person's for a tool of the server, the browser's for its own."""
        return self.is_decided if self.executor == "server" else self.is_final


Records = Mapping[CallKey, CallRecord]
"""What is recorded of a chat's calls."""


class NotAllowed(Exception):
    """The state of the call does not allow this move, or whoever asks for it may not make it."""


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
    """The person's decision. The first one counts; for all others this returns the record as it is. `browser_s`: how
    long the browser has for its output from now on."""
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
    """Expire the call if its deadline has passed."""
    if (record.state, Move.EXPIRE) in TABLE and _is_late(record, now):
        return _moved(record, Move.EXPIRE)
    return record


def expire_unclaimed(record: CallRecord, *, now: float, recover_s: float) -> CallRecord:
    """Expire a server's call that was approved `recover_s` ago or earlier, and that no run has taken."""
    is_waiting = record.executor == "server" and record.state is State.APPROVED
    if is_waiting and record.decided_at is not None and now >= record.decided_at + recover_s:
        return _moved(record, Move.EXPIRE)
    return record


def claim(record: CallRecord, *, digest: str, lease_token: str) -> CallRecord:
    """One run takes the call, with exactly the arguments that the person saw."""
    if record.executor != "server" or digest != record.digest:
        raise NotAllowed("not what was approved")
    return _moved(record, Move.CLAIM, lease_token=lease_token)


def start(record: CallRecord, *, lease_token: str) -> CallRecord:
    _require_lease(record, lease_token)
    return _moved(record, Move.START)


def finish(record: CallRecord, *, lease_token: str, result: Any) -> CallRecord:
    _require_lease(record, lease_token)
    return _moved(record, Move.FINISH, result=result)


def fail(record: CallRecord, *, lease_token: str, result: Any) -> CallRecord:
    _require_lease(record, lease_token)
    return _moved(record, Move.FAIL, result=result)


def take_output(record: CallRecord, *, by: str, result: Any, now: float) -> CallRecord:
    """The browser's output. It counts once, and before the deadline."""
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
    """The run that had taken the call is gone: another one (or none) has the lease of its chat now."""
    if (record.state, Move.LOSE_RUN) in TABLE and record.lease_token != living_run:
        return _moved(record, Move.LOSE_RUN, lease_token=None)
    return record


def give_up(record: CallRecord, *, result: Any) -> CallRecord:
    """The run that should have run the call ended without it, and its client knows: nobody runs it later."""
    if record.executor == "server" and record.state is State.APPROVED:
        return _moved(record, Move.GIVE_UP, result=result)
    return record


def withdraw(record: CallRecord) -> CallRecord:
    """The model that made the call does not want it any more. A call that a run has taken goes on to its end."""
    return _moved(record, Move.WITHDRAW) if (record.state, Move.WITHDRAW) in TABLE else record


def end_nested(record: CallRecord, *, reason: str, now: float) -> CallRecord:
    """The run is over in which the call of a nested agent waited: nobody can continue it."""
    if not record.is_nested or record.is_final:
        return record
    ended = refuse(record, reason=reason, now=now)
    return give_up(ended, result={"response": {"error": f"Not run: {reason}."}, "state": {}})


def _is_late(record: CallRecord, now: float) -> bool:
    return record.due_at is not None and now >= record.due_at


def _require_lease(record: CallRecord, lease_token: str) -> None:
    if record.lease_token != lease_token:
        raise NotAllowed("leased to another run")


def _moved(record: CallRecord, move: Move, **changes: Any) -> CallRecord:
    state = TABLE.get((record.state, move))
    if state is None:
        raise NotAllowed(f"{move} while {record.state}")
    return msgspec.structs.replace(record, state=state, version=record.version + 1, **changes)
