"""What a bridge keeps beside ADK's sessions: calls that wait, who decided what, who may run, and what happened.

One contract, kept by every store; tests/store runs the same suite on all of them. A store moves nothing by itself: the
table in protocol/call_record.py says what may come next, and `compare_and_set` makes it so for exactly one of those who
try.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import msgspec

from ..protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed


class Lease(NamedTuple):
    """The right to run in a chat, until it is released or expires. The token is never given twice."""

    chat: ChatKey
    token: str


class Snapshot(NamedTuple):
    records: Sequence[CallRecord]
    """In the order in which they were asked."""
    now: float
    """The store's own clock, which all workers share."""

    def find(self, call: CallKey) -> CallRecord | None:
        return next((record for record in self.records if record.call == call), None)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the trail: what was asked, decided or run, by whom, when, and on which arguments."""

    at: float
    chat: ChatKey
    call: CallKey
    tool: str
    digest: str
    state: str
    by: str | None = None
    """The person who decided, or the run that held the call."""
    approved: bool | None = None
    reason: str | None = None
    arguments: Any = None
    """As they were asked."""


class Acquired(NamedTuple):
    lease: Lease | None
    """None if somebody else holds the chat."""
    snapshot: Snapshot


class Listed(NamedTuple):
    """What a list says of a chat."""

    title: str | None = None
    """None if none is kept."""
    is_waiting: bool = False
    """Whether somebody is asked for something, and still has time."""


class Store(Protocol):
    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        """All calls of a chat, or one. Of all calls, those that are delivered come without their results: the session
        has them, and a long chat has many."""
        ...

    async def results(self, chat: ChatKey, calls: Collection[CallKey]) -> Mapping[CallKey, Any]:
        """What calls came to, delivered or not."""
        ...

    async def add(self, record: CallRecord) -> bool:
        """A new call, whose outcome is not delivered yet; False if there is one under its key already."""
        ...

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        """Put the last of `steps` in the place of `old`, unless somebody else was first; with a lease, only while it is
        held. Each step is a line of the audit trail. The `delivered` mark stays as it is."""
        ...

    async def acquire(
        self, chat: ChatKey, lasts_s: float, changes: Sequence[tuple[CallRecord, CallRecord]] = ()
    ) -> Acquired:
        """The chat's lease, if nobody holds it, and its calls. `changes` are written in any case, except those that
        somebody has overtaken. All of it is one transaction. Results come as in `read`."""
        ...

    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        """Keep a lease; False if it is somebody else's by now."""
        ...

    async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        """Mark calls of the chat as delivered, whoever holds its lease by now, and give the lease back. `title`: is the
        chat's from now on, unless somebody else has the lease."""
        ...

    async def keep_title(self, chat: ChatKey, title: str) -> bool:
        """For a chat that has none. False, and nothing is kept, if it has one, or was forgotten."""
        ...

    async def overview(self, chats: Collection[ChatKey]) -> Mapping[ChatKey, Listed]:
        """What a list says of these chats, without a look at what their calls are about."""
        ...

    async def abandoned(self, after_s: float) -> Sequence[ChatKey]:
        """Chats whose run was lost: a lease that ran out without a release, or an approved call of the server's that
        nobody has taken up for so long."""
        ...

    async def audit(self, chat: ChatKey) -> Sequence[AuditEntry]: ...

    async def forget(self, lease: Lease) -> bool:
        """The calls of the lease's chat and its title; False, and nothing is forgotten, if the lease is not held. The
        lease and the audit trail stay."""
        ...

    def for_another_loop(self) -> "Store":
        """The same store for another thread's event loop, with connections of its own, which are not made before they
        are needed. Leases are renewed there, however long this loop is busy. Whoever asks for it closes it; a store
        that can be used in any loop gives itself, and is not closed."""
        ...

    async def aclose(self) -> None: ...


def in_brief(record: CallRecord) -> CallRecord:
    """As it is read among others."""
    is_brief = record.result is None or record.delivered is not True
    return record if is_brief else msgspec.structs.replace(record, result=None)


async def load_results(
    store: Store, chat: ChatKey, records: dict[CallKey, CallRecord], calls: Iterable[CallKey]
) -> None:
    """Put in the results that these calls lack."""
    lacking = [call for call in calls if call in records and records[call].lacks_result]
    for place in range(0, len(lacking), _RESULTS_AT_ONCE):
        results = await store.results(chat, lacking[place : place + _RESULTS_AT_ONCE])
        for call, result in results.items():
            records[call] = msgspec.structs.replace(records[call], result=result)


_RESULTS_AT_ONCE = 500

Step = Callable[[CallRecord, float], CallRecord]
"""Gets the record and the time. Gives the same record back if there is nothing to do."""


async def advance(
    store: Store,
    chat: ChatKey,
    call: CallKey,
    *moves: Step,
    lease: Lease | None = None,
    known: Snapshot | None = None,
) -> CallRecord:
    """Move a call along its table, by one move or by several in one write. They are asked again if somebody was faster.

    The first attempt is made on what is `known`, if the call is in it. Raises `NotAllowed` if there is no such call, if
    the table forbids a move, or if the lease is gone.
    """
    tried: CallRecord | None = None
    if known is not None and (old := known.find(call)) is not None:
        with suppress(NotAllowed):  # the call may have moved since: only what is read now is a reason to refuse
            if (new := await _attempt(store, old, known.now, moves, lease)) is not None:
                return new
            tried = old
    while True:
        snapshot = await store.read(chat, call)
        if not snapshot.records:
            raise NotAllowed("unknown call")
        old = snapshot.records[0]
        if tried is not None and old.version == tried.version:
            raise NotAllowed("the lease is gone")  # nobody was faster, and still it was not set
        if (new := await _attempt(store, old, snapshot.now, moves, lease)) is not None:
            return new
        tried = old


async def _attempt(
    store: Store, old: CallRecord, now: float, moves: Sequence[Step], lease: Lease | None
) -> CallRecord | None:
    """None if it could not be set."""
    new, steps = old, list[CallRecord]()
    for move in moves:
        before, new = new, move(new, now)
        if new is not before:
            steps.append(new)
    return new if not steps or await store.compare_and_set(old, *steps, lease=lease) else None


def audit_entry(new: CallRecord, now: float, *, asked: bool = False) -> AuditEntry:
    return AuditEntry(
        at=now,
        chat=new.chat,
        call=new.call,
        tool=new.tool,
        digest=new.digest,
        state=new.state,
        by=new.lease_token or new.decided_by,
        approved=new.approved,
        reason=new.reason,
        arguments=new.arguments if asked else None,
    )
