"""What the offline model says and hears, in ADK's real `run_live`."""

import asyncio
import math
import struct
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_stream_protocol.demo.offline_live import tone
from adk_stream_protocol.demo.offline_model import OfflineModel
from support.live_runs import LiveRun, live_run

AUDIO = types.Modality.AUDIO


def get_weather(location: str) -> dict[str, Any]:
    """The weather."""
    return {"location": location, "condition": "sunny", "temperature_c": 20}


def agent_on(**fields: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=OfflineModel(**{"voice_piece_delay": 0, **fields}), tools=[get_weather])


def without_usage(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("usage")]


def voice(run: LiveRun) -> bytes:
    blobs = [part.inline_data for event in run.events for part in (event.content and event.content.parts) or []]
    return b"".join((blob and blob.data) or b"" for blob in blobs)


def sound(ms: int, rate: int = 16_000) -> bytes:
    """Samples that are all different from those before, and end loud."""
    count = ms * rate // 1000
    return struct.pack(f"<{count}h", *(9_000 + position % 7_000 for position in range(count)))


def silence(ms: int, rate: int = 16_000) -> bytes:
    return bytes(2 * ms * rate // 1000)


# -- voice ------------------------------------------------------------------------------------------------------------


async def test_answers_are_spoken_as_tones_with_a_transcript_where_audio_is_asked_for() -> None:
    async with live_run(agent_on(), modality=AUDIO) as run:
        run.write("What is the weather in Tokyo?")
        await run.until("turn_complete")
        lines = without_usage(await run.until("turn_complete"))
    words = ["The ", "weather ", "in ", "Tokyo ", "is ", "sunny ", "at ", "20 ", "°C."]
    spoken = [line for word in words for line in ("audio 240 audio/pcm;rate=24000", f"saying {word}")]
    assert lines == [*spoken, "said The weather in Tokyo is sunny at 20 °C.", "turn_complete"]
    assert voice(run) == b"".join(map(tone, words))


async def test_thoughts_are_not_spoken() -> None:
    async with live_run(agent_on(), modality=AUDIO) as run:
        run.write("Think about it")
        lines = await run.until("turn_complete")
        assert len([line for line in lines if line.startswith("THOUGHT The user wrote")]) == 1
        assert "said I have thought it over. I am only a small offline model," in lines[-3]
        assert not any(line.startswith("saying Let") for line in lines)


def test_tone_is_5_ms_without_a_click_at_its_end() -> None:
    samples = struct.unpack("<120h", tone("word "))
    assert samples[0] == 0
    assert abs(samples[-1]) < 2_000
    assert max(samples) == 6_000
    assert math.isclose(sum(samples), 0, abs_tol=10)
    assert tone("word ") == tone("word ") != tone("words ")


# -- speech -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modality", [AUDIO, types.Modality.TEXT])
async def test_speech_between_signals_is_repeated_sample_for_sample(modality: types.Modality) -> None:
    spoken = silence(100) + sound(250) + silence(700)
    async with live_run(agent_on(), modality=modality) as run:
        run.queue.send_activity_start()
        for start in range(0, len(spoken), 640):
            run.speak(spoken[start : start + 640])
        run.queue.send_activity_end()
        lines = await run.until("turn_complete")
        assert lines[:2] == ["hearing speech of 1050 ms", "heard speech of 1050 ms"]
        assert lines[-2:] == ["said You spoke for 1050 ms.", "turn_complete"]
        assert "audio 3200 audio/pcm;rate=16000" in lines
        assert voice(run) == spoken
        assert await run.rest() == []


async def test_speech_without_signals_ends_with_half_a_second_of_silence() -> None:
    spoken = sound(200) + silence(300) + sound(100)
    async with live_run(agent_on(), modality=AUDIO) as run:
        for data in (silence(1000), spoken, silence(400), silence(100)):
            run.speak(data)
        assert (await run.until("turn_complete"))[:2] == ["hearing speech of 600 ms", "heard speech of 600 ms"]
        assert voice(run) == spoken
        run.speak(sound(10))
        run.queue.send_audio_stream_end()
        assert (await run.until("turn_complete"))[-2] == "said You spoke for 10 ms."
        assert await run.rest() == []


async def test_speech_keeps_its_rate() -> None:
    async with live_run(agent_on(live_family="3"), modality=AUDIO) as run:
        run.speak(sound(50, rate=48_000) + silence(500, rate=48_000), rate=48_000)
        assert (await run.until("turn_complete"))[:2] == [
            "heard speech of 50 ms",
            "audio 4800 audio/pcm;rate=48000",
        ]


async def test_silence_alone_and_signals_without_sound_are_not_answered() -> None:
    async with live_run(agent_on(), modality=AUDIO) as run:
        run.speak(silence(2000))
        run.queue.send_audio_stream_end()
        run.queue.send_activity_start()
        run.queue.send_activity_end()
        run.write("What is the weather in Tokyo?")
        assert without_usage(await run.until("call")) == ['call get_weather {"location": "Tokyo"}']
        await run.until("said")


async def test_forgotten_microphone_is_cut_off_after_a_minute() -> None:
    async with live_run(agent_on(), modality=AUDIO) as run:
        run.queue.send_activity_start()
        for _ in range(60):
            run.speak(sound(1000))
        assert (await run.until("heard"))[-1] == "heard speech of 60000 ms"


@pytest.mark.parametrize("with_signal", [True, False])
async def test_new_speech_cuts_the_voice_off(with_signal: bool) -> None:
    async with live_run(agent_on(), modality=AUDIO) as run:
        run.speak(sound(5000) + silence(500))
        await run.until("audio")
        if with_signal:
            run.queue.send_activity_start()
        run.speak(sound(50))
        lines = await run.until("turn_complete")
        assert lines[-2:] == ["interrupted", "turn_complete"]
        assert lines[-3].startswith("said You ")
        assert len(voice(run)) < 10 * 3200, "most of the 50 pieces are dropped"
        run.queue.send_activity_end()
        assert (await run.until("turn_complete"))[-2] == "said You spoke for 50 ms."
        assert await run.rest() == []


async def test_silence_does_not_cut_the_voice_off() -> None:
    async with live_run(agent_on(), modality=AUDIO) as run:
        run.speak(sound(2000) + silence(500))
        await run.until("audio")
        run.speak(silence(1000))
        assert (await run.until("turn_complete"))[-2] == "said You spoke for 2000 ms."
        assert voice(run) == sound(2000)
        assert await run.rest() == []


async def test_voice_does_not_run_ahead_of_who_listens() -> None:
    """Else there would be nothing left to cut off."""
    model = OfflineModel(voice_piece_delay=0)
    async with model.connect(LlmRequest()) as connection:
        await connection.send_realtime(types.Blob(data=sound(5000) + silence(500), mime_type="audio/pcm;rate=16000"))
        answer = connection.receive()
        async for response in answer:
            if response.content:
                break
        for _ in range(200):  # more steps than there are pieces
            await asyncio.sleep(0)
        await connection.send_realtime(types.ActivityStart())  # pyright: ignore
        rest = [response async for response in answer]
        assert [response.interrupted for response in rest if response.interrupted] == [True]
        assert len([response for response in rest if response.content]) <= 1


async def test_pieces_of_speech_are_paced(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    really_sleep = asyncio.sleep

    async def sleep(delay: float) -> None:
        delays.append(delay)
        await really_sleep(0)

    async with live_run(agent_on(voice_piece_delay=0.05), modality=AUDIO) as run:
        monkeypatch.setattr(asyncio, "sleep", sleep)
        run.speak(sound(300) + silence(500))
        await run.until("turn_complete")
        monkeypatch.undo()
    assert [delay for delay in delays if delay] == [0.05] * 3
