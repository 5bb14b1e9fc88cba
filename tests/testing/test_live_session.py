"""A coroutine that plays the live model, in ADK's real `run_live`."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions import InMemorySessionService
from google.genai import types

from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from support.live_runs import live_run, stored_lines


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


def agent_on(model: ScriptedLiveModel, *tools: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=model, tools=list(tools) or [pay])


async def test_coroutine_plays_the_model() -> None:
    async def server(session: LiveSession) -> None:
        assert await session.expect_text() == "Pay 1"
        await session.say("One moment. ")
        made = await session.call("pay", amount=1)
        response = await session.expect_response()
        assert (response.id, response.response) == (made.id, {"paid": 1})
        await session.usage(7, 2)
        await session.answer("Paid.")
        await session.expect("close")

    model = ScriptedLiveModel(server, family="3")
    async with live_run(agent_on(model)) as run:
        run.write("Pay 1")
        assert await run.until("turn_complete") == [
            "text One ",
            "text moment. ",
            "TEXT One moment. ",
            'call pay {"amount": 1}',
            'response pay {"paid": 1}',
            "usage 7, 2",
            "text Paid.",
            "TEXT Paid.",
            "turn_complete",
        ]
        assert await run.rest() == []
    await model.finished()


@pytest.mark.parametrize(
    ("family", "heard"), [("2.5", ["hearing Hel", "hearing lo", "heard Hello"]), ("3", ["heard Hello"])]
)
async def test_transcripts_come_whole_when_they_are_finished(family: str, heard: list[str]) -> None:
    async def server(session: LiveSession) -> None:
        assert (await session.expect_audio()).data == b"\1\0"
        if session.family == "2.5":
            await session.input_transcript("Hel")
            await session.input_transcript("lo", finished=True)
        else:
            await session.input_transcript("Hello")
        await session.audio(b"\2\0\3\0")
        await session.output_transcript("Good ")
        await session.output_transcript("day")
        await session.turn_complete()

    sessions = InMemorySessionService()
    agent = agent_on(ScriptedLiveModel(server, family=family))
    async with live_run(agent, sessions=sessions, modality=types.Modality.AUDIO) as run:
        run.speak(b"\1\0")
        spoken = ["audio 4 audio/pcm;rate=24000", "saying Good ", "saying day", "said Good day", "turn_complete"]
        assert await run.until("turn_complete") == heard + spoken
        assert [event.author for event in run.events[: len(heard)]] == ["user"] * len(heard)
        assert await run.rest() == []
    assert await stored_lines(sessions) == ["heard Hello", "said Good day", "turn_complete"]


async def test_interruption_gives_what_was_said_so_far() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("Once upon ")
        await session.expect("activity_start")
        await session.interrupted()
        await session.turn_complete()
        await session.interrupted()
        await session.turn_complete()

    async with live_run(agent_on(ScriptedLiveModel(server))) as run:
        run.write("A story")
        assert await run.until("text upon") == ["text Once ", "text upon "]
        run.queue.send_activity_start()
        assert await run.until("turn_complete") == ["TEXT Once upon  + interrupted", "turn_complete"]
        assert await run.until("turn_complete") == ["interrupted", "turn_complete"]
        assert await run.rest() == []


async def test_adk_comes_back_with_the_handle_after_go_away() -> None:
    async def server(session: LiveSession) -> None:
        if session.number == 1:
            await session.expect_text()
            await session.resumption_handle("handle-1")
            await session.answer("First.")
            await session.go_away()
        else:
            config = session.request.live_connect_config.session_resumption
            await session.answer(f"Back with {config and config.handle}.")

    model = ScriptedLiveModel(server)
    async with live_run(agent_on(model), session_resumption=types.SessionResumptionConfig()) as run:
        run.write("Hello")
        assert (await run.until("turn_complete"))[0] == "handle handle-1"
        assert "TEXT Back with handle-1." in await run.until("turn_complete")
        assert await run.rest() == []
    assert [received.kind for received in model.sessions[1].received] == ["close"]


async def test_model_may_end_the_session() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.answer("Good bye.")
        session.end()

    async with live_run(agent_on(ScriptedLiveModel(server))) as run:
        run.write("Bye")
        assert (await run.left())[-2:] == ["TEXT Good bye.", "turn_complete"]


async def test_each_receive_is_one_turn_and_the_last_has_nothing() -> None:
    async def server(session: LiveSession) -> None:
        await session.answer("One.")
        await session.answer("Two.")
        session.end()

    async with ScriptedLiveModel(server).connect(LlmRequest()) as connection:
        turns = [[response.turn_complete async for response in connection.receive()] for _ in range(4)]
    assert turns == [[None, None, True], [None, None, True], [], []]


async def test_wrong_expectation_fails_the_run() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_response()

    async with live_run(agent_on(ScriptedLiveModel(server))) as run:
        run.write("Hello")
        with pytest.raises(AssertionError, match=r"The model expects response, and gets .*content"):
            await run.left()


async def test_expectation_that_the_close_leaves_open_is_told() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()

    model = ScriptedLiveModel(server)
    async with live_run(agent_on(model)) as run:
        assert await run.rest() == []
    with pytest.raises(AssertionError, match=r"The model expects content, and gets .*close"):
        await model.finished()


async def test_cancelled_run_leaves_no_task_behind() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("Wait")
        await asyncio.Event().wait()

    model = ScriptedLiveModel(server)
    async with live_run(agent_on(model)) as run:
        run.write("Hello")
        await run.until("text Wait")
    await model.finished()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_dropped_connection_is_a_close_too() -> None:
    async def server(session: LiveSession) -> None:
        await session.say("Wait")
        await session.expect("close")

    model = ScriptedLiveModel(server)
    async with live_run(agent_on(model)) as run:
        await run.until("text Wait")
    await model.finished()


async def test_model_that_waits_to_be_taken_knows_that_adk_came_back() -> None:
    begun = asyncio.Event()
    go_on = asyncio.Event()
    order: list[str] = []

    async def slow() -> str:
        """Takes its time."""
        begun.set()
        await go_on.wait()
        order.append("tool ends")
        return "done"

    async def server(session: LiveSession) -> None:
        await session.call("slow")
        await session.taken()
        order.append("taken")
        await session.answer("Done.")

    async with live_run(agent_on(ScriptedLiveModel(server, family="3"), slow)) as run:
        await run.until("call slow")
        await begun.wait()
        go_on.set()
        await run.until("turn_complete")
        assert await run.rest() == []
    assert order == ["tool ends", "taken"]


@pytest.mark.parametrize(
    "content",
    [
        types.Content(role="user", parts=[]),
        types.Content(
            role="user", parts=[types.Part(function_response=types.FunctionResponse(name="pay", response={}))]
        ),
    ],
    ids=["empty", "response without id"],
)
async def test_what_geminis_connection_refuses_is_refused(content: types.Content) -> None:
    """In `run_live` this is the end of ADK's sender."""
    session = LiveSession(LlmRequest())
    with pytest.raises((AssertionError, ValueError), match="Gemini's"):
        await session.connection.send_content(content)
    assert session.received == []
