"""The demo with payments that take as long as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.request import urlopen

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from adk_stream_protocol import ChatBridge, client_tool
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.tools import change_bgm, get_location
from conformance.node import NodeDriver
from conformance.pages import Conversation, Step
from support.apps import user_of
from support.live_server import serving


@dataclass
class Bank:
    """Pages can wait for a payment to begin, and let it end."""

    payments: list[str] = field(default_factory=list[str])
    waits: bool = False
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def process_payment(self, amount: float, recipient: str, currency: str = "USD") -> dict[str, Any]:
        """Sends money."""
        self.payments.append(f"{amount} {currency} to {recipient}")
        self._begun.set()
        if self.waits:
            await self._may_end.wait()
        return {"amount": amount, "currency": currency, "recipient": recipient, "balance": 950}

    async def wait_for_payment(self) -> None:
        await self._begun.wait()

    async def let_payment_end(self) -> None:
        self._may_end.set()

    def app(self) -> Any:
        tools = [
            FunctionTool(self.process_payment, require_confirmation=True),
            client_tool(change_bgm),
            client_tool(get_location, approve=True),
        ]
        agent = LlmAgent(name="helper", model=OfflineModel(), tools=tools)
        app = FastAPI()
        app.post("/api/chat/{chat_id}/payment-begins")(self.wait_for_payment)
        app.post("/api/chat/{chat_id}/payment-may-end")(self.let_payment_end)
        app.include_router(ChatBridge(agent, user_id=user_of).router("/api/chat"))
        return app


PAYMENT_BEGINS: Step = {"request": {"method": "POST", "path": "/payment-begins"}}
PAYMENT_MAY_END: Step = {"request": {"method": "POST", "path": "/payment-may-end"}}
PAYMENT_IS_SHOWN: Step = {"waitPart": {"type": "tool-process_payment"}}
ANSWERED_ONCE: Step = {"waitAnswers": 1}
ANSWERED_TWICE: Step = {"waitAnswers": 2}
STOP: Step = {"stop": True}


@contextmanager
def bank_chat(node: NodeDriver, release: str, *, waits: bool = False) -> Generator[tuple[Bank, Conversation]]:
    bank = Bank(waits=waits)
    with serving(bank.app()) as origin:
        yield bank, Conversation(node, release, origin)


def wait_for_payment(chat: Conversation) -> None:
    urlopen(f"{chat.api}/{chat.chat_id}/payment-begins", data=b"").close()
