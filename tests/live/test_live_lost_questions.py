"""Every kind of question that a lost live session leaves behind: what can be answered later is, by request mode."""

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext

from adk_stream_protocol.testing import ScriptedLiveModel, ScriptedModel, call
from live.live_pages import (
    DENIED,
    D,
    O,
    X,
    approved,
    beside,
    both_families,
    live_world,
    segment,
    told_results,
)
from support.pages import Till

pytestmark = pytest.mark.virtual_time

decisions = pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])


async def asks_for_itself(amount: int, tool_context: ToolContext) -> dict[str, Any]:
    """Pays."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="Really?")
        return {"status": "asked"}
    return {"paid": amount}


KINDS: dict[str, Callable[[Any], FunctionTool]] = {
    "asks for itself": lambda _: FunctionTool(asks_for_itself),
    "beside the conversation": lambda pay: beside(pay, require_confirmation=True),
}


@both_families
@decisions
@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_question_outlives_its_socket(family: str, yes: bool, kind: str) -> None:
    tool = KINDS[kind](Till().pay)
    async with live_world([call(tool.name, amount=5)], "Done.", family=family, tools=(tool,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await world.run_ended()
        page = at.over_http()
        await page.is_what_a_reload_shows()
        page.decide(tool.name, approved=yes)
        assert (await page.answer()).types == segment(*(O if yes else D), *X)
        assert told_results(world.model) == [{"paid": 5} if yes else DENIED]
        await page.is_what_a_reload_shows()


@both_families
async def test_a_long_running_call_outlives_its_socket(family: str) -> None:
    def ask_boss() -> None:
        """Asks somebody who takes his time."""

    tools = (LongRunningFunctionTool(ask_boss),)
    async with live_world([call("ask_boss")], "You may.", family=family, tools=tools) as world:
        async with world.socket() as at:
            await at.say("Ask.")
        await world.run_ended()
        page = at.over_http()
        await page.is_what_a_reload_shows()
        page.output("ask_boss", {"allowed": True})
        assert (await page.answer()).types == segment(*X)
        assert told_results(world.model) == [{"allowed": True}]
        await page.is_what_a_reload_shows()


@both_families
@decisions
async def test_the_question_of_a_sub_agent_outlives_its_socket(family: str, yes: bool) -> None:
    till = Till()
    model = ScriptedLiveModel([[call("pay", amount=5)], "Done."], family=family)
    payer = LlmAgent(name="payer", description="Pays.", model=model, tools=[till.gated])
    transfer = ScriptedLiveModel([[call("transfer_to_agent", agent_name="payer")]], family=family)
    root = LlmAgent(name="root", model=transfer, sub_agents=[payer])
    async with live_world(agent=root, model=model) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await world.run_ended()
        page = at.over_http()
        await page.is_what_a_reload_shows()
        page.decide("pay", approved=yes)
        assert (await page.answer()).text == "Done."
        assert till.paid == ([5] if yes else [])
        assert told_results(model) == [{"paid": 5} if yes else DENIED]
        await page.is_what_a_reload_shows()


@both_families
@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # ADK's own use of it
async def test_a_question_inside_an_agent_that_is_a_tool_ends_with_its_session(family: str) -> None:
    """ADK cannot go on with such an agent: nobody may be asked for what can never run."""
    till = Till()
    inner = ScriptedModel([[call("pay", amount=5)]])
    cashier = AgentTool(LlmAgent(name="cashier", description="Pays.", model=inner, tools=[till.gated]))
    script = [call("cashier", request="Pay 5.")], "Hello."
    async with live_world(*script, family=family, tools=(cashier,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
        await world.run_ended()
        assert "pending" not in await world.states()
        assert (await world.chat.chats())[0]["waiting"] is False
        posted = {"id": at.messages[-1]["id"], "role": "assistant", "parts": [approved(at.part("pay"))]}
        late = await world.chat.post({"id": "c1", "messageId": posted["id"], "messages": [posted]})
        assert len(late.of_type("tool-output-denied")) == 1
        assert till.paid == []
        assert (await world.page().say("Hello?")).text == "Hello."
