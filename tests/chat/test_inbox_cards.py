"""What an approver reads: the card of an approval, in the inbox and in the chat."""

import pytest

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.testing import call
from support.approvers import in_chain, of, shown
from support.pages import Till, page


async def test_the_card_in_the_inbox_is_the_one_in_the_chat() -> None:
    card = {"title": "Payment", "severity": "high", "fields": [{"label": "Amount", "value": 5, "format": "money"}]}
    policy = in_chain("max", cards={"pay": lambda arguments: card}, hints={"pay": "Pay?"})
    async with page([call("pay", amount=5)], tools=(Till().gated,), approvals=policy) as at:
        await at.say("Pay.")
        (listed,) = await of(at, "max").inbox()
        assert shown(at)["card"] == listed["card"] == card
        in_chat = {name: value for name, value in shown(at).items() if name != "toolCallId"}
        assert {name: listed[name] for name in in_chat} == in_chat


async def test_a_card_that_is_made_from_the_arguments_may_be_none() -> None:
    policy = ApprovalPolicy(cards={"pay": lambda arguments: {"title": "Large"} if arguments["amount"] > 9 else None})
    async with page([call("pay", amount=5)], tools=(Till().gated,), approvals=policy) as at:
        await at.say("Pay.")
        assert "card" not in shown(at)


async def test_numbers_of_a_card_that_javascript_would_round_travel_as_text() -> None:
    card = {"fields": [{"label": "Account", "value": 2**60 + 1}]}
    policy = in_chain("max", cards={"pay": card})
    async with page([call("pay", amount=5)], tools=(Till().gated,), approvals=policy) as at:
        await at.say("Pay.")
        (listed,) = await of(at, "max").inbox()
        assert listed["card"] == shown(at)["card"] == {"fields": [{"label": "Account", "value": str(2**60 + 1)}]}


@pytest.mark.parametrize("sdk_version", [6, 7])
async def test_what_others_decide_names_its_call_in_the_owners_chat(sdk_version: int) -> None:
    """Since it has no `tool-approval-request` there that would."""
    script = [call("pay", amount=1), call("pay", amount=2)]
    async with page(script, tools=(Till().gated,), approvals=in_chain("max"), sdk_version=sdk_version) as at:
        await at.say("Pay.")

        def named() -> dict[str, str]:
            parts = [part for message in at.messages for part in message["parts"]]
            about = [part for part in parts if part["type"] == "data-adk-approval"]
            return {part["data"]["toolCallId"]: part["id"] for part in about}

        by_amount = {part["input"]["amount"]: part["toolCallId"] for part in at.parts("pay")}
        cards = {card["id"]: card["arguments"]["amount"] for card in await of(at, "max").inbox()}
        assert named() == {by_amount[amount]: id for id, amount in cards.items()}
        before = named()
        at.messages = await at.chat.messages(x_ai_sdk_version=str(sdk_version))
        assert named() == before
