"""A person decides while a live session waits: with reasons, late, twice, by another door, or writes on instead."""

import asyncio
import copy
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol.testing import call
from live.live_pages import (
    DEADLINE_S,
    DENIED,
    EXPIRED,
    A,
    D,
    E,
    I,
    O,
    X,
    approved,
    both_families,
    live_page,
    segment,
    step,
    told_results,
    until,
)
from support.conversations import asked_parts
from support.pages import Slow, Till

pytestmark = pytest.mark.virtual_time

LONG_ANSWER = "That is that, " * 20  # enough of it to resume before its end


# -- decisions --------------------------------------------------------------------------------------------------------


@both_families
async def test_the_model_hears_the_reason_of_a_denial(family: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Not paid.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay", approved=False, reason="Too much.")
        assert (await at.answer()).types == segment(*D, *X)
        assert told_results(at.model) == [{"error": "This call was not run: the user denied it. Reason: Too much."}]
        assert till.paid == []
        await at.is_what_a_reload_shows()
        assert at.part("pay")["approval"]["reason"] == "Too much."


@both_families
async def test_nothing_runs_and_the_model_is_not_asked_while_somebody_decides(family: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        await asyncio.sleep(DEADLINE_S - 1)
        assert (till.paid, len(at.model.requests), at.turns_told) == ([], 1, 0)
        assert (await at.chat.chats())[0]["waiting"] is True
        await at.is_what_a_reload_shows()
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        assert (await at.chat.chats())[0]["waiting"] is False


@both_families
async def test_whoever_reads_an_approval_knows_its_call(family: str) -> None:
    calls = [call("pay", amount=amount) for amount in range(20)]
    async with live_page(calls, "Paid.", family=family, tools=(Till().gated,)) as at:
        asked = await at.say("Pay.")
        known: set[str] = set()
        for chunk in asked.chunks:
            if chunk["type"] == "tool-input-available":
                known.add(chunk["toolCallId"])
            if chunk["type"] == "tool-approval-request":
                assert chunk["toolCallId"] in known
        assert len(asked.of_type("tool-approval-request")) == 20


class SlowArtifacts(InMemoryArtifactService):
    """Keeps whoever tells the client of an artifact busy, while ADK goes on to the next call."""

    async def get_artifact_version(self, **key: Any) -> ArtifactVersion | None:
        await asyncio.sleep(5)
        return await super().get_artifact_version(**key)


@both_families
async def test_an_approval_waits_for_its_call_to_be_told_first(family: str) -> None:
    async def draw(tool_context: ToolContext) -> dict[str, str]:
        """Draws."""
        picture = types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png"))
        await tool_context.save_artifact("picture.png", picture)
        return {"drawn": "yes"}

    till, artifacts = Till(), SlowArtifacts()
    script = [call("draw")], [call("pay", amount=5)], "Done."
    tools = (draw, till.gated)
    async with live_page(*script, family=family, tools=tools, artifact_service=artifacts) as at:
        asked = await at.say("Draw, then pay.")
        assert asked.types[-7:] == [*step(*I, *A), "finish"]
        assert len(asked.of_type("file")) == 1
        assert at.turns_told == 0
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        await at.is_what_a_reload_shows()


@both_families
async def test_a_free_tool_beside_a_gated_one_tells_its_result_before_the_person_is_asked(family: str) -> None:
    async def look() -> dict[str, int]:
        """Looks at the account."""
        await asyncio.sleep(3)
        return {"balance": 7}

    till = Till()
    calls = [call("pay", amount=5), call("look"), call("pay", amount=6)]
    async with live_page(calls, "Paid.", family=family, tools=(till.gated, look)) as at:
        assert (await at.say("Pay.")).types == segment(*step(*I, *I, *I, *O, *A, *A))
        at.decide("pay", 0)
        at.decide("pay", 1)
        assert (await at.answer()).types == segment(*O, *O, *X)
        assert told_results(at.model) == [{"paid": 5}, {"balance": 7}, {"paid": 6}]
        await at.is_what_a_reload_shows()


# -- deadlines --------------------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("yes", [True, False], ids=["approves", "denies"])
async def test_an_answer_after_the_deadline_is_told_that_it_is_too_late(family: str, yes: bool) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Too late.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        await asyncio.sleep(DEADLINE_S)
        await until(lambda: len(at.model.requests) == 2)
        await asyncio.sleep(1)
        late = await at.send_parts(at.messages[-1]["id"], approved(at.part("pay"), yes))
        assert late.types == segment(*E, *step())
        assert late.of_type("tool-output-error")[0]["errorText"] == EXPIRED["error"]
        assert (till.paid, len(at.model.requests)) == ([], 2)
        assert await at.world.states() == ["expired"]


@both_families
async def test_a_turn_of_the_servers_can_still_be_read_when_it_is_over(family: str) -> None:
    async with live_page([call("pay", amount=5)], "Too late.", family=family, tools=(Till().gated,)) as at:
        await at.say("Pay.")
        await asyncio.sleep(DEADLINE_S + 10)
        assert (await at.unasked_turn()).text == "Too late."
        assert at.states() == ["output-error"]
        await at.is_what_a_reload_shows()


@both_families
async def test_of_two_payments_one_is_decided_and_the_other_runs_out_of_time(family: str) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_page(calls, LONG_ANSWER, family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay", 0)
        assert (await at.answer()).types == segment(*O)
        await asyncio.sleep(DEADLINE_S)
        late = await at.unasked_turn()
        assert late.text == LONG_ANSWER
        assert at.states() == ["output-available", "output-error"]
        assert told_results(at.model) == [{"paid": 5}, EXPIRED]
        assert (till.paid, len(at.model.requests)) == ([5], 2)
        await at.is_what_a_reload_shows_but_for_decisions()


@both_families
async def test_the_conversation_goes_on_after_a_deadline(family: str) -> None:
    async with live_page([call("pay", amount=5)], "Too late.", "Hello.", family=family, tools=(Till().gated,)) as at:
        await at.say("Pay.")
        await asyncio.sleep(DEADLINE_S + 1)
        assert (await at.say("Hello?")).types == segment(*X)
        assert asked_parts(at.model.requests[-1])[-3:] == [{"result": EXPIRED}, "Too late.", "Hello?"]


# -- a second word ----------------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("first", [True, False], ids=["approved", "denied"])
@pytest.mark.parametrize("then", [True, False], ids=["approves", "denies"])
async def test_whoever_decides_later_is_told_what_was_decided(family: str, first: bool, then: bool) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        card = dict(at.part("pay"))
        at.decide("pay", approved=first)
        await at.answer()
        again = await at.send_parts(at.messages[-1]["id"], approved(card, then))
        assert again.types == segment(*(O if first else D), *step())
        async with at.world.socket() as other:
            elsewhere = await other.send_parts(at.messages[-1]["id"], approved(card, then))
            assert elsewhere.types == again.types
        assert till.paid == ([5] if first else [])
        assert len(at.model.requests) == 2
        await at.is_what_a_reload_shows()


@both_families
async def test_a_second_socket_that_decides_too_reads_the_segment_of_the_first(family: str) -> None:
    slow = Slow()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(slow.gated,)) as at:
        await at.say("Pay.")
        card = dict(at.part("pay"))
        at.decide("pay")
        first = asyncio.create_task(at.answer())
        await slow.started.wait()
        async with at.world.socket() as other:
            second = asyncio.create_task(other.send_parts(at.messages[-1]["id"], approved(card, False)))
            await asyncio.sleep(1)
            slow.go_on.set()
            assert (await first).chunks == (await second).chunks
        assert slow.paid == [5]
        assert at.states() == ["output-available"]


# -- the other door ---------------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_an_answer_over_http_reaches_the_live_session_and_its_socket_hears_of_it(family: str, yes: bool) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], LONG_ANSWER, family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        other_door = at.world.page()
        other_door.messages = await at.chat.messages()
        answered = asyncio.create_task(
            at.chat.post(
                {
                    "id": "c1",
                    "messageId": at.messages[-1]["id"],
                    "messages": [{**at.messages[-1], "parts": [approved(at.part("pay"), yes)]}],
                }
            )
        )
        heard = await at.unasked_turn()
        told = await answered
        assert told.types == segment(*(O if yes else D), *X)
        assert heard.text == told.text == LONG_ANSWER
        assert heard.message_id == told.message_id
        assert till.paid == ([5] if yes else [])
        assert told_results(at.model) == [{"paid": 5} if yes else DENIED]
        assert len(at.model.requests) == 2


@both_families
async def test_the_live_session_goes_on_after_an_answer_over_http(family: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Paid.", "Hello.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        by_http = at.over_http()
        by_http.decide("pay")
        assert (await by_http.answer()).text == "Paid."
        assert (await at.say("Hello?")).text == "Hello."
        assert len(at.model.sessions) == 1
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.parametrize("yes_at_socket", [True, False], ids=["yes over the socket", "no over the socket"])
@pytest.mark.parametrize("yes_over_http", [True, False], ids=["yes over HTTP", "no over HTTP"])
async def test_answers_by_both_doors_at_once_are_one_decision(
    family: str, yes_at_socket: bool, yes_over_http: bool
) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        message_id, card = at.messages[-1]["id"], at.part("pay")
        posted = {"id": message_id, "role": "assistant", "parts": [approved(card, yes_over_http)]}
        both = await asyncio.gather(
            at.send_parts(message_id, approved(card, yes_at_socket)),
            at.chat.post({"id": "c1", "messageId": message_id, "messages": [posted]}),
        )
        (record,) = await at.world.records()
        assert [answer.status for answer in both] == [200, 200]
        outcome = O if record.approved else D
        assert all(outcome[0] in answer.types for answer in both)
        assert till.paid == ([5] if record.approved else [])
        assert record.approved in (yes_at_socket, yes_over_http)
        await until(lambda: len(at.model.requests) == 2)
        assert told_results(at.model) == [{"paid": 5} if record.approved else DENIED]


@both_families
async def test_two_calls_are_decided_by_two_doors(family: str) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_page(calls, "Done.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        by_http = at.over_http()
        by_http.decide("pay", 1)
        assert (await by_http.answer()).types == segment(*O)
        at.decide("pay", 0, approved=False)
        assert (await at.answer()).types == segment(*D, *X)
        assert told_results(at.model) == [DENIED, {"paid": 6}]
        assert till.paid == [6]
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "later"])
async def test_an_answer_that_comes_again_while_another_call_waits_is_told_its_outcome(
    family: str, at_once: bool
) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_page(calls, "Done.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        tab = at.over_http()
        tab.decide("pay", 0)
        body = {"id": tab.chat.chat_id, "messages": copy.deepcopy(tab.messages), "messageId": tab.messages[-1]["id"]}
        again = [lambda: tab.chat.post(body)] * 2
        first, *others = await asyncio.gather(tab.answer(), *(post() for post in again if at_once))
        others += [await post() for post in again if not at_once]
        assert all(O[0] in answer.types for answer in (first, *others))
        tab.decide("pay", 1, approved=False)
        assert (await tab.answer()).types == segment(*D, *X)
        assert told_results(at.model) == [{"paid": 5}, DENIED]
        assert till.paid == [5]


@both_families
async def test_another_socket_of_the_chat_hears_of_every_turn_and_can_answer(family: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,)) as at:
        async with at.world.socket() as other:
            other.client.tell("attach", id="c1")
            await other.client.own("attached")
            asked = await at.say("Pay.")
            assert (await other.client.own("turn"))["messageId"] == asked.message_id
            other.take_over(at)
            other.decide("pay")
            assert (await other.answer()).types == segment(*O, *X)
            assert (await at.client.own("turn"))["messageId"] == asked.message_id
            assert (at.turns_told, other.turns_told) == (1, 1)
        assert till.paid == [5]


@both_families
async def test_an_answer_that_comes_again_is_told_its_outcome_while_another_call_of_the_message_works(
    family: str,
) -> None:
    slow, till = Slow(), Till()

    async def refund(amount: int) -> dict[str, Any]:
        """Pays back."""
        return await till.pay(amount)

    refunding = FunctionTool(refund, require_confirmation=True)
    calls = [call("pay", amount=5), call("refund", amount=6)]
    async with live_page(calls, "Done.", family=family, tools=(slow.gated, refunding)) as at:
        asked = await at.say("Pay.")
        denied = approved(at.part("refund"), yes=False)
        await at.send_parts(asked.message_id or "", denied)
        paying = at.client.start_reply(asked.message_id or "", approved(at.part("pay")))
        await slow.started.wait()
        again = asyncio.create_task(at.send_parts(asked.message_id or "", denied))
        await asyncio.sleep(1)
        slow.go_on.set()
        assert (await at.client.answer(paying)).text == "Done."
        async with asyncio.timeout(10):
            assert (await again).status == 200
        assert (slow.paid, till.paid) == ([5], [])
