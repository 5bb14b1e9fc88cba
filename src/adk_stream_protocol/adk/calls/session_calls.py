"""The calls of a chat that a person or a browser answers, found in the session and the records together."""

from collections.abc import Iterable
from dataclasses import dataclass

from google.adk.events import Event
from google.genai import types

from ...loop_share import LoopShare
from ...protocol.answers import CONFIRMATION, AskedCall
from ...protocol.call_keys import work_key
from ...protocol.call_record import CallKey, CallRecord, ChatKey, State
from ..event_parts import (
    CREDENTIAL,
    REQUEST_INPUT,
    ControlFlow,
    as_dict,
    is_frameworks_own,
    is_hidden,
    is_relayed,
)
from ..session import Chat, kept_events, message_id_of
from .credentials import GRANTED, credential_request
from .input_requests import schema_of_answer
from .leased_chat import LeasedChat

Events = Iterable[Event]

_NEWEST = 100  # events: a result is among them when it is looked for, since that is once a second


@dataclass(frozen=True, kw_only=True)
class SessionCall(AskedCall):
    """A call that a person or a browser answers, and its place in the session."""

    message_id: str
    asked_by: Event
    has_result: bool
    is_known_to_adk: bool = True
    """Whether ADK's own question about it is in the session. A live session asks without such a question."""

    @property
    def is_asked(self) -> bool:
        """Whether somebody was asked. A run may end after it has recorded a call, and before it emits the question."""
        return self.record.executor == "browser" or self.approval_id is not None

    @property
    def is_undelivered(self) -> bool:
        """Whether its outcome, or the person's decision, is recorded, but not in the session."""
        is_lost = self.is_credential and self.record.result in (None, GRANTED)  # what ADK needs was never recorded
        return self.record.is_answered and not self.has_result and not is_lost

    @property
    def group(self) -> tuple[str, str, str | None]:
        """ADK takes answers for one agent on one branch at a time."""
        return self.asked_by.invocation_id, self.asked_by.author, self.asked_by.branch

    @property
    def is_credential(self) -> bool:
        """Whether it is ADK's request for a credential: only the application answers it."""
        return self.record.tool == CREDENTIAL


class _Session:
    """What one pass over the events finds. Calls that a rewind removed are not among it."""

    def __init__(self, control_flow: ControlFlow | None) -> None:
        self._control_flow = control_flow
        self.calls: dict[CallKey, tuple[str, str, Event]] = {}
        self.questions: dict[CallKey, tuple[str, Event]] = {}
        self.inputs: dict[CallKey, types.FunctionCall] = {}
        self.credentials: dict[CallKey, types.FunctionCall] = {}
        self.results: set[CallKey] = set()
        self.ends: set[CallKey] = set()  # of long-running calls: their results that no tool has returned
        self._counts: dict[tuple[str, str], int] = {}

    def read(self, event: Event) -> None:
        for call in event.get_function_calls():
            self._read_call(event, call)
        results = _results_in(event)
        self.results |= results
        if event.author == "user":
            self.ends |= results

    def _read_call(self, event: Event, call: types.FunctionCall) -> None:
        call_id, name = call.id or "", call.name or ""
        if is_hidden(event, call, self._control_flow):
            return
        if name == CONFIRMATION:
            self.questions[_asked_about(event, call)] = (call_id, event)
            return
        # On the wire a repeated id has a number behind it. Chats of older versions have repeated ids.
        message_id = message_id_of(event)
        count = self._counts[message_id, call_id] = self._counts.get((message_id, call_id), 0) + 1
        key = CallKey(event.invocation_id, call_id)
        # If two calls of a turn have one id, the record is that of the first.
        self.calls.setdefault(key, (call_id if count == 1 else f"{call_id}-{count}", message_id, event))
        is_left = is_relayed(event) and call_id in (event.long_running_tool_ids or ())
        if name == CREDENTIAL:
            self.credentials[key] = call
        elif name == REQUEST_INPUT or is_left:
            self.inputs[key] = call


def _results_in(event: Event) -> set[CallKey]:
    responses = [response.id or "" for response in event.get_function_responses()]
    placeholders = event.actions.requested_tool_confirmations
    return {CallKey(event.invocation_id, call_id) for call_id in responses if call_id not in placeholders}


async def are_delivered(chat: Chat, calls: frozenset[CallKey], records: Iterable[CallRecord]) -> bool:
    """Whether these calls have ended, and ADK's session has their results. It has none of nested calls, and needs none
    of calls that a rewind took back."""
    ended = {found.call: found for found in records if found.is_final}
    if not calls <= ended.keys():
        return False
    own = {call for call in calls if not ended[call].is_nested}
    session = await chat.load(recent=_NEWEST) if own else None
    newest = session.events if session is not None else []
    missing = own - {result for event in newest for result in _results_in(event)}
    if missing and any(event.actions.rewind_before_invocation_id for event in newest):
        session = await chat.load()
        missing &= await calls_made(session.events if session is not None else [])
    return not missing


def _asked_about(event: Event, question: types.FunctionCall) -> CallKey:
    original = as_dict(as_dict(question.args).get("originalFunctionCall"))
    return CallKey(event.invocation_id, str(original.get("id")))


async def calls_made(events: list[Event]) -> set[CallKey]:
    """The keys of all calls in these events, and of their work, without those that a rewind removed."""
    made, share = set[CallKey](), LoopShare()
    for event in await kept_events(events, share):
        await share.give_way()
        made |= {CallKey(event.invocation_id, call.id or "") for call in event.get_function_calls()}
    return made | {work_key(call) for call in made}


def unasked_among(records: Iterable[CallRecord], asked: Iterable[SessionCall]) -> set[CallKey]:
    """Calls that ADK should ask about, and that the session has no question about: a run may be lost after it has
    recorded a call, and before ADK has asked, while another tool of the same answer is at work, say. Nobody can
    continue such a call. `asked`: the calls of the session."""
    known = {call.key for call in asked}
    return {
        found.call
        for found in records
        if found.state in (State.PENDING, State.IN_CHAIN, State.APPROVED)
        and found.executor == "server"
        and found.approval_id is None
        and not found.ends_with_run
        and found.call not in known
    }


async def note_unasked(chat: Chat, leased: LeasedChat, events: list[Event]) -> None:
    """The user says something else: such calls end with this run. `events`: of the whole session, as ADK has loaded
    it."""
    if unasked_among(leased.records.values(), ()):
        calls = await find_session_calls(chat, events, leased.records.values())
        leased.unasked |= unasked_among(leased.records.values(), calls)


async def open_questions(chat: Chat, events: list[Event]) -> list[CallRecord]:
    """What nodes of workflows ask the user in these events, long-running calls of remote agents, and requests for
    credentials, as far as nobody has answered them."""
    session = await _read_session(chat, events)
    asked = [_input_request(chat.key, key, call, session.calls[key][2]) for key, call in session.inputs.items()]
    asked += [credential_request(chat.key, call, session.calls[key][2]) for key, call in session.credentials.items()]
    return [record for record in asked if record.call not in session.results]


async def note_stored(chat: Chat, leased: LeasedChat, event: Event) -> None:
    """ADK has stored this event: which calls have their results now, and which questions are asked."""
    for result in _results_in(event):
        leased.store_result(result)
        leased.questions.pop(result, None)
    leased.questions |= {asked.call: asked for asked in await open_questions(chat, [event])}
    for call in event.get_function_calls():
        if call.name == CONFIRMATION and is_frameworks_own(event, call):
            leased.unasked.discard(_asked_about(event, call))


async def _read_session(chat: Chat, events: list[Event]) -> _Session:
    session, share = _Session(chat.control_flow), LoopShare()
    for event in await kept_events(events, share):
        await share.give_way()
        session.read(event)
    return session


async def find_session_calls(chat: Chat, events: list[Event], records: Iterable[CallRecord]) -> list[SessionCall]:
    """The calls that are recorded and in these events, in the order of the events."""
    recorded = {
        record.call: record for record in records
    }  # copied before the first await: others may add records meanwhile
    session = await _read_session(chat, events)
    for key, call in session.inputs.items():
        if call.name != REQUEST_INPUT:
            continue  # a remote agent's call, which has ended if it has no record
        recorded.setdefault(key, _input_request(chat.key, key, call, session.calls[key][2]))
    found, share = list[SessionCall](), LoopShare()
    for key, (wire_id, message_id, event) in session.calls.items():
        await share.give_way()
        work = recorded.get(work_key(key))
        if work is not None:
            has_end = key in session.ends
            found.append(_work_call(wire_id, message_id, event, work, has_end=has_end))
        record = recorded.get(key)
        is_question = record is not None and record.executor == "server"
        if record is None:
            continue
        approval_id = record.approval_id
        if is_question and key in session.questions:
            approval_id, event = session.questions[key]
        call = SessionCall(
            wire_id=wire_id,
            approval_id=approval_id,
            record=record,
            message_id=message_id,
            asked_by=event,
            has_result=key in session.results,
            is_known_to_adk=not is_question or key in session.questions,
        )
        if call.is_asked or record.is_final:
            found.append(call)
    return found


def _work_call(wire_id: str, message_id: str, event: Event, work: CallRecord, *, has_end: bool) -> SessionCall:
    return SessionCall(
        wire_id=wire_id, approval_id=None, record=work, message_id=message_id, asked_by=event, has_result=has_end
    )


def _input_request(chat: ChatKey, key: CallKey, call: types.FunctionCall, event: Event) -> CallRecord:
    """A record for what a node of a workflow asks the user. It asks without a tool, and older versions recorded
    nothing."""
    return CallRecord(
        chat=chat,
        call=key,
        tool=call.name or "",
        arguments=call.args or {},
        executor="browser",
        state=State.APPROVED,
        asked_at=event.timestamp,
        output_schema=schema_of_answer(call.args, by_model=False) if call.name == REQUEST_INPUT else None,
    )
