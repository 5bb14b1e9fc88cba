"""The bodies of the design notes over HTTP, with the chat's id, which they did not have."""

from typing import Any

import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import call
from support.pages import Page, Till, page, results_told

CONFIRMATION = "adk_request_confirmation"
PLACE = {"latitude": 35.6762, "longitude": 139.6503}
STYLES = pytest.mark.parametrize("style", ["approval-request", "confirmation-tool"])


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


def body(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}], "id": "chat-1", **fields}


def result(call_id: str, value: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": call_id, "result": value}


async def ask(opened: Page, style: str, tool: str) -> tuple[Page, str, str]:
    """The page, and the ids of the call and of the question about it."""
    at = Page(opened.chat, approvalStyle=style)
    await at.say("Go.")
    call_id = at.part(tool)["toolCallId"]
    if style == "confirmation-tool":
        return at, call_id, at.part(CONFIRMATION)["toolCallId"]
    return at, call_id, at.part(tool)["approval"]["id"]


@STYLES
async def test_pattern_a_has_the_approval_and_the_browsers_result_in_one_request(style: str) -> None:
    async with page([call("where")], "There.", tools=(client_tool(where, approve=True),)) as opened:
        at, call_id, approval_id = await ask(opened, style, "where")
        both = body(result(approval_id, {"approval": "approved"}), result(call_id, PLACE))
        assert (await at.chat.post({**both, "id": at.chat.chat_id})).text == "There."
        assert results_told(at.chat.model) == [PLACE]


@STYLES
async def test_pattern_b_has_them_in_two(style: str) -> None:
    async with page([call("where")], "There.", tools=(client_tool(where, approve=True),)) as opened:
        at, call_id, approval_id = await ask(opened, style, "where")
        approved = body(result(approval_id, {"approval": "approved"}), id=at.chat.chat_id)
        assert (await at.chat.post(approved)).status == 200
        assert (await at.chat.post(body(result(call_id, PLACE), id=at.chat.chat_id))).text == "There."
        assert results_told(at.chat.model) == [PLACE]


@STYLES
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_the_calls_own_id_takes_a_decision(style: str, approved: bool) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Done.", tools=(till.gated,)) as opened:
        at, call_id, _ = await ask(opened, style, "pay")
        said = result(call_id, {"approved": approved, "user_message": "As the user wishes."})
        assert (await at.chat.post(body(said, id=at.chat.chat_id))).text == "Done."
        assert till.paid == ([5] if approved else [])


@STYLES
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_the_confirmations_part_takes_a_decision_in_a_users_message(style: str, approved: bool) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Done.", tools=(till.gated,)) as opened:
        at, _, approval_id = await ask(opened, style, "pay")
        part = {
            "type": f"tool-{CONFIRMATION}",
            "toolCallId": approval_id,
            "toolName": CONFIRMATION,
            "state": "approval-responded",
            "approval": {"id": approval_id, "approved": approved, "reason": "User rejected the operation"},
        }
        posted = {"messages": [{"role": "user", "parts": [part]}], "id": at.chat.chat_id}
        assert (await at.chat.post(posted)).text == "Done."
        assert till.paid == ([5] if approved else [])


async def test_without_the_chats_id_a_body_is_refused_with_what_to_send() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Done.", tools=(till.gated,)) as opened:
        at, call_id, _ = await ask(opened, "confirmation-tool", "pay")
        refused = await at.chat.post(body(result(call_id, {"approved": True}), id=None))
        assert refused.status == 400
        assert "`id`" in str(refused.error)
        nameless = body(result(call_id, {"approved": True}))
        del nameless["id"]
        refused = await at.chat.post(nameless)
        assert (refused.status, refused.error and refused.error["code"]) == (400, "malformed")
        assert "Send JSON with the `id` of the chat" in str(refused.error)
        assert till.paid == []


async def test_a_text_in_content_is_refused_with_what_to_send() -> None:
    async with page("Hello.") as at:
        posted = {"messages": [{"role": "user", "content": "Hello"}], "id": "chat-1"}
        refused = await at.chat.post(posted)
        assert refused.status == 400
        assert "AI SDK 4" in str(refused.error)
        assert '"type": "text"' in str(refused.error)
