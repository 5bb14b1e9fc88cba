"""An agent that runs as a tool is ended after it has paid: its outer model hears of the payment all the same."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool

from adk_stream_protocol.adk import versions
from adk_stream_protocol.testing import ScriptedModel, call
from support import releases
from support.conversations import asked_parts
from support.pages import Page, Till
from support.workers import Workers, workers

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own
]

STOPPED = "The call was stopped before it had a result."
PAID = {"name": "pay", "args": {"amount": 5}, "response": {"paid": 5}}


@asynccontextmanager
async def after_the_payment() -> AsyncGenerator[tuple[Workers, Page, "asyncio.Task[Any]"]]:
    """The inner agent has paid, and is busy with something else."""
    till, paid = Till(), asyncio.Event()

    async def linger() -> dict[str, Any]:
        """Takes its time."""
        paid.set()
        await asyncio.sleep(3600)
        return {}

    script = [call("pay", amount=5)], [call("linger")], "Inner done."
    model = ScriptedModel(script)
    cashier = LlmAgent(name="cashier", description="Pays.", model=model, tools=[till.gated, linger])
    outer = [call("cashier", request="Pay 5.")], "Next.", "And next."
    async with workers(*outer, tools=(AgentTool(cashier),)) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        reading = asyncio.create_task(at.answer())
        await paid.wait()
        yield staff, at, reading
        assert till.paid == [5]


def told(staff: Workers) -> list[Any]:
    """Of calls and results, as the outer model was asked last."""
    return [part for part in asked_parts(staff.model.requests[-1]) if isinstance(part, dict)]


async def test_after_a_stop() -> None:
    async with after_the_payment() as (staff, at, reading):
        await at.chat.request("POST", "/stop")
        await reading
        assert at.states("pay") == ["output-available"]
        await at.say("And?")
        why = "Invocation was aborted by client." if versions.HAS_ABORT_SIGNAL else STOPPED  # ADK's, or ours
        assert told(staff) == [{"call": "cashier"}, {"result": {"error": why, "calls": [PAID]}}]


@releases.stopped_agents_shown
async def test_a_stop_is_shown_at_once() -> None:
    async with after_the_payment() as (_, at, reading):
        await at.chat.request("POST", "/stop")
        await reading
        assert at.states() == ["output-error", "output-available"]
        await at.say("And?")
        await at.is_what_a_reload_shows()


async def test_after_a_shutdown_once() -> None:
    async with after_the_payment() as (staff, at, reading):
        await at.chat.bridge.aclose()
        await reading
        next_page = staff.page()
        for words in ("And?", "And then?"):
            await next_page.chat.say(words)
            assert told(staff) == [{"call": "cashier"}, {"result": {"error": STOPPED, "calls": [PAID]}}]
        shown = [part for message in await next_page.chat.messages() for part in message["parts"]]
        (part,) = [part for part in shown if part["type"] == "tool-cashier"]
        assert (part["state"], part["output"]) == ("output-available", {"error": STOPPED, "calls": [PAID]})
