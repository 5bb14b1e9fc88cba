"""A bank whose payments take a while, in request mode and in live mode."""

import asyncio
import json
import re
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol.testing import ScriptedLiveModel, call
from support.tool_log import ToolLog

agent: LlmAgent | None = None
"""For commands that take an agent by its name: set before they are called."""


def build_agent(log: ToolLog, payment_s: float) -> LlmAgent:
    """`payment_s`: how long a payment takes, for each dollar."""

    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Send money."""
        with log.running("pay", tool_context, amount=amount):
            await asyncio.sleep(payment_s * amount)
            return {"paid": amount}

    model = ScriptedLiveModel([_reply] * 10_000)
    return LlmAgent(name="bank", model=model, tools=[FunctionTool(pay, require_confirmation=True)])


def _reply(request: LlmRequest) -> Any:
    """It pays as much as it is told to, and repeats what it was told of payments."""
    said = request.contents[-1].parts or []
    told = [part.function_response.response for part in said if part.function_response]
    amount = re.search(r"\d+", said[-1].text or "") if said and not told else None
    return [call("pay", amount=int(amount[0]))] if amount else f"I was told {json.dumps(told)}"
