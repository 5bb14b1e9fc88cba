"""Ids of calls that are unique in their chat.

Some models start to number their calls again in every response ("0", "1", ...). A person's answer names a call by its
id, so a second "0" must not be mistaken for the first. It gets a suffix before ADK sees it: then the session, the
record, the wire and the history have the same id.
"""

from collections.abc import Iterable

from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class CallIds:
    """The ids of the calls of one chat, during one run."""

    def __init__(self, recorded: Iterable[str]) -> None:
        self._taken = set(recorded)
        self._has_read_session = False
        self._given: dict[
            tuple[str, str | None], dict[str, list[str]]
        ] = {}  # by agent and branch, for its current model call

    def new_model_call(self, agent: str, branch: str | None) -> None:
        self._given[agent, branch] = {}

    def rename_replaced(self, event: Event, events: Iterable[Event]) -> None:
        """The same for calls that came from a callback of the application and not from the model. The event is the one
        that ADK stores, and runs the calls of."""
        given = self._given.get((event.author, event.branch))
        known = {new_id for ids in (given or {}).values() for new_id in ids}
        old_ids = [call.id for call in event.get_function_calls()]
        if given is None or event.partial or known.issuperset(old_ids):
            return
        self.rename_repeated(event, event.author, event.branch, events)
        new_ids = [call.id for call in event.get_function_calls()]
        was_long_running = event.long_running_tool_ids or ()
        event.long_running_tool_ids = {
            new_id or "" for old_id, new_id in zip(old_ids, new_ids, strict=True) if old_id in was_long_running
        }

    def rename_repeated(self, response: LlmResponse, agent: str, branch: str | None, events: Iterable[Event]) -> None:
        """Give the calls of the response ids that no other call of the chat has. Parts are copied before they are
        changed: they belong to the model."""
        parts = (response.content.parts if response.content else None) or []
        if response.content is None or not any(part.function_call and part.function_call.id for part in parts):
            return
        self._read_session(events)
        given = self._given.setdefault((agent, branch), {})
        seen: dict[str, int] = {}
        renamed: list[types.Part] = []
        for part in parts:
            call = part.function_call
            if call is None or not call.id:
                renamed.append(part)
                continue
            # A streamed call comes again in the complete response: there the first call of an id is the streamed one.
            place = seen.get(call.id, 0)
            seen[call.id] = place + 1
            ids = given.setdefault(call.id, [])
            if place == len(ids):
                ids.append(self._free(call.id))
            if ids[place] != call.id:
                part = part.model_copy(update={"function_call": call.model_copy(update={"id": ids[place]})})
            renamed.append(part)
        response.content = types.Content(role=response.content.role, parts=renamed)

    def _read_session(self, events: Iterable[Event]) -> None:
        """Rewound events count, too: an answer to one of their calls may still arrive."""
        if not self._has_read_session:
            self._has_read_session = True
            for event in events:
                self._taken.update(call.id for call in event.get_function_calls() if call.id)

    def _free(self, call_id: str) -> str:
        new_id, count = call_id, 1
        while new_id in self._taken:
            count += 1
            new_id = f"{call_id}-{count}"
        self._taken.add(new_id)
        return new_id
