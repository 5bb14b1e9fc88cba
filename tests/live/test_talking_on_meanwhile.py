"""What may happen while a live session talks on and a call waits."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from websockets.exceptions import ConnectionClosedError

from adk_stream_protocol.adk.live.talking_on import PENDING
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, call
from live.live_pages import (
    GRACE_S,
    LivePage,
    approved,
    live_page,
    live_world,
    until,
)
from live.talking_on_pages import ON, responses, told
from support.pages import Slow, Till

pytestmark = pytest.mark.virtual_time


async def test_a_call_that_the_model_takes_back_is_withdrawn_and_its_card_says_so() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        made = await session.call("pay", amount=5)
        assert (await session.expect_response()).response == PENDING
        await session.expect_text()
        await session.cancel(made.id or "")
        await session.answer("It is noon.")
        await session.expect("close")

    till = Till()
    async with live_page(model=ScriptedLiveModel(server), tools=(till.gated,), **ON) as at:
        asked = await at.say("Pay.")
        assert (await at.say("No, what time is it?")).text == "It is noon."
        await asyncio.sleep(5)
        assert (await at.world.states(), till.paid) == (["withdrawn"], [])
        assert told(at.model) == [PENDING]  # and no result: it expects none
        ended = await at.unasked_turn()
        assert (ended.message_id, at.states("pay")) == (asked.message_id, ["output-error"])


@pytest.mark.parametrize("goes_away", [False, True], ids=["lost", "GoAway"])
async def test_a_connection_that_is_resumed_gets_the_result_under_the_same_id(goes_away: bool) -> None:
    ids: list[str | None] = []

    async def server(session: LiveSession) -> None:
        if session.number == 1:
            await session.resumption_handle("h1")
            await session.expect_text()
            ids.append((await session.call("pay", amount=5)).id)
            assert (await session.expect_response()).response == PENDING
            if goes_away:
                await session.go_away()
            else:
                session.fail(ConnectionClosedError(None, None))
            return
        assert await session.expect_text() == "What time is it?"
        await session.answer("It is noon.")
        response = await session.expect_response()
        ids.append(response.id)
        assert response.response == {"paid": 5}
        await session.answer("Paid.")
        await session.expect("close")

    till = Till()
    model = ScriptedLiveModel(server)
    async with live_page(model=model, tools=(till.gated,), **ON) as at:
        await at.say("Pay.")
        await until(lambda: len(model.sessions) == 2)
        assert (await at.say("What time is it?")).text == "It is noon."
        at.decide("pay")
        assert (await at.answer(0)).text == "Paid."
        assert (ids[0], till.paid) == (ids[1], [5])


async def test_an_interruption_leaves_the_card() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        assert (await session.expect_response()).response == PENDING
        await asyncio.sleep(5)
        await session.say("Please look at ")
        is_speaking.set()
        await asyncio.sleep(5)
        await session.turn_complete()
        assert (await session.expect_response()).response == {"paid": 5}
        await session.answer("Paid.")
        await session.expect("close")

    is_speaking, till = asyncio.Event(), Till()
    async with live_page(model=ScriptedLiveModel(server), tools=(till.gated,), **ON) as at:
        asked = await at.say("Pay.")
        await is_speaking.wait()
        at.client.tell("interrupt")
        await asyncio.sleep(10)
        answer = await at.send_parts(asked.message_id or "", approved(at.part("pay")))
        assert (answer.text, till.paid) == ("Paid.", [5])


async def test_a_stop_refuses_what_waits() -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "It is noon.", tools=(till.gated,), **ON) as at:
        await at.say("Pay.")
        await at.say("What time is it?")
        await at.world.bridge.stop("ann", "c1")
        (record,) = await at.world.records()
        assert (record.state, till.paid) == ("denied", [])


@pytest.mark.parametrize("mode", ["request mode", "live mode"])
@pytest.mark.parametrize("end", ["everybody left", "drained"])
async def test_a_call_that_outlives_its_session_is_answered_in_either_mode(mode: str, end: str) -> None:
    till = Till()
    script = [call("pay", amount=5)], "It is noon.", "Paid."
    async with live_world(*script, tools=(till.gated,), **ON) as world:
        async with world.socket() as at:
            asked = await at.say("Pay.")
            assert (await at.say("What time is it?")).text == "It is noon."
            if end == "drained":
                run = world.bridge._service._live.get(next(iter(world.bridge._service._live._runs)))  # pyright: ignore
                assert run is not None
                await run.drain()
        if end == "everybody left":
            await asyncio.sleep(GRACE_S + 1)
        assert (await world.states(), world.is_live) == (["pending"], False)
        at.decide("pay")
        if mode == "request mode":
            page = at.over_http()
            late = await page.answer(0)
        else:
            async with world.socket() as again:
                again.take_over(at)
                late = await again.answer(0)
        assert (late.status, late.message_id, late.text) == (200, asked.message_id, "Paid.")
        assert (till.paid, await world.states()) == ([5], ["done"])


async def test_a_transfer_leaves_what_waits_pending_and_the_next_agent_is_told_nothing_of_it() -> None:
    async def other(session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.kind == "content":
                await session.answer("Hello.")

    till = Till()
    clerk = LlmAgent(name="clerk", model=ScriptedLiveModel(other))
    made = [call("pay", amount=5), call("transfer_to_agent", agent_name="clerk")]
    model = ScriptedLiveModel([made, "Paid."])
    agent = LlmAgent(name="helper", model=model, tools=[till.gated], sub_agents=[clerk])
    async with live_page(agent=agent, model=model, **ON) as at:
        asked = await at.say("Pay.")
        await asyncio.sleep(5)
        assert (await at.say("Hello?")).text == "Hello."
        assert await at.world.states() == ["pending"]
        assert responses(clerk.model) == []  # pyright: ignore[reportArgumentType]
        answer = await at.send_parts(asked.message_id or "", approved(at.part("pay")))
        assert (answer.status, till.paid) == (200, [5])


class SlowStore(MemoryStore):
    """Takes its time when a tool is about to begin."""

    def __init__(self) -> None:
        super().__init__(clock=asyncio.get_running_loop().time)
        self.is_asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def renew(self, *given: Any) -> Any:
        self.is_asked.set()
        await self.go_on.wait()
        return await super().renew(*given)


async def test_a_call_that_is_given_up_between_its_approval_and_its_beginning_freezes_nobody() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await session.expect_response()
        await store.is_asked.wait()
        await session.call("transfer_to_agent", agent_name="clerk")
        await session.expect("close")

    async def other(session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.kind == "content":
                await session.answer("Hello.")

    till, store = Till(), SlowStore()
    clerk = LlmAgent(name="clerk", model=ScriptedLiveModel(other))
    model = ScriptedLiveModel(server)
    agent = LlmAgent(name="helper", model=model, tools=[till.gated], sub_agents=[clerk])
    async with live_page(agent=agent, model=model, record=store, **ON) as at:
        asked = await at.say("Pay.")
        answering = asyncio.create_task(at.send_parts(asked.message_id or "", approved(at.part("pay"))))
        await store.is_asked.wait()
        await asyncio.sleep(0.5)
        store.go_on.set()
        async with asyncio.timeout(60):
            assert (await answering).status == 200
        assert till.paid == []
        await asyncio.sleep(5)
        run = at.world.bridge._service._live.get(store_key(at))  # pyright: ignore[reportPrivateUsage]
        assert run is None or not run._segments.turns.is_at_work  # pyright: ignore[reportPrivateUsage]


def store_key(at: LivePage) -> ChatKey:
    return ChatKey(at.chat.runner.app_name, "ann", "c1")


async def test_a_tool_that_was_approved_works_beside_the_conversation() -> None:
    slow = Slow()
    script = [call("pay", amount=5)], "Paid."
    async with live_page(*script, tools=(slow.gated,), **ON) as at:
        await at.say("Pay.")
        at.decide("pay")
        paying = asyncio.create_task(at.answer(0))
        await until(lambda: slow.paid)
        slow.go_on.set()
        assert (await paying).text == "Paid."
