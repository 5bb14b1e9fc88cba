"""Two agents that hand over to each other, and the tools that they pay and look with."""

import asyncio
from collections import Counter
from random import Random

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol.testing.live_session import Family
from faults.storm_model import Mind, StormModel
from live.live_pages import beside


class Bank:
    def __init__(self, random: Random) -> None:
        self.paid: Counter[str] = Counter()
        """How often each call has paid."""
        self._random = random

    def new_agent(self, mind: Mind, family: Family) -> LlmAgent:
        pay = FunctionTool(self.pay, require_confirmation=True)
        tools = [pay, self.look, beside(self.pay_beside, require_confirmation=True), beside(self.look_beside)]
        clerk = LlmAgent(name="clerk", model=StormModel(mind, "clerk", family), tools=[pay, self.look])
        return LlmAgent(name="helper", model=StormModel(mind, "helper", family), tools=tools, sub_agents=[clerk])

    async def pay(self, amount: int, tool_context: ToolContext) -> dict[str, int]:
        """Pays."""
        self.paid[tool_context.function_call_id or ""] += 1
        await asyncio.sleep(self._random.choice([0, 0, 5]))
        return {"paid": amount}

    async def pay_beside(self, tool_context: ToolContext) -> dict[str, int]:
        """Pays, beside the conversation."""
        return await self.pay(1, tool_context)

    async def look(self) -> dict[str, str]:
        """Looks at the account."""
        await asyncio.sleep(self._random.choice([0, 3]))
        return {"balance": "plenty"}

    async def look_beside(self) -> dict[str, str]:
        """Looks at the account, beside the conversation."""
        return await self.look()
