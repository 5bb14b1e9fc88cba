"""The record of a call that waits for somebody, and the only functions that move it.

Two kinds of calls wait. A tool of the server waits for a person's approval. A tool of the browser waits for the
browser's output, and before that, if it needs an approval, for the person. A move that is not in the table
(call_states.py) is not allowed. The functions here check the rest: who decides, whether in time, on which arguments,
and under which lease.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from .approval_chain import Chain, names, seat_of, turn_of, with_decision
from .call_keys import CallKey, ChatKey, is_work_key
from .call_states import FINAL, TABLE, UNDECIDED, Move, State
from .digest import digest_of_call


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is known about one waiting call. `version` counts its moves.

    | About | Fields |
    |---|---|
    | the call | `chat`, `call`, `tool`, `arguments`, `executor`, `output_schema` |
    | its run | `message_id`, `prepared`, `sdk_version`, `is_nested`, `made_in` |
    | the question | `asked_at`, `approval_id`, `question_id`, `hint`, `card`, `asked_payload`, `edits` |
    | who answers, until when | `chain`, `deadline`, `browser_deadline` |
    | the answer | `approved`, `decided_at`, `decided_by`, `reason`, `payload`, `replaces` |
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
    chain: Chain | None = None
    """Who decides, if not the owner alone. Only a call in a chain has one: workers of older versions do not move it."""
    replaces: str | None = None
    """The digest of what was shown before the last decision changed it."""
    # Workers of older versions drop the next fields when they move a call: nothing may depend on them.
    message_id: str | None = None
    """The assistant's message that the call belongs to."""
    prepared: Any = None
    """What the application's `prepare` chose for the run."""
    asked_payload: Any = None
    """What the tool asks the person to fill in."""
    question_id: str | None = None
    """The id that ADK's own question has, in request mode."""
    card: Any = None
    """How the question looks, as the application says."""
    edits: Any = None
    """The JSON Schema of what an approver may change, where the tool takes changes."""
    sdk_version: int | None = None
    """Of the client that the call was made for."""
    is_nested: bool | None = None
    """An agent that runs as a tool, or a workflow's node, has made the call. ADK's session has no event of it."""
    made_in: Any = None
    """Of a nested call: the `agent` that made it, the `outer` call that it was made in, and whether it `outlives` a
    run. Of others: whether it is `delegated` (see `GatedCall`)."""
    delivered: bool | None = None
    """Whether ADK's session has the outcome, or does not need it any more; None if an older version made the record.
    No move changes it."""

    @property
    def digest(self) -> str:
        return digest_of_call(self.tool, self.arguments)

    @property
    def shown_digest(self) -> str:
        """Of what the person is shown: the call, and what an approver has changed."""
        return self.digest if self.payload is None else digest_of_call(self.tool, [self.arguments, self.payload])

    @property
    def asked_as(self) -> str | None:
        """The id under which people are asked."""
        return self.approval_id or self.question_id

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Whose decision the call waits for: a user's id, or all whom a link of its chain names."""
        if self.state is State.PENDING:
            return (self.chat.user_id,)
        return self.chain[turn_of(self.chain)].approvers if self.state is State.IN_CHAIN and self.chain else ()

    @property
    def asks_owner(self) -> bool:
        """Whether the chat's owner is or was asked in the chat. An owner counts by id, not by groups. What an approver
        has changed is shown in the inbox alone, and decided there."""
        if self.chain is None:
            return True
        asked = self.chain[: turn_of(self.chain) + 1]
        return self.payload is None and any(names(link.approvers, self.chat.user_id) for link in asked)

    @property
    def owner_said(self) -> bool | None:
        """What the chat's owner has decided, alone or as a link of the chain."""
        if self.chain is None:
            return self.approved
        return next((link.approved for link in self.chain if link.decided_by == self.chat.user_id), None)

    @property
    def due_at(self) -> float | None:
        """Until when the person or browser that is asked now may answer."""
        if self.is_work:
            return 0  # nobody is asked
        return self.browser_deadline if self.is_decided else self.deadline

    @property
    def is_work(self) -> bool:
        """Whether this is the work of a long-running call, whose end only the application reports."""
        return is_work_key(self.call)

    @property
    def ends_with_run(self) -> bool:
        """Whether only the run that it waits in can continue it."""
        return bool(self.is_nested or (self.made_in and self.made_in.get("delegated")))

    def waits(self, now: float) -> bool:
        """Whether a person or a browser may still answer."""
        is_open = not self.is_decided or (self.state is State.APPROVED and self.executor == "browser")
        return is_open and not self.is_work and not _is_late(self, now)

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
        return self.state not in UNDECIDED

    @property
    def is_answered(self) -> bool:
        """Whether the answer is recorded: a person's for a tool of the server, the browser's for its own."""
        return self.is_decided if self.executor == "server" else self.is_final


Records = Mapping[CallKey, CallRecord]
"""What is recorded of a chat's calls."""


class NotAllowed(Exception):
    """The state of the call does not allow this move, or whoever asks for it may not make it."""


class DigestMismatch(NotAllowed):
    """The decision is about something else than what is shown now."""


def decide(
    record: CallRecord,
    *,
    by: str,
    groups: Collection[str] = (),
    approved: bool,
    now: float,
    reason: str | None = None,
    payload: Any = None,
    digest: str | None = None,
    browser_s: float | None = None,
) -> CallRecord:
    """A person's decision. The first one counts; for all others this returns the record as it is. `digest`: of what the
    person was shown, where nobody has compared the client's copy. `browser_s`: how long the browser has for its output
    from now on."""
    if record.chain is None:
        seat = "now" if by == record.chat.user_id else "none"
    else:
        seat = seat_of(record.chain, by, () if by == record.chat.user_id else groups)
    if seat == "none":
        raise NotAllowed("decided by somebody else")
    if record.is_decided or seat == "past":
        return record  # whatever the digest: a repeated edit still has the digest of what it has replaced
    if digest is not None and digest != record.shown_digest:
        raise DigestMismatch("another digest")
    said: dict[str, Any] = {"approved": approved, "decided_at": now, "decided_by": by, "reason": reason}
    if _is_late(record, now):
        return _moved(record, Move.EXPIRE, **said)
    if approved and payload is not None:
        said["payload"] = payload
    if record.chain is not None:
        said |= _in_chain(record, said)
        if approved and (turn := turn_of(said["chain"])) < len(record.chain):
            patience_s = record.chain[turn].deadline_s
            said |= {"approved": None, "deadline": None if patience_s is None else now + patience_s}
            return _moved(record, Move.APPROVE_LINK, **said)
    if not approved:
        return _moved(record, Move.DENY, **said)
    browser_deadline = now + browser_s if record.executor == "browser" and browser_s is not None else None
    return _moved(record, Move.APPROVE, **said, browser_deadline=browser_deadline)


def _in_chain(record: CallRecord, said: dict[str, Any]) -> dict[str, Any]:
    """The chain after a decision, and the digest of what was shown before, if the decision changes that."""
    before = record.shown_digest
    shown = msgspec.structs.replace(record, payload=said.get("payload", record.payload)).shown_digest
    decision = {name: said[name] for name in ("approved", "decided_by", "decided_at", "reason")}
    return {
        "chain": with_decision(record.chain or (), {**decision, "digest": shown}),
        "replaces": before if shown != before else None,
    }


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


def report(record: CallRecord, *, output: Any) -> CallRecord:
    """The application reports how far a long-running call is. After its end this changes nothing."""
    _require_left(record)
    if record.is_final:
        return record
    return msgspec.structs.replace(record, result={"output": output}, version=record.version + 1)


def complete(record: CallRecord, *, result: Any) -> CallRecord:
    """The application reports the end of a long-running call. The first report counts."""
    _require_left(record)
    return record if record.is_final else _moved(record, Move.TAKE_OUTPUT, result=result)


def _require_left(record: CallRecord) -> None:
    if record.executor != "browser" or record.approval_id is not None or record.output_schema is not None:
        raise NotAllowed("not a long-running call")


def refuse(record: CallRecord, *, reason: str, now: float) -> CallRecord:
    """Nobody will answer the call any more."""
    user = record.chat.user_id
    if record.state is State.IN_CHAIN:  # none of its links has said so
        return _moved(record, Move.DENY, approved=False, decided_at=now, decided_by=user, reason=reason)
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
    """The run is over in which the nested call waited: nobody can continue it."""
    if not record.ends_with_run or record.is_final:
        return record
    ended = refuse(record, reason=reason, now=now)
    return give_up(ended, result={"response": {"error": f"Not run: {reason}."}, "state": {}})


def _is_late(record: CallRecord, now: float) -> bool:
    return not record.is_work and record.due_at is not None and now >= record.due_at


def _require_lease(record: CallRecord, lease_token: str) -> None:
    if record.lease_token != lease_token:
        raise NotAllowed("leased to another run")


def _moved(record: CallRecord, move: Move, **changes: Any) -> CallRecord:
    state = TABLE.get((record.state, move))
    if state is None:
        raise NotAllowed(f"{move} while {record.state}")
    return msgspec.structs.replace(record, state=state, version=record.version + 1, **changes)
