"""Speech starts turns, its transcripts stand in the right messages, and who speaks cuts the model short."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.testing import LiveSession
from support.live_client import LiveClient
from transports.live_apps import (
    LiveApp,
    Reader,
    both_families,
    both_forms,
    chunks,
    heard,
    kinds,
    live_app,
    own,
    ping,
    said,
    sound,
    speak,
    texts,
)

pytestmark = pytest.mark.virtual_time

# -- turns and transcripts --------------------------------------------------------------------------------------------


@both_families
async def test_speech_starts_a_turn_that_a_resume_reads(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.input_transcript("Hello", finished=True)
        await session.output_transcript("Good ")
        await read.wait()
        await session.output_transcript("morning.")
        await session.turn_complete()
        await session.expect("close")

    read = asyncio.Event()
    async with live_app(server, family=family, speaks=True) as live, live.attached() as client:
        assert live.runs == 0
        speak(client, sound(20))
        turn = await client.own("turn")
        assert set(turn) == {"type", "requestId", "id", "messageId", "userMessageId"}
        resumed = client.new_request()
        client.send_frame({"type": "resume", "requestId": resumed, "id": "chat-1"})
        await client.until(lambda: len(chunks(client, resumed)) >= 4)
        read.set()
        answer = await client.answer(resumed)
        assert client.frames[resumed][0]["type"] == "start"
        assert (answer.message_id, answer.text) == (turn["messageId"], "Good morning.")
        assert answer.types == [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish",
        ]
        await ping(client)
        assert len(own(client, "turn")) == 1
        history = await live.messages()
        assert [message["id"] for message in history] == [turn["userMessageId"], turn["messageId"]]
        assert texts(history) == [("user", "Hello"), ("assistant", "Good morning.")]


def says_good_morning(over: asyncio.Event) -> Callable[[LiveSession], Awaitable[None]]:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.output_transcript("Good morning.")
        await session.turn_complete()
        await session.taken()
        over.set()
        await session.expect("close")

    return server


async def test_a_turn_that_has_ended_before_it_is_read_can_be_read_once() -> None:
    over = asyncio.Event()
    async with live_app(says_good_morning(over), speaks=True) as live, live.attached() as client:
        speak(client, sound(20))
        turn = await client.own("turn")
        await over.wait()
        await asyncio.sleep(1)
        assert live.bridge._service.running("ann", "chat-1") is None
        answer = await client.resume()
        assert (answer.message_id, answer.text) == (turn["messageId"], "Good morning.")
        assert answer.chunks[-1]["type"] == "finish"
        assert (await client.resume()).status == 204


async def test_a_turn_whose_session_has_ended_before_it_is_read_can_be_read() -> None:
    over = asyncio.Event()
    async with live_app(says_good_morning(over), speaks=True) as live, live.attached() as client:
        speak(client, sound(20))
        turn = await client.own("turn")
        await over.wait()
        client.tell("stop")
        while live.runs:
            await asyncio.sleep(0.1)
        answer = await client.resume()
        assert (answer.message_id, answer.text) == (turn["messageId"], "Good morning.")
        assert (await client.resume()).status == 204


async def test_transcripts_are_whole_each_time_and_name_their_messages() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.input_transcript("What ")
        await session.input_transcript("time?", finished=True)
        await session.output_transcript("It is ")
        await session.output_transcript("ten.")
        await session.turn_complete()
        await session.expect("close")

    async with live_app(server, speaks=True) as live, live.attached() as client:
        speak(client, sound(20))
        turn = await client.own("turn")
        await client.resume()
        await ping(client)
        user, assistant = turn["userMessageId"], turn["messageId"]
        got = [(frame["messageId"], frame["text"], frame["final"]) for frame in own(client, "transcript")]
        assert [line for line in got if line[0] == user] == [
            (user, "What ", False),
            (user, "What time?", False),
            (user, "What time?", True),
        ]
        assert [line for line in got if line[0] == assistant] == [
            (assistant, "It is ", False),
            (assistant, "It is ten.", False),
            (assistant, "It is ten.", True),
        ]
        roles = {frame["role"]: frame["messageId"] for frame in own(client, "transcript")}
        assert roles == {"user": user, "assistant": assistant}
        assert all(frame["id"] == "chat-1" for frame in own(client, "transcript"))
        assert live.runs == 1


@both_families
@pytest.mark.parametrize("late", ["after the first word", "after the last word", "after the end"])
async def test_what_the_user_said_stands_before_the_answer_also_when_it_comes_late(family: str, late: str) -> None:
    async def tell_transcript(session: LiveSession) -> None:
        await session.input_transcript("Hello", finished=True)

    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.output_transcript("Good ")
        if late == "after the first word":
            await tell_transcript(session)
        await session.output_transcript("morning.")
        if late == "after the last word":
            await tell_transcript(session)
        await session.turn_complete()
        if late == "after the end":
            await tell_transcript(session)
        assert await session.expect_text() == "And now?"
        await session.answer("Now, too.")
        await session.expect("close")

    async with live_app(server, family=family, speaks=True) as live, live.attached() as client:
        speak(client, sound(20))
        turn = await client.own("turn")
        assert (await client.resume()).status in (200, 204)
        await client.until(lambda: any(frame["role"] == "user" for frame in own(client, "transcript")))
        assert (await client.say("And now?")).chunks[-1]["type"] == "finish"
        user = [frame for frame in own(client, "transcript") if frame["role"] == "user"]
        assert {frame["messageId"] for frame in user} == {turn["userMessageId"]}
        history = await live.messages()
        assert texts(history) == [
            ("user", "Hello"),
            ("assistant", "Good morning."),
            ("user", "And now?"),
            ("assistant", "Now, too."),
        ]
        assert [message["id"] for message in history][:2] == [turn["userMessageId"], turn["messageId"]]


@both_families
async def test_speech_and_writing_take_turns_in_one_conversation(family: Any) -> None:
    model = OfflineModel(live_family=family, voice_piece_delay=0)
    async with live_app(model=model, speaks=True) as live, live.attached() as client:
        written = await client.say("Hello")
        client.tell("activity-start")
        speak(client, sound(100))
        client.tell("activity-end")
        await client.own("turn")
        spoken = await client.resume()
        again = await client.say("Hello")
        assert texts(await live.messages()) == [
            ("user", "Hello"),
            ("assistant", written.text),
            ("user", "speech of 100 ms"),
            ("assistant", spoken.text),
            ("user", "Hello"),
            ("assistant", again.text),
        ]


# -- interruptions ----------------------------------------------------------------------------------------------------


async def is_interrupted(session: LiveSession) -> None:
    await session.expect_text()
    for _ in range(10):
        await session.audio(b"\1\0" * 100)
    await session.output_transcript("Well, I ")
    await session.interrupted()
    await session.audio(b"\2\0" * 100)  # what the service had on its way
    await session.turn_complete()
    await session.expect_text()
    await session.audio(b"\3\0" * 100)
    await session.output_transcript("Yes?")
    await session.turn_complete()
    await session.expect("close")


@both_families
@both_forms
async def test_an_interruption_clears_the_voice_and_what_comes_late_is_dropped(family: str, form: str) -> None:
    async with (
        live_app(is_interrupted, family=family, speaks=True) as live,
        live.attached(speaks=form == "binary") as client,
    ):
        answer = await client.say("Speak", body={"pcmChunks": True})
        assert answer.chunks[-1]["type"] == "finish"
        await client.own("audio-clear")
        assert own(client, "audio-clear") == [{"type": "audio-clear", "requestId": "-", "id": "chat-1"}]
        assert kinds(client)[-1] == "audio-clear"
        assert heard(client, form) == b"\1\0" * 1_000
        voice = b"".join(base64.b64decode(piece["data"]["data"]) for piece in answer.of_type("data-pcm"))
        assert voice == b"\1\0" * 1_000
        await client.say("Go on")
        assert heard(client, form) == b"\1\0" * 1_000 + b"\3\0" * 100
        assert kinds(client).count("audio-clear") == 1


async def test_an_interruption_overtakes_the_voice_that_has_not_been_sent() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        for number in range(1, 51):
            await session.audio(bytes([number, 0]) * 100)
        await session.taken()
        said_much.set()
        await user_cuts_in.wait()
        await session.interrupted()
        await session.turn_complete()
        over.set()
        await session.expect("close")

    said_much, user_cuts_in, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with live_app(server, speaks=True) as live:
        client = Reader()
        async with live.attached(client=client):
            client.reads.clear()
            request_id = client.start_send(said("Speak"))
            await said_much.wait()
            user_cuts_in.set()
            await over.wait()
            await asyncio.sleep(0.1)
            client.reads.set()
            await client.own("audio-clear")
            await client.answer(request_id)
            await ping(client)
            assert len(client.binary) <= 1  # that which was under way
            assert kinds(client)[-1] == "audio-clear"


@both_families
async def test_the_client_may_cut_the_model_short(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.audio(b"\1\0")
        await session.output_transcript("Once upon ")
        await cut.wait()
        await session.audio(b"\2\0")
        await session.output_transcript("a time.")
        await session.turn_complete()
        assert await session.expect_text() == "Shorter"
        await session.audio(b"\3\0")
        await session.output_transcript("Fine.")
        await session.turn_complete()
        await session.expect("close")

    cut = asyncio.Event()
    async with live_app(server, family=family, speaks=True) as live, live.attached() as client:
        request_id = client.start_send(said("A story"))
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        client.tell("interrupt")
        answer = await client.answer(request_id)
        assert (answer.text, answer.chunks[-1]["type"]) == ("Once upon ", "finish")
        assert answer.chunks[-1]["messageMetadata"]["interrupted"] is True
        await client.own("audio-clear")
        cut.set()
        assert (await client.say("Shorter")).text == "Fine."
        assert heard(client) == b"\1\0\3\0"
    await live.model.finished()


@both_families
async def test_words_after_an_interrupt_get_their_own_answer(family: Any) -> None:
    model = OfflineModel(live_family=family, story_word_delay=0.1)
    async with live_app(model=model, speaks=True) as live, live.attached() as client:
        hello = (await client.say("Hello")).text
        request_id = client.start_send(said("Tell me a long story"))
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        client.tell("interrupt")
        story = await client.answer(request_id)
        answer = await client.say("Hello")
        assert answer.text == hello
        history = texts(await live.messages())
        assert history[-2:] == [("user", "Hello"), ("assistant", hello)]
        assert history[2] == ("user", "Tell me a long story")
        assert history[3][1].startswith(story.text)


async def test_to_interrupt_nobody_does_nothing() -> None:
    async with live_app(is_interrupted, speaks=True) as live, live.attached() as client:
        client.tell("interrupt")
        await ping(client)
        assert live.runs == 0
        assert [frame["type"] for frame in client.everything] == ["attached", "pong"]


async def test_a_voice_that_still_plays_is_cleared_when_its_words_are_complete() -> None:
    async with live_app(model=OfflineModel(), speaks=True) as live, live.attached() as client:
        answer = await client.say("Hello")
        client.tell("interrupt")
        await client.own("audio-clear")
        assert texts(await live.messages())[-1] == ("assistant", answer.text)
        assert (await client.say("Hello")).text == answer.text


async def test_speech_while_the_model_speaks_cuts_it_short() -> None:
    model = OfflineModel(voice_piece_delay=0.1)
    async with live_app(model=model, speaks=True) as live, live.attached() as client:
        await speak_and_begin(live, client, sound(2_000))
        speak(client, sound(100))
        await client.own("audio-clear")
        client.tell("activity-start")
        client.tell("activity-end")
        assert len(client.binary) < 20
        await ping(client)


async def speak_and_begin(live: LiveApp, client: LiveClient, samples: bytes) -> None:
    """Until the model has begun to repeat it."""
    client.tell("activity-start")
    speak(client, samples)
    client.tell("activity-end")
    await client.until(lambda: client.binary)
    assert live.runs == 1
