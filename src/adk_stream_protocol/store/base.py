"""What a bridge keeps beside ADK's sessions: calls that wait, who decided what, who may run, and what happened.

One contract, kept by every store; tests/store runs the same suite on all of them. A store moves nothing by itself: the
table in protocol/approvals.py says what may come next, and `compare_and_set` makes it so for exactly one of those who
try.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from ..protocol.approvals import Approval, CallKey, ChatKey, NotAllowed


class Lease(NamedTuple):
    """The right to run in a chat, until it is released or expires. The token is never given twice."""

    chat: ChatKey
    token: str


class Snapshot(NamedTuple):
    approvals: Sequence[Approval]
    """In the order in which they were asked."""
    now: float
    """The store's own clock, which all workers share."""

    def find(self, call: CallKey) -> Approval | None:
        return next((approval for approval in self.approvals if approval.call == call), None)


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


class Store(Protocol):
    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        """All calls of a chat, or one."""
        ...

    async def add(self, approval: Approval) -> bool:
        """A new call; False if there is one under its key already."""
        ...

    async def compare_and_set(self, old: Approval, new: Approval, lease: Lease | None = None) -> bool:
        """Put `new` in the place of `old`, unless somebody else was first; with a lease, only while it is held."""
        ...

    async def acquire(self, chat: ChatKey, lasts_s: float) -> Lease | None:
        """The chat's lease, if nobody holds it."""
        ...

    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        """Keep a lease; False if it is somebody else's by now."""
        ...

    async def release(self, lease: Lease) -> None: ...

    async def abandoned(self, after_s: float) -> Sequence[ChatKey]:
        """Chats whose run was lost: a lease that ran out without a release, or an approved call of the server's that
        nobody has taken up for so long."""
        ...

    async def audit(self, chat: ChatKey) -> Sequence[AuditEntry]: ...

    async def forget(self, chat: ChatKey) -> None:
        """The chat's calls and lease. The audit trail stays."""
        ...

    async def aclose(self) -> None: ...


async def advance(
    store: Store,
    chat: ChatKey,
    call: CallKey,
    move: Callable[[Approval, float], Approval],
    lease: Lease | None = None,
) -> Approval:
    """Move a call along its table: `move` gets the record and the time, and is asked again if somebody was faster.

    Raises `NotAllowed` if there is no such call, if the table forbids the move, or if the lease is gone.
    """
    seen: Approval | None = None
    while True:
        snapshot = await store.read(chat, call)
        if not snapshot.approvals:
            raise NotAllowed("unknown call")
        old = snapshot.approvals[0]
        if seen is not None and old.version == seen.version:
            raise NotAllowed("the lease is gone")  # nobody was faster, and still it was not set
        new = move(old, snapshot.now)
        if new is old or await store.compare_and_set(old, new, lease):
            return new
        seen = old


def audit_entry(new: Approval, now: float, *, asked: bool = False) -> AuditEntry:
    return AuditEntry(
        at=now,
        chat=new.chat,
        call=new.call,
        tool=new.tool,
        digest=new.digest,
        state=new.state,
        by=new.run or new.decided_by,
        approved=new.approved,
        reason=new.reason,
        arguments=new.arguments if asked else None,
    )
