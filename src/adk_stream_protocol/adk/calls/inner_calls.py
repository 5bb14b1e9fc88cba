"""Calls that ADK's session has no events of: of agents that run as tools, and of workflow nodes.

Whoever reads a session gets such events for them, made of their records. Each stands where it stood in the stream: the
next event that ADK stores names what came before it.
"""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from operator import itemgetter
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, CallRecord
from ..event_parts import METADATA_KEY, as_dict
from ..session import MessageIds, message_id_of
from .leased_chat import InnerStep, LeasedChat
from .outcomes import ended_response

_NAMES_KEY = f"{METADATA_KEY}_inner_calls"


def call_event(record: CallRecord, ids: MessageIds) -> Event:
    """The call, as its agent made it. `ids`: of its message."""
    about = as_dict(record.made_in)
    call_id = record.call.call_id
    made = types.FunctionCall(id=call_id, name=record.tool, args=record.arguments)
    return Event(
        content=types.Content(role="model", parts=[types.Part(function_call=made)]),
        long_running_tool_ids={call_id} if about.get("outlives") else None,
        **_where(record, ids),
    )


def result_event(record: CallRecord, ids: MessageIds) -> Event:
    """What came of it: its record is final."""
    response = {} if record.lacks_result else ended_response(record)  # whoever wants to show it has loaded it
    answer = types.FunctionResponse(id=record.call.call_id, name=record.tool, response=response)
    part = types.Part(function_response=answer)
    where = _where(record, ids)
    if record.executor == "browser":  # the client's word, not the tool's first one
        where["author"] = "user"
    return Event(content=types.Content(role="user", parts=[part]), **where)


def _where(record: CallRecord, ids: MessageIds) -> dict[str, Any]:
    about = as_dict(record.made_in)
    agent, outer = str(about.get("agent") or "agent"), about.get("outer")
    return {
        "author": agent,
        "branch": f"{agent}@{outer}" if outer else None,  # as ADK names the branch of an agent that works on a call
        "invocation_id": record.call.invocation_id,
        "custom_metadata": ids.metadata(),
    }


def answer_event(record: CallRecord, ids: MessageIds) -> Event:
    """Its client has answered: here a segment ended."""
    answer = types.FunctionResponse(id=record.asked_as, name=CONFIRMATION, response={})
    where: dict[str, Any] = {**_where(record, ids), "author": "user"}
    return Event(content=types.Content(role="user", parts=[types.Part(function_response=answer)]), **where)


_EVENTS: dict[InnerStep, Callable[[CallRecord, MessageIds], Event]] = {
    "call": call_event,
    "answer": answer_event,
    "result": result_event,
}


# -- their places in the session --------------------------------------------------------------------------------------


def name_inner_calls(event: Event, leased: LeasedChat) -> None:
    """ADK is about to store this event: it follows what was told of nested calls meanwhile."""
    parts = (event.content.parts if event.content else None) or ()
    is_stored = not event.partial and (parts or event.output is not None)
    if leased.unplaced and is_stored and not any(part.inline_data is not None for part in parts):
        names = [[step, *call] for step, call in leased.unplaced]
        event.custom_metadata = {**(event.custom_metadata or {}), _NAMES_KEY: names}
        leased.unplaced.clear()


def with_inner_calls(
    events: list[Event], records: Iterable[CallRecord], told: Iterable[tuple[InnerStep, CallKey]] = ()
) -> list[Event]:
    """The session's events, and those of the recorded calls that it does not have. `told`: what was told of those after
    the last event, if that is known here."""
    inner = {record.call: record for record in records if record.is_nested}
    if not inner:
        return events
    last = {message_id_of(event): place for place, event in enumerate(events)}
    steps: list[_Steps] = [[(step, inner[call]) for step, call in _named(event) if call in inner] for event in events]
    placed = {(step, record.call) for told in steps for step, record in told}
    unplaced: dict[int, list[CallRecord]] = {}
    for record in inner.values():
        if record.message_id in last:
            unplaced.setdefault(last[record.message_id], []).append(record)
    found: list[Event] = []
    for place, event in enumerate(events):
        ids = _ids_beside(event)
        found += [_EVENTS[step](record, ids) for step, record in steps[place]]
        found.append(event)
        later = _in_time(unplaced.get(place, ()), list(told))
        found += [_EVENTS[step](record, ids) for step, record in later if (step, record.call) not in placed]
    return found


def _named(event: Event) -> Iterator[tuple[InnerStep, CallKey]]:
    names: Any = (event.custom_metadata or {}).get(_NAMES_KEY) or ()
    for step, invocation_id, call_id in names:
        yield step, CallKey(invocation_id, call_id)


_Steps = list[tuple[InnerStep, CallRecord]]


def _in_time(records: Iterable[CallRecord], told: list[tuple[InnerStep, CallKey]]) -> _Steps:
    """What no stored event names: the run still waits, or was lost."""
    if told:
        known = {record.call: record for record in records}
        return [(step, known[call]) for step, call in told if call in known]
    steps: list[tuple[float, InnerStep, CallRecord]] = []
    for record in records:
        steps.append((record.asked_at, "call", record))
        if record.is_final or record.decided_at is not None:
            steps.append((record.decided_at or record.deadline or inf, "answer", record))
        if record.is_final:
            steps.append((inf, "result", record))
    return [(step, record) for _, step, record in sorted(steps, key=itemgetter(0))]


def _ids_beside(event: Event) -> MessageIds:
    shown = MessageIds.of(event)
    return MessageIds(
        user_message_id=shown.user_message_id,
        message_id=message_id_of(event),
        approval_style=shown.approval_style,
        send_state=shown.send_state,
        send_nodes=shown.send_nodes,
    )
