"""Voice over the live socket: the same samples out as in, at their rate, for who is attached."""

import asyncio
import base64
from typing import Any

import pytest

from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.store.base import Acquired
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import LiveSession
from transports.live_apps import (
    FRAME,
    answers_for_ever,
    both_families,
    both_forms,
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

# -- the same samples -------------------------------------------------------------------------------------------------


@both_forms
@both_families
async def test_what_is_spoken_comes_back_sample_for_sample(family: Any, form: str) -> None:
    model = OfflineModel(live_family=family, voice_piece_delay=0)
    async with live_app(model=model, speaks=True) as live, live.attached(speaks=form == "binary") as client:
        for number, ms in enumerate((1_000, 20, 1_500), start=1):
            samples = sound(ms)
            client.tell("activity-start")
            speak(client, samples, form=form)
            client.tell("activity-end")
            turn = await client.own("turn", number)
            answer = await client.resume()
            assert answer.message_id == turn["messageId"]
            assert answer.text == f"You spoke for {ms} ms."
            assert heard(client, form) == samples
            client.binary.clear()
            client.frames["-"] = own(client, "turn")


@both_forms
async def test_speech_may_end_with_a_pause(form: str) -> None:
    model = OfflineModel(voice_piece_delay=0)
    async with live_app(model=model, speaks=True) as live, live.attached(speaks=form == "binary") as client:
        speak(client, bytes(2 * FRAME) + sound(300) + bytes(30 * FRAME), form=form)
        await client.own("turn")
        assert (await client.resume()).chunks[-1]["type"] == "finish"
        spoken = heard(client, form)
        assert len(spoken) % FRAME == 0
        assert spoken.strip(b"\0") == sound(300).strip(b"\0")


async def test_voice_in_the_stream_has_the_same_samples_as_beside_it() -> None:
    async def server(session: LiveSession) -> None:
        samples = b""
        while (received := await session.expect()).kind != "content":
            if received.blob:
                samples += received.blob.data or b""
        for start in range(0, len(samples), 3 * FRAME):
            await session.audio(samples[start : start + 3 * FRAME], 16_000)
            await session.output_transcript("la ")
        await session.turn_complete()
        await session.expect("close")

    async with live_app(server, speaks=True) as live, live.attached() as client:
        speak(client, sound(1_000))
        await ping(client)
        answer = await client.say("Say it again", body={"pcmChunks": True})
        pieces = answer.of_type("data-pcm")
        assert {piece["data"]["rate"] for piece in pieces} == {16_000}
        assert all(piece["transient"] is True for piece in pieces)
        assert b"".join(base64.b64decode(piece["data"]["data"]) for piece in pieces) == sound(1_000)
        assert heard(client) == sound(1_000)
        assert answer.text.startswith("la la ")
        assert texts(await live.messages())[-1] == ("assistant", answer.text)
        assert not any(part["type"] == "data-pcm" for part in (await live.messages())[-1]["parts"])


async def test_without_being_asked_for_no_voice_is_in_the_stream() -> None:
    async with live_app(model=OfflineModel(), speaks=True) as live, live.attached() as client:
        answer = await client.say("Hello")
        assert answer.of_type("data-pcm") == []
        assert len(heard(client)) > 1_000
        assert answer.text


async def test_signs_of_activity_reach_the_model_in_their_place() -> None:
    async def server(session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if taken[-1:] != [received.kind]:  # frames of voice may go together
                taken.append(received.kind)
            if received.kind == "activity_end":
                done.set()

    taken: list[str] = []
    done = asyncio.Event()
    async with live_app(server, speaks=True) as live, live.attached() as client:
        speak(client, sound(20))
        client.tell("activity-start")
        speak(client, sound(40))
        client.tell("activity-end")
        await done.wait()
        assert taken == ["audio", "activity_start", "audio", "activity_end"]
        assert live.runs == 1


class DistantStore(MemoryStore):
    async def acquire(self, *asked: Any) -> Acquired:
        await asyncio.sleep(0.1)
        return await super().acquire(*asked)


async def test_voice_that_comes_while_the_session_is_being_opened_is_not_lost() -> None:
    async with live_app(answers_for_ever, speaks=True, store=DistantStore()) as live, live.attached() as client:
        request_id = client.start_send(said("Hello"))
        await asyncio.sleep(0.05)
        speak(client, sound(60))
        await client.answer(request_id)
        await ping(client)
        assert own(client, "error") == []
        taken = [received.blob.data for received in live.model.sessions[0].received if received.blob]
        assert b"".join(taken) == sound(60)


# -- rates and places -------------------------------------------------------------------------------------------------


async def speaks_at_rates(session: LiveSession) -> None:
    await session.expect_text()
    for rate in (24_000, 24_000, 16_000, 24_000):
        await session.audio(b"\1\0", rate)
    await session.turn_complete()
    await session.expect("close")


async def test_the_rate_is_sent_before_the_first_binary_frame_and_when_it_changes() -> None:
    async with live_app(speaks_at_rates, speaks=True) as live, live.attached() as client:
        await client.say("Speak")
        assert kinds(client) == ["audio", "binary", "binary", "audio", "binary", "audio", "binary"]
        assert own(client, "audio") == [
            {"type": "audio", "requestId": "-", "id": "chat-1", "rate": rate} for rate in (24_000, 16_000, 24_000)
        ]


async def test_frames_in_base64_each_have_their_rate() -> None:
    async with live_app(speaks_at_rates, speaks=True) as live, live.attached(speaks=False) as client:
        await client.say("Speak")
        got = [(frame["rate"], frame["data"]) for frame in own(client, "audio")]
        assert got == [(rate, "AQA=") for rate in (24_000, 24_000, 16_000, 24_000)]


async def test_only_who_is_attached_hears_the_voice_and_reads_transcripts() -> None:
    async with (
        live_app(model=OfflineModel(voice_piece_delay=0), speaks=True) as live,
        live.attached() as speaker,
        live.socket(speaks=True) as typist,
        live.attached(chat_id="chat-2") as elsewhere,
    ):
        await typist.resume()  # it listens to the chat by this, and does not speak for it
        speaker.tell("activity-start")
        speak(speaker, sound(200))
        speaker.tell("activity-end")
        turn = await typist.own("turn")
        assert (await typist.resume()).message_id == turn["messageId"]
        assert heard(speaker) == sound(200)
        assert own(speaker, "transcript")
        assert (typist.binary, own(typist, "transcript"), own(typist, "audio")) == ([], [], [])
        await ping(elsewhere)
        assert {frame["type"] for frame in elsewhere.everything} == {"attached", "pong"}


async def test_voice_goes_to_the_chat_that_was_attached_last() -> None:
    async with (
        live_app(model=OfflineModel(voice_piece_delay=0), speaks=True) as live,
        live.attached(chat_id="chat-1") as client,
    ):
        for number, chat_id in enumerate(("chat-1", "chat-2"), start=1):
            client.tell("attach", id=chat_id)
            client.tell("activity-start")
            speak(client, sound(100 * number))
            client.tell("activity-end")
            turn = await client.own("turn", number)
            assert turn["id"] == chat_id
            await client.resume(id=chat_id)
        for number, chat_id in enumerate(("chat-1", "chat-2"), start=1):
            history = texts(await live.messages(chat_id=chat_id))
            assert history[0] == ("user", f"speech of {100 * number} ms")
            assert len(history) == 2
