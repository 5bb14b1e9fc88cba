"""An approver changes what a call does: who is asked again, and what the tool gets."""

from typing import Any

import pytest
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.testing import call
from support.approvers import ended, in_chain, of
from support.pages import Till, page


def paying_what_was_agreed(till: Till) -> FunctionTool:
    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        confirmation = tool_context.tool_confirmation
        return await till.pay(confirmation.payload["amount"] if confirmation and confirmation.payload else amount)

    return FunctionTool(pay, require_confirmation=True)


LESS = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 5}}, "required": ["amount"]}


async def test_an_edit_is_asked_again_of_those_before_and_reaches_the_tool_as_payload() -> None:
    till = Till()
    options: dict[str, Any] = {"approvals": in_chain("max", "eva", edits={"pay": LESS})}
    async with page([call("pay", amount=5)], "Paid.", tools=(paying_what_was_agreed(till),), **options) as at:
        await at.say("Pay.")
        max_, eva = of(at, "max"), of(at, "eva")
        (before,) = await max_.inbox()
        await max_.decide()
        edited = await eva.decide(payload={"amount": 3})
        assert (edited.status_code, edited.json()["status"]) == (200, "pending")
        (again,) = await max_.inbox()
        assert (again["payload"], again["arguments"]) == ({"amount": 3}, {"amount": 5})
        assert again["id"] == before["id"]
        assert (again["replaces"], "replaces" in before) == (before["digest"], False)
        stale = await max_.post(before["id"], approved=True, digest=before["digest"])
        assert (stale.status_code, till.paid) == (409, [])
        assert (await max_.decide()).json()["status"] == "approved"
        await ended(at)
        assert till.paid == [3]


@pytest.mark.parametrize("payload", [{"amount": 9}, {}, "x", 3])
async def test_an_edit_that_does_not_fit_is_refused_and_the_call_stays_open(payload: Any) -> None:
    async with page(
        [call("pay", amount=5)], tools=(Till().gated,), approvals=in_chain("max", edits={"pay": LESS})
    ) as at:
        await at.say("Pay.")
        assert (await of(at, "max").decide(payload=payload)).status_code == 422
        assert len(await of(at, "max").inbox()) == 1


async def test_a_tool_that_takes_no_edits_gets_none() -> None:
    async with page([call("pay", amount=5)], tools=(Till().gated,), approvals=in_chain("max")) as at:
        await at.say("Pay.")
        assert (await of(at, "max").decide(payload={"amount": 1})).status_code == 422
        assert (
            await of(at, "eva").post((await of(at, "max").inbox())[0]["id"], approved=True, digest="x")
        ).status_code == 404


@pytest.mark.parametrize("is_chain", [True, False])
async def test_an_edit_that_comes_twice_is_recorded_once(is_chain: bool) -> None:
    """A client that has not got the answer sends the same again: with the digest of what it was shown."""
    policy = in_chain("ann", "eva", edits={"pay": LESS}) if is_chain else ApprovalPolicy(edits={"pay": LESS})
    async with page([call("pay", amount=5)], tools=(Till().gated,), approvals=policy) as at:
        await at.say("Pay.")
        (card,) = await of(at, "ann").inbox()
        edit = {"approved": True, "digest": card["digest"], "payload": {"amount": 3}}
        first = await of(at, "ann").post(card["id"], **edit)
        again = await of(at, "ann").post(card["id"], **edit)
        assert (first.status_code, first.json()["digest"] != card["digest"]) == (200, True)
        assert (again.status_code, again.json()) == (200, first.json())


@pytest.mark.parametrize("payload", [{"amount": 9}, {}])
async def test_an_owners_edit_in_his_chat_must_fit_as_well(payload: Any) -> None:
    till = Till()
    policy = ApprovalPolicy(edits={"pay": LESS})
    async with page([call("pay", amount=5)], "Paid.", tools=(paying_what_was_agreed(till),), approvals=policy) as at:
        await at.say("Pay.")
        at.decide("pay")
        at.part("pay")["approval"]["payload"] = payload
        assert (await at.answer()).status == 422
        at.part("pay")["approval"]["payload"] = {"amount": 3}
        assert (await at.answer()).status == 200
        assert till.paid == [3]
