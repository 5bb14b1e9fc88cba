"""Tools that run beside the conversation, while the model pauses or hands over to another agent."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.tools import FunctionTool

from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from live.live_pages import beside, both_families, live_page, live_world, until, until_closed
from support.pages import Till

pytestmark = pytest.mark.virtual_time


@both_families
async def test_a_pause_in_mid_text_while_a_tool_waits_begins_a_new_part(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await session.say("One ")
        await asyncio.sleep(3)
        await session.say("two.")
        await session.turn_complete()
        await until_closed(session)

    tool = beside(Till().pay, require_confirmation=True)
    async with live_page(model=ScriptedLiveModel(server, family=family), tools=(tool,)) as at:
        await at.say("Pay.")  # the page's judge reads each segment by the grammar
        rest = await at.unasked_turn()
        assert rest.text.endswith("two.")
        assert at.states("pay") == ["approval-requested"]


class Slow:
    def __init__(self) -> None:
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()
        self.paid: list[int] = []

    async def pay(self, amount: int) -> dict[str, int]:
        """Pays, some time."""
        self.begun.set()
        await self.goes_on.wait()
        self.paid.append(amount)
        return {"paid": amount}


class HandOver:
    """Begins to pay, and ends the run of its agent when it is told to: each time, ADK cancels the tools beside it."""

    def __init__(self, pay: FunctionTool, how: str, family: str) -> None:
        self.goes_on = asyncio.Event()
        self._how = how
        self.model = ScriptedLiveModel(self._first, family=family)
        self._second_model = ScriptedLiveModel(self._second, family=family)
        other = LlmAgent(name="other", description="another one", model=self._second_model)
        if how == "task_completed":
            first = LlmAgent(name="first", model=self.model, tools=[pay])
            self.agent: Any = SequentialAgent(name="helper", sub_agents=[first, other])
        else:
            self.agent = LlmAgent(name="helper", model=self.model, tools=[pay], sub_agents=[other])

    async def happens(self) -> None:
        self.goes_on.set()
        await asyncio.sleep(5)
        assert bool(self._second_model.sessions) == (self._how != "the end of the run")

    async def _first(self, session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await self.goes_on.wait()
        if self._how == "transfer":
            await session.call("transfer_to_agent", agent_name="other")
        elif self._how == "task_completed":
            await session.call("task_completed")
        else:
            session.end()
        await until_closed(session)

    async def _second(self, session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.asks_for_reply:
                await session.answer("Here is the other one.")


hand_overs = pytest.mark.parametrize("how", ["transfer", "task_completed", "the end of the run"])


@both_families
@hand_overs
async def test_a_call_that_waits_outlives_the_run_of_its_agent(family: str, how: str) -> None:
    till = Till()
    transfer = HandOver(beside(till.pay, require_confirmation=True), how, family)
    async with live_world(agent=transfer.agent, model=transfer.model) as world, world.socket() as at:
        await at.say("Pay.")
        await transfer.happens()
        assert await world.states() == ["pending"]
        at.decide("pay")
        await at.answer(0)
        await until(lambda: till.paid == [5])
        assert await world.states() == ["done"]


@both_families
@hand_overs
@pytest.mark.parametrize("gated", [True, False], ids=["gated", "free"])
async def test_a_tool_that_has_begun_outlives_the_run_of_its_agent(family: str, how: str, gated: bool) -> None:
    slow = Slow()
    transfer = HandOver(beside(slow.pay, require_confirmation=gated), how, family)
    async with live_world(agent=transfer.agent, model=transfer.model) as world, world.socket() as at:
        asked = asyncio.create_task(at.say("Pay."))
        if gated:
            await asked
            at.decide("pay")
            asked = asyncio.create_task(at.answer(0))
        await slow.begun.wait()
        await transfer.happens()
        slow.goes_on.set()
        await until(lambda: slow.paid == [5])
        await asyncio.sleep(2)
        asked.cancel()
        assert await world.states() == (["done"] if gated else [])
        shown = await world.chat.messages()
        parts = [part for message in shown for part in message["parts"] if part["type"] == "tool-pay"]
        assert [part["state"] for part in parts] == ["output-available"]
        assert parts[0]["output"] == {"paid": 5}
