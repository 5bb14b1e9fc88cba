"""After something has blocked the event loop, many timers are due at once. What has come in meanwhile is heard first:
no payment that was made is unknown because a timer was faster."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import Limits
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.protocol.call_record import CallKey, State
from adk_stream_protocol.store.base import Lease, Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, call
from live.live_pages import beside, live_page
from support.pages import page
from support.records import CHAT
from support.virtual_time import block
from support.workers import outputs

pytestmark = pytest.mark.virtual_time

LONG_S = 40
TURNS = 30  # of the loop, that it may take until an answer has come through a connection's layers


async def turns_of_the_loop() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def pay(amount: int) -> dict[str, Any]:
    """Pays. The bank's answer comes while something blocks the loop."""
    await asyncio.sleep(1)
    block(LONG_S)
    await turns_of_the_loop()
    return {"paid": amount}


async def test_a_payment_is_made_whose_run_is_out_of_time_meanwhile() -> None:
    store, tool = MemoryStore(), FunctionTool(pay, require_confirmation=True)
    limits = Limits(max_run_s=LONG_S)
    async with page([call("pay", amount=5)], "Paid.", tools=(tool,), record=store, limits=limits) as at:
        await at.say("Pay.")
        at.decide("pay")
        assert outputs(await at.answer()) == [{"paid": 5}]
        assert [found.state for found in (await store.read(CHAT)).records] == [State.DONE]


async def test_a_run_that_is_out_of_time_ends_soon_all_the_same() -> None:
    async def endless() -> None:
        """Comes to no end."""
        block(LONG_S)
        await asyncio.Event().wait()

    async with page([call("endless")], tools=(endless,), limits=Limits(max_run_s=LONG_S / 2)) as at:
        answer = await at.say("Work.")
        assert answer.chunks[-1]["messageMetadata"] == {"limit": "time"}
        assert asyncio.get_running_loop().time() <= LONG_S + 3


async def test_a_drain_hears_what_came_in_meanwhile() -> None:
    leased, key = LeasedChat.taken(Lease(CHAT, "run-1"), Snapshot([], 0.0)), CallKey("i1", "1")
    leased.begin(key)
    waiting = asyncio.create_task(leased.until_tools_end(25))
    await asyncio.sleep(1)
    block(LONG_S)
    await turns_of_the_loop()
    assert not waiting.done()
    leased.end(key, has_result=False)
    await waiting
    leased.begin(key)
    waiting = asyncio.create_task(leased.until_tools_end(25))
    await asyncio.sleep(1)
    block(LONG_S)
    began = asyncio.get_running_loop().time()
    await waiting
    assert asyncio.get_running_loop().time() - began <= 3


async def test_a_live_session_hears_its_model_before_it_gives_it_up() -> None:
    paid: list[int] = []
    speaks, is_paid = asyncio.Event(), asyncio.Event()

    async def slow_pay(amount: int) -> dict[str, int]:
        """Pays."""
        paid.append(amount)
        await is_paid.wait()
        return {"paid": amount}

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("slow_pay", amount=5)
        await session.expect_text()
        await speaks.wait()
        await turns_of_the_loop()
        await session.answer("It is noon.")
        await session.expect_response()
        await session.answer("Paid.")

    model = ScriptedLiveModel(server)
    limits = Limits(live_silence_s=8)
    async with live_page(model=model, tools=(beside(slow_pay),), limits=limits) as at:
        await at.say("Pay.")
        saying = asyncio.create_task(at.say("What time is it?"))
        await asyncio.sleep(5)
        speaks.set()
        block(6)
        assert (await saying).text == "It is noon."
        is_paid.set()
        await at.unasked_turn()  # the result, in the message of its call
        assert (await at.unasked_turn()).text == "Paid."
        assert at.part("slow_pay")["output"] == {"paid": 5}
