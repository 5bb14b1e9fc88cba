"""The key that a tool may give to services that take one: the same for every attempt at a call, and for no other."""

import hashlib
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.tools import ToolContext
from google.genai import types

from adk_stream_protocol import idempotency_key
from adk_stream_protocol.protocol.digest import canonical_json, digest_of_call
from adk_stream_protocol.testing import call
from support.at_the_gate import AtTheGate
from support.pages import page
from support.records import CHAT
from support.session_events import calling


def numbered(arguments: dict[str, Any] | None) -> list[types.Part]:
    """By a model that numbers its calls anew in every answer."""
    return [types.Part(function_call=types.FunctionCall(id="0", name="book", args=arguments))]


class Bookings:
    """A tool, and the keys of its attempts."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks
        self.keys: list[str] = []
        self.invocations: list[str] = []

    def book(self, tool_context: ToolContext, amount: int = 0) -> dict[str, Any]:
        """Books."""
        self.keys.append(idempotency_key(tool_context))
        self.invocations.append(tool_context.invocation_id)
        if self._asks and tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Sure?")
        return {"booked": amount}


async def test_the_key_for_payment_services_is_the_same_for_every_attempt_and_another_for_every_call() -> None:
    bookings = Bookings(asks=True)
    calls = [call("book", amount=5), call("book", amount=5)]
    async with page(calls, "Booked.", [call("book", amount=5)], tools=(bookings.book,)) as at:
        await at.say("Book.")
        at.decide("book", 0)
        at.decide("book", 1)
        await at.answer()
        await at.say("Again.")
        keys = bookings.keys
        assert len(keys) == 5
        assert sorted(keys[:2]) == sorted(keys[2:4])
        assert len(set(keys)) == 3
        assert all(len(key) == 64 for key in keys)


@pytest.mark.parametrize("arguments", [None, {}, {"amount": 5}], ids=str)
async def test_the_key_is_made_of_the_call_and_nothing_else(arguments: dict[str, Any] | None) -> None:
    """Services remember it: made in another way, it would let a payment through a second time after an upgrade."""
    bookings = Bookings(asks=False)
    async with page(numbered(arguments), "Booked.", tools=(bookings.book,)) as at:
        await at.say("Book.")
        (invocation,) = bookings.invocations
        made_of = ["helper", "ann", "c1", invocation, "0", digest_of_call("book", arguments or {})]
        assert bookings.keys == [hashlib.sha256(canonical_json(made_of)).hexdigest()]


async def test_calls_of_one_turn_under_one_id_have_keys_of_their_own() -> None:
    bookings = Bookings(asks=False)
    async with page(numbered({"amount": 5}), numbered({"amount": 6}), "Booked.", tools=(bookings.book,)) as at:
        await at.say("Book.")
        first, second = bookings.keys
        assert first != second


async def test_the_key_is_the_same_after_another_call_of_that_id_elsewhere_in_the_chat() -> None:
    bookings = Bookings(asks=True)
    async with page(numbered({"amount": 5}), "Booked.", tools=(bookings.book,)) as at:
        await at.say("Book.")
        elsewhere = types.Content(role="model", parts=numbered({"amount": 6}))
        await at.chat.append(Event(author="other", branch="other", invocation_id="other", content=elsewhere))
        at.decide("book")
        assert (await at.answer()).text == "Booked."
        first, again = bookings.keys
        assert again == first


async def test_there_is_no_key_for_a_call_that_the_session_does_not_have() -> None:
    def book(tool_context: ToolContext) -> dict[str, Any]:
        """Books."""
        unknown = ToolContext(tool_context._invocation_context, function_call_id="made-up")
        try:
            return {"key": idempotency_key(unknown)}
        except ValueError as error:
            return {"refused": str(error)}

    async with page([call("book")], "Not booked.", tools=(book,)) as at:
        await at.say("Book.")
        assert at.part("book")["output"] == {"refused": "There is no such call in the session."}


async def test_in_chats_of_older_versions_the_key_is_that_of_the_last_call_of_its_id() -> None:
    at = await AtTheGate.opened()
    first, last = (calling(types.FunctionCall(id="1", name="book", args={"amount": amount})) for amount in (5, 6))
    at.context.session.events += [first, last]
    digest = digest_of_call("book", {"amount": 6})
    expected = hashlib.sha256(canonical_json([*CHAT, "i1", "1", digest])).hexdigest()
    assert idempotency_key(at.tool_context) == expected
