"""Workflow nodes that ask, in a live session: they wait as every call does there."""

from typing import Any

import pytest
from google.adk.workflow import START, Workflow, node

from adk_stream_protocol.testing import call
from live.live_pages import DENIED, both_families, live_page, told_results
from support.pages import Till

pytestmark = pytest.mark.virtual_time


def details() -> dict[str, Any]:
    return {"amount": 5}


def checkout(till: Till, kind: str) -> Workflow:
    paying = node(till.gated if kind == "tool" else till.pay, **({} if kind == "tool" else CONFIRMED))
    return Workflow(name="checkout", description="Pays.", edges=[(START, details), (details, paying)])


CONFIRMED: dict[str, Any] = {"require_confirmation": True, "parameter_binding": "node_input"}


@both_families
@pytest.mark.parametrize("kind", ["tool", "function"])
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_a_node_of_a_workflow_that_runs_as_a_tool_asks(family: str, kind: str, yes: bool) -> None:
    till = Till()
    script = [call("checkout")], "Done."
    async with live_page(*script, family=family, tools=(checkout(till, kind),)) as at:
        await at.say("Pay.")
        assert (at.states("pay"), till.paid) == (["approval-requested"], [])
        at.decide("pay", approved=yes)
        assert (await at.answer()).text == "Done."
        assert at.states("pay") == ["output-available" if yes else "output-denied"]
        assert told_results(at.model) == [{"paid": 5} if yes else DENIED]
        assert till.paid == ([5] if yes else [])
        await at.is_what_a_reload_shows()


@both_families
async def test_what_is_written_meanwhile_refuses_the_node_s_call(family: str) -> None:
    till = Till()
    script = [call("checkout")], "Hello."
    async with live_page(*script, family=family, tools=(checkout(till, "tool"),)) as at:
        await at.say("Pay.")
        await at.say("Hello?")
        assert (await at.world.states(), till.paid) == (["denied"], [])
