"""Half an hour of talk, in the model's time: the service leaves every ten minutes, the user breaks in, connections are
lost, and a payment is approved. For the client it is one conversation, in which nothing is missing or comes twice."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from google.adk.agents import LlmAgent
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.adk.live.talking_on import PENDING
from adk_stream_protocol.protocol.frames import SUBPROTOCOL
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer
from live.live_pages import LivePage, World, until
from support.apps import app_of, user_of
from support.fake_gemini_live import GEMINI_2_5, GEMINI_3, FakeGeminiLive, WireSession
from support.live_client import LiveClient, live_socket
from transports.live_apps import FRAME, own, speak, texts

both_families = pytest.mark.parametrize("name", [GEMINI_2_5, GEMINI_3])

MINUTES = 31
"""One more than the half hour, to be talked in after the last GoAway."""
UTTERANCE = 10 * FRAME
"""Bytes of voice that make a minute of the model's time."""
GOES_AWAY = {10: "in mid-answer", 20: "between answers", 30: "in mid-answer"}
INTERRUPTED = (3, 8, 14, 21, 27)
GOES_ON, LOST = 12, 24
"""Minutes in which the connection is cut in mid-answer. The service goes on with the first answer only."""
PAYS = 17
LOST_ANSWER = "The connection to the model was lost during this answer. Send your message again."


def utterance(minute: int) -> bytes:
    return bytes([minute, 1]) * (UTTERANCE // 2)


def voice(minute: int, half: int) -> bytes:
    """The model's."""
    return bytes([minute, 2 + half]) * 240


def halves(minute: int) -> tuple[str, str]:
    return f"This is the first half of answer {minute}, ", f"and this is the second of {minute}."


class VoiceService:
    """Gemini's side, whose clock is the voice that it hears. It keeps what was heard and said, also across its
    connections."""

    def __init__(self) -> None:
        self.talk: list[tuple[str, str]] = []
        self.voice = b""
        """What the client should hear."""
        self._minute = 0
        self._handle: str | None = None
        self._is_asked = False
        self._unsaid: int | None = None

    def __call__(self, session: WireSession) -> None:
        assert session.handle == self._handle
        if self._unsaid is not None:
            self._say(session, self._unsaid, 1)
            session.turn_complete()
        while self._is_asked or self._minute < MINUTES:
            if not self._is_asked:
                self._listen(session)
            self._is_asked = False
            if not self._answer(session, self._minute):
                break

    def _listen(self, session: WireSession) -> None:
        """A minute passes."""
        heard = b""
        while len(heard) < UTTERANCE:
            heard += session.expect_audio()
        self._minute += 1
        assert heard == utterance(self._minute)

    def _answer(self, session: WireSession, minute: int) -> bool:
        """False: the connection ends with it."""
        self._tell_heard(session, minute)
        self._handle = f"handle-{minute}"
        session.resumable(self._handle)
        self.talk.append(("assistant", ""))
        self._say(session, minute, 0)
        if minute in INTERRUPTED:
            self._listen(session)
            self._is_asked = True
            session.interrupted()
            session.audio(b"\0\0" * 100)  # was on its way
            session.turn_complete()
            return True
        if minute in (GOES_ON, LOST):
            self._unsaid = minute if minute == GOES_ON else None
            session.cut()
            return False
        if minute == PAYS:
            session.call("pay", {"amount": 5})
            if session.family == "2.5":  # it takes late answers
                assert [answer["response"] for answer in session.expect_responses()] == [PENDING]
            assert [answer["response"] for answer in session.expect_responses()] == [{"paid": 5}]
        if GOES_AWAY.get(minute) == "in mid-answer":
            session.go_away("10s")
        self._say(session, minute, 1)
        session.generation_complete()
        session.turn_complete()
        if GOES_AWAY.get(minute) == "between answers":
            session.go_away("10s")
        return minute not in GOES_AWAY

    def _tell_heard(self, session: WireSession, minute: int) -> None:
        self.talk.append(("user", f"Question {minute}?"))
        if session.family == "2.5":
            session.input_transcript("Question ")
            session.input_transcript(f"{minute}?", finished=True)
        else:
            session.input_transcript(f"Question {minute}?")

    def _say(self, session: WireSession, minute: int, half: int) -> None:
        role, said = self.talk[-1]
        self.talk[-1] = role, said + halves(minute)[half]
        self.voice += voice(minute, half)
        self._unsaid = None
        session.audio(voice(minute, half))
        session.output_transcript(halves(minute)[half])


@asynccontextmanager
async def spoken_page(gemini: FakeGeminiLive, name: str, paid: list[int]) -> AsyncGenerator[LivePage]:
    def pay(amount: int) -> dict[str, int]:
        """Pays."""
        paid.append(amount)
        return {"paid": amount}

    model, store = gemini.live_model(name), MemoryStore()
    bridge = ChatBridge(
        LlmAgent(name="helper", model=model, tools=[FunctionTool(pay, require_confirmation=True)]),
        user_id=user_of,
        store=store,
        session_service=InMemorySessionService(),
        limits=Limits(live_resume_s=2),
    )
    world = World(bridge, app_of(bridge), store, model)  # pyright: ignore
    async with live_socket(world.app, client=LiveClient("c1"), subprotocols=(SUBPROTOCOL,)) as client:
        client.tell("attach", id="c1")
        await client.own("attached")
        yield LivePage(world, client)
    await bridge.aclose()


async def talk_for_half_an_hour(page: LivePage, gemini: FakeGeminiLive) -> dict[int, Answer]:
    """The person's side. Gives the answers by their minutes."""
    reading: dict[int, asyncio.Task[Answer]] = {}
    connections = 1
    for minute in range(1, MINUTES + 1):
        speak(page.client, utterance(minute))
        if minute - 1 in INTERRUPTED:
            await reading[minute - 1]
        reading[minute] = asyncio.create_task(page.unasked_turn())
        if minute in INTERRUPTED:
            await until_said(page.client, halves(minute)[0])
            continue
        await reading[minute]
        if minute == PAYS:
            page.decide("pay")
            await page.answer()
        if minute in (*GOES_AWAY, GOES_ON, LOST):  # voice on a connection that ends is lost
            connections += 1
            await until(lambda wanted=connections: len(gemini.sessions) == wanted)
    return {minute: task.result() for minute, task in reading.items()}


async def until_said(client: LiveClient, text: str) -> None:
    await client.until(lambda: any(frame["text"] == text for frame in own(client, "transcript")))


def told_transcripts(client: LiveClient) -> list[tuple[str, str]]:
    """The whole texts of all messages, in the order in which they were begun."""
    told: dict[tuple[str, str], str] = {}
    for frame in own(client, "transcript"):
        message = frame["role"], frame["messageId"]
        told[message] = told.get(message, "") + (frame["text"] if frame["final"] else "")
    return [(role, text) for (role, _), text in told.items()]


@both_families
async def test_half_an_hour_of_talk_is_one_conversation(name: str) -> None:
    service, paid = VoiceService(), list[int]()
    with FakeGeminiLive(service) as gemini:
        async with spoken_page(gemini, name, paid) as page:
            answers = await talk_for_half_an_hour(page, gemini)
            client, history = page.client, await page.chat.messages()
            session = await page.chat.session()
            assert session is not None

    # The transcript is complete, in order, and the same for those who listen, read and reload.
    assert len(service.talk) == 2 * MINUTES
    assert texts(history) == service.talk
    assert told_transcripts(client) == service.talk
    assert [message for message in history if message["role"] == "assistant"] == page.messages
    assert len({message["id"] for message in history}) == len(history)
    assert b"".join(client.binary) == service.voice

    # Each turn was told once. Only the lost answer failed, and the payment was made once.
    assert len(own(client, "turn")) == MINUTES
    ends = {minute: answer.chunks[-1] for minute, answer in answers.items()}
    assert [minute for minute, end in ends.items() if end["type"] != "finish"] == [LOST]
    assert ends[LOST]["errorText"] == LOST_ANSWER
    cut = [minute for minute, end in ends.items() if end.get("messageMetadata", {}).get("interrupted")]
    assert cut == list(INTERRUPTED)
    assert len(own(client, "audio-clear")) == len(INTERRUPTED)
    assert paid == [5]
    assert page.states() == ["output-available"]

    # For the client it was one session, for ADK one run, for the service one conversation.
    others = {"attached", "voice", "turn", "transcript", "audio", "audio-clear"}
    assert {frame["type"] for frame in client.frames["-"]} <= others
    assert len({event.invocation_id for event in session.events}) == 1
    assert len(gemini.sessions) == 1 + len(GOES_AWAY) + len((GOES_ON, LOST))
