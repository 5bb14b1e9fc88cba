"""What ADK sends to the model in a scripted live session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from google.genai import types

Kind = Literal[
    "history", "content", "response", "audio", "video", "activity_start", "activity_end", "audio_stream_end", "close"
]

_SILENT = types.FunctionResponseScheduling.SILENT


@dataclass(frozen=True)
class Received:
    """One thing that ADK has sent to the model."""

    kind: Kind
    contents: Sequence[types.Content] = ()
    blob: types.Blob | None = None
    partial: bool = False

    @property
    def text(self) -> str:
        return "".join(part.text or "" for part in self._parts())

    @property
    def responses(self) -> list[types.FunctionResponse]:
        return [part.function_response for part in self._parts() if part.function_response]

    @property
    def asks_for_reply(self) -> bool:
        """Whether the model is to reply now. It replies to a history only if that ends with the user, and not to
        responses that it is to take in silence."""
        if self.responses and all(found.scheduling is _SILENT for found in self.responses):
            return False
        if self.kind == "history":
            return self.contents[-1].role == "user"
        return self.kind in ("content", "response", "activity_end", "audio_stream_end") and not self.partial

    @property
    def final_responses(self) -> list[types.FunctionResponse]:
        """Without responses that say that another response follows."""
        return [found for found in self.responses if not found.will_continue]

    def _parts(self) -> list[types.Part]:
        return [part for content in self.contents for part in content.parts or []]
