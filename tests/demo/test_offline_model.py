from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from adk_stream_protocol.demo.agent import build_app
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.tools import get_weather

CONFIRMATION = "adk_request_confirmation"


class Chat:
    """One chat with the demo app through a real ADK runner."""

    def __init__(self, streaming: StreamingMode = StreamingMode.SSE) -> None:
        self._sessions = InMemorySessionService()
        self._runner = Runner(app=build_app(OfflineModel(story_word_delay=0)), session_service=self._sessions)
        self._run_config = RunConfig(streaming_mode=streaming)
        self._session_id: str | None = None
        self.events: list[Event] = []

    async def say(self, text: str) -> None:
        await self._run(types.Part(text=text))

    async def decide(self, *confirmed: bool) -> None:
        """Answer the open approvals of the last run, in their order, in one message."""
        calls = [call for call in self.calls if call.name == CONFIRMATION]
        await self._run(*(_answer(call, {"confirmed": yes}) for call, yes in zip(calls, confirmed, strict=True)))

    async def decide_one(self, call: types.FunctionCall, confirmed: bool) -> None:
        await self._run(_answer(call, {"confirmed": confirmed}))

    async def answer(self, result: dict[str, Any]) -> None:
        """Give the browser's result for the only call of the last run."""
        (call,) = self.calls
        await self._run(_answer(call, result))

    @property
    def calls(self) -> list[types.FunctionCall]:
        return [call for event in self._whole() for call in event.get_function_calls()]

    @property
    def tool_calls(self) -> list[tuple[str | None, dict[str, Any] | None]]:
        return [(call.name, call.args) for call in self.calls if call.name != CONFIRMATION]

    @property
    def text(self) -> str:
        parts = [part for event in self._whole() for part in (event.content and event.content.parts) or []]
        return "".join(part.text for part in parts if part.text and not part.thought)

    async def balance(self) -> float | None:
        assert self._session_id is not None
        session = await self._sessions.get_session(
            app_name="adk_stream_demo", user_id="user", session_id=self._session_id
        )
        assert session is not None
        return session.state.get("wallet_balance")

    def _whole(self) -> list[Event]:
        return [event for event in self.events if not event.partial]

    async def _run(self, *parts: types.Part) -> None:
        if self._session_id is None:
            session = await self._sessions.create_session(app_name="adk_stream_demo", user_id="user")
            self._session_id = session.id
        self.events = [
            event
            async for event in self._runner.run_async(
                user_id="user",
                session_id=self._session_id,
                new_message=types.Content(role="user", parts=list(parts)),
                run_config=self._run_config,
            )
        ]


def _answer(call: types.FunctionCall, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))


def payment(amount: float, recipient: str) -> tuple[str, dict[str, Any]]:
    return "process_payment", {"amount": amount, "recipient": recipient, "currency": "USD"}


ALICE, BOB, HANAKO = payment(30, "Alice"), payment(40, "Bob"), payment(50, "Hanako")
WEATHER_IN_TOKYO = ("get_weather", {"location": "Tokyo"})


async def test_weather_is_called_and_then_told():
    chat = Chat()
    await chat.say("What is the weather in Tokyo?")
    assert chat.tool_calls == [WEATHER_IN_TOKYO]
    facts = get_weather("Tokyo")
    assert chat.text == f"The weather in Tokyo is {facts['condition']} at {facts['temperature_c']} °C."


async def test_approved_payment_is_told_with_the_new_balance():
    chat = Chat()
    await chat.say("Send 50 dollars to Hanako")
    assert (chat.tool_calls, chat.text) == ([HANAKO], "")
    await chat.decide(True)
    assert chat.text == "Paid 50 USD to Hanako. The new balance is 950 USD."
    assert await chat.balance() == 950


async def test_denied_payment_is_told_and_leaves_the_wallet_alone():
    chat = Chat()
    await chat.say("Send 50 dollars to Hanako")
    await chat.decide(False)
    assert chat.text == "The payment of 50 USD to Hanako was denied."
    assert await chat.balance() is None
    await chat.say("Send 20 dollars to Hanako")
    await chat.decide(True)
    assert chat.text == "Paid 20 USD to Hanako. The new balance is 980 USD."


async def test_failed_payment_is_told_with_the_reason():
    chat = Chat()
    await chat.say("Send 5000 dollars to Hanako")
    await chat.decide(True)
    reason = "Insufficient funds: 5000 USD is more than the balance of 1000 USD."
    assert chat.text == f"The payment of 5000 USD to Hanako failed: {reason}"
    assert await chat.balance() is None


async def test_two_payments_are_asked_together_and_both_taken_from_the_wallet():
    chat = Chat()
    await chat.say("Pay Alice 30 dollars and Bob 40 dollars")
    assert chat.tool_calls == [ALICE, BOB]
    await chat.decide(True, True)
    assert chat.text == (
        "Paid 30 USD to Alice. The new balance is 970 USD. Paid 40 USD to Bob. The new balance is 930 USD."
    )
    assert await chat.balance() == 930


@pytest.mark.parametrize("first_answered", [0, 1])
async def test_model_speaks_only_when_both_payments_are_answered(first_answered: int):
    chat = Chat()
    await chat.say("Pay Alice 30 dollars and Bob 40 dollars")
    approvals = [call for call in chat.calls if call.name == CONFIRMATION]
    decisions = [True, False]
    await chat.decide_one(approvals[first_answered], decisions[first_answered])
    assert chat.text == ""
    await chat.decide_one(approvals[1 - first_answered], decisions[1 - first_answered])
    assert chat.text == ("Paid 30 USD to Alice. The new balance is 970 USD. The payment of 40 USD to Bob was denied.")


@pytest.mark.parametrize(
    ("approved", "first_outcome", "balance"),
    [
        (True, "Paid 30 USD to Alice. The new balance is 970 USD.", 930),
        (False, "The payment of 30 USD to Alice was denied.", 960),
    ],
)
async def test_second_payment_is_asked_only_after_the_first_is_answered(
    approved: bool, first_outcome: str, balance: int
):
    chat = Chat()
    await chat.say("Pay Alice 30 dollars, then Bob 40 dollars")
    assert chat.tool_calls == [ALICE]
    await chat.decide(approved)
    assert (chat.tool_calls, chat.text) == ([BOB], "")
    await chat.decide(True)
    assert chat.tool_calls == []
    assert chat.text == f"{first_outcome} Paid 40 USD to Bob. The new balance is {balance} USD."
    assert await chat.balance() == balance


@pytest.mark.parametrize(
    ("phrase", "result", "sentence"),
    [
        (
            "Change BGM to track 2",
            {"success": True, "track": 2, "message": "Now playing track 2"},
            "The background music is now track 2.",
        ),
        (
            "Change BGM to track 3",
            {"error": "There is no track 3"},
            "The change to track 3 failed: There is no track 3",
        ),
        (
            "Change BGM to track 3",
            {"success": False, "track": 3, "message": "There is no track 3"},
            "The change to track 3 failed: There is no track 3",
        ),
        (
            "Where am I?",
            {"latitude": 35.68, "longitude": 139.77, "accuracy": 20, "timestamp": 1},
            "You are at latitude 35.68 and longitude 139.77.",
        ),
        (
            "Where am I?",
            {"error": "Position unavailable"},
            "The request for your location failed: Position unavailable",
        ),
        ("Where am I?", {"error": "User denied Geolocation"}, "The request for your location was denied."),
        (
            "Where am I?",
            {"error": "The approval has expired."},
            "The request for your location has expired: no answer came in time.",
        ),
        ("Where am I?", {"city": "Kyoto"}, 'The request for your location returned {"city": "Kyoto"}.'),
        ("現在地を教えて", {"latitude": 35.68, "longitude": 139.77}, "現在地は緯度35.68、経度139.77です。"),
    ],
)
async def test_answer_of_the_browser_is_told_as_it_came(phrase: str, result: dict[str, Any], sentence: str):
    chat = Chat()
    await chat.say(phrase)
    assert chat.text == ""
    await chat.answer(result)
    assert chat.text == sentence


async def test_japanese_is_answered_in_japanese():
    chat = Chat()
    await chat.say("花子さんに50ドル送金してください")
    await chat.decide(True)
    assert chat.text == "花子に50 USDを送金しました。残高は950 USDです。"
    await chat.say("東京の天気は？")
    assert chat.text.startswith("東京の天気は")
    assert get_weather("東京")["condition"] not in chat.text
    await chat.say("こんにちは")
    assert "できること" in chat.text


async def test_earlier_turns_do_not_change_the_answer():
    chat = Chat()
    await chat.say("Send 50 dollars to Hanako")  # stays open
    await chat.say("What is the weather in Tokyo?")
    assert chat.tool_calls == [WEATHER_IN_TOKYO]
    assert chat.text.startswith("The weather in Tokyo")
    await chat.say("What is the weather in Tokyo?")
    assert chat.tool_calls == [WEATHER_IN_TOKYO]
    await chat.say("Hello")
    assert chat.tool_calls == []
    assert "I can:" in chat.text


async def test_thinking_streams_reasoning_before_the_answer():
    chat = Chat()
    await chat.say("Think about the meaning of it all")
    thoughts = [bool(part.thought) for event in chat.events for part in parts_of(event) if event.partial]
    assert thoughts == sorted(thoughts, reverse=True)
    assert thoughts.count(True) > 10
    assert thoughts.count(False) > 10
    whole = [part for event in chat.events if not event.partial for part in parts_of(event)]
    assert [bool(part.thought) for part in whole] == [True, False]


async def test_thinking_about_a_tool_reasons_once_and_then_calls_it():
    chat = Chat()
    await chat.say("Think, then tell me the weather in Rome")
    whole = [part for event in chat.events if not event.partial for part in parts_of(event)]
    kinds = [
        "thought" if part.thought else "call" if part.function_call else "text" if part.text else "answer"
        for part in whole
    ]
    assert kinds == ["thought", "call", "answer", "text"]


async def test_story_has_a_few_hundred_words_and_comes_word_by_word():
    chat = Chat()
    await chat.say("Tell me a long story")
    words = [part.text for event in chat.events if event.partial for part in parts_of(event)]
    assert 200 < len(words) < 600
    assert "".join(word or "" for word in words) == chat.text


async def test_anything_else_is_answered_with_a_list_and_a_code_block():
    chat = Chat()
    await chat.say("Hello")
    lines = chat.text.splitlines()
    assert sum(line.startswith("- ") for line in lines) >= 4
    assert sum(line.startswith("```") for line in lines) == 2


async def test_run_without_streaming_has_no_partial_events():
    chat = Chat(StreamingMode.NONE)
    await chat.say("What is the weather in Tokyo?")
    assert not any(event.partial for event in chat.events)
    assert chat.text.startswith("The weather in Tokyo")


def parts_of(response: LlmResponse) -> list[types.Part]:
    return (response.content and response.content.parts) or []
