"""Streams of the older frames that wait for an answer which does not come by them: what becomes of them."""

import asyncio
from typing import Any

import pytest

from adk_stream_protocol.testing import call
from live.live_pages import DEADLINE_S, EXPIRED, live_world, told_results
from support.live_client import decisions
from support.older_client import CONFIRMATION, is_one_stream, older_socket
from support.pages import Till
from transports.live_apps import live_app, talks_for_ever
from transports.older_pages import ASKS, older_page

pytestmark = pytest.mark.virtual_time


async def test_a_call_that_expires_goes_on_in_its_stream() -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], "Too late.", tools=(till.gated,)) as (at, client):
        client.write("Pay.")
        await client.asked()
        await asyncio.sleep(DEADLINE_S)
        await client.done()
        assert client.text == "Too late."
        assert is_one_stream(client.types)
        assert told_results(at.model) == [EXPIRED]


@pytest.mark.parametrize("door", ["socket", "http"])
async def test_an_answer_in_another_tab_goes_on_in_this_stream(door: str) -> None:
    """The other tab speaks the AI SDK's frames, or none."""
    till = Till()
    async with older_page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as (at, client), at.socket() as tab:
        client.write("Pay.")
        question = await client.asked()
        result = {"type": "tool-result", "toolCallId": question["toolCallId"], "output": {"confirmed": True}}
        answer = {"id": "u9", "role": "user", "parts": [result]}
        if door == "socket":
            assert (await tab.send(messages=[answer])).text == "Paid."
        else:
            assert (await at.chat.post({"id": "c1", "messages": [answer]})).text == "Paid."
        await client.done()
        assert client.text == "Paid."
        assert is_one_stream(client.types)
        assert till.paid == [5]


async def test_another_tab_can_answer_what_was_asked_here_in_its_own_way() -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as (at, client), at.socket() as tab:
        asked = await tab.client.say("Pay.")
        (part,) = decisions(asked, approved=True)
        client.tool_result(part["approval"]["id"], {"confirmed": True})
        await client.done()
        assert client.text == "Paid."
        assert is_one_stream(client.types)
        assert client.chunks[0] == {"type": "start", "messageId": asked.message_id}
        assert till.paid == [5]


@pytest.mark.parametrize("writer", ["here", "another tab"])
async def test_who_writes_on_ends_the_stream_that_waited(writer: str) -> None:
    till = Till()
    async with (
        older_page([call("pay", amount=5)], "Something else.", tools=(till.gated,)) as (at, client),
        at.socket() as tab,
    ):
        client.write("Pay.")
        await client.asked()
        if writer == "here":
            client.write("Never mind.")
            await client.done(2)
            half = client.types.index("[DONE]") + 1
            assert is_one_stream(client.types[half:])
            assert client.text == "Something else."
        else:
            await tab.client.say("Never mind.")
            await client.done()
            half = len(client.types)
        assert client.types[:half] == ["start", *ASKS, *ASKS, "finish", "[DONE]"]
        assert till.paid == []


async def test_a_stop_ends_the_stream_that_waits() -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], tools=(till.gated,)) as (at, client):
        client.write("Pay.")
        question = await client.asked()
        await at.bridge._service.stop("ann", "c1")  # pyright: ignore[reportPrivateUsage]
        await client.done()
        assert is_one_stream(client.types)
        client.confirm(question)
        await client.done(2)
        assert till.paid == []


async def test_a_stop_ends_the_stream_that_is_told() -> None:
    async with live_app(talks_for_ever) as live, older_socket(live.app, chat="c1") as client:
        client.write("Hello")
        await client.until(lambda: client.text == "Well, ")
        await live.bridge._service.stop("ann", "c1")  # pyright: ignore[reportPrivateUsage]
        await client.done()
        assert is_one_stream(client.types)
        assert client.types[-2] == "abort"


async def test_a_session_that_fails_says_so_in_the_stream_that_waits() -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], tools=(till.gated,)) as (at, client):
        client.write("Pay.")
        await client.asked()
        session: Any = at.bridge._service.live_voice("ann", "c1")  # pyright: ignore[reportPrivateUsage]
        await session.lose_lease()
        await client.done()
        assert is_one_stream(client.types)
        assert client.types[-2] == "error"
        assert client.chunks[-2]["code"] == "live-failed"


async def test_a_shutdown_ends_the_stream_that_waits_and_the_call_goes_on_waiting() -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], tools=(till.gated,)) as (at, client):
        client.write("Pay.")
        await client.asked()
        await at.bridge.drain()
        await client.done()
        assert is_one_stream(client.types)
        assert await at.states() == ["pending"]


# -- a socket that is lost --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("within_grace", [True, False], ids=["at once", "after the session"])
async def test_a_question_is_answered_on_another_socket(within_grace: bool) -> None:
    till = Till()
    async with live_world([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as at:
        async with older_socket(at.app, chat="c1") as client:
            client.write("Pay.")
            question = await client.asked()
        if not within_grace:
            await at.run_ended()
            assert await at.states() == ["pending"]
        (_, message) = await at.chat.messages()  # what a page shows that loads anew
        shown = [(part["type"], part["state"]) for part in message["parts"] if "toolCallId" in part]
        assert shown == [("tool-pay", "input-available"), (f"tool-{CONFIRMATION}", "input-available")]
        async with older_socket(at.app, chat="c1") as again:
            again.confirm(question)
            await again.done()
            assert till.paid == [5]
            assert again.text == "Paid."
            assert is_one_stream(again.types)
