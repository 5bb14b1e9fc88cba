"""A message that comes several times at once is answered once, and read by all of them."""

import asyncio
from typing import Any

import pytest

from adk_stream_protocol.store.memory import MemoryStore
from live.live_pages import play
from support.workers import words_body, workers

HELLO = words_body("Hello.", "u1")


class SlowStore(MemoryStore):
    async def acquire(self, *args: Any, **options: Any) -> Any:
        await asyncio.sleep(0.1)
        return await super().acquire(*args, **options)


@pytest.mark.parametrize("count", [2, 10])
def test_a_message_that_comes_again_before_its_run_has_begun_is_answered_once(count: int) -> None:
    async def scenario() -> None:
        async with workers("Hello you.", store=SlowStore) as staff:
            at = staff.page()
            answers = await asyncio.gather(*(at.chat.post(HELLO) for _ in range(count)))
            assert [answer.status for answer in answers] == [200] * count
            assert {answer.text for answer in answers} == {"Hello you."}
            assert len(staff.model.requests) == 1

    play(scenario)
