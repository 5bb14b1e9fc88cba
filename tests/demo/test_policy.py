"""Who decides about the demo's payments."""

from typing import Any

import httpx
import pytest

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_app
from adk_stream_protocol.demo.identity import LoopbackIdentity
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.policy import PEOPLE, demo_groups, demo_policy
from adk_stream_protocol.demo.server import build_server
from adk_stream_protocol.testing import ChatClient
from support.approvers import until


class Demo:
    """The demo as the command serves it."""

    def __init__(self) -> None:
        identity = LoopbackIdentity()
        self.bridge = ChatBridge(
            build_app(OfflineModel()), user_id=identity, approvals=demo_policy(), groups=demo_groups(identity)
        )
        self.app = build_server(self.bridge, identity, loopback_only=True)

    def chat(self) -> ChatClient:
        return ChatClient(self.app, chat_id="c1", headers={"host": "localhost", "x-demo-user": "ann"})

    async def fetch(self, method: str, path: str, user: str, **options: Any) -> Any:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            headers = {"x-demo-user": user}
            return (await http.request(method, f"/api/chat{path}", headers=headers, **options)).json()

    async def inbox(self, user: str) -> list[dict[str, Any]]:
        return (await self.fetch("GET", "/approvals", user))["approvals"]

    async def balance(self) -> int | None:
        parts = [part for message in await self.fetch("GET", "/c1/messages", "ann") for part in message["parts"]]
        return next((part["output"].get("balance") for part in parts if "output" in part), None)


@pytest.mark.parametrize("amount", [50, 499.99, 5000])
async def test_the_user_alone_decides_about_small_payments_and_about_those_that_fail_anyway(amount: float) -> None:
    demo = Demo()
    asked = await demo.chat().send(f"Send {amount} dollars to Hanako")
    assert len(asked.of_type("tool-approval-request")) == 1
    assert [await demo.inbox(user) for user in PEOPLE] == [[], []]
    await demo.bridge.aclose()


async def test_a_manager_and_then_an_executive_decide_about_a_large_payment() -> None:
    demo = Demo()
    asked = await demo.chat().send("Send 600 dollars to Hanako")
    assert asked.of_type("tool-approval-request") == []
    for user, others in (("max", ("ann", "eva", "bob")), ("eva", ("ann", "max", "bob"))):
        assert [await demo.inbox(other) for other in others] == [[], [], []]
        (card,) = await demo.inbox(user)
        assert card["card"]["fields"][0] == {"label": "Amount in USD", "value": 600.0, "format": "money"}
        said = {"approved": True, "digest": card["digest"]}
        await demo.fetch("POST", f"/approvals/{card['id']}", user, json=said)

    async def is_paid() -> bool:
        return await demo.balance() == 400

    await until(is_paid)
    await demo.bridge.aclose()


async def test_what_the_wallet_cannot_pay_any_more_bothers_nobody_else() -> None:
    demo = Demo()
    asked = await demo.chat().send("Send 499 dollars to Hanako")
    await demo.chat().approve(asked)
    again = await demo.chat().send("Send 600 dollars to Hanako")
    assert len(again.of_type("tool-approval-request")) == 1
    await demo.bridge.aclose()
