"""Whose calls the gate takes them for: those of agents that run as tools in a live session, or outlive it, and those of
other chats."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, LongRunningFunctionTool, ToolContext

from adk_stream_protocol.testing import ScriptedModel, call
from live.live_pages import both_families, live_page, live_world, told_results
from support.conversations import asked_parts
from support.pages import Page, Till

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own
]

NO_CLIENT = {"error": "This call was not run: there is no client here that could answer it."}


class GatedAgent(AgentTool):
    async def check_require_confirmation(self, args: Any, tool_context: ToolContext) -> bool:
        return True


def agent(name: str, *script: Any, tools: list[Any]) -> LlmAgent:
    return LlmAgent(name=name, description="Works.", model=ScriptedModel(script), tools=tools)


@both_families
async def test_a_gated_agent_is_asked_about_and_then_asks_for_its_own_call(family: str) -> None:
    till = Till()
    cashier = agent("cashier", [call("pay", amount=5)], "Inner done.", tools=[till.gated])
    script = [call("cashier", request="Pay 5.")], "Outer done."
    async with live_page(*script, family=family, tools=(GatedAgent(cashier),)) as at:
        await at.say("Pay.")
        at.decide("cashier")
        await at.answer()
        assert at.states("pay") == ["approval-requested"]
        assert till.paid == []
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
        assert at.states() == ["output-available"] * 2
        assert told_results(at.model) == [{"result": "Inner done."}]
        assert till.paid == [5]


async def test_a_live_session_s_tool_may_ask_in_another_chat() -> None:
    till = Till()
    elsewhere: list[Page] = []

    async def delegate() -> dict[str, Any]:
        """Has somebody else pay."""
        other = Page(at.chat.of(chat_id="c2"))
        elsewhere.append(other)
        await other.say("Pay.")
        return {"asked": other.states()}

    script = [call("delegate")], [call("pay", amount=5)], "Asked.", "Paid."
    async with live_page(*script, tools=(delegate, till.gated)) as at:
        answer = await at.say("Have it paid.")
        assert answer.text == "Asked."
        assert told_results(at.model) == [{"asked": ["approval-requested"]}]
        assert await at.world.states() == []
        elsewhere[0].decide("pay")
        assert (await elsewhere[0].answer()).text == "Paid."
        assert till.paid == [5]


async def test_an_agent_that_outlives_its_live_session_can_ask_nobody() -> None:
    till, go_on = Till(), asyncio.Event()
    left: list[asyncio.Task[Any]] = []
    clerk = agent("clerk", [call("pay", amount=5)], "Not paid.", tools=[till.gated])

    async def later(tool_context: ToolContext) -> dict[str, Any]:
        """Has somebody pay, some time."""

        async def work() -> Any:
            await go_on.wait()
            return await AgentTool(clerk).run_async(args={"request": "Pay 5."}, tool_context=tool_context)

        left.append(asyncio.create_task(work()))
        return {"status": "pending"}

    async with live_world([call("later")], "It runs.", tools=(later,)) as world:
        async with world.socket() as at:
            await at.say("Pay later.")
        await asyncio.sleep(100)
        assert not world.is_live
        go_on.set()
        assert await left[0] == "Not paid."
        assert asked_parts(clerk.model.requests[-1])[-1] == {"result": NO_CLIENT}  # pyright: ignore
        assert (till.paid, await world.states()) == ([], [])


async def test_what_an_agent_has_done_before_its_session_was_stopped_is_told_with_the_next_words() -> None:
    till, paid = Till(), asyncio.Event()

    async def linger() -> dict[str, Any]:
        """Takes its time."""
        paid.set()
        await asyncio.sleep(3600)
        return {}

    script = [call("pay", amount=5)], [call("linger")], "Inner done."
    cashier = agent("cashier", *script, tools=[till.gated, linger])
    outer = [call("cashier", request="Pay 5.")], "Next."
    async with live_page(*outer, tools=(AgentTool(cashier),)) as at:
        await at.say("Pay.")
        at.decide("pay")
        answer = asyncio.create_task(at.answer())
        await paid.wait()
        await at.chat.request("POST", "/stop")
        await answer
        await at.over_http().say("And?")
        session = await at.chat.session()
        assert session is not None
        (told,) = [response.response for event in session.events for response in event.get_function_responses()]
        done = {"name": "pay", "args": {"amount": 5}, "response": {"paid": 5}}
        assert told == {"error": "The call was stopped before it had a result.", "calls": [done]}


@both_families
async def test_an_agent_inside_an_agent_asks_at_every_level(family: str) -> None:
    till = Till()
    clerk = agent("clerk", [call("pay", amount=5)], "Clerk done.", tools=[till.gated])
    cashier = agent("cashier", [call("clerk", request="Pay 5.")], "Cashier done.", tools=[GatedAgent(clerk)])
    script = [call("cashier", request="Pay 5.")], "Done."
    async with live_page(*script, family=family, tools=(GatedAgent(cashier),)) as at:
        told = [await at.say("Pay.")]
        for name in ("cashier", "clerk", "pay"):
            assert at.states(name) == ["approval-requested"]
            assert till.paid == []
            at.decide(name)
            told.append(await at.answer())
        assert told[-1].text == "Done."
        assert at.states() == ["output-available"] * 3
        assert told_results(at.model) == [{"result": "Cashier done."}]
        assert till.paid == [5]


@both_families
async def test_two_calls_of_an_inner_agent_are_decided_one_by_one(family: str) -> None:
    till = Till()
    cashier = agent("cashier", [call("pay", amount=5), call("pay", amount=6)], "Cashier done.", tools=[till.gated])
    script = [call("cashier", request="Pay.")], "Done."
    async with live_page(*script, family=family, tools=(GatedAgent(cashier),)) as at:
        await at.say("Pay.")
        at.decide("cashier")
        await at.answer()
        await at.unasked_turn()
        for place in (0, 1):
            at.decide("pay", place)
            await at.answer()
        assert till.paid == [5, 6]
        assert told_results(at.model) == [{"result": "Cashier done."}]


@both_families
async def test_what_waits_in_request_mode_is_answered_over_a_socket(family: str) -> None:
    till = Till()
    cashier = agent("cashier", [call("pay", amount=5)], "Inner done.", tools=[till.gated])
    script = [call("cashier", request="Pay 5.")], "Outer done."
    async with live_world(*script, family=family, tools=(AgentTool(cashier),)) as world:
        page = world.page()
        await page.say("Pay.")
        async with world.socket() as at:
            at.take_over(page)
            at.decide("pay")
            assert (await at.answer()).text == "Outer done."
            assert till.paid == [5]
            await at.is_what_a_reload_shows()


@both_families
async def test_what_is_said_in_a_live_session_refuses_what_waits_in_request_mode(family: str) -> None:
    till = Till()
    cashier = agent("cashier", [call("pay", amount=5)], "Inner done.", tools=[till.gated])
    script = [call("cashier", request="Pay 5.")], "Hello."
    async with live_world(*script, family=family, tools=(AgentTool(cashier),)) as world:
        await world.page().say("Pay.")
        async with world.socket() as at:
            assert (await at.say("Hello?")).text == "Hello."
            (record,) = await world.records()
            assert (record.state, record.reason) == ("denied", "superseded: the user wrote something else instead")
            assert till.paid == []


@both_families
async def test_a_long_running_call_of_an_inner_agent_waits_for_its_client(family: str) -> None:
    def book() -> None:
        """Books, some time."""

    clerk = agent("clerk", [call("book")], "Inner done.", tools=[LongRunningFunctionTool(book)])
    script = [call("clerk", request="Book.")], "Outer done."
    async with live_page(*script, family=family, tools=(AgentTool(clerk),)) as at:
        await at.say("Book.")
        assert at.states("book") == ["input-available"]
        at.output("book", {"seat": 7})
        assert (await at.answer()).text == "Outer done."
        assert asked_parts(clerk.model.requests[-1])[-1] == {"result": {"seat": 7}}  # pyright: ignore
        await at.is_what_a_reload_shows()


@both_families
async def test_the_history_keeps_what_an_inner_agent_asked_after_the_session_is_over(family: str) -> None:
    till = Till()
    cashier = agent("cashier", [call("pay", amount=5)], "Inner done.", tools=[till.gated])
    script = [call("cashier", request="Pay 5.")], "Outer done."
    async with live_world(*script, family=family, tools=(AgentTool(cashier),)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
            at.decide("pay")
            await at.answer()
            await at.is_what_a_reload_shows()
        await world.run_ended()
        await at.is_what_a_reload_shows()
