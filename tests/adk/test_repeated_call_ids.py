"""Some models number their calls anew in every answer, so that one run of ADK's has two calls of one id. What was said
about the first never counts for the second: it is asked for anew, or it comes to nothing. And some, as Gemini, give no
ids at all: they know results by their order."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import Answer, ScriptedModel
from support.pages import Page, Till, page, results_told


def numbered(name: str, /, **arguments: Any) -> list[types.Part]:
    return [types.Part(function_call=types.FunctionCall(id="0", name=name, args=arguments))]


def play(track: int) -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


async def goes_on(at: Page, answer: Answer) -> None:
    """The second call is asked for as the first one was, or has ended; and the page can go on."""
    state = at.states()[-1]
    assert state in ("approval-requested", "input-available", "output-error")
    if state == "approval-requested":
        assert at.parts()[1]["approval"]["id"] != at.parts()[0]["approval"]["id"]
        at.decide("play" if at.parts("play") else "pay", 1)
        answer = await at.answer()
    if at.states()[-1] == "input-available":
        at.output("play", {"plays": 2}, 1)
        answer = await at.answer()
    assert (answer.status, answer.text) == (200, "Done.")


async def test_a_second_payment_is_not_made_on_the_approval_of_the_first() -> None:
    till = Till()
    async with page(numbered("pay", amount=5), numbered("pay", amount=5), "Done.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        answer = await at.answer()
        assert till.paid == [5]
        await goes_on(at, answer)


async def test_a_second_call_is_not_given_to_the_browser_on_the_approval_of_the_first() -> None:
    tool = client_tool(play, approve=True)
    async with page(numbered("play", track=1), numbered("play", track=2), "Done.", tools=(tool,)) as at:
        await at.say("Play.")
        at.decide("play")
        at.output("play", {"plays": 1})
        answer = await at.answer()
        assert answer.of_type("tool-input-available") == []
        await goes_on(at, answer)


@pytest.mark.parametrize("track", [1, 2], ids=["with the same arguments", "with others"])
@pytest.mark.parametrize("kind", [client_tool, LongRunningFunctionTool])
async def test_a_second_call_of_the_browsers_has_an_output_of_its_own_or_none(kind: Any, track: int) -> None:
    tool = kind(play)
    async with page(numbered("play", track=1), numbered("play", track=track), "Done.", tools=(tool,)) as at:
        await at.say("Play.")
        at.output("play", {"plays": 1})
        await goes_on(at, await at.answer())


async def test_calls_of_one_run_have_ids_of_their_own_also_in_the_session() -> None:
    till = Till()
    async with page(numbered("pay", amount=5), numbered("pay", amount=6), "Done.", tools=(till.pay,)) as at:
        await at.say("Pay.")
        runner = at.chat.runner
        session = await runner.session_service.get_session(app_name=runner.app_name, user_id="ann", session_id="c1")
        assert session is not None
        made = [call.id for event in session.events for call in event.get_function_calls()]
        results = [part.id for event in session.events for part in event.get_function_responses()]
        assert len(set(made)) == 2
        assert made == results
        assert [part["output"] for part in at.parts("pay")] == [{"paid": 5}, {"paid": 6}]


@pytest.mark.parametrize("order", ["together", (0, 1), (1, 0)], ids=str)
async def test_outputs_reach_a_model_without_ids_in_the_order_of_its_calls(order: Any) -> None:
    calls = [types.Part(function_call=types.FunctionCall(name="play", args={"track": track})) for track in ("a", "b")]
    async with page(calls, "Done.", tools=(client_tool(play),)) as at:
        await at.say("Play.")
        for number in (0, 1) if order == "together" else order:
            at.output("play", {"plays": "ab"[number]}, number)
            if order != "together":
                await at.answer()
                await at.is_what_a_reload_shows()
        if order == "together":
            await at.answer()
        (asked,) = [content for content in at.chat.model.requests[-1].contents if content.parts[0].function_call]
        assert [part.function_call.id for part in asked.parts] == [None, None]
        assert results_told(at.chat.model) == [{"plays": "a"}, {"plays": "b"}]


def payments(*amounts: int) -> LlmResponse:
    """As an application's own rules make them, always with the same id."""
    calls = [types.FunctionCall(id="rule", name="pay", args={"amount": amount}) for amount in amounts]
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=made) for made in calls]))


def pays(callback_context: Any, llm_request: LlmRequest) -> LlmResponse | None:
    words = (llm_request.contents[-1].parts or [])[-1].text or ""
    return payments(*map(int, words.split()[1:])) if words.startswith("Pay") else None


def pays_instead(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
    words = ((llm_response.content and llm_response.content.parts) or [types.Part()])[0].text or ""
    return payments(*map(int, words.split()[1:])) if words.startswith("Pay") and not llm_response.partial else None


RULES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "before the model": ({"before_model_callback": pays}, ("Paid.",)),
    "after the model": ({"after_model_callback": pays_instead}, ("Pay 5", "Pay 6", "Paid.")),
}


@pytest.mark.parametrize("rule", RULES)
async def test_calls_of_a_callback_have_ids_of_their_own_too(rule: str) -> None:
    callbacks, script = RULES[rule]
    till = Till()
    agent = LlmAgent(name="helper", model=ScriptedModel(script), tools=[till.gated], **callbacks)
    async with page(agent=agent) as at:
        await at.say("Pay 5")
        await at.say("Pay 6")
        calls = [part for message in at.messages for part in message["parts"] if "toolCallId" in part]
        assert [part["toolCallId"] for part in calls] == ["rule", "rule-2"]
        at.decide("pay", 1)
        assert (await at.answer()).text == "Paid."
        assert (till.paid, results_told(agent.model)[-1]) == ([6], {"paid": 6})


async def test_two_calls_of_a_callback_at_once_are_two_calls() -> None:
    till = Till()
    script = ScriptedModel(["Paid."])
    agent = LlmAgent(name="helper", model=script, tools=[till.gated], before_model_callback=pays)
    async with page(agent=agent) as at:
        await at.say("Pay 5 6")
        assert at.states("pay") == ["approval-requested", "approval-requested"]
        at.decide("pay", 0)
        at.decide("pay", 1, approved=False)
        assert (await at.answer()).text == "Paid."
        assert (till.paid, at.states("pay")) == ([5], ["output-available", "output-denied"])
