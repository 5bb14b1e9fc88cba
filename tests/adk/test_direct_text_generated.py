"""Whatever a model streams, a client reads the same with direct text and without."""

import random
from typing import Any

import pytest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk.agent_runs import called, model_says
from adk.direct_runs import alone, look, read_turn
from adk_stream_protocol.testing import text
from support import releases
from support.apps import figure
from support.conversations import conversation

pytestmark = releases.direct_text


def any_script(chance: random.Random) -> list[Any]:
    """Model calls with pieces of all kinds; each ends with the whole, and all but the last call a tool."""
    return [any_reply(chance, number, is_last=False) for number in range(chance.randrange(3))] + [
        any_reply(chance, 9, is_last=True)
    ]


def any_reply(chance: random.Random, number: int, *, is_last: bool) -> list[LlmResponse]:
    pieces: list[types.Part] = []
    for _ in range(chance.randrange(12)):
        word = chance.choice(["a ", "", "bc", "\n", "d e ", "é"])
        pieces.append(types.Part(text=word, thought=chance.random() < 0.3 or None))
    streamed: list[LlmResponse] = []
    rest = list(pieces)
    while rest:
        together, rest = rest[: (size := chance.choice([1, 1, 1, 1, 2]))], rest[size:]
        extra: dict[str, Any] = {}
        if chance.random() < 0.1:
            extra["usage_metadata"] = types.GenerateContentResponseUsageMetadata(total_token_count=3)
        streamed.append(model_says(*together, partial=True, **extra))
        if chance.random() < 0.05:
            streamed.append(model_says(partial=True, grounding_metadata=types.GroundingMetadata()))
    whole = joined(pieces)
    calls = [] if is_last else [called(f"c{number}", "look", city="Rome")]
    if calls and chance.random() < 0.5:
        streamed.append(model_says(*calls, partial=True))
    finish = types.FinishReason.STOP
    return [*streamed, model_says(*(whole or [text("!")]), *calls, partial=False, finish_reason=finish)]


def joined(pieces: list[types.Part]) -> list[types.Part]:
    whole: list[types.Part] = []
    for piece in pieces:
        if whole and whole[-1].thought == piece.thought:
            whole[-1] = types.Part(text=(whole[-1].text or "") + (piece.text or ""), thought=piece.thought)
        elif piece.text:
            whole.append(piece)
    return whole


@pytest.mark.figures
async def test_whatever_a_model_streams_the_client_reads_the_same() -> None:
    seeds = range(figure(5_000))
    scripts = [[reply for seed in seeds for reply in any_script(random.Random(seed))] for _ in range(2)]
    on, off = (alone(*script, tools=[look]) for script in scripts)
    async with conversation(agent=on) as direct, conversation(agent=off, direct_text=False) as through_adk:
        for seed in seeds:
            chats = [chat.of(chat_id=f"c{seed}") for chat in (direct, through_adk)]
            read = [await read_turn(chat) for chat in chats]
            assert read[0] == read[1], seed
