"""What a bridge stores beside ADK's sessions: calls that wait, who decided what, who may run, and what happened.

All stores keep one contract; tests/store runs the same tests on each of them. A store decides nothing by itself: the
table in protocol/call_states.py says which state may follow which, and `compare_and_set` lets exactly one of several
writers make the change.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ..protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed, State

STORE_CONTRACT_VERSION: Final = 2
"""The version of the contract that `Store` describes. It grows when a store that kept the old contract would no longer
be correct. A bridge refuses stores of other versions when it is made."""


class Lease(NamedTuple):
    """The right to run in a chat, until it is released or expires. A token is never used for a second lease."""

    chat: ChatKey
    token: str


class Snapshot(NamedTuple):
    records: Sequence[CallRecord]
    """In the order in which they were added."""
    now: float
    """The store's own clock, which all workers share, in seconds since 1970."""
    is_leased: bool = False
    """Whether somebody has the chat's lease. `read` of a whole chat sets it."""

    def find(self, call: CallKey) -> CallRecord | None:
        return next((record for record in self.records if record.call == call), None)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the audit trail: what was asked, decided or run, by whom, when, and with which arguments.

    | About | Fields |
    |---|---|
    | the call | `chat`, `call`, `tool`, `arguments`, `digest` |
    | what has happened | `at`, `state`, `by` |
    | the question | `approval_id`, `hint`, `card`, `approvers` |
    | the decision | `approved`, `reason`, `link`, `payload`, `shown_digest`, `replaces` |
    """

    at: float
    chat: ChatKey
    call: CallKey
    tool: str
    digest: str
    state: str
    by: str | None = None
    """The person who decided, "by policy", or the token of the lease under which the call ran."""
    approved: bool | None = None
    reason: str | None = None
    arguments: Any = None
    """As the person saw them. Only in the first entry of a call, like the next four fields."""
    approval_id: str | None = None
    """The id under which people were asked."""
    hint: str | None = None
    card: Any = None
    approvers: Sequence[Sequence[str]] | None = None
    """Of each link of the chain; None if the owner is asked."""
    link: int | None = None
    """Which link of the chain has decided, from 0 on."""
    payload: Any = None
    """What the tool asks to be filled in, in the first entry; later, what an approver has changed."""
    shown_digest: str | None = None
    """Of the call with what an approver has changed, if that is something else than `digest`."""
    replaces: str | None = None
    """The digest of what was shown before an approver changed it."""


class AuditFilter(NamedTuple):
    """Which lines of the audit trail are wanted. A field that is None selects nothing: all lines match it."""

    app_name: str | None = None
    user_id: str | None = None
    """The owner of the chat."""
    chat_id: str | None = None
    tool: str | None = None
    since: float | None = None
    until: float | None = None
    """Lines before this time."""

    def wants(self, entry: AuditEntry) -> bool:
        wanted = (self.app_name, self.user_id, self.chat_id, self.tool)
        of_entry = (*entry.chat, entry.tool)
        is_of = all(name in (None, found) for name, found in zip(wanted, of_entry, strict=True))
        return (
            is_of and (self.since is None or entry.at >= self.since) and (self.until is None or entry.at < self.until)
        )


class Waiting(NamedTuple):
    """Calls that wait for somebody's decision, newest first."""

    records: Sequence[CallRecord]
    now: float
    cursor: str | None = None
    """Where the next page begins; None if this is the last one."""


class Acquired(NamedTuple):
    lease: Lease | None
    """None if somebody else has the chat's lease."""
    snapshot: Snapshot


class Listed(NamedTuple):
    """What a list of chats shows of one chat."""

    title: str | None = None
    """None if the store has no title for it."""
    is_waiting: bool = False
    """Whether a call waits for a person or a browser, and its deadline has not passed."""


class Store(Protocol):
    """Where a bridge stores calls, leases, titles and the audit trail. Pass one of your own to `ChatBridge(store=...)`.

    What every store must guarantee:

    - Each method is one transaction: it takes effect as a whole or not at all, also if its caller is cancelled, and no
      other worker sees half of it.
    - What a method has returned is stored: it survives as long as the store promises (`MemoryStore`: the process; a
      database: a restart).
    - There is one clock for all workers, and it is the store's. Deadlines and leases are measured by it.
    - A token of a lease is never used twice.
    - Records come back exactly as they were given, except for `delivered`, which is the store's own mark.
    - Chats are separate: no method reads or changes a chat that it was not asked for, except `abandoned` and those that
      look for what waits, by approver or by id.
    - If the store cannot do its work, the method raises `StoreUnavailable`. The bridge then runs no call that needs a
      record.
    - All use is in one event loop, except for what `for_another_loop` returns.
    """

    contract_version: int
    """The version of this contract that the store implements (see `STORE_CONTRACT_VERSION`). Write the number itself,
    not the constant, so that an upgrade of this package does not change it."""

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        """All calls of a chat, in the order in which they were added; or one call, if there is such a call.

        If all calls are read, those that are delivered come without their results (`in_brief`): ADK's session has the
        results, and a long chat has many. A call that is read alone has its result.
        """
        ...

    async def results(self, chat: ChatKey, calls: Collection[CallKey]) -> Mapping[CallKey, Any]:
        """The results of these calls, delivered or not. Calls that are not stored are left out."""
        ...

    async def add(self, record: CallRecord) -> bool:
        """Store a new call as not delivered, with the first entry of its audit trail (`audit_entry` with `asked`).

        False, and nothing changes, if the chat has a call with this key already.
        """
        ...

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        """Replace the stored record by the last of `steps`, and add an entry to the audit trail for each step.

        False, and nothing changes, if the stored record has another `version` than `old` or is gone; or if a lease is
        given, and it is of another chat, expired, or no longer the chat's lease. The `delivered` mark stays as it is.
        """
        ...

    async def acquire(
        self, chat: ChatKey, lasts_s: float, changes: Sequence[tuple[CallRecord, CallRecord]] = ()
    ) -> Acquired:
        """Take the chat's lease for `lasts_s` seconds if it is free, and read all its calls as `read` does.

        A lease that has expired is free. `changes` are pairs of an old and a new record. They are written whether the
        lease was free or not, each like a `compare_and_set` without a lease: those whose old record has changed are
        left out. The snapshot is taken after them.
        """
        ...

    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        """Let the lease last `lasts_s` seconds from now, also if it has expired. False if the chat has another one."""
        ...

    async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        """Mark calls of the chat as delivered, and give the lease back.

        The marks are set even if somebody else has the lease by now. The title, if there is one, becomes the chat's
        title only if the lease was still the chat's.
        """
        ...

    async def keep_title(self, chat: ChatKey, title: str) -> bool:
        """Store a title for a chat that has none. False, and nothing changes, if it has one or was forgotten."""
        ...

    async def overview(self, chats: Collection[ChatKey]) -> Mapping[ChatKey, Listed]:
        """What a list shows of each of these chats. It must be fast: do not read the arguments and results of calls."""
        ...

    async def waiting(
        self, app_name: str, approvers: Collection[str], limit: int, cursor: str | None = None
    ) -> Waiting:
        """The calls of an application that wait for a decision of one of these approvers (`CallRecord.waits_for`), in
        time, in any chat: those that were asked last come first. `cursor` is that of the previous page. A cursor that
        this store did not make counts as None."""
        ...

    async def find_asked(self, app_name: str, approval_id: str) -> Snapshot:
        """The call that people are or were asked about under this id (`CallRecord.asked_as`), if there is one."""
        ...

    async def unannounced(self, app_name: str, after_s: float) -> Sequence[CallRecord]:
        """The calls that have waited for a decision of the same people for `after_s` seconds, in time, and that were
        not marked as announced meanwhile."""
        ...

    async def mark_announced(self, record: CallRecord) -> None:
        """Store that the people whom this record waits for were notified. Later versions of it are not announced."""
        ...

    async def abandoned(self, after_s: float) -> Sequence[ChatKey]:
        """All chats whose run was lost: the chat's lease has expired and was not released; or nobody has the lease, and
        a call that the server is to run was approved at least `after_s` seconds ago and not claimed; or nobody has the
        lease, and the deadline of a call in a chain has passed."""
        ...

    async def audit(self, wanted: ChatKey | AuditFilter) -> Sequence[AuditEntry]:
        """The audit trail of a chat, or the lines of the whole trail that the filter wants, in the order in which they
        were written. Each line has the store's time."""
        ...

    async def forget(self, lease: Lease) -> bool:
        """Delete the calls and the title of the lease's chat. The lease and the audit trail stay, and `keep_title`
        stores no title for the chat any more. False, and nothing changes, if this is no longer the chat's lease."""
        ...

    def for_another_loop(self) -> "Store":
        """The same store for the event loop of another thread. Leases are renewed there while this loop is busy.

        It has connections of its own, which are opened when they are first needed; the caller closes it. A store that
        can be used in any event loop returns itself, and is then not closed.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections. Work that has begun is finished first."""
        ...


def in_brief(record: CallRecord) -> CallRecord:
    """The record as it is read among all calls of its chat: without its result, if that is delivered."""
    is_brief = record.result is None or record.delivered is not True
    return record if is_brief else msgspec.structs.replace(record, result=None)


async def load_results(
    store: Store, chat: ChatKey, records: dict[CallKey, CallRecord], calls: Iterable[CallKey]
) -> None:
    """Read the results that these calls lack, and put them into `records`."""
    lacking = [call for call in calls if call in records and records[call].lacks_result]
    for place in range(0, len(lacking), _RESULTS_AT_ONCE):
        results = await store.results(chat, lacking[place : place + _RESULTS_AT_ONCE])
        for call, result in results.items():
            records[call] = msgspec.structs.replace(records[call], result=result)


_RESULTS_AT_ONCE = 500

Step = Callable[[CallRecord, float], CallRecord]
"""Takes the record and the store's time. Returns the same record if there is nothing to do."""


async def advance(
    store: Store,
    chat: ChatKey,
    call: CallKey,
    *moves: Step,
    lease: Lease | None = None,
    known: Snapshot | None = None,
) -> CallRecord:
    """Change the state of a call by one move, or by several in one write. If somebody else was faster, the moves are
    tried again on the new record.

    The first attempt uses the record in `known`, if the call is in it. Raises `NotAllowed` if there is no such call, if
    the table forbids a move, or if the lease is gone.
    """
    tried: CallRecord | None = None
    if known is not None and (old := known.find(call)) is not None:
        with suppress(NotAllowed):  # the record may be outdated: only one that is read now is a reason to refuse
            if (new := await _attempt(store, old, known.now, moves, lease)) is not None:
                return new
            tried = old
    while True:
        snapshot = await store.read(chat, call)
        if not snapshot.records:
            raise NotAllowed("unknown call")
        old = snapshot.records[0]
        if tried is not None and old.version == tried.version:
            raise NotAllowed("the lease is gone")  # nobody has changed the record, and still it was not set
        if (new := await _attempt(store, old, snapshot.now, moves, lease)) is not None:
            return new
        tried = old


async def _attempt(
    store: Store, old: CallRecord, now: float, moves: Sequence[Step], lease: Lease | None
) -> CallRecord | None:
    """The new record, or None if the store refused it."""
    new, steps = old, list[CallRecord]()
    for move in moves:
        before, new = new, move(new, now)
        if new is not before:
            steps.append(new)
    return new if not steps or await store.compare_and_set(old, *steps, lease=lease) else None


def audit_entry(new: CallRecord, now: float, *, asked: bool = False) -> AuditEntry:
    is_decision = new.lease_token is None and new.decided_by is not None
    link = next((place for place, each in enumerate(new.chain or ()) if each.decided_by == new.decided_by), None)
    about: dict[str, Any] = {}
    if asked:
        about = {
            "arguments": new.arguments,
            "approval_id": new.asked_as,
            "hint": new.hint,
            "card": new.card,
            "approvers": [list(each.approvers) for each in new.chain] if new.chain else None,
            "payload": new.asked_payload,
        }
    elif is_decision and new.replaces is not None:
        about = {"payload": new.payload, "replaces": new.replaces}
    return AuditEntry(
        at=now,
        chat=new.chat,
        call=new.call,
        tool=new.tool,
        digest=new.digest,
        state=new.state,
        by=new.lease_token or new.decided_by,
        approved=True if is_decision and new.state is State.IN_CHAIN else new.approved,
        reason=new.reason,
        link=link if is_decision else None,
        shown_digest=new.shown_digest if new.shown_digest != new.digest else None,
        **about,
    )
