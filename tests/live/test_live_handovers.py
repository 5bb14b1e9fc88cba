"""Tools that run beside the conversation, while the model pauses or hands over to another agent."""

import asyncio

import pytest
from google.adk.agents import LlmAgent
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


class Transfer:
    """Begins to pay, and hands over to another agent when it is told to."""

    def __init__(self, pay: FunctionTool, family: str) -> None:
        self.goes_on = asyncio.Event()
        self.model = ScriptedLiveModel(self._first, family=family)
        self.second = ScriptedLiveModel(self._second, family=family)
        other = LlmAgent(name="other", description="another one", model=self.second)
        self.agent = LlmAgent(name="helper", model=self.model, tools=[pay], sub_agents=[other])

    async def happens(self) -> None:
        self.goes_on.set()
        await asyncio.sleep(5)
        assert self.second.sessions

    async def _first(self, session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await self.goes_on.wait()
        await session.call("transfer_to_agent", agent_name="other")
        await until_closed(session)

    async def _second(self, session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.asks_for_reply:
                await session.answer("Here is the other one.")


@both_families
async def test_a_call_that_waits_outlives_a_transfer(family: str) -> None:
    till = Till()
    transfer = Transfer(beside(till.pay, require_confirmation=True), family)
    async with live_world(agent=transfer.agent, model=transfer.model) as world, world.socket() as at:
        await at.say("Pay.")
        await transfer.happens()
        assert await world.states() == ["pending"]
        at.decide("pay")
        await at.answer(0)
        await until(lambda: till.paid == [5])
        assert await world.states() == ["done"]


@both_families
@pytest.mark.parametrize("gated", [True, False], ids=["gated", "free"])
async def test_a_tool_that_has_begun_outlives_a_transfer(family: str, gated: bool) -> None:
    slow = Slow()
    transfer = Transfer(beside(slow.pay, require_confirmation=gated), family)
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
