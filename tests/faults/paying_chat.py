"""One chat with an agent that pays, all in this process, for tests that break something around the payment."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.artifacts import BaseArtifactService, InMemoryArtifactService
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.adk.runner import resumable
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.base import Store
from adk_stream_protocol.testing import ScriptedModel, call
from faults.tabs import Seen, Tab
from support.apps import app_of, user_of
from support.evidence import World
from support.tool_log import ToolLog

PATIENCE_S = 15
RECEIPT = types.Part(inline_data=types.Blob(mime_type="text/plain", data=b"paid"))


class UsersPlugin(BasePlugin):
    """One of the application's own, which comes after ours."""

    async def after_tool_callback(self, **_: Any) -> None:
        """For instance to write to a log service."""

    async def on_event_callback(self, **_: Any) -> None:
        pass


def repeats_what_it_was_told(request: LlmRequest) -> str:
    parts = [part for content in request.contents for part in content.parts or ()]
    return f"I was told {json.dumps([part.function_response.response for part in parts if part.function_response])}"


class PayingChat:
    """`works`: what the tool does before it returns. `healthy_store`: the same store for the test's own looks at it."""

    def __init__(
        self,
        *,
        store: Store,
        healthy_store: Store | None = None,
        sessions: BaseSessionService | None = None,
        artifacts: BaseArtifactService | None = None,
        plugin: BasePlugin | None = None,
        works: Callable[[], Awaitable[object]],
        **options: Any,
    ) -> None:
        sessions = sessions or InMemorySessionService()
        self.seen = Seen(ChatKey("bank", "ann", "c1"), healthy_store or store, sessions, ToolLog())
        self.model = ScriptedModel([[call("pay", amount=5)], *[repeats_what_it_was_told] * 20])

        async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
            """Send money."""
            with self.seen.log.running("pay", tool_context, amount=amount):
                await tool_context.save_artifact("receipt.txt", RECEIPT)
                await works()
                return {"paid": amount}

        self._tool = FunctionTool(pay, require_confirmation=True)
        self._plugin = plugin or UsersPlugin(name="users")
        services = {"session_service": sessions, "artifact_service": artifacts or InMemoryArtifactService()}
        self._options = {"store": store, **services, **options}
        self.bridge = self.worker()
        self.tab = Tab(app_of(self.bridge), self.seen)

    def worker(self) -> ChatBridge:
        """One more on the same chat."""
        agent = LlmAgent(name="bank", model=self.model, tools=[self._tool])
        app = App(name="bank", root_agent=agent, plugins=[self._plugin], resumability_config=resumable())
        return ChatBridge(app, user_id=user_of, **self._options)

    async def settled(self, **known: Any) -> World:
        """After one more turn and a reload. A lease that was not released must run out first."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.tab.say("And?")).status != 200:
                await asyncio.sleep(0.2)
        return await self.seen.world(self.tab.app, requests=self.model.requests, **known)
