"""A request that is on its way when the server begins to go starts nothing after that."""

import asyncio
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from live.live_pages import live_world
from support.pages import Slow
from support.workers import answer_body, words_body, workers

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]


class SlowStore(MemoryStore):
    is_slow = False

    async def acquire(self, *args: Any, **options: Any) -> Any:
        if self.is_slow:
            await asyncio.sleep(1)
        return await super().acquire(*args, **options)


class SlowSessions(InMemorySessionService):
    is_slow = False

    async def get_session(self, **key: Any) -> Any:
        if self.is_slow:
            await asyncio.sleep(1)
        return await super().get_session(**key)


class SlowHook:
    is_slow = False

    async def __call__(self, *_: Any) -> Any:
        if self.is_slow:
            await asyncio.sleep(1)


@pytest.mark.parametrize("slow", ["store", "sessions", "hook"])
@pytest.mark.parametrize("what", ["words", "an approval"])
async def test_a_request_that_is_on_its_way_when_the_server_goes_begins_no_tool(slow: str, what: str) -> None:
    till, sessions, hook = Slow(), SlowSessions(), SlowHook()
    tool = till.gated if what == "an approval" else till.pay
    options: dict[str, Any] = {"store": SlowStore, "sessions": sessions, "prepare": hook}
    async with workers(PAY, "Paid.", tools=(tool,), **options) as staff:
        at = staff.page()
        body = words_body("Pay.")
        if what == "an approval":
            await at.say("Pay.")
            at.decide("pay")
            body = answer_body(at)
        places: dict[str, Any] = {"store": staff.store, "sessions": sessions, "hook": hook}
        places[slow].is_slow = True
        posting = asyncio.create_task(at.chat.post(body))
        await asyncio.sleep(0.5)
        await at.chat.bridge.drain()
        await asyncio.sleep(5)
        assert till.paid == []
        till.go_on.set()
        answer = await posting
        assert answer.status == 503 or answer.chunks[-1]["type"] == "error"
        if what == "an approval":
            assert await staff.states() in ([State.PENDING], [State.APPROVED])


async def test_words_for_a_live_session_that_are_on_their_way_when_the_server_goes_begin_no_tool() -> None:
    till = Slow()
    store = SlowStore(clock=asyncio.get_running_loop().time)
    async with live_world(PAY, "Paid.", tools=(till.pay,), record=store) as world, world.socket() as at:
        store.is_slow = True
        saying = asyncio.create_task(at.send(**words_body("Pay.")))
        await asyncio.sleep(0.5)
        await world.bridge.drain()
        await asyncio.sleep(5)
        paid = list(till.paid)
        till.go_on.set()
        saying.cancel()
        assert paid == []
