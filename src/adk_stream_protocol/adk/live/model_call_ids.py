"""The ids of a live model's calls: unique in the chat for ADK, records and clients, and its own for the model.

A model that numbers its calls anew, or gives two calls of one message the same id, would get one result for both, and a
person's answer to one card would be the other's.
"""

from collections.abc import Iterable

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from ..calls.call_ids import CallIds

_MODEL = ""  # ADK's live events do not say which agent's model has made them before they are events


class ModelCallIds:
    def __init__(self, call_ids: CallIds) -> None:
        self._ids = call_ids
        self._own: dict[str, str] = {}  # of calls that were renamed: what the model calls them
        self._is_streaming = False

    def rename_repeated(self, response: LlmResponse) -> None:
        """Before ADK reads what the model has sent."""
        own = _calls_in(response)
        if not own:
            return
        if not self._is_streaming:  # a call that has streamed comes again, whole
            self._ids.new_model_call(_MODEL, None)
        self._is_streaming = bool(response.partial)
        self._ids.rename_repeated(response, _MODEL, None, ())
        self._own |= {given: id for given, id in zip(_calls_in(response), own, strict=True) if given != id}

    def given(self, own_ids: Iterable[str]) -> list[str]:
        """Under which ids ADK knows the calls that the model names like this."""
        names = list(own_ids)
        return [*names, *(given for given, own in self._own.items() if own in names)]

    def with_own_ids(self, content: types.Content) -> types.Content:
        """Results as the model gets them. What ADK has stored stays as it is."""
        parts = content.parts or []
        if not any(part.function_response and part.function_response.id in self._own for part in parts):
            return content
        return types.Content(role=content.role, parts=[self._with_own_id(part) for part in parts])

    def _with_own_id(self, part: types.Part) -> types.Part:
        result = part.function_response
        if result is None or result.id not in self._own:
            return part
        return part.model_copy(update={"function_response": result.model_copy(update={"id": self._own[result.id]})})


def _calls_in(response: LlmResponse) -> list[str]:
    parts = (response.content.parts if response.content is not None else None) or ()
    return [part.function_call.id for part in parts if part.function_call is not None and part.function_call.id]
