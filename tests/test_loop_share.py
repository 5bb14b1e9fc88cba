"""Long work in slices: the others get their turn in between, and all long works together take no more than one."""

import asyncio
import time

from adk_stream_protocol.loop_share import LONGEST_SLICE_S, LoopShare


async def spin(name: str, slices: int, log: list[str]) -> None:
    share = LoopShare()
    for _ in range(slices):
        log.append(name)
        ends_at = time.perf_counter() + LONGEST_SLICE_S
        while time.perf_counter() < ends_at:
            pass
        await share.give_way()


async def with_turns_of_the_loop(log: list[str], *works: asyncio.Task[None]) -> None:
    while not all(work.done() for work in works):
        log.append("turn")
        await asyncio.sleep(0)


async def test_others_get_their_turn_after_every_slice() -> None:
    log: list[str] = []
    await with_turns_of_the_loop(log, asyncio.create_task(spin("a", 5, log)))
    assert log.count("a") == 5
    assert "a a" not in " ".join(log)


async def test_only_one_of_many_long_works_gets_a_slice_in_a_turn_of_the_loop() -> None:
    log: list[str] = []
    works = [asyncio.create_task(spin(name, 5, log)) for name in "abc"]
    await with_turns_of_the_loop(log, *works)
    began = " ".join(log).index("turn", len("turn a b c"))  # all three begin at once
    slices = " ".join(log)[began:].split("turn")
    assert {len(names.split()) for names in slices} == {0, 1}
    order = "".join(names.strip() for names in slices)
    assert order == "abc" * 4, "each in its turn"


def test_work_that_fits_into_a_slice_is_not_interrupted() -> None:
    share = LoopShare()
    work = share.give_way()
    try:
        work.send(None)
    except StopIteration:
        return
    finally:
        work.close()
    raise AssertionError("there was no need to")


async def test_work_that_is_cancelled_while_it_waits_keeps_nobody_else_waiting() -> None:
    log: list[str] = []
    works = [asyncio.create_task(spin(name, 5, log)) for name in "abc"]
    await asyncio.sleep(0)
    works[0].cancel()
    works[1].cancel()
    await asyncio.wait(works)
    assert log.count("c") == 5
