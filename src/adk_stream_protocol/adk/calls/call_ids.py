"""Ids of calls that are unique in their chat.

Some models number their calls anew in every answer ("0", "1", ...). An answer of a person's names a call by its id, so
a second "0" must not be mistaken for the first. It gets a suffix before ADK sees it: session, record, wire and history
then all have the same id.
"""

from collections.abc import Iterable

from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class CallIds:
    """Of one chat, while one run holds it."""

    def __init__(self, recorded: Iterable[str]) -> None:
        self._taken = set(recorded)
        self._knows_session = False
        self._given: dict[tuple[str, str | None], dict[str, list[str]]] = {}  # by speaker, in its running model call

    def new_model_call(self, agent: str, branch: str | None) -> None:
        self._given.pop((agent, branch), None)

    def rename_repeated(self, response: LlmResponse, agent: str, branch: str | None, events: Iterable[Event]) -> None:
        """Give its calls ids that no other call of the chat has. The parts are the model's own: they are copied."""
        parts = (response.content.parts if response.content else None) or []
        if response.content is None or not any(part.function_call and part.function_call.id for part in parts):
            return
        self._look_through(events)
        given = self._given.setdefault((agent, branch), {})
        seen: dict[str, int] = {}
        renamed: list[types.Part] = []
        for part in parts:
            call = part.function_call
            if call is None or not call.id:
                renamed.append(part)
                continue
            # What was streamed comes again in the whole: there the first call of an id is the one that was streamed.
            place = seen.get(call.id, 0)
            seen[call.id] = place + 1
            ids = given.setdefault(call.id, [])
            if place == len(ids):
                ids.append(self._free(call.id))
            if ids[place] != call.id:
                part = part.model_copy(update={"function_call": call.model_copy(update={"id": ids[place]})})
            renamed.append(part)
        response.content = types.Content(role=response.content.role, parts=renamed)

    def _look_through(self, events: Iterable[Event]) -> None:
        """Also through what was rewound: an answer to it may still be on its way."""
        if not self._knows_session:
            self._knows_session = True
            for event in events:
                self._taken.update(call.id for call in event.get_function_calls() if call.id)

    def _free(self, call_id: str) -> str:
        new_id, count = call_id, 1
        while new_id in self._taken:
            count += 1
            new_id = f"{call_id}-{count}"
        self._taken.add(new_id)
        return new_id
