"""Calls that wait while others go on, in live mode: they stand where request mode has them."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool

from adk_stream_protocol.testing import ScriptedModel, call
from chat.test_answers_beside_work import STATUS, export, nothing_unfinished_beside, time_off
from live.live_pages import both_families, live_page, told_results
from support.pages import Till

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own
]


@both_families
async def test_a_long_running_call_stands_before_the_call_of_its_answer_that_waits(family: str) -> None:
    till = Till()
    script = [call("pay", amount=5), call("export")], "Done."
    async with live_page(*script, family=family, tools=(till.gated, LongRunningFunctionTool(export))) as at:
        await at.say("Go.")
        assert nothing_unfinished_beside(at, "pay")
        assert (at.part("export")["output"], at.part("export")["preliminary"]) == (STATUS, True)
        at.decide("pay")
        assert (await at.answer()).text == "Done."
        assert till.paid == [5]
        await at.is_what_a_reload_shows()


@both_families
async def test_what_an_agent_asks_while_it_runs_as_a_tool_stands_after_its_call_whose_output_follows(
    family: str,
) -> None:
    till = Till()
    cashier: Any = LlmAgent(
        name="cashier", description="Pays.", model=ScriptedModel([[call("pay", amount=5)], "Paid."]), tools=[till.gated]
    )
    script = [call("cashier", request="Pay.")], "Done."
    async with live_page(*script, family=family, tools=(AgentTool(cashier),)) as at:
        await at.say("Go.")
        assert nothing_unfinished_beside(at, "pay")
        assert at.part("cashier")["preliminary"] is True
        at.decide("pay")
        assert (await at.answer()).text == "Done."
        assert at.part("cashier")["output"] == {"result": "Paid."}


@both_families
async def test_an_approval_without_a_payload_gives_the_tool_what_it_has_asked_with(family: str) -> None:
    script = [call("time_off", days=5)], "Have fun."
    async with live_page(*script, family=family, tools=(FunctionTool(time_off),)) as at:
        await at.say("Holidays.")
        at.decide("time_off")
        await at.answer()
        assert told_results(at.model) == [{"days": 2}]
