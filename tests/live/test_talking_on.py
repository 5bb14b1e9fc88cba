"""A live conversation goes on while somebody decides: the model knows that a call waits, and gets the result later."""

import asyncio
from typing import Any, cast

import pytest
from google.adk.events import Event
from google.genai import types

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.adk.calls.call_ids import CallIds
from adk_stream_protocol.adk.live.model_call_ids import ModelCallIds
from adk_stream_protocol.adk.live.model_watch import ModelWatch
from adk_stream_protocol.adk.live.talking_on import PENDING, TalkingOn
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, call
from live.live_pages import (
    DEADLINE_S,
    DENIED,
    EXPIRED,
    SUPERSEDED,
    A,
    D,
    I,
    O,
    X,
    approved,
    both_families,
    live_page,
    live_world,
    segment,
    step,
    until,
)
from live.talking_on_pages import ON, decisions, look, responses, speaking_page, stored_results, told, where
from support.pages import Till
from transports.live_apps import sound

pytestmark = pytest.mark.virtual_time

# -- a person decides -------------------------------------------------------------------------------------------------


@both_families
@decisions
async def test_the_conversation_goes_on_while_a_person_decides(family: str, yes: bool) -> None:
    till = Till()
    script = [call("pay", amount=5)], "It is noon.", "Two o'clock.", "Done."
    async with live_page(*script, family=family, tools=(till.gated,), **ON) as at:
        asked = await at.say("Pay.")
        assert asked.types == segment(*step(*I, *A))
        assert (await at.say("What time is it?")).text == "It is noon."
        assert (await at.say("And in two hours?")).text == "Two o'clock."
        assert (till.paid, await at.world.states()) == ([], ["pending"])
        at.decide("pay", approved=yes)
        late = await at.answer(0)
        assert (late.message_id, late.text) == (asked.message_id, "Done.")
        assert late.types == segment(*(O if yes else D), *X)
        assert till.paid == ([5] if yes else [])
        await at.is_what_a_reload_shows()


@both_families
async def test_the_model_is_told_that_the_call_waits_and_nobody_else_is(family: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(till.gated,), **ON) as at:
        await at.say("Pay.")
        await until(lambda: told(at.model) == [PENDING])
        (pending,) = responses(at.model)
        assert (pending.name, pending.id) == ("pay", at.part("pay")["toolCallId"])
        assert (pending.will_continue, pending.scheduling) == (True, types.FunctionResponseScheduling.SILENT)
        assert await stored_results(at) == []
        assert at.states("pay") == ["approval-requested"]
        (record,) = await at.world.records()
        assert (record.state, record.delivered) == ("pending", False)
        at.decide("pay")
        await at.answer()
        assert told(at.model) == [PENDING, {"paid": 5}]
        assert {found.id for found in responses(at.model)} == {pending.id}
        assert await stored_results(at) == [{"paid": 5}]


async def test_words_refuse_what_waits_unless_the_bridge_or_the_model_talks_on() -> None:
    for options in ({}, {"live_while_waiting": "refuse"}):
        till = Till()
        async with live_page([call("pay", amount=5)], "It is noon.", tools=(till.gated,), **options) as at:
            await at.say("Pay.")
            await at.say("What time is it?")
            assert told(at.model) == [SUPERSEDED]
            assert await at.world.states() == ["denied"]


@both_families
async def test_a_model_that_talks_on_does_so_in_the_message_that_waits(family: str) -> None:
    """So that the card is in the last step of the last message, where clients look for it."""

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        assert (await session.expect_response()).response == PENDING
        await asyncio.sleep(10)
        await session.answer("Please look at your screen.")
        assert (await session.expect_response()).response == {"paid": 5}
        await session.answer("Paid.")
        await session.expect("close")

    till = Till()
    model = ScriptedLiveModel(server, family=family)
    async with live_page(model=model, tools=(till.gated,), **ON) as at:
        asked = await at.say("Pay.")
        more = await at.unasked_turn()
        assert (more.message_id, more.text) == (asked.message_id, "Please look at your screen.")
        assert at.states("pay") == ["approval-requested"]
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        (_, answer) = await at.chat.messages()
        kinds = [part["type"] for part in answer["parts"] if part["type"] != "data-adk-approval"]
        assert kinds == ["step-start", "tool-pay", "text", "step-start", "text"]


@both_families
async def test_what_the_user_says_meanwhile_has_its_own_answer(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        assert (await session.expect_response()).response == PENDING
        for said, answer in (("What time is it?", "It is noon."), ("And the weather?", "It rains.")):
            await session.expect_audio()
            await session.input_transcript(said, finished=True)
            await session.output_transcript(answer)
            await session.turn_complete()
        assert (await session.expect_response()).response == {"paid": 5}
        await session.answer("Paid.")
        await session.expect("close")

    till = Till()
    model = ScriptedLiveModel(server, family=family)
    async with live_world(model=model, tools=(till.gated,), **ON) as world, speaking_page(world) as at:
        asked = await at.say("Pay.")
        at.client.tell("attach", id="c1")
        at.client.tell("voice-start", client="page", sdkVersion=6)
        for answer in ("It is noon.", "It rains."):
            at.client.send_frame(sound(20))
            spoken = await at.unasked_turn()
            assert (spoken.message_id != asked.message_id, spoken.text) == (True, answer)
        late = await at.send_parts(asked.message_id or "", approved(at.part("pay")))
        assert (late.message_id, late.text) == (asked.message_id, "Paid.")
        shown = await at.chat.messages()
        said = [part["text"] for message in shown for part in message["parts"] if part["type"] == "text"]
        assert said == ["Pay.", "Paid.", "What time is it?", "It is noon.", "And the weather?", "It rains."]


@both_families
async def test_at_its_deadline_a_call_ends_in_its_message_and_the_model_speaks_of_it_in_a_new_one(family: str) -> None:
    till = Till()
    script = [call("pay", amount=5)], "It is noon.", "It was too late."
    async with live_page(*script, family=family, tools=(till.gated,), **ON) as at:
        asked = await at.say("Pay.")
        noon = await at.say("What time is it?")
        await asyncio.sleep(DEADLINE_S)
        ended = await at.unasked_turn()
        assert (ended.message_id, at.states("pay")) == (asked.message_id, ["output-error"])
        words = await at.unasked_turn()
        assert words.message_id not in (asked.message_id, noon.message_id)
        assert words.text == "It was too late."
        assert told(at.model) == [PENDING, EXPIRED]
        shown = await at.chat.messages()
        assert [message["id"] for message in shown][1::2] == [asked.message_id, noon.message_id]
        assert shown[-1]["id"] == words.message_id


async def test_two_calls_of_one_message_are_told_and_answered_one_by_one() -> None:
    till = Till()
    made = [call("pay", amount=5), call("pay", amount=6), call("look")]
    async with live_page(made, "Done.", tools=(till.gated, look), **ON) as at:
        asked = await at.say("Pay twice, and look.")
        assert sorted(at.states()) == ["approval-requested", "approval-requested", "output-available"]
        at.decide("pay", 1)
        assert (await at.send_parts(asked.message_id or "", *at.parts("pay"))).status == 200
        assert till.paid == [6]
        assert sorted(map(str, told(at.model))) == sorted(
            map(str, [PENDING, PENDING, {"balance": "plenty"}, {"paid": 6}])
        )
        assert (await at.send_parts(asked.message_id or "", approved(at.part("pay"), False))).text == "Done."
        assert told(at.model)[-1] == DENIED
        assert sorted(await at.world.states()) == ["denied", "done"]


@both_families
@pytest.mark.parametrize("says_more", [True, False])
@pytest.mark.parametrize("pause_s", [0.5, 5])
async def test_a_second_tab_answers_while_the_model_speaks_of_something_else(
    family: str, says_more: bool, pause_s: float
) -> None:
    """The model comes to the end of what it says, and then speaks of the result: to the tab that answered, if that
    reads on, and else in a message of its own."""

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await session.expect_response()
        await session.expect_text()
        await session.say("It is noon.")
        is_speaking.set()
        assert (await session.expect_response()).response == {"paid": 5}
        if says_more:
            await session.say(" Lunch?")
        await session.turn_complete()
        await asyncio.sleep(pause_s)
        await session.answer("Paid.")
        await session.expect("close")

    is_speaking, till = asyncio.Event(), Till()
    model = ScriptedLiveModel(server, family=family)
    async with live_page(model=model, tools=(till.gated,), **ON) as at, at.world.socket() as other:
        asked = await at.say("Pay.")
        noon = asyncio.create_task(at.say("What time is it?"))
        await is_speaking.wait()
        answer = await other.send_parts(asked.message_id or "", approved(at.part("pay")))
        assert answer.message_id == asked.message_id
        assert [chunk["output"] for chunk in answer.of_type("tool-output-available")] == [{"paid": 5}]
        assert answer.text == ("Paid." if pause_s < 1 else "")
        assert (await noon).text == ("It is noon. Lunch?" if says_more else "It is noon.")
        await asyncio.sleep(pause_s)
        shown = [(message["role"], message["parts"][-1].get("text")) for message in await at.chat.messages()]
        of_its_own = [] if pause_s < 1 else [("assistant", "Paid.")]
        assert shown[2:] == [("user", "What time is it?"), ("assistant", (await noon).text), *of_its_own]


# -- the browser ------------------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("gated", [False, True], ids=["free", "gated"])
async def test_the_conversation_goes_on_while_a_browser_works(family: str, gated: bool) -> None:
    tool = client_tool(where, approve=gated)
    async with live_page([call("where")], "It is noon.", "There.", family=family, tools=(tool,), **ON) as at:
        asked = await at.say("Where?")
        assert (await at.say("What time is it?")).text == "It is noon."
        if gated:
            at.decide("where")
            await at.answer(0)
        at.output("where", {"latitude": 1})
        late = await at.answer(0)
        assert (late.message_id, late.text) == (asked.message_id, "There.")
        assert told(at.model) == [PENDING, {"latitude": 1}]
        await at.is_what_a_reload_shows()


@both_families
async def test_a_browser_tool_whose_approval_cannot_be_decided_fails_and_the_session_goes_on(family: str) -> None:
    def approve() -> bool:
        raise ConnectionError("SECRET host")

    tool = client_tool(where, approve=approve)
    for options in (ON, {}):
        async with live_page([call("where")], "Sorry.", "Hello.", family=family, tools=(tool,), **options) as at:
            assert (await at.say("Where?")).text == "Sorry."
            assert told(at.model) == [{"error": "The tool where failed."}]
            assert (await at.say("Hello?")).text == "Hello."


def test_a_model_that_was_told_that_a_call_waits_owes_no_answer_for_that() -> None:
    """It was counted as a result otherwise: a lost connection would be told as a lost answer."""
    talking_on = TalkingOn("continue")
    watch = ModelWatch(Limits(), cast(Any, None), talking_on, ModelCallIds(CallIds(())), lambda found: found)
    made = types.Part(function_call=types.FunctionCall(id="1", name="pay", args={}))
    event = Event(author="helper", content=types.Content(role="model", parts=[made]))
    watch.sent(talking_on.pending_answer(CallKey("i1", "1"), event))
    assert watch.is_answer_due is False
    result = types.Part(function_response=types.FunctionResponse(id="1", name="pay", response={"paid": 5}))
    watch.sent(types.Content(role="user", parts=[result]))
    assert watch.is_answer_due is True
