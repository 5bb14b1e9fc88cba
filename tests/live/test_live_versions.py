"""The ways in which clients of other versions and styles are asked in a live session, and answer."""

from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, client_tool
from adk_stream_protocol.testing import call
from live.live_pages import DENIED, O, X, both_families, live_page, segment, told_results
from support.pages import Till

pytestmark = pytest.mark.virtual_time

CONFIRMATION = "adk_request_confirmation"
PLACE = {"latitude": 1}

# How a client comes to be asked with the tool: by its version, or because it wants to.
STYLES: dict[str, dict[str, Any]] = {"version 5": {"sdk_version": 5}, "named": {"approvalStyle": "confirmation-tool"}}

every_style = pytest.mark.parametrize("style", STYLES)


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


@both_families
@every_style
@pytest.mark.parametrize("tool", ["pay", "where"])
async def test_the_confirmation_tool_asks_in_a_step_of_its_own(family: str, style: str, tool: str) -> None:
    made = call("pay", amount=5) if tool == "pay" else call("where")
    tools = (Till().gated, client_tool(where, approve=True))
    async with live_page([made], family=family, tools=tools, version=STYLES[style]) as at:
        asked = await at.say("Go.")
        inputs = [chunk for chunk in asked.chunks if chunk["type"].startswith("tool-input-")]
        assert [(chunk["type"], chunk["toolName"]) for chunk in inputs] == [
            ("tool-input-start", tool),
            ("tool-input-available", tool),
            ("tool-input-start", CONFIRMATION),
            ("tool-input-available", CONFIRMATION),
        ]
        assert asked.types.count("start-step") == 2
        question = at.part(CONFIRMATION)["input"]
        assert question["originalFunctionCall"]["name"] == tool
        assert question["toolConfirmation"]["confirmed"] is False


@both_families
@every_style
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_a_payment_is_decided_by_the_output_of_the_confirmation_tool(family: str, style: str, yes: bool) -> None:
    till = Till()
    script = [call("pay", amount=5)], "Done."
    async with live_page(*script, family=family, tools=(till.gated,), version=STYLES[style]) as at:
        await at.say("Pay.")
        at.output(CONFIRMATION, {"confirmed": yes})
        assert (await at.answer()).text == "Done."
        denied = "output-error" if style == "version 5" else "output-denied"
        assert at.states("pay") == ["output-available" if yes else denied]
        assert told_results(at.model) == [{"paid": 5} if yes else DENIED]
        assert till.paid == ([5] if yes else [])
        if style == "version 5":
            await at.is_what_a_reload_shows()


@both_families
@pytest.mark.parametrize("order", ["together", (0, 1), (1, 0)], ids=str)
async def test_two_payments_of_version_5_are_answered_in_any_order(family: str, order: Any) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_page(calls, "Done.", family=family, tools=(till.gated,), version={"sdk_version": 5}) as at:
        await at.say("Pay.")
        assert at.states(CONFIRMATION) == ["input-available"] * 2
        for number in (0, 1) if order == "together" else order:
            at.output(CONFIRMATION, {"confirmed": number == 0}, number)
            if order != "together":
                await at.answer()
        if order == "together":
            await at.answer()
        assert at.states("pay") == ["output-available", "output-error"]
        assert till.paid == [5]
        assert told_results(at.model) == [{"paid": 5}, DENIED]
        await at.is_what_a_reload_shows()


@both_families
async def test_version_7_gets_the_reason_with_the_question(family: str) -> None:
    till = Till()
    script = [call("pay", amount=5)], "Paid."
    about = {"version": {"sdk_version": 7}, "approvals": ApprovalPolicy(hints={"pay": "Pay it?"})}
    async with live_page(*script, family=family, tools=(till.gated,), **about) as at:
        asked = await at.say("Pay.")
        (question,) = asked.of_type("tool-approval-request")
        assert question["reason"] == "Pay it?"
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        await at.is_what_a_reload_shows()


@both_families
async def test_a_browsers_call_of_version_5_is_confirmed_and_answered(family: str) -> None:
    tools = (client_tool(where, approve=True),)
    async with live_page([call("where")], "There.", family=family, tools=tools, version={"sdk_version": 5}) as at:
        await at.say("Where?")
        at.output(CONFIRMATION, {"confirmed": True})
        at.output("where", PLACE)
        assert (await at.answer()).text == "There."
        assert told_results(at.model) == [PLACE]
        await at.is_what_a_reload_shows()


@both_families
async def test_a_question_that_is_answered_while_its_message_goes_on_is_no_question_any_more(family: str) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_page(calls, "Done.", family=family, tools=(till.gated,), version={"sdk_version": 5}) as at:
        asked = await at.say("Pay.")
        made = asked.of_type("tool-input-available")
        questions = [chunk["toolCallId"] for chunk in made if chunk["toolName"] == CONFIRMATION]
        for number, question in enumerate(questions):
            part = {"type": "tool-result", "toolCallId": question, "output": {"confirmed": number == 0}}
            at.client.start_send({"id": f"u{number}", "role": "user", "parts": [part]}, request_id=f"answer-{number}")
        answer = await at.client.answer("answer-0")
        assert answer.text == "Done."
        assert answer.chunks[-1]["finishReason"] == "stop"
        assert answer.types.count("start-step") == answer.types.count("finish-step") == 1
        told = {chunk["toolCallId"]: chunk["output"] for chunk in answer.of_type("tool-output-available")}
        assert told[questions[1]] == {"confirmed": False}
        assert till.paid == [5]
