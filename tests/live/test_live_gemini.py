"""The bridge on ADK's own Gemini class, over a real TLS socket to a service that plays Gemini Live."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools import FunctionTool
from google.genai import types

from adk_stream_protocol import ChatBridge, Limits
from support.apps import app_of, user_of
from support.fake_gemini_live import GEMINI_2_5, GEMINI_3, FakeGeminiLive, WireSession
from support.live_client import LiveClient, live_socket

# ADK sends what is typed to a 2.5 model in a way that google-genai would rather not have any more.
pytestmark = pytest.mark.filterwarnings("ignore:The `session.send` method is deprecated:DeprecationWarning")

both_families = pytest.mark.parametrize("name", [GEMINI_2_5, GEMINI_3])

KEEP_ALIVE_S = 0.05
PERIODS = 6
MESSAGES = 200


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


def play(
    service: Callable[[WireSession], None],
    scenario: Callable[[LiveClient], Coroutine[Any, Any, None]],
    name: str,
    **options: Any,
) -> None:
    async def played(gemini: FakeGeminiLive) -> None:
        model = gemini.live_model(name, ping_interval=KEEP_ALIVE_S, ping_timeout=1)
        bridge = ChatBridge(
            LlmAgent(name="helper", model=model, tools=[FunctionTool(pay, require_confirmation=True)]),
            user_id=user_of,
            run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
            **{"live_while_waiting": "refuse", **options},
        )
        async with asyncio.timeout(30):
            async with live_socket(app_of(bridge)) as client:
                await scenario(client)
            await bridge.aclose()

    with FakeGeminiLive(service) as gemini:
        asyncio.run(played(gemini))


@both_families
def test_a_session_outlives_a_person_who_takes_their_time_while_the_service_goes_on_talking(name: str) -> None:
    has_waited = threading.Event()

    def service(session: WireSession) -> None:
        assert session.expect_text() == "Pay five."
        session.call("pay", {"amount": 5})
        for number in range(MESSAGES):
            session.text(f"{number} ")
        session.expect_pings(PERIODS)
        has_waited.set()
        (answer,) = session.expect_responses()
        assert answer["response"] == {"paid": 5}
        session.text("Paid.")
        session.turn_complete()

    async def scenario(client: LiveClient) -> None:
        asked = await client.say("Pay five.")
        assert asked.types[-1] == "finish"
        assert await asyncio.to_thread(has_waited.wait, 20)
        told = await client.decide(asked, approved=True)
        assert told.types[:2] == ["start", "tool-output-available"]
        assert told.text.startswith("0 1 2 ")
        assert "Paid." in told.text or "Paid." in (await client.resume()).text

    play(service, scenario, name)


@both_families
def test_a_connection_that_is_lost_while_a_person_decides_is_taken_up_again(name: str) -> None:
    is_cut = threading.Event()

    def service(session: WireSession) -> None:
        if session.number == 1:
            assert session.expect_text() == "Pay five."
            session.resumable("handle-1")
            session.call("pay", {"amount": 5})
            session.cut()
            is_cut.set()
            return
        assert session.setup["sessionResumption"]["handle"] == "handle-1"
        session.expect_responses()
        session.text("Paid.")
        session.turn_complete()

    async def scenario(client: LiveClient) -> None:
        asked = await client.say("Pay five.")
        assert await asyncio.to_thread(is_cut.wait, 20)
        told = await client.decide(asked, approved=True)
        assert (told.types[1], told.text) == ("tool-output-available", "Paid.")

    play(service, scenario, name)


@both_families
def test_what_is_said_aloud_is_marked_and_thoughts_and_calls_around_it_are_not(name: str) -> None:
    def service(session: WireSession) -> None:
        session.expect_text()
        session.text("Hm. ", thought=True)
        session.output_transcript("One moment.")
        session.call("pay", {"amount": 5})
        session.expect_responses()
        session.text("Well. ", thought=True)
        session.output_transcript("Paid.")
        session.turn_complete()

    async def scenario(client: LiveClient) -> None:
        asked = await client.say("Pay five.")
        told = await client.decide(asked, approved=True)
        starts = [chunk for chunk in (*asked.chunks, *told.chunks) if chunk["type"].endswith("-start")]
        marked = [chunk["type"] for chunk in starts if "transcript" in chunk.get("providerMetadata", {}).get("adk", {})]
        assert marked == ["text-start", "text-start"]
        (call,) = (chunk for chunk in asked.chunks if chunk["type"] == "tool-input-available")
        assert "providerMetadata" not in call

    play(service, scenario, name)


def test_a_service_that_takes_us_in_and_throws_us_out_ends_the_session_with_an_error() -> None:
    def service(session: WireSession) -> None:
        if session.number == 1:
            session.expect_text()
        session.resumable("handle-1")
        session.cut()

    async def scenario(client: LiveClient) -> None:
        told = await client.say("Hello")
        # ADK gives up by itself where a connection is lost before it has a handle.
        assert told.chunks[-1]["type"] == "error"
        assert told.chunks[-1]["errorText"] in (
            "The connection to the model was lost. Send your message again.",
            "The agent could not answer. Try again.",
        )

    play(service, scenario, GEMINI_3, limits=Limits(live_backoff_s=0.01))
