"""Several processes in one: bridges that share one store and one session service, and one chat to look at."""

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.sessions import BaseSessionService, InMemorySessionService

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey, State
from adk_stream_protocol.store.base import AuditEntry, advance
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ScriptedModel
from support.apps import app_of, user_of
from support.conversations import Conversation, end_soon
from support.pages import Clock, Page
from support.records import read_whole

CHAT = ChatKey("helper", "ann", "c1")


class Workers:
    def __init__(
        self,
        *replies: Any,
        tools: tuple[Any, ...],
        store: Callable[..., MemoryStore],
        sessions: BaseSessionService | None,
        model: BaseLlm | None,
        **options: Any,
    ) -> None:
        self.clock = Clock()
        self.store = store(clock=self.clock)
        self.sessions = sessions or InMemorySessionService()
        self.model: Any = model or ScriptedModel(replies)
        self._tools = tools
        self._options = options
        self.bridges: list[ChatBridge] = []

    def bridge(self, **options: Any) -> ChatBridge:
        """One more worker."""
        agent = LlmAgent(name="helper", model=self.model, tools=list(self._tools))
        given = {"user_id": user_of, "store": self.store, "session_service": self.sessions}
        bridge = ChatBridge(agent, **{**given, **self._options, **options})
        self.bridges.append(bridge)
        return bridge

    def page(self, **options: Any) -> Page:
        """A page on the chat, served by a worker of its own."""
        bridge = self.bridge(**options)
        return Page(Conversation(app_of(bridge), bridge))

    async def records(self) -> list[CallRecord]:
        return await read_whole(self.store, CHAT)

    async def states(self) -> list[State]:
        return [record.state for record in await self.records()]

    async def trail(self) -> list[AuditEntry]:
        return list(await self.store.audit(CHAT))

    async def approve_and_die(self) -> None:
        """What a worker leaves that dies right after it has recorded the person's yes."""
        for record in await self.records():
            await advance(
                self.store,
                CHAT,
                record.call,
                lambda found, now: call_record.decide(found, by="ann", approved=True, now=now),
            )

    async def recover(self, at: Page, *, later_s: float = 11) -> None:
        """This page's worker looks for lost runs after a while, and comes to the end of what it finds."""
        self.clock.now += later_s
        await at.chat.bridge.recover()
        while at.chat.is_running:
            await asyncio.sleep(0)


@asynccontextmanager
async def workers(
    *replies: Any,
    tools: tuple[Any, ...] = (),
    store: Callable[..., MemoryStore] = MemoryStore,
    sessions: BaseSessionService | None = None,
    model: BaseLlm | None = None,
    **options: Any,
) -> AsyncGenerator[Workers]:
    """Processes that share everything but themselves. Time stands still, unless a test moves the clock."""
    staff = Workers(*replies, tools=tools, store=store, sessions=sessions, model=model, **options)
    yield staff
    for bridge in staff.bridges:
        end_soon(bridge)
        await bridge.aclose()


def outputs(answer: Answer) -> list[Any]:
    return [chunk["output"] for chunk in answer.of_type("tool-output-available")]


def answer_body(at: Page) -> dict[str, Any]:
    """What the page would post now."""
    return {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}


def words_body(words: str, message_id: str = "other") -> dict[str, Any]:
    """A message of another tab's."""
    return {"id": "c1", "messages": [{"id": message_id, "role": "user", "parts": [{"type": "text", "text": words}]}]}
