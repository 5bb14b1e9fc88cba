"""ADK's own Gemini class in plain `Runner.run_live`, from the frames that Google sends: what live mode builds on.

Several of these tests hold what ADK does today rather than what anybody would wish. When one fails after an upgrade,
the code that works around it can go.
"""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.sessions import InMemorySessionService
from google.genai import types

from support.fake_gemini_live import GEMINI_2_5, GEMINI_3, FakeGeminiLive, Service, WireSession
from support.live_runs import live_run

# ADK sends what is typed to a 2.5 model in a way that google-genai would rather not have any more.
pytestmark = pytest.mark.filterwarnings("ignore:The `session.send` method is deprecated:DeprecationWarning")

AUDIO = types.Modality.AUDIO
PAY = 'call pay {"amount": 1}'
PAID = 'response pay {"paid": 1}'

both_families = pytest.mark.parametrize("name", [GEMINI_2_5, GEMINI_3])


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


def agent_on(model: Gemini, *tools: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=model, tools=list(tools) or [pay])


def answer(session: WireSession, said: str) -> None:
    session.text(said)
    session.turn_complete()


async def answers_to_hello(service: Service, name: str, last: str) -> list[str]:
    """What comes until the turn ends in which this line comes."""
    with FakeGeminiLive(service) as gemini:
        async with live_run(agent_on(gemini.live_model(name))) as run:
            run.write("Hello")
            lines = await run.until(last) + await run.until("turn_complete")
            assert await run.rest() == []
            return lines


# -- turns ------------------------------------------------------------------------------------------------------------


@both_families
async def test_text_comes_in_pieces_and_then_whole(name: str) -> None:
    def service(session: WireSession) -> None:
        assert session.setup["model"] == f"models/{name}"
        assert session.setup["generationConfig"] == {"responseModalities": ["TEXT"]}
        assert session.expect_text() == "Hello"
        session.text("Hm. ", thought=True)
        session.text("Good ")
        session.text("day.")
        session.usage(7, 2)
        session.generation_complete()
        session.turn_complete()
        assert session.expect_close() == 1000

    assert await answers_to_hello(service, name, "TEXT") == [
        "thought Hm. ",
        "THOUGHT Hm. ",
        "text Good ",
        "text day.",
        "usage 7, 2",
        "TEXT Good day.",
        "turn_complete",
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (GEMINI_2_5, [PAY, PAID, "turn_complete", "text Paid.", "TEXT Paid.", "turn_complete"]),
        (GEMINI_3, [PAY, PAID, "text Paid.", "TEXT Paid.", "turn_complete"]),
    ],
)
async def test_call_is_made_and_its_response_sent(name: str, told: list[str]) -> None:
    def service(session: WireSession) -> None:
        session.expect_text()
        session.call("pay", {"amount": 1}, "call-1")
        assert session.expect_responses() == [{"id": "call-1", "name": "pay", "response": {"paid": 1}}]
        answer(session, "Paid.")

    assert await answers_to_hello(service, name, "TEXT") == told


@pytest.mark.parametrize(
    ("name", "told", "messages"),
    [
        (GEMINI_2_5, [f"{PAY} + {PAY}", f"{PAID} + {PAID}"], 1),
        (GEMINI_3, [PAY, PAID, PAY, PAID], 2),
    ],
)
async def test_only_2_5_has_the_calls_of_several_messages_made_together(
    name: str, told: list[str], messages: int
) -> None:
    def service(session: WireSession) -> None:
        session.expect_text()
        for call_id in ("call-1", "call-2"):
            call = {"id": call_id, "name": "pay", "args": {"amount": 1}}
            session.send({"toolCall": {"functionCalls": [call]}})
        if session.family == "2.5":
            session.turn_complete()
        for _ in range(messages):
            session.expect_responses()
        answer(session, "Paid.")

    lines = await answers_to_hello(service, name, "TEXT")
    assert [line for line in lines if line.startswith(("call", "response"))] == told


@both_families
async def test_cancelled_call_is_made_all_the_same(name: str) -> None:
    """ADK does not know the message, so whoever asks a person has to look after this himself."""

    def service(session: WireSession) -> None:
        session.expect_text()
        session.call("pay", {"amount": 1})
        session.cancel("call-1")
        assert session.expect_responses()[0]["response"] == {"paid": 1}
        answer(session, "Paid.")

    lines = await answers_to_hello(service, name, "TEXT")
    assert lines[:2] == [PAY, PAID]


@pytest.mark.parametrize(
    ("name", "heard"),
    [(GEMINI_2_5, ["hearing Good ", "hearing day", "heard Good day"]), (GEMINI_3, ["heard Good day"])],
)
async def test_speech_and_voice_come_with_their_transcripts(name: str, heard: list[str]) -> None:
    def service(session: WireSession) -> None:
        assert session.expect_audio() == b"\1\0\2\0"
        if session.family == "2.5":
            session.input_transcript("Good ")
            session.input_transcript("day", finished=True)
        else:
            session.input_transcript("Good day")
        session.audio(b"\3\0\4\0")
        session.output_transcript("And ")
        session.output_transcript("to you")
        session.generation_complete()
        session.turn_complete()

    with FakeGeminiLive(service) as gemini:
        async with live_run(agent_on(gemini.live_model(name)), modality=AUDIO) as run:
            run.speak(b"\1\0\2\0")
            voice = ["audio 4 audio/pcm;rate=24000", "saying And ", "saying to you", "said And to you"]
            assert await run.until("turn_complete") == [*heard, *voice, "turn_complete"]
            assert await run.rest() == []


@both_families
async def test_signals_of_speech_reach_the_service(name: str) -> None:
    def service(session: WireSession) -> None:
        assert session.expect("realtime_input") == {"activityStart": {}}
        assert session.expect("realtime_input") == {"activityEnd": {}}
        assert session.expect("realtime_input") == {"audioStreamEnd": True}
        answer(session, "Yes?")

    with FakeGeminiLive(service) as gemini:
        async with live_run(agent_on(gemini.live_model(name))) as run:
            run.queue.send_activity_start()
            run.queue.send_activity_end()
            run.queue.send_audio_stream_end()
            await run.until("turn_complete")
            assert await run.rest() == []


@both_families
async def test_interruption_ends_what_was_said_so_far(name: str) -> None:
    def service(session: WireSession) -> None:
        session.expect_text()
        session.text("Once upon ")
        session.interrupted()
        session.turn_complete()
        session.audio(b"\1\0")
        session.output_transcript("Once")
        session.interrupted()
        session.turn_complete()

    assert await answers_to_hello(service, name, "interrupted") == [
        "text Once upon ",
        "TEXT Once upon  + interrupted",
        "turn_complete",
        "audio 2 audio/pcm;rate=24000",
        "saying Once",
        "said Once",
        "interrupted",
        "turn_complete",
    ]


# -- history ----------------------------------------------------------------------------------------------------------


async def two_runs(name: str, session_id: str | None) -> tuple[WireSession, list[dict[str, Any]]]:
    """The second run's session, and the history that ADK sent in it."""
    histories: list[dict[str, Any]] = []

    def service(session: WireSession) -> None:
        session.accept(session_id)
        if session.number == 2:
            histories.append(session.expect("client_content"))
            return
        session.expect_text()
        answer(session, "Good day.")

    with FakeGeminiLive(service) as gemini:
        sessions = InMemorySessionService()
        async with live_run(agent_on(gemini.live_model(name)), sessions=sessions) as run:
            run.write("Hello")
            await run.until("turn_complete")
            assert {event.live_session_id for event in run.events} == {session_id}
            await run.rest()
        async with live_run(agent_on(gemini.live_model(name)), sessions=sessions) as run:
            assert await run.rest() == []
    return gemini.sessions[1], histories


@both_families
async def test_new_run_begins_with_the_history(name: str) -> None:
    session, histories = await two_runs(name, None)
    assert session.setup["historyConfig"] == {"initial_history_in_client_content": True}
    assert histories == [
        {
            "turns": [
                {"role": "user", "parts": [{"text": "Hello"}]},
                {"role": "model", "parts": [{"text": "Good day."}]},
            ],
            "turnComplete": False,
        }
    ]


@both_families
async def test_session_id_of_the_service_makes_history_end_with_the_user(name: str) -> None:
    """So the model would speak unprompted with each connection."""
    session, histories = await two_runs(name, "session-1")
    (history,) = histories
    assert [turn["role"] for turn in history["turns"]] == ["user", "user"]
    quoted = history["turns"][1]["parts"][-1]["text"]
    assert quoted.startswith("[helper] said:")
    assert "Good day." in quoted
    assert history["turnComplete"] is True
    assert ({"realtime_input": {"text": "."}} in session.received) == (name == GEMINI_3)
