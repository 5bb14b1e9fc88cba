"""ADK's events of a live session, as facts of the live table."""

from google.adk.events import Event
from google.genai import types

from ...protocol.call_record import CallKey, Records, State
from ...protocol.live_facts import ModelEvent
from ..event_parts import CONTROL_FLOW, is_all_voice, is_said, recorded_voice, worked_on_in


def read_event(event: Event, records: Records | None = None) -> ModelEvent:
    if is_all_voice(event):
        return ModelEvent(
            event.id,
            is_said=True,
            is_partial=bool(event.partial),
            is_interrupted=bool(event.interrupted),
            is_turn_complete=bool(event.turn_complete),
        )
    heard, status = event.input_transcription, event.interaction_status
    calls = [CallKey(event.invocation_id, call.id or "") for call in shown_calls(event)]
    responses = event.get_function_responses()
    results = [CallKey(event.invocation_id, response.id or "") for response in responses]
    return ModelEvent(
        event.id,
        is_said=is_said(event),
        is_partial=bool(event.partial),
        calls=tuple(calls),
        inside=CallKey(event.invocation_id, inside) if (inside := worked_on_in(event)) else None,
        results=tuple(results),
        is_untold=bool(results) and all(is_withdrawn(key, records or {}) for key in results),
        is_transcript=event.output_transcription is not None and event.content is None,
        heard=None if heard is None else bool(heard.finished),
        is_interrupted=bool(event.interrupted),
        is_turn_complete=bool(event.turn_complete),
        goes_on=None if status is None else status.value == "IN_PROGRESS",
        has_reason=event.turn_complete_reason is not None,
        hands_over=bool(event.actions.transfer_to_agent) or any(found.name == "task_completed" for found in responses),
        is_recording=bool(recorded_voice(event)),
    )


def is_withdrawn(call: CallKey, records: Records) -> bool:
    """Whether this call came to nothing, because the model took it back."""
    found = records.get(call)
    return found is not None and found.state is State.WITHDRAWN


def shown_calls(event: Event) -> list[types.FunctionCall]:
    return [call for call in event.get_function_calls() if call.name not in CONTROL_FLOW]
