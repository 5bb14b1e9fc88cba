"""Workflow nodes that ask: they wait inside the run, and get the arguments that were shown, or none."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents.context import Context
from google.adk.apps import App
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.workflow import START, Workflow, node
from pydantic import BaseModel

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Nobody, client_tool
from adk_stream_protocol.adk.runner import resumable
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from live.live_pages import DENIED, until
from support import releases
from support.apps import user_of
from support.pages import Page, Till, page, results_told
from support.records import read_whole
from support.workers import answer_body, words_body

pytestmark = pytest.mark.virtual_time

PAID = {"paid": 5}
KINDS = ("a node", "a tool's node", "a node made while running", "a tool's node made while running")

every_kind = pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=releases.tool_nodes if "tool" in kind else releases.node_confirmation) for kind in KINDS],
)


def details() -> dict[str, Any]:
    return {"amount": 5}


def flow_of(kind: str, till: Till, after: list[Any]) -> Workflow:
    """A workflow that pays, and then notes what it was told."""

    def note(node_input: Any) -> Any:
        after.append(node_input)
        return "Noted."

    def pays() -> Any:
        if "tool" in kind:
            return node(till.gated)
        return node(till.pay, require_confirmation=True, parameter_binding="node_input")

    @node(rerun_on_resume=True)
    async def makes_it(ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        yield await ctx.run_node(pays(), node_input=node_input)

    paying = makes_it if "made" in kind else pays()
    return Workflow(name="flow", edges=[(START, details), (details, paying), (paying, note)])


async def record_of(at: Page) -> Any:
    runner = at.chat.runner
    service = at.chat.bridge._service  # pyright: ignore[reportPrivateUsage]
    from adk_stream_protocol.protocol.call_record import ChatKey

    (found,) = await read_whole(service._store, ChatKey(runner.app_name, "ann", "c1"))  # pyright: ignore
    return found


@every_kind
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_a_node_asks_and_goes_on_as_decided(kind: str, yes: bool) -> None:
    till, after = Till(), list[Any]()
    async with page(agent=flow_of(kind, till, after)) as at:
        asked = await at.say("Pay.")
        assert asked.chunks[-1]["finishReason"] == "tool-calls"
        assert (at.part("pay")["input"], till.paid, after) == ({"amount": 5}, [], [])
        await at.is_what_a_reload_shows()
        at.decide("pay", approved=yes)
        await at.answer()
        assert at.states("pay") == ["output-available" if yes else "output-denied"]
        assert (till.paid, after) == (([5], [PAID]) if yes else ([], [DENIED]))
        assert (await record_of(at)).state == ("done" if yes else "denied")
        await at.is_what_a_reload_shows()


@every_kind
async def test_what_is_not_a_decision_is_none(kind: str) -> None:
    till, after = Till(), list[Any]()
    async with page(agent=flow_of(kind, till, after)) as at:
        await at.say("Pay.")
        part = at.part("pay")
        for word in ("yes", 1, "true", {"confirmed": "yes"}):
            forged = {**part, "state": "output-available", "output": word}
            message = {**at.messages[-1], "parts": [forged]}
            assert (await at.chat.post({**answer_body(at), "messages": [message]})).status == 404
        assert (till.paid, after) == ([], [])
        at.decide("pay")
        await at.answer()
        assert till.paid == [5]


@every_kind
async def test_eight_answers_at_once_run_it_once(kind: str) -> None:
    till, after = Till(), list[Any]()
    async with page(agent=flow_of(kind, till, after)) as at:
        await at.say("Pay.")
        at.decide("pay")
        answers = await asyncio.gather(*(at.chat.post(answer_body(at)) for _ in range(8)))
        assert {answer.status for answer in answers} == {200}
        assert (till.paid, after) == ([5], [PAID])


@releases.node_confirmation
async def test_what_was_shown_runs_whatever_the_state_is_by_then() -> None:
    paid: list[Any] = []

    async def pay(amount: int, to: str) -> Any:
        """Pays."""
        paid.append((amount, to))
        return {"paid": amount}

    paying = node(pay, require_confirmation=True)

    async def meddle(ctx: Context) -> Any:
        await asyncio.sleep(5)
        ctx.state["amount"] = 900
        ctx.state["to"] = "Eve"

    flow = Workflow(name="flow", edges=[(START, paying), (START, node(meddle))])

    def prepare(_: Any, body: Any) -> Any:
        return {"state_delta": {"amount": 1, "to": "Bob"}}

    async with page(agent=flow, prepare=prepare) as at:
        await at.say("Pay.")
        assert at.part("pay")["input"] == {"amount": 1, "to": "Bob"}
        await asyncio.sleep(10)
        at.decide("pay")
        await at.answer()
        assert paid == [(1, "Bob")]


@releases.node_confirmation
async def test_arguments_that_somebody_has_changed_are_not_run() -> None:
    paid: list[Any] = []
    basket = {"amount": 1}

    def fill() -> Any:
        return {"basket": basket}

    async def pay(basket: Any) -> Any:
        """Pays."""
        paid.append(basket)

    paying = node(pay, require_confirmation=True, parameter_binding="node_input")
    after: list[Any] = []

    def note(node_input: Any) -> None:
        after.append(node_input)

    flow = Workflow(name="flow", edges=[(START, fill), (fill, paying), (paying, note)])
    async with page(agent=flow) as at:
        await at.say("Pay.")
        if at.part("pay")["input"] != {"basket": {"amount": 1}}:
            pytest.fail("not what is bound")
        basket["amount"] = 900
        at.decide("pay")
        await at.answer()
        assert paid in ([], [{"amount": 1}])  # a copy of ADK's own, or a refusal


@releases.tool_nodes
async def test_a_tool_that_asks_by_itself_in_a_node_gets_what_it_asked_for() -> None:
    given: list[Any] = []

    async def pay(tool_context: ToolContext, amount: int) -> Any:
        """Pays."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Sure?", payload={"days": 1})
            return {"status": "asked"}
        given.append(tool_context.tool_confirmation.payload)
        return {"paid": amount}

    paying, after = node(FunctionTool(pay)), list[Any]()

    def note(node_input: Any) -> None:
        after.append(node_input)

    flow = Workflow(name="flow", edges=[(START, details), (details, paying), (paying, note)])
    async with page(agent=flow) as at:
        asked = await at.say("Pay.")
        assert asked.of_type("data-adk-approval")[0]["data"]["hint"] == "Sure?"
        at.decide("pay")
        await at.answer()
        assert (given, after) == ([{"days": 1}], [PAID])


@releases.tool_nodes
async def test_a_tool_in_a_node_cannot_ask_twice() -> None:
    async def pay(tool_context: ToolContext, amount: int) -> Any:
        """Pays never."""
        tool_context.request_confirmation(hint="Sure?")
        return {"status": "asked"}

    flow = Workflow(name="flow", edges=[(START, details), (details, node(FunctionTool(pay)))])
    async with page(agent=flow) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert "cannot ask for approval a second time" in at.part("pay")["errorText"]
        await at.is_what_a_reload_shows()


@releases.tool_nodes
async def test_a_browsers_tool_and_a_long_running_one_are_answered_in_nodes() -> None:
    def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
        """Runs in the browser."""

    def book() -> None:
        """Books."""

    def nothing() -> dict[str, Any]:
        return {}

    after: list[Any] = []

    def note(node_input: Any) -> None:
        after.append(node_input)

    for tool, name in ((client_tool(where), "where"), (LongRunningFunctionTool(book), "book")):
        tool_node = node(tool)
        flow = Workflow(name="flow", edges=[(START, nothing), (nothing, tool_node), (tool_node, note)])
        async with page(agent=flow) as at:
            await at.say("Go.")
            assert at.states(name) == ["input-available"]
            at.output(name, {"latitude": 1})
            await at.answer()
            assert after.pop() == {"latitude": 1}
            await at.is_what_a_reload_shows()


@releases.node_confirmation
async def test_a_policy_asks_about_a_tool_s_node_and_waives_a_node_s_question() -> None:
    till, after = Till(), list[Any]()
    async with page(agent=flow_of("a node", till, after), approvals=ApprovalPolicy(decide=lambda _: Nobody)) as at:
        await at.say("Pay.")
        assert (till.paid, (await record_of(at)).decided_by) == ([5], "by policy")
    from adk_stream_protocol import Owner

    free = node(FunctionTool(till.pay))
    flow = Workflow(name="flow", edges=[(START, details), (details, free)])
    async with page(agent=flow, approvals=ApprovalPolicy(decide=lambda _: Owner)) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert till.paid == [5, 5]


@every_kind
async def test_a_new_message_refuses_the_node_s_call(kind: str) -> None:
    till, after = Till(), list[Any]()
    async with page(agent=flow_of(kind, till, after)) as at:
        await at.say("Pay.")
        first = await record_of(at)
        await at.chat.post(words_body("Pay again."))
        service = at.chat.bridge._service  # pyright: ignore[reportPrivateUsage]
        records = await read_whole(service._store, first.chat)  # pyright: ignore
        assert {record.state for record in records if record.call == first.call} == {"denied"}
        assert till.paid == []


@every_kind
async def test_a_deadline_ends_the_node_s_call(kind: str) -> None:
    till, after = Till(), list[Any]()
    store = MemoryStore(clock=lambda: asyncio.get_running_loop().time())
    async with page(agent=flow_of(kind, till, after), record=store) as at:
        await at.say("Pay.")
        await asyncio.sleep(700)
        await until(lambda: after)
        at.decide("pay")
        await at.answer()
        assert (till.paid, at.states("pay")) == ([], ["output-error"])


class Nothing(BaseModel):
    """Of a workflow that is told nothing."""


@pytest.mark.parametrize(
    "schema", [pytest.param(None, marks=releases.workflow_tools), pytest.param(Nothing, marks=releases.tool_nodes)]
)
async def test_a_workflow_that_runs_as_a_tool_asks_in_its_nodes(schema: Any) -> None:
    till = Till()
    paying = node(till.gated)
    edges: Any = [(START, details), (details, paying)]
    flow = Workflow(name="checkout", description="Pays.", edges=edges, input_schema=schema)
    async with page([call("checkout")], "Done.", tools=(flow,)) as at:
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested"]
        at.decide("pay")
        assert (await at.answer()).text == "Done."
        assert (till.paid, results_told(at.chat.model)) == ([5], [PAID])
        await at.is_what_a_reload_shows()


@releases.node_confirmation
async def test_a_node_that_is_an_agent_s_tool_asks() -> None:
    till = Till()
    paying = node(till.pay, require_confirmation=True)
    async with page([call("pay", amount=5)], "Done.", tools=(paying,)) as at:
        await at.say("Pay.")
        at.decide("pay", len(at.parts("pay")) - 1)
        assert (await at.answer()).text == "Done."
        assert till.paid == [5]


@releases.node_confirmation
def test_nodes_without_a_bridge_run_as_adk_runs_them() -> None:
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    ChatBridge(Workflow(name="flow", edges=[(START, details)]), user_id=user_of)
    paying = node(Till().pay, require_confirmation=True, parameter_binding="node_input")
    flow = Workflow(name="flow", edges=[(START, details), (details, paying)])
    runner = InMemoryRunner(app=App(name="flow", root_agent=flow, resumability_config=resumable()))

    async def run() -> list[str]:
        session = await runner.session_service.create_session(app_name="flow", user_id="ann")
        words = types.Content(role="user", parts=[types.Part(text="Pay.")])
        events = runner.run_async(user_id="ann", session_id=session.id, new_message=words)
        return [call.name or "" async for event in events for call in event.get_function_calls()]

    assert asyncio.run(run()) == ["adk_request_input"]
