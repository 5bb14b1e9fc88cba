"""Answers reach the agent that has asked, and what stands around it goes on: sequences, loops, parallel agents,
transfers, workflows."""

from itertools import permutations
from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.workflow import Workflow

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import Reply, ScriptedModel, call
from support.conversations import every_store
from support.pages import Page, Till, page, results_told


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


GATED_WHERE = client_tool(where, approve=True)
PLACE = {"latitude": 1}


def agent(name: str, *script: Reply, tools: list[Any], **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(script), tools=tools, **fields)


def parts_without_steps(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parallel agents' partial events open steps, and no session keeps partial events."""
    return [part for message in messages for part in message["parts"] if part["type"] != "step-start"]


async def is_what_a_reload_shows_but_for_steps(at: Page) -> None:
    assert parts_without_steps(await at.chat.messages()) == parts_without_steps(at.messages)


@every_store
async def test_a_sequence_goes_on_with_its_next_agent(store: Any) -> None:
    till = Till()
    first = agent("first", [call("pay", amount=5)], "First.", tools=[till.gated])
    second = agent("second", [call("where")], "Second.", tools=[GATED_WHERE])
    async with page(agent=SequentialAgent(name="line", sub_agents=[first, second]), store=store) as at:
        await at.say("Go.")
        at.decide("pay")
        answer = await at.answer()
        assert answer.text == "First."
        assert at.states() == ["output-available", "approval-requested"]
        await at.is_what_a_reload_shows()
        at.decide("where")
        await at.answer()
        at.output("where", PLACE)
        assert (await at.answer()).text == "Second."
        await at.is_what_a_reload_shows()
        assert (results_told(first.model), results_told(second.model)[-1]) == ([{"paid": 5}], PLACE)
        assert till.paid == [5]


async def test_a_sequence_goes_on_after_a_denial() -> None:
    till = Till()
    first = agent("first", [call("pay", amount=5)], "Not paid.", tools=[till.gated])
    second = agent("second", "Second.", tools=[])
    async with page(agent=SequentialAgent(name="line", sub_agents=[first, second])) as at:
        await at.say("Go.")
        at.decide("pay", approved=False)
        assert (await at.answer()).text == "Not paid.Second."
        await at.is_what_a_reload_shows()


@every_store
async def test_a_loop_asks_in_every_round(store: Any) -> None:
    till = Till()
    payer = agent("payer", [call("pay", amount=5)], "Once.", [call("pay", amount=6)], "Twice.", tools=[till.gated])
    async with page(agent=LoopAgent(name="loop", max_iterations=2, sub_agents=[payer]), store=store) as at:
        await at.say("Go.")
        at.decide("pay", 0)
        assert (await at.answer()).text == "Once."
        await at.is_what_a_reload_shows()
        at.decide("pay", 1)
        assert (await at.answer()).text == "Twice."
        await at.is_what_a_reload_shows()
        assert till.paid == [5, 6]


@pytest.mark.parametrize("order", ["together", (0, 1), (1, 0)])
@every_store
async def test_parallel_agents_that_both_ask_are_answered_in_any_order(store: Any, order: Any) -> None:
    tills = [Till(), Till()]
    pair = [
        agent("left", [call("pay", amount=5)], "Left.", tools=[tills[0].gated]),
        agent("right", [call("pay", amount=6)], "Right.", tools=[tills[1].gated]),
    ]
    async with page(agent=ParallelAgent(name="both", sub_agents=pair), store=store) as at:
        await at.say("Go.")
        assert at.states() == ["approval-requested"] * 2
        await is_what_a_reload_shows_but_for_steps(at)
        by_amount = {part["input"]["amount"]: number for number, part in enumerate(at.parts("pay"))}
        decided = [by_amount[5], by_amount[6]] if order == "together" else [by_amount[5 + n] for n in order]
        if order == "together":
            for number in decided:
                at.decide("pay", number)
            assert sorted((await at.answer()).text.split(".")) == ["", "Left", "Right"]
        else:
            for number, name in zip(decided, [("Left.", "Right.")[n] for n in order], strict=True):
                at.decide("pay", number)
                assert (await at.answer()).text == name
                await is_what_a_reload_shows_but_for_steps(at)
        assert [till.paid for till in tills] == [[5], [6]]
        assert [results_told(one.model) for one in pair] == [[{"paid": 5}], [{"paid": 6}]]
        await is_what_a_reload_shows_but_for_steps(at)


@pytest.mark.parametrize("order", ["together", *permutations(["pay", "where"])], ids=str)
async def test_parallel_agents_may_ask_for_different_things(order: Any) -> None:
    till = Till()
    left = agent("left", [call("pay", amount=5)], "Left.", tools=[till.gated])
    right = agent("right", [call("where")], "Right.", tools=[client_tool(where)])
    async with page(agent=ParallelAgent(name="both", sub_agents=[left, right])) as at:
        await at.say("Go.")
        for name in ["pay", "where"] if order == "together" else order:
            if name == "pay":
                at.decide("pay", approved=False)
            else:
                at.output("where", PLACE)
            if order != "together":
                await at.answer()
        if order == "together":
            await at.answer()
        assert (len(results_told(left.model)), results_told(right.model)) == (1, [PLACE])
        assert at.states("pay") == ["output-denied"]
        assert at.states("where") == ["output-available"]
        assert till.paid == []
        await is_what_a_reload_shows_but_for_steps(at)


@every_store
async def test_an_agent_that_was_transferred_to_goes_on_after_its_answer(store: Any) -> None:
    till = Till()
    payer = agent("payer", [call("pay", amount=5)], "Paid.", "Hello.", tools=[till.gated], description="Pays.")
    root = agent("root", [call("transfer_to_agent", agent_name="payer")], tools=[], sub_agents=[payer])
    async with page(agent=root, store=store) as at:
        await at.say("Go.")
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        await at.is_what_a_reload_shows()
        assert (await at.say("hi")).text == "Hello."
        assert till.paid == [5]


@every_store
async def test_an_agent_in_a_workflow_goes_on_after_its_answer_and_so_does_the_workflow(store: Any) -> None:
    till = Till()
    payer = agent("payer", [call("pay", amount=5)], "Paid.", tools=[till.gated])
    teller = agent("teller", "Told.", tools=[])
    async with page(agent=Workflow(name="flow", edges=[("START", payer, teller)]), store=store) as at:
        await at.say("Go.")
        assert at.states() == ["approval-requested"]
        at.decide("pay")
        assert (await at.answer()).text == "Paid.Told."
        await at.is_what_a_reload_shows()
        assert till.paid == [5]
