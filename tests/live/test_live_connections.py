"""Connections to the model that are lost, refused or dropped, as a live session's clients see it."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from websockets.exceptions import ConnectionClosedError

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import LiveSession
from support import live_client
from transports.live_apps import live_app, own, ping, sound, texts

pytestmark = pytest.mark.virtual_time

LOST = "The connection to the model was lost. Send your message again."
LOST_ANSWER = "The connection to the model was lost during this answer. Send your message again."
LONGER_THAN_ANY_PAUSE_S = 1000


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_client, "PATIENCE_S", LONGER_THAN_ANY_PAUSE_S)


def now() -> float:
    return asyncio.get_running_loop().time()


def cut(session: LiveSession) -> None:
    session.fail(ConnectionClosedError(None, None))


async def answer_everything(session: LiveSession, said: list[str] | None = None) -> None:
    while (received := await session.expect()).kind != "close":
        if received.asks_for_reply:
            if said is not None:
                said.append(received.text)
            await session.answer("Yes.")


WAYS: dict[str, Callable[[LiveSession], Any]] = {"cut": cut, "go away": lambda session: session.go_away()}
each_way = pytest.mark.parametrize("way", WAYS)


async def lose(session: LiveSession, way: str) -> None:
    lost = WAYS[way](session)
    if lost is not None:
        await lost
    while (await session.expect()).kind != "close":
        pass


# -- words ------------------------------------------------------------------------------------------------------------


async def test_words_under_which_the_connection_breaks_are_sent_again() -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await answer_everything(session, said)
            return
        await session.resumption_handle("h1")
        error = ConnectionClosedError(None, None)

        async def broken(*_: Any, **__: Any) -> None:
            session.fail(error)  # the receiver notices at the same moment
            raise error

        session.connection._send_content = broken  # pyright: ignore
        await session.expect("close")

    said: list[str] = []
    async with live_app(server) as live, live.attached() as client:
        told = await client.say("Hello")
        assert (told.types[-1], told.text, said) == ("finish", "Yes.", ["Hello"])
        assert len(live.model.sessions) == 2
        assert texts(await live.messages()) == [("user", "Hello"), ("assistant", "Yes.")]


@each_way
@pytest.mark.parametrize("half", ["", "The first half "])
async def test_words_after_the_handle_are_sent_again_and_no_others(way: str, half: str) -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            assert session.request.live_connect_config.session_resumption.handle == "h1"  # pyright: ignore
            await answer_everything(session, said)
            return
        await session.expect_text()
        await session.answer("One.")
        await session.resumption_handle("h1")
        await session.expect_text()
        if half:
            await session.say(half)
        await lose(session, way)

    said: list[str] = []
    async with live_app(server) as live, live.attached() as client:
        assert (await client.say("First")).text == "One."
        told = await client.say("Second")
        assert (told.types[-1], told.text) == ("finish", f"{half}Yes.")
        assert (await client.say("Third")).text == "Yes."
        assert said == ["Second", "Third"]
        assert own(client, "error") == []


async def test_an_answer_comes_to_its_end_before_the_session_leaves_at_a_go_away() -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await answer_everything(session, said)
            return
        await session.resumption_handle("h1")
        await session.expect_text()
        await session.say("The first half ")
        await session.go_away()
        await asyncio.sleep(3)  # of the five seconds that the service has said
        await session.answer("and the second.")
        await session.expect("close")

    said: list[str] = []
    async with live_app(server) as live, live.attached() as client:
        assert (await client.say("Tell me")).text == "The first half and the second."
        assert (await client.say("More")).text == "Yes."
        assert (said, len(live.model.sessions)) == (["More"], 2)


async def test_what_comes_after_the_session_has_left_at_a_go_away_is_no_answer() -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await answer_everything(session, said)
            return
        await session.expect_text()
        await session.answer("One.")
        await session.resumption_handle("h1")
        await session.expect_text()
        await session.emit(LlmResponse(go_away=types.LiveServerGoAway(time_left="soon")))
        await session.answer("Never taken.")
        await session.expect("close")

    said: list[str] = []
    async with live_app(server) as live, live.attached() as client:
        assert (await client.say("First")).text == "One."
        assert (await client.say("Second")).text == "Yes."
        assert (said, live.runs) == (["Second"], 1)


@each_way
async def test_words_that_the_service_has_are_not_sent_again(way: str) -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await session.answer("Here I am again.")
            await answer_everything(session, said)
            return
        await session.expect_text()
        await session.resumption_handle("h1")
        await lose(session, way)

    said: list[str] = []
    async with live_app(server) as live, live.attached() as client:
        assert (await client.say("Hello")).text == "Here I am again."
        assert (await client.say("Still there?")).text == "Yes."
        assert said == ["Still there?"]
        assert len(live.model.sessions) == 2


# -- answers ----------------------------------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize("half", ["", "The first half "])
async def test_an_answer_that_the_service_does_not_go_on_with_fails_in_seconds_and_the_session_lives(
    way: str, half: str
) -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await answer_everything(session)
            return
        await session.expect_text()
        await session.resumption_handle("h1")
        if half:
            await session.say(half)
        await lose(session, way)

    async with live_app(server) as live, live.attached() as client:
        began = now()
        told = await client.say("Tell me")
        assert (told.chunks[-1]["type"], told.chunks[-1]["errorText"]) == ("error", LOST_ANSWER)
        assert told.text == half
        assert 9 < now() - began < 15
        assert live.runs == 1
        assert (await client.say("Again")).text == "Yes."
        assert len(live.model.sessions) == 2
        kept = [("assistant", half)] if half else []
        assert texts(await live.messages()) == [("user", "Tell me"), *kept, ("user", "Again"), ("assistant", "Yes.")]


@each_way
async def test_an_answer_that_the_service_goes_on_with_is_whole(way: str) -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await session.answer("and the second.")
            await asyncio.sleep(60)
            await answer_everything(session)
            return
        await session.expect_text()
        await session.resumption_handle("h1")
        await session.say("The first half ")
        await lose(session, way)

    async with live_app(server) as live, live.attached() as client:
        told = await client.say("Tell me")
        assert (told.types[-1], told.text) == ("finish", "The first half and the second.")
        await asyncio.sleep(60)
        assert (await client.say("Again")).text == "Yes."
        assert live.runs == 1


@each_way
async def test_a_result_that_the_service_says_nothing_about_after_a_loss_ends_the_answer_and_not_the_session(
    way: str,
) -> None:
    def look() -> str:
        """Looks."""
        return "all is well"

    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await answer_everything(session)
            return
        await session.resumption_handle("h1")
        await session.expect_text()
        await session.call("look")
        await session.expect_response()
        await lose(session, way)

    async with live_app(server, tools=(look,)) as live, live.attached() as client:
        told = await client.say("Look")
        assert (told.chunks[-1]["type"], told.chunks[-1]["errorText"]) == ("error", LOST_ANSWER)
        assert (await client.say("And now?")).text == "Yes."
        assert live.runs == 1


async def test_what_the_service_says_after_the_answer_has_failed_is_a_message_of_its_own() -> None:
    async def server(session: LiveSession) -> None:
        if session.number > 1:
            await asyncio.sleep(20)
            await session.answer("and the second.")
            await session.expect("close")
            return
        await session.expect_text()
        await session.resumption_handle("h1")
        await session.say("The first half ")
        await lose(session, "cut")

    async with live_app(server) as live, live.attached() as client:
        told = await client.say("Tell me")
        assert told.chunks[-1]["type"] == "error"
        await client.own("turn")
        late = await client.resume()
        assert (late.types[-1], late.text) == ("finish", "and the second.")
        assert late.message_id != told.message_id
        assert live.runs == 1


# -- GoAway, and connections that are dropped -------------------------------------------------------------------------


async def test_a_quiet_hour_with_a_go_away_every_ten_minutes_is_no_failure() -> None:
    async def server(session: LiveSession) -> None:
        await session.resumption_handle(f"h{session.number}")
        for _ in range(10):
            await asyncio.sleep(60)
        if session.number < 10:
            await lose(session, "go away")
        else:
            await answer_everything(session)

    async with live_app(server, speaks=True) as live, live.attached() as client:
        client.send_frame(sound(20))
        await asyncio.sleep(95 * 60)
        assert (live.runs, len(live.model.sessions)) == (1, 10)
        assert [frame["type"] for frame in client.frames["-"]] == ["attached", "voice"]


async def test_connections_that_are_taken_in_and_thrown_out_are_dialled_with_pauses_and_given_up() -> None:
    async def server(session: LiveSession) -> None:
        dialled.append(now())
        if session.number == 1:
            await session.expect_text()
        await session.resumption_handle("h1")
        await lose(session, "cut")

    dialled: list[float] = []
    async with live_app(server) as live, live.attached() as client:
        told = await client.say("Hello")
        assert (told.chunks[-1]["type"], told.chunks[-1]["errorText"]) in (("error", LOST), ("error", LOST_ANSWER))
        await asyncio.sleep(60)
        pauses = [round(after - before, 1) for before, after in pairwise(dialled)]
        assert pauses == [0.5, 1, 2, 4, 8]
        assert live.runs == 0
        errors = [(frame["id"], frame["code"], frame["message"]) for frame in own(client, "error")]
        assert errors == [("chat-1", "live-failed", LOST)]


async def test_a_word_from_the_model_makes_up_for_connections_that_were_dropped() -> None:
    async def server(session: LiveSession) -> None:
        dialled.append(now())
        await session.resumption_handle("h1")
        if session.number % 3 == 0:
            await session.say("Well, ")
        if session.number < 20:
            await lose(session, "cut")
            return
        await session.answer("Here.")
        await session.expect("close")

    dialled: list[float] = []
    limits = Limits(live_resume_s=1000)
    async with live_app(server, limits=limits) as live, live.attached() as client:
        told = await client.say("Hello")
        assert told.types[-1] == "finish"
        assert len(live.model.sessions) == 20
        assert max(after - before for before, after in pairwise(dialled)) == pytest.approx(1)


async def test_a_session_that_is_stopped_while_it_dials_again_ends() -> None:
    async def server(session: LiveSession) -> None:
        await session.resumption_handle("h1")
        await lose(session, "cut")

    async with live_app(server, speaks=True) as live, live.attached() as client:
        client.send_frame(sound(20))
        await asyncio.sleep(5)
        client.tell("stop")
        await ping(client)
        await asyncio.sleep(5)
        assert live.runs == 0
