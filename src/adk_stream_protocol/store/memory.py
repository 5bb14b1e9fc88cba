"""The store of a single process: for one worker, and lost when the process ends."""

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..protocol.call_record import CallKey, CallRecord, ChatKey, State
from .base import STORE_CONTRACT_VERSION, Acquired, AuditEntry, Lease, Listed, Snapshot, audit_entry, in_brief


@dataclass
class _HeldLease:
    token: str
    expires_at: float


class MemoryStore:
    """Stores everything in dictionaries. None of its methods awaits anything, so each of them is atomic."""

    contract_version: int = STORE_CONTRACT_VERSION

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._records: dict[ChatKey, dict[CallKey, CallRecord]] = {}
        self._leases: dict[ChatKey, _HeldLease] = {}
        self._titles: dict[ChatKey, str | None] = {}  # None: the chat was forgotten
        self._audit: dict[ChatKey, list[AuditEntry]] = {}
        self._tokens = itertools.count(1)

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        calls = self._records.get(chat, {})
        if call is None:
            return Snapshot([in_brief(found) for found in calls.values()], self._clock())
        return Snapshot([calls[call]] if call in calls else [], self._clock())

    async def results(self, chat: ChatKey, calls: Collection[CallKey]) -> Mapping[CallKey, Any]:
        known = self._records.get(chat, {})
        return {call: known[call].result for call in calls if call in known}

    async def add(self, record: CallRecord) -> bool:
        calls = self._records.setdefault(record.chat, {})
        if record.call in calls:
            return False
        calls[record.call] = msgspec.structs.replace(record, delivered=False)
        self._note(record, asked=True)
        return True

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        if lease is not None and not (lease.chat == old.chat and self._is_held(lease)):
            return False
        return self._set(old, *steps)

    async def acquire(
        self, chat: ChatKey, lasts_s: float, changes: Sequence[tuple[CallRecord, CallRecord]] = ()
    ) -> Acquired:
        for old, new in changes:
            self._set(old, new)
        held = self._leases.get(chat)
        lease = None
        if held is None or held.expires_at <= self._clock():
            lease = Lease(chat, f"run-{next(self._tokens)}")
            self._leases[chat] = _HeldLease(lease.token, self._clock() + lasts_s)
        return Acquired(lease, await self.read(chat))

    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        held = self._leases.get(lease.chat)
        if held is None or held.token != lease.token:
            return False
        held.expires_at = self._clock() + lasts_s
        return True

    async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        calls = self._records.get(lease.chat, {})
        for call in calls.keys() & set(delivered):
            calls[call] = msgspec.structs.replace(calls[call], delivered=True)
        held = self._leases.get(lease.chat)
        if held is not None and held.token == lease.token:
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
        chats = {chat: None for chat, held in self._leases.items() if held.expires_at <= now}
        for chat, calls in self._records.items():
            if chat not in self._leases and any(_is_abandoned(record, now - after_s) for record in calls.values()):
                chats[chat] = None
        return list(chats)

    async def audit(self, chat: ChatKey) -> Sequence[AuditEntry]:
        return list(self._audit.get(chat, ()))

    async def forget(self, lease: Lease) -> bool:
        if not self._is_held(lease):
            return False
        self._records.pop(lease.chat, None)
        self._titles[lease.chat] = None
        return True

    def for_another_loop(self) -> "MemoryStore":
        """Safe without a lock: the other thread only renews leases, which adds and removes no entry."""
        return self

    async def aclose(self) -> None:
        pass

    def _is_held(self, lease: Lease) -> bool:
        held = self._leases.get(lease.chat)
        return held is not None and held.token == lease.token and held.expires_at > self._clock()

    def _set(self, old: CallRecord, *steps: CallRecord) -> bool:
        calls = self._records.get(old.chat, {})
        stored = calls.get(old.call)
        if stored is None or stored.version != old.version:
            return False
        calls[old.call] = msgspec.structs.replace(steps[-1], delivered=stored.delivered)
        for step in steps:
            self._note(step)
        return True

    def _note(self, record: CallRecord, *, asked: bool = False) -> None:
        self._audit.setdefault(record.chat, []).append(audit_entry(record, self._clock(), asked=asked))


def _is_abandoned(record: CallRecord, before: float) -> bool:
    return record.state is State.APPROVED and record.executor == "server" and (record.decided_at or before) <= before
