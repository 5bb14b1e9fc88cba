"""Every row of the scenarios: what each segment has in it, in live mode as in request mode, and the message that a
client has in the end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from google.genai import types

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import Answer
from live.live_pages import (
    DEADLINE_S,
    DENIED,
    EXPIRED,
    HELD,
    A,
    D,
    E,
    I,
    LivePage,
    O,
    X,
    both_families,
    live_page,
    live_world,
    segment,
    step,
    told_results,
)
from support.pages import Page, Till

pytestmark = pytest.mark.virtual_time

PLACE = {"latitude": 1}
PLAYING = {"playing": 1}


def weather(city: str) -> dict[str, str]:
    """The weather of a city."""
    return {"sky": f"clear in {city}"}


def play_track(track: int) -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Plays a track in the browser."""


def locate() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Tells where the browser is."""


def called(call_id: str, name: str, /, **arguments: Any) -> types.Part:
    """Whose id is the same in both modes."""
    return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=arguments))


FIVE, SIX = called("c5", "pay", amount=5), called("c6", "pay", amount=6)


@dataclass(frozen=True)
class Row:
    name: str
    script: tuple[Any, ...]
    act: Callable[[Page], Awaitable[list[Answer]]]
    segments: list[list[str]]
    results: list[Any]
    """What the model was told of its calls."""
    paid: tuple[int, ...] = ()


async def just_ask(at: Page) -> list[Answer]:
    return [await at.say("Go.")]


def deciding(*rounds: dict[int, bool]) -> Callable[[Page], Awaitable[list[Answer]]]:
    """Payments are decided in rounds, by their numbers."""

    async def act(at: Page) -> list[Answer]:
        told = [await at.say("Go.")]
        for decided in rounds:
            for number, yes in decided.items():
                at.decide("pay", number, approved=yes)
            told.append(await at.answer())
        return told

    return act


async def play_a_track(at: Page) -> list[Answer]:
    told = [await at.say("Go.")]
    at.output("play_track", PLAYING)
    return [*told, await at.answer()]


async def locate_in_two_requests(at: Page) -> list[Answer]:
    told = [await at.say("Go.")]
    at.decide("locate")
    told.append(await at.answer())
    at.output("locate", PLACE)
    return [*told, await at.answer()]


async def locate_in_one_request(at: Page) -> list[Answer]:
    told = [await at.say("Go.")]
    at.decide("locate")
    at.output("locate", PLACE)
    return [*told, await at.answer()]


async def deny_location(at: Page) -> list[Answer]:
    told = [await at.say("Go.")]
    at.decide("locate", approved=False)
    return [*told, await at.answer()]


ASKED_TWICE = segment(*step(*I, *I, *A, *A))

ROWS = [
    Row(
        "weather",
        ([called("c1", "weather", city="Oslo")], "It is clear."),
        just_ask,
        [segment(*step(*I, *O), *X)],
        [{"sky": "clear in Oslo"}],
    ),
    Row(
        "change BGM",
        ([called("c1", "play_track", track=1)], "It plays."),
        play_a_track,
        [segment(*step(*I)), segment(*X)],
        [PLAYING],
    ),
    Row(
        "payment approved",
        ([FIVE], "Paid."),
        deciding({0: True}),
        [segment(*step(*I, *A)), segment(*O, *X)],
        [{"paid": 5}],
        (5,),
    ),
    Row(
        "payment denied",
        ([FIVE], "Not paid."),
        deciding({0: False}),
        [segment(*step(*I, *A)), segment(*D, *X)],
        [DENIED],
    ),
    Row(
        "location approved, output later",
        ([called("c1", "locate")], "There."),
        locate_in_two_requests,
        [segment(*step(*HELD, *A)), segment("tool-input-available"), segment(*X)],
        [PLACE],
    ),
    Row(
        "location approved, output beside it",
        ([called("c1", "locate")], "There."),
        locate_in_one_request,
        [segment(*step(*HELD, *A)), segment(*X)],
        [PLACE],
    ),
    Row(
        "location denied",
        ([called("c1", "locate")], "Unknown."),
        deny_location,
        [segment(*step(*HELD, *A)), segment(*D, *X)],
        [DENIED],
    ),
    Row(
        "two payments in one message",
        ([FIVE, SIX], "Both paid."),
        deciding({0: True, 1: True}),
        [ASKED_TWICE, segment(*O, *O, *X)],
        [{"paid": 5}, {"paid": 6}],
        (5, 6),
    ),
    Row(
        "one payment, then the other",
        ([FIVE], [SIX], "Both paid."),
        deciding({0: True}, {1: True}),
        [segment(*step(*I, *A)), segment(*O, *step(*I, *A)), segment(*O, *X)],
        [{"paid": 5}, {"paid": 6}],
        (5, 6),
    ),
    Row(
        "the first payment approved, the second denied, together",
        ([FIVE, SIX], "One paid."),
        deciding({0: True, 1: False}),
        [ASKED_TWICE, segment(*O, *D, *X)],
        [{"paid": 5}, DENIED],
        (5,),
    ),
    Row(
        "the first payment denied, the second approved, together",
        ([FIVE, SIX], "One paid."),
        deciding({0: False, 1: True}),
        [ASKED_TWICE, segment(*D, *O, *X)],
        [DENIED, {"paid": 6}],
        (6,),
    ),
    Row(
        "the first payment approved, then the second denied",
        ([FIVE, SIX], "One paid."),
        deciding({0: True}, {1: False}),
        [ASKED_TWICE, segment(*O), segment(*D, *X)],
        [{"paid": 5}, DENIED],
        (5,),
    ),
    Row(
        "the second payment approved, then the first denied",
        ([FIVE, SIX], "One paid."),
        deciding({1: True}, {0: False}),
        [ASKED_TWICE, segment(*O), segment(*D, *X)],
        [DENIED, {"paid": 6}],
        (6,),
    ),
    Row(
        "the first payment denied, then the second approved",
        ([FIVE, SIX], "One paid."),
        deciding({0: False}, {1: True}),
        [ASKED_TWICE, segment(), segment(*D, *O, *X)],
        [DENIED, {"paid": 6}],
        (6,),
    ),
    Row(
        "the second payment denied, then the first approved",
        ([FIVE, SIX], "One paid."),
        deciding({1: False}, {0: True}),
        [ASKED_TWICE, segment(), segment(*O, *D, *X)],
        [{"paid": 5}, DENIED],
        (5,),
    ),
]
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def world_of(row: Row, till: Till, family: str) -> Any:
    tools = (till.gated, weather, client_tool(play_track), client_tool(locate, approve=True))
    return live_world(*row.script, family=family, tools=tools)


def masked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what each run makes up for itself, and the version that the scripted model tells in live mode alone."""
    names: dict[str, str] = {}

    def mask(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: mask(inside, name) for name, inside in value.items() if name != "modelVersion"}
        if isinstance(value, list):
            return [mask(inside) for inside in value]
        if key == "deadline":
            return "deadline"
        made_up = isinstance(value, str) and value.startswith(("msg-", "adk-"))
        return names.setdefault(value, f"id{len(names)}") if made_up else value

    return [mask(message) for message in messages]


@both_families
@every_row
async def test_a_live_session_tells_the_row_in_these_chunks(row: Row, family: str) -> None:
    till = Till()
    async with world_of(row, till, family) as world, world.socket() as at:
        told = await row.act(at)
        assert [answer.types for answer in told] == row.segments
        waits, last = told[:-1], told[-1]
        assert [answer.chunks[-1]["finishReason"] for answer in waits] == ["tool-calls"] * len(waits)
        assert last.chunks[-1]["finishReason"] == "stop"
        assert last.text == row.script[-1]
        assert len({answer.message_id for answer in told}) == 1
        assert sorted(till.paid) == sorted(row.paid)
        assert told_results(world.model) == row.results
        assert len(world.model.requests) == len(row.script)
        assert at.turns_told == 0
        await at.is_what_a_reload_shows()


@both_families
@every_row
async def test_both_modes_end_with_the_same_message_and_tell_their_model_the_same(row: Row, family: str) -> None:
    async with world_of(row, Till(), family) as asked, world_of(row, Till(), family) as live:
        requested = asked.page()
        segments = [answer.types for answer in await row.act(requested)]
        assert segments == row.segments
        async with live.socket() as at:
            await row.act(at)
            assert masked(at.messages) == masked(requested.messages)
            assert masked(await live.chat.messages()) == masked(await asked.chat.messages())
            assert conversation_known_to(live) == conversation_known_to(asked)


def conversation_known_to(world: Any) -> list[Any]:
    """By its model, when it was asked last: whose words, and what of."""
    known = world.model.requests[-1].contents
    parts = [(content.role, part) for content in known for part in content.parts or ()]
    return [(role, part.model_dump(exclude_none=True)) for role, part in parts]


# -- nobody answers in time -------------------------------------------------------------------------------------------


async def ask_and_wait(at: LivePage) -> list[Answer]:
    asked = await at.say("Pay.")
    await asyncio.sleep(DEADLINE_S)
    return [asked, await at.unasked_turn()]


@both_families
async def test_a_payment_that_nobody_answers_ends_at_its_deadline_in_a_turn_of_the_servers(family: str) -> None:
    till = Till()
    async with live_page([FIVE], "Too late, " * 20, family=family, tools=(till.gated,)) as at:
        asked, late = await ask_and_wait(at)
        assert asked.types == segment(*step(*I, *A))
        assert late.types == segment(*step(*HELD, *A), *E, *X)
        assert late.message_id == asked.message_id
        assert late.of_type("tool-output-error")[0]["errorText"] == EXPIRED["error"]
        assert at.turns_told == 1
        assert told_results(at.model) == [EXPIRED]
        assert await at.world.states() == ["expired"]
        assert till.paid == []
        await at.is_what_a_reload_shows()


@both_families
async def test_both_modes_end_a_payment_that_nobody_answered_with_the_same_message(family: str) -> None:
    script, tools = ([FIVE], "Too late, " * 20), (Till().gated,)
    async with live_world(*script, tools=tools) as asked, live_world(*script, family=family, tools=tools) as live:
        requested = asked.page()
        await requested.say("Pay.")
        await asyncio.sleep(DEADLINE_S)
        requested.decide("pay")
        assert (await requested.answer()).types == segment(*E, *X)
        # Live mode goes on by itself; request mode when somebody answers, whose late word stays on the card.
        del requested.part("pay")["approval"]["approved"]
        async with live.socket() as at:
            await ask_and_wait(at)
            assert masked(at.messages) == masked(requested.messages)
            assert conversation_known_to(live) == conversation_known_to(asked)
