"""A live session whose server goes, or loses its chat, refuses nothing that waits for a person."""

import asyncio
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService
from websockets.exceptions import ConnectionClosedError

from adk_stream_protocol.adk.live.live_run import LiveRun
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from live.live_pages import CHAT, LivePage, World, live_world, told_results, until
from support.pages import Slow, Till
from support.workers import outputs

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]


async def lose_lease(world: World, _: LivePage) -> None:
    """Another worker takes the chat over, and lets it go again."""
    leases: dict[Any, Any] = world.store._leases  # pyright: ignore
    del leases[CHAT]
    lease, _snapshot = await world.store.acquire(CHAT, 1000)
    assert lease is not None
    await until(lambda: not world.is_live)
    await world.store.release(lease)


async def drain(world: World, _: LivePage) -> None:
    await world.bridge.drain()


LOSSES = {"a drain": drain, "a lost lease": lose_lease}
every_loss = pytest.mark.parametrize("loss", LOSSES)


@every_loss
async def test_an_approval_that_waits_in_a_live_session_goes_on_waiting(loss: str) -> None:
    async with live_world(PAY, "Paid.", tools=(Till().gated,)) as world, world.socket() as at:
        await at.say("Pay.")
        await LOSSES[loss](world, at)
        assert await world.states() == ["pending"]


@every_loss
async def test_the_next_server_shows_an_approval_that_waited_in_a_live_session_and_takes_it_over_http(
    loss: str,
) -> None:
    till, sessions = Till(), InMemorySessionService()
    store = MemoryStore(clock=asyncio.get_running_loop().time)
    async with live_world(PAY, "?", tools=(till.gated,), record=store, sessions=sessions) as world:
        async with world.socket() as at:
            await at.say("Pay.")
            await LOSSES[loss](world, at)
        async with live_world("Paid.", tools=(till.gated,), record=store, sessions=sessions) as next_world:
            page = at.over_http()
            page.chat = next_world.chat
            await page.is_what_a_reload_shows()
            page.decide("pay")
            answer = await page.answer()
            assert (outputs(answer), answer.text) == ([{"paid": 5}], "Paid.")
            assert till.paid == [5]
            await page.is_what_a_reload_shows()


def look() -> dict[str, Any]:
    """Needs nobody."""
    return {"balance": 7}


@pytest.mark.parametrize("decision", [True, False], ids=["approved", "denied"])
async def test_a_result_that_adk_keeps_back_for_a_sibling_that_waits_is_not_lost_with_the_session(
    decision: bool,
) -> None:
    till, sessions = Till(), InMemorySessionService()
    store = MemoryStore(clock=asyncio.get_running_loop().time)
    given: dict[str, Any] = {"tools": (look, till.gated), "record": store, "sessions": sessions}
    async with live_world([call("look"), call("pay", amount=5)], "?", **given) as world:
        async with world.socket() as at:
            assert outputs(await at.say("Pay what I have.")) == [{"balance": 7}]
            await world.bridge.drain()
        async with live_world("So be it.", **given) as next_world:
            page = at.over_http()
            page.chat = next_world.chat
            await page.is_what_a_reload_shows()
            page.decide("pay", approved=decision)
            await page.answer()
            assert {"balance": 7} in told_results(next_world.model)
            assert till.paid == ([5] if decision else [])
            await page.is_what_a_reload_shows()


async def test_a_result_that_was_lost_with_its_session_is_shown_as_stopped_to_every_reader() -> None:
    till, sessions = Till(), InMemorySessionService()
    store = MemoryStore(clock=asyncio.get_running_loop().time)
    given: dict[str, Any] = {"tools": (look, till.gated), "record": store, "sessions": sessions}
    async with live_world([call("look"), call("pay", amount=5)], "?", **given) as world:
        async with world.socket() as at:
            await at.say("Pay what I have.")
            await lose_lease(world, at)
        async with live_world("So be it.", **given) as next_world:
            page = at.over_http()
            page.chat = next_world.chat
            page = await page.second_tab()
            assert page.part("look")["state"] == "output-error"
            page.decide("pay", approved=False)
            answer = await page.answer()
            assert answer.text == "So be it."
            await page.is_what_a_reload_shows()
            again = await page.chat.request("GET", f"/stream?message={answer.message_id}")
            assert "The call was stopped before it had a result." in again.text


@pytest.mark.parametrize("turns_of_the_loop", range(6))
async def test_a_session_that_ends_while_its_calls_look_for_answers_does_end(turns_of_the_loop: int) -> None:
    async with live_world(PAY, tools=(Till().gated,)) as world, world.socket() as at:
        await at.say("Pay.")
        (run,) = world.bridge._service._leases  # pyright: ignore
        assert isinstance(run, LiveRun)
        run.withdrawn(["another call"])  # calls that wait look whether it is them
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await run.end_if_idle()
        assert await world.states() == ["pending"]


@pytest.mark.parametrize("turns_of_the_loop", range(25))
async def test_a_session_that_ends_while_its_connection_is_replaced_does_end(turns_of_the_loop: int) -> None:
    async with live_world("Hello.", tools=(Till().gated,)) as world, world.socket() as at:
        await at.say("Hello?")
        (run,) = world.bridge._service._leases  # pyright: ignore
        assert isinstance(run, LiveRun)
        await world.model.sessions[-1].resumption_handle("h1")
        world.model.sessions[-1].fail(ConnectionClosedError(None, None))
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await run.end_if_idle()


async def test_a_tool_of_a_live_session_is_waited_for_and_recorded() -> None:
    slow = Slow()
    async with live_world(PAY, "Paid.", tools=(slow.gated,)) as world, world.socket() as at:
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        draining = asyncio.create_task(world.bridge.drain())
        await asyncio.sleep(1)
        slow.go_on.set()
        answer = await answering
        await draining
        assert await world.states() == ["done"]
        assert outputs(answer) == [{"paid": 5}]


async def test_over_a_socket_the_client_is_told_to_reconnect_before_its_stream_ends() -> None:
    slow = Slow()
    async with live_world(PAY, "Paid.", tools=(slow.gated,)) as world, world.socket() as at:
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        draining = asyncio.create_task(world.bridge.drain())
        await asyncio.sleep(1)
        slow.go_on.set()
        answer = await answering
        await draining
        kinds = [frame["type"] for frame in at.client.everything if isinstance(frame, dict)]
        assert kinds.index("reconnect") < len(kinds) - 1 - kinds[::-1].index("end")
        assert answer.chunks[-1]["type"] in ("error", "finish")
