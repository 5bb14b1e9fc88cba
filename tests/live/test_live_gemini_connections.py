"""What ADK's own Gemini class drops or does at once - cancelled calls, lost words, refusals - behind the bridge, over a
real TLS socket to a service that plays Gemini Live."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models import Gemini
from google.adk.tools import FunctionTool
from google.genai import types

from adk_stream_protocol import ChatBridge, Limits
from support.apps import app_of, user_of
from support.fake_gemini_live import GEMINI_2_5, GEMINI_3, FakeGeminiLive, WireSession
from support.live_client import LiveClient, live_socket

# ADK sends what is typed to a 2.5 model in a way that google-genai would rather not have any more.
pytestmark = pytest.mark.filterwarnings("ignore:The `session.send` method is deprecated:DeprecationWarning")

both_families = pytest.mark.parametrize("name", [GEMINI_2_5, GEMINI_3])
each_end = pytest.mark.parametrize("end", ["cut", "go away", "1011"])

WITHDRAWN = "This call was not run: the model withdrew it before it began."
LOST_ANSWER = "The connection to the model was lost during this answer. Send your message again."
NOT_SUPPORTED = (
    "models/gemini-2.5-flash is not found for API version v1alpha, or is not supported for bidiGenerateContent. Call"
)


class Bridged:
    def __init__(self, client: LiveClient, bridge: ChatBridge, paid: list[int]) -> None:
        self.client = client
        self.bridge = bridge
        self.paid = paid

    @property
    def has_handle(self) -> bool:
        """Whether ADK could resume the conversation."""
        (live,) = self.bridge._service._live._runs.values()  # pyright: ignore
        return bool(live._models._words._handles)  # pyright: ignore


def play(
    service: Callable[[WireSession], None],
    scenario: Callable[[Bridged], Coroutine[Any, Any, None]],
    name: str,
    **limits: Any,
) -> FakeGeminiLive:
    async def played(gemini: FakeGeminiLive) -> None:
        def pay(amount: int) -> dict[str, int]:
            """Pays."""
            paid.append(amount)
            return {"paid": amount}

        paid: list[int] = []
        bridge = ChatBridge(
            LlmAgent(
                name="helper", model=gemini.live_model(name), tools=[FunctionTool(pay, require_confirmation=True)]
            ),
            user_id=user_of,
            run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
            limits=Limits(**limits),
            live_while_waiting="refuse",
        )
        async with asyncio.timeout(30):
            async with live_socket(app_of(bridge)) as client:
                await scenario(Bridged(client, bridge, paid))
            await bridge.aclose()

    with FakeGeminiLive(service) as gemini:
        asyncio.run(played(gemini))
    return gemini


def end_of(session: WireSession, end: str) -> None:
    if end == "cut":
        session.cut()
    elif end == "go away":
        session.go_away("1s")
    else:
        session.close(1011)


def answer(session: WireSession, said: str) -> None:
    session.text(said)
    session.turn_complete()


def errors_of(told: Any) -> list[str]:
    return [chunk["errorText"] for chunk in told.chunks if chunk["type"] in ("tool-output-error", "error")]


# -- calls that the model takes back ----------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("at_once", [True, False], ids=["before anybody is asked", "while somebody is asked"])
def test_a_cancelled_call_is_withdrawn_while_adk_waits_for_it(name: str, at_once: bool) -> None:
    is_asked = threading.Event()

    def service(session: WireSession) -> None:
        session.expect_text()
        session.call("pay", {"amount": 5})
        if not at_once:
            assert is_asked.wait(20)
        session.cancel("call-1")
        session.interrupted()
        session.turn_complete()
        assert session.expect_text() == "And now?"  # and no response: the service expects none
        answer(session, "All right, I will not pay.")

    async def scenario(at: Bridged) -> None:
        asked = await at.client.say("Pay five.")
        told = asked
        if not errors_of(asked):  # which is up to the network where the call is cancelled at once
            is_asked.set()
            await at.client.own("turn")
            told = await at.client.resume()
        assert (errors_of(told), told.text) == ([WITHDRAWN], "")
        if told is not asked:
            late = await at.client.decide(asked, approved=True)
            assert (late.status, errors_of(late)) == (200, [WITHDRAWN])
        assert (await at.client.say("And now?")).text == "All right, I will not pay."
        assert at.paid == []
        assert [entry.state for entry in await at.bridge.audit("ann", "chat-1")] == ["pending", "withdrawn"]

    play(service, scenario, name)


def test_words_before_the_end_of_an_interrupted_turn_get_the_answer_that_comes_after_it() -> None:
    """An older model ends the half of a turn in which it called a tool, and with it goes the message."""

    def service(session: WireSession) -> None:
        session.expect_text()
        with session.in_one_write():  # before anybody is asked
            session.call("pay", {"amount": 5})
            session.cancel("call-1")
            session.interrupted()
        assert session.expect_text() == "And now?"
        session.turn_complete()  # of what was interrupted
        answer(session, "All right, I will not pay.")

    async def scenario(at: Bridged) -> None:
        asked = await at.client.say("Pay five.")
        assert errors_of(asked) == [WITHDRAWN]
        assert (await at.client.say("And now?")).text == "All right, I will not pay."

    play(service, scenario, GEMINI_2_5)


# -- lost connections -------------------------------------------------------------------------------------------------


@both_families
@each_end
def test_words_after_the_handle_are_sent_again_to_the_service_and_no_others(name: str, end: str) -> None:
    got: list[str] = []

    def service(session: WireSession) -> None:
        if session.number == 1:
            got.append(session.expect_text())
            answer(session, "One.")
            session.resumable("handle-1")
            got.append(session.expect_text())
            session.text("Half ")
            end_of(session, end)
            return
        assert session.handle == "handle-1"
        got.append(session.expect_text())
        answer(session, "a whole.")

    async def scenario(at: Bridged) -> None:
        assert (await at.client.say("First")).text == "One."
        while not at.has_handle:
            await asyncio.sleep(0.001)
        told = await at.client.say("Second")
        assert (told.types[-1], told.text) == ("finish", "Half a whole.")

    gemini = play(service, scenario, name)
    assert got == ["First", "Second", "Second"]
    assert len(gemini.sessions) == 2


@both_families
@each_end
def test_an_answer_that_the_service_does_not_go_on_with_fails_and_the_session_lives(name: str, end: str) -> None:
    def service(session: WireSession) -> None:
        if session.number == 1:
            session.expect_text()
            session.resumable("handle-1")
            session.text("The first half ")
            end_of(session, end)
            return
        assert session.expect_text() == "Again"
        answer(session, "Whole.")

    async def scenario(at: Bridged) -> None:
        told = await at.client.say("Tell me")
        assert (errors_of(told), told.text) == ([LOST_ANSWER], "The first half ")
        assert (await at.client.say("Again")).text == "Whole."

    gemini = play(service, scenario, name, live_resume_s=0.3)
    assert len(gemini.sessions) == 2


# -- models without live mode -----------------------------------------------------------------------------------------


@both_families
def test_a_model_that_the_service_has_no_live_mode_for_is_refused_with_a_sentence_that_says_so(name: str) -> None:
    def service(session: WireSession) -> None:
        session.close(1008, NOT_SUPPORTED)

    async def scenario(at: Bridged) -> None:
        told = await at.client.say("Hello")
        (text,) = errors_of(told)
        assert text.startswith("This agent's model has no live mode. ")
        assert (await at.client.own("error"))["code"] == "no-live-mode"

    play(service, scenario, name)


# -- where the watch is -----------------------------------------------------------------------------------------------


def test_a_watched_model_is_what_it_was_and_so_are_its_copies() -> None:
    def service(session: WireSession) -> None:
        session.expect_text()
        answer(session, "Yes.")

    models: list[Gemini] = []

    async def played(gemini: FakeGeminiLive) -> None:
        model = gemini.live_model(GEMINI_3)
        models.append(model)
        agent = LlmAgent(name="helper", model=model)
        config = RunConfig(response_modalities=[types.Modality.TEXT])
        bridge = ChatBridge(agent, user_id=user_of, run_config=config)
        async with asyncio.timeout(30):
            async with live_socket(app_of(bridge)) as client:
                assert (await client.say("Hello")).text == "Yes."
            await bridge.aclose()

    with FakeGeminiLive(service) as gemini:
        asyncio.run(played(gemini))
    (model,) = models
    assert isinstance(model, Gemini)
    assert type(model).__name__ == "Gemini"
    copy = model.model_copy(update={"model": GEMINI_2_5})
    assert (copy.model, model.model) == (GEMINI_2_5, GEMINI_3)
    assert copy.connect.__self__ is copy  # pyright: ignore
