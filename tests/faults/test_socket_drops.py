"""Sockets that are lost at random points of live conversations: what is read on all of them together is what one socket
would have read, and tools that began come to their end, once."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from google.adk.tools import FunctionTool
from google.genai import types
from starlette.types import Message

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ScriptedLiveModel
from support import virtual_time
from support.apps import figure
from support.live_client import LiveClient, decisions, live_socket, outputs
from transports.live_apps import LiveApp, live_app

pytestmark = pytest.mark.virtual_time

DROPS = 500
TURNS = 5
LONGEST_ABSENCE_S = 20  # shorter than the grace
OPENING_S = 0.5

Chunk = dict[str, Any]


@dataclass(eq=False)
class FlakyClient(LiveClient):
    """Vanishes with a certain chunk: what the server sends from then on goes nowhere."""

    chunks_left: float = float("inf")

    @property
    def is_lost(self) -> bool:
        return self.chunks_left <= 0

    async def send(self, message: Message) -> None:
        if self.is_lost and message["type"] != "websocket.accept":
            raise OSError  # as uvicorn does
        await super().send(message)
        if '"type":"chunk"' in (message.get("text") or ""):
            self.chunks_left -= 1
            if self.is_lost:
                self.disconnect()


@dataclass
class Reading:
    """One request, over as many sockets as it takes."""

    frame: dict[str, Any]
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    has_begun: bool = False

    def next_frame(self, random: Random) -> dict[str, Any]:
        """What a client sends on its next socket: that it wants to go on, or the request again."""
        if not self.has_begun or (not self.chunks and random.random() < 0.5):
            return self.frame
        resume = {"type": "resume", "requestId": self.frame["requestId"], "id": self.frame["id"]}
        return {**resume, "lastSequence": len(self.chunks) - 1} if self.chunks else resume

    def take(self, told: list[dict[str, Any]]) -> str | None:
        """What a socket has brought. Gives how it ended, if it did."""
        for frame in told:
            if frame["type"] == "chunk":
                assert frame["sequence"] == len(self.chunks), "a gap, or a chunk twice"
                self.chunks.append(frame["chunk"])
            elif frame["type"] == "no-active":
                assert not self.chunks, "the server has forgotten a request that it was telling"
                self.has_begun = False  # the socket was lost before the request was even read
                return None
            elif frame["type"] != "start":
                return frame["type"]
        return None


class Conversation:
    """A user on a bad line. With `drops` he is cut off now and then; without, he never is."""

    def __init__(self, live: LiveApp, seed: int, *, drops: bool) -> None:
        self.live = live
        self.random = Random(seed) if drops else None
        self.drops = 0
        self.streams: list[list[Chunk]] = []

    async def send(self, message: dict[str, Any], **fields: Any) -> Answer:
        request_id = f"r{len(self.streams)}"
        frame = {"type": "send", "requestId": request_id, "id": "chat-1", "messages": [message], **fields}
        reading = Reading(frame)
        while await self._read(reading) is None:
            self.drops += 1
        self.streams.append(reading.chunks)
        assert reading.chunks[0]["type"] == "start"
        assert reading.chunks[-1]["type"] == "finish"
        again = Reading(frame, has_begun=True)
        async with live_socket(self.live.app) as calm:
            calm.send_frame({"type": "resume", "requestId": request_id, "id": "chat-1"})
            await calm.answer(request_id)
            assert again.take(calm.frames[request_id]) == "end"
        assert again.chunks == reading.chunks
        return Answer(200, reading.chunks)

    async def _read(self, reading: Reading) -> str | None:
        request_id, random = reading.frame["requestId"], self.random
        client = FlakyClient()
        if random is not None and random.random() < 0.8:
            client.chunks_left = random.choice([0, 1, 1, 2, 3, 4, 5, 7, 9, 12])
        async with live_socket(self.live.app, client=client):
            client.send_frame(reading.next_frame(random or Random(0)))
            reading.has_begun = True
            if client.is_lost:
                await asyncio.sleep((random or Random(0)).choice([0, OPENING_S / 2, 2 * OPENING_S]))
                client.disconnect()
            else:
                await client.until(lambda: client.is_lost or _has_ended(client.frames.get(request_id, [])))
        ended = reading.take(client.frames.get(request_id, []))
        if ended is None and random is not None and random.random() < 0.5:
            await asyncio.sleep(random.uniform(0, LONGEST_ABSENCE_S))
        return ended

    async def turn(self, number: int, *, approved: bool) -> None:
        """The user's words, and his answers to whatever he is asked."""
        message = {"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": f"Turn {number}"}]}
        known = (await self.send(message)).chunks
        answered: set[str] = set()
        while parts := unanswered(Answer(200, known), answered, approved=approved):
            answered |= {part["toolCallId"] for part in parts}
            message_id = known[0]["messageId"]
            reply = {"id": message_id, "role": "assistant", "parts": parts}
            known = [*known, *(await self.send(reply, messageId=message_id)).chunks]


def unanswered(told: Answer, answered: set[str], *, approved: bool) -> list[dict[str, Any]]:
    parts = [*decisions(told, approved=approved), *outputs(told, {"lat": 1})]
    return [part for part in parts if part["toolCallId"] not in answered]


def _has_ended(told: list[dict[str, Any]]) -> bool:
    return bool(told) and told[-1]["type"] in ("end", "error", "no-active")


# -- the agent --------------------------------------------------------------------------------------------------------


class Work:
    """Tools that take their time, and count."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()

    async def work(self, name: str) -> dict[str, str]:
        """Works."""
        return await self._do(name)

    async def pay(self, name: str) -> dict[str, str]:
        """Pays."""
        return await self._do(name)

    async def _do(self, name: str) -> dict[str, str]:
        self.started[name] += 1
        for _ in range(5):
            await asyncio.sleep(1)
        self.finished[name] += 1
        return {"done": name}

    @property
    def tools(self) -> tuple[Any, ...]:
        return (self.work, FunctionTool(self.pay, require_confirmation=True), client_tool(locate))


def locate() -> None:
    """Where the user is."""


def script_of(seed: int) -> tuple[list[Any], list[bool]]:
    """What the model says in each turn, and whether the user agrees when he is asked."""
    random, replies, decided = Random(seed), list[Any](), list[bool]()
    names: Iterator[str] = iter(f"n{number}" for number in range(1000))

    def called(name: str) -> types.Part:
        argument = next(names)
        arguments = {} if name == "locate" else {"name": argument}
        return types.Part(function_call=types.FunctionCall(id=f"call-{argument}", name=name, args=arguments))

    for number in range(TURNS):
        decided.append(random.random() < 0.7)
        for _ in range(random.choice([0, 1, 1, 2])):
            kinds = random.choice([["work"], ["pay"], ["locate"], ["pay", "work"], ["pay", "pay"], ["pay", "locate"]])
            replies.append([*([types.Part(text="One moment. ")] * random.choice([0, 1])), *map(called, kinds)])
        replies.append(f"This is the end of turn {number}, at last.")
    return replies, decided


def masked(streams: list[list[Chunk]]) -> str:
    """Without what is made up anew each time."""
    text = json.dumps(streams)
    names = {
        chunk[name] for stream in streams for chunk in stream for name in ("messageId", "approvalId") if name in chunk
    }
    order = sorted(names, key=text.index)
    for number, name in enumerate(order):
        text = text.replace(name, f"id-{number}")
    told = json.loads(text)
    for stream in told:
        for chunk in stream:
            if chunk["type"] == "data-adk-approval":
                chunk["data"]["deadline"] = "later"
    return json.dumps(told)


async def prepare(*_: Any) -> None:
    await asyncio.sleep(OPENING_S)


async def talk(seed: int, family: str, *, drops: bool) -> tuple[Conversation, Work, list[dict[str, Any]]]:
    work, (replies, decided) = Work(), script_of(seed)
    store = MemoryStore(clock=asyncio.get_running_loop().time)
    model = ScriptedLiveModel(replies, family=family)
    async with live_app(model=model, tools=work.tools, store=store, prepare=prepare) as live:
        conversation = Conversation(live, seed, drops=drops)
        for number, approved in enumerate(decided):
            await conversation.turn(number, approved=approved)
        messages = await live.messages()
        assert len(model.requests) == len(replies)
        assert len(model.sessions) == 1
        records = (await store.read(ChatKey("helper", "ann", "chat-1"))).records
        paid = {found.arguments["name"] for found in records if found.tool == "pay" and found.state is State.DONE}
        assert paid <= set(work.finished)
        assert all(found.is_final for found in records)
    return conversation, work, messages


@pytest.mark.figures
def test_a_conversation_on_a_bad_line_is_that_of_a_good_one(capsys: pytest.CaptureFixture[str]) -> None:
    drops = seed = 0

    async def scenario() -> None:
        nonlocal drops
        family = ("2.5", "3")[seed % 2]
        calm, calm_work, calm_messages = await talk(seed, family, drops=False)
        flaky, work, messages = await talk(seed, family, drops=True)
        drops += flaky.drops
        assert calm.drops == 0
        assert masked(flaky.streams) == masked(calm.streams)
        assert work.started == work.finished == calm_work.finished
        assert all(count == 1 for count in work.finished.values())
        assert [message["role"] for message in messages] == [message["role"] for message in calm_messages]

    while drops < figure(DROPS):
        try:
            virtual_time.run(scenario())
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        seed += 1
    with capsys.disabled():
        print(f"\n{drops} drops in {seed} conversations", end=" ")


@pytest.mark.parametrize("family", ["2.5", "3"])
async def test_a_tool_that_nobody_comes_back_for_ends_and_its_result_is_kept(family: str) -> None:
    work = Work()
    made = types.FunctionCall(id="call-1", name="work", args={"name": "alone"})
    model = ScriptedLiveModel([[types.Part(function_call=made)], "Never read."], family=family)
    async with live_app(model=model, tools=work.tools, limits=Limits(live_grace_s=2)) as live:
        client = FlakyClient(chunks_left=4)
        async with live_socket(live.app, client=client):
            client.start_send({"id": "u", "role": "user", "parts": [{"type": "text", "text": "Work"}]})
            await client.until(lambda: client.is_lost)
        assert (work.started.total(), work.finished.total()) == (1, 0)
        await asyncio.sleep(100)
        assert live.runs == 0
        assert (work.started.total(), work.finished.total()) == (1, 1)
        part = next(part for part in (await live.messages())[-1]["parts"] if part["type"] == "tool-work")
        assert (part["state"], part["output"]) == ("output-available", {"done": "alone"})
