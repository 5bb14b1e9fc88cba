"""The application reports the end of long-running work whose chat is being deleted: nothing is confirmed that nobody
gets, and nothing is left."""

import asyncio
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol import NotFound
from adk_stream_protocol.chat.completions import record_late
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallRecord, State
from adk_stream_protocol.store.base import Acquired
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from chat.test_completions import ROWS, Exports
from support.leases import begun, worker
from support.pages import Clock
from support.records import CHAT, record
from support.session_events import calling, chat_with, empty_chat, pay
from support.workers import workers

pytestmark = pytest.mark.virtual_time


class SlowToDelete(InMemorySessionService):
    async def delete_session(self, **about: Any) -> None:
        await asyncio.sleep(3)
        await super().delete_session(**about)


class AddsLate(MemoryStore):
    """Records the work of calls late, or fails to when its tool returns."""

    late_s: float | None = 0

    async def add(self, record: CallRecord) -> bool:
        if record.is_work and self.late_s is None:
            raise StoreUnavailable
        await asyncio.sleep((self.late_s or 0) if record.is_work else 0)
        return await super().add(record)


@pytest.mark.parametrize("where", ["here", "on another worker"])
@pytest.mark.parametrize("was_recorded", [True, False])
@pytest.mark.parametrize("late_s", [0, 1, 10], ids=["at once", "before the session is gone", "after it"])
async def test_the_end_of_work_whose_chat_is_deleted_leaves_nothing(
    late_s: float, was_recorded: bool, where: str
) -> None:
    exports, sessions, replies = Exports(), SlowToDelete(), ([call("export")], "Started.")
    async with workers(*replies, tools=(exports.tool,), store=AddsLate, sessions=sessions) as staff:
        at, store = staff.page(), staff.store
        assert isinstance(store, AddsLate)
        store.late_s = 0 if was_recorded else None
        await at.say("Export.")
        store.late_s = late_s
        deleting = asyncio.create_task((at if where == "here" else staff.page()).chat.request("DELETE"))
        await asyncio.sleep(1)
        completing = asyncio.create_task(at.chat.bridge.complete_call(exports.refs[0], ROWS))
        await asyncio.wait([completing])
        if was_recorded or late_s == 10:
            assert isinstance(completing.exception(), NotFound)
        else:  # before the chat was gone
            assert completing.result() == {"output": ROWS}
        assert (await deleting).status_code == 204
        await asyncio.sleep(30)
        assert await staff.records() == []


# -- without the lease of the chat ------------------------------------------------------------------------------------


class CreatesAgain(MemoryStore):
    """The user begins a new chat with the same id just before a lease is taken."""

    chat: Any = None

    async def acquire(self, *args: Any, **options: Any) -> Acquired:
        if self.chat is not None:
            await self.chat.create()
            await self.add(record("new"))
        return await super().acquire(*args, **options)


async def recorded(store: MemoryStore) -> list[str]:
    return [found.call.call_id for found in (await store.read(CHAT)).records]


async def test_a_call_of_a_chat_that_is_there_is_recorded() -> None:
    store = MemoryStore(clock=Clock())
    chat = await chat_with(calling(pay()))
    await record_late(store, worker(store), chat, record())
    await record_late(store, worker(store), chat, record())
    assert await recorded(store) == ["1"]


async def test_a_call_of_a_chat_that_is_gone_is_forgotten() -> None:
    store = MemoryStore(clock=Clock())
    leases = worker(store)
    with pytest.raises(NotFound):
        await record_late(store, leases, empty_chat(), record())
    assert await recorded(store) == []
    assert CHAT not in leases
    assert (await store.acquire(CHAT, 1)).lease is not None


async def test_a_call_that_a_deletion_has_forgotten_is_not_recorded_again() -> None:
    store = MemoryStore(clock=Clock())
    await store.add(record())
    lease, _ = await store.acquire(CHAT, 60)
    assert lease is not None
    await store.forget(lease)
    with pytest.raises(NotFound):
        await record_late(store, worker(store), await chat_with(calling(pay())), record())
    assert await recorded(store) == []
    assert [entry.state for entry in await store.audit(CHAT)] == [State.PENDING]
    await record_late(store, worker(store), await chat_with(calling(pay())), record("2"))
    assert await recorded(store) == ["2"]


async def test_a_new_chat_with_the_same_id_is_not_forgotten() -> None:
    store = CreatesAgain(clock=Clock())
    store.chat = chat = empty_chat()
    with pytest.raises(NotFound):
        await record_late(store, worker(store), chat, record())
    assert "new" in await recorded(store)


async def test_nobody_waits_long_for_a_chat_that_runs_again() -> None:
    store = MemoryStore(clock=Clock())
    leases = worker(store)
    leased = await begun(leases)
    since = asyncio.get_running_loop().time()
    with pytest.raises(NotFound):
        await record_late(store, leases, empty_chat(), record())
    assert asyncio.get_running_loop().time() - since < 10
    await leases.end(leased)
