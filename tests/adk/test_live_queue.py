"""What waits for a live model: two seconds of voice at most, everything else for ever, and who takes it."""

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest
from google.adk.agents.live_request_queue import LiveRequest, LiveRequestQueue
from google.genai import types

from adk_stream_protocol.adk.live.input_queue import INPUT_RATE, LiveInput

pytestmark = pytest.mark.virtual_time

TENTH_S = INPUT_RATE // 10 * 2
"""Bytes of a tenth of a second."""


def voice(number: int, size: int = TENTH_S) -> bytes:
    return number.to_bytes(2, "little") * (size // 2)


def number_of(request: LiveRequest) -> int:
    assert request.blob
    assert request.blob.data
    return int.from_bytes(request.blob.data[:2], "little")


def heard(requests: list[LiveRequest]) -> bytes:
    return b"".join((request.blob.data if request.blob else None) or b"" for request in requests)


async def take_all(queue: LiveInput) -> list[LiveRequest]:
    """What waits, in its order."""
    taken: list[LiveRequest] = []
    queue.send(LiveRequest(activity_end=types.ActivityEnd()))
    while not (request := await queue.get()).activity_end:
        taken.append(request)
    return taken


def short(request: LiveRequest) -> Any:
    if request.blob:
        return number_of(request)
    if request.content:
        return "".join(part.text or "response" for part in request.content.parts or [])
    names = ("activity_start", "activity_end", "audio_stream_end", "close")
    return next(name for name in names if getattr(request, name))


# -- voice ------------------------------------------------------------------------------------------------------------


async def test_voice_is_given_as_it_came_with_its_rate() -> None:
    queue = LiveInput(2)
    queue.send_voice(b"\1\2\3\4")
    (taken,) = await take_all(queue)
    assert taken.blob == types.Blob(data=b"\1\2\3\4", mime_type="audio/pcm;rate=16000")


@pytest.mark.parametrize("extra", [0, 1, 5, 30])
async def test_two_seconds_wait_and_the_oldest_of_more_is_dropped_and_counted(extra: int) -> None:
    queue = LiveInput(2)
    for number in range(20 + extra):
        queue.send_voice(voice(number))
    assert queue.dropped_audio_frames == extra
    assert [number_of(request) for request in await take_all(queue)] == list(range(extra, 20 + extra))


async def test_what_was_taken_makes_room() -> None:
    queue = LiveInput(2)
    for number in range(20):
        queue.send_voice(voice(number))
    for number in range(10):
        assert number_of(await queue.get()) == number
    for number in range(20, 30):
        queue.send_voice(voice(number))
    assert queue.dropped_audio_frames == 0
    queue.send_voice(voice(30))
    assert queue.dropped_audio_frames == 1
    assert [number_of(request) for request in await take_all(queue)] == list(range(11, 31))


async def test_the_bound_is_of_time_and_not_of_frames() -> None:
    queue = LiveInput(2)
    for number in range(200):
        queue.send_voice(voice(number, TENTH_S // 10))
    assert queue.dropped_audio_frames == 0
    queue.send_voice(voice(500, 10 * TENTH_S))  # a second at once, for a hundred frames of a hundredth
    assert queue.dropped_audio_frames == 100
    kept = [voice(number, TENTH_S // 10) for number in range(100, 200)]
    assert heard(await take_all(queue)) == b"".join([*kept, voice(500, 10 * TENTH_S)])


async def test_one_sample_too_much_drops_one_frame() -> None:
    queue = LiveInput(2)
    queue.send_voice(voice(0, 2 * INPUT_RATE * 2))
    assert queue.dropped_audio_frames == 0
    queue.send_voice(voice(1, 2))
    assert queue.dropped_audio_frames == 1
    assert [number_of(request) for request in await take_all(queue)] == [1]


async def test_nothing_but_voice_is_ever_dropped() -> None:
    queue = LiveInput(2)
    expected: list[Any] = []
    for number in range(100):
        if number % 10 == 0:
            queue.send_activity_start()
            queue.send_content(types.UserContent(f"words {number}"))
            queue.say(types.UserContent(f"said {number}"), {"k": number})
            expected += ["activity_start", f"words {number}", f"said {number}"]
        queue.send_voice(voice(number))
        if number >= 80:
            expected.append(number)
        if number % 10 == 9:
            queue.send_activity_end()
            queue.send_audio_stream_end()
            expected += ["activity_end", "audio_stream_end"]
    queue.close()
    taken = [await queue.get() for _ in range(len(expected) + 1)]
    assert [short(request) for request in taken] == [*expected, "close"]
    assert queue.dropped_audio_frames == 80
    assert [request.state_delta for request in taken if short(request) == "said 90"] == [{"k": 90}]


async def test_frames_that_have_gathered_go_together_a_tenth_of_a_second_at_most() -> None:
    queue = LiveInput(2)
    for number in range(12):
        queue.send_voice(voice(number, TENTH_S // 5))
    taken = await take_all(queue)
    assert [len(heard([request])) for request in taken] == [TENTH_S, TENTH_S, TENTH_S // 5 * 2]
    assert heard(taken) == b"".join(voice(number, TENTH_S // 5) for number in range(12))
    assert {request.blob.mime_type for request in taken if request.blob} == {"audio/pcm;rate=16000"}


async def test_a_frame_that_does_not_have_to_wait_goes_alone() -> None:
    queue = LiveInput(2)
    for number in range(5):
        queue.send_voice(voice(number, TENTH_S // 5))
        assert heard([await queue.get()]) == voice(number, TENTH_S // 5)


async def test_voice_keeps_its_place_among_other_things_and_its_kind() -> None:
    queue = LiveInput(2)
    for number in (1, 2):
        queue.send_voice(voice(number, 4))
    queue.send_activity_end()
    for number in (3, 4):
        queue.send_voice(voice(number, 4))
    for mime_type in ("image/jpeg", "audio/pcm;rate=8000"):
        queue.send_realtime(types.Blob(data=voice(5, 4), mime_type=mime_type))
    queue.close()
    taken = [await queue.get() for _ in range(6)]
    assert [short(request) for request in taken] == [1, "activity_end", 3, 5, 5, "close"]
    assert heard(taken) == b"".join(voice(number, 4) for number in (1, 2, 3, 4, 5, 5))


async def test_frames_that_went_together_make_room_for_as_many() -> None:
    queue = LiveInput(2)
    for number in range(100):
        queue.send_voice(voice(number, TENTH_S // 5))
    await queue.get()
    for number in range(100, 105):
        queue.send_voice(voice(number, TENTH_S // 5))
    assert queue.dropped_audio_frames == 0
    queue.send_voice(voice(105, TENTH_S // 5))
    assert queue.dropped_audio_frames == 1


async def test_memory_stays_flat_while_nobody_takes() -> None:
    """A minute of voice for each of two measurements, in frames of 20 ms."""

    def speak_for_a_minute() -> int:
        for number in range(3_000):
            queue.send_voice(voice(number, TENTH_S // 5))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    queue = LiveInput(2)
    tracemalloc.start()
    try:
        before = speak_for_a_minute()
        after = speak_for_a_minute()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000  # one second of voice is 32,000 bytes
    assert queue.dropped_audio_frames == 6_000 - 100
    assert len(heard(await take_all(queue))) == 100 * TENTH_S // 5


# -- who takes --------------------------------------------------------------------------------------------------------


async def test_a_taker_gets_what_comes_while_it_waits() -> None:
    queue = LiveInput(2)
    taker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.send_content(types.UserContent("Hello"))
    assert short(await taker) == "Hello"


async def test_what_comes_is_given_to_one_of_several_takers() -> None:
    queue = LiveInput(2)
    takers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.send_voice(voice(1))
    queue.send_voice(voice(2))
    done, waiting = await asyncio.wait(takers, timeout=1)
    assert sorted(number_of(taker.result()) for taker in done) == [1, 2]
    assert len(waiting) == 1
    queue.send_voice(voice(3))
    assert number_of(await waiting.pop()) == 3


async def test_it_is_noticed_that_nobody_comes_any_more() -> None:
    queue = LiveInput(2)
    assert queue.untaken_s() == 0
    await asyncio.sleep(100)
    assert queue.untaken_s() == 0  # nobody takes, but there is nothing to take
    queue.send_content(types.UserContent("one"))
    queue.send_content(types.UserContent("two"))
    await asyncio.sleep(5)
    queue.send_content(types.UserContent("three"))
    assert queue.untaken_s() == 5
    await queue.get()
    assert queue.untaken_s() == 0
    await asyncio.sleep(3)
    assert queue.untaken_s() == 3
    await queue.get()
    await queue.get()
    await asyncio.sleep(3)
    assert queue.untaken_s() == 0


async def test_a_taker_that_waits_is_there() -> None:
    queue = LiveInput(2)
    taker = asyncio.create_task(queue.get())
    await asyncio.sleep(100)
    queue.send_voice(voice(1))
    asyncio.get_running_loop()._now += 100  # pyright: ignore -- the machine has slept, and the taker with it
    assert queue.untaken_s() == 0
    await taker
    await asyncio.sleep(100)
    assert queue.untaken_s() == 0


async def test_takers_that_are_lost_lose_nothing() -> None:
    queue = LiveInput(2)
    for _ in range(3):
        taker = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        taker.cancel()
        await asyncio.wait([taker])
    queue.send_voice(voice(1))
    await asyncio.sleep(2)
    assert queue.untaken_s() == 2
    assert number_of(await queue.get()) == 1


async def test_voice_that_is_dropped_under_the_hands_of_a_dead_taker_is_still_counted() -> None:
    queue = LiveInput(2)
    taker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    taker.cancel()
    await asyncio.wait([taker])
    for number in range(50):
        queue.send_voice(voice(number))
        await asyncio.sleep(0.1)
    assert queue.dropped_audio_frames == 30
    assert queue.untaken_s() == pytest.approx(5)


# -- as ADK's own queue -----------------------------------------------------------------------------------------------


async def test_it_closes_as_adks_own_does() -> None:
    for close in (LiveInput.close, lambda queue: queue.send(LiveRequest(close=True))):
        queue = LiveInput(2)
        assert isinstance(queue, LiveRequestQueue)
        assert not queue.closed
        close(queue)
        assert queue.closed
        assert (await queue.get()).close


async def test_whatever_else_is_sent_leaves_it_open() -> None:
    queue = LiveInput(2)
    queue.send(LiveRequest(content=types.UserContent("Hello")))
    queue.send_realtime(types.Blob(data=b"12", mime_type="image/jpeg"))
    assert not queue.closed
    assert [request.blob is not None for request in await take_all(queue)] == [False, True]


async def test_each_result_of_a_tool_is_told_after_it_was_put_in() -> None:
    queue = LiveInput(2)
    queue.on_response = lambda: queue.send_content(types.UserContent("what was said meanwhile"))
    response = types.FunctionResponse(id="c1", name="pay", response={})
    queue.send_content(types.Content(role="user", parts=[types.Part(function_response=response)]))
    queue.send_content(types.UserContent("Hello"))
    queue.send_content(types.Content(role="user"))
    taken = [short(request) for request in await take_all(queue)]
    assert taken == ["response", "what was said meanwhile", "Hello", ""]
