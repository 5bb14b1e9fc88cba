"""A live session whose user, tabs, network and clock do anything in any order: no payment is made twice or unapproved,
every stream is whole, and nothing is left behind."""

import asyncio
import itertools
from collections import Counter
from random import Random
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types
from websockets.exceptions import ConnectionClosedError

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Limits
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Said, ScriptedLiveModel, call
from protocol.segment_checker import check_segment
from support.apps import app_of, figure, user_of
from support.live_client import LiveClient, live_socket
from support.virtual_time import run

INTERLEAVINGS = 10_000
STEPS = 12
DEADLINE_S, GRACE_S = 60, 30
LIMITS = Limits(live_grace_s=GRACE_S)
TERMINAL = ("finish", "abort", "error")


class World:
    """One chat of one user: two tabs with a socket each, and the HTTP door."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.paid: Counter[str] = Counter()
        self.store = MemoryStore(clock=asyncio.get_running_loop().time)
        self.model = model = ScriptedLiveModel([self.reply] * 100, family=self.random.choice(["2.5", "3"]))
        agent = LlmAgent(
            name="helper", model=model, tools=[FunctionTool(self.pay, require_confirmation=True), self.look]
        )
        self.bridge = ChatBridge(
            agent,
            user_id=user_of,
            store=self.store,
            run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
            approvals=ApprovalPolicy(deadline_s=DEADLINE_S),
            limits=LIMITS,
        )
        self.app = app_of(self.bridge)
        self.tabs: list[Tab | None] = [None, None]
        self.everything: list[Tab] = []
        self.asked: dict[str, dict[str, Any]] = {}  # parts that wait for a decision, by the call's id
        self.http: list[asyncio.Task[Any]] = []
        self.numbers = itertools.count()

    async def pay(self, amount: int, tool_context: ToolContext) -> dict[str, int]:
        """Pays."""
        self.paid[tool_context.function_call_id or ""] += 1
        await asyncio.sleep(self.random.choice([0, 0, 5]))
        return {"paid": amount}

    async def look(self) -> dict[str, str]:
        """Looks at the account."""
        await asyncio.sleep(self.random.choice([0, 3]))
        return {"balance": "plenty"}

    def reply(self, request: LlmRequest) -> Said:
        last = request.contents[-1] if request.contents else None
        if last is None or any(part.function_response for part in last.parts or ()):
            return "That is that." if self.random.random() < 0.8 else [call("pay", amount=9)]
        wanted = self.random.choice([1, 1, 2, 0])
        calls = [call("pay", amount=number) for number in range(wanted)]
        if self.random.random() < 0.4:
            calls.insert(self.random.randrange(len(calls) + 1), call("look"))
        return calls or "Hello there."

    # -- what may happen ----------------------------------------------------------------------------------------------

    async def step(self) -> None:
        kinds = [self.say, self.say, self.decide, self.decide, self.decide, self.decide_over_http, self.decide_twice]
        kinds += [self.disconnect, self.reconnect, self.reconnect, self.stop, self.wait, self.breathe, self.breathe]
        kinds += [self.withdraw, self.lose_connection]
        await self.random.choice(kinds)()

    def tab(self) -> "Tab | None":
        return self.random.choice(self.tabs)

    async def say(self) -> None:
        if (tab := self.tab()) is not None:
            number = next(self.numbers)
            tab.start({"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": f"Pay {number}"}]})

    def decision(self) -> tuple[str, dict[str, Any]] | None:
        """What a person says who sees one of the cards, or an old one."""
        for tab in self.everything:
            tab.look_for_questions(self.asked)
        if not self.asked:
            return None
        part = self.asked[self.random.choice(sorted(self.asked))]
        said = {**part["approval"], "approved": self.random.random() < 0.6}
        answered = {**part, "state": "approval-responded", "approval": said}
        return answered.pop("messageId"), answered

    async def decide(self) -> None:
        tab, decision = self.tab(), self.decision()
        if tab is not None and decision is not None:
            message_id, part = decision
            tab.start({"id": message_id, "role": "assistant", "parts": [part]}, messageId=message_id)

    async def decide_over_http(self) -> None:
        decision = self.decision()
        if decision is not None:
            message_id, part = decision
            message = {"id": message_id, "role": "assistant", "parts": [part]}
            body = {"id": "chat-1", "messages": [message], "messageId": message_id}
            self.http.append(asyncio.create_task(self.post("/api/chat", body)))

    async def decide_twice(self) -> None:
        """Both doors at once."""
        await self.decide()
        await self.decide_over_http()

    async def post(self, path: str, body: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", timeout=None) as client:
            response = await client.post(path, json=body)
            assert response.status_code in (200, 204, 404, 409), response.text
            return response

    async def disconnect(self) -> None:
        place = self.random.randrange(2)
        if (tab := self.tabs[place]) is not None:
            self.tabs[place] = None
            await tab.leave()

    async def reconnect(self) -> None:
        place = self.random.randrange(2)
        if self.tabs[place] is None:
            self.tabs[place] = tab = Tab(self.app)
            self.everything.append(tab)
            await tab.enter()
            if self.random.random() < 0.5:
                tab.client.send_frame({"type": "resume", "requestId": f"again{id(tab)}", "id": "chat-1"})

    async def stop(self) -> None:
        if self.random.random() < 0.4:
            self.http.append(asyncio.create_task(self.post("/api/chat/chat-1/stop", {})))

    async def withdraw(self) -> None:
        """The model takes back one of its calls, perhaps one that has run."""
        if self.model.sessions:
            made = [part.function_call for content in self.model.sessions[-1].contents for part in content.parts or ()]
            ids = [each.id for each in made if each is not None and each.id]
            if ids:
                await self.model.sessions[-1].cancel(self.random.choice(ids))

    async def lose_connection(self) -> None:
        if self.model.sessions:
            session = self.model.sessions[-1]
            if self.random.random() < 0.8:
                await session.resumption_handle(f"h{next(self.numbers)}")
                await self.breathe()
            if self.random.random() < 0.5:
                await session.go_away()
            else:
                session.fail(ConnectionClosedError(None, None))

    async def wait(self) -> None:
        await asyncio.sleep(self.random.choice([1, GRACE_S + 1, DEADLINE_S + 1]))

    async def breathe(self) -> None:
        for _ in range(self.random.choice([1, 3, 10, 40])):
            await asyncio.sleep(0)

    # -- what must hold -----------------------------------------------------------------------------------------------

    async def check(self) -> None:
        await asyncio.sleep(LIMITS.live_silence_s + 20)  # for tools at work, and a model that was lost
        for tab in self.everything:
            tab.check_streams()
        audit = await self.store.audit(ChatKey("helper", "ann", "chat-1"))
        approved = Counter(entry.call.call_id for entry in audit if entry.state == "approved" and entry.approved)
        decided = Counter(entry.call.call_id for entry in audit if entry.state in ("approved", "denied", "expired"))
        assert max(self.paid.values(), default=0) <= 1
        assert self.paid.keys() <= approved.keys()
        assert max(decided.values(), default=0) <= 1
        started = Counter(entry.call.call_id for entry in audit if entry.state == "started")
        assert started == self.paid
        withdrawn = {entry.call.call_id for entry in audit if entry.state == "withdrawn"}
        assert not withdrawn & self.paid.keys()


class Tab:
    def __init__(self, app: Any) -> None:
        self._socket = live_socket(app)
        self.client = LiveClient()
        self._is_left = False
        self._numbers = itertools.count()

    async def enter(self) -> None:
        self.client = await self._socket.__aenter__()

    async def leave(self) -> None:
        self._is_left = True
        await self._socket.__aexit__(None, None, None)

    def start(self, message: dict[str, Any], **fields: Any) -> None:
        number = next(self._numbers)
        self.client.start_send(message, messages=[message], request_id=f"r{id(self)}-{number}", **fields)

    def streams(self) -> list[tuple[list[dict[str, Any]], str]]:
        """The chunks of each request, and how it stands."""
        requests = [told for request_id, told in self.client.frames.items() if request_id != "-"]
        return [([frame["chunk"] for frame in told if frame["type"] == "chunk"], told[-1]["type"]) for told in requests]

    def look_for_questions(self, asked: dict[str, dict[str, Any]]) -> None:
        for chunks, _ in self.streams():
            inputs = {chunk["toolCallId"]: chunk for chunk in chunks if chunk["type"] == "tool-input-available"}
            for chunk in chunks:
                if chunk["type"] == "tool-approval-request" and chunk["toolCallId"] in inputs:
                    made = inputs[chunk["toolCallId"]]
                    asked[chunk["toolCallId"]] = {
                        "messageId": chunks[0]["messageId"],
                        "type": f"tool-{made['toolName']}",
                        "toolCallId": chunk["toolCallId"],
                        "input": made["input"],
                        "approval": {"id": chunk["approvalId"]},
                    }

    def check_streams(self) -> None:
        for chunks, last in self.streams():
            if last == "end":
                assert chunks[-1]["type"] in TERMINAL
                known = {chunk["toolCallId"] for chunk in chunks if "toolCallId" in chunk}
                opened = {chunk["toolCallId"] for chunk in chunks if chunk["type"] == "tool-input-start"}
                check_segment(chunks, 6, frozenset(known - opened))
            elif not self._is_left:
                assert last in ("error", "no-active"), f"a stream is still open: {chunks}"


async def interleaving(seed: int) -> None:
    world = World(seed)
    await world.reconnect()
    for _ in range(STEPS):
        await world.step()
    await world.check()
    for tab in world.tabs:
        if tab is not None:
            await tab.leave()
    await asyncio.gather(*world.http)
    await world.bridge.aclose()
    await asyncio.sleep(1000)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left


@pytest.mark.figures
def test_whatever_happens_in_whatever_order_no_payment_is_made_twice_or_unapproved() -> None:
    for seed in range(figure(INTERLEAVINGS)):
        try:
            run(interleaving(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
