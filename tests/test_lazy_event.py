"""An event behaves as asyncio's own, and takes next to no memory while nobody waits for it."""

import asyncio
import tracemalloc

from adk_stream_protocol.lazy_event import LazyEvent


async def all_waiting(event: LazyEvent, count: int) -> "list[asyncio.Task[None]]":
    tasks = [asyncio.create_task(event.wait()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_all_who_wait_go_on_when_it_is_set() -> None:
    event = LazyEvent()
    tasks = await all_waiting(event, 3)
    assert not any(task.done() for task in tasks)
    event.set()
    await asyncio.gather(*tasks)
    assert event.is_set()


async def test_nobody_waits_for_what_is_set() -> None:
    event = LazyEvent()
    assert not event.is_set()
    event.set()
    event.set()
    await event.wait()


async def test_who_waited_goes_on_even_if_it_is_cleared_at_once() -> None:
    event = LazyEvent()
    tasks = await all_waiting(event, 1)
    event.set()
    event.clear()
    await asyncio.gather(*tasks)
    assert not event.is_set()


async def test_after_it_is_cleared_one_waits_again() -> None:
    event = LazyEvent()
    event.set()
    event.clear()
    (task,) = await all_waiting(event, 1)
    assert not task.done()
    event.set()
    await task


async def test_who_gives_up_leaves_the_others_waiting() -> None:
    event = LazyEvent()
    impatient, patient = await all_waiting(event, 2)
    impatient.cancel()
    await asyncio.sleep(0)
    assert impatient.cancelled()
    assert not patient.done()
    event.set()
    await patient


def test_nobody_waits_for_most_of_them_and_those_are_small() -> None:
    tracemalloc.start()
    events = [LazyEvent() for _ in range(1000)]
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size / len(events) < 100
