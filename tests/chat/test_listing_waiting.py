"""Whether a list says that somebody is waited for: as the history does, which nobody reads for it."""

import copy
from collections.abc import AsyncGenerator
from random import Random
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import RequestInput
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.workflow import Workflow
from google.genai import types

from adk_stream_protocol import client_tool
from adk_stream_protocol.protocol.answers import CONFIRMATION
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.protocol.outcome import OPEN_STATES
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from live.live_pages import live_world
from support.conversations import Conversation, conversation
from support.pages import Clock, Till, page
from support.records import CHAT
from test_round_trips import CountedSessions

WALKS, STEPS = 12, 14
TOOLS = ("pay", "where", "pick", "left", "plain")


class Obedient(BaseLlm):
    """Calls the tools that the user names, and then says that it is done."""

    model: str = "obedient"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = llm_request.contents[-1].parts or []
        words = " ".join(part.text or "" for part in parts).split()
        calls = [types.Part(function_call=types.FunctionCall(name=word, args={})) for word in words if word in TOOLS]
        if not calls or any(part.function_response for part in parts):
            calls = [types.Part(text="Done.")]
        yield LlmResponse(content=types.Content(role="model", parts=calls))


async def pay() -> dict[str, bool]:
    """Pays."""
    return {"paid": True}


async def plain() -> dict[str, bool]:
    """Works."""
    return {"done": True}


def where() -> None:
    """Runs in the browser."""


def pick() -> None:
    """Runs in the browser, if it may."""


def left() -> None:
    """Is left to others."""


class Walk:
    """A chat in which everything happens that may happen to a call, in any order."""

    def __init__(self, chat: Conversation, store: MemoryStore, clock: Clock, seed: int) -> None:
        self.chat, self.store, self.clock = chat, store, clock
        self.random = Random(seed)
        self.done: list[str] = []

    async def step(self) -> None:
        messages = await self.chat.messages()
        open_parts = [
            (message, part) for message in messages for part in message["parts"] if part.get("state") in OPEN_STATES
        ]
        said = [message["id"] for message in messages if message["role"] == "user"]
        kinds = ["say", "say", "time", *["answer"] * 4 * bool(open_parts), *["edit", "regenerate"] * bool(said)]
        kind = self.random.choice(kinds)
        if kind == "say":
            style = self.random.choice(["approval-request", "confirmation-tool"])
            await self.chat.say(self._words(), approvalStyle=style)
        elif kind == "time":
            self.clock.now += self.random.choice([1, 61, 601])
        elif kind == "edit":
            await self.chat.edit(self.random.choice(said), self._words())
        elif kind == "regenerate":
            await self.chat.regenerate(self.random.choice(said))
        else:
            message, part = self.random.choice(open_parts)
            await self._answer(copy.deepcopy(message), part["toolCallId"])
        self.done.append(kind)

    def _words(self) -> str:
        return " ".join(self.random.choices(TOOLS, k=self.random.choice([0, 1, 1, 2])))

    async def _answer(self, message: dict[str, Any], call_id: str) -> None:
        part = next(part for part in message["parts"] if part.get("toolCallId") == call_id)
        yes = self.random.random() < 0.6
        if part["type"] == f"tool-{CONFIRMATION}":
            part |= {"state": "output-available", "output": {"confirmed": yes}}
        elif part["state"] == "approval-requested":
            part |= {"state": "approval-responded", "approval": {**part["approval"], "approved": yes}}
        else:
            part |= {"state": "output-available", "output": {"ok": yes}}
        await self.chat.post({"id": "c1", "messages": [message], "messageId": message["id"]})

    async def history_waits(self) -> bool:
        """What the history shows as open, and somebody has time for."""
        records = {found.call.call_id: found for found in (await self.store.read(CHAT)).records}
        for message in await self.chat.messages():
            for part in message["parts"]:
                if part.get("state") in OPEN_STATES:
                    asked = (part.get("input") or {}).get("originalFunctionCall") or {}
                    record = records[asked.get("id", part["toolCallId"])]
                    is_late = record.due_at is not None and record.due_at <= self.clock.now
                    if not is_late and not record.is_final:  # a denial waits for its siblings
                        return True
        return False


@pytest.mark.parametrize("seed", range(WALKS))
async def test_a_list_says_of_a_chat_what_its_history_says(seed: int) -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    tools = [
        FunctionTool(pay, require_confirmation=True),
        client_tool(where),
        client_tool(pick, approve=True),
        LongRunningFunctionTool(left),
        plain,
    ]
    agent = LlmAgent(name="helper", model=Obedient(), tools=tools)
    async with conversation(agent=agent, record=store) as chat:
        walk = Walk(chat, store, clock, seed)
        await walk.chat.say("pay")
        for _ in range(STEPS):
            await walk.step()
            listed = (await chat.chats())[0]["waiting"]
            assert listed is await walk.history_waits(), walk.done


# -- questions of workflows -------------------------------------------------------------------------------------------


async def ask_for_city() -> Any:
    yield RequestInput(message="Which city?")


def weather() -> Workflow:
    teller = LlmAgent(name="teller", model=ScriptedModel(["Sunny."] * 3))
    return Workflow(name="flow", edges=[("START", ask_for_city, teller)])


async def waits(chat: Conversation) -> bool:
    return (await chat.chats())[0]["waiting"]


async def test_a_chat_waits_for_the_answer_to_a_workflows_question() -> None:
    store = MemoryStore()
    async with page(agent=weather(), record=store) as at:
        await at.say("Weather?")
        assert await waits(at.chat)
        at.output("adk_request_input", "Oslo")
        assert (await at.answer()).text == "Sunny."
        assert not await waits(at.chat)
        trail = await store.audit(CHAT._replace(app_name="flow"))
        assert [entry.state for entry in trail] == ["approved", "done"]


async def test_a_question_that_an_older_version_has_not_recorded_is_found_with_the_title() -> None:
    sessions = InMemorySessionService()
    async with page(agent=weather(), session_service=sessions) as at:
        await at.say("Weather?")
    async with conversation(agent=weather(), session_service=sessions, record=MemoryStore()) as later:
        for _ in range(2):
            assert [(entry["title"], entry["waiting"]) for entry in await later.chats()] == [("Weather?", True)]
        tab = await at.second_tab()
        tab.chat = later
        tab.output("adk_request_input", "Oslo")
        assert (await tab.answer()).text == "Sunny."
        assert not await waits(later)


# -- what is taken back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["edit", "regenerate"])
async def test_nobody_waits_for_the_answers_to_calls_that_were_taken_back(how: str) -> None:
    store, sessions = MemoryStore(), CountedSessions()
    calls = [call("pay", amount=5), call("where"), call("pick")]
    tools = (Till().gated, client_tool(where), client_tool(pick, approve=True))
    services: dict[str, Any] = {"record": store, "session_service": sessions}
    async with conversation("Hi.", calls, "Never mind.", "On.", tools=tools, **services) as chat:
        await chat.say("Hello.")
        await chat.say("Do it.")
        assert await waits(chat)
        await (chat.edit("u2", "Do nothing.") if how == "edit" else chat.regenerate("u2"))
        assert not await waits(chat)
        records = (await store.read(CHAT)).records
        assert [found.state for found in records] == [State.DENIED, State.DONE, State.DENIED]
        assert records[0].reason == "the user edited or regenerated the turn"
        sessions.loads = 0
        assert (await chat.say("And?")).text == "On."
        assert sessions.loads == 0, "the session is owed nothing"


async def test_what_is_asked_before_a_turn_that_is_taken_back_goes_on_waiting() -> None:
    store = MemoryStore()
    replies = [[call("pay", amount=5)], [call("pay", amount=6)], "Never mind."]
    async with conversation(*replies, tools=(Till().gated,), record=store) as chat:
        await chat.say("Pay 5.")
        await chat.say("Pay 6.")
        await chat.edit("u2", "No.")
        assert await waits(chat)
        states = [found.state for found in (await store.read(CHAT)).records]
        assert states == [State.PENDING, State.DENIED]


# -- live sessions ----------------------------------------------------------------------------------------------------


@pytest.mark.virtual_time
async def test_a_live_session_names_its_chat_and_says_that_it_waits() -> None:
    sessions = CountedSessions()
    async with live_world([call("pay", amount=5)], "Paid.", tools=(Till().gated,), sessions=sessions) as world:
        async with world.socket() as at:
            await at.say("Pay five.")
            assert await waits(world.chat)
            at.decide("pay")
            await at.answer()
            assert not await waits(world.chat)
        await world.run_ended()
        sessions.loads = 0
        assert [entry["title"] for entry in await world.chat.chats()] == ["Pay five."]
        assert sessions.loads == 0


@pytest.mark.virtual_time
async def test_a_live_session_that_no_list_has_seen_has_its_title() -> None:
    sessions = CountedSessions()
    async with live_world("Hello.", sessions=sessions) as world:
        async with world.socket() as at:
            await at.say("  Hello\n there ")
        await world.run_ended()
        sessions.loads = 0
        assert [entry["title"] for entry in await world.chat.chats()] == ["Hello there"]
        assert sessions.loads == 0
