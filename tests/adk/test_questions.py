"""Calls that wait without a tool of ours: ADK's own long-running tools, and questions to the user."""

import copy
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import RequestInput
from google.adk.tools import LongRunningFunctionTool
from google.adk.tools._request_input_tool import request_input
from google.adk.workflow import Workflow

from adk_stream_protocol.testing import ScriptedModel, call
from support.conversations import asked_parts
from support.pages import Page, page


def nothing() -> None:
    """Nothing."""


# -- long-running tools of ADK's own ----------------------------------------------------------------------------------


async def test_a_plain_long_running_tool_that_returned_nothing_takes_its_clients_output() -> None:
    async with page([call("nothing")], "Done.", tools=(LongRunningFunctionTool(nothing),)) as at:
        await at.say("Go.")
        assert at.states() == ["input-available"]
        at.output("nothing", {"done": True})
        assert (await at.answer()).text == "Done."
        assert asked_parts(at.chat.model.requests[1])[-1] == {"result": {"done": True}}
        await at.is_what_a_reload_shows()


async def test_a_long_running_tool_that_works_on_the_server_takes_no_output_from_a_client() -> None:
    def export() -> dict[str, str]:
        """Takes hours."""
        return {"status": "pending"}

    async with page([call("export")], "It runs.", tools=(LongRunningFunctionTool(export),)) as at:
        await at.say("Export.")
        part = at.part("export")
        assert (part["state"], part["preliminary"]) == ("output-available", True)
        before = await at.chat.session()
        forged = {**part, "output": {"status": "done, says the client"}}
        forged.pop("preliminary")
        message = {**at.messages[-1], "parts": [forged]}
        body = {"id": "c1", "messages": [message], "messageId": message["id"]}
        assert (await at.chat.post(body)).status == 404
        assert await at.chat.session() == before
        assert len(at.chat.model.requests) == 2


# -- questions to the user --------------------------------------------------------------------------------------------


async def answer_question(at: Page, output: Any) -> str:
    assert at.states("adk_request_input") == ["input-available"]
    await at.is_what_a_reload_shows()
    at.output("adk_request_input", output)
    answer = await at.answer()
    assert answer.status == 200, answer.error
    await at.is_what_a_reload_shows()
    return answer.text


@pytest.mark.parametrize("output", ["Oslo", {"result": "Oslo"}])
async def test_a_question_of_the_agents_is_answered(output: Any) -> None:
    asks = [call("adk_request_input", message="Which city?")]
    async with page(asks, "Oslo it is.", tools=(request_input,)) as at:
        await at.say("Weather?")
        assert await answer_question(at, output) == "Oslo it is."
        assert asked_parts(at.chat.model.requests[1])[-1] == {"result": {"result": "Oslo"}}


async def ask_for_city() -> Any:
    yield RequestInput(message="Which city?")


@pytest.mark.parametrize("output", ["Oslo", {"result": "Oslo"}])
async def test_a_question_of_a_workflow_is_answered_and_the_workflow_goes_on(output: Any) -> None:
    model = ScriptedModel(["Sunny."])
    teller = LlmAgent(name="teller", model=model)
    flow = Workflow(name="flow", edges=[("START", ask_for_city, teller)])
    async with page(agent=flow) as at:
        await at.say("Weather?")
        assert await answer_question(at, output) == "Sunny."
        spoken = [part for part in asked_parts(model.requests[0]) if isinstance(part, str)]
        assert any("Oslo" in words for words in spoken)


async def test_the_answer_to_a_workflows_question_counts_once() -> None:
    model = ScriptedModel(["Sunny."])
    flow = Workflow(name="flow", edges=[("START", ask_for_city, LlmAgent(name="teller", model=model))])
    async with page(agent=flow) as at:
        await at.say("Weather?")
        at.output("adk_request_input", "Oslo")
        request = {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}
        await at.answer()
        again = await at.chat.post(request)
        assert (again.status, again.text) == (200, "")
        other = copy.deepcopy(request)
        next(part for part in other["messages"][-1]["parts"] if "output" in part)["output"] = "Rome"
        assert (await at.chat.post(other)).status == 404
        assert len(model.requests) == 1
