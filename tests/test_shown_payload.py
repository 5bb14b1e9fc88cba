"""What a tool asks with is shown as exactly as its arguments are."""

import math
from typing import Any

import pytest
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol.testing import Answer, call
from support.pages import page

pytestmark = pytest.mark.virtual_time

LIMIT = 12345678901234567
STYLES = ("approval-request", "confirmation-tool")


def asking_with(payload: Any) -> FunctionTool:
    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Really?", payload=payload)
            return {}
        return {"paid": amount}

    return FunctionTool(pay)


def payload_of(answer: Answer, style: str) -> Any:
    if style == "approval-request":
        return answer.of_type("data-adk-approval")[0]["data"]["payload"]
    return answer.of_type("tool-input-available")[-1]["input"]["toolConfirmation"]["payload"]


@pytest.mark.parametrize("style", STYLES)
async def test_a_large_number_that_a_tool_asks_with_is_shown_as_text(style: str) -> None:
    async with page([call("pay", amount=5)], "Paid.", tools=(asking_with({"limit": LIMIT}),)) as at:
        answer = await at.say("Pay.", approvalStyle=style)
        assert payload_of(answer, style) == {"limit": str(LIMIT)}
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("value", [math.inf, math.nan])
async def test_a_number_that_cannot_be_shown_asks_nobody(style: str, value: float) -> None:
    async with page([call("pay", amount=5)], "Not so.", tools=(asking_with({"limit": value}),)) as at:
        answer = await at.say("Pay.", approvalStyle=style)
        assert answer.text == "Not so."
        assert not answer.of_type("tool-approval-request")
