"""The fake Live API as a client sees it, and the scripted live model beside ADK's own Gemini."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.genai import types
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close

from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from support.fake_gemini import finish, text
from support.fake_gemini_live import GEMINI_2_5, GEMINI_3, FakeGeminiLive, Left, WireSession
from support.live_runs import live_run

PATH = "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContent"


class Client:
    """A bare client, a step at a time.

    Not `websockets.sync`: it reads and writes one TLS connection from two threads, and now and then OpenSSL loses the
    request then.
    """

    def __init__(self, loop: asyncio.Runner, connection: ClientConnection) -> None:
        self._loop = loop
        self._connection = connection

    def set_up(self, name: str = GEMINI_2_5, **setup: Any) -> Any:
        self.send({"setup": {"model": f"models/{name}", **setup}})
        return self.received()

    def send(self, message: Any) -> None:
        self._loop.run(self._connection.send(json.dumps(message)))

    def received(self) -> Any:
        return json.loads(self._loop.run(asyncio.wait_for(self._connection.recv(), 10)))

    def ping(self) -> None:
        async def answered() -> None:
            await asyncio.wait_for(await self._connection.ping(), 10)

        self._loop.run(answered())

    @property
    def close_received(self) -> Close | None:
        return self._connection.protocol.close_rcvd


@contextmanager
def opened(gemini: FakeGeminiLive, *, path: str = PATH, key: str = "any-key") -> Iterator[Client]:
    url = gemini.base_url.replace("https", "wss") + path

    async def connection() -> ClientConnection:
        headers = {"x-goog-api-key": key}
        return await connect(url, ssl=gemini.client_tls, additional_headers=headers, proxy=None, open_timeout=60)

    with asyncio.Runner() as loop:
        connected = loop.run(connection())
        yield Client(loop, connected)
        loop.run(connected.close())


# -- the wire ---------------------------------------------------------------------------------------------------------


def test_setup_is_completed_and_kept() -> None:
    def service(session: WireSession) -> None:
        session.accept("session-1")
        assert session.handle == "handle-1"
        assert session.family == "3"

    with FakeGeminiLive(service) as gemini, opened(gemini) as client:
        told = client.set_up(GEMINI_3, sessionResumption={"handle": "handle-1"})
    assert told == {"setupComplete": {"sessionId": "session-1"}}
    assert gemini.sessions[0].close_code == 1000


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (GEMINI_2_5, [["toolCall"], ["serverContent"]]),
        ("gemini-live-2.5-flash", [["toolCall"], ["serverContent"]]),
        (GEMINI_3, [["toolCall"]]),
    ],
)
def test_turn_of_2_5_ends_with_its_calls(name: str, sent: list[list[str]]) -> None:
    def service(session: WireSession) -> None:
        session.call("pay", {"amount": 1})
        session.go_away()

    with FakeGeminiLive(service) as gemini, opened(gemini) as client:
        client.set_up(name)
        messages = [client.received() for _ in range(len(sent) + 1)]
    assert [list(message) for message in messages] == [*sent, ["goAway"]]
    assert messages[0]["toolCall"] == {"functionCalls": [{"id": "call-1", "name": "pay", "args": {"amount": 1}}]}


def test_what_the_client_sends_is_kept() -> None:
    def service(session: WireSession) -> None:
        assert session.expect("tool_response") == {"functionResponses": []}
        session.turn_complete()

    with FakeGeminiLive(service) as gemini, opened(gemini) as client:
        client.set_up()
        client.send({"tool_response": {"functionResponses": []}})
        client.received()
        client.send({"realtime_input": {"text": "unexpected, and unread"}})
    assert gemini.sessions[0].received == [
        {"tool_response": {"functionResponses": []}},
        {"realtime_input": {"text": "unexpected, and unread"}},
    ]


@pytest.mark.parametrize("code", [1000, 1008, 1011])
def test_service_closes_with_a_code(code: int) -> None:
    with FakeGeminiLive(lambda session: session.close(code, "why")) as gemini, opened(gemini) as client:
        with pytest.raises(ConnectionClosed):
            client.set_up()
        assert client.close_received == Close(code, "why")


def test_cut_connection_has_no_close_frame() -> None:
    def service(session: WireSession) -> None:
        session.accept()
        session.cut()

    with FakeGeminiLive(service) as gemini, opened(gemini) as client:
        assert client.set_up() == {"setupComplete": {}}
        with pytest.raises(ConnectionClosed):
            client.received()
        assert client.close_received is None


def test_pings_are_answered_while_the_service_expects_something() -> None:
    def service(session: WireSession) -> None:
        session.accept()
        session.expect_pings(2)
        session.go_away()

    with FakeGeminiLive(service) as gemini, opened(gemini) as client:
        client.set_up()
        client.ping()
        client.ping()
        assert client.received() == {"goAway": {"timeLeft": "5s"}}


def test_each_connection_has_a_number() -> None:
    with FakeGeminiLive(lambda session: session.text(str(session.number))) as gemini:
        for number in ("1", "2"):
            with opened(gemini) as client:
                client.set_up()
                assert client.received()["serverContent"]["modelTurn"]["parts"] == [{"text": number}]


def test_failed_expectation_closes_the_connection_and_is_raised_at_the_end() -> None:
    def service(session: WireSession) -> None:
        session.expect("tool_response")

    def write_instead() -> None:
        with FakeGeminiLive(service) as gemini, opened(gemini) as client:
            client.set_up()
            client.send({"realtime_input": {"text": "Hello"}})
            with pytest.raises(ConnectionClosed) as closed:
                client.received()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1011

    with pytest.raises(AssertionError, match="The service expects tool_response, and gets"):
        write_instead()


def test_client_that_leaves_before_what_is_expected_is_a_failure_too() -> None:
    def service(session: WireSession) -> None:
        session.expect_text()

    with pytest.raises(Left), FakeGeminiLive(service) as gemini, opened(gemini) as client:
        client.set_up()


@pytest.mark.parametrize("wrong", [{"path": "/ws/other"}, {"key": "other-key"}])
def test_other_doors_are_closed(wrong: dict[str, str]) -> None:
    with FakeGeminiLive(lambda session: None) as gemini, pytest.raises(InvalidStatus), opened(gemini, **wrong):
        pass
    assert gemini.sessions == []


def test_requests_are_answered_on_the_same_port() -> None:
    async def ask() -> list[str | None]:
        content = types.Content(role="user", parts=[types.Part(text="Hi")])
        model = gemini.live_model("gemini-2.5-flash", max_queue=None)
        responses = model.generate_content_async(LlmRequest(model=model.model, contents=[content]))
        return [
            part.text async for response in responses for part in (response.content and response.content.parts) or []
        ]

    with FakeGeminiLive(lambda session: None, turns=[[text("Hello"), finish()]]) as gemini:
        assert "Hello" in asyncio.run(ask())


# -- the scripted live model beside Gemini ----------------------------------------------------------------------------


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


async def scripted(session: LiveSession) -> None:
    await session.expect_text()
    await session.say("Let me see. ", thought=True)
    await session.say("One moment.")
    made = [types.FunctionCall(id=f"call-{amount}", name="pay", args={"amount": amount}) for amount in (1, 2)]
    await session.calls(*(types.Part(function_call=call) for call in made))
    assert [response.id for response in await session.expect_responses()] == ["call-1", "call-2"]
    await session.usage(7, 2)
    await session.resumption_handle("handle-1")
    await session.say("Paid.")
    await session.turn_complete(interaction_status=types.InteractionStatus.IDLE)
    assert (await session.expect_audio()).data == b"\1\0"
    await session.input_transcript("And now?")
    await session.audio(b"\2\0")
    await session.output_transcript("Once ")
    await session.output_transcript("upon")
    await session.interrupted()
    await session.turn_complete()
    await session.say("A time")
    await session.interrupted()
    await session.turn_complete(turn_complete_reason=types.TurnCompleteReason.NEED_MORE_INPUT)


def on_the_wire(session: WireSession) -> None:
    session.expect_text()
    for word in ("Let ", "me ", "see. "):
        session.text(word, thought=True)
    session.text("One ")
    session.text("moment.")
    session.calls(("pay", {"amount": 1}, "call-1"), ("pay", {"amount": 2}, "call-2"))
    assert [response["id"] for response in session.expect_responses()] == ["call-1", "call-2"]
    session.usage(7, 2)
    session.resumable("handle-1")
    session.text("Paid.")
    session.turn_complete(interactionStatus="IDLE")
    assert session.expect_audio() == b"\1\0"
    session.input_transcript("And now?")
    session.audio(b"\2\0")
    session.output_transcript("Once ")
    session.output_transcript("upon")
    session.interrupted()
    session.turn_complete()
    session.text("A ")
    session.text("time")
    session.interrupted()
    session.turn_complete(turnCompleteReason="NEED_MORE_INPUT")


@pytest.mark.filterwarnings("ignore:The `session.send` method is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("name", "family"), [(GEMINI_2_5, "2.5"), (GEMINI_3, "3")])
async def test_scripted_model_gives_the_events_that_gemini_gives(name: str, family: str) -> None:
    with FakeGeminiLive(on_the_wire) as gemini:
        real = await events_of(lambda: gemini.live_model(name))
    ours = await events_of(lambda: ScriptedLiveModel(scripted, model=name, family=family))
    assert ours == real
    assert len(real) > 20


async def events_of(model: Callable[[], BaseLlm]) -> list[dict[str, Any]]:
    async with live_run(LlmAgent(name="helper", model=model(), tools=[pay])) as run:
        run.write("Pay 1 and 2")
        await run.until("TEXT Paid.")
        await run.until("turn_complete")
        run.speak(b"\1\0")
        for _ in range(2):
            await run.until("turn_complete")
        await run.rest()
    ours = {"id", "timestamp", "invocation_id"}
    return [event.model_dump(mode="json", exclude=ours, exclude_none=True) for event in run.events]
