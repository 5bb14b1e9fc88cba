"""The offline model in live mode: it answers text as in request mode, and repeats speech."""

import asyncio
import math
import re
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from ..testing.live_session import LiveSession, Received

VOICE_RATE = 24_000
_TONE_SAMPLES = VOICE_RATE * 5 // 1000  # 5 ms for each word
_TONES_HZ = (400, 600, 800, 1000)  # with whole periods in 5 ms, so that no word ends with a click
_TONE_LOUDNESS = 6_000  # of 32,767

_LOUDEST_SILENCE = 300  # of 32,767: a microphone in a quiet room does not give zeros
_PAUSE_THAT_ENDS_SPEECH_S = 0.5
_LONGEST_SPEECH_S = 60  # a microphone that is left on must not fill the memory
_PIECE_S = 0.1

Respond = Callable[[Sequence[types.Content]], AsyncGenerator[LlmResponse, None]]


@dataclass(eq=False)
class _Turn:
    """The conversation when the user wrote, and what followed from it.

    An approval may take long, and the user may write something else meanwhile. The response to the call still belongs
    to this turn.
    """

    contents: list[types.Content]
    waiting_for: set[str | None] = field(default_factory=set[str | None])


class _Speech:
    """What the user is saying: between the start and end signals of the client if it sends them, else until a pause."""

    def __init__(self, *, has_signals: bool = False) -> None:
        self.has_begun = has_signals
        self.rate = 16_000
        self._has_signals = has_signals
        self._heard = bytearray()
        self._end_of_sound = 0

    def hear(self, blob: types.Blob) -> None:
        data = blob.data or b""
        sound = _length_of_sound(data)
        if not self.has_begun and not sound:
            return
        self.has_begun = True
        if rate := re.search(r"rate=(\d+)", blob.mime_type or ""):
            self.rate = int(rate[1])
        if sound:
            self._end_of_sound = len(self._heard) + sound
        self._heard += data

    @property
    def has_ended(self) -> bool:
        pause_s = (len(self._heard) - self._end_of_sound) / (2 * self.rate)
        is_over = pause_s >= _PAUSE_THAT_ENDS_SPEECH_S and not self._has_signals
        return is_over or len(self._heard) >= 2 * self.rate * _LONGEST_SPEECH_S

    @property
    def samples(self) -> bytes:
        return bytes(self._heard if self._has_signals else self._heard[: self._end_of_sound])


class OfflineConversation:
    """One live session. `respond` streams the answer to a conversation, as in request mode."""

    def __init__(self, session: LiveSession, respond: Respond, *, voice_piece_delay: float) -> None:
        self._session = session
        self._respond = respond
        self._voice_piece_delay = voice_piece_delay
        modalities = session.request.live_connect_config.response_modalities
        self._has_voice = types.Modality.AUDIO in (modalities or ())
        self._known: list[types.Content] = []
        self._turn_of_call: dict[str | None, _Turn] = {}
        self._speech = _Speech()
        self._to_say: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._saying: asyncio.Task[None] | None = None

    async def converse(self) -> None:
        async with asyncio.TaskGroup() as group:
            speaker = group.create_task(self._speak(group))
            await self._listen()
            speaker.cancel()
            if self._saying is not None:
                self._saying.cancel()

    async def _speak(self, group: asyncio.TaskGroup) -> None:
        while True:
            say = await self._to_say.get()
            self._saying = group.create_task(_run(say))
            await asyncio.wait({self._saying})
            if self._saying.cancelled():
                await self._session.interrupted()
                await self._session.turn_complete()

    def _interrupt(self) -> None:
        if self._saying is not None:
            self._saying.cancel()

    async def _listen(self) -> None:
        while (received := await self._session.expect()).kind != "close":
            self._known += received.contents
            match received.kind:
                case "history":
                    self._take_history(received)
                case "content" if not received.partial:
                    self._interrupt()
                    self._answer_soon(_Turn(list(self._known)))
                case "response" if not received.partial:
                    self._take_responses(received.final_responses)
                case "audio" if received.blob is not None:
                    self._hear(received.blob)
                case "activity_start":
                    self._interrupt()
                    self._speech = _Speech(has_signals=True)
                case "activity_end" | "audio_stream_end":
                    self._repeat_soon()
                case _:
                    pass

    # -- writing -------------------------------------------------------------------------------------------------------

    def _take_history(self, received: Received) -> None:
        turn = _Turn(list(self._known))
        for content in turn.contents:
            for part in content.parts or []:
                if part.function_call:
                    self._turn_of_call[part.function_call.id] = turn
        if received.asks_for_reply:
            self._answer_soon(turn)

    def _take_responses(self, responses: Sequence[types.FunctionResponse]) -> None:
        answered: list[_Turn] = []
        for response in responses:
            turn = self._turn_of_call.get(response.id)
            if turn is None:
                continue
            turn.waiting_for.discard(response.id)
            turn.contents = [_without_response(content, response.id) for content in turn.contents]
            turn.contents.append(types.Content(role="user", parts=[types.Part(function_response=response)]))
            if turn not in answered:
                answered.append(turn)
        for turn in answered:
            if not turn.waiting_for:
                self._answer_soon(turn)

    def _answer_soon(self, turn: _Turn) -> None:
        self._to_say.put_nowait(lambda: self._answer(turn))

    async def _answer(self, turn: _Turn) -> None:
        whole = LlmResponse()
        async with aclosing(self._respond(turn.contents)) as responses:
            async for response in responses:
                if not response.partial:
                    whole = response
                    continue
                for part in _parts(response):
                    await self._say(part)
        calls = [part for part in _parts(whole) if part.function_call]
        if whole.content is not None:
            turn.contents.append(whole.content)
            self._known.append(whole.content)
        for part in calls:
            if part.function_call:
                turn.waiting_for.add(part.function_call.id)
                self._turn_of_call[part.function_call.id] = turn
        await self._session.emit(LlmResponse(usage_metadata=whole.usage_metadata, model_version=whole.model_version))
        if calls:
            await self._session.calls(*calls)
        else:
            await self._session.turn_complete()

    async def _say(self, part: types.Part) -> None:
        if not part.text:
            return
        if self._has_voice and not part.thought:
            await self._session.audio(tone(part.text), VOICE_RATE)
            await self._session.output_transcript(part.text)
        else:
            await self._session.say(part.text, thought=bool(part.thought))
        await self._session.taken()  # so that little has to be discarded when the user interrupts

    # -- speech --------------------------------------------------------------------------------------------------------

    def _hear(self, blob: types.Blob) -> None:
        spoke_before = self._speech.has_begun
        self._speech.hear(blob)
        if self._speech.has_begun and not spoke_before:
            self._interrupt()
        if self._speech.has_ended:
            self._repeat_soon()

    def _repeat_soon(self) -> None:
        speech, self._speech = self._speech, _Speech()
        if speech.samples:
            self._to_say.put_nowait(lambda: self._repeat(speech))

    async def _repeat(self, speech: _Speech) -> None:
        samples, rate = speech.samples, speech.rate
        length = f"{len(samples) * 1000 // (2 * rate)} ms"
        heard, reply = f"speech of {length}", f"You spoke for {length}."
        self._known.append(types.Content(role="user", parts=[types.Part(text=heard)]))
        self._known.append(types.Content(role="model", parts=[types.Part(text=reply)]))
        await self._session.input_transcript(heard, finished=True)
        words = iter(re.findall(r"\S+\s*", reply))
        piece = 2 * int(rate * _PIECE_S)
        for start in range(0, len(samples), piece):
            await self._session.audio(samples[start : start + piece], rate)
            if word := next(words, None):
                await self._session.output_transcript(word)
            await self._session.taken()
            await asyncio.sleep(self._voice_piece_delay)
        for word in words:
            await self._session.output_transcript(word)
        await self._session.turn_complete()


def tone(word: str) -> bytes:
    """The voice for a word: a few milliseconds of a tone, always the same for the same word."""
    step = 2 * math.pi * _TONES_HZ[len(word.encode()) % len(_TONES_HZ)] / VOICE_RATE
    samples = [round(_TONE_LOUDNESS * math.sin(step * position)) for position in range(_TONE_SAMPLES)]
    return struct.pack(f"<{len(samples)}h", *samples)


def _length_of_sound(data: bytes) -> int:
    """The number of bytes up to the last sample that is not silence."""
    samples = struct.unpack(f"<{len(data) // 2}h", data[: len(data) // 2 * 2])
    for position in range(len(samples) - 1, -1, -1):
        if abs(samples[position]) > _LOUDEST_SILENCE:
            return 2 * (position + 1)
    return 0


async def _run(say: Callable[[], Awaitable[None]]) -> None:
    await say()


def _parts(response: LlmResponse) -> list[types.Part]:
    return (response.content and response.content.parts) or []


def _without_response(content: types.Content, call_id: str | None) -> types.Content:
    """The content without an earlier response to this call: a tool may respond again, and the last one counts."""
    kept = [part for part in content.parts or [] if (part.function_response or types.FunctionResponse()).id != call_id]
    return content.model_copy(update={"parts": kept})
