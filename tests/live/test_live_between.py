"""Live sessions in moments that no scenario names: voices, deletions, stops and lost stores while a call waits."""

import asyncio
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import LongRunningFunctionTool
from google.genai import types
from websockets.exceptions import ConnectionClosedError

from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, call
from live.live_pages import (
    GRACE_S,
    LivePage,
    approved,
    both_families,
    live_page,
    live_world,
    until,
    until_closed,
)
from live.talking_on_pages import ON, speaking_page
from support.asgi import exchange
from support.pages import Slow, Till
from transports.live_apps import sound

pytestmark = pytest.mark.virtual_time

modes = pytest.mark.parametrize("options", [ON, {}], ids=["talking on", "refusing"])


def attach(at: LivePage) -> None:
    at.client.tell("attach", id="c1")


async def delete(at: LivePage) -> int:
    return (await exchange(at.world.app, method="DELETE", path="/api/chat/c1", headers={"x-user": "ann"})).status


async def pay_parts(at: LivePage) -> list[dict[str, Any]]:
    shown = await at.chat.messages()
    return [part for message in shown for part in message["parts"] if part["type"] == "tool-pay"]


# -- voices ------------------------------------------------------------------------------------------------------------


@both_families
@modes
async def test_a_second_tab_speaks_while_a_card_of_the_first_waits(family: str, options: dict[str, Any]) -> None:
    """Where ADK does not listen meanwhile, what was said is answered after the decision."""

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        heard, results = False, list[Any]()
        while (received := await session.expect()).kind != "close":
            results += [found.response for found in received.final_responses]
            if received.kind == "audio" and not heard:
                heard = True
                await session.input_transcript("What time is it?", finished=True)
                await session.output_transcript("It is noon.")
                await session.turn_complete()
            if received.final_responses:
                await session.output_transcript("Paid.")
                await session.turn_complete()
        assert results == [{"paid": 5}]

    till, model = Till(), ScriptedLiveModel(server, family=family)
    options = {**options, "run_config": RunConfig(response_modalities=[types.Modality.AUDIO])}
    async with (
        live_world(model=model, tools=(till.gated,), **options) as world,
        speaking_page(world) as at,
        speaking_page(world) as other,
    ):
        asked = await at.say("Pay.")
        attach(at)
        attach(other)
        other.client.tell("voice-start", client="other", name="Kitchen", sdkVersion=6)
        other.client.send_frame(sound(20))
        await asyncio.sleep(1)
        at.client.send_frame(sound(20))
        refused = await at.client.own("error")
        assert refused["code"] == "voice-taken"
        await asyncio.sleep(10)
        assert (await world.states(), till.paid) == (["pending"], [])
        answer = await at.send_parts(asked.message_id or "", approved(at.part("pay")))
        assert answer.status == 200
        await asyncio.sleep(40)
        assert (await world.states(), till.paid) == (["done"], [5])
        shown = await at.chat.messages()
        texts = [part["text"] for message in shown for part in message["parts"] if part["type"] == "text"]
        assert sorted(texts) == ["It is noon.", "Paid.", "Pay.", "What time is it?"]
        assert [part["state"] for part in await pay_parts(at)] == ["output-available"]


# -- deletions ---------------------------------------------------------------------------------------------------------


@both_families
@modes
async def test_a_chat_is_deleted_while_its_user_speaks_and_a_card_waits(family: str, options: dict[str, Any]) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await until_closed(session)

    till, model = Till(), ScriptedLiveModel(server, family=family)
    async with live_world(model=model, tools=(till.gated,), **options) as world, speaking_page(world) as at:
        asked = await at.say("Pay.")
        card = at.part("pay")
        attach(at)
        at.client.tell("voice-start", client="page", sdkVersion=6)
        speaking = asyncio.create_task(microphone(at))
        await asyncio.sleep(1)
        assert await delete(at) == 204
        await asyncio.sleep(2)
        late = await at.send_parts(asked.message_id or "", approved(card))
        assert (late.error or {})["code"] == "not-found"
        assert (world.is_live, till.paid, await world.records(), len(model.sessions)) == (False, [], [], 1)
        speaking.cancel()


async def microphone(at: LivePage) -> None:
    while True:
        at.client.send_frame(sound(20))
        await asyncio.sleep(0.02)


@both_families
@modes
async def test_a_chat_is_deleted_while_an_approved_tool_runs(family: str, options: dict[str, Any]) -> None:
    slow = Slow()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(slow.gated,), **options) as at:
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        deleting = asyncio.create_task(delete(at))
        await asyncio.sleep(5)
        assert not deleting.done()
        slow.go_on.set()
        assert await deleting == 204
        await answering
        assert (slow.paid, at.world.is_live, await at.world.records()) == ([5], False, [])


# -- stops -------------------------------------------------------------------------------------------------------------


@modes
async def test_a_stop_while_the_model_is_dialled_again_refuses_what_waits(options: dict[str, Any]) -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            session.fail(ConnectionClosedError(None, None))
            return
        await session.resumption_handle("h1")
        await session.expect_text()
        await session.call("pay", amount=5)
        await loses.wait()
        session.fail(ConnectionClosedError(None, None))

    loses, till, model = asyncio.Event(), Till(), ScriptedLiveModel(server)
    async with live_page(model=model, tools=(till.gated,), **options) as at:
        await at.say("Pay.")
        loses.set()
        if options:  # else ADK notices the loss only after the decision
            await until(lambda: len(model.sessions) > 2)
        await at.world.bridge.stop("ann", "c1")
        assert (at.world.is_live, await at.world.states(), till.paid) == (False, ["denied"], [])
        assert [part["state"] for part in await pay_parts(at)] == ["output-denied"]


@modes
async def test_what_another_worker_has_approved_does_not_run_after_a_stop(options: dict[str, Any]) -> None:
    """The call has not seen its approval yet, and nobody else is to take it up."""
    till = Till()
    async with live_page([call("pay", amount=5)], tools=(till.gated,), **options) as at:
        await at.say("Pay.")
        store, (asked,) = at.world.store, await at.world.records()
        decided = call_record.decide(asked, by="ann", approved=True, now=(await store.read(asked.chat)).now)
        assert await store.compare_and_set(asked, decided)
        await at.world.bridge.stop("ann", "c1")
        await asyncio.sleep(300)
        assert (await at.world.states(), till.paid) == (["failed"], [])
        assert [part["state"] for part in await pay_parts(at)] == ["output-error"]
        assert (await at.say("Hello?")).status == 200
        assert (await at.world.states(), till.paid) == (["failed"], [])


# -- a store that dies -------------------------------------------------------------------------------------------------


class Mortal(MemoryStore):
    is_down = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("_") and callable(found) and super().__getattribute__("is_down"):
            raise StoreUnavailable
        return found


@both_families
@modes
async def test_a_store_that_dies_during_a_wait_and_comes_back_after_the_session_costs_nothing(
    family: str, options: dict[str, Any]
) -> None:
    till, store = Till(), Mortal(clock=asyncio.get_running_loop().time)
    script = [call("pay", amount=5)], "Paid."
    async with live_world(*script, family=family, tools=(till.gated,), record=store, **options) as world:
        async with world.socket() as at:
            asked = await at.say("Pay.")
            store.is_down = True
            await asyncio.sleep(5)
            refused = await at.send_parts(asked.message_id or "", approved(at.part("pay")))
            assert (refused.error or {})["code"] == "store-unavailable"
        await asyncio.sleep(GRACE_S + 10)
        store.is_down = False
        assert (await world.states(), till.paid) == (["pending"], [])
        async with world.socket() as again:
            again.take_over(at)
            again.decide("pay")
            late = await again.answer()
            assert (late.status, late.text) == (200, "Paid.")
            assert (till.paid, await world.states()) == ([5], ["done"])


class SlowSessions(InMemorySessionService):
    append_s = 0.0

    async def append_event(self, session: Session, event: Event) -> Event:
        await asyncio.sleep(self.append_s)
        return await super().append_event(session, event)


@both_families
@modes
async def test_of_two_tabs_that_write_while_a_lost_answer_is_still_being_stored_one_is_answered(
    family: str, options: dict[str, Any]
) -> None:
    async def server(session: LiveSession) -> None:
        if session.number == 1:
            await session.expect_text()
            await session.resumption_handle("h1")
            await session.say("The first half ")
            session.fail(ConnectionClosedError(None, None))
            return
        while (received := await session.expect()).kind != "close":
            if received.asks_for_reply:
                await session.answer("Yes.")

    model, sessions = ScriptedLiveModel(server, family=family), SlowSessions()
    async with (
        live_world(model=model, sessions=sessions, **options) as world,
        world.socket() as at,
        world.socket() as other,
    ):
        lost = asyncio.create_task(at.say("Tell me."))
        await until(lambda: len(model.sessions) > 1)
        sessions.append_s = 3
        assert (await lost).chunks[-1]["type"] == "error"
        first, second = await asyncio.gather(at.say("And now?"), other.say("Hello?"))
        assert (first.status, first.text) == (200, "Yes.")
        assert (second.error or {})["code"] == "run-active"


class FailingSessions(InMemorySessionService):
    is_down = False

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.is_down:
            raise ConnectionError
        return await super().append_event(session, event)


@both_families
async def test_an_outcome_that_cannot_be_stored_in_the_session_blocks_nobody(family: str) -> None:
    async def ask_the_boss() -> None:
        """Takes days."""

    till, sessions = Till(), FailingSessions()
    script = [call("ask_the_boss"), call("pay", amount=5)], "Yes."
    tools = (LongRunningFunctionTool(ask_the_boss), till.gated)
    async with live_page(*script, family=family, tools=tools, sessions=sessions, **ON) as at:
        asked = await at.say("Ask the boss, and pay.")
        await asyncio.sleep(5)
        sessions.is_down = True
        told = {**at.part("ask_the_boss"), "state": "output-available", "output": {"boss": "yes"}}
        kept = await at.send_parts(asked.message_id or "", told)
        assert "Your answer is recorded" in kept.chunks[-1]["errorText"]
        sessions.is_down = False
        await asyncio.sleep(5)
        assert (await at.say("Hello?")).text == "Yes."


# -- a model that numbers its calls anew -------------------------------------------------------------------------------


@both_families
@modes
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["older first", "newer first"])
async def test_a_model_that_calls_in_the_next_session_under_the_id_of_a_call_that_waits(
    family: str, options: dict[str, Any], order: tuple[int, int]
) -> None:
    async def server(session: LiveSession) -> None:
        amounts = {"Pay five.": 5, "Pay seven.": 7}
        while (received := await session.expect()).kind != "close":
            if received.kind == "content":
                made = types.FunctionCall(id="1", name="pay", args={"amount": amounts[received.text]})
                await session.calls(types.Part(function_call=made))
            elif received.kind == "response" and received.final_responses:
                results.extend((found.id, found.response) for found in received.final_responses)
                await session.answer("Done.")

    results: list[Any] = []
    till, model = Till(), ScriptedLiveModel(server, family=family)
    async with live_world(model=model, tools=(till.gated,), **options) as world:
        async with world.socket() as at:
            asked = [await at.say("Pay five.")]
        await world.run_ended()
        async with world.socket() as again:
            again.take_over(at)
            asked.append(await again.say("Pay seven."))
            cards = await pay_parts(again)
            assert [card["input"] for card in cards] == [{"amount": 5}, {"amount": 7}]
            assert [card["state"] for card in cards] == ["approval-requested"] * 2
            assert len({card["toolCallId"] for card in cards}) == 2
            for number in order:
                answer = await again.send_parts(asked[number].message_id or "", approved(cards[number]))
                paid = {"paid": cards[number]["input"]["amount"]}
                assert [chunk["output"] for chunk in answer.of_type("tool-output-available")] == [paid]
            assert [part["output"] for part in await pay_parts(again)] == [{"paid": 5}, {"paid": 7}]
        # A call of a session that is gone goes on in request mode, and the session that waits makes room for that.
        assert results == ([("1", {"paid": 7})] if order == (1, 0) else [])
        assert sorted(till.paid) == [5, 7]
        assert await world.states() == ["done", "done"]
