"""The offline model in ADK's real `run_live`."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol.demo.offline_model import OfflineModel
from support.live_runs import LiveRun, live_run, stored_lines

PAY_ALICE = 'call process_payment {"amount": 30, "recipient": "Alice", "currency": "USD"}'
PAY_BOB = 'call process_payment {"amount": 40, "recipient": "Bob", "currency": "USD"}'
TWO_PAYMENTS = "Pay Alice 30 dollars and Bob 40 dollars"
PAID = "Paid 30 USD to Alice. The new balance is 970 USD. Paid 40 USD to Bob. The new balance is 930 USD."


def process_payment(amount: int, recipient: str, currency: str) -> dict[str, Any]:
    """Pays."""
    balance = {"Alice": 970, "Bob": 930}[recipient]
    return {"amount": amount, "recipient": recipient, "currency": currency, "balance": balance}


def get_weather(location: str) -> dict[str, Any]:
    """The weather."""
    return {"location": location, "condition": "sunny", "temperature_c": 20}


def get_location() -> None:
    """Where the user is, which his browser tells later."""


TOOLS = [process_payment, get_weather, LongRunningFunctionTool(get_location)]


def agent_on(**fields: Any) -> LlmAgent:
    model = OfflineModel(**{"story_word_delay": 0, "voice_piece_delay": 0, **fields})
    return LlmAgent(name="helper", model=model, tools=[*TOOLS])


def without_usage(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("usage")]


def wholes(lines: list[str]) -> list[str]:
    """Without the pieces that the wholes repeat."""
    return [line for line in without_usage(lines) if not line.startswith(("text ", "thought "))]


# -- writing ----------------------------------------------------------------------------------------------------------


async def test_text_comes_word_by_word_then_whole_with_its_usage() -> None:
    async with live_run(agent_on()) as run:
        run.write("Think about it")
        lines = await run.until("turn_complete")
        words = [line.removeprefix("text ") for line in lines if line.startswith("text ")]
        assert len(words) > 10
        (whole,) = [line.removeprefix("TEXT ") for line in lines if line.startswith("TEXT ")]
        assert "".join(words) == whole
        assert len([line for line in lines if line.startswith("THOUGHT The user wrote: Think about it")]) == 1
        assert lines[-3].startswith("usage ")
        assert await run.rest() == []


@pytest.mark.parametrize(
    "phrase",
    [
        "What is the weather in Tokyo?",
        "東京の天気は？",
        "Hello",
        "Think, then pay Bob 40 dollars",
        "tell me a long story",
    ],
)
@pytest.mark.parametrize("family", ["2.5", "3"])
async def test_answers_are_those_of_request_mode(phrase: str, family: str) -> None:
    agent, sessions = agent_on(live_family=family), InMemorySessionService()
    runner = Runner(app_name="app", agent=agent, session_service=sessions, auto_create_session=True)
    async for _ in runner.run_async(user_id="ann", session_id="chat", new_message=types.UserContent(phrase)):
        pass
    asked = _one_part_a_line(await stored_lines(sessions))
    live_sessions = InMemorySessionService()
    async with live_run(agent, sessions=live_sessions) as run:
        run.write(phrase)
        await run.until("TEXT")
        await run.until("turn_complete")
        await run.rest()
    told = _one_part_a_line(await stored_lines(live_sessions))
    assert [line for line in told if line != "turn_complete"] == asked


def _one_part_a_line(lines: list[str]) -> list[str]:
    parts = [part for line in lines for part in line.split(" + ")]
    return [part for part in parts if not part.startswith("usage")]


async def test_two_payments_are_made_one_after_the_other_as_by_gemini_2_5() -> None:
    async with live_run(agent_on()) as run:
        run.write(TWO_PAYMENTS)
        told: list[str] = []
        for _ in range(3):
            told += wholes(await run.until("turn_complete"))
        assert [line for line in told if not line.startswith("response")] == [
            PAY_ALICE,
            "turn_complete",
            PAY_BOB,
            "turn_complete",
            f"TEXT {PAID}",
            "turn_complete",
        ]
        assert await run.rest() == []


async def test_two_payments_are_made_in_one_message_as_by_gemini_3() -> None:
    async with live_run(agent_on(live_family="3")) as run:
        run.write(TWO_PAYMENTS)
        told = wholes(await run.until("turn_complete"))
        assert [line for line in told if not line.startswith("response")] == [
            f"{PAY_ALICE} + {PAY_BOB}",
            f"TEXT {PAID}",
            "turn_complete",
        ]
        assert await run.rest() == []


async def test_result_that_comes_after_other_words_is_still_told() -> None:
    async with live_run(agent_on()) as run:
        run.write("Where am I?")
        await run.until("turn_complete")
        (asked,) = run.events[1].get_function_calls()
        run.write("What is the weather in Tokyo?")
        await run.until("TEXT The weather in Tokyo is sunny")
        await run.until("turn_complete")
        respond(run, asked, {"latitude": 1, "longitude": 2})
        assert "TEXT You are at latitude 1 and longitude 2." in await run.until("turn_complete")
        assert await run.rest() == []


async def test_later_response_to_the_same_call_counts() -> None:
    async with live_run(agent_on()) as run:
        run.write("Where am I?")
        await run.until("turn_complete")
        (asked,) = run.events[1].get_function_calls()
        respond(run, asked, {"error": "This tool call requires confirmation."})
        await run.until("TEXT The request for your location is still waiting for your approval.")
        respond(run, asked, {"latitude": 1, "longitude": 2})
        await run.until("turn_complete")
        assert "TEXT You are at latitude 1 and longitude 2." in await run.until("turn_complete")
        assert await run.rest() == []


def respond(run: LiveRun, call: types.FunctionCall, response: dict[str, Any]) -> None:
    part = types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))
    run.queue.send_content(types.Content(role="user", parts=[part]))


async def test_response_to_an_unknown_call_is_passed_over() -> None:
    async with live_run(agent_on()) as run:
        respond(run, types.FunctionCall(id="unknown", name="get_location"), {})
        run.write("What is the weather in Tokyo?")
        assert wholes(await run.until("call")) == ['call get_weather {"location": "Tokyo"}']
        await run.until("TEXT The weather in Tokyo is sunny at 20 °C.")
        await run.until("turn_complete")
        assert await run.rest() == []


async def test_plan_goes_on_from_the_history_of_another_connection() -> None:
    """The first payment was made, and the line broke before the model could make the second."""
    sessions = InMemorySessionService()
    async with live_run(agent_on(), sessions=sessions) as run:
        run.write(TWO_PAYMENTS)
        await run.until("response")
    async with live_run(agent_on(), sessions=sessions) as run:
        assert wholes(await run.until("call"))[-1] == PAY_BOB
        assert f"TEXT {PAID}" in await run.until("TEXT")
        await run.until("turn_complete")
        assert await run.rest() == []


async def test_history_that_was_answered_is_not_answered_again() -> None:
    sessions = InMemorySessionService()
    async with live_run(agent_on(), sessions=sessions) as run:
        run.write("Hello")
        await run.until("turn_complete")
        await run.rest()
    async with live_run(agent_on(), sessions=sessions) as run:
        run.write("What is the weather in Tokyo?")
        assert wholes(await run.until("call")) == ['call get_weather {"location": "Tokyo"}']
        await run.until("TEXT")


async def test_new_words_interrupt_the_story() -> None:
    async with live_run(agent_on()) as run:
        run.write("tell me a long story")
        await run.until("text boat")
        run.write("What is the weather in Tokyo?")
        lines = await run.until("turn_complete")
        assert lines[-2].startswith("TEXT Once upon a time a small boat ")
        assert lines[-2].endswith(" + interrupted")
        assert len(lines) < 30
        assert 'call get_weather {"location": "Tokyo"}' in await run.until("turn_complete")
        await run.until("turn_complete")
        assert await run.rest() == []


# -- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leave", ["close", "cancel"])
async def test_nothing_is_left_of_a_session_that_ends_in_mid_speech(leave: str) -> None:
    async with live_run(agent_on(story_word_delay=1000)) as run:
        run.write("tell me a long story")
        await run.until("text Once")
        if leave == "close":
            await run.rest()
    while asyncio.all_tasks() != {asyncio.current_task()}:  # cancelled tasks need their last step
        await asyncio.sleep(0)


async def test_connection_ends_when_it_is_closed() -> None:
    async with OfflineModel().connect(LlmRequest()) as connection:
        await connection.close()
        assert [response async for response in connection.receive()] == []
