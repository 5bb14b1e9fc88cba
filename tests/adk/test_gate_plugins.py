"""The gate among other plugins and the callbacks of agents: they see approved calls, and cannot let others through."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins import BasePlugin
from google.adk.tools import BaseTool, LongRunningFunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import client_tool
from adk_stream_protocol.adk.runner import resumable
from adk_stream_protocol.testing import ScriptedModel, call
from support.pages import Till, page, results_told


def paying() -> list[types.Part]:
    return [call("pay", amount=5)]


class Rewriting(BasePlugin):
    """Changes what tools return."""

    async def after_tool_callback(self, *, result: Any, **_: Any) -> Any:
        return {**result, "seen_by": "plugin"}


class Answering(BasePlugin):
    """Answers in the place of every tool."""

    async def before_tool_callback(self, **_: Any) -> dict[str, Any]:
        return {"answered_by": "plugin"}


class Adjusting(BasePlugin):
    """Changes arguments on their way to the tool."""

    async def before_tool_callback(self, *, tool_args: dict[str, Any], **_: Any) -> None:
        tool_args["amount"] += 1


def app_with(*plugins: BasePlugin, till: Till, **fields: Any) -> App:
    helper = LlmAgent(name="helper", model=ScriptedModel([paying(), "Paid."]), tools=[till.gated], **fields)
    return App(name="shop", root_agent=helper, plugins=list(plugins), resumability_config=resumable())


async def test_a_plugin_may_change_the_result_of_an_approved_call() -> None:
    till = Till()
    async with page(agent=app_with(Rewriting("mine"), till=till)) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert till.paid == [5]
        assert at.part("pay")["output"] == {"paid": 5, "seen_by": "plugin"}


async def test_a_plugin_may_answer_instead_and_then_nobody_is_asked() -> None:
    till = Till()
    async with page(agent=app_with(Answering("mine"), till=till)) as at:
        await at.say("Pay.")
        assert at.part("pay")["output"] == {"answered_by": "plugin"}
        assert till.paid == []


async def test_a_plugin_cannot_answer_a_call_that_was_denied() -> None:
    till, plugin = Till(), Answering("mine")
    app = app_with(plugin, till=till)
    answers = plugin.before_tool_callback
    plugin.before_tool_callback = BasePlugin("other").before_tool_callback
    async with page(agent=app) as at:
        await at.say("Pay.")
        plugin.before_tool_callback = answers
        at.decide("pay", approved=False)
        await at.answer()
        assert at.states() == ["output-denied"]
        assert results_told(at.chat.model)[-1] == {"error": "This call was not run: the user denied it."}


def adjust(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
    args["amount"] += 1


def adjusting_app(by: str, *tools: Any) -> App:
    model = ScriptedModel([paying(), "Paid."])
    plugins = [Adjusting("mine")] if by == "plugin" else []
    helper = LlmAgent(
        name="helper", model=model, tools=[*tools], before_tool_callback=adjust if by == "callback" else None
    )
    return App(name="shop", root_agent=helper, plugins=plugins, resumability_config=resumable())


@pytest.mark.parametrize("by", ["plugin", "callback"])
async def test_arguments_that_are_changed_on_their_way_to_the_tool_do_not_break_its_approval(by: str) -> None:
    """ADK's documented way to correct arguments. The person sees, and approves, what the model has called."""
    till = Till()
    async with page(agent=adjusting_app(by, till.gated)) as at:
        await at.say("Pay.")
        assert at.part("pay")["input"] == {"amount": 5}
        at.decide("pay")
        answer = await at.answer()
        assert answer.status == 200, answer.error
        assert till.paid == [6]


@pytest.mark.parametrize("by", ["plugin", "callback"])
@pytest.mark.parametrize("kind", ["client tool", "plain long-running tool"])
async def test_arguments_that_are_changed_on_their_way_do_not_break_the_answer_of_a_browser(by: str, kind: str) -> None:
    def pay(amount: int) -> None:
        """Pays."""

    tool = client_tool(pay) if kind == "client tool" else LongRunningFunctionTool(pay)
    async with page(agent=adjusting_app(by, tool)) as at:
        await at.say("Pay.")
        assert at.part("pay")["input"] == {"amount": 5}
        at.output("pay", {"paid": 5})
        answer = await at.answer()
        assert answer.status == 200, answer.error
        assert results_told(at.chat.model) == [{"paid": 5}]


async def test_the_callbacks_of_an_agent_see_the_approved_call_once() -> None:
    till, seen = Till(), list[str]()

    def before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        seen.append("asking" if tool_context.tool_confirmation is None else "approved")

    def after(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any) -> Any:
        return {"receipt": tool_response["paid"]} if "paid" in tool_response else None

    app = app_with(till=till, before_tool_callback=before, after_tool_callback=after)
    async with page(agent=app) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert seen == ["asking", "approved"]
        assert at.part("pay")["output"] == {"receipt": 5}
