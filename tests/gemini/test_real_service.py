"""The demo on Google's own service: `make test-gemini`, with a key. Wherever a model may choose, so may the test."""

import asyncio
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.testing import Answer, ChatClient
from protocol.segment_checker import check_segment
from support.apps import app_of, user_of
from support.live_client import live_socket

pytestmark = pytest.mark.skipif(
    isinstance(build_agent().model, OfflineModel),
    reason="no Gemini: set GOOGLE_API_KEY or GEMINI_API_KEY, or GOOGLE_GENAI_USE_VERTEXAI=true and its project",
)


@pytest.fixture(autouse=True)
def _only_when_asked_for(pytestconfig: pytest.Config) -> None:
    """A key in the environment is no wish to spend money: these tests have to be named on the command line."""
    named = [pytestconfig.invocation_params.dir / argument.partition("::")[0] for argument in pytestconfig.args]
    here = Path(__file__).resolve()
    if not any(path.resolve() in (here, here.parent) for path in named):
        pytest.skip("costs money: run `make test-gemini`")


def ask(question: str, agent: LlmAgent | None = None) -> Answer:
    async def turn() -> Answer:
        bridge = ChatBridge(agent or build_agent(), user_id=user_of)
        try:
            return await ChatClient(app_of(bridge)).send(question)
        finally:
            await bridge.aclose()

    answer = asyncio.run(turn())
    assert answer.status == 200
    assert [chunk["errorText"] for chunk in answer.of_type("error")] == []
    check_segment([chunk for chunk in answer.chunks if not chunk["type"].startswith("data-")], 6)
    return answer


def test_a_plain_question_is_answered_in_text_with_its_usage() -> None:
    answer = ask("What is the capital of France? Answer with the name only.")
    assert "Paris" in answer.text
    assert answer.chunks[-1]["finishReason"] == "stop"
    metadata = answer.chunks[-1]["messageMetadata"]
    assert metadata["modelVersion"].startswith("gemini")
    assert metadata["usage"]["inputTokens"] > 0
    assert metadata["usage"]["outputTokens"] > 0


def test_the_weather_is_asked_of_the_tool_and_told() -> None:
    answer = ask("What is the weather in Tokyo?")
    (called,) = answer.of_type("tool-input-available")
    assert called["toolName"] == "get_weather"
    assert "Tokyo" in called["input"]["location"]
    (result,) = answer.of_type("tool-output-available")
    assert result["toolCallId"] == called["toolCallId"]
    assert result["output"]["location"] == called["input"]["location"]
    # A model may take the result for the answer and say nothing more.
    if answer.text:
        assert str(result["output"]["temperature_c"]) in answer.text
        assert answer.chunks[-1]["finishReason"] == "stop"
    else:
        assert answer.chunks[-1]["finishReason"] in ("stop", "other")


def test_thoughts_come_as_reasoning_before_the_answer() -> None:
    thoughts_wanted = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
    agent = build_agent().clone(update={"generate_content_config": thoughts_wanted})
    answer = ask("Think step by step: how many prime numbers are there between 30 and 60?", agent)
    assert "7" in answer.text or "seven" in answer.text.lower()
    kinds = answer.types
    assert "reasoning-start" in kinds
    assert kinds.index("reasoning-start") < kinds.index("text-start")
    assert answer.chunks[-1]["messageMetadata"]["usage"]["reasoningTokens"] > 0


def test_a_payment_ends_the_turn_with_a_request_for_approval() -> None:
    answer = ask("Send 50 dollars to Hanako")
    (called,) = answer.of_type("tool-input-available")
    assert called["toolName"] == "process_payment"
    assert (called["input"]["amount"], called["input"]["recipient"]) == (50, "Hanako")
    (request,) = answer.of_type("tool-approval-request")
    assert request["toolCallId"] == called["toolCallId"]
    assert answer.of_type("tool-output-available") == []
    assert answer.chunks[-1]["finishReason"] == "tool-calls"


def test_a_live_conversation_goes_on_while_a_payment_waits() -> None:
    async def talk() -> tuple[Answer, Answer, Answer]:
        agent = build_agent().clone(update={"model": "gemini-2.5-flash-native-audio-latest"})
        bridge = ChatBridge(agent, user_id=user_of, live_while_waiting="continue")
        try:
            async with live_socket(app_of(bridge)) as client:
                asked = await client.say("Send 50 dollars to Hanako")
                answered = await client.say("Meanwhile: what is the capital of France?")
                return asked, answered, await client.decide(asked, approved=True)
        finally:
            await bridge.aclose()

    asked, answered, told = asyncio.run(talk())
    assert len(asked.of_type("tool-approval-request")) == 1
    assert "Paris" in answered.text
    (result,) = told.of_type("tool-output-available")
    assert result["toolCallId"] == asked.of_type("tool-approval-request")[0]["toolCallId"]
