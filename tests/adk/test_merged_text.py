"""Words that are ready together go through ADK as one piece, where somebody watches them there."""

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk.agent_runs import called, model_says
from adk.direct_runs import ALL, WORDS, look, piece, pieces_through_adk, read, read_turn, through_adk, whole
from adk.test_direct_text_generated import any_script
from adk_stream_protocol.adk.words.merged_text import merged
from adk_stream_protocol.testing import ScriptedModel, text
from support.apps import figure
from support.conversations import conversation

USAGE = types.GenerateContentResponseUsageMetadata(total_token_count=3)


def thought(said: str) -> LlmResponse:
    return piece(types.Part(text=said, thought=True))


async def stream(responses: list[LlmResponse], *, pause_after: int = 0) -> AsyncGenerator[LlmResponse, None]:
    for number, response in enumerate(responses, 1):
        yield response
        if pause_after and number % pause_after == 0:
            for _ in range(5):
                await asyncio.sleep(0)


async def through(responses: list[LlmResponse], **options: Any) -> list[LlmResponse]:
    return [response async for response in merged(stream(responses, **options))]


def texts(responses: list[LlmResponse]) -> list[str]:
    return ["".join(part.text or "" for part in (each.content and each.content.parts) or []) for each in responses]


def running() -> int:
    return sum(task.get_name() == "adk-stream model" for task in asyncio.all_tasks())


async def test_what_is_ready_together_comes_as_one_and_the_whole_stays_what_it_is() -> None:
    end = whole(text("a b c "))
    got = await through([piece(text("a ")), piece(text("b ")), piece(text("c ")), end])
    assert texts(got) == ["a b c ", "a b c "]
    assert got[0].partial
    assert got[1] is end


async def test_nothing_waits_for_a_word_that_is_not_there_yet() -> None:
    words = [piece(text("a ")), piece(text("b ")), piece(text("c ")), piece(text("d "))]
    got = await through(words, pause_after=1)
    assert all(one is other for one, other in zip(got, words, strict=True))
    assert texts(await through(words, pause_after=2)) == ["a b ", "c d "]


async def test_a_model_that_never_waits_lets_others_run() -> None:
    got = await through([piece(text("x"))] * 100)
    assert max(map(len, texts(got))) <= 16
    assert "".join(texts(got)) == "x" * 100


SIGNED = types.Part(text="b ", thought_signature=b"s")
CITED = types.CitationMetadata(citations=[types.Citation(uri="https://a.example")])


@pytest.mark.parametrize(
    "between",
    [
        thought("b "),
        piece(text("")),
        piece(text("b "), text("b ")),
        piece(SIGNED),
        piece(text("b "), usage_metadata=USAGE),
        piece(text("b "), finish_reason=types.FinishReason.STOP),
        piece(text("b "), citation_metadata=CITED),
        piece(text("b "), grounding_metadata=types.GroundingMetadata()),
        piece(text("b "), custom_metadata={"a": 1}),
        piece(text("b "), model_version="other"),
        piece(text("b "), error_code="1"),
        piece(called("c1", "look", city="Rome")),
        piece(types.Part(inline_data=types.Blob(data=b"x", mime_type="image/png"))),
        piece(),
        LlmResponse(partial=True),
        whole(text("b ")),
    ],
    ids=str,
)
async def test_nothing_else_is_merged_and_nothing_is_merged_across_it(between: LlmResponse) -> None:
    got = await through([piece(text("a ")), piece(text("a ")), between, piece(text("c ")), piece(text("c "))])
    assert texts(got[:1]) == ["a a "]
    assert got[1] is between
    assert texts(got[2:]) == ["c c "]


async def test_thoughts_are_merged_with_thoughts() -> None:
    got = await through([thought("a "), thought("b "), piece(text("c "))])
    assert texts(got) == ["a b ", "c "]
    assert [bool(each.content.parts[0].thought) for each in got] == [True, False]  # pyright: ignore


async def test_a_model_is_ahead_with_words_only() -> None:
    """After anything else it goes on when ADK asks it to, as without."""
    asked = list[str]()

    async def responses() -> AsyncGenerator[LlmResponse, None]:
        yield piece(text("a "))
        yield model_says(called("c1", "look", city="Rome"), partial=False)
        asked.append("again")
        yield piece(text("b "))

    async for response in merged(responses()):
        for _ in range(10):
            await asyncio.sleep(0)
        assert texts([response]) == ["b "] or not asked


async def test_errors_come_after_the_words_before_them() -> None:
    error = ValueError("no more")

    async def responses() -> AsyncGenerator[LlmResponse, None]:
        yield piece(text("a "))
        yield piece(text("b "))
        raise error

    pieces = merged(responses())
    assert texts([await anext(pieces)]) == ["a b "]
    with pytest.raises(ValueError, match="no more") as raised:
        await anext(pieces)
    assert raised.value is error
    assert not running()


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("steps", range(6))
async def test_no_task_is_left_however_it_ends(steps: int, is_cancelled: bool) -> None:
    closed = asyncio.Event()

    async def responses() -> AsyncGenerator[LlmResponse, None]:
        try:
            while True:
                yield piece(text("a "))
                await asyncio.sleep(0)
        finally:
            closed.set()

    async def consume() -> None:
        pieces = merged(responses())
        try:
            async for _ in pieces:
                if not is_cancelled:
                    break
        finally:
            await pieces.aclose()

    consuming = asyncio.create_task(consume())
    for _ in range(steps):
        await asyncio.sleep(0)
    if is_cancelled:
        consuming.cancel()
    await asyncio.wait([consuming])
    assert not running()
    assert consuming.cancelled() is is_cancelled
    assert closed.is_set() or (is_cancelled and steps < 3)  # it had not begun


# -- in runs ----------------------------------------------------------------------------------------------------------


class Bursting(ScriptedModel):
    """Has several words ready at once, as one read from the network brings them."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        ready = [each async for each in super().generate_content_async(llm_request, stream=stream)]
        for number, each in enumerate(ready):
            if number % 5 == 0:
                await asyncio.sleep(0)
            yield each


def bursting(*script: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=Bursting(script), **options)


async def watch(callback_context: Any, llm_response: Any) -> None:
    return None


async def test_watchers_see_fewer_larger_pieces_and_only_if_it_is_wanted() -> None:
    assert await through_adk(bursting(WORDS, after_model_callback=watch)) == ALL
    assert await through_adk(bursting(WORDS, after_model_callback=watch), merge_text=True) < ALL / 2
    assert await through_adk(bursting(WORDS), direct_text=False, merge_text=True) < ALL / 2


async def test_models_inside_models_speak_to_those_one_by_one() -> None:
    counts = list[int]()

    class Outer(Bursting):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            if "inner" in (llm_request.config.labels or {}):
                async for response in super().generate_content_async(llm_request, stream=stream):
                    yield response
                return
            llm_request.config.labels["inner"] = "yes"
            got = [each async for each in self.generate_content_async(llm_request, stream=stream)]
            counts.append(sum(bool(each.partial) for each in got))
            for each in got:
                yield each

    agent = LlmAgent(name="helper", model=Outer([WORDS]))
    async with conversation(agent=agent, direct_text=False, merge_text=True) as chat:
        assert await pieces_through_adk(chat) < ALL / 2
    assert counts == [ALL]


def joined(chunks: list[Any]) -> list[Any]:
    """What a client has read: deltas of one part are one text."""
    out = list[Any]()
    for chunk in chunks:
        if "delta" in chunk and out and {**chunk, "delta": ""} == {**out[-1], "delta": ""}:
            out[-1] = {**out[-1], "delta": out[-1]["delta"] + chunk["delta"]}
        else:
            out.append(chunk)
    return out


async def test_a_model_that_fails_has_said_what_it_said() -> None:
    class Failing(ScriptedModel):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            yield piece(text("a "))
            yield piece(text("b "))
            raise ValueError

    read_by = list[Any]()
    for merge in (False, True):
        agent = LlmAgent(name="helper", model=Failing(), after_model_callback=watch)
        async with conversation(agent=agent, merge_text=merge) as chat:
            read_by.append(await read_turn(chat, joined))
    assert "'a b '" in read_by[0][0]
    assert read_by[0] == read_by[1]


async def test_sessions_and_histories_are_the_same_with_and_without() -> None:
    without, with_it = [
        await read(bursting(WORDS, after_model_callback=watch), is_on=True, merge_text=merge) for merge in (False, True)
    ]
    assert without[1:] == with_it[1:]


@pytest.mark.figures
async def test_whatever_a_model_streams_the_client_ends_up_with_the_same() -> None:
    seeds = range(figure(2_000))
    agents = [
        bursting(
            *[reply for seed in seeds for reply in any_script(random.Random(seed))],
            tools=[look],
            after_model_callback=watch,
        )
        for _ in range(2)
    ]
    async with conversation(agent=agents[0]) as plain, conversation(agent=agents[1], merge_text=True) as merging:
        for seed in seeds:
            read_by = [await read_turn(chat.of(chat_id=f"c{seed}"), joined) for chat in (plain, merging)]
            assert read_by[0] == read_by[1], seed
