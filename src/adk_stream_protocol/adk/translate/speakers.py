"""The agents of one message: what each of them has said so far."""

from dataclasses import dataclass, field
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.chunks import ProviderMetadata
from ..event_parts import model_call_of
from .spoken_text import SpokenText
from .tool_arguments import StreamedArguments


@dataclass(eq=False)
class Speaker:
    """One agent on one branch; parallel agents speak at the same time."""

    metadata: ProviderMetadata | None = None
    is_aloud: bool = False  # what it says now is a transcript of its voice
    said: SpokenText = field(default_factory=SpokenText)
    arguments: StreamedArguments = field(default_factory=StreamedArguments)
    streamed_calls: set[str] = field(default_factory=set[str])  # calls whose arguments are streaming
    call_since_text: bool = False  # a partial event brought a call: text that follows is another part
    streamed_parts: int = 0  # files, code and the like from partial events, which the whole event repeats
    wire_ids: dict[str, str] = field(default_factory=dict[str, str])  # of its calls, by ADK's ids
    open_server_calls: list[str] = field(default_factory=list[str])  # at the model's service, without a result yet

    @property
    def text_metadata(self) -> ProviderMetadata | None:
        """Of what it says now. One model call may have thoughts, speech and calls."""
        if not self.is_aloud:
            return self.metadata
        return {"adk": {**(self.metadata or {}).get("adk", {}), "transcript": True}}

    def repeats_part(self) -> bool:
        """Whether a partial event has brought this part already. They come in the same order, so counting is enough."""
        if self.streamed_parts == 0:
            return False
        self.streamed_parts -= 1
        return True

    def end_model_call(self) -> None:
        self.streamed_calls.clear()
        self.streamed_parts = 0
        self.call_since_text = False
        self.arguments.clear()


class Speakers:
    def __init__(self, root_author: str) -> None:
        self._root_author = root_author
        self._speakers: dict[tuple[str, str | None], Speaker] = {}
        self._model_calls: set[str] = set()

    def of(self, event: Event) -> Speaker:
        key = (event.author, event.branch)
        speaker = self._speakers.get(key)
        if speaker is None:
            speaker = self._speakers[key] = Speaker()
        speaker.is_aloud = event.output_transcription is not None
        return speaker

    def is_new_model_call(self, event: Event) -> bool:
        model_call = model_call_of(event)
        if model_call in self._model_calls:
            return False
        self._model_calls.add(model_call)
        return True

    def metadata(self, event: Event, wire_id: str | None) -> ProviderMetadata | None:
        """What a page may want to know of a part. `wire_id`: of the call that this agent works on."""
        about: dict[str, Any] = {} if event.author == self._root_author else {"author": event.author}
        if wire_id is not None:
            about["toolCallId"] = wire_id
        return {"adk": about} if about else None

    def half_said(self) -> list[tuple[str, str | None, list[types.Part]]]:
        """What agents have said without coming to an end, by author and branch. ADK keeps none of it."""
        said = [(key, speaker.said.unconfirmed()) for key, speaker in self._speakers.items()]
        return [
            (author, branch, [types.Part(text=text, thought=kind == "reasoning" or None) for kind, text in pieces])
            for (author, branch), pieces in said
            if pieces
        ]
