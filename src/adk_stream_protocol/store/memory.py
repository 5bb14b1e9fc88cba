"""The store of a single process: for one worker, and lost when the process ends."""

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..protocol.call_record import CallKey, CallRecord, ChatKey, State
from .base import (
    STORE_CONTRACT_VERSION,
    Acquired,
    AuditEntry,
    AuditFilter,
    Lease,
    Listed,
    Snapshot,
    Waiting,
    audit_entry,
    in_brief,
)


@dataclass
class _Undecided:
    """A call that waits for a decision."""

    number: int
    """In the order in which calls were asked."""
    since: float
    is_announced: bool = False


@dataclass
class _StoredLease:
    token: str
    expires_at: float


class MemoryStore:
    """Stores everything in dictionaries. None of its methods awaits anything, so each of them is atomic."""

    contract_version: int = STORE_CONTRACT_VERSION

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._records: dict[ChatKey, dict[CallKey, CallRecord]] = {}
        self._leases: dict[ChatKey, _StoredLease] = {}
        self._titles: dict[ChatKey, str | None] = {}  # None: the chat was forgotten
        self._audit: list[AuditEntry] = []
        self._undecided: dict[tuple[ChatKey, CallKey], _Undecided] = {}
        self._asked_as: dict[str, tuple[ChatKey, CallKey]] = {}
        self._tokens = itertools.count(1)

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        calls = self._records.get(chat, {})
        if call is None:
            lease, now = self._leases.get(chat), self._clock()
            is_leased = lease is not None and lease.expires_at > now
            return Snapshot([in_brief(found) for found in calls.values()], now, is_leased)
        return Snapshot([calls[call]] if call in calls else [], self._clock())

    async def results(self, chat: ChatKey, calls: Collection[CallKey]) -> Mapping[CallKey, Any]:
        known = self._records.get(chat, {})
        return {call: known[call].result for call in calls if call in known}

    async def add(self, record: CallRecord) -> bool:
        calls = self._records.setdefault(record.chat, {})
        if record.call in calls:
            return False
        calls[record.call] = msgspec.structs.replace(record, delivered=False)
        if record.asked_as is not None:
            self._asked_as[record.asked_as] = record.chat, record.call
        self._note_waiting(record)
        self._note(record, asked=True)
        return True

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        if lease is not None and not (lease.chat == old.chat and self._is_current(lease)):
            return False
        return self._set(old, *steps)

    async def acquire(
        self, chat: ChatKey, lasts_s: float, changes: Sequence[tuple[CallRecord, CallRecord]] = ()
    ) -> Acquired:
        for old, new in changes:
            self._set(old, new)
        found = self._leases.get(chat)
        lease = None
        if found is None or found.expires_at <= self._clock():
            lease = Lease(chat, f"run-{next(self._tokens)}")
            self._leases[chat] = _StoredLease(lease.token, self._clock() + lasts_s)
        return Acquired(lease, await self.read(chat))

    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        found = self._leases.get(lease.chat)
        if found is None or found.token != lease.token:
            return False
        found.expires_at = self._clock() + lasts_s
        return True

    async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        calls = self._records.get(lease.chat, {})
        for call in calls.keys() & set(delivered):
            calls[call] = msgspec.structs.replace(calls[call], delivered=True)
        found = self._leases.get(lease.chat)
        if found is not None and found.token == lease.token:
            del self._leases[lease.chat]
            if title is not None:
                self._titles[lease.chat] = title

    async def keep_title(self, chat: ChatKey, title: str) -> bool:
        if chat in self._titles:
            return False
        self._titles[chat] = title
        return True

    async def overview(self, chats: Collection[ChatKey]) -> Mapping[ChatKey, Listed]:
        now = self._clock()

        def waits(chat: ChatKey) -> bool:
            return any(found.waits(now) for found in self._records.get(chat, {}).values())

        return {chat: Listed(self._titles.get(chat), waits(chat)) for chat in chats}

    async def abandoned(self, after_s: float) -> Sequence[ChatKey]:
        now = self._clock()
        chats = {chat: None for chat, found in self._leases.items() if found.expires_at <= now}
        for chat, calls in self._records.items():
            if chat not in self._leases and any(_is_abandoned(record, now, after_s) for record in calls.values()):
                chats[chat] = None
        return list(chats)

    async def waiting(
        self, app_name: str, approvers: Collection[str], limit: int, cursor: str | None = None
    ) -> Waiting:
        now, before = self._clock(), int(cursor) if cursor is not None and cursor.isdecimal() else None
        found: list[tuple[int, CallRecord]] = []
        for (chat, call), waits in self._undecided.items():
            record = self._records[chat][call]
            is_asked = chat.app_name == app_name and not set(record.waits_for).isdisjoint(approvers)
            if is_asked and record.waits(now) and (before is None or waits.number < before):
                found.append((waits.number, record))
        page = sorted(found, reverse=True, key=lambda numbered: numbered[0])[:limit]
        return Waiting([record for _, record in page], now, str(page[-1][0]) if len(found) > limit else None)

    async def find_asked(self, app_name: str, approval_id: str) -> Snapshot:
        chat, call = self._asked_as.get(approval_id, (None, None))
        if chat is None or call is None or chat.app_name != app_name:
            return Snapshot([], self._clock())
        return await self.read(chat, call)

    async def unannounced(self, app_name: str, after_s: float) -> Sequence[CallRecord]:
        now = self._clock()
        left = [
            self._records[chat][call]
            for (chat, call), waits in self._undecided.items()
            if chat.app_name == app_name and not waits.is_announced and waits.since <= now - after_s
        ]
        return [record for record in left if record.waits(now)]

    async def mark_announced(self, record: CallRecord) -> None:
        waits = self._undecided.get((record.chat, record.call))
        if waits is not None and self._records[record.chat][record.call].version == record.version:
            waits.is_announced = True

    async def audit(self, wanted: ChatKey | AuditFilter) -> Sequence[AuditEntry]:
        wanted = AuditFilter(*wanted) if isinstance(wanted, ChatKey) else wanted
        return [entry for entry in self._audit if wanted.wants(entry)]

    async def forget(self, lease: Lease) -> bool:
        if not self._is_current(lease):
            return False
        for call, record in self._records.pop(lease.chat, {}).items():
            self._undecided.pop((lease.chat, call), None)
            self._asked_as.pop(record.asked_as or "", None)
        self._titles[lease.chat] = None
        return True

    def for_another_loop(self) -> "MemoryStore":
        """Safe without a lock: the other thread only renews leases, which adds and removes no entry."""
        return self

    async def aclose(self) -> None:
        pass

    def _is_current(self, lease: Lease) -> bool:
        found = self._leases.get(lease.chat)
        return found is not None and found.token == lease.token and found.expires_at > self._clock()

    def _set(self, old: CallRecord, *steps: CallRecord) -> bool:
        calls = self._records.get(old.chat, {})
        stored = calls.get(old.call)
        if stored is None or stored.version != old.version:
            return False
        calls[old.call] = msgspec.structs.replace(steps[-1], delivered=stored.delivered)
        self._note_waiting(steps[-1])
        for step in steps:
            self._note(step)
        return True

    def _note_waiting(self, record: CallRecord) -> None:
        before = self._undecided.pop((record.chat, record.call), None)
        if not record.is_decided:
            number = before.number if before is not None else next(self._tokens)
            self._undecided[record.chat, record.call] = _Undecided(number, self._clock())

    def _note(self, record: CallRecord, *, asked: bool = False) -> None:
        self._audit.append(audit_entry(record, self._clock(), asked=asked))


def _is_abandoned(record: CallRecord, now: float, after_s: float) -> bool:
    if record.state is State.IN_CHAIN:
        return not record.waits(now)
    before = now - after_s
    return record.state is State.APPROVED and record.executor == "server" and (record.decided_at or before) <= before
