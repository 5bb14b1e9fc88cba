"""Corrects what ADK writes into the session when a run is aborted.

ADK answers every open call with an error. Then the model would read that a payment was aborted which was in fact made,
and questions would be closed that a person may still answer. So the seal gets the recorded outcomes instead.
"""

from collections.abc import Iterable
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, Records
from ..event_parts import as_dict
from .outcomes import ended_response, outcomes_inside


def seal_as_recorded(seal: Event, events: Iterable[Event], records: Records) -> None:
    if seal.content is None or not seal.content.parts:
        return
    questions = {
        call.id: str(as_dict(as_dict(call.args).get("originalFunctionCall")).get("id"))
        for event in events
        for call in event.get_function_calls()
        if call.name == CONFIRMATION and event.invocation_id == seal.invocation_id
    }
    inside = outcomes_inside(records)
    kept: list[types.Part] = []
    for part in seal.content.parts:
        sealed = part.function_response
        if sealed is None:
            kept.append(part)
            continue
        record = records.get(CallKey(seal.invocation_id, questions.get(sealed.id, sealed.id or "")))
        if record is None and sealed.id in inside:
            kept.append(_responding(sealed, {**(sealed.response or {}), "calls": inside[sealed.id]}))
        elif record is None or (sealed.id in questions and record.is_final):
            kept.append(part)
        elif record.is_final:
            kept.append(_responding(sealed, ended_response(record)))
        # else the call is still open, so the session must not have a response for it
    seal.content = types.Content(role=seal.content.role, parts=kept) if kept else None


def _responding(sealed: types.FunctionResponse, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=sealed.model_copy(update={"response": response}))
