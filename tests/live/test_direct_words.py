"""A live model's words go past ADK, and nobody can tell: streams, histories and sessions are what they were."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from websockets.exceptions import ConnectionClosedError

from adk.direct_runs import ALL, WORDS, look, masked
from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from support import releases
from support.apps import app_of, runner_of, user_of
from support.live_client import LiveClient
from transports.live_apps import LiveApp, chunks, live_app, said, sound

pytestmark = [pytest.mark.virtual_time, releases.direct_text]

Server = Callable[[LiveSession], Awaitable[None]]


# -- models -----------------------------------------------------------------------------------------------------------


async def answers(session: LiveSession) -> None:
    while (received := await session.expect()).kind != "close":
        if received.asks_for_reply:
            await session.answer(WORDS)


async def thinks_first(session: LiveSession) -> None:
    await session.expect_text()
    await session.say("First I think about it. And once more.", thought=True)
    await session.answer(WORDS)
    await answers(session)


async def uses_a_tool(session: LiveSession) -> None:
    await session.expect_text()
    await session.say("Let me see what it is like. ")
    await session.call("look", city="Rome")
    await session.expect_response()
    await session.answer(WORDS)
    await answers(session)


async def is_told_what_it_costs(session: LiveSession) -> None:
    await session.expect_text()
    await session.say("One two three ")
    await session.usage(3, 4)
    await session.answer("four five six.")
    await answers(session)


async def interrupts_itself(session: LiveSession) -> None:
    await session.expect_text()
    await session.say("I was about to say that ")
    await session.interrupted()
    await session.turn_complete()
    await session.expect_text()
    await session.answer(WORDS)
    await answers(session)


async def has_its_words_ready(session: LiveSession) -> None:
    """It says everything in one turn of the loop."""
    await session.expect_text()
    for word in WORDS.split():
        content = types.Content(parts=[types.Part(text=f"{word} ")])
        session.emitted.put_nowait(LlmResponse(content=content, partial=True))
    whole = types.Content(role="model", parts=[types.Part(text=" ".join([*WORDS.split(), ""]))])
    session.emitted.put_nowait(LlmResponse(content=whole, partial=False))
    session.emitted.put_nowait(LlmResponse(turn_complete=True))
    await answers(session)


async def ends_its_turn_with_a_word(session: LiveSession) -> None:
    """As a model of an application's own may do."""
    await session.expect_text()
    for word, fields in (("One ", {}), ("two ", {}), ("three.", {"turn_complete": True})):
        content = types.Content(role="model", parts=[types.Part(text=word)])
        session.emitted.put_nowait(LlmResponse(content=content, partial=True, **fields))
    await answers(session)


async def is_interrupted_at_a_word(session: LiveSession) -> None:
    await session.expect_text()
    for word, fields in (("One ", {}), ("two ", {}), ("three ", {"interrupted": True})):
        content = types.Content(role="model", parts=[types.Part(text=word)])
        session.emitted.put_nowait(LlmResponse(content=content, partial=True, **fields))
    session.emitted.put_nowait(LlmResponse(turn_complete=True))
    await answers(session)


async def loses_its_line(session: LiveSession) -> None:
    if session.number == 1:
        await session.resumption_handle("h1")
        await session.expect_text()
        await session.say("I begin to say that ")
        session.fail(ConnectionClosedError(None, None))
        await session.expect("close")
    else:
        await answers(session)


async def goes_away(session: LiveSession) -> None:
    if session.number == 1:
        await session.resumption_handle("h1")
        await session.expect_text()
        await session.say("One two three ")
        await session.go_away()
        await session.answer("four five six.")
        await session.expect("close")
    else:
        await answers(session)


MODELS: dict[str, Server] = {server.__name__.replace("_", " "): server for server in (
    answers, thinks_first, uses_a_tool, is_told_what_it_costs, interrupts_itself, has_its_words_ready, goes_away,
    ends_its_turn_with_a_word, is_interrupted_at_a_word,
)}  # fmt: skip
each_family = pytest.mark.parametrize("family", ["2.5", "3"])


# -- what is left of a talk -------------------------------------------------------------------------------------------


async def talk(server: Server, *, is_on: bool, family: str) -> tuple[str, str, str]:
    """What a client reads of two messages, what a reload shows, and what the session has."""
    options: dict[str, Any] = {"tools": (look,), "family": family, "direct_text": is_on}
    async with live_app(server, **options) as live, live.attached() as client:
        told: list[Any] = []
        for id, words in (("u1", "Hello."), ("u2", "And then?")):
            told.append((await client.answer(client.start_send(said(words, id)))).chunks)
        shown, session = await live.messages(), await stored(live)
        return masked(told), masked(shown), masked(session)


async def stored(live: LiveApp) -> list[Any]:
    runner = runner_of(live.bridge)
    session = await runner.session_service.get_session(app_name=runner.app_name, user_id="ann", session_id="chat-1")
    return [event.model_dump(mode="json", exclude_none=True) for event in session.events]


@each_family
@pytest.mark.parametrize("model", MODELS)
async def test_a_talk_is_the_same_with_direct_text_and_without(model: str, family: str) -> None:
    direct, through_adk = [await talk(MODELS[model], is_on=is_on, family=family) for is_on in (True, False)]
    assert direct == through_adk


@each_family
@pytest.mark.parametrize("is_on", [True, False])
async def test_an_answer_that_is_cut_by_a_lost_line_goes_on(is_on: bool, family: str) -> None:
    async with live_app(loses_its_line, family=family, direct_text=is_on) as live, live.attached() as client:
        told = await client.say("Hello.")
        assert told.types[-1] in ("finish", "error")
        assert "I begin to say that " in told.text
        assert (await client.say("Again.")).text.endswith(WORDS)
        assert "I begin to say that " in str(await stored(live))


# -- which way they take ----------------------------------------------------------------------------------------------


async def pieces_through_adk(bridge: ChatBridge, text: str = "Hello.") -> int:
    seen: list[Event] = []
    runner = runner_of(bridge)
    real = type(runner).run_live

    async def run_live(**given: Any) -> AsyncGenerator[Event, None]:
        async for event in real(runner, **given):
            if event.partial and event.content and event.content.parts:
                seen.append(event)
            yield event

    runner.run_live = run_live
    live = LiveApp(bridge, app_of(bridge), None)
    async with live.attached() as client:
        assert (await client.say(text)).text == WORDS
    await bridge.aclose()
    return len(seen)


def bridge_of(agent: Any = None, **options: Any) -> ChatBridge:
    run_config = RunConfig(response_modalities=[types.Modality.TEXT])
    return ChatBridge(agent or speaker(), user_id=user_of, run_config=run_config, **options)


def speaker(**options: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedLiveModel(answers), **options)


async def test_only_the_first_word_of_a_turn_goes_through_adk() -> None:
    assert await pieces_through_adk(bridge_of()) == 1


def overriding() -> LlmAgent:
    class Own(LlmAgent):
        async def _run_live_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
            async for event in super()._run_live_impl(ctx):
                yield event

    return Own(name="helper", model=ScriptedLiveModel(answers))


class Watcher(BasePlugin):
    async def on_event_callback(self, **_: Any) -> None: ...


WATCHED: dict[str, Callable[[], ChatBridge]] = {
    "it is switched off": lambda: bridge_of(direct_text=False),
    "a plugin sees events": lambda: bridge_of(
        App(
            name="helper",
            root_agent=speaker(),
            plugins=[Watcher(name="watcher")],
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
    ),
    "the agent has a callback": lambda: bridge_of(speaker(after_model_callback=lambda **_: None)),
    "the agent has its own way to run": lambda: bridge_of(overriding()),
}


@pytest.mark.parametrize("why", WATCHED)
@pytest.mark.filterwarnings("ignore::UserWarning")
async def test_every_word_goes_through_adk_if_somebody_may_watch_it(why: str) -> None:
    assert await pieces_through_adk(WATCHED[why]()) == ALL


# -- the other things that happen meanwhile ---------------------------------------------------------------------------


class Pausing:
    """A model that says half of its words, and the rest when it may."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def __call__(self, session: LiveSession) -> None:
        await session.expect_text()
        await session.say("one two three four five six ")
        await self.goes_on.wait()
        await session.say("seven eight nine ten.")
        await session.turn_complete()
        await answers(session)


def words_of(client: LiveClient, request_id: str) -> str:
    return "".join(chunk.get("delta", "") for chunk in chunks(client, request_id))


async def test_what_is_said_after_an_interruption_is_not_shown() -> None:
    server = Pausing()
    async with live_app(server) as live, live.attached() as client:
        request_id = client.start_send(said("Count."))
        await client.until(lambda: words_of(client, request_id).endswith("six "))
        client.tell("interrupt")
        told = await client.answer(request_id)
        server.goes_on.set()
        assert told.text == "one two three four five six "
        assert (await client.say("And now?")).text == WORDS
        assert words_of(client, request_id) == told.text


async def test_words_keep_their_order_with_the_voice_that_comes_between_them() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("one two three ")
        await session.audio(sound(20), 24_000)
        await session.say("four five six.")
        await session.turn_complete()
        await session.expect("close")

    async with live_app(server) as live, live.attached() as client:
        assert (await client.say("Count.")).text == "one two three four five six."
        assert b"".join(client.binary) != b""


async def test_an_answer_ends_at_the_limit_of_its_log() -> None:
    async def talker(session: LiveSession) -> None:
        await session.expect_text()
        while True:
            await session.say("word " * 8)

    async with live_app(talker, limits=Limits(max_log_bytes=4_000)) as live, live.attached() as client:
        told = await client.say("Talk.")
        assert told.chunks[-1]["finishReason"] == "length"
        assert len(told.text) < 4_000


async def test_a_stop_ends_words_that_go_past_adk() -> None:
    async def talker(session: LiveSession) -> None:
        await session.expect_text()
        while True:
            await session.say("word " * 8)

    async with live_app(talker) as live, live.attached() as client:
        request_id = client.start_send(said("Talk."))
        await client.until(lambda: len(words_of(client, request_id)) > 200)
        await live.bridge._service.stop("ann", "chat-1")  # pyright: ignore[reportPrivateUsage] -- as the route does
        assert (await client.answer(request_id)).types[-1] == "abort"
        assert live.runs == 0
