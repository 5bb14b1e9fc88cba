"""A page on a live session: its sends go over a WebSocket, and it hears of turns that it has not asked for."""

import asyncio
import copy
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Limits
from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey
from adk_stream_protocol.store.base import Store
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, LiveSession, ScriptedLiveModel
from support.apps import app_of, user_of
from support.conversations import Conversation, asked_parts, end_soon, other_tasks
from support.live_client import LiveClient, live_socket
from support.pages import Page
from support.records import read_whole

both_families = pytest.mark.parametrize("family", ["2.5", "3"])

DEADLINE_S = 100
BROWSER_DEADLINE_S = 50
GRACE_S = 30
LONGER_THAN_ANY_TEST_S = 10_000
_numbers = itertools.count()  # of requests: no two of a user's sockets may use one twice

CHAT = ChatKey("helper", "ann", "c1")
DENIED = {"error": "This call was not run: the user denied it."}
EXPIRED = {"error": "This call was not run: it expired, because it was not answered or not started in time."}
SUPERSEDED = {
    "error": "This call was not run: the user denied it. Reason: superseded: the user wrote something else instead"
}


async def until(condition: Callable[[], object]) -> None:
    """In the loop's own time, which would stand still if nobody ever slept."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


class LivePage(Page):
    """What a page does over its socket. Of the same chat: `over_http`, and `second_socket`."""

    def __init__(self, world: "World", client: LiveClient, **version: Any) -> None:
        super().__init__(world.chat, **version)
        self.world = world
        self.client = client
        self._turns_read = 0

    async def _post(self, **body: Any) -> Answer:
        answer = await self.send(**body)
        if answer.status == 200:
            self.read(answer)
        return answer

    async def send(self, **fields: Any) -> Answer:
        """Any `send`, whose stream is given and not read into the page."""
        request_id = f"send-{next(_numbers)}"
        frame = {"type": "send", "requestId": request_id, "id": self.client.chat_id, "trigger": "submit-message"}
        self.client.send_frame({**frame, "headers": {}, "body": self._body, **copy.deepcopy(fields)})
        return await self.client.answer(request_id)

    async def send_parts(self, message_id: str, *parts: Mapping[str, Any]) -> Answer:
        """Answers that need not be this page's own."""
        message = {"id": message_id, "role": "assistant", "parts": list(parts)}
        return await self.send(messages=[message], messageId=message_id)

    async def unasked_turn(self) -> Answer:
        """The next turn that the server has started: a resume reads its message, from the first `start` on."""
        self._turns_read += 1
        turn = await self.client.own("turn", self._turns_read)
        answer = await self.client.resume(requestId=f"resume-{next(_numbers)}")
        assert answer.status == 200
        assert (turn["id"], turn["messageId"]) == (self.client.chat_id, answer.message_id)
        self.messages[:] = [message for message in self.messages if message["id"] != answer.message_id]
        self._judges.pop(answer.message_id or "", None)
        self.read(answer)
        return answer

    @property
    def turns_told(self) -> int:
        """How often this socket was told of a turn that it had not asked for."""
        return len([frame for frame in self.client.frames.get("-", []) if frame["type"] == "turn"])

    def over_http(self) -> Page:
        """The same page when it has lost its socket for good: same messages, other door."""
        page = Page(self.chat)
        page.messages, page._judges, page._body = self.messages, self._judges, self._body
        return page

    def take_over(self, page: Page) -> None:
        """This page goes on where the other one was."""
        self.messages, self._judges = page.messages, page._judges

    async def is_what_a_reload_shows_but_for_decisions(self) -> None:
        """A replay does not tell what the client itself has said."""
        shown = await self.chat.messages()
        for message in shown:
            for part in message["parts"]:
                part.get("approval", {}).pop("approved", None)
        assert shown == self.messages

    @property
    def model(self) -> ScriptedLiveModel:
        return self.world.model


class World:
    """One chat of one user's, and what stands behind it."""

    def __init__(self, bridge: ChatBridge, app: FastAPI, store: Store, model: ScriptedLiveModel) -> None:
        self.bridge = bridge
        self.app = app
        self.store = store
        self.model = model
        self.chat = Conversation(app, bridge, chat_id="c1")

    @asynccontextmanager
    async def socket(self, user: str = "ann", chat_id: str = "c1", **version: Any) -> AsyncGenerator[LivePage]:
        """`version`: what the page tells of its AI SDK, as a `Page` does."""
        async with live_socket(self.app, user, client=LiveClient(chat_id)) as client:
            yield LivePage(self, client, **version)

    def page(self) -> Page:
        """Over HTTP."""
        return Page(self.chat)

    async def records(self) -> list[CallRecord]:
        app_name = self.chat.runner.app_name
        return await read_whole(self.store, ChatKey(app_name, "ann", "c1"))

    async def states(self) -> list[str]:
        return [found.state for found in await self.records()]

    @property
    def is_live(self) -> bool:
        """Whether anything runs in the chat, waiting or not."""
        return bool(list(self.bridge._service._leases))  # pyright: ignore

    async def run_ended(self) -> None:
        """The live session has noticed that everybody is gone for good."""
        await asyncio.sleep(GRACE_S + 1)
        assert not self.is_live
        assert not other_tasks()


@asynccontextmanager
async def live_world(
    *script: Any,
    family: str = "2.5",
    tools: tuple[Any, ...] = (),
    agent: LlmAgent | App | None = None,
    model: ScriptedLiveModel | None = None,
    record: Store | None = None,
    sessions: BaseSessionService | None = None,
    **options: Any,
) -> AsyncGenerator[World]:
    """With a helper that follows a script in both modes, or with an agent of the test's own (and its `model`).
    Deadlines are those of the loop's time. Afterwards nothing may be left."""
    model = model or ScriptedLiveModel(script, family=family)
    store = record or MemoryStore(clock=asyncio.get_running_loop().time)
    given: dict[str, Any] = {
        "user_id": user_of,
        "store": store,
        "session_service": sessions or InMemorySessionService(),
        "run_config": RunConfig(response_modalities=[types.Modality.TEXT]),
        "approvals": ApprovalPolicy(deadline_s=DEADLINE_S, browser_deadline_s=BROWSER_DEADLINE_S),
        "limits": Limits(live_grace_s=GRACE_S),
    }
    bridge = ChatBridge(agent or LlmAgent(name="helper", model=model, tools=list(tools)), **{**given, **options})
    yield World(bridge, app_of(bridge), store, model)
    end_soon(bridge)
    await bridge.aclose()
    for _ in range(20):  # what was told to end needs its turns of the loop for that
        await asyncio.sleep(0)
    assert not other_tasks()


@asynccontextmanager
async def live_page(*script: Any, version: Mapping[str, Any] | None = None, **options: Any) -> AsyncGenerator[LivePage]:
    async with live_world(*script, **options) as world, world.socket(**(version or {})) as page:
        yield page


# -- tools ----------------------------------------------------------------------------------------------------------


def beside(function: Any, **options: Any) -> FunctionTool:
    """A tool that ADK runs beside the conversation."""
    tool = FunctionTool(function, **options)
    tool.behavior = types.Behavior.NON_BLOCKING
    return tool


# -- what is looked at ------------------------------------------------------------------------------------------------

I = ("tool-input-start", "tool-input-available")  # noqa: E741 -- the letters of the scenarios
HELD = ("tool-input-start", "tool-input-delta")
A = ("tool-approval-request", "data-adk-approval")
O = ("tool-output-available",)  # noqa: E741
D = ("tool-output-denied",)
E = ("tool-output-error",)


def step(*inside: str) -> tuple[str, ...]:
    return ("start-step", *inside, "finish-step")


X = step("text-start", "text-delta", "text-end")


def segment(*inside: str) -> list[str]:
    return ["start", *inside, "finish"]


def told_results(model: ScriptedLiveModel, number: int = -1) -> list[Any]:
    """The results that the model knew when it gave this reply."""
    parts = asked_parts(model.requests[number])
    return [part["result"] for part in parts if isinstance(part, dict) and "result" in part]


def approved(part: Mapping[str, Any], yes: bool = True, **said: Any) -> dict[str, Any]:
    """A card's part, as a client fills it in."""
    return {**part, "state": "approval-responded", "approval": {"id": part["approval"]["id"], "approved": yes, **said}}


async def until_closed(session: LiveSession) -> None:
    """For the end of a script: the model only listens."""
    while (await session.expect()).kind != "close":
        pass
