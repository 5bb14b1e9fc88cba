"""What is said around an interruption: its rest may come late, and the next words are answered where they stand."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol.testing import LiveSession
from live.live_pages import both_families
from support.pages import Till
from transports.live_apps import chunks, live_app, own, said, sound, texts

pytestmark = pytest.mark.virtual_time


# -- late transcripts --------------------------------------------------------------------------------------------------


@both_families
async def test_what_was_spoken_before_an_interruption_may_be_told_after_it(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.input_transcript("A story", finished=True)
        await session.audio(b"\1\0")
        await session.output_transcript("Once upon ")
        await session.interrupted()
        await session.output_transcript("a time")  # transcripts have no order with other messages
        await session.turn_complete()
        await session.input_transcript("Shorter", finished=True)
        await session.audio(b"\2\0")
        await session.output_transcript("Fine.")
        await session.turn_complete()
        await session.expect("close")

    async with live_app(server, family=family, speaks=True) as live, live.attached() as client:
        client.send_frame(sound(20))
        await client.until(lambda: len(own(client, "turn")) == 2)
        await asyncio.sleep(5)
        assert len(own(client, "turn")) == 2
        assert texts(await live.messages()) == [
            ("user", "A story"),
            ("assistant", "Once upon a time"),
            ("user", "Shorter"),
            ("assistant", "Fine."),
        ]


@both_families
async def test_what_is_spoken_after_the_user_was_heard_is_something_new(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.input_transcript("A story", finished=True)
        await session.output_transcript("Once upon ")
        await session.interrupted()  # and the end of the turn never comes
        await session.input_transcript("Shorter", finished=True)
        await session.output_transcript("Fine.")
        await session.turn_complete()
        await session.expect("close")

    async with live_app(server, family=family, speaks=True) as live, live.attached() as client:
        client.send_frame(sound(20))
        await client.until(lambda: len(own(client, "turn")) == 2)
        await asyncio.sleep(5)
        told = texts(await live.messages())
        assert told[1:] == [("assistant", "Once upon "), ("user", "Shorter"), ("assistant", "Fine.")]


# -- the user's next words ---------------------------------------------------------------------------------------------


class Payer:
    """A model that pays when it is asked to, and may get the result and the user's next words before it says more."""

    def __init__(self, *, joins: bool, speaks_first: bool) -> None:
        self.calls, self.results = asyncio.Event(), list[Any]()
        self._joins, self._speaks_first = joins, speaks_first

    async def __call__(self, session: LiveSession) -> None:
        await session.expect_text()
        if self._speaks_first:
            await session.say("I am going to pay ")
        await self.calls.wait()
        await session.call("pay", amount=5)
        heard, owed = "", ["result", "words"]
        while (received := await session.expect()).kind != "close":
            self.results += [result.response for result in received.responses]
            heard = received.text if received.kind == "content" else heard
            owed.remove("words" if received.kind == "content" else "result")
            if not self._joins:
                await session.answer(f"As to {received.text}." if received.kind == "content" else "I have tried.")
            elif not owed:
                await session.answer(f"As to {heard}.")


@both_families
@pytest.mark.parametrize("joins", [True, False], ids=["answers both at once", "answers one by one"])
@pytest.mark.parametrize("speaks_first", [True, False], ids=["in mid-sentence", "before a word"])
@pytest.mark.parametrize("gated", [True, False], ids=["gated", "free"])
async def test_words_after_an_interrupt_are_answered_though_the_model_still_calls_a_tool(
    family: str, joins: bool, speaks_first: bool, gated: bool
) -> None:
    till, server = Till(), Payer(joins=joins, speaks_first=speaks_first)
    tool = FunctionTool(till.pay, require_confirmation=gated)
    async with live_app(server, family=family, tools=(tool,)) as live, live.attached() as client:
        first = client.start_send(said("Pay five", "pay"))
        await client.until(lambda: len(chunks(client, first)) >= (3 if speaks_first else 1))
        client.tell("interrupt")
        await client.answer(first)
        other = client.start_send(said("the time", "other"))
        await client.until(lambda: chunks(client, other))
        server.calls.set()
        answer = await client.answer(other)
        if answer.of_type("tool-approval-request"):  # the model may call it because of either
            answer = await client.decide(answer, approved=False)
        await asyncio.sleep(40)
        assert (answer.chunks[-1]["type"], live.runs) == ("finish", 1)
        assert len(till.paid) == (0 if gated else 1)
        assert len(server.results) == 1
        told = texts(await live.messages())
        asked = told.index(("user", "the time"))
        assert any("As to the time." in text for role, text in told[asked:] if role == "assistant")
        if joins:
            assert answer.text == "As to the time."
        assert not any("As to" in text for _, text in told[:asked])


@both_families
async def test_words_after_an_interrupt_are_answered_though_the_model_had_not_begun(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.expect_text()
        await session.answer("To both of you.")
        await session.expect("close")

    async with live_app(server, family=family) as live, live.attached() as client:
        first = client.start_send(said("Hello", "one"))
        await client.until(lambda: chunks(client, first))
        client.tell("interrupt")
        await client.answer(first)
        other = client.start_send(said("Are you there?", "two"))
        assert (await client.answer(other)).text == "To both of you."
        shown = await live.messages()
        assert texts(shown) == [("user", "Hello"), ("user", "Are you there?"), ("assistant", "To both of you.")]
        assert [message["id"] for message in shown[:2]] == ["one", "two"]
