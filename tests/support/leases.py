"""Workers that hold chats, with a store that fails where it is told to."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.chat.leases import Change, ChatLeases
from adk_stream_protocol.chunk_log import ChunkLog
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.store.base import Acquired, Lease, Snapshot
from adk_stream_protocol.store.memory import MemoryStore

from .records import CHAT, record

LEASE_S = 30


class Store(MemoryStore):
    """On the loop's own clock. Fails where it is told to."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: asyncio.get_running_loop().time())
        self.fails_at: set[str] = set()
        self.acquired = self.renewed = self.reads = 0
        self.titles: list[str | None] = []

    def _reach(self, place: str) -> None:
        if place in self.fails_at:
            raise ConnectionError(place)

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        self.reads += 1
        return await super().read(chat, call)

    async def acquire(self, chat: ChatKey, lasts_s: float, changes: Sequence[Change] = ()) -> Acquired:
        self.acquired += 1
        self._reach("acquire")
        return await super().acquire(chat, lasts_s, changes)

    async def add(self, record: CallRecord) -> bool:
        self._reach("add")
        return await super().add(record)

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        self._reach("set")
        return await super().compare_and_set(old, *steps, lease=lease)

    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        self.renewed += 1
        self._reach("renew")
        return await super().renew(lease, lasts_s)

    async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        self._reach("release")
        self.titles.append(title)
        await super().release(lease, delivered, title)

    async def the_call(self) -> CallRecord:
        return (await self.read(CHAT)).records[0]


class Running:
    """A run that ends when it is told to, and notes how."""

    def __init__(self, leases: ChatLeases, leased: LeasedChat, *, fails: bool = False) -> None:
        self._leases, self._leased, self._fails = leases, leased, fails
        self.told: list[str] = []
        self.log: ChunkLog | None = None
        self.answered = frozenset[CallKey]()
        leases.put(leased.key, self)  # pyright: ignore[reportArgumentType]

    async def _end(self, how: str) -> None:
        self.told.append(how)
        await asyncio.sleep(1)
        if self._fails:
            raise ValueError
        await self._leases.end(self._leased)

    async def end_when_idle(self) -> None:
        """It is not."""
        self.told.append("end when idle")

    async def stop_after_tools(self) -> None:
        await self._end("stop")

    async def lose_lease(self) -> None:
        await self._end("lose")

    async def drain(self) -> None:
        await self._end("drain")


@dataclass(frozen=True)
class Ended:
    """A request run that is over."""

    leased: LeasedChat
    answered: frozenset[CallKey]


def ended(leased: LeasedChat, answered: frozenset[CallKey] = frozenset()) -> Any:
    return Ended(leased, answered)


def worker(store: MemoryStore, *, recover_s: float = 3600, **options: Any) -> ChatLeases:
    policy = ApprovalPolicy(recover_s=recover_s)
    return ChatLeases(store, ApprovalGate(store, policy, LEASE_S), policy, LEASE_S, **options)


async def begun(leases: ChatLeases, chat: ChatKey = CHAT) -> LeasedChat:
    leased = await leases.begin(chat)
    assert leased is not None
    return leased


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.ERROR]


def approved(now: float = 0.0, call_id: str = "1", **fields: Any) -> CallRecord:
    return record(call_id, State.APPROVED, approved=True, decided_at=now, decided_by="ann", **fields)
