"""A client answers calls: from its request to recorded decisions, and on to the segment that takes them up."""

import hashlib
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from ..adk.calls.client_tools import fits
from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.resumption import outcome_events, plan_resumption, question_events
from ..adk.calls.session_calls import Events, SessionCall, find_session_calls
from ..adk.event_parts import REQUEST_INPUT
from ..adk.request.request_run import RunRequest
from ..adk.session import Chat, MessageIds
from ..adk.translate.call_parts import recorded_chunk
from ..adk.translate.history import replay
from ..adk.translate.translator import Translator
from ..chunk_log import ChunkLog
from ..errors import MalformedRequest, NotFound, OutputDoesNotFit, RequestTooLarge
from ..limits import Limits
from ..loop_share import LoopShare
from ..protocol import call_record
from ..protocol.answers import CallAnswer, decode_answers
from ..protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed, Records, State
from ..protocol.chunks import AnyChunk, Error, Start, encode_chunks, encode_json
from ..protocol.digest import canonical_json
from ..protocol.fold import MessageFold, UIMessage
from ..protocol.nul import has_nul
from ..protocol.outcome import encode_outcome, results_of
from ..protocol.replay import ended_calls
from ..protocol.turn import FileInput, Turn
from ..store.base import Store, advance, load_results
from .leases import Change

if TYPE_CHECKING:
    from google.adk.events import Event


@dataclass(frozen=True)
class Answered:
    """Answers to calls of one message."""

    message_id: str
    answers: Sequence[CallAnswer[SessionCall]]
    open_calls: frozenset[CallKey]
    """Those of their calls that have no result yet. None: the client asks again what it could know."""
    changes: Sequence[Change]
    """What is to be written down."""


async def read_answers(
    store: Store,
    chat: Chat,
    turn: Turn,
    *,
    browser_s: float,
    limits: Limits,
    announced: Events = (),
) -> Answered:
    """What counts of the client's answers. What does not is refused before anything is written.

    `announced`: calls of which the session has no events.
    """
    snapshot = await store.read(chat.key)
    session = await chat.load()
    if session is None:
        raise NotFound
    asked = await find_session_calls(chat, [*session.events, *announced], snapshot.records)
    # In chats of older versions a call's id means something within its message only.
    in_message = [call for call in asked if call.message_id == turn.message_id]
    decoded = decode_answers(turn.answers or (), in_message or asked)
    repeated = {answer.asked.key: answer.asked.record for answer in decoded if answer.result is not None}
    await load_results(store, chat.key, repeated, repeated)
    answers = [answer for answer in decoded if not _is_another_output(answer, repeated)]
    if not answers:
        raise NotFound
    messages = [answer.asked.message_id for answer in answers]
    continued = turn.message_id if turn.message_id in messages else messages[-1]
    answers = [answer for answer in answers if answer.asked.message_id == continued]
    for answer in answers:
        _check_output(answer, limits)
    changes: list[Change] = []
    for answer in answers:
        changes += await _changes(store, answer, snapshot.now, browser_s)
    open_calls = frozenset(answer.asked.key for answer in answers if not answer.asked.has_result)
    return Answered(continued or "", answers, open_calls, changes)


async def with_results(
    store: Store, chat: ChatKey, calls: Sequence[SessionCall], records: dict[CallKey, CallRecord]
) -> list[SessionCall]:
    """The calls and their records, with the results that were delivered before."""
    await load_results(store, chat, records, [call.key for call in calls])
    return [replace(call, record=records.get(call.key, call.record)) for call in calls]


def _is_another_output(answer: CallAnswer[SessionCall], records: Records) -> bool:
    """Another output for a call that has one. To send the same again is to ask what became of it."""
    call = answer.asked
    if answer.result is None or call.record.state is not State.DONE or not call.has_result:
        return False
    return canonical_json(answer.result) != canonical_json(records[call.key].result)


def _check_output(answer: CallAnswer[SessionCall], limits: Limits) -> None:
    if answer.asked.record.is_final:
        return
    if len(encode_json([answer.result, answer.payload])) > limits.max_output_bytes:
        raise RequestTooLarge("The output of a tool is too large.")
    if has_nul(answer.result):
        raise OutputDoesNotFit("The output has a NUL character in it. The call is still open: send an output without.")
    if has_nul([answer.payload, answer.reason]):
        raise MalformedRequest("A decision must not have NUL characters in it.")
    if (
        answer.result is not None
        and "output" in answer.result
        and not fits(answer.result["output"], answer.asked.record.output_schema)
    ):
        raise OutputDoesNotFit


async def _changes(store: Store, answer: CallAnswer[SessionCall], now: float, browser_s: float) -> list[Change]:
    found = answer.asked.record
    user = found.chat.user_id
    steps = [found]
    if answer.approved is not None:
        steps.append(
            call_record.decide(
                found,
                by=user,
                approved=answer.approved,
                now=now,
                reason=answer.reason,
                payload=answer.payload,
                browser_s=browser_s,
            )
        )
    if answer.result is not None:
        if found.tool == REQUEST_INPUT:  # asked without a tool, and so not written down yet
            await store.add(found)
        steps.append(call_record.take_output(steps[-1], by=user, result=answer.result, now=now))
    moved = [new for old, new in pairwise(steps) if new is not old]
    if len(moved) > 1:  # approved and run by the browser in one go: two lines of the audit trail
        await store.compare_and_set(found, *moved)
        return []
    return [(found, new) for new in moved]


# -- segments ---------------------------------------------------------------------------------------------------------


async def encode_recorded_outcome(
    chat: Chat,
    records: Records,
    translator: Translator,
    taken: Answered,
    start_id: str,
    announced: Events = (),
) -> ChunkLog:
    """What became of calls whose results are in the session already."""
    session = await chat.load()
    events = [*(session.events if session else []), *announced]
    chunks = await replay(translator, chat, events, taken.message_id, records)
    message = await _folded([*chunks, *translator.call_parts.end_recorded(records)])
    wire_ids = [answer.asked.wire_id for answer in taken.answers]
    shown = {part.get("toolCallId") for part in message["parts"]}
    gone = [answer.asked for answer in taken.answers if answer.asked.wire_id not in shown]
    ended = [(call.wire_id, records[call.key]) for call in gone if call.key in records and records[call.key].is_final]
    taken_back = [recorded_chunk(wire_id, record) for wire_id, record in ended]
    return await whole_log(encode_outcome(message, start_id, wire_ids, taken_back))


def was_told_before(log: ChunkLog, taken: Answered) -> bool:
    """Whether an earlier segment than the log's has an outcome that these answers ask for. What a browser has run, it
    knows itself."""
    asked = {answer.asked.wire_id for answer in taken.answers if answer.asked.record.executor == "server"}
    return not asked.isdisjoint(ended_calls(log.earlier))


def encode_failure(start_id: str | None, text: str) -> ChunkLog:
    """A segment that has only the reason why there is no more of it."""
    return _closed_log(encode_chunks([Start(start_id), Error(text)]))


async def whole_log(chunks: Iterable[AnyChunk]) -> ChunkLog:
    return _closed_log(await _encoded(chunks))


def _closed_log(chunks: Sequence[bytes]) -> ChunkLog:
    log = new_log()
    log.append(chunks)
    log.close()
    return log


@dataclass(frozen=True)
class MessageToContinue:
    ids: MessageIds
    start_id: str
    """What the client calls the message."""
    events: Events
    """Of the whole session."""
    calls: Sequence[SessionCall]
    """Those of the message."""


async def continue_message(
    chat: Chat,
    leased: LeasedChat,
    translator: Translator,
    message: MessageToContinue,
    answers: Sequence[CallAnswer[SessionCall]],
    **run_options: Any,
) -> tuple[ChunkLog, RunRequest] | None:
    """The next segment of a message, in which ADK is told what is recorded; None if it has been told.

    `answers`: none when nobody asks, after a crash.
    """
    ids, calls = message.ids, message.calls
    answered = {answer.asked.key for answer in answers}
    undelivered = [call for call in calls if call.is_undelivered and call.is_asked]
    unasked = [call for call in calls if call.is_undelivered and not call.is_asked]
    freed = [call for call in calls if call.key in answered and _is_free_for_browser(call)]
    taken_up = frozenset(call.key for call in (*undelivered, *freed))
    if not taken_up:
        return None
    records, events = leased.records, list(message.events)
    earlier = await replay(translator, chat, events, ids.message_id or "", _as_if_unanswered(records, taken_up))
    # What has ended by itself, the client was told at the end of the segment before, unless it asks again.
    told = {call.key for call in undelivered if call.record.executor == "server" and call.record.state in _ENDED}
    known = known_outputs(answers, records) | (told - answered)
    resumption = plan_resumption(_in_whole_steps(undelivered, calls), ids)
    opening = translator.new_segment(message.start_id, records, taken_up, known)
    unknown = answered - known
    missed = [call.wire_id for call in calls if call.has_result and call.key in unknown]
    opening += results_of(await _folded(earlier), missed)
    for event in plan_resumption(undelivered, ids).browser_answers:
        opening += translator.feed(event, records=records)
    request = RunRequest(
        ids=ids,
        opening=opening,
        contents=resumption.messages,
        appended=[*question_events(undelivered), *outcome_events(unasked), *resumption.appended],
        answered=taken_up,
        outputs=resumption.outputs,
        **run_options,
    )
    earlier += translator.call_parts.sent_by_client(records, taken_up)
    return ChunkLog(_new_segment(), await _encoded(earlier)), request


_ENDED = (State.DONE, State.FAILED, State.UNKNOWN)


def _in_whole_steps(undelivered: Sequence[SessionCall], calls: Sequence[SessionCall]) -> list[SessionCall]:
    """Without the outputs of a step in which a browser's call is still open. ADK keeps results in the order in which
    they come, and some models know them by their order alone; it would not go on before the last of them anyway."""
    open_steps = {
        call.asked_by.id
        for call in calls
        if call.record.executor == "browser" and not call.has_result and not call.record.is_final
    }
    return [call for call in undelivered if call.record.executor == "server" or call.asked_by.id not in open_steps]


def new_log() -> ChunkLog:
    return ChunkLog(_new_segment())


def _new_segment() -> str:
    return secrets.token_urlsafe(3)


async def _folded(chunks: Iterable[AnyChunk]) -> UIMessage:
    fold, share = MessageFold(), LoopShare()
    for chunk in chunks:
        await share.give_way()
        fold.feed(chunk)
    return fold.message()


async def _encoded(chunks: Iterable[AnyChunk]) -> list[bytes]:
    encoded: list[bytes] = []
    share = LoopShare()
    for chunk in chunks:
        await share.give_way()
        encoded += encode_chunks([chunk])
    return encoded


def _is_free_for_browser(call: SessionCall) -> bool:
    return call.record.executor == "browser" and call.record.state is State.APPROVED


def _as_if_unanswered(records: Records, calls: Collection[CallKey]) -> dict[CallKey, CallRecord]:
    """The records as the client knew them when the last segment ended."""

    def unanswered(record: CallRecord) -> CallRecord:
        return msgspec.structs.replace(record, state=State.PENDING, approved=None, payload=None)

    return {key: unanswered(found) if key in calls else found for key, found in records.items()}


def known_outputs(answers: Sequence[CallAnswer[SessionCall]], records: Mapping[CallKey, CallRecord]) -> set[CallKey]:
    """The calls whose recorded output these answers have brought."""
    return {
        answer.asked.key
        for answer in answers
        if answer.result is not None
        and (found := records.get(answer.asked.key)) is not None
        and found.state is State.DONE
        and canonical_json(found.result) == canonical_json(answer.result)
    }


# -- what the session is owed -----------------------------------------------------------------------------------------


async def deliver_outcomes(store: Store, chat: Chat, leased: LeasedChat) -> None:
    """Before the user's next words: browser calls may run out of time, and the model hears of those, and of all calls
    that came to their end while it was not listening. The session is looked at only if it is owed something."""
    for call, found in list(leased.records.items()):
        if found.state is State.APPROVED and call_record.expire(found, now=leased.now) is not found:
            with suppress(NotAllowed):
                leased.records[call] = await advance(
                    store, chat.key, call, lambda found, now: call_record.expire(found, now=now), known=leased.known()
                )
    if not any(found.is_final and found.delivered is not True for found in leased.records.values()):
        return
    session = await chat.load()
    if session is not None:
        calls = await find_session_calls(chat, session.events, leased.records.values())
        ended = [call for call in calls if call.record.is_final]
        owed = [call for call in ended if call.is_undelivered]  # some again: a rewind has taken their results back
        owed = await with_results(store, chat.key, owed, leased.records)
        await chat.append(outcome_events(owed), session)
        leased.delivered |= {call.key for call in ended}


async def deliver_again(store: Store, chat: Chat, leased: LeasedChat, kept: "list[Event]") -> None:
    """A rewind takes back all that came after some words, and so the late results of calls that it leaves."""
    calls = await find_session_calls(chat, kept, leased.records.values())
    owed = [call for call in calls if call.is_undelivered and call.record.is_final]
    await chat.append(outcome_events(await with_results(store, chat.key, owed, leased.records)))


async def refuse_call(store: Store, chat: ChatKey, call: CallKey, reason: str) -> None:
    """Nobody will answer this call any more."""

    with suppress(NotAllowed):
        await advance(store, chat, call, lambda found, now: call_record.refuse(found, reason=reason, now=now))


async def leave_calls_pending(store: Store, chat: Chat, leased: LeasedChat) -> None:
    """A live session has ended. What it has asked is left as request mode would have left it."""
    recorded = {found.call: found for found in (await store.read(chat.key)).records}
    session = await chat.load() if any(found.approval_id for found in recorded.values()) else None
    if session is not None:
        asked = await find_session_calls(chat, session.events, recorded.values())
        # ADK has held results back for siblings that have none yet. Where there is none, whoever has brought the
        # end about goes on with the call right away, and the model is to hear of it then.
        waiting = {call.asked_by.id for call in asked if not call.has_result and not call.record.is_final}
        ended = [call for call in asked if call.is_undelivered and call.record.is_final]
        ended = [call for call in ended if call.asked_by.id in waiting]
        delivered = {call.key for call in ended}
        parked = question_events(call for call in asked if call.key not in delivered)
        ended = await with_results(store, chat.key, ended, recorded)
        await chat.append([*parked, *outcome_events(ended)], session)
        leased.delivered |= delivered


def digest_of_message(turn: Turn) -> str:
    """By which a repeated request is known again."""
    digest = hashlib.sha256()
    for part in turn.parts:
        if isinstance(part, FileInput):
            content = part.content.encode() if isinstance(part.content, str) else part.content
            digest.update(hashlib.sha256(content).digest())
        else:
            digest.update(hashlib.sha256(part.text.encode()).digest())
    return digest.hexdigest()[:32]
