"""More than one agent in a live session: agents that run as tools, and agents that hand the conversation over."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, ToolContext

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import ScriptedLiveModel, ScriptedModel, call
from chat.test_answers_agents import parts_without_steps
from chat.test_answers_beside_work import nothing_unfinished_beside
from live.live_pages import DENIED, A, D, I, O, X, both_families, live_page, segment, step, told_results
from support.conversations import asked_parts
from support.pages import Till

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own
]

PLACE = {"latitude": 1}

decisions = pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


# -- agents -----------------------------------------------------------------------------------------------------------


def inner_agent(*script: Any, tools: list[Any]) -> LlmAgent:
    return LlmAgent(name="cashier", description="Pays.", model=ScriptedModel(script), tools=tools)


@both_families
@decisions
async def test_a_gated_tool_inside_an_agent_that_is_a_tool_is_asked_about(family: str, yes: bool) -> None:
    till = Till()
    cashier = inner_agent([call("pay", amount=5)], "Inner done.", tools=[till.gated])
    script = [call("cashier", request="Pay 5.")], "Outer done."
    async with live_page(*script, family=family, tools=(AgentTool(cashier),)) as at:
        asked = await at.say("Pay.")
        assert len(asked.of_type("tool-approval-request")) == 1
        assert till.paid == []
        at.decide("pay", approved=yes)
        answer = await at.answer()
        assert answer.text == "Outer done."
        assert at.states("pay") == ["output-available" if yes else "output-denied"]
        assert at.states("cashier") == ["output-available"]
        inner = asked_parts(cashier.model.requests[-1])[-1]  # pyright: ignore
        assert inner == {"result": {"paid": 5} if yes else DENIED}
        assert told_results(at.model) == [{"result": "Inner done."}]
        assert till.paid == ([5] if yes else [])


@both_families
async def test_a_browsers_tool_inside_an_agent_that_is_a_tool_is_answered_by_the_browser(family: str) -> None:
    guide = inner_agent([call("where")], "Inner done.", tools=[client_tool(where)])
    script = [call("cashier", request="Where?")], "Outer done."
    async with live_page(*script, family=family, tools=(AgentTool(guide),)) as at:
        await at.say("Where?")
        assert at.states("where") == ["input-available"]
        at.output("where", PLACE)
        assert (await at.answer()).text == "Outer done."
        assert asked_parts(guide.model.requests[-1])[-1] == {"result": PLACE}  # pyright: ignore
        assert told_results(at.model) == [{"result": "Inner done."}]


@both_families
@decisions
async def test_an_agent_that_is_a_tool_may_itself_be_gated(family: str, yes: bool) -> None:
    class Gated(AgentTool):
        async def check_require_confirmation(self, args: Any, tool_context: ToolContext) -> bool:
            return True

    cashier = inner_agent("Inner done.", tools=[])
    script = [call("cashier", request="Pay 5.")], "Outer done."
    async with live_page(*script, family=family, tools=(Gated(cashier),)) as at:
        assert (await at.say("Pay.")).types == segment(*step(*I, *A))
        assert cashier.model.requests == []  # pyright: ignore
        at.decide("cashier", approved=yes)
        assert (await at.answer()).types == segment(*(O if yes else D), *X)
        assert told_results(at.model) == [{"result": "Inner done."} if yes else DENIED]


@both_families
@decisions
async def test_a_sub_agent_that_was_transferred_to_asks_and_goes_on(family: str, yes: bool) -> None:
    till = Till()
    model = ScriptedLiveModel([[call("pay", amount=5)], "Done.", "Hello."], family=family)
    payer = LlmAgent(name="payer", description="Pays.", model=model, tools=[till.gated])
    root = LlmAgent(
        name="root",
        model=ScriptedLiveModel([[call("transfer_to_agent", agent_name="payer")]], family=family),
        sub_agents=[payer],
    )
    async with live_page(agent=root, model=model) as at:
        asked = await at.say("Pay.")
        assert [chunk["data"] for chunk in asked.of_type("data-adk-agent")] == [{"agent": "payer"}]
        assert len(asked.of_type("tool-approval-request")) == 1
        at.decide("pay", approved=yes)
        answer = await at.answer()
        assert (answer.message_id, answer.text) == (asked.message_id, "Done.")
        assert told_results(model) == [{"paid": 5} if yes else DENIED]
        assert till.paid == ([5] if yes else [])
        assert (await at.say("Hello?")).text == "Hello."
        await at.is_what_a_reload_shows()


@both_families
@decisions
@pytest.mark.parametrize("model", [ScriptedModel, ScriptedLiveModel])
async def test_a_sub_agent_that_works_on_a_call_asks_and_goes_on(family: str, yes: bool, model: Any) -> None:
    till = Till()
    script = [[call("pay", amount=5)], "Inner done."]
    cashier = LlmAgent(name="cashier", description="Pays.", model=model(script), tools=[till.gated], mode="single_turn")
    outer = ScriptedLiveModel([[call("cashier", request="Pay 5.")], "Outer done."], family=family)
    root = LlmAgent(name="root", model=outer, sub_agents=[cashier])
    async with live_page(agent=root, model=outer) as at:
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested"]
        assert nothing_unfinished_beside(at, "pay")
        at.decide("pay", approved=yes)
        assert (await at.answer()).text == "Inner done.Outer done."
        assert at.states() == ["output-available", "output-available" if yes else "output-denied"]
        assert asked_parts(cashier.model.requests[-1])[-1] == {"result": {"paid": 5} if yes else DENIED}  # pyright: ignore
        assert told_results(outer) == [{"result": "Inner done."}]
        assert till.paid == ([5] if yes else [])
        assert parts_without_steps(await at.chat.messages()) == parts_without_steps(at.messages)


@both_families
async def test_a_task_that_adk_does_not_begin_in_a_live_session_is_refused_to_the_model(family: str) -> None:
    till = Till()
    cashier = LlmAgent(name="cashier", description="Pays.", model=ScriptedModel(), tools=[till.gated], mode="task")
    outer = ScriptedLiveModel([[call("cashier", request="Pay 5.")], "Write it."], family=family)
    async with live_page(agent=LlmAgent(name="root", model=outer, sub_agents=[cashier]), model=outer) as at:
        assert (await at.say("Pay.")).text == "Write it."
        [told] = told_results(outer)
        assert told["error"].startswith("This call was not run: an agent with a task cannot work in a live session.")
        assert at.states() == ["output-error"]
        await at.is_what_a_reload_shows()
