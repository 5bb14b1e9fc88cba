"""The ways in which clients ask and answer: the confirmation tool, results in a user's message, and what is none."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, client_tool
from adk_stream_protocol.testing import Answer, call
from support.conversations import asked_parts
from support.pages import Page, Till, page, results_told

CONFIRMATION = "adk_request_confirmation"
PLACE = {"latitude": 1}


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


GATED_WHERE = client_tool(where, approve=True)


# -- the confirmation tool --------------------------------------------------------------------------------------------

# How a client comes to be asked with the tool: by its version, or because it wants to.
STYLES: dict[str, dict[str, Any]] = {"version 5": {"sdk_version": 5}, "named": {"approvalStyle": "confirmation-tool"}}


def page_in(style: str, at: Page) -> Page:
    return Page(at.chat, **STYLES[style])


def steps(answer: Answer) -> list[list[str]]:
    """The tool chunks of each step: what, and of which tool."""
    found: list[list[str]] = []
    for chunk in answer.chunks:
        if chunk["type"] == "start-step":
            found.append([])
        elif chunk["type"].startswith("tool-input-"):
            found[-1].append(f"{chunk['type']} {chunk['toolName']}")
    return found


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("tool", ["pay", "where"])
async def test_the_confirmation_tool_asks_in_a_step_of_its_own(style: str, tool: str) -> None:
    till = Till()
    made = call("pay", amount=5) if tool == "pay" else call("where")
    async with page([made], tools=(till.gated, GATED_WHERE)) as opened:
        at = page_in(style, opened)
        asked = await at.say("Go.")
        assert steps(asked) == [
            [f"tool-input-start {tool}", f"tool-input-available {tool}"],
            [f"tool-input-start {CONFIRMATION}", f"tool-input-available {CONFIRMATION}"],
        ]
        assert asked.of_type("tool-approval-request") == []
        question = at.part(CONFIRMATION)["input"]
        original = {"id": made.function_call.id, "name": tool, "args": made.function_call.args}
        assert question["originalFunctionCall"] == original
        assert question["toolConfirmation"]["confirmed"] is False
        assert question["toolConfirmation"]["hint"] == ""  # ADK writes its own for programs
        assert at.part(CONFIRMATION)["toolCallId"].startswith("adk-")


@pytest.mark.parametrize("style", STYLES)
async def test_a_payment_is_approved_by_the_output_of_the_confirmation_tool(style: str) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as opened:
        at = page_in(style, opened)
        await at.say("Pay.")
        at.output(CONFIRMATION, {"confirmed": True})
        answer = await at.answer()
        assert answer.text == "Paid."
        assert at.part("pay")["output"] == {"paid": 5}
        assert till.paid == [5]
        if style == "version 5":
            await at.is_what_a_reload_shows()


@pytest.mark.parametrize("style", STYLES)
async def test_a_payment_is_denied_by_the_output_of_the_confirmation_tool(style: str) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Not paid.", tools=(till.gated,)) as opened:
        at = page_in(style, opened)
        await at.say("Pay.")
        at.output(CONFIRMATION, {"confirmed": False, "reason": "Too much."})
        assert (await at.answer()).text == "Not paid."
        assert at.states("pay") == ["output-error" if style == "version 5" else "output-denied"]
        assert results_told(at.chat.model)[0]["error"].endswith("denied it. Reason: Too much.")
        assert till.paid == []
        if style == "version 5":
            await at.is_what_a_reload_shows()


@pytest.mark.parametrize("order", ["together", (0, 1), (1, 0)])
async def test_two_payments_of_version_5_are_answered_in_any_order(order: Any) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with page(calls, "Done.", tools=(till.gated,)) as opened:
        at = page_in("version 5", opened)
        await at.say("Pay.")
        assert at.states(CONFIRMATION) == ["input-available"] * 2
        for number in (0, 1) if order == "together" else order:
            at.output(CONFIRMATION, {"confirmed": number == 0}, number)
            if order != "together":
                await at.answer()
                await at.is_what_a_reload_shows()
        if order == "together":
            await at.answer()
        assert at.states("pay") == ["output-available", "output-error"]
        assert till.paid == [5]
        assert len(at.chat.model.requests) == 2
        await at.is_what_a_reload_shows()


async def test_one_payment_after_the_other_of_version_5_stay_in_one_message() -> None:
    till = Till()
    script = [call("pay", amount=5)], [call("pay", amount=6)], "Done."
    async with page(*script, tools=(till.gated,)) as opened:
        at = page_in("version 5", opened)
        await at.say("Pay.")
        for number in (0, 1):
            at.output(CONFIRMATION, {"confirmed": True}, number)
            await at.answer()
            await at.is_what_a_reload_shows()
        assert till.paid == [5, 6]
        assert len(at.messages) == 2


@pytest.mark.parametrize("style", STYLES)
async def test_a_browsers_call_is_confirmed_and_answered_in_one_request(style: str) -> None:
    async with page([call("where")], "There.", tools=(GATED_WHERE,)) as opened:
        at = page_in(style, opened)
        await at.say("Where?")
        at.output(CONFIRMATION, {"confirmed": True})
        at.output("where", PLACE)
        assert (await at.answer()).text == "There."
        assert results_told(at.chat.model) == [PLACE]
        if style == "version 5":
            await at.is_what_a_reload_shows()


@pytest.mark.parametrize("style", STYLES)
async def test_a_browsers_call_is_confirmed_first_and_answered_then(style: str) -> None:
    async with page([call("where")], "There.", tools=(GATED_WHERE,)) as opened:
        at = page_in(style, opened)
        await at.say("Where?")
        at.output(CONFIRMATION, {"confirmed": True})
        assert (await at.answer()).text == ""
        at.output("where", PLACE)
        assert (await at.answer()).text == "There."
        assert results_told(at.chat.model) == [PLACE]
        if style == "version 5":
            await at.is_what_a_reload_shows()


async def test_the_payload_of_a_confirmation_reaches_the_tool() -> None:
    seen: list[Any] = []

    def book(tool_context: Any) -> dict[str, Any]:
        """Books."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Which seat?")
            return {}
        seen.append(tool_context.tool_confirmation.payload)
        return {"ok": True}

    async with page([call("book")], "Booked.", tools=(book,)) as opened:
        at = page_in("version 5", opened)
        await at.say("Book.")
        at.output(CONFIRMATION, {"confirmed": True, "payload": {"seat": "1B"}})
        assert (await at.answer()).text == "Booked."
        assert seen == [{"seat": "1B"}]
        await at.is_what_a_reload_shows()


# -- the forms of one decision ----------------------------------------------------------------------------------------

Form = Callable[[Page, str, bool], dict[str, Any]]


def ids_of(at: Page, tool: str) -> tuple[str, str]:
    part = at.part(tool)
    return part["toolCallId"], part["approval"]["id"]


def continued(at: Page, *parts: dict[str, Any]) -> dict[str, Any]:
    message = {"id": at.messages[-1]["id"], "role": "assistant", "parts": list(parts)}
    return {"id": "c1", "messages": [message], "messageId": message["id"]}


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c1", "messages": [{"id": "u9", "role": "user", "parts": list(parts)}]}


def result(call_id: str, value: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": call_id, "toolName": "any", "output": value}


def by_the_part(at: Page, tool: str, approved: bool) -> dict[str, Any]:
    part = copy.deepcopy(at.part(tool))
    part["state"] = "approval-responded"
    part["approval"]["approved"] = approved
    return continued(at, part)


def by_the_confirmations_output(at: Page, tool: str, approved: bool) -> dict[str, Any]:
    _, approval_id = ids_of(at, tool)
    part = {"type": f"tool-{CONFIRMATION}", "toolCallId": approval_id, "state": "output-available"}
    return continued(at, {**part, "output": {"confirmed": approved}})


def by_the_confirmations_approval(at: Page, tool: str, approved: bool) -> dict[str, Any]:
    _, approval_id = ids_of(at, tool)
    part = {"type": f"tool-{CONFIRMATION}", "toolCallId": approval_id, "state": "approval-responded"}
    return continued(at, {**part, "approval": {"id": "any", "approved": approved}})


def by_a_result_for_the_confirmation(at: Page, tool: str, approved: bool) -> dict[str, Any]:
    return said(result(ids_of(at, tool)[1], {"confirmed": approved}))


def by_a_result_for_the_call(at: Page, tool: str, approved: bool) -> dict[str, Any]:
    return said(result(ids_of(at, tool)[0], {"approved": approved, "user_message": "As you like."}))


def by_a_word_for_the_confirmation(at: Page, tool: str, approved: bool) -> dict[str, Any]:
    return said(result(ids_of(at, tool)[1], {"approval": "approved" if approved else "denied"}))


def by_a_wrapped_result(at: Page, tool: str, approved: bool) -> dict[str, Any]:
    return said(result(ids_of(at, tool)[1], {"type": "json", "value": {"confirmed": approved}}))


FORMS: list[Form] = [
    by_the_part,
    by_the_confirmations_output,
    by_the_confirmations_approval,
    by_a_result_for_the_confirmation,
    by_a_result_for_the_call,
    by_a_word_for_the_confirmation,
    by_a_wrapped_result,
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_every_form_decides_on_a_payment(form: Form, approved: bool) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Done.", tools=(till.gated,)) as at:
        asked = await at.say("Pay.")
        answer = await at.chat.post(form(at, "pay", approved))
        assert (answer.status, answer.text) == (200, "Done.")
        assert answer.message_id == asked.message_id
        assert till.paid == ([5] if approved else [])
        (_, message) = await at.chat.messages()
        (part,) = [part for part in message["parts"] if "toolCallId" in part]
        assert part["state"] == ("output-available" if approved else "output-denied")
        assert part["approval"]["approved"] is approved


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_every_form_decides_on_a_browsers_call(form: Form, approved: bool) -> None:
    async with page([call("where")], "Done.", tools=(GATED_WHERE,)) as at:
        await at.say("Where?")
        answer = await at.chat.post(form(at, "where", approved))
        assert answer.status == 200
        assert len(answer.of_type("tool-input-available")) == int(approved)
        assert len(answer.of_type("tool-output-denied")) == int(not approved)
        assert answer.text == ("" if approved else "Done.")


async def test_a_word_for_the_confirmation_beside_the_browsers_result_is_both() -> None:
    async with page([call("where")], "There.", tools=(GATED_WHERE,)) as at:
        await at.say("Where?")
        call_id, approval_id = ids_of(at, "where")
        both = said(result(approval_id, {"approval": "approved"}), result(call_id, PLACE))
        assert (await at.chat.post(both)).text == "There."
        assert results_told(at.chat.model) == [PLACE]


async def test_a_denial_beside_a_browsers_result_is_a_denial() -> None:
    async with page([call("where")], "Unknown.", tools=(GATED_WHERE,)) as at:
        await at.say("Where?")
        call_id, approval_id = ids_of(at, "where")
        both = said(result(approval_id, {"approval": "denied"}), result(call_id, PLACE))
        assert (await at.chat.post(both)).text == "Unknown."
        assert PLACE not in results_told(at.chat.model)


async def test_a_result_for_a_free_browsers_call_is_its_output_whatever_it_looks_like() -> None:
    async with page([call("where")], "There.", tools=(client_tool(where),)) as at:
        await at.say("Where?")
        call_id = at.part("where")["toolCallId"]
        assert (await at.chat.post(said(result(call_id, {"approved": False})))).text == "There."
        assert results_told(at.chat.model) == [{"approved": False}]


async def test_a_result_for_a_call_of_the_servers_decides_nothing_unless_it_says_so() -> None:
    till = Till()
    async with page([call("pay", amount=5)], tools=(till.gated,)) as at:
        await at.say("Pay.")
        forged = said(result(at.part("pay")["toolCallId"], {"paid": 1_000_000}))
        assert (await at.chat.post(forged)).status == 404
        await at.is_what_a_reload_shows()
        assert till.paid == []
        assert len(at.chat.model.requests) == 1


@pytest.mark.parametrize("version", [6, 7])
async def test_a_version_is_asked_with_what_it_can_carry(version: Any) -> None:
    till = Till()
    policy = ApprovalPolicy(hints={"pay": "Pay it?"})
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), sdk_version=version, approvals=policy) as at:
        (asked,) = (await at.say("Pay.")).of_type("tool-approval-request")
        assert set(asked) >= {"approvalId", "toolCallId"}
        assert ("reason" in asked, "approvalDescriptor" in asked) == (version == 7, version == 7)
        await at.is_what_a_reload_shows()
        at.decide("pay")
        await at.answer()
        await at.is_what_a_reload_shows()
        assert asked_parts(at.chat.model.requests[-1])[-1] == {"result": {"paid": 5}}
