"""The inbox of an approver: the calls of all chats that wait for the approver's decision, and the decisions."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec

from ..adk.calls.client_tools import fits
from ..adk.calls.policy import ApprovalPolicy
from ..adk.translate.approval_card import card_of, chain_of, status_of, time_text
from ..errors import AnotherDigest, MalformedRequest, NotFound, OutputDoesNotFit, RequestTooLarge
from ..limits import Limits, size
from ..protocol import call_record
from ..protocol.answers import MAX_REASON
from ..protocol.approval_chain import GROUP, has_decided
from ..protocol.call_record import CallRecord, NotAllowed
from ..protocol.digest import cannot_be_shown, canonical_json, shown_arguments
from ..protocol.nul import has_nul
from ..store.base import Store, advance

_NO_EDITS = "This call takes no changes: decide without a payload."


@dataclass(frozen=True)
class Approver:
    user: str
    groups: Collection[str] = ()
    """Their names, without the prefix `group:`."""

    @property
    def names(self) -> list[str]:
        own = [] if self.user.startswith(GROUP) else [self.user]
        return [*own, *(GROUP + group for group in self.groups)]


class Said(msgspec.Struct):
    """The body of a decision."""

    approved: bool
    digest: str
    reason: str | None = None
    payload: Any = None


class InboxPage(TypedDict):
    approvals: list[dict[str, Any]]
    cursor: str | None


OnMoved = Callable[[CallRecord], None]


class Inbox:
    def __init__(
        self,
        store: Store,
        app_name: str,
        policy: ApprovalPolicy,
        limits: Limits,
        on_moved: Callable[[CallRecord], None],
    ) -> None:
        """`on_moved`: called when a decision was recorded, or was recorded before."""
        self._store = store
        self._app_name = app_name
        self._policy = policy
        self._limits = limits
        self._on_moved = on_moved

    async def waiting(self, who: Approver, limit: int, cursor: str | None) -> InboxPage:
        page = await self._store.waiting(self._app_name, who.names, min(limit, self._limits.max_listed_chats), cursor)
        shown = [record for record in page.records if _may_decide(record, who)]
        return {"approvals": [_shown(record) for record in shown], "cursor": page.cursor}

    async def decide(self, who: Approver, approval_id: str, body: bytes) -> dict[str, Any]:
        """The approval as it is recorded then."""
        said = self._read(body)
        found = next(iter((await self._store.find_asked(self._app_name, approval_id)).records), None)
        if found is None:
            raise NotFound

        def move(record: CallRecord, now: float) -> CallRecord:
            is_new = said.payload is not None and not _is_as_shown(said.payload, record)
            decided = call_record.decide(
                record,
                by=who.user,
                groups=who.groups,
                approved=said.approved,
                now=now,
                reason=said.reason,
                payload=said.payload if is_new else None,
                digest=said.digest,
                browser_s=self._policy.browser_deadline_s,
            )
            if decided is not record and said.approved and is_new:
                require_edit(record, said.payload)
            return decided

        try:
            decided = await advance(self._store, found.chat, found.call, move)
        except call_record.DigestMismatch:
            raise AnotherDigest from None
        except NotAllowed:
            raise NotFound from None
        self._on_moved(decided)
        return _shown(decided)

    def _read(self, body: bytes) -> Said:
        if len(body) > self._limits.max_output_bytes:
            raise RequestTooLarge(f"The decision is too large: {size(self._limits.max_output_bytes)} are allowed.")
        try:
            said = msgspec.json.decode(body, type=Said)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise MalformedRequest(_WRONG_BODY) from None
        if has_nul([said.payload, said.reason]) or cannot_be_shown(said.payload) is not None:
            raise MalformedRequest(_WRONG_BODY)
        return msgspec.structs.replace(said, reason=(said.reason or "")[:MAX_REASON] or None)


_WRONG_BODY = "A decision is {approved, digest, reason?, payload?}."


def require_edit(record: CallRecord, payload: Any) -> None:
    """Refuse a payload that the tool does not take."""
    if record.edits is None and record.asked_payload is None:
        raise OutputDoesNotFit(_NO_EDITS)
    if not fits(payload, record.edits):
        raise OutputDoesNotFit("The payload does not fit what the tool takes. The call is still open.")


def _is_as_shown(payload: Any, record: CallRecord) -> bool:
    shown = record.asked_payload if record.payload is None else record.payload
    return canonical_json(payload) == canonical_json(shown)


def _may_decide(record: CallRecord, who: Approver) -> bool:
    """The store finds calls by the names of approvers. Nobody decides twice, and owners decide only by their own id."""
    is_owner = who.user == record.chat.user_id
    if has_decided(record.chain or (), who.user):
        return False
    return not is_owner or record.chain is None or who.user in record.waits_for


def _shown(record: CallRecord) -> dict[str, Any]:
    """Exactly what the person decides about, and who has decided so far."""
    about = {
        "id": record.asked_as,
        "user": record.chat.user_id,
        "tool": record.tool,
        "arguments": shown_arguments(record.arguments),
        "digest": record.shown_digest,
        "askedAt": time_text(record.asked_at),
        **card_of(record),
        "status": status_of(record),
    }
    if record.replaces is not None:
        about["replaces"] = record.replaces
    if record.chain is None and record.decided_by is not None:
        about["by"] = record.decided_by
    return {**about, "chain": chain_of(record)} if record.chain is not None else about
