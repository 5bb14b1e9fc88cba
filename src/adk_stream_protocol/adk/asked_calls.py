"""What a chat's clients were asked, read from the session and the record together; and how ADK is told the answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from ..protocol.answers import CONFIRMATION, AskedCall
from ..protocol.approvals import Approval, CallKey, ChatKey, State
from .chat import MessageIds, kept_events, message_id_of
from .event_parts import CONTROL_FLOW, CREDENTIAL, REQUEST_INPUT, as_dict
from .outcomes import ended_response

Events = Iterable[Event]


@dataclass(frozen=True, kw_only=True)
class SessionCall(AskedCall):
    """An asked call, and where it stands in the session."""

    message_id: str
    asked_by: Event
    has_result: bool
    is_known_to_adk: bool = True
    """Whether ADK has its own question about it in the session. A live session asks without."""

    @property
    def is_undelivered(self) -> bool:
        """Whether its outcome is recorded, but ADK has not been told."""
        return self.approval.is_answered and not self.has_result

    @property
    def group(self) -> tuple[str, str, str | None]:
        """ADK takes answers from one agent on one branch at a time."""
        return self.asked_by.invocation_id, self.asked_by.author, self.asked_by.branch


def find_asked_calls(chat: ChatKey, events: list[Event], approvals: Iterable[Approval]) -> list[SessionCall]:
    """In the order of the session. Calls that a rewind took back are gone, and so are their approvals."""
    found: dict[CallKey, tuple[str, str, Event]] = {}
    confirmations: dict[CallKey, tuple[str, Event]] = {}
    results: set[CallKey] = set()
    inputs: list[Approval] = []
    counts: dict[tuple[str, str], int] = {}
    for event in kept_events(events):
        message_id, invocation_id = message_id_of(event), event.invocation_id
        for call in event.get_function_calls():
            call_id, name = call.id or "", call.name or ""
            if name == CONFIRMATION:
                original = as_dict(as_dict(call.args).get("originalFunctionCall"))
                confirmations[CallKey(invocation_id, str(original.get("id")))] = (call_id, event)
            elif name not in CONTROL_FLOW and name != CREDENTIAL:
                # A repeated id has a number behind it on the wire.
                count = counts[message_id, call_id] = counts.get((message_id, call_id), 0) + 1
                key = CallKey(invocation_id, call_id)
                # Of two calls with one id in a turn, the first has the record.
                found.setdefault(key, (call_id if count == 1 else f"{call_id}-{count}", message_id, event))
                if name == REQUEST_INPUT:
                    inputs.append(_input_request(chat, key, call, event))
        for response in event.get_function_responses():
            if response.id not in event.actions.requested_tool_confirmations:
                results.add(CallKey(invocation_id, response.id or ""))
    recorded = {approval.call: approval for approval in approvals}
    asked: list[SessionCall] = []
    for approval in [*recorded.values(), *(request for request in inputs if request.call not in recorded)]:
        key = approval.call
        is_question = approval.runs == "server"
        if key not in found or (is_question and key not in confirmations and approval.approval_id is None):
            continue
        wire_id, message_id, event = found[key]
        approval_id = approval.approval_id
        if is_question and key in confirmations:
            approval_id, event = confirmations[key]
        asked.append(
            SessionCall(
                wire_id=wire_id,
                approval_id=approval_id,
                approval=approval,
                message_id=message_id,
                asked_by=event,
                has_result=key in results,
                is_known_to_adk=not is_question or key in confirmations,
            )
        )
    places = {key: place for place, key in enumerate(found)}
    return sorted(asked, key=lambda call: places[call.key])


def _input_request(chat: ChatKey, key: CallKey, call: types.FunctionCall, event: Event) -> Approval:
    """A node of a workflow asks the user without any tool, so that nothing is recorded of it before its answer."""
    return Approval(
        chat=chat,
        call=key,
        tool=call.name or "",
        arguments=call.args or {},
        runs="browser",
        state=State.APPROVED,
        asked_at=event.timestamp,
    )


@dataclass(frozen=True)
class Resumption:
    """How ADK is told: some answers are put into the session, then one run for each message."""

    appended: Sequence[Event]
    messages: Sequence[types.Content]
    browser_answers: Sequence[Event]
    """All of those, as they will stand in the session."""


def plan_resumption(calls: Sequence[SessionCall], ids: MessageIds) -> Resumption:
    """Confirmations travel alone: ADK hides a whole message from the model that has one in it."""
    groups: dict[tuple[str, str, str | None], list[SessionCall]] = {}
    for call in calls:
        groups.setdefault(call.group, []).append(call)
    appended: list[Event] = []
    messages: list[types.Content] = []
    answers: list[Event] = []
    for group in groups.values():
        confirmed = [_confirmation(call) for call in group if call.approval.runs == "server"]
        outputs = [response_part(call.approval) for call in group if call.approval.runs == "browser"]
        if outputs:
            answer = answer_event(group[0].asked_by, outputs, ids)
            answers.append(answer)
            if confirmed:
                appended.append(answer)
        messages.append(types.Content(role="user", parts=confirmed or outputs))
    return Resumption(appended, messages, answers)


def parking_events(calls: Iterable[SessionCall]) -> list[Event]:
    """A live session waits for answers without a word in the session. Before request mode can go on with a call of its,
    there must be what request mode would have left: ADK's question, and a result that only holds the place."""
    events: list[Event] = []
    for call in calls:
        if call.is_known_to_adk or call.has_result:
            continue
        approval, made_by = call.approval, call.asked_by
        ids = MessageIds(user_message_id=None, message_id=call.message_id)
        asked = ToolConfirmation(hint=approval.hint or "")
        original = types.FunctionCall(id=approval.call.call_id, name=approval.tool, args=approval.arguments)
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
        placeholder = _function_response(approval.call.call_id, approval.tool, {"error": _REQUIRES_CONFIRMATION})
        events.append(
            Event(
                content=types.Content(role="user", parts=[placeholder]),
                actions=EventActions(
                    skip_summarization=True, requested_tool_confirmations={approval.call.call_id: asked}
                ),
                **about,
            )
        )
    return events


_REQUIRES_CONFIRMATION = "This tool call requires confirmation, please approve or reject."


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
    """What the session is told of calls that came to their end while nobody was asking for them."""
    events: list[Event] = []
    for call in calls:
        ids = MessageIds(user_message_id=None, message_id=call.message_id)
        event = answer_event(call.asked_by, [response_part(call.approval)], ids)
        if call.approval.runs == "server":
            event.author = call.asked_by.author
        events.append(event)
    return events


def _confirmation(call: SessionCall) -> types.Part:
    # The gate answers from the record, whatever this says; but where it says no, not even ADK would run the tool.
    said: dict[str, Any] = {"confirmed": call.approval.state not in (State.DENIED, State.EXPIRED)}
    if call.approval.payload is not None:
        said["payload"] = call.approval.payload
    return _function_response(call.approval_id, CONFIRMATION, said)


def response_part(approval: Approval) -> types.Part:
    """What ADK is told of a call that has come to its end."""
    response = ended_response(approval)
    if approval.tool == REQUEST_INPUT and response.keys() != {"result"}:
        response = {"result": response}
    return _function_response(approval.call.call_id, approval.tool, response)


def _function_response(call_id: str | None, name: str, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call_id, name=name, response=response))
