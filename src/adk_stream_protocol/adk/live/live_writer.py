"""What a live session sends to its listeners and writes into its segments: words, voice, transcripts, results."""

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.call_record import CallKey, Records
from ...protocol.chunks import Data
from ...protocol.frames import encode_audio
from ..calls.outcomes import as_response
from ..event_parts import ArtifactFile, is_voice
from ..live_listener import LiveListener
from .live_message import LiveMessage

Files = dict[str, ArtifactFile] | None

_RATE = re.compile(r"rate=(\d+)")
_USUAL_RATE = 24_000


class LiveWriter:
    def __init__(self, chat_id: str, records: Records, listeners: AbstractSet[LiveListener]) -> None:
        self._chat_id = chat_id
        self._records = records
        self._listeners = listeners

    # -- listeners ----------------------------------------------------------------------------------------------------

    def notify(self, message: LiveMessage, by: LiveListener | None) -> None:
        for listener in list(self._listeners):
            if listener is not by:
                listener.turn(self._chat_id, message.message_id, message.user_message_id)

    def clear_voice(self) -> None:
        for listener in list(self._listeners):
            listener.audio_clear(self._chat_id)

    # -- segments -----------------------------------------------------------------------------------------------------

    def write(self, message: LiveMessage, event: Event, files: Files, *, plays: bool) -> None:
        said = event.output_transcription
        if said is not None:
            is_all = bool(said.finished)
            whole = message.say_aloud(said.text or "", is_all=is_all)
            self._tell_transcript("assistant", message.message_id, whole, is_all=is_all)
        parts = (event.content.parts if event.content else None) or []
        rest = [part for part in parts if not (part.inline_data and is_voice(part.inline_data))]
        if len(rest) < len(parts):
            if plays:
                self.play(message, event)
            if not rest:
                return
            event = event.model_copy(update={"content": types.Content(role="model", parts=rest)})
        message.write(message.translator.feed(event, files, records=self._records))

    def play(self, message: LiveMessage, event: Event) -> None:
        for part in (event.content.parts if event.content else None) or ():
            voice = part.inline_data
            if voice is None or not is_voice(voice):
                continue
            rate, samples = _rate_of(voice.mime_type or ""), voice.data or b""
            wants_pcm = False
            for listener in self._listeners:
                listener.audio(self._chat_id, samples, rate)
                wants_pcm = wants_pcm or listener.wants_pcm
            if wants_pcm:
                message.write([Data("data-pcm", {"rate": rate, "data": encode_audio(samples)}, transient=True)])

    def hear(self, message: LiveMessage, event: Event) -> None:
        heard = event.input_transcription
        if heard is not None:
            is_all = bool(heard.finished)
            whole = message.hear(heard.text or "", is_all=is_all)
            self._tell_transcript("user", message.user_message_id, whole, is_all=is_all)

    def _tell_transcript(self, role: str, message_id: str, text: str, *, is_all: bool) -> None:
        for listener in self._listeners:
            listener.transcript(self._chat_id, role, message_id, text, is_final=is_all)

    def write_event(self, message: LiveMessage, event: Event) -> None:
        """An event that ADK does not emit."""
        message.write(message.translator.feed(event, records=self._records))


@lru_cache(maxsize=16)
def _rate_of(mime_type: str) -> int:
    found = _RATE.search(mime_type)
    return int(found[1]) if found else _USUAL_RATE


def result_event(made_by: Event, call: CallKey, response: Any) -> Event:
    name = next((found.name for found in made_by.get_function_calls() if found.id == call.call_id), "")
    answer = types.FunctionResponse(id=call.call_id, name=name, response=as_response(response))
    return Event(
        author=made_by.author,
        branch=made_by.branch,
        invocation_id=made_by.invocation_id,
        content=types.Content(role="user", parts=[types.Part(function_response=answer)]),
    )
