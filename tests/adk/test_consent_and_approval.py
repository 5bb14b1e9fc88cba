"""A tool that asks for consent and, by itself, for an approval, in either order: it runs once, after both."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, FunctionTool, ToolContext

from adk_stream_protocol.testing import ScriptedModel, call
from chat.test_completions import is_told
from chat.test_consents import TOKEN, Calendar, Provider, callback_of
from chat.test_consents import provider as provider  # a fixture
from live.live_pages import both_families, live_page, told_results
from support.pages import Page, page, results_told

pytestmark = [
    pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.:UserWarning"),  # ADK's own
    pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning"),  # ADK's own, of an AgentTool
]

READ = [call("read_calendar")]


class CarefulCalendar(Calendar):
    async def read_calendar(self, tool_context: ToolContext) -> dict[str, str]:
        """Asks for the approval first."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Read it?")
            return {"status": "waits for approval"}
        return await super().read_calendar(tool_context)


class LateCalendar(Calendar):
    async def read_calendar(self, tool_context: ToolContext) -> dict[str, str]:
        """Asks for the consent first."""
        credential = await asyncio.to_thread(tool_context.get_auth_response, self.config)
        if credential is not None and tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Read it?")
            return {"status": "waits for approval"}
        return await super().read_calendar(tool_context)


class HastyCalendar(Calendar):
    async def read_calendar(self, tool_context: ToolContext) -> dict[str, str]:
        """Asks for both at once."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Read it?")
        return await super().read_calendar(tool_context)


async def asks_on_reload(at: Page) -> Page:
    async with asyncio.timeout(30):
        while (tab := await at.second_tab()).states("read_calendar") != ["approval-requested"]:
            await asyncio.sleep(0.01)
    return tab


@both_families
async def test_in_a_live_session_consent_may_follow_the_approval(provider: Provider, family: str) -> None:
    calendar = CarefulCalendar(provider.config())
    async with live_page(READ, "You are free.", family=family, tools=(calendar.read_calendar,)) as at:
        await at.say("Am I free?")
        at.decide("read_calendar")
        asked = await at.answer()
        await at.world.bridge.complete_auth("ann", callback_of(asked))
        assert (await at.unasked_turn()).text == "You are free."
        assert (calendar.tokens, told_results(at.model)) == ([TOKEN], [{"events": "none"}])
        assert [found.state.value for found in await at.world.records() if found.tool == "read_calendar"] == ["done"]


class SilentCalendar(Calendar):
    async def read_calendar(self, tool_context: ToolContext) -> Any:
        """Says nothing when it has what it needs."""
        told = await super().read_calendar(tool_context)
        return told if "status" in told else None


@both_families
async def test_a_tool_that_returns_nothing_after_the_consent_is_told_so(provider: Provider, family: str) -> None:
    calendar = SilentCalendar(provider.config())
    async with live_page(READ, "Done.", family=family, tools=(calendar.read_calendar,)) as at:
        asked = await at.say("Am I free?")
        await at.world.bridge.complete_auth("ann", callback_of(asked))
        await at.unasked_turn()
        assert (calendar.tokens, told_results(at.model)) == ([TOKEN], [{"result": None}])


@both_families
@pytest.mark.parametrize("kind", [LateCalendar, HastyCalendar])
@pytest.mark.parametrize("yes", [True, False])
async def test_in_a_live_session_an_approval_may_follow_the_consent(
    provider: Provider, family: str, kind: type[Calendar], yes: bool
) -> None:
    calendar = kind(provider.config())
    async with live_page(READ, "Well.", family=family, tools=(calendar.read_calendar,)) as at:
        asked = await at.say("Am I free?")
        assert at.part("read_calendar")["state"] != "approval-requested"
        await at.world.bridge.complete_auth("ann", callback_of(asked))
        await at.unasked_turn()
        at.decide("read_calendar", approved=yes)
        assert (await at.answer()).text == "Well."
        (result,) = told_results(at.model)
        assert (calendar.tokens[-1:], "error" in result) == ([TOKEN], False) if yes else "denied" in result["error"]


@pytest.mark.parametrize("kind", [CarefulCalendar, LateCalendar, HastyCalendar])
async def test_inside_an_agent_that_runs_as_a_tool_both_are_asked(provider: Provider, kind: type[Calendar]) -> None:
    calendar = kind(provider.config())
    model = ScriptedModel([READ, "Inner: free."])
    clerk = LlmAgent(name="clerk", description="Looks.", model=model, tools=[FunctionTool(calendar.read_calendar)])
    async with page([call("clerk", request="Look.")], "You are free.", tools=(AgentTool(clerk),)) as at:
        asked = await at.say("Am I free?")
        if kind is CarefulCalendar:
            at.decide("read_calendar")
            asked = await at.answer()
            await at.chat.bridge.complete_auth("ann", callback_of(asked))
        else:
            await at.chat.bridge.complete_auth("ann", callback_of(asked))
            tab = await asks_on_reload(at)
            part = tab.part("read_calendar")
            part |= {"state": "approval-responded", "approval": {**part["approval"], "approved": True}}
            answer = {
                "id": "c1",
                "trigger": "submit-message",
                "messageId": tab.messages[-1]["id"],
                "messages": tab.messages,
            }
            assert (await at.chat.post(answer)).status == 200
        await is_told(at, "You are free.")
        assert calendar.tokens[-1:] == [TOKEN]
        assert results_told(model) == [{"events": "none"}]
        assert results_told(at.chat.model) == [{"result": "Inner: free."}]
