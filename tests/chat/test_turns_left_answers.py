"""A stock `stop()` only disconnects: an answer that its reader has left makes room for the user's next words."""

import asyncio
import json
from typing import Any

import pytest

from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.testing import call
from support.asgi import Exchange, exchange
from support.conversations import asked_parts, hanging
from support.pages import Page, Slow, page, results_told
from support.workers import CHAT, answer_body, words_body, workers

pytestmark = pytest.mark.virtual_time

HELLO = words_body("Hello.", "u1")
NEXT = words_body("Never mind.", "u2")


def begin(at: Page, body: dict[str, Any], *, until: bytes) -> "asyncio.Task[Exchange]":
    """Its reader leaves as soon as it has read this."""
    return asyncio.create_task(
        exchange(at.chat.app, body=json.dumps(body).encode(), leave_after=lambda piece: until in piece)
    )


async def test_new_words_begin_when_the_reader_of_the_running_answer_has_left() -> None:
    _, agent = hanging("Hel", "lo you.", script=("Fine.",))
    async with page(agent=agent) as at:
        await begin(at, HELLO, until=b"lo you.")
        answer = await at.chat.post(NEXT)
        assert (answer.status, answer.text) == (200, "Fine.")


async def test_an_answer_that_made_room_ends_as_if_it_had_been_stopped() -> None:
    model, agent = hanging("Hel", "lo you.", script=("Fine.",))
    async with page(agent=agent) as at:
        await begin(at, HELLO, until=b"lo you.")
        answer = await at.chat.post(NEXT)
        assert model.is_closed
        shown = await at.chat.messages()
        assert [message["role"] for message in shown] == ["user", "assistant", "user", "assistant"]
        assert shown[1]["parts"][-1]["text"] == "Hello you."
        assert shown[3]["id"] == answer.message_id
        assert asked_parts(model.requests[-1]) == ["Hello.", "Hello you.", "Never mind."]


async def test_a_reader_may_take_a_moment_to_be_gone() -> None:
    _, agent = hanging("Hel", "lo you.", script=("Fine.",))
    async with page(agent=agent) as at:
        leaving = asyncio.Event()
        reading = asyncio.create_task(_read_until(at, leaving))
        await asyncio.sleep(0.1)
        saying = asyncio.create_task(at.chat.post(NEXT))
        await asyncio.sleep(1)
        assert not saying.done()
        leaving.set()
        assert (await saying).text == "Fine."
        await reading


async def _read_until(at: Page, leaving: asyncio.Event) -> None:
    """A reader at the level of ASGI, who goes when it is told to."""
    messages = iter([{"type": "http.request", "body": json.dumps(HELLO).encode(), "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        await leaving.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/chat",
        "raw_path": b"/api/chat",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }
    await at.chat.app(scope, receive, send)  # pyright: ignore


# -- tools ------------------------------------------------------------------------------------------------------------


async def test_a_tool_that_has_begun_finishes_before_new_words_begin() -> None:
    slow = Slow()
    replies = [[call("pay", amount=5)], "Fine."]
    async with page(*replies, tools=(slow.pay,)) as at:
        reading = begin(at, HELLO, until=b"tool-input-available")
        await slow.started.wait()
        await reading
        saying = asyncio.create_task(at.chat.post(NEXT))
        await asyncio.sleep(30)
        assert (saying.done(), len(at.chat.model.requests)) == (False, 1)
        slow.go_on.set()
        assert (await saying).text == "Fine."
        assert results_told(at.chat.model) == [{"paid": 5}]


async def test_whoever_waits_for_a_tool_of_the_answer_before_is_kept_with_pings() -> None:
    slow = Slow()
    async with page([call("pay", amount=5)], "Fine.", tools=(slow.pay,)) as at:
        reading = begin(at, HELLO, until=b"tool-input-available")
        await slow.started.wait()
        await reading
        told: list[bytes] = []
        saying = asyncio.create_task(exchange(at.chat.app, body=json.dumps(NEXT).encode(), on_send=told.append))
        await asyncio.sleep(5)
        assert b"".join(told).startswith(b":")
        slow.go_on.set()
        assert (await saying).status == 200


async def test_an_approved_payment_whose_reader_has_left_is_recorded_before_new_words_begin() -> None:
    slow = Slow()
    replies = [[call("pay", amount=5)], "Fine."]
    async with workers(*replies, tools=(slow.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        reading = begin(at, answer_body(at), until=b"start")
        await slow.started.wait()
        await reading
        saying = asyncio.create_task(at.chat.post(NEXT))
        await asyncio.sleep(30)
        slow.go_on.set()
        assert (await saying).text == "Fine."
        assert await staff.states() == [State.DONE]
        assert results_told(staff.model) == [{"paid": 5}]


# -- what is not left -------------------------------------------------------------------------------------------------


async def test_an_answer_that_is_still_read_is_not_stopped() -> None:
    model, agent = hanging("Hel", "lo you.")
    async with page(agent=agent) as at:
        saying = asyncio.create_task(at.chat.post(HELLO))
        await model.hangs.wait()
        before = asyncio.get_running_loop().time()
        refused = await exchange(at.chat.app, body=json.dumps(NEXT).encode())
        assert asyncio.get_running_loop().time() - before <= 2.1
        assert (refused.status, refused.headers["retry-after"]) == (409, "1")
        model.go_on.set()
        assert (await saying).text == "Hello you."


async def test_an_answer_with_two_readers_of_whom_one_has_left_is_not_stopped() -> None:
    model, agent = hanging("Hel", "lo you.")
    async with page(agent=agent) as at:
        saying = asyncio.create_task(at.chat.post(HELLO))
        await model.hangs.wait()
        await begin(at, HELLO, until=b"lo you.")
        assert (await at.chat.post(NEXT)).status == 409
        model.go_on.set()
        assert (await saying).text == "Hello you."


async def test_a_run_that_has_had_no_reader_yet_is_not_stopped() -> None:
    slow = Slow()
    async with workers([call("pay", amount=5)], "Paid.", tools=(slow.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        await staff.approve_and_die()
        staff.clock.now += 11
        await at.chat.bridge.recover()
        await slow.started.wait()
        assert (await at.chat.post(NEXT)).status == 409
        slow.go_on.set()
        while at.chat.is_running:
            await asyncio.sleep(0)
        assert await staff.states() == [State.DONE]
        assert len(staff.model.requests) == 2


async def test_an_answer_of_another_worker_is_not_stopped() -> None:
    async with workers("Fine.") as staff:
        at = staff.page()
        lease, _ = await staff.store.acquire(CHAT, 1000)
        assert lease is not None
        assert (await at.chat.post(NEXT)).status == 409
