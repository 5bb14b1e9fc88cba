"""Calls at a gate of their own, with a store that fails when it is told to."""

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.adk.calls.gated_call import GatedCall
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey
from adk_stream_protocol.store.base import Lease, Snapshot
from adk_stream_protocol.store.memory import MemoryStore

from .pages import Clock
from .records import CHAT

KEY = CallKey("i1", "1")
PAY = {"amount": 5}


def pay(amount: int) -> None:
    """Pays."""


class Recorder(MemoryStore):
    """Fails as often as it is told to; and can be kept busy."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(clock=self.clock)
        self.failures: list[BaseException] = []
        self.fails_late = False
        """Its work is done then, and only the news of it is lost."""
        self.is_failing_reads = False
        self.reads = 0
        self.is_free = asyncio.Event()
        self.is_free.set()

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        self.reads += 1
        if self.is_failing_reads:
            raise StoreUnavailable
        return await super().read(chat, call)

    async def add(self, record: CallRecord) -> bool:
        await self.is_free.wait()
        if self.failures and not self.fails_late:
            raise self.failures.pop(0)
        is_new = await super().add(record)
        if self.failures:
            raise self.failures.pop(0)
        return is_new

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        await self.is_free.wait()
        if self.failures and not self.fails_late:
            raise self.failures.pop(0)
        is_set = await super().compare_and_set(old, *steps, lease=lease)
        if self.failures:
            raise self.failures.pop(0)
        return is_set


class Gate:
    """The gate of one chat, which a run holds."""

    def __init__(self, store: Recorder, leased: LeasedChat) -> None:
        self.store, self.leased = store, leased
        leased.message_id, leased.prepared = "m1", {"model": "large"}

    @classmethod
    async def opened(cls) -> "Gate":
        store = Recorder()
        lease, snapshot = await store.acquire(CHAT, 30)
        assert lease is not None
        return cls(store, LeasedChat.taken(lease, snapshot))

    def call(self, arguments: dict[str, Any] = PAY, tool: Any = None, hints: Any = None) -> GatedCall:
        policy = ApprovalPolicy(deadline_s=100, browser_deadline_s=10, hints=hints or {})
        return GatedCall(
            store=self.store,
            policy=policy,
            lease_s=30,
            leased=self.leased,
            key=KEY,
            tool=tool or FunctionTool(pay),
            arguments=arguments,
        )

    async def stored(self) -> CallRecord:
        (found,) = (await MemoryStore.read(self.store, CHAT)).records
        return msgspec.structs.replace(found, delivered=False)

    async def change(self, **fields: Any) -> CallRecord:
        """By another worker: the run does not know."""
        old = (await MemoryStore.read(self.store, CHAT)).records[0]
        new = msgspec.structs.replace(old, version=old.version + 1, **fields)
        assert await MemoryStore.compare_and_set(self.store, old, new)
        return new

    async def approved(self) -> GatedCall:
        call = self.call()
        assert await call.ask(hint=None, approval_id=None) is None
        now = self.store.clock.now
        new = call_record.decide(self.leased.records[KEY], by="ann", approved=True, now=now)
        assert await self.store.compare_and_set(self.leased.records[KEY], new)
        self.leased.records[KEY] = new
        return call

    async def started(self) -> GatedCall:
        call = await self.approved()
        assert await call.take_up(PAY) is None
        return call


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.ERROR]


async def stopped_while_the_store_is_busy(gate: Gate, work: Any) -> None:
    gate.store.is_free.clear()
    task = asyncio.create_task(work)
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.sleep(0.1)
    assert not task.done()
    gate.store.is_free.set()
    with pytest.raises(asyncio.CancelledError):
        await task
