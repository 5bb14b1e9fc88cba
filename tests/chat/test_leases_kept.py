"""How a worker keeps a chat and gives it back."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.chat.leases import Change, ChatLeases
from adk_stream_protocol.errors import Restarting
from adk_stream_protocol.protocol.call_record import CallKey, ChatKey
from adk_stream_protocol.store.base import Acquired, Lease
from support.leases import LEASE_S, Running, Store, begun, logged, worker
from support.records import CHAT, record

pytestmark = pytest.mark.virtual_time

OTHER = ChatKey("helper", "ann", "c2")
KEY = CallKey("i1", "1")


# -- giving it back ---------------------------------------------------------------------------------------------------


async def test_a_lease_is_given_back_once_with_what_was_delivered() -> None:
    store = Store()
    await store.add(record())
    here = worker(store)
    first = await begun(here)
    first.delivered.add(KEY)
    await here.end(first)
    assert (await store.the_call()).delivered is True
    second = await begun(here)
    await here.end(first)
    assert here.get(CHAT) is None
    assert CHAT in here
    await here.end(second)


async def test_the_gate_lets_nothing_through_after_the_end() -> None:
    store, policy = Store(), ApprovalPolicy()
    gate = ApprovalGate(store, policy, LEASE_S)
    here = ChatLeases(store, gate, policy, LEASE_S)
    leased = await begun(here)
    assert gate._leased == {CHAT: leased}  # pyright: ignore[reportPrivateUsage]
    await here.end(leased)
    assert gate._leased == {}  # pyright: ignore[reportPrivateUsage]


async def test_a_lease_that_cannot_be_given_back_runs_out(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    here = worker(store)
    leased = await begun(here)
    store.fails_at = {"release"}
    await here.end(leased)
    assert CHAT not in here
    assert await here.begin(CHAT) is None
    await asyncio.sleep(LEASE_S)
    await here.end(await begun(here))
    assert logged(caplog) == ["a lease was not released, and runs out: ConnectionError"] * 2


# -- keeping it -------------------------------------------------------------------------------------------------------


async def test_leases_are_renewed_while_there_are_any() -> None:
    store = Store()
    here, there = worker(store), worker(store)
    first, second = await begun(here), await begun(here, OTHER)
    await asyncio.sleep(LEASE_S + 1)
    assert store.renewed == 6
    await here.end(first)
    await asyncio.sleep(LEASE_S)
    assert store.renewed == 9
    assert await there.begin(OTHER) is None
    await here.end(second)
    third = await begun(here)
    await asyncio.sleep(2)
    await here.end(third)
    third = await begun(here)
    await asyncio.sleep(LEASE_S / 3 - 1)
    assert store.renewed == 9
    await asyncio.sleep(2)
    assert store.renewed == 10
    await here.end(third)


async def test_a_renewal_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    here, there = worker(store), worker(store)
    leased = await begun(here)
    running = Running(here, leased)
    store.fails_at = {"renew"}
    await asyncio.sleep(LEASE_S * 2 / 3 + 1)
    store.fails_at = set()
    await asyncio.sleep(LEASE_S)
    assert await there.begin(CHAT) is None
    assert running.told == []
    await here.end(leased)
    assert logged(caplog) == ["a lease was not renewed: ConnectionError"] * 2


@pytest.mark.parametrize("fails", [False, True])
async def test_a_run_whose_lease_is_somebody_elses_is_told(fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    here = worker(store)
    leased, other = await begun(here), await begun(here, OTHER)
    running, beside = Running(here, leased, fails=fails), Running(here, other)
    await store.release(leased.lease)
    await asyncio.sleep(LEASE_S / 3 + 2)
    assert (running.told, beside.told) == (["lose"], [])
    assert (CHAT in here) is fails
    renewed = store.renewed
    await asyncio.sleep(LEASE_S / 3)
    assert store.renewed > renewed
    assert running.told == ["lose"] * (2 if fails else 1)
    await here.end(other)
    await here.end(leased)
    assert set(logged(caplog)) == {"the run of chat c1 lost its lease"}


async def test_a_turn_that_is_about_to_start_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    here = worker(store)
    leased = await begun(here)
    await store.release(leased.lease)
    await asyncio.sleep(LEASE_S / 2)
    assert CHAT in here
    await here.end(leased)
    assert logged(caplog) == []


class Slow(Store):
    async def renew(self, lease: Any, lasts_s: float) -> bool:
        await asyncio.sleep(2)
        return await super().renew(lease, lasts_s)


async def test_a_run_that_came_after_is_not_told_of_its_forerunner() -> None:
    here = worker(Slow())
    first = await begun(here)
    Running(here, first)
    await asyncio.sleep(LEASE_S / 3 + 1)
    await here.end(first)
    second = await begun(here)
    running = Running(here, second)
    await asyncio.sleep(2)
    assert running.told == []
    await here.end(second)


async def test_what_comes_late_of_a_lost_lease_is_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The thread that renews leases does not know yet what has become of one."""

    class SlowToRelease(Store):
        async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
            await asyncio.sleep(1)
            await super().release(lease, delivered)

    here = worker(SlowToRelease())
    lose = here._lose  # pyright: ignore[reportPrivateUsage]
    first = await begun(here)
    forerunner = Running(here, first)
    ending = asyncio.create_task(here.end(first))
    await asyncio.sleep(0)
    lose(first.lease)
    await ending
    lose(first.lease)
    second = await begun(here)
    running = Running(here, second)
    lose(first.lease)
    await asyncio.sleep(1)
    assert (forerunner.told, running.told) == ([], [])
    lose(second.lease)
    lose(second.lease)  # as long as it takes
    await asyncio.sleep(3)
    assert running.told == ["lose"]
    assert logged(caplog) == ["the run of chat c1 lost its lease"]


async def test_nothing_is_renewed_when_the_last_lease_is_given_back_meanwhile() -> None:
    store = Slow()
    here = worker(store)
    leased = await begun(here)
    await asyncio.sleep(LEASE_S / 3 + 1)
    await here.end(leased)
    await asyncio.sleep(LEASE_S)
    assert store.renewed == 0
    assert here._keeper._timer is None  # pyright: ignore[reportPrivateUsage]
    assert here._keeper._renewals._tasks == {}  # pyright: ignore


# -- the end of the process -------------------------------------------------------------------------------------------


async def test_a_drain_ends_all_runs_together() -> None:
    here = worker(Store())
    runs = [Running(here, await begun(here), fails=True), Running(here, await begun(here, OTHER))]
    await here.drain(1)
    assert [running.told for running in runs] == [["drain"], ["drain"]]
    assert asyncio.get_running_loop().time() == pytest.approx(1)
    assert OTHER not in here
    assert here._keeper._renewals is None  # pyright: ignore[reportPrivateUsage]


async def test_once_a_worker_drains_nothing_begins() -> None:
    store = Store()
    here = worker(store)
    await here.drain(1)
    with pytest.raises(Restarting):
        await here.begin(CHAT)
    assert store.acquired == 0


class SlowToAcquire(Store):
    async def acquire(self, chat: ChatKey, lasts_s: float, changes: Sequence[Change] = ()) -> Acquired:
        await asyncio.sleep(1)
        return await super().acquire(chat, lasts_s, changes)


async def test_a_lease_that_comes_while_the_worker_drains_is_given_back() -> None:
    store = SlowToAcquire()
    here = worker(store)
    beginning = asyncio.create_task(here.begin(CHAT))
    await asyncio.sleep(0)
    await here.drain(5)
    with pytest.raises(Restarting):
        await beginning
    assert asyncio.get_running_loop().time() == pytest.approx(1)
    await asyncio.sleep(0)
    assert (await store.acquire(CHAT, 1)).lease is not None


async def test_a_run_that_is_about_to_start_is_drained_too_and_begins_no_tool() -> None:
    here = worker(Store())
    leased = await begun(here)
    draining = asyncio.create_task(here.drain(5))
    await asyncio.sleep(1)
    assert leased.begins_nothing
    running = Running(here, leased)
    await draining
    assert running.told == ["drain"]
    assert asyncio.get_running_loop().time() == pytest.approx(2)


class Endless(Running):
    async def drain(self) -> None:
        await asyncio.sleep(100)


async def test_a_drain_leaves_a_run_that_does_not_end_behind() -> None:
    here = worker(Store())
    leased = await begun(here)
    Endless(here, leased)
    await here.drain(1)
    assert asyncio.get_running_loop().time() == pytest.approx(1 + 5)
    await here.end(leased)


async def test_a_chat_that_is_left_to_go_on_is_free_for_another_worker_after_the_drain() -> None:
    store = Store()
    here, there = worker(store), worker(store)
    await here.leave(CHAT)
    await here.leave(CHAT)
    assert store.acquired == 0
    await here.drain(1)
    assert store.acquired == 1
    await here.leave(OTHER)
    await here.drain(1)
    assert store.acquired == 2
    for chat in (CHAT, OTHER):
        await there.end(await begun(there, chat))


async def test_a_chat_that_cannot_be_left_goes_on_later(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    here = worker(store)
    await here.leave(CHAT)
    store.fails_at.add("acquire")
    await here.drain(1)
    assert logged(caplog) == ["chat c1 continues only with the user's next message: ConnectionError"]


class SlowStore(Store):
    async def acquire(self, chat: ChatKey, lasts_s: float, changes: Sequence[Change] = ()) -> Acquired:
        await asyncio.sleep(2)
        return await super().acquire(chat, lasts_s, changes)


async def test_what_waits_for_chats_is_cancelled_and_left_to_the_next_process() -> None:
    store = SlowStore()
    here = worker(store)
    waiting: dict[tuple[ChatKey, CallKey], asyncio.Task[None]] = {}
    ended: list[str] = []

    async def wait_for(chat: ChatKey) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            await asyncio.sleep(3)
            ended.append(chat.chat_id)
            raise

    for chat in (CHAT, OTHER):
        task = waiting[chat, KEY] = asyncio.create_task(wait_for(chat))
        task.add_done_callback(lambda _, chat=chat: waiting.pop((chat, KEY)))
    await asyncio.sleep(1)
    await here.drain(1)
    await here.leave_to_next(waiting)  # one ends meanwhile, and one is waited for
    assert (ended, waiting) == (["c1", "c2"], {})
    assert set(await store.abandoned(0)) == {CHAT, OTHER}
