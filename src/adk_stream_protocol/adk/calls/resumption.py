"""How answers and outcomes of calls get into ADK's session, and questions that a live session left open."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, CallRecord, Records, State
from ...protocol.tool_parts import STOPPED
from ..event_parts import REQUEST_INPUT
from ..session import MessageIds, message_id_of
from .outcomes import ended_response, outcomes_inside
from .questions import REQUIRES_CONFIRMATION
from .session_calls import SessionCall


@dataclass(frozen=True)
class Resumption:
    """How ADK gets the answers: some are appended to the session, then one run is started for each message."""

    appended: Sequence[Event]
    messages: Sequence[types.Content]
    browser_answers: Sequence[Event]
    """All results of browser calls, as they will be in the session."""
    outputs: frozenset[CallKey]
    """The calls that those results are of."""


def plan_resumption(calls: Sequence[SessionCall], ids: MessageIds) -> Resumption:
    """Confirmations and credentials are sent without other parts: ADK hides a message from the model if there is one in
    it."""
    groups: dict[tuple[bool, tuple[str, str, str | None]], list[SessionCall]] = {}
    for call in calls:
        groups.setdefault((call.is_credential, call.group), []).append(call)
    appended: list[Event] = []
    messages: list[types.Content] = []
    answers: list[Event] = []
    for group in groups.values():
        confirmed = [_confirmation(call) for call in group if call.record.executor == "server"]
        outputs = [response_part(call.record) for call in group if call.record.executor == "browser"]
        if outputs:
            answer = answer_event(group[0].asked_by, outputs, ids)
            answers.append(answer)
            if confirmed:
                appended.append(answer)
        messages.append(types.Content(role="user", parts=confirmed or outputs))
    outputs = frozenset(call.key for call in calls if call.record.executor == "browser")
    return Resumption(appended, messages, answers, outputs)


def question_events(calls: Iterable[SessionCall]) -> list[Event]:
    """ADK's questions for calls that waited when a live session ended. A live session asks without events of ADK's. To
    continue such a call, request mode needs what it would have left in the session itself: ADK's question, and a
    placeholder for the result."""
    events: list[Event] = []
    for call in calls:
        if call.is_known_to_adk or call.has_result or not call.is_asked:
            continue
        record, made_by = call.record, call.asked_by
        ids = MessageIds(user_message_id=None, message_id=call.message_id)
        asked = ToolConfirmation(hint=record.hint or "")
        original = types.FunctionCall(id=record.call.call_id, name=record.tool, args=record.arguments)
        question = types.FunctionCall(
            id=call.approval_id,
            name=CONFIRMATION,
            args={
                "originalFunctionCall": original.model_dump(exclude_none=True, by_alias=True),
                "toolConfirmation": asked.model_dump(by_alias=True, exclude_none=True),
            },
        )
        about: dict[str, Any] = {
            "author": made_by.author,
            "invocation_id": made_by.invocation_id,
            "branch": made_by.branch,
            "custom_metadata": ids.metadata(),
        }
        events.append(
            Event(
                content=types.Content(role="model", parts=[types.Part(function_call=question)]),
                long_running_tool_ids={call.approval_id or ""},
                **about,
            )
        )
        placeholder = _function_response(record.call.call_id, record.tool, {"error": REQUIRES_CONFIRMATION})
        events.append(
            Event(
                content=types.Content(role="user", parts=[placeholder]),
                actions=EventActions(
                    skip_summarization=True, requested_tool_confirmations={record.call.call_id: asked}
                ),
                **about,
            )
        )
    return events


def stopped_call_events(events: Iterable[Event], continued: Sequence[SessionCall], records: Records) -> list[Event]:
    """Results for calls that a live session had not started when it was lost. A live session is one invocation: when
    ADK resumes it, ADK would run these calls now, in a message that nobody reads any more."""
    invocations = {call.asked_by.invocation_id for call in continued}
    messages = {call.message_id for call in continued}
    others = [event for event in events if event.invocation_id in invocations and not event.partial]
    answered = {response.id for event in others for response in event.get_function_responses()}
    inside, stopped = outcomes_inside(records), list[Event]()
    for event in others:
        if message_id_of(event) in messages:
            continue
        for call in event.get_function_calls():
            key = CallKey(event.invocation_id, call.id or "")
            is_waiting = call.id in (event.long_running_tool_ids or ()) or key in records
            if call.id not in answered and not is_waiting:
                stopped.append(_stopped_call_event(event, call, inside))
    return stopped


def lost_call_events(events: Sequence[Event], records: Records) -> list[Event]:
    """Results for calls that a lost run left without any, and in which others were made: the model hears what those
    have done. `events`: without those that a rewind took back."""
    inside, lost = outcomes_inside(records), list[Event]()
    answered = {(event.invocation_id, response.id) for event in events for response in event.get_function_responses()}
    for event in events:
        for call in event.get_function_calls():
            key = CallKey(event.invocation_id, call.id or "")
            if key.call_id in inside and key not in records and key not in answered:
                lost.append(_stopped_call_event(event, call, inside))
    return lost


def _stopped_call_event(event: Event, call: types.FunctionCall, inside: Mapping[Any, Any]) -> Event:
    told: dict[str, Any] = {"error": STOPPED}
    if call.id in inside:
        told["calls"] = inside[call.id]
    ids = MessageIds(user_message_id=None, message_id=message_id_of(event))
    ended = answer_event(event, [_function_response(call.id, call.name or "", told)], ids)
    ended.author = event.author
    return ended


def answer_event(asked_by: Event, parts: list[types.Part], ids: MessageIds) -> Event:
    return Event(
        author="user",
        invocation_id=asked_by.invocation_id,
        branch=asked_by.branch,
        isolation_scope=asked_by.isolation_scope,
        content=types.Content(role="user", parts=parts),
        custom_metadata=ids.metadata(),
    )


def outcome_events(calls: Iterable[SessionCall]) -> list[Event]:
    """Events with the outcomes of calls that ended while no run waited for them."""
    events: list[Event] = []
    for call in calls:
        ids = MessageIds(user_message_id=None, message_id=call.message_id)
        event = answer_event(call.asked_by, [response_part(call.record)], ids)
        if call.record.executor == "server":
            event.author = call.asked_by.author
        events.append(event)
    return events


_NEVER_RUN = (State.DENIED, State.EXPIRED, State.WITHDRAWN)


def _confirmation(call: SessionCall) -> types.Part:
    # The gate decides by the record, whatever this says. But if this says no, ADK does not run the tool either.
    confirmation: dict[str, Any] = {"confirmed": call.record.state not in _NEVER_RUN}
    if call.record.payload is not None:
        confirmation["payload"] = call.record.payload
    return _function_response(call.approval_id, CONFIRMATION, confirmation)


def response_part(record: CallRecord) -> types.Part:
    """The response that ADK gets for a call that has ended."""
    response = ended_response(record)
    if record.tool == REQUEST_INPUT and response.keys() != {"result"}:
        response = {"result": response}
    return _function_response(record.call.call_id, record.tool, response)


def _function_response(call_id: str | None, name: str, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call_id, name=name, response=response))
