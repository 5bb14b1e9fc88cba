"""Some models number their calls anew in every answer: "0", "1", "0", "1". An answer names one call all the same. What
was approved is paid, once, to whom it was shown, and nobody else is."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, ParallelAgent
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Reply, ScriptedModel
from faults.tabs import FORMS, Seen, Tab, results_body
from support.apps import app_of, user_of
from support.tool_log import ToolLog
from support.truth import CONFIRMATION, disagreements

BOB = {"amount": 1, "to": "Bob"}
EVE = {"amount": 900, "to": "Eve"}


def numbered(number: int, arguments: dict[str, Any]) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=str(number), name="pay", args=arguments))


class Till:
    """One chat, in which payments are asked for under the ids that the model likes."""

    def __init__(self, *replies: Reply) -> None:
        store, sessions = MemoryStore(), InMemorySessionService()
        self.seen = Seen(ChatKey("bank", "ann", "c1"), store, sessions, ToolLog())
        self.model = ScriptedModel([*replies, *["Well."] * 10])
        self.open(LlmAgent(name="bank", model=self.model, tools=[self.gated]))

    def open(self, agent: BaseAgent) -> None:
        services: dict[str, Any] = {"store": self.seen.store, "session_service": self.seen.sessions}
        bridge = ChatBridge(agent, user_id=user_of, app_name="bank", **services)
        self.tab = Tab(app_of(bridge), self.seen)

    async def pay(self, amount: float, to: str, tool_context: ToolContext) -> dict[str, Any]:
        """Send money."""
        with self.seen.log.running("pay", tool_context, amount=amount, to=to):
            return {"paid": amount, "to": to}

    @property
    def gated(self) -> FunctionTool:
        async def is_asked(to: str, **_: Any) -> bool:
            """Looks something up first, for each payment as long as it takes."""
            for _ in range(5 if to == "Bob" else 10):
                await asyncio.sleep(0)
            return True

        return FunctionTool(self.pay, require_confirmation=is_asked)

    @property
    def paid(self) -> list[Any]:
        return [made.arguments for made in self.seen.log.runs()]

    async def agrees(self, *, with_model: bool = True) -> None:
        """After one more turn, everybody knows the same of every call."""
        assert (await self.tab.say("And?")).status == 200
        requests = self.model.requests if with_model else ()
        assert disagreements(await self.seen.world(self.tab.app, requests=requests)) == []


# -- a later call under an id of before -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
async def test_an_old_approval_sent_again_pays_nobody_else(form: str) -> None:
    till = Till([numbered(0, BOB)], "Paid Bob.", [numbered(0, EVE)], "Paid Eve.")
    await till.tab.say("Pay Bob.")
    await till.tab.decide(till.tab.questions[0], approved=True, form=form)
    assert till.paid == [BOB]
    await till.tab.say("What about the invoice?")
    again = await till.tab.replay()  # the same bytes: a retry of the network's, or of a second tab
    assert again.status == 200
    assert till.paid == [BOB]
    (asked,) = till.tab.questions
    assert asked["input"] == EVE
    await till.agrees()


@pytest.mark.parametrize("form", FORMS)
async def test_an_old_denial_sent_again_refuses_nothing_else(form: str) -> None:
    till = Till([numbered(0, EVE)], "Not paid.", [numbered(0, BOB)], "Paid Bob.")
    await till.tab.say("Pay Eve.")
    await till.tab.decide(till.tab.questions[0], approved=False, form=form)
    await till.tab.say("Pay Bob.")
    assert (await till.tab.replay()).status == 200
    await till.tab.decide(till.tab.questions[0], approved=True, form=form)
    assert till.paid == [BOB]
    await till.agrees()


@pytest.mark.parametrize("form", FORMS)
async def test_of_two_calls_that_wait_under_one_id_each_has_its_own_answer(form: str) -> None:
    till = Till([numbered(0, BOB)], [numbered(0, EVE)], "Done.", "Done.")
    await till.tab.say("Pay Bob.")
    await till.tab.say("Pay Eve.")
    bob, eve = till.tab.questions
    assert (bob["input"], eve["input"]) == (BOB, EVE)
    await till.tab.decide(bob, approved=True, form=form)
    assert till.paid == [BOB]
    await till.tab.decide(eve, approved=False, form=form)
    assert till.paid == [BOB]
    await till.agrees()


async def test_the_second_of_two_calls_of_one_turn_is_another_call() -> None:
    till = Till([numbered(0, BOB)], [numbered(0, EVE)], "Done.", "Done.")
    await till.tab.say("Pay Bob.")
    await till.tab.decide(till.tab.questions[0], approved=True, form="a result for the call")
    assert (await till.tab.replay()).status == 200
    assert till.paid == [BOB]
    await till.tab.decide(till.tab.questions[0], approved=True, form="a result for the call")
    assert till.paid == [BOB, EVE]
    await till.agrees()


# -- two calls under one id at once -----------------------------------------------------------------------------------


def in_one_answer(till: Till) -> None:
    """The model says both at once."""


def asked_by_the_tool_itself(till: Till) -> None:
    async def pay(amount: float, to: str, tool_context: ToolContext) -> dict[str, Any]:
        """Send money."""
        for _ in range(5 if to == "Bob" else 10):  # it looks up the account
            await asyncio.sleep(0)
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint=f"Send {amount} to {to}?")
            return {"status": "waits"}
        return await till.pay(amount, to, tool_context)

    till.open(LlmAgent(name="bank", model=till.model, tools=[pay]))


def of_agents_side_by_side(till: Till) -> None:
    scripts = {"first": [numbered(0, BOB)], "second": [numbered(0, EVE)]}
    agents = [
        LlmAgent(name=name, model=ScriptedModel([calls, *["Well."] * 10]), tools=[till.gated])
        for name, calls in scripts.items()
    ]
    till.open(ParallelAgent(name="both", sub_agents=agents))


AT_ONCE = [in_one_answer, asked_by_the_tool_itself, of_agents_side_by_side]


@pytest.mark.parametrize("approved", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("put", AT_ONCE)
async def test_two_calls_under_one_id_at_once_are_shown_and_paid_each_as_it_is(
    put: Any, approved: tuple[bool, bool]
) -> None:
    till = Till([numbered(0, BOB), numbered(0, EVE)], "Done.", "Done.")
    put(till)
    await till.tab.say("Pay.")
    shown = {asked["input"]["to"]: asked for asked in till.tab.questions}
    assert {name: asked["input"] for name, asked in shown.items()} == {"Bob": BOB, "Eve": EVE}
    for asked, word in zip((shown["Bob"], shown["Eve"]), approved, strict=True):
        assert (await till.tab.decide(asked, approved=word)).status == 200
    assert till.paid == [each for each, word in zip((BOB, EVE), approved, strict=True) if word]
    await till.agrees(with_model=put is not of_agents_side_by_side)


# -- chats of before --------------------------------------------------------------------------------------------------


async def remember(till: Till, turn: int, arguments: dict[str, Any]) -> None:
    """A question as earlier versions have left it: in the session and in the record under the model's own id."""
    about: dict[str, Any] = {"author": "bank", "invocation_id": f"e-{turn}"}
    original = {"id": "0", "name": "pay", "args": arguments}
    question = types.FunctionCall(
        id=f"adk-{turn}", name=CONFIRMATION, args={"originalFunctionCall": original, "toolConfirmation": {"hint": "?"}}
    )
    place_holder = types.FunctionResponse(id="0", name="pay", response={"error": "requires confirmation"})
    asks = EventActions(requested_tool_confirmations={"0": ToolConfirmation(hint="?")})
    events = [
        Event(author="user", invocation_id=f"e-{turn}", content=types.UserContent("Pay.")),
        Event(content=types.ModelContent([numbered(0, arguments)]), **about),
        Event(
            content=types.ModelContent([types.Part(function_call=question)]),
            long_running_tool_ids={f"adk-{turn}"},
            **about,
        ),
        Event(content=types.UserContent([types.Part(function_response=place_holder)]), actions=asks, **about),
    ]
    key = {"app_name": "bank", "user_id": "ann", "session_id": "c1"}
    sessions = till.seen.sessions
    session = await sessions.get_session(**key) or await sessions.create_session(**key)
    for event in events:
        await sessions.append_event(session, event)
    known: dict[str, Any] = {"chat": till.seen.chat, "tool": "pay", "arguments": arguments, "executor": "server"}
    await till.seen.store.add(CallRecord(call=CallKey(f"e-{turn}", "0"), state=State.PENDING, asked_at=0, **known))


async def test_an_id_that_names_two_calls_of_an_old_chat_approves_neither() -> None:
    till = Till()
    await remember(till, 1, BOB)
    await remember(till, 2, EVE)
    said = results_body("c1", {"toolCallId": "0", "toolName": "pay", "result": {"approved": True}})
    assert (await till.tab.post("approve", said)).status == 404
    assert till.paid == []
    records = (await till.seen.store.read(till.seen.chat)).records
    assert [record.state for record in records] == [State.PENDING, State.PENDING]
