"""A person and a browser answer the calls of one message: together, one by one, mixed, in any order."""

import copy
from itertools import permutations, product
from typing import Any

import pytest
from google.adk.tools import FunctionTool
from google.genai import types

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, call
from support.conversations import every_store
from support.pages import Page, Till, page, results_told


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


def play(track: int) -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


GATED_WHERE = client_tool(where, approve=True)
PLACE = {"latitude": 1}
CHAT = ChatKey("helper", "ann", "c1")


def request_of(at: Page) -> dict[str, Any]:
    """What the page would post now."""
    return {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}


def told(answer: Answer) -> list[str]:
    """What a segment tells, in the letters of the scenarios: I input, A approval, O, D, E results, X text."""
    letters = {
        "tool-input-available": "I",
        "tool-approval-request": "A",
        "tool-output-available": "O",
        "tool-output-denied": "D",
        "tool-output-error": "E",
        "text-start": "X",
    }
    return [letters[chunk["type"]] for chunk in answer.chunks if chunk["type"] in letters]


# -- one call ---------------------------------------------------------------------------------------------------------


@every_store
async def test_an_approved_call_goes_on_in_the_same_message(store: Any) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), store=store) as at:
        asked = await at.say("Pay.")
        assert told(asked) == ["I", "A"]
        assert (await at.chat.chats())[0]["waiting"] is True
        await at.is_what_a_reload_shows()
        at.decide("pay")
        answer = await at.answer()
        assert answer.message_id == asked.message_id
        assert told(answer) == ["O", "X"]
        assert (await at.chat.chats())[0]["waiting"] is False
        await at.is_what_a_reload_shows()
        assert till.paid == [5]


@every_store
async def test_a_denied_call_tells_the_model_and_its_reason(store: Any) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Not paid.", tools=(till.gated,), store=store) as at:
        await at.say("Pay.")
        at.decide("pay", approved=False, reason="Too much.")
        assert told(await at.answer()) == ["D", "X"]
        assert results_told(at.chat.model) == [
            {"error": "This call was not run: the user denied it. Reason: Too much."}
        ]
        assert till.paid == []
        await at.is_what_a_reload_shows()
        assert at.part("pay")["approval"]["reason"] == "Too much."


@every_store
async def test_a_browsers_call_is_approved_first_and_answered_then(store: Any) -> None:
    async with page([call("where")], "There.", tools=(GATED_WHERE,), store=store) as at:
        assert told(await at.say("Where?")) == ["A"]
        await at.is_what_a_reload_shows()
        at.decide("where")
        assert told(await at.answer()) == ["I"]
        await at.is_what_a_reload_shows()
        at.output("where", PLACE)
        assert told(await at.answer()) == ["X"]
        assert results_told(at.chat.model) == [PLACE]
        await at.is_what_a_reload_shows()


async def test_a_browsers_call_is_approved_and_answered_in_one_request() -> None:
    async with page([call("where")], "There.", tools=(GATED_WHERE,)) as at:
        await at.say("Where?")
        at.decide("where")
        at.output("where", PLACE)
        assert told(await at.answer()) == ["X"]
        assert results_told(at.chat.model) == [PLACE]
        await at.is_what_a_reload_shows()


async def test_a_denied_browsers_call_never_gets_its_input() -> None:
    async with page([call("where")], "Unknown.", tools=(GATED_WHERE,)) as at:
        await at.say("Where?")
        at.decide("where", approved=False)
        assert told(await at.answer()) == ["D", "X"]
        assert results_told(at.chat.model) == [{"error": "This call was not run: the user denied it."}]
        await at.is_what_a_reload_shows()


# -- several calls ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approved", [*product([True, False], repeat=2)])
@pytest.mark.parametrize("order", ["together", (0, 1), (1, 0)])
async def test_two_payments_are_answered_in_any_way(approved: tuple[bool, bool], order: Any) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with page(calls, "Done.", tools=(till.gated,)) as at:
        assert told(await at.say("Pay.")) == ["I", "I", "A", "A"]
        if order == "together":
            at.decide("pay", 0, approved=approved[0])
            at.decide("pay", 1, approved=approved[1])
        else:
            first, second = order
            at.decide("pay", first, approved=approved[first])
            half = await at.answer()
            assert told(half) == (["O"] if approved[first] else [])
            assert len(at.chat.model.requests) == 1
            await at.is_what_a_reload_shows()
            at.decide("pay", second, approved=approved[second])
        answer = await at.answer()
        assert answer.text == "Done."
        assert len(at.chat.model.requests) == 2
        assert sorted(till.paid) == [amount for amount, yes in zip((5, 6), approved, strict=True) if yes]
        denied = {"error": "This call was not run: the user denied it."}
        expected = [{"paid": n} if yes else denied for n, yes in zip((5, 6), approved, strict=True)]
        assert results_told(at.chat.model) == expected
        assert at.states() == ["output-available" if yes else "output-denied" for yes in approved]
        await at.is_what_a_reload_shows()


async def test_results_of_calls_that_are_answered_together_keep_the_order_of_the_calls() -> None:
    till = Till()
    calls = [call("pay", amount=amount) for amount in (5, 6, 7)]
    async with page(calls, "Done.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        for number in (2, 0, 1):
            at.decide("pay", number, approved=number != 1)
        answer = await at.answer()
        assert told(answer) == ["O", "D", "O", "X"]
        given = [chunk["toolCallId"] for chunk in answer.chunks if chunk["type"].startswith("tool-output")]
        assert given == [made.function_call.id for made in calls]


MIXED = ["pay", "where"]


@pytest.mark.parametrize("approved", [*product([True, False], repeat=2)], ids=str)
@pytest.mark.parametrize("order", ["together", *permutations(MIXED)], ids=str)
async def test_a_payment_and_a_browsers_call_are_answered_in_any_way(approved: tuple[bool, bool], order: Any) -> None:
    till, yes = Till(), dict(zip(MIXED, approved, strict=True))
    async with page([call("pay", amount=5), call("where")], "Done.", tools=(till.gated, GATED_WHERE)) as at:
        await at.say("Go.")
        for decided in [MIXED] if order == "together" else [[name] for name in order]:
            for name in decided:
                at.decide(name, approved=yes[name])
            await at.answer()
            await at.is_what_a_reload_shows()
        if yes["where"]:
            assert len(at.chat.model.requests) == 1
            assert at.states("where") == ["input-available"]
            at.output("where", PLACE)
            await at.answer()
        assert len(at.chat.model.requests) == 2
        denied = {"error": "This call was not run: the user denied it."}
        assert results_told(at.chat.model) == [
            {"paid": 5} if yes["pay"] else denied,
            PLACE if yes["where"] else denied,
        ]
        assert till.paid == ([5] if yes["pay"] else [])
        assert at.states() == ["output-available" if yes[name] else "output-denied" for name in MIXED]
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("is_approved", [True, False], ids=["approved", "denied"])
@pytest.mark.parametrize("order", ["together", "output first", "decision first"])
async def test_a_payment_and_a_free_browsers_call_are_answered_in_any_way(is_approved: bool, order: str) -> None:
    till = Till()
    async with page([call("pay", amount=5), call("where")], "Done.", tools=(till.gated, client_tool(where))) as at:
        assert told(await at.say("Go.")) == ["I", "A", "I"]
        if order != "output first":
            at.decide("pay", approved=is_approved)
        if order != "decision first":
            at.output("where", PLACE)
        if order != "together":
            assert (await at.answer()).text == ""
            await at.is_what_a_reload_shows()
            if order == "output first":
                at.decide("pay", approved=is_approved)
            else:
                at.output("where", PLACE)
        assert (await at.answer()).text == "Done."
        paid = {"paid": 5} if is_approved else {"error": "This call was not run: the user denied it."}
        assert results_told(at.chat.model) == [paid, PLACE]
        assert len(at.chat.model.requests) == 2
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("order", ["together", (0, 1), (1, 0)])
async def test_two_browsers_calls_of_one_tool_keep_their_outputs_apart(order: Any) -> None:
    calls = [call("play", track=1), call("play", track=2)]
    async with page(calls, "Played.", tools=(client_tool(play),)) as at:
        await at.say("Play.")
        if order == "together":
            for number in (0, 1):
                at.output("play", {"plays": number}, number)
            await at.answer()
        else:
            for number in order:
                at.output("play", {"plays": number}, number)
                await at.answer()
                await at.is_what_a_reload_shows()
        assert results_told(at.chat.model) == [{"plays": 0}, {"plays": 1}]
        assert len(at.chat.model.requests) == 2


@every_store
async def test_calls_one_after_the_other_stay_in_one_message(store: Any) -> None:
    till = Till()
    script = [call("pay", amount=5)], [call("pay", amount=6)], [call("where")], "Done."
    async with page(*script, tools=(till.gated, GATED_WHERE), store=store) as at:
        assert told(await at.say("Pay.")) == ["I", "A"]
        at.decide("pay", 0)
        assert told(await at.answer()) == ["O", "I", "A"]
        await at.is_what_a_reload_shows()
        at.decide("pay", 1, approved=False)
        assert told(await at.answer()) == ["D", "A"]
        await at.is_what_a_reload_shows()
        at.decide("where")
        at.output("where", PLACE)
        assert told(await at.answer()) == ["X"]
        await at.is_what_a_reload_shows()
        assert len(at.messages) == 2
        assert till.paid == [5]
        assert len(results_told(at.chat.model)) == 3


# -- answers again, and answers that are none -------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False], ids=["approved", "denied"])
@pytest.mark.parametrize("then", [True, False], ids=["approves", "denies"])
async def test_whoever_decides_later_is_told_what_was_decided(first: bool, then: bool) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Done.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        tab = await at.second_tab()
        at.decide("pay", approved=first)
        await at.answer()
        tab.decide("pay", approved=then)
        late = await tab.answer()
        assert told(late) == (["O"] if first else ["D"])
        assert tab.states() == at.states()
        assert late.types[-3:] == ["start-step", "finish-step", "finish"]
        assert len(at.chat.model.requests) == 2
        assert till.paid == ([5] if first else [])
        await at.is_what_a_reload_shows()


async def test_an_output_sent_again_is_answered_without_a_second_run_and_another_one_is_not_found() -> None:
    async with page([call("where")], "There.", tools=(client_tool(where),)) as at:
        await at.say("Where?")
        at.output("where", PLACE)
        request = request_of(at)
        await at.answer()
        again = await at.chat.post(request)
        assert (again.status, again.text) == (200, "")
        next(part for part in request["messages"][-1]["parts"] if "output" in part)["output"] = {"latitude": 2}
        assert (await at.chat.post(request)).status == 404
        assert len(at.chat.model.requests) == 2


async def test_an_output_that_is_too_large_is_refused_and_the_call_stays_open() -> None:
    limits = Limits(max_output_bytes=100)
    async with page([call("where")], "There.", tools=(client_tool(where),), limits=limits) as at:
        await at.say("Where?")
        filled_in = {**at.part("where"), "state": "output-available", "output": {"map": "x" * 100}}
        request = {**request_of(at), "messages": [{**at.messages[-1], "parts": [filled_in]}]}
        refused = await at.chat.post(request)
        assert (refused.status, (refused.error or {})["code"]) == (413, "too-large")
        await at.is_what_a_reload_shows()
        at.output("where", PLACE)
        assert (await at.answer()).text == "There."


@pytest.mark.parametrize("how", ["regenerate", "edit"])
async def test_an_approval_of_a_turn_that_was_taken_back_is_gone(how: str) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Never mind.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        request = request_of(at)
        user_message = at.messages[0]["id"]
        if how == "regenerate":
            await at.chat.regenerate(user_message, at.messages[1]["id"])
        else:
            await at.chat.edit(user_message, "Hello.")
        assert (await at.chat.post(request)).status == 404
        assert till.paid == []
        assert (await at.chat.chats())[0]["waiting"] is False


async def test_the_approvals_of_a_deleted_chat_are_forgotten() -> None:
    till, store = Till(), MemoryStore()
    async with page([call("pay", amount=5)], "Hello.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        at.decide("pay")
        request = request_of(at)
        assert (await at.chat.request("DELETE")).status_code == 204
        assert (await store.read(CHAT)).records == []
        assert (await at.chat.post(request)).status == 404
        assert (await at.say("hi")).text == "Hello."
        assert (await at.chat.post(request)).status == 404
        assert till.paid == []
        assert [entry.state for entry in await store.audit(CHAT)] == ["pending"]


async def test_a_tool_that_returns_media_after_its_approval_is_shown_the_same_after_a_reload() -> None:
    def draw() -> types.Part:
        """Draws."""
        return types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")

    async with page([call("draw")], "Here.", tools=(FunctionTool(draw, require_confirmation=True),)) as at:
        await at.say("Draw.")
        at.decide("draw")
        assert len((await at.answer()).of_type("file")) == 1
        await at.is_what_a_reload_shows()
