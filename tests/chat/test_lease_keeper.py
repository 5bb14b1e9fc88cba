"""The thread that renews leases: when there is one, what it tells, and how it ends."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from adk_stream_protocol.chat import lease_keeper
from adk_stream_protocol.chat.lease_keeper import LeaseKeeper
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.base import Lease
from adk_stream_protocol.store.memory import MemoryStore
from support.leases import Running, begun, logged, worker
from support.records import CHAT
from support.virtual_time import LEASES

LEASE_S = 0.3
OTHER = ChatKey("helper", "ann", "c2")


class Store(MemoryStore):
    """Notes where it is asked for renewals, and whether it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed_in: list[str] = []
        self.other: Store | None = None
        self.is_closed = False

    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        self.renewed_in.append(threading.current_thread().name)
        return await super().renew(lease, lasts_s)

    async def aclose(self) -> None:
        self.is_closed = True


class Database(Store):
    """Gives another one, on the same records."""

    def for_another_loop(self) -> Store:
        assert self.other is None
        self.other = Store()
        self.other.__dict__["_leases"] = self._leases
        return self.other


def block(seconds: float) -> None:
    time.sleep(seconds)


_of_other_tests: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _others() -> None:
    """Bridges of other tests may not have been collected yet."""
    _of_other_tests.clear()
    _of_other_tests.update(threading.enumerate())


def threads() -> int:
    ours = set(threading.enumerate()) - _of_other_tests
    return [thread.name for thread in ours].count(LEASES)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def leased(store: MemoryStore, chat: ChatKey = CHAT) -> Lease:
    lease = (await store.acquire(chat, LEASE_S)).lease
    assert lease is not None
    return lease


def kept_by(store: Any, lost: list[Lease] | None = None) -> LeaseKeeper:
    return LeaseKeeper(store, LEASE_S, (lost if lost is not None else []).append)


async def test_one_thread_keeps_all_leases_from_the_first_to_the_end() -> None:
    store = Database()
    keeper = kept_by(store)
    assert threads() == 0
    first, second = await leased(store), await leased(store, OTHER)
    keeper.keep(first)
    keeper.keep(second)
    assert threads() == 1
    assert store.other is None  # nothing is due yet
    await until(lambda: store.other is not None and len(store.other.renewed_in) >= 4)
    keeper.let_go(first)
    keeper.let_go(second)
    assert threads() == 1
    assert store.other is not None
    assert set(store.other.renewed_in) == {LEASES}
    assert not store.other.is_closed
    await keeper.aclose()
    assert (store.renewed_in, store.is_closed, store.other.is_closed) == ([], False, True)
    await until(lambda: threads() == 0)


async def test_a_store_that_gives_itself_is_not_closed() -> None:
    store = Store()
    keeper = kept_by(store)
    keeper.keep(await leased(store))
    await until(lambda: store.renewed_in)
    await keeper.aclose()
    assert not store.is_closed


async def test_a_keeper_without_leases_is_closed_at_once() -> None:
    keeper = kept_by(Store())
    await keeper.aclose()
    await keeper.aclose()
    assert threads() == 0


async def test_leases_that_are_held_at_the_end_run_out() -> None:
    store = Store()
    keeper = kept_by(store)
    lease = await leased(store)
    keeper.keep(lease)
    await keeper.aclose()
    keeper.let_go(lease)
    await asyncio.sleep(LEASE_S)
    assert store.renewed_in == []
    await leased(store)


async def test_what_is_lost_is_told_in_the_bridges_loop() -> None:
    told: list[tuple[Lease, str]] = []
    store = Store()
    keeper = LeaseKeeper(store, LEASE_S, lambda lease: told.append((lease, threading.current_thread().name)))
    lost, kept = await leased(store), await leased(store, OTHER)
    keeper.keep(lost)
    keeper.keep(kept)
    await store.release(lost)
    await until(lambda: len(told) >= 2)
    assert set(told) == {(lost, threading.current_thread().name)}
    keeper.let_go(lost)
    await asyncio.sleep(LEASE_S)
    told.clear()
    await asyncio.sleep(LEASE_S)
    assert told == []
    assert (await store.acquire(OTHER, LEASE_S)).lease is None
    await keeper.aclose()


class Brittle(Store):
    """Has no connection the first times, and none that can be closed."""

    failures = 2

    def for_another_loop(self) -> Store:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no")
        brittle = self

        class Other(Store):
            async def renew(self, lease: Lease, lasts_s: float) -> bool:
                return await brittle.renew(lease, lasts_s)

            async def aclose(self) -> None:
                raise ConnectionError("no")

        return Other()


async def test_a_store_that_fails_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    store = Brittle()
    keeper = kept_by(store, lost := [])
    keeper.keep(await leased(store))
    await until(lambda: store.renewed_in)
    await keeper.aclose()
    await until(lambda: threads() == 0)
    assert lost == []
    not_closed = "the connections of renewals were not closed: ConnectionError"
    assert logged(caplog) == ["a lease was not renewed: ConnectionError"] * 2 + [not_closed]


async def test_a_silent_loop_is_told_of_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(lease_keeper, "SIGN_OF_LIFE_S", LEASE_S)

    store = Store()
    keeper = kept_by(store)
    keeper.keep(await leased(store))
    keeper.keep(await leased(store, OTHER))
    block(LEASE_S * 4)
    renewed = len(store.renewed_in)
    assert renewed <= 8
    await until(lambda: len(store.renewed_in) > renewed)
    await keeper.aclose()
    assert logged(caplog) == ["the event loop has been blocked for 0.3 s, so leases are not renewed"]


# -- how it ends ------------------------------------------------------------------------------------------------------


async def test_a_drain_ends_the_thread() -> None:
    here = worker(MemoryStore())
    running = Running(here, await begun(here))
    assert threads() == 1
    await here.drain(1)
    assert running.told == ["drain"]
    await until(lambda: threads() == 0)


def test_a_store_that_does_not_answer_holds_up_no_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_keeper, "_ENDING_S", 0.2)
    answers = threading.Event()

    class Stuck(Store):
        async def renew(self, lease: Lease, lasts_s: float) -> bool:
            self.renewed_in.append("")
            return answers.wait(20)

    async def scenario() -> None:
        store = Stuck()
        keeper = kept_by(store)
        keeper.keep(await leased(store))
        await until(lambda: store.renewed_in)
        async with asyncio.timeout(5):
            await keeper.aclose()
        assert threads() == 1

    asyncio.run(scenario())
    answers.set()
    asyncio.run(until(lambda: threads() == 0))


async def test_a_thread_that_cannot_be_started_leaves_no_chat_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("can't start new thread")

    here = worker(MemoryStore())
    with monkeypatch.context() as patch:
        patch.setattr(lease_keeper, "run_in_a_thread", fails)
        with pytest.raises(RuntimeError, match="thread"):
            await here.begin(CHAT)
    await here.end(await begun(here))
    await here.drain(1)


@pytest.mark.parametrize("is_held", [True, False])
def test_the_thread_of_a_bridge_that_nobody_has_any_more_ends(is_held: bool) -> None:
    async def scenario() -> None:
        here = worker(MemoryStore())
        leased = await begun(here)
        if not is_held:
            await here.end(leased)

    asyncio.run(scenario())
    gc.collect()
    asyncio.run(until(lambda: threads() == 0))


@pytest.mark.parametrize("leaves", ["pass", "await asyncio.sleep(0.5)"], ids=["before a renewal", "after one"])
def test_a_process_ends_without_closing_anything(leaves: str, tmp_path: Path) -> None:
    code = f"""
        import asyncio
        from adk_stream_protocol.chat.lease_keeper import LeaseKeeper
        from adk_stream_protocol.protocol.call_record import ChatKey
        from adk_stream_protocol.store.sql import SqlStore

        async def main():
            global keeper
            store = SqlStore("sqlite+aiosqlite:///{tmp_path}/chats.db")
            keeper = LeaseKeeper(store, 0.3, print)
            keeper.keep((await store.acquire(ChatKey("app", "ann", "c1"), 0.3)).lease)
            {leaves}
            await store.aclose()

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True, timeout=120)
    assert (done.stdout, done.stderr) == ("", "")
