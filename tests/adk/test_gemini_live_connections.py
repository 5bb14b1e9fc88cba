"""How connections of ADK's own Gemini class end in plain `Runner.run_live`, and what comes then."""

import asyncio
import re
import threading
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.genai import types
from google.genai.errors import APIError
from websockets.exceptions import ConnectionClosedError

from support.fake_gemini_live import GEMINI_2_5, GEMINI_3, FakeGeminiLive, WireSession
from support.live_runs import live_run

# ADK sends what is typed to a 2.5 model in a way that google-genai would rather not have any more.
pytestmark = pytest.mark.filterwarnings("ignore:The `session.send` method is deprecated:DeprecationWarning")

both_families = pytest.mark.parametrize("name", [GEMINI_2_5, GEMINI_3])


def agent_on(model: Gemini, *tools: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=model, tools=list(tools))


def answer(session: WireSession, said: str) -> None:
    session.text(said)
    session.turn_complete()


def end_of(session: WireSession, code: int) -> None:
    if code == 1006:
        session.cut()
    else:
        session.close(code)


@both_families
async def test_go_away_leads_to_a_new_connection_with_the_handle(name: str) -> None:
    def service(session: WireSession) -> None:
        session.expect_text()
        if session.number == 1:
            session.resumable("handle-1")
            answer(session, "First.")
            session.go_away()
        else:
            answer(session, "Second.")

    with FakeGeminiLive(service) as gemini:
        async with live_run(
            agent_on(gemini.live_model(name)), session_resumption=types.SessionResumptionConfig()
        ) as run:
            run.write("One")
            lines = await run.until("turn_complete")
            assert lines == ["handle handle-1", "text First.", "TEXT First.", "turn_complete"]
            while len(gemini.sessions) < 2:
                await asyncio.sleep(0.001)
            run.write("Two")
            assert await run.until("turn_complete") == ["text Second.", "TEXT Second.", "turn_complete"]
            assert await run.rest() == []
    assert [session.handle for session in gemini.sessions] == [None, "handle-1"]


@both_families
@pytest.mark.parametrize("code", [1000, 1006, 1011])
async def test_lost_connection_with_a_handle_is_opened_again_silently(name: str, code: int) -> None:
    def service(session: WireSession) -> None:
        if session.number == 1:
            session.resumable("handle-1")
            session.expect_text()
            session.text("Half a ")
            end_of(session, code)
        else:
            answer(session, "Whole.")

    with FakeGeminiLive(service) as gemini:
        async with live_run(
            agent_on(gemini.live_model(name)), session_resumption=types.SessionResumptionConfig()
        ) as run:
            run.write("Hello")
            assert await run.until("turn_complete") == [
                "handle handle-1",
                "text Half a ",  # which nothing takes back, and no turn ends
                "text Whole.",
                "TEXT Whole.",
                "turn_complete",
            ]
            assert await run.rest() == []
    assert [session.handle for session in gemini.sessions] == [None, "handle-1"]


@pytest.mark.parametrize("code", [1000, 1006, 1008, 1011])
async def test_lost_connection_without_a_handle_ends_the_run(code: int) -> None:
    def service(session: WireSession) -> None:
        session.expect_text()
        session.text("Half a ")
        end_of(session, code)

    with FakeGeminiLive(service) as gemini:
        async with live_run(agent_on(gemini.live_model())) as run:
            run.write("Hello")
            await run.until("text Half a ")
            if code == 1000:
                assert await run.left() == []
            else:
                with pytest.raises(APIError) as failed:
                    await run.left()
                assert failed.value.code == code
    assert len(gemini.sessions) == 1


async def test_connections_that_are_accepted_and_dropped_are_opened_again_without_end() -> None:
    """ADK counts only those that fail before they are accepted."""
    drops = 20

    def service(session: WireSession) -> None:
        session.accept()
        if session.number == 1:
            session.resumable("handle-1")
        if session.number <= drops:
            session.cut()
        else:
            answer(session, "At last.")

    with FakeGeminiLive(service) as gemini:
        async with live_run(agent_on(gemini.live_model()), session_resumption=types.SessionResumptionConfig()) as run:
            assert "TEXT At last." in await run.until("turn_complete")
            assert await run.rest() == []
    assert len(gemini.sessions) == drops + 1


async def test_connections_that_are_not_accepted_are_given_up_after_five() -> None:
    def service(session: WireSession) -> None:
        if session.number == 1:
            session.resumable("handle-1")
        session.close(1011)

    with FakeGeminiLive(service) as gemini:
        async with live_run(agent_on(gemini.live_model()), session_resumption=types.SessionResumptionConfig()) as run:
            with pytest.raises(APIError):
                await run.left()
    assert len(gemini.sessions) == 1 + 5


# -- a tool that takes long -------------------------------------------------------------------------------------------


async def while_a_tool_waits(pings: int, **websocket_options: Any) -> list[str]:
    """What comes when the service says much while a tool waits, and then pings go to and fro as many times."""
    waiting = threading.Event()
    go_on = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def ask() -> str:
        """Waits for a person."""
        loops.append(asyncio.get_running_loop())
        waiting.set()
        await go_on.wait()
        return "yes"

    def service(session: WireSession) -> None:
        session.expect_text()
        session.call("ask", {})
        assert waiting.wait(10)
        for number in range(40):
            session.text(f"{number} ")
        try:
            session.expect_pings(pings)
        finally:
            loops[0].call_soon_threadsafe(go_on.set)
        session.expect_responses()
        session.turn_complete()

    with FakeGeminiLive(service) as gemini:
        model = gemini.live_model(ping_interval=0.05, ping_timeout=1, **websocket_options)
        async with live_run(agent_on(model, ask)) as run:
            run.write("Ask somebody")
            await run.until("turn_complete")
            lines = await run.until("turn_complete")
            assert await run.rest() == []
            return lines


async def test_blocking_tool_costs_the_connection_when_the_service_goes_on_talking() -> None:
    """The client holds 16 messages and then reads no more, so that it misses the answer to its own ping."""
    # Which of them depends on whether ADK's sender or its receiver comes first.
    with pytest.raises((APIError, ConnectionClosedError)) as raised:
        await while_a_tool_waits(5)
    # google-genai says 1006 if the service did not answer the close frame in time. The reason is in what it caught.
    assert re.search(r"1011.* keepalive ping timeout", f"{raised.value} {raised.value.__context__}")


async def test_blocking_tool_is_harmless_where_the_client_may_hold_any_number_of_messages() -> None:
    lines = await while_a_tool_waits(5, max_queue=None)
    assert len([line for line in lines if line.startswith("text ")]) == 40
