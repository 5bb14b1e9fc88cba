"""Words that came in pieces, and whose whole has not come yet.

A model's connection sends words as they are said, and all of them again when the turn ends. ADK stores only the whole,
and the history shows what is stored. When a connection is lost, the whole never comes, so it is made here.

Gemini 3 calls tools in mid-turn, and ADK gives what was said aloud before a call only with the rest, after the call.
The user has heard it before: so the session gets it before, too.
"""

from google.adk.models.llm_response import LlmResponse
from google.genai import types


class UnfinishedTexts:
    def __init__(self) -> None:
        self._said: list[types.Part] = []
        self._heard = ""
        self._spoken = ""
        self._spoken_before_calls = ""

    def feed(self, response: LlmResponse) -> list[LlmResponse]:
        """What ADK is to get for this response."""
        parts = (response.content.parts if response.content is not None else None) or []
        texts = [part for part in parts if part.text]
        if texts and not response.partial:
            self._said = []
        elif texts:
            self._said += texts
        self._heard = _so_far(self._heard, response.input_transcription)
        self._spoken = _so_far(self._spoken, response.output_transcription)
        if self._spoken and any(part.function_call for part in parts):
            return [self._whole_before_call(response), response]
        spoken = response.output_transcription
        if spoken is not None and spoken.finished and self._spoken_before_calls:
            return self._without_known(response, spoken.text or "")
        return [response]

    def _whole_before_call(self, response: LlmResponse) -> LlmResponse:
        spoken = types.Transcription(text=self._spoken, finished=True)
        self._spoken_before_calls += self._spoken
        self._spoken = ""
        return LlmResponse(
            output_transcription=spoken,
            partial=False,
            model_version=response.model_version,
            live_session_id=response.live_session_id,
        )

    def _without_known(self, response: LlmResponse, text: str) -> list[LlmResponse]:
        rest = text.removeprefix(self._spoken_before_calls)
        self._spoken_before_calls = ""
        if not rest:
            return []
        return [response.model_copy(update={"output_transcription": types.Transcription(text=rest, finished=True)})]

    def take_wholes(self) -> list[LlmResponse]:
        """What the connection would have sent at the end of the turn."""
        wholes: list[LlmResponse] = []
        if self._heard:
            heard = types.Transcription(text=self._heard, finished=True)
            wholes.append(LlmResponse(input_transcription=heard, partial=False))
        if self._spoken:
            spoken = types.Transcription(text=self._spoken, finished=True)
            wholes.append(LlmResponse(output_transcription=spoken, partial=False))
        # A thought and an answer each come whole before the other begins: what is left is of one kind.
        if self._said:
            text = "".join(part.text or "" for part in self._said)
            whole = types.Part(text=text, thought=self._said[-1].thought)
            wholes.append(LlmResponse(content=types.Content(role="model", parts=[whole]), partial=False))
        self._said, self._heard, self._spoken = [], "", ""
        return wholes


def _so_far(text: str, more: types.Transcription | None) -> str:
    if more is None:
        return text
    return "" if more.finished else text + (more.text or "")
