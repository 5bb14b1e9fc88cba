"""A message that comes again at an odd moment is answered once, and read by whoever sends it."""

import asyncio
import json
from typing import Any

import pytest

from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.asgi import exchange
from support.pages import Slow, page
from support.workers import answer_body, outputs, words_body, workers

pytestmark = pytest.mark.virtual_time

HELLO = words_body("Hello.", "u1")


class SlowStore(MemoryStore):
    async def acquire(self, *args: Any, **options: Any) -> Any:
        await asyncio.sleep(0.1)
        return await super().acquire(*args, **options)


@pytest.mark.parametrize("count", [2, 10])
async def test_a_message_that_comes_again_before_its_run_has_begun_is_answered_once(count: int) -> None:
    async with workers("Hello you.", store=SlowStore) as staff:
        at = staff.page()
        answers = await asyncio.gather(*(at.chat.post(HELLO) for _ in range(count)))
        assert [answer.status for answer in answers] == [200] * count
        assert {answer.text for answer in answers} == {"Hello you."}
        assert len(staff.model.requests) == 1


@pytest.mark.parametrize("is_read", [True, False], ids=["and is read", "and its reader has left"])
async def test_a_message_that_comes_again_while_its_answer_goes_on_after_an_approval_reads_it(is_read: bool) -> None:
    slow = Slow()
    async with page([call("pay", amount=5)], "Paid.", tools=(slow.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        body = json.dumps(answer_body(at)).encode()
        reading = asyncio.create_task(
            exchange(at.chat.app, body=body, leave_after=lambda piece: not is_read and b"start" in piece)
        )
        await slow.started.wait()
        await asyncio.sleep(1)
        again = asyncio.create_task(at.chat.post({"id": "c1", "messages": [at.messages[0]]}))
        await asyncio.sleep(10)
        slow.go_on.set()
        answer = await again
        await reading
        assert (answer.status, outputs(answer), answer.text) == (200, [{"paid": 5}], "Paid.")
        assert len(at.chat.model.requests) == 2
