"""One truth per call: what was shown, decided, run, told to the model and recorded must agree.

`disagreements` compares the evidence of one chat and says in plain words where it does not agree. It knows the wire,
the store's records and ADK's session, and nothing of the code that it judges.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event

from adk_stream_protocol.protocol.call_record import CallKey, CallRecord
from adk_stream_protocol.store.base import AuditEntry
from support.evidence import ClientStream, Said, World
from support.tool_log import ToolRun

Part = dict[str, Any]

CONFIRMATION = "adk_request_confirmation"
NOT_ENDED = ("pending", "approved", "claimed", "started")
NOT_ASKED = "the run ended before anybody was asked"
SHOWN_ENDS = ("output-available", "output-error", "output-denied")
SHOWN_WAITING = ("approval-requested", "input-available")


# -- one call, from all sides -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shown:
    where: str
    state: str
    part: Mapping[str, Any]

    @property
    def has_ended(self) -> bool:
        return self.state in SHOWN_ENDS and not self.part.get("preliminary")


@dataclass(frozen=True)
class _Call:
    key: CallKey
    tool: str
    asked_with: Any
    trail: Sequence[AuditEntry]
    runs: Sequence[ToolRun]
    record: CallRecord | None
    is_kept: bool
    """It stands in the session, and no rewind has taken it back."""
    told: Any
    """What the session tells the model of it, or None."""

    @property
    def name(self) -> str:
        return f"{self.tool}({json.dumps(self.asked_with)}) [{self.key.call_id}]"

    @property
    def state(self) -> str:
        """As recorded, or as it was when the chat was deleted."""
        return str(self.record.state if self.record else self.trail[-1].state if self.trail else "not recorded")

    @property
    def has_ended(self) -> bool:
        return self.state not in (*NOT_ENDED, "not recorded")

    @property
    def was_deleted(self) -> bool:
        return self.record is None

    @property
    def response(self) -> Any:
        """What the record says that the tool gave."""
        result = (self.record.result if self.record else None) or {}
        value = result.get("response", result.get("output", result))
        return value if isinstance(value, dict) else {"result": value}

    @property
    def output(self) -> Any:
        result = (self.record.result if self.record else None) or {}
        return result.get("response", result.get("output"))


def _calls(world: World) -> list[_Call]:
    records = {record.call: record for record in world.records}
    trails: dict[CallKey, list[AuditEntry]] = {}
    for entry in world.audit:
        trails.setdefault(entry.call, []).append(entry)
    runs: dict[CallKey, list[ToolRun]] = {}
    for run in world.runs:
        runs.setdefault(run.call, []).append(run)
    kept = kept_events(world.events)
    in_session = {CallKey(event.invocation_id, call.id or "") for event in kept for call in event.get_function_calls()}
    told = _told(kept)
    calls: list[_Call] = []
    for key in dict.fromkeys([*trails, *records, *runs]):
        trail, record, ran = trails.get(key, []), records.get(key), runs.get(key, [])
        first = trail[0] if trail else record or ran[0]
        calls.append(
            _Call(key, first.tool, first.arguments, trail, ran, record, key in in_session, told.get(key)),
        )
    return calls


def kept_events(events: Sequence[Event]) -> list[Event]:
    """Without those that a rewind took back."""
    kept: list[Event] = []
    place = len(events) - 1
    while place >= 0:
        target = events[place].actions.rewind_before_invocation_id
        if target:
            place = next((p for p in range(place) if events[p].invocation_id == target), place)
        else:
            kept.insert(0, events[place])
        place -= 1
    return kept


def _told(events: Iterable[Event]) -> dict[CallKey, Any]:
    """The last response of each call that is more than a place holder."""
    told: dict[CallKey, Any] = {}
    for event in events:
        for response in event.get_function_responses():
            if response.name != CONFIRMATION and response.id not in event.actions.requested_tool_confirmations:
                told[CallKey(event.invocation_id, response.id or "")] = response.response
    return told


# -- where they disagree ----------------------------------------------------------------------------------------------


def disagreements(world: World) -> list[str]:
    """Empty if all that is known of the chat's calls fits together."""
    calls = _calls(world)
    found = [*_of_streams(world), *_of_ids(world, calls)]
    shown = _shown_in_streams(world, calls)
    for call in calls:
        for texts in (
            _of_runs(world, call),
            _of_streams_about(world, call, shown.get(call.key, [])),
            _of_history(world, call, calls),
            _of_telling(world, call),
            _of_record(world, call),
        ):
            found += [f"{call.name}: {text}" for text in texts]
    return found


def _of_streams(world: World) -> Iterator[str]:
    for stream in world.streams:
        if stream.status >= 500 and stream.status != 503:
            yield f"{stream.request} was answered with {stream.status}"
        if stream.status == 409 and stream.answered:
            yield f"{stream.request}, an answer to a call, was refused because the chat is busy"
        if stream.chunks and not stream.was_left:
            ends = [chunk["type"] for chunk in stream.chunks if chunk["type"] in ("finish", "abort", "error")]
            if len(ends) != 1 or stream.chunks[-1]["type"] != ends[0] or not stream.is_done:
                yield f"{stream.request} has a stream that does not come to one end: {ends}"


def _of_ids(world: World, calls: Sequence[_Call]) -> Iterator[str]:
    ids = [call.key.call_id for call in calls if not call.was_deleted]
    for call_id in {call_id for call_id in ids if ids.count(call_id) > 1}:
        yield f"{ids.count(call_id)} calls of this chat have the id {call_id!r}"
    if world.history is None and world.records:
        yield f"the chat does not exist, and {len(world.records)} of its calls are still recorded"
    recorded = {call.key.call_id for call in calls}
    for stream in world.streams:
        for chunk in stream.chunks:
            if chunk["type"] == "tool-approval-request" and chunk["toolCallId"] not in recorded:
                yield f"{chunk['toolCallId']!r} was shown as a call to approve, and is not recorded"


def _of_runs(world: World, call: _Call) -> Iterator[str]:
    if call.tool in world.browser_tools:
        return
    if len(call.runs) > 1:
        yield f"ran {len(call.runs)} times"
    states = [str(entry.state) for entry in call.trail]
    for run in call.runs:
        if not any(entry.state == "approved" and entry.by == world.chat.user_id for entry in call.trail):
            yield "ran, and no approval by the chat's owner is recorded"
        if run.arguments != call.asked_with or run.tool != call.tool:
            yield f"ran as {run.tool}({json.dumps(run.arguments)})"
        meant = Said(tool=run.tool, arguments=run.arguments, approved=True)
        if world.said is not None and meant not in world.said:
            yield f"ran with {json.dumps(run.arguments)}, which nobody has approved"
        allowed = {"returned": ("done", "outcome-unknown"), "raised": ("failed", "outcome-unknown")}
        if call.state not in allowed.get(run.end or "", ("outcome-unknown",)):
            yield f"its body {run.end or 'came to no end'}, and it is recorded as {call.state}"
    if not call.runs and ("done" in states or call.state == "done"):
        yield "is recorded as done, and never ran"
    refused = Said(tool=call.tool, arguments=call.asked_with, approved=False)
    may_deny = world.was_stopped or not call.is_kept or _was_not_asked(world, call)
    if world.said is not None and call.state == "denied" and refused not in world.said and not may_deny:
        yield "is recorded as denied, and nobody has denied it"


def _was_not_asked(world: World, call: _Call) -> bool:
    """Its run failed first, so that the server has refused it. Nobody was shown a question then."""
    chunks = (chunk for stream in world.streams for chunk in stream.chunks)
    asked = {chunk["toolCallId"] for chunk in chunks if chunk["type"] == "tool-approval-request"}
    reason = call.trail[-1].reason if call.trail else None
    return reason == NOT_ASKED and call.key.call_id not in asked


def _of_record(world: World, call: _Call) -> Iterator[str]:
    if call.record and call.trail and call.record.state != call.trail[-1].state:
        yield f"is recorded as {call.record.state}, and the audit trail ends with {call.trail[-1].state}"
    if call.state in ("claimed", "started"):
        yield f"is recorded as {call.state}, and nothing runs"
    is_left = call.state == "approved" and call.tool not in world.browser_tools
    if is_left and world.is_settled and call.is_kept and not call.was_deleted:
        yield "was approved, and nobody has run it"
    if getattr(call.record, "delivered", None) is True and call.is_kept and call.key not in _told(world.events):
        yield "is marked as delivered, and the session does not tell its outcome"


# -- shown ------------------------------------------------------------------------------------------------------------


def _shown_in_streams(world: World, calls: Sequence[_Call]) -> dict[CallKey, list[tuple[ClientStream, _Shown]]]:
    found: dict[CallKey, list[tuple[ClientStream, _Shown]]] = {}
    inputs: dict[tuple[str, str], Any] = {}  # by message and call: a message goes on in later streams
    for stream in world.streams:
        message_id = stream.chunks[0].get("messageId", "") if stream.chunks else ""
        for chunk in stream.chunks:
            kind, wire_id = chunk["type"], chunk.get("toolCallId", "")
            if kind == "tool-input-available":
                inputs[message_id, wire_id] = chunk["input"]
            state = {
                "tool-input-available": "input-available",
                "tool-approval-request": "approval-requested",
                "tool-output-available": "output-available",
                "tool-output-error": "output-error",
                "tool-input-error": "output-error",
                "tool-output-denied": "output-denied",
            }.get(kind)
            call = _named(calls, wire_id, inputs.get((message_id, wire_id))) if state else None
            if state and call:
                part = {"input": inputs[message_id, wire_id], **chunk} if (message_id, wire_id) in inputs else chunk
                found.setdefault(call.key, []).append((stream, _Shown(stream.request, state, part)))
    return found


def _named(calls: Sequence[_Call], wire_id: str, shown_input: Any) -> _Call | None:
    """The call that a part is about. An id may come back when its chat was deleted; then the arguments tell."""
    named = [call for call in calls if call.key.call_id == wire_id]
    if len(named) > 1 or (shown_input is not None and any(call.was_deleted for call in named)):
        named = [call for call in named if call.asked_with == shown_input]
    return named[0] if len(named) == 1 else None


def _of_streams_about(world: World, call: _Call, shown: Sequence[tuple[ClientStream, _Shown]]) -> Iterator[str]:
    for _, one in shown:
        yield from _of_shown(world, call, one, may_doubt=world.record_was_unreadable)
    for stream in world.streams if not call.was_deleted else ():
        state = stream.recorded_then.get(call.key, "")
        is_due = call.key.call_id in stream.answered and state in ("done", "failed", "outcome-unknown")
        if is_due and stream.status == 200 and not stream.was_left and call.tool not in world.browser_tools:
            ends = [one for of, one in shown if of is stream and one.has_ended]
            if not ends:
                yield f"{stream.request} ended without its outcome, though it is recorded as {state}"


def _of_history(world: World, call: _Call, calls: Sequence[_Call]) -> Iterator[str]:
    parts: list[Part] = [part for message in world.history or () for part in message["parts"]]
    siblings = {
        part["toolCallId"]: [other["state"] for other in message["parts"] if "toolCallId" in other]
        for message in world.history or ()
        for part in message["parts"]
        if "toolCallId" in part
    }
    present = [each for each in calls if not each.was_deleted]
    shown = [
        _Shown("the history", part["state"], part)
        for part in parts
        if "toolCallId" in part and _named(present, part["toolCallId"], part.get("input")) is call
    ]
    if call.is_kept and not call.was_deleted and world.history is not None and len(shown) != 1:
        yield f"is shown {len(shown)} times by the history"
    for one in shown:
        yield from _of_shown(world, call, one, may_doubt=False)
        said = one.part.get("approval", {}).get("approved")
        if call.record and said is not None and said != call.record.approved:
            yield f"the history shows approved = {said}, and {call.record.approved} is recorded"
        held_back = call.state == "denied" and any(s in SHOWN_WAITING for s in siblings[one.part["toolCallId"]])
        if call.has_ended and not one.has_ended and not held_back:
            yield f"the history shows {one.state}, and it is recorded as {call.state}"
        if call.state == "pending" and one.state not in SHOWN_WAITING:
            yield f"the history shows {one.state}, and it waits for a decision"


def _of_shown(world: World, call: _Call, shown: _Shown, *, may_doubt: bool) -> Iterator[str]:
    if "input" in shown.part and shown.part["input"] != call.asked_with:
        yield f"{shown.where} shows the arguments {json.dumps(shown.part['input'])}"
    # What the browser gave was deleted with the record, and it may have been an error.
    may_have_failed = call.was_deleted and call.state == "done" and call.tool in world.browser_tools
    if not shown.has_ended or _is_true(call, shown) or (may_have_failed and shown.state == "output-error"):
        return
    told = shown.part.get("errorText", "")
    if may_doubt and shown.state == "output-error" and "unknown" in told:
        return
    given = shown.part.get("output", told)
    yield f"{shown.where} shows {shown.state} {json.dumps(given)}, and it is recorded as {call.state}"


def _is_true(call: _Call, shown: _Shown) -> bool:
    told = shown.part.get("errorText", "")
    match call.state:
        case "done":
            failed = ((call.record.result if call.record else None) or {}).get("error")
            if shown.state == "output-error":
                return failed is not None and told == failed
            return shown.state == "output-available" and (call.was_deleted or shown.part.get("output") == call.output)
        case "outcome-unknown":
            return shown.state == "output-error" and "unknown" in told
        case "denied" | "expired":
            return shown.state in ("output-error", "output-denied")
        case _:  # what was deleted or taken back while it waited has ended with that
            has_ended = call.has_ended or call.was_deleted or not call.is_kept
            return has_ended and shown.state in ("output-error", "output-denied")


# -- told -------------------------------------------------------------------------------------------------------------


def _of_telling(world: World, call: _Call) -> Iterator[str]:
    if call.was_deleted or not call.is_kept:
        return
    if call.told is not None and not _is_true_answer(call, call.told):
        yield f"the session tells {json.dumps(call.told)}, and it is recorded as {call.state}"
    if not (world.is_settled and call.has_ended):
        return
    if call.told is None:
        yield f"the session never tells its outcome, recorded as {call.state}"
    if world.requests:
        read = [part.function_response for content in world.requests[-1].contents for part in content.parts or ()]
        answers = [answer.response for answer in read if answer is not None and answer.id == call.key.call_id]
        if not answers or not _is_true_answer(call, answers[-1]):
            yield f"the model was last told {json.dumps(answers[-1:])}, and it is recorded as {call.state}"


def _is_true_answer(call: _Call, told: Any) -> bool:
    if call.state == "done":
        return told == call.response
    error = json.dumps(told["error"]) if isinstance(told, dict) and "error" in told else ""
    return call.has_ended and bool(error) and (call.state != "outcome-unknown" or "unknown" in error)
