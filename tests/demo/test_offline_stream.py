"""The shape of what the offline model yields, without a runner around it."""

import asyncio
from typing import Any

import pytest
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.phrases import plan_calls


def test_story_waits_between_words_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch):
    delays: list[float] = []
    really_sleep = asyncio.sleep

    async def sleep(delay: float) -> None:
        delays.append(delay)
        await really_sleep(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    model = OfflineModel()
    words = ask("tell me a long story", model=model)[:-1]
    assert model.story_word_delay > 0
    assert delays == [model.story_word_delay] * len(words) + [0]
    delays.clear()
    ask("Hello", model=model)
    assert set(delays) == {0}


def test_every_example_of_the_help_is_understood():
    (_, code, _) = (parts_of(ask("Hello")[-1])[0].text or "").split("```")
    examples = code.splitlines()[1:]
    assert len(examples) == 4
    assert all(plan_calls(example) for example in examples)


@pytest.mark.parametrize(
    "phrase",
    [
        "What is the weather in Tokyo?",
        "Pay Alice 30 dollars and Bob 40 dollars",
        "Hello",
        "こんにちは",
        "Think about it",
        "Think, then pay Bob 40 dollars",
        "tell me a long story",
    ],
)
def test_pieces_add_up_to_the_last_response(phrase: str):
    *pieces, last = ask(phrase)
    assert all(piece.partial is True for piece in pieces)
    assert last.partial is False
    assert merged(part for piece in pieces for part in parts_of(piece)) == merged(parts_of(last))
    ends = [piece.finish_reason for piece in pieces]
    assert ends == [None] * (len(pieces) - 1) + [types.FinishReason.STOP]
    assert last.finish_reason is types.FinishReason.STOP
    assert {piece.model_version for piece in [*pieces, last]} == {"offline"}


def test_without_streaming_there_is_one_response():
    (response,) = ask("Hello", stream=False)
    assert response.partial is None
    assert response.finish_reason is types.FinishReason.STOP
    assert merged(parts_of(response)) == merged(parts_of(ask("Hello")[-1]))


def test_tokens_are_counted():
    usage = ask("Think about it")[-1].usage_metadata
    assert usage is not None
    assert usage.prompt_token_count is not None
    assert usage.thoughts_token_count is not None
    assert usage.candidates_token_count is not None
    assert min(usage.prompt_token_count, usage.thoughts_token_count, usage.candidates_token_count) > 0
    assert usage.total_token_count == (
        usage.prompt_token_count + usage.thoughts_token_count + usage.candidates_token_count
    )


def test_each_call_has_an_id_of_its_own():
    ids = [part.function_call.id for _ in range(2) for part in parts_of(ask("Play track 1 and track 2")[-1])]
    assert None not in ids
    assert len(set(ids)) == len(ids) == 4


def test_unanswered_and_unknown_calls_are_not_invented_away():
    calls = [
        types.FunctionCall(
            id="a", name="process_payment", args={"amount": 30, "recipient": "Alice", "currency": "USD"}
        ),
        types.FunctionCall(id="b", name="process_payment", args={"amount": 40, "recipient": "Bob", "currency": "USD"}),
        types.FunctionCall(id="c", name="roll_dice", args={"sides": 6}),
    ]
    waiting = {"error": "This tool call requires confirmation, please approve or reject."}
    contents = [
        types.Content(role="user", parts=[types.Part(text="Pay Alice 30 dollars and Bob 40 dollars")]),
        types.Content(role="model", parts=[types.Part(function_call=call) for call in calls]),
        types.Content(role="user", parts=[answer_to(calls[2], {"result": 4}), answer_to(calls[0], waiting)]),
    ]
    last = respond(contents)[-1]
    assert parts_of(last)[0].text == (
        "The payment of 30 USD to Alice is still waiting for your approval. "
        "The payment of 40 USD to Bob has no answer yet. "
        'The call of roll_dice returned {"result": 4}.'
    )


def test_calls_without_ids_are_answered_in_their_order():
    calls = [
        types.FunctionCall(name="process_payment", args={"amount": n, "recipient": "Bob", "currency": "USD"})
        for n in (1, 2)
    ]
    contents = [
        types.Content(role="user", parts=[types.Part(text="Pay Bob 1 dollar and Bob 2 dollars")]),
        types.Content(role="model", parts=[types.Part(function_call=call) for call in calls]),
        types.Content(
            role="user",
            parts=[answer_to(calls[0], {"error": "denied"}), answer_to(calls[1], {"error": "expired"})],
        ),
    ]
    assert parts_of(respond(contents)[-1])[0].text == (
        "The payment of 1 USD to Bob was denied. The payment of 2 USD to Bob has expired: no answer came in time."
    )


def ask(phrase: str, stream: bool = True, model: OfflineModel | None = None) -> list[LlmResponse]:
    return respond([types.Content(role="user", parts=[types.Part(text=phrase)])], stream, model)


def respond(contents: list[types.Content], stream: bool = True, model: OfflineModel | None = None) -> list[LlmResponse]:
    async def run() -> list[LlmResponse]:
        speaker = model or OfflineModel(story_word_delay=0)
        return [response async for response in speaker.generate_content_async(LlmRequest(contents=contents), stream)]

    return asyncio.run(run())


def answer_to(call: types.FunctionCall, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))


def parts_of(response: LlmResponse) -> list[types.Part]:
    return (response.content and response.content.parts) or []


def merged(parts: Any) -> list[Any]:
    """Calls by their ids and neighbouring pieces of text as one, to compare streamed with whole content."""
    result: list[Any] = []
    for part in parts:
        if part.function_call:
            result.append((part.function_call.id, part.function_call.name, part.function_call.args))
        elif result and result[-1][0] == bool(part.thought):
            result[-1] = (bool(part.thought), result[-1][1] + part.text)
        else:
            result.append((bool(part.thought), part.text))
    return result
