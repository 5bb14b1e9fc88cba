"""Tools that work beside a live conversation: it goes on while they wait for somebody, work, or stream."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, call
from live.live_pages import (
    DENIED,
    A,
    D,
    E,
    I,
    O,
    X,
    approved,
    beside,
    both_families,
    live_page,
    segment,
    step,
    told_results,
    until,
)
from support.pages import Till

pytestmark = pytest.mark.virtual_time

HELLO = [{"type": "text", "text": "Hello?"}]
FAILED = {"error": "The tool pay failed."}

decisions = pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])


# -- tools that run beside the conversation ---------------------------------------------------------------------------


@both_families
@decisions
async def test_a_tool_beside_the_conversation_waits_while_that_goes_on(family: str, yes: bool) -> None:
    till = Till()
    tool = beside(till.pay, require_confirmation=True)
    script = [call("pay", amount=5)], "It is noon.", "Done."
    async with live_page(*script, family=family, tools=(tool,)) as at:
        asked = await at.say("Pay.")
        assert asked.types == segment(*step(*I, *A))
        assert (await at.say("What time is it?")).text == "It is noon."
        assert (till.paid, await at.world.states()) == ([], ["pending"])
        at.decide("pay", approved=yes)
        late = await at.answer(0)
        assert (late.message_id, late.text) == (asked.message_id, "Done.")
        assert late.types == segment(*(O if yes else D), *X)
        assert told_results(at.model) == [{"paid": 5} if yes else DENIED]
        assert till.paid == ([5] if yes else [])
        await at.is_what_a_reload_shows()


class Slow:
    """Works until it is told to end, one way or the other."""

    def __init__(self, *, fails: bool = False) -> None:
        self.go_on = asyncio.Event()
        self._fails = fails

    async def pay(self) -> dict[str, str]:
        """Pays, some time."""
        await self.go_on.wait()
        if self._fails:
            raise ConnectionError("SECRET host")
        return {"paid": "at last"}


@pytest.mark.parametrize("fails", [False, True], ids=["works", "raises"])
async def test_a_tool_beside_the_conversation_tells_its_result_in_a_turn_of_its_own(fails: bool) -> None:
    slow = Slow(fails=fails)
    script = [call("pay")], "It is noon.", "As I said, " * 20, "Hello."
    async with live_page(*script, tools=(beside(slow.pay),)) as at:
        first = await at.say("Pay.")
        assert at.part("pay")["output"] == {"status": "pending"}
        assert len(first.of_type("tool-output-available")) == 1
        assert (await at.say("What time is it?")).text == "It is noon."
        slow.go_on.set()
        late = await at.unasked_turn()
        assert (late.message_id, late.text) == (first.message_id, "")
        words = await at.unasked_turn()
        assert (words.message_id != first.message_id, words.text) == (True, "As I said, " * 20)
        assert told_results(at.model) == [FAILED if fails else {"paid": "at last"}]
        assert at.states("pay") == ["output-error" if fails else "output-available"]
        assert (await at.say("Hello?")).text == "Hello."
        assert at.turns_told == 2
        shown = await at.chat.messages()
        assert [message["role"] for message in shown] == ["user", "assistant"] * 2 + ["assistant", "user", "assistant"]


@pytest.mark.parametrize("fails", [False, True], ids=["works", "raises"])
async def test_a_model_that_does_not_end_its_turn_is_listened_to_until_the_tool_beside_it_is_done(fails: bool) -> None:
    slow = Slow(fails=fails)
    async with live_page([call("pay")], "Done.", "Hello.", family="3", tools=(beside(slow.pay),)) as at:
        told = asyncio.create_task(at.say("Pay."))
        await asyncio.sleep(5)
        slow.go_on.set()
        assert (await told).types == segment(*step(*I, *(E if fails else O)), *X)
        assert told_results(at.model) == [FAILED if fails else {"paid": "at last"}]
        assert (await at.say("Hello?")).text == "Hello."
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("fails", [False, True], ids=["works", "raises"])
async def test_a_result_from_beside_while_the_model_answers_something_else_ends_its_own_segment(fails: bool) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay")
        await session.expect_text()
        await session.say("It is ")
        slow.go_on.set()
        await session.expect_response()
        await session.say("noon.")
        await session.turn_complete()
        await session.answer("And it is done.")
        assert await session.expect_text() == "Hello?"
        await session.answer("Hello.")
        await session.expect("close")

    slow = Slow(fails=fails)

    slow.go_on = asyncio.Event()
    async with live_page(model=ScriptedLiveModel(server), tools=(beside(slow.pay),)) as at:
        await at.say("Pay.")
        assert (await at.say("What time is it?")).text == "It is noon."
        await asyncio.sleep(5)
        assert (await at.say("Hello?")).text == "Hello."
        shown = await at.chat.messages()
        assert [message["role"] for message in shown if message["role"] == "user"] == ["user"] * 3
        states = [part["state"] for part in shown[1]["parts"] if "toolCallId" in part]
        assert states == ["output-error" if fails else "output-available"]


@pytest.mark.parametrize("door", ["HTTP", "another socket"])
async def test_a_call_from_beside_is_approved_while_the_model_answers_something_else(door: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await session.expect_text()
        await session.say("It is ")
        is_speaking.set()
        assert (await session.expect_response()).response == {"paid": 5}
        await session.say("noon.")
        await session.turn_complete()
        assert await session.expect_text() == "Hello?"
        await session.answer("Hello.")
        await session.expect("close")

    is_speaking = asyncio.Event()

    till = Till()
    tool = beside(till.pay, require_confirmation=True)
    async with live_page(model=ScriptedLiveModel(server), tools=(tool,)) as at, at.world.socket() as other:
        asked = await at.say("Pay.")
        card, message_id = at.part("pay"), asked.message_id or ""
        noon = asyncio.create_task(at.say("What time is it?"))
        await is_speaking.wait()
        if door == "HTTP":
            posted = {"id": message_id, "role": "assistant", "parts": [approved(card)]}
            told = await at.chat.post({"id": "c1", "messageId": message_id, "messages": [posted]})
        else:
            told = await other.send_parts(message_id, approved(card))
        assert told.message_id == message_id
        assert [chunk["output"] for chunk in told.of_type("tool-output-available")] == [{"paid": 5}]
        assert (await noon).text == "It is noon."
        assert (await at.say("Hello?")).text == "Hello."
        assert till.paid == [5]
        shown = await at.chat.messages()
        assert [message["role"] for message in shown] == ["user", "assistant"] * 3
        assert [part["state"] for part in shown[1]["parts"] if "toolCallId" in part] == ["output-available"]


# -- tools that stream ------------------------------------------------------------------------------------------------


def streamed_results(model: ScriptedLiveModel) -> list[Any]:
    return [answer.response for got in model.sessions[-1].received for answer in got.responses]


@both_families
@pytest.mark.parametrize("gated", [False, True], ids=["free", "gated"])
async def test_a_tool_that_streams_tells_the_model_all_along(family: str, gated: bool) -> None:
    watched: list[str] = []

    async def watch(what: str) -> AsyncGenerator[str, None]:
        """Watches a price."""
        for price in ("up", "down"):
            watched.append(price)
            yield f"{what} {price}"
            await asyncio.sleep(10)

    tool = FunctionTool(watch, require_confirmation=gated)
    script = [call("watch", what="gold")], "I watch.", *["Well."] * 4
    async with live_page(*script, family=family, tools=(tool,)) as at:
        asked = await at.say("Watch.")
        if gated:
            assert asked.types == segment(*step(*I, *A))
            await asyncio.sleep(15)
            assert watched == []
            at.decide("watch")
            await at.answer()
        await until(lambda: len(watched) == 2)
        await asyncio.sleep(15)
        told = [next(iter((result or {}).values())) for result in streamed_results(at.model)]
        assert [words for words in told if "gold" in str(words)] == ["gold up", "gold down"]
        assert (await at.world.states()) == (["done"] if gated else [])


async def test_an_answer_to_a_call_that_was_given_up_is_taken_as_soon_as_the_session_is_idle() -> None:
    """The agent that waited has handed over; the session goes on, and is busy when the answer comes."""
    till, goes_on = Till(), asyncio.Event()

    async def other(session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.kind == "content":
                await session.say("Well, ")
                await goes_on.wait()
                await session.answer("hello.")

    clerk = LlmAgent(name="clerk", model=ScriptedLiveModel(other))
    made = [call("pay", amount=5), call("transfer_to_agent", agent_name="clerk")]
    model = ScriptedLiveModel([made, "Paid."])
    tool = beside(till.pay, require_confirmation=True)
    agent = LlmAgent(name="helper", model=model, tools=[tool], sub_agents=[clerk])
    async with live_page(agent=agent, model=model) as at:
        asked = await at.say("Pay.")
        speaking = asyncio.create_task(at.send(messages=[{"id": "x", "role": "user", "parts": HELLO}]))
        await asyncio.sleep(1)
        answering = asyncio.create_task(at.send_parts(asked.message_id or "", approved(at.part("pay"))))
        await asyncio.sleep(1)
        assert not answering.done()
        goes_on.set()
        await speaking
        async with asyncio.timeout(10):
            assert (await answering).status == 200
        assert till.paid == [5]
