"""Answers that come late: after other words, after the deadline of the person or of the browser."""

import copy
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, client_tool
from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.conversations import asked_parts, every_store
from support.pages import Clock, Page, Till, page, results_told

CHAT = ChatKey("helper", "ann", "c1")
EXPIRED = {"error": "This call was not run: it expired, because it was not answered or not started in time."}
PLACE = {"latitude": 1}


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


GATED_WHERE = client_tool(where, approve=True)
FREE_WHERE = client_tool(where)


# -- the user wrote something else first ------------------------------------------------------------------------------


@every_store
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_an_approval_outlives_the_users_next_words_and_goes_on_in_its_own_message(
    store: Any, approved: bool
) -> None:
    till = Till()
    script = [call("pay", amount=5)], "It is noon.", "Done.", "Bye."
    async with page(*script, tools=(till.gated,), store=store) as at:
        asked = await at.say("Pay.")
        assert (await at.say("What time is it?")).text == "It is noon."
        assert at.states() == ["approval-requested"]
        await at.is_what_a_reload_shows()
        assert (await at.chat.chats())[0]["waiting"] is True
        at.decide("pay", approved=approved)
        late = await at.answer(0)
        assert late.message_id == asked.message_id
        assert late.text == "Done."
        assert [message["role"] for message in at.messages] == ["user", "assistant", "user", "assistant"]
        await at.is_what_a_reload_shows()
        assert till.paid == ([5] if approved else [])
        assert (await at.say("Bye.")).text == "Bye."


async def test_a_browsers_call_outlives_the_users_next_words_while_its_time_lasts() -> None:
    async with page([call("where")], "It is noon.", "There.", tools=(GATED_WHERE,)) as at:
        await at.say("Where?")
        at.decide("where")
        await at.answer()
        assert (await at.say("What time is it?")).text == "It is noon."
        await at.is_what_a_reload_shows()
        at.output("where", PLACE)
        assert (await at.answer(0)).text == "There."
        assert results_told(at.chat.model) == [PLACE]
        await at.is_what_a_reload_shows()


async def test_two_messages_that_both_wait_are_answered_each_for_itself() -> None:
    till = Till()
    script = [call("pay", amount=5)], [call("pay", amount=6)], "Second.", "First."
    async with page(*script, tools=(till.gated,)) as at:
        await at.say("Pay five.")
        await at.say("Pay six.")
        at.decide("pay", 1)
        assert (await at.answer(1)).text == "Second."
        assert till.paid == [6]
        await at.is_what_a_reload_shows()
        at.decide("pay", 0)
        assert (await at.answer(0)).text == "First."
        assert till.paid == [6, 5]
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("named", [0, 1])
async def test_answers_count_only_for_the_message_that_is_named(named: int) -> None:
    till = Till()
    script = [call("pay", amount=5)], [call("pay", amount=6)], "Done."
    async with page(*script, tools=(till.gated,)) as at:
        asked = [await at.say("Pay five."), await at.say("Pay six.")]
        at.decide("pay", 0)
        at.decide("pay", 1)
        message = {"id": asked[named].message_id, "role": "assistant", "parts": copy.deepcopy(at.parts("pay"))}
        answer = await at.chat.post({"id": "c1", "messages": [message], "messageId": message["id"]})
        assert (answer.message_id, answer.text) == (message["id"], "Done.")
        assert till.paid == [5 + named]


async def test_a_client_that_sends_only_one_message_answers_the_older_one_by_it() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "It is noon.", "Paid.", tools=(till.gated,)) as at:
        asked = await at.say("Pay.")
        await at.say("What time is it?")
        at.decide("pay")
        older = copy.deepcopy(at.messages[1])
        late = await at.chat.post({"id": "c1", "message": older, "messageId": older["id"]})
        assert (late.message_id, late.text) == (asked.message_id, "Paid.")


# -- the person was too late ------------------------------------------------------------------------------------------


def timed(**policy: float) -> tuple[Clock, MemoryStore, dict[str, Any]]:
    clock = Clock()
    store = MemoryStore(clock=clock)
    return clock, store, {"record": store, "approvals": ApprovalPolicy(**policy)}


@pytest.mark.parametrize("kind", ["server", "browser"])
@pytest.mark.parametrize("seconds", [99.9, 100, 5000])
async def test_from_the_deadline_on_a_yes_is_too_late(kind: str, seconds: float) -> None:
    till = Till()
    clock, store, options = timed(deadline_s=100)
    tool = till.gated if kind == "server" else client_tool(till.pay, approve=True)
    async with page([call("pay", amount=5)], "Too late.", tools=(tool,), **options) as at:
        await at.say("Pay.")
        clock.now += seconds
        at.decide("pay")
        answer = await at.answer()
        if seconds < 100:
            assert [approval.approved for approval in (await store.read(CHAT)).records] == [True]
            assert till.paid == ([5] if kind == "server" else [])
            return
        assert answer.text == "Too late."
        assert at.states() == ["output-error"]
        assert at.part("pay")["errorText"] == EXPIRED["error"]
        assert results_told(at.chat.model) == [EXPIRED]
        assert till.paid == []
        assert [approval.state for approval in (await store.read(CHAT)).records] == [State.EXPIRED]
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("kind", ["server", "browser"])
async def test_a_late_no_is_a_denial_and_the_model_is_told_that_the_call_expired(kind: str) -> None:
    till = Till()
    clock, _, options = timed(deadline_s=100)
    tool = till.gated if kind == "server" else client_tool(till.pay, approve=True)
    async with page([call("pay", amount=5)], "Not paid.", tools=(tool,), **options) as at:
        await at.say("Pay.")
        clock.now += 100
        at.decide("pay", approved=False, reason="No.")
        assert (await at.answer()).text == "Not paid."
        assert at.states() == ["output-denied"]
        assert results_told(at.chat.model) == [EXPIRED]
        await at.is_what_a_reload_shows()


async def test_an_expired_call_tells_everybody_who_answers_later_the_same() -> None:
    till = Till()
    clock, _, options = timed(deadline_s=100)
    async with page([call("pay", amount=5)], "Too late.", tools=(till.gated,), **options) as at:
        await at.say("Pay.")
        tab = await at.second_tab()
        clock.now += 100
        at.decide("pay")
        await at.answer()
        tab.decide("pay", approved=False)
        told = await tab.answer()
        assert tab.states() == ["output-error"]
        assert told.text == ""
        assert len(at.chat.model.requests) == 2
        assert till.paid == []


async def test_of_two_calls_each_has_its_own_deadline() -> None:
    till = Till()
    clock, _, options = timed(deadline_s=100)
    script = [call("pay", amount=5)], [call("pay", amount=6)], "Done."
    async with page(*script, tools=(till.gated,), **options) as at:
        await at.say("Pay.")
        clock.now += 99
        at.decide("pay", 0)
        await at.answer()
        clock.now += 99
        at.decide("pay", 1)
        assert (await at.answer()).text == "Done."
        assert till.paid == [5, 6]


async def test_the_deadline_is_told_with_the_approval() -> None:
    till = Till()
    clock, _, options = timed(deadline_s=100)
    clock.now = 0.25
    async with page([call("pay", amount=5)], tools=(till.gated,), **options) as at:
        (about,) = (await at.say("Pay.")).of_type("data-adk-approval")
        assert about["data"]["deadline"] == "1970-01-01T00:01:40.250Z"


# -- the browser was too late -----------------------------------------------------------------------------------------


async def waits_for_the_browser(at: Page, kind: str) -> None:
    await at.say("Where?")
    if kind == "gated":
        at.decide("where")
        await at.answer()
    assert at.states() == ["input-available"]


@pytest.mark.parametrize("kind", ["free", "gated"])
@pytest.mark.parametrize("seconds", [59.9, 60])
async def test_from_its_deadline_on_an_output_is_too_late(kind: str, seconds: float) -> None:
    clock, _, options = timed(browser_deadline_s=60)
    tool = FREE_WHERE if kind == "free" else GATED_WHERE
    async with page([call("where")], "Done.", tools=(tool,), **options) as at:
        await waits_for_the_browser(at, kind)
        clock.now += seconds
        at.output("where", PLACE)
        answer = await at.chat.post(
            {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}
        )
        assert answer.text == "Done."
        assert results_told(at.chat.model) == [PLACE if seconds < 60 else EXPIRED]
        errors = [chunk["errorText"] for chunk in answer.of_type("tool-output-error")]
        assert errors == ([] if seconds < 60 else [EXPIRED["error"]])


async def test_the_browsers_time_begins_when_the_person_has_agreed() -> None:
    clock, _, options = timed(deadline_s=100, browser_deadline_s=60)
    async with page([call("where")], "There.", tools=(GATED_WHERE,), **options) as at:
        await at.say("Where?")
        clock.now += 99
        at.decide("where")
        await at.answer()
        clock.now += 59
        at.output("where", PLACE)
        await at.answer()
        assert results_told(at.chat.model) == [PLACE]


@every_store
@pytest.mark.parametrize("kind", ["free", "gated"])
async def test_a_browser_that_never_answers_is_out_of_time_with_the_users_next_words(store: Any, kind: str) -> None:
    clock, record, options = timed(browser_deadline_s=60)
    tool = FREE_WHERE if kind == "free" else GATED_WHERE
    async with page([call("where")], "Never mind.", "Bye.", tools=(tool,), store=store, **options) as at:
        await waits_for_the_browser(at, kind)
        clock.now += 60
        assert (await at.say("Hello?")).text == "Never mind."
        assert results_told(at.chat.model) == [EXPIRED]
        assert [approval.state for approval in (await record.read(CHAT)).records] == [State.EXPIRED]
        (_, told, _, _) = await at.chat.messages()
        (part,) = [part for part in told["parts"] if "toolCallId" in part]
        assert (part["state"], part["errorText"]) == ("output-error", EXPIRED["error"])
        assert (await at.chat.chats())[0]["waiting"] is False
        at.output("where", PLACE)
        late = await at.chat.post({"id": "c1", "messages": at.messages, "messageId": at.messages[1]["id"]})
        assert len(late.of_type("tool-output-error")) == 1
        assert len(at.chat.model.requests) == 2


async def test_a_browser_that_is_in_time_is_waited_for_while_the_user_writes() -> None:
    clock, record, options = timed(browser_deadline_s=60)
    async with page([call("where")], "One moment.", tools=(FREE_WHERE,), **options) as at:
        await at.say("Where?")
        clock.now += 59
        await at.say("Hello?")
        assert [approval.state for approval in (await record.read(CHAT)).records] == [State.APPROVED]
        assert "result" not in str(asked_parts(at.chat.model.requests[-1]))


async def test_beside_a_late_browser_a_payment_can_still_be_approved() -> None:
    till = Till()
    clock, _, options = timed(browser_deadline_s=60)
    calls = [call("pay", amount=5), call("where")]
    async with page(calls, "Never mind.", "Paid.", tools=(till.gated, FREE_WHERE), **options) as at:
        await at.say("Go.")
        clock.now += 60
        await at.say("Hello?")
        at.decide("pay")
        late = await at.chat.post(
            {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[1]["id"]}
        )
        assert late.text == "Paid."
        assert till.paid == [5]
        assert results_told(at.chat.model) == [{"paid": 5}, EXPIRED]
