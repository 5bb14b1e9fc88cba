"""How a worker takes a chat, or waits for it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.chat.leases import Change
from adk_stream_protocol.chunk_log import ChunkLog
from adk_stream_protocol.errors import TooMany
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.store.base import Acquired
from support.leases import LEASE_S, Running, Store, approved, begun, logged, worker
from support.records import CHAT, record

pytestmark = pytest.mark.virtual_time

KEY, OTHER_KEY = CallKey("i1", "1"), CallKey("i1", "2")
OTHER = ChatKey("helper", "ann", "c2")


# -- taking a chat ----------------------------------------------------------------------------------------------------


async def test_a_chat_has_one_run_here_and_everywhere() -> None:
    store = Store()
    here, there = worker(store), worker(store)
    leased = await begun(here)
    assert (leased.key, CHAT in here, CHAT in there, list(here)) == (CHAT, True, False, [])
    assert await here.begin(CHAT) is None
    assert await there.begin(CHAT) is None
    assert CHAT not in there
    running = Running(here, leased)
    assert (here.get(CHAT), list(here)) == (running, [running])
    await here.end(leased)
    assert (CHAT in here, here.get(CHAT)) == (False, None)
    await there.end(await begun(there))


async def test_changes_are_written_whoever_has_the_chat() -> None:
    store = Store()
    here = worker(store)
    await store.add(record("1"))
    await store.add(record("2"))
    first, second = (await store.read(CHAT)).records
    leased = await here.begin(CHAT, [(first, call_record.decide(first, by="ann", approved=True, now=0))])
    assert leased is not None
    assert leased.records[KEY].state is State.APPROVED
    assert await here.begin(CHAT, [(second, call_record.decide(second, by="ann", approved=True, now=0))]) is None
    assert [found.state for found in (await store.read(CHAT)).records] == [State.APPROVED] * 2
    await here.end(leased)


async def test_whoever_wants_to_know_hears_of_what_was_decided_whoever_has_the_chat() -> None:
    store, heard = Store(), list[CallRecord]()
    here = worker(store, on_asked=heard.append)
    for id in ("1", "2"):
        await store.add(record(id))
    changes = [
        (old, call_record.decide(old, by="ann", approved=True, now=0)) for old in (await store.read(CHAT)).records
    ]
    leased = await here.begin(CHAT, changes[:1])
    assert leased is not None
    assert await here.begin(CHAT, changes[1:]) is None
    assert heard == [new for _, new in changes]
    await here.end(leased)


async def test_whoever_wants_to_know_hears_of_what_the_run_asks() -> None:
    heard: list[CallRecord] = []
    here = worker(Store(), on_asked=heard.append)
    leased, asked = await begun(here), record("1")
    leased.on_asked(asked)
    assert heard == [asked]
    await here.end(leased)
    here = worker(Store())
    leased = await begun(here)
    leased.on_asked(asked)  # nobody wants to know
    await here.end(leased)


async def test_a_user_has_so_many_runs_at_once_and_no_more() -> None:
    here = worker(Store())
    leased = [await begun(here), await begun(here, OTHER)]
    new = ChatKey("helper", "ann", "c3")
    here.require_room(new, 3)
    with pytest.raises(TooMany) as refused:
        here.require_room(new, 2)
    assert str(refused.value) == (
        "Too many of your chats are answering. Wait for the end of one, or stop it, then send again."
    )
    here.require_room(CHAT, 2)  # it goes on with what it has begun
    here.require_room(ChatKey("helper", "bob", "c1"), 1)
    for each in leased:
        await here.end(each)


async def test_a_run_that_is_about_to_start_gets_a_moment_to_do_so() -> None:
    here, now = worker(Store()), asyncio.get_running_loop().time
    assert (await here.wait_for_start(CHAT, 5), now()) == (None, 0)
    leased = await begun(here)
    assert (await here.wait_for_start(CHAT, 1), now()) == (None, 1)
    waiting = asyncio.create_task(here.wait_for_start(CHAT, 5))
    await asyncio.sleep(1)
    running = Running(here, leased)
    assert (await waiting, now()) == (running, 2)
    await here.end(leased)


async def test_nobody_waits_for_a_run_that_will_not_start() -> None:
    here, now = worker(Store()), asyncio.get_running_loop().time
    leased = await begun(here)
    waiting = asyncio.create_task(here.wait_for_start(CHAT, 5))
    await asyncio.sleep(1)
    await here.end(leased)
    assert (await waiting, now()) == (None, 1)


@pytest.mark.parametrize(
    ("left", "state"),
    [
        (approved(), State.APPROVED),
        (approved(-3600), State.EXPIRED),
        (record(state=State.CLAIMED, approved=True, decided_at=-1, lease_token="lost"), State.APPROVED),
        (record(state=State.CLAIMED, approved=True, decided_at=-3600, lease_token="lost"), State.EXPIRED),
        (record(state=State.STARTED, approved=True, lease_token="lost"), State.UNKNOWN),
        (record(state=State.STARTED, approved=True, lease_token="run-1"), State.STARTED),
        (record(), State.PENDING),
    ],
)
async def test_what_a_lost_run_has_left_is_put_in_order(left: CallRecord, state: State) -> None:
    store = Store()
    await store.add(left)
    here = worker(store)
    leased = await begun(here)
    assert store.reads == 1
    assert leased.records[KEY].state is (await store.the_call()).state is state
    await here.end(leased)


@pytest.mark.parametrize("place", ["acquire", "set"])
async def test_a_store_that_fails_leaves_the_chat_free(place: str, caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    await store.add(record(state=State.STARTED, lease_token="lost"))
    here = worker(store)
    store.fails_at = {place}
    with pytest.raises(ConnectionError):
        await here.begin(CHAT)
    assert CHAT not in here
    store.fails_at = set()
    await here.end(await begun(here))
    assert set(store.titles) == {None}
    assert logged(caplog) == []


class Late(Store):
    """Answers when the lease has run out."""

    async def acquire(self, chat: ChatKey, lasts_s: float, changes: Sequence[Change] = ()) -> Acquired:
        acquired = await super().acquire(chat, lasts_s, changes)
        await asyncio.sleep(lasts_s)
        return acquired


async def test_a_lease_that_is_gone_at_once_is_none() -> None:
    store = Late()
    await store.add(record(state=State.STARTED, lease_token="lost"))
    here = worker(store)
    assert await here.begin(CHAT) is None
    assert CHAT not in here
    assert (await store.the_call()).state is State.STARTED
    assert (await store.acquire(CHAT, 1)).lease is not None


async def test_whoever_waits_tries_again_after_a_lease_that_was_gone_at_once() -> None:
    store = Late()
    await store.add(record(state=State.STARTED, lease_token="lost"))
    waiting = asyncio.create_task(worker(store).wait_for(CHAT, frozenset({KEY}), is_done=never))
    await asyncio.sleep(3.5 * LEASE_S)
    assert (waiting.done(), store.acquired) == (False, 4)
    waiting.cancel()
    await asyncio.wait([waiting])


# -- waiting for a chat -----------------------------------------------------------------------------------------------


async def test_whoever_waits_gets_the_chat_when_it_is_free() -> None:
    store = Store()
    here = worker(store)
    leased = await begun(here)
    waiting = [asyncio.create_task(here.wait_for(CHAT, frozenset())) for _ in range(3)]
    await asyncio.sleep(5.5)
    assert store.acquired == 1
    for _ in range(3):
        await here.end(leased)
        (done,), _ = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
        waiting.remove(done)
        leased = done.result()
        assert isinstance(leased, LeasedChat)
    await here.end(leased)
    assert asyncio.get_running_loop().time() == 5.5  # at once
    assert store.acquired == 4
    assert here._queues == {}  # pyright: ignore[reportPrivateUsage]


async def test_a_chat_of_another_worker_is_looked_at_less_and_less() -> None:
    store = Store()
    here, there = worker(store), worker(store)
    leased = await begun(there)
    waiting = asyncio.create_task(here.wait_for(CHAT, frozenset()))
    await asyncio.sleep(5.6)
    # at 0, 0.05, 0.15, 0.35, 0.75, 1.55, 2.55, 3.55, 4.55 and 5.55
    assert store.acquired == 1 + 10
    await there.end(leased)
    found = await waiting
    assert asyncio.get_running_loop().time() == pytest.approx(6.55)
    assert isinstance(found, LeasedChat)
    await here.end(found)


async def test_nobody_waits_for_a_chat_in_which_another_worker_has_left_nothing_to_do() -> None:
    store, seen = Store(), list[list[CallRecord]]()
    here, there = worker(store), worker(store)
    await store.add(record("1"))
    leased = await begun(there)

    async def is_done(records: Sequence[CallRecord]) -> bool:
        seen.append(list(records))
        return len(seen) == 3

    assert await here.wait_for(CHAT, frozenset({KEY}), is_done=is_done) is None
    assert [found.call for found in seen[-1]] == [KEY]
    assert (store.acquired, CHAT in here) == (1 + 3, False)
    await there.end(leased)
    found = await here.wait_for(CHAT, frozenset({KEY}), is_done=is_done)
    assert isinstance(found, LeasedChat)
    assert len(seen) == 3
    await here.end(found)


async def test_whoever_has_answered_a_call_reads_the_segment_of_the_run_that_takes_it_up() -> None:
    here = worker(Store())
    running = Running(here, await begun(here))
    running.answered, running.log = frozenset({KEY}), ChunkLog("s1")
    assert await here.wait_for(CHAT, frozenset({KEY})) is running.log
    await running.stop_after_tools()


@pytest.mark.parametrize("call", [KEY, OTHER_KEY], ids=["has its end", "is another one's"])
async def test_a_segment_that_a_call_is_not_told_in_any_more_is_not_read_for_it(call: CallKey) -> None:
    here = worker(Store())
    running = Running(here, await begun(here))
    running.answered, running.log = frozenset({KEY}), ChunkLog("s1")
    if call == KEY:
        running.log.close()
    waiting = asyncio.create_task(here.wait_for(CHAT, frozenset({call})))
    await asyncio.sleep(1)
    assert not waiting.done()
    await running.stop_after_tools()
    leased = await waiting
    assert isinstance(leased, LeasedChat)
    await here.end(leased)


@pytest.mark.parametrize(("options", "makes_room"), [({}, True), ({"makes_room": False}, False)])
async def test_a_run_that_begins_while_somebody_waits_is_asked_to_end_when_it_is_idle(
    options: dict[str, bool], makes_room: bool
) -> None:
    here = worker(Store())
    leased = await begun(here)
    waiting = asyncio.create_task(here.wait_for(CHAT, frozenset({KEY}), **options))
    await asyncio.sleep(5)
    running = Running(here, leased)
    await asyncio.sleep(5)
    assert ("end when idle" in running.told) is makes_room
    await running.stop_after_tools()
    found = await waiting
    assert isinstance(found, LeasedChat)
    await here.end(found)


async def never(records: Sequence[CallRecord]) -> bool:
    """Another worker has not done everything."""
    return False


class SlowToNotice(Running):
    """Its end comes before whoever stops it knows."""

    async def stop_after_tools(self) -> None:
        ending = asyncio.create_task(super().stop_after_tools())
        await asyncio.sleep(2)
        await ending


@pytest.mark.parametrize("options", [{}, {"is_done": never}], ids=["for the lease", "or for an outcome"])
async def test_whoever_takes_a_chat_over_comes_before_those_who_wait_for_it(options: dict[str, Any]) -> None:
    here = worker(Store())
    SlowToNotice(here, await begun(here))
    taking = asyncio.create_task(here.take_over(CHAT, 5))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(here.wait_for(CHAT, frozenset(), **options))
    leased = await taking
    assert leased is not None
    assert not waiting.done()
    await here.end(leased)
    leased = await asyncio.wait_for(waiting, 10)
    assert isinstance(leased, LeasedChat)
    await here.end(leased)


async def test_a_run_is_ended_before_its_chat_is_taken_over() -> None:
    here = worker(Store())
    running = Running(here, await begun(here))
    leased = await here.take_over(CHAT, 5)
    assert leased is not None
    assert (running.told, asyncio.get_running_loop().time()) == (["stop"], pytest.approx(1))
    await here.end(leased)


async def test_a_turn_that_is_about_to_start_here_is_waited_for_as_long_as_it_takes() -> None:
    here = worker(Store())
    first = await begun(here)
    waiting = asyncio.create_task(here.take_over(CHAT, 1))
    await asyncio.sleep(5)
    assert not waiting.done()
    await here.end(first)
    leased = await waiting
    assert leased is not None
    assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)
    await here.end(leased)


@pytest.mark.parametrize("lets_go", [False, True])
async def test_another_workers_chat_is_waited_for_a_while(lets_go: bool) -> None:
    store = Store()
    here, there = worker(store), worker(store)
    first = await begun(there)
    waiting = asyncio.create_task(here.take_over(CHAT, 1))
    await asyncio.sleep(0.9)
    assert not waiting.done()
    if lets_go:
        await there.end(first)
    leased = await waiting
    assert (leased is not None) is lets_go
    assert asyncio.get_running_loop().time() == pytest.approx(1, abs=0.1)
    await (here if leased else there).end(leased or first)
