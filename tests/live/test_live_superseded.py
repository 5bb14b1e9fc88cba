"""The user does not answer what a live session asks, but writes something else, or stops it: that is a refusal."""

from typing import Any

import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, call
from live.live_pages import (
    SUPERSEDED,
    D,
    X,
    approved,
    both_families,
    live_page,
    segment,
    step,
    until,
)
from support.conversations import asked_parts
from support.pages import Till

pytestmark = pytest.mark.virtual_time


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


# -- the user writes instead ------------------------------------------------------------------------------------------


def hears_all_and_answers_once(*calls: Any) -> Any:
    """A model that gets the results of its calls and the user's next words before it says anything."""

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.calls(*calls)
        await session.expect_responses()
        assert await session.expect_text() == "What time is it?"
        await session.answer("It is noon.")
        await session.expect("close")

    return server


@both_families
async def test_words_while_a_call_waits_deny_it_and_the_model_hears_of_that_first(family: str) -> None:
    till = Till()
    model = ScriptedLiveModel(hears_all_and_answers_once(call("pay", amount=5)), family=family)
    async with live_page(model=model, tools=(till.gated,)) as at:
        asked = await at.say("Pay.")
        answer = await at.say("What time is it?")
        assert answer.types == segment(*X)
        assert (answer.text, answer.message_id != asked.message_id) == ("It is noon.", True)
        heard = [part for part in session_parts(model) if part != "Pay."]
        assert heard[1:3] == [{"result": SUPERSEDED}, "What time is it?"]
        (record,) = await at.world.records()
        assert (record.state, record.reason) == ("denied", "superseded: the user wrote something else instead")
        assert till.paid == []
        shown = await at.chat.messages()
        assert [message["role"] for message in shown] == ["user", "assistant", "user", "assistant"]
        assert [part["state"] for part in shown[1]["parts"] if "toolCallId" in part] == ["output-denied"]
        late = await at.send_parts(asked.message_id or "", approved(at.part("pay")))
        assert late.types == segment(*D, *step())
        assert till.paid == []


def session_parts(model: ScriptedLiveModel) -> list[Any]:
    """What the model has heard and said in its last session."""
    request = model.sessions[-1].request.model_copy(update={"contents": model.sessions[-1].contents})
    return asked_parts(request)


@both_families
async def test_a_model_that_is_interrupted_by_the_new_words_answers_them_in_their_own_message(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await session.expect_responses()
        await session.expect_text()
        await session.interrupted()
        await session.turn_complete()
        await session.answer("It is noon.")
        await session.expect("close")

    model = ScriptedLiveModel(server, family=family)
    async with live_page(model=model, tools=(Till().gated,)) as at:
        await at.say("Pay.")
        assert (await at.say("What time is it?")).text == "It is noon."
        assert at.turns_told == 0


@both_families
async def test_words_deny_every_call_that_waits_and_what_was_decided_stays(family: str) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6), call("where")]
    model = ScriptedLiveModel(hears_all_and_answers_once(*calls), family=family)
    async with live_page(model=model, tools=(till.gated, client_tool(where, approve=True))) as at:
        await at.say("Pay.")
        at.decide("pay", 0)
        await at.answer()
        assert (await at.say("What time is it?")).text == "It is noon."
        results = [part["result"] for part in session_parts(model) if isinstance(part, dict) and "result" in part]
        assert results == [{"paid": 5}, SUPERSEDED, SUPERSEDED]
        assert till.paid == [5]
        shown = await at.chat.messages()
        states = [part["state"] for part in shown[1]["parts"] if "toolCallId" in part]
        assert states == ["output-available", "output-denied", "output-denied"]


@both_families
async def test_words_while_the_browser_works_end_its_call_with_an_error(family: str) -> None:
    model = ScriptedLiveModel(hears_all_and_answers_once(call("where")), family=family)
    async with live_page(model=model, tools=(client_tool(where),)) as at:
        asked = await at.say("Where?")
        assert (await at.say("What time is it?")).text == "It is noon."
        superseded = "Not run: superseded: the user wrote something else instead."
        assert {"result": {"error": superseded}} in session_parts(model)
        late = await at.send_parts(
            asked.message_id or "", {**at.part("where"), "state": "output-available", "output": {"latitude": 1}}
        )
        assert (late.error or {})["code"] == "not-found"  # as any other output of a call that has its result
        assert {"result": {"latitude": 1}} not in session_parts(model)


# -- stop -------------------------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("door", ["frame", "HTTP"])
async def test_a_stop_refuses_what_waits(family: str, door: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Hello.", family=family, tools=(till.gated,)) as at:
        asked = await at.say("Pay.")
        if door == "frame":
            at.client.tell("attach", id="c1")
            at.client.tell("stop")
        else:
            assert await at.chat.stop() == 204
        await until(lambda: not at.world.is_live)
        (record,) = await at.world.records()
        assert (record.state, record.reason) == ("denied", "the user stopped the session")
        shown = await at.chat.messages()
        assert [part["state"] for part in shown[1]["parts"] if "toolCallId" in part] == ["output-denied"]
        late = await at.send_parts(asked.message_id or "", approved(at.part("pay")))
        assert D[0] in late.types
        assert till.paid == []
