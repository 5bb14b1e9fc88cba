"""A client answers calls: from its request to recorded decisions, and on to the segment that takes them up."""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from .adk.asked_calls import Events, SessionCall, find_asked_calls, outcome_events, parking_events, plan_resumption
from .adk.chat import Chat, MessageIds
from .adk.client_tools import fits
from .adk.event_parts import REQUEST_INPUT
from .adk.history import retell
from .adk.request_run import RunRequest
from .adk.translator import Translator
from .chunk_log import ChunkLog
from .errors import NotFound, OutputDoesNotFit, RequestTooLarge
from .limits import Limits
from .protocol import approvals
from .protocol.answers import Answer, decode_answers
from .protocol.approvals import Approval, CallKey, ChatKey, NotAllowed, State
from .protocol.chunks import AnyChunk, encode_chunks, encode_json
from .protocol.digest import canonical_json
from .protocol.fold import MessageFold, UIMessage
from .protocol.outcome import encode_outcome, results_of
from .runs import Held
from .store.base import Store, advance


@dataclass(frozen=True)
class Answered:
    """Answers to calls of one message, written down."""

    message_id: str
    answers: Sequence[Answer[SessionCall]]
    open_calls: frozenset[CallKey]
    """Those of their calls that have no result yet. None: the client asks again what it could know."""


async def take_answers(
    store: Store,
    chat: Chat,
    parts: Sequence[dict[str, Any]],
    message_id: str | None,
    *,
    browser_s: float,
    limits: Limits,
    announced: Events = (),
) -> Answered:
    """Write down what counts of the client's answers. What does not is refused before anything is written.

    `announced`: calls of which the session has no events.
    """
    session = await chat.load()
    if session is None:
        raise NotFound
    snapshot = await store.read(chat.key)
    asked = find_asked_calls(chat.key, [*session.events, *announced], snapshot.approvals)
    # Some models number their calls anew in every answer: a call's id means something within its message only.
    in_message = [call for call in asked if call.message_id == message_id]
    answers = [answer for answer in decode_answers(parts, in_message or asked) if not _is_another_output(answer)]
    if not answers:
        raise NotFound
    messages = [answer.asked.message_id for answer in answers]
    continued = message_id if message_id in messages else messages[-1]
    answers = [answer for answer in answers if answer.asked.message_id == continued]
    for answer in answers:
        _check_output(answer, limits)
    try:
        for answer in answers:
            await _record(store, chat.key, answer, browser_s)
    except NotAllowed:  # the chat was deleted meanwhile
        raise NotFound from None
    open_calls = frozenset(answer.asked.key for answer in answers if not answer.asked.has_result)
    return Answered(continued, answers, open_calls)


def _is_another_output(answer: Answer[SessionCall]) -> bool:
    """Another output for a call that has one. To send the same again is to ask what became of it."""
    call = answer.asked
    if answer.result is None or call.approval.state is not State.DONE or not call.has_result:
        return False
    return canonical_json(answer.result) != canonical_json(call.approval.result)


def _check_output(answer: Answer[SessionCall], limits: Limits) -> None:
    if answer.asked.approval.is_final:
        return
    if len(encode_json([answer.result, answer.payload])) > limits.max_output_bytes:
        raise RequestTooLarge("The output of a tool is too large.")
    if (
        answer.result is not None
        and "output" in answer.result
        and not fits(answer.result["output"], answer.asked.approval.output_schema)
    ):
        raise OutputDoesNotFit


async def _record(store: Store, chat: ChatKey, answer: Answer[SessionCall], browser_s: float) -> None:
    call = answer.asked

    def decide(found: Approval, now: float) -> Approval:
        return approvals.decide(
            found,
            by=chat.user_id,
            approved=bool(answer.approved),
            now=now,
            reason=answer.reason,
            payload=answer.payload,
            browser_s=browser_s,
        )

    def take_output(found: Approval, now: float) -> Approval:
        return approvals.take_output(found, by=chat.user_id, result=answer.result, now=now)

    if answer.approved is not None:
        await advance(store, chat, call.key, decide)
    if answer.result is not None:
        if call.approval.tool == REQUEST_INPUT:  # asked without a tool, and so not written down yet
            await store.add(call.approval)
        await advance(store, chat, call.key, take_output)


async def tell_outcome(
    chat: Chat,
    approvals: Mapping[CallKey, Approval],
    translator: Translator,
    taken: Answered,
    start_id: str,
    announced: Events = (),
) -> ChunkLog:
    """What became of calls whose results are in the session already."""
    translator.waiting.approvals = approvals
    session = await chat.load()
    events = [*(session.events if session else []), *announced]
    message = _folded(await retell(translator, chat, events, taken.message_id))
    log = ChunkLog(_new_segment())
    wire_ids = [answer.asked.wire_id for answer in taken.answers]
    log.append(encode_chunks(encode_outcome(message, start_id, wire_ids)))
    log.close()
    return log


async def continue_message(
    chat: Chat,
    held: Held,
    translator: Translator,
    message_id: str,
    start_id: str,
    answers: Sequence[Answer[SessionCall]],
    **run_options: Any,
) -> tuple[ChunkLog, RunRequest] | None:
    """The next segment of a message, in which ADK is told what is recorded; None if somebody else has told it.

    `start_id`: what the client calls the message. `answers`: none when nobody asks, after a crash.
    """
    session = await chat.load()
    events = session.events if session else []
    asked = find_asked_calls(chat.key, events, held.snapshot.approvals)
    calls = [call for call in asked if call.message_id == message_id]
    answered = {answer.asked.key for answer in answers}
    undelivered = [call for call in calls if call.is_undelivered]
    freed = [call for call in calls if call.key in answered and _is_free_for_browser(call)]
    taken_up = frozenset(call.key for call in (*undelivered, *freed))
    if not taken_up:
        return None
    translator.waiting.approvals = _as_if_unanswered(held.approvals, taken_up)
    earlier = await retell(translator, chat, events, message_id)
    translator.waiting.approvals = held.approvals
    # Of a tool that failed, or was lost, the client heard at the end of the segment before, unless it asks again.
    lost = {call.key for call in undelivered if call.approval.state in _ENDED_BADLY}
    known = known_outputs(answers, held.approvals) | (lost - answered)
    ids = MessageIds(user_message_id=None, message_id=message_id)
    resumption = plan_resumption(_in_whole_steps(undelivered, calls), ids)
    opening = translator.new_segment(start_id, taken_up, known)
    missed = [call.wire_id for call in calls if call.has_result and call.key in answered - known]
    opening += results_of(_folded(earlier), missed)
    for event in plan_resumption(undelivered, ids).browser_answers:
        opening += translator.feed(event)
    request = RunRequest(
        ids=ids,
        opening=opening,
        contents=resumption.messages,
        appended=[*parking_events(undelivered), *resumption.appended],
        answered=taken_up,
        **run_options,
    )
    earlier += translator.waiting.told_by_client(taken_up)
    return ChunkLog(_new_segment(), encode_chunks(earlier)), request


def _in_whole_steps(undelivered: Sequence[SessionCall], calls: Sequence[SessionCall]) -> list[SessionCall]:
    """Without the outputs of a step in which a browser's call is still open. ADK keeps results in the order in which
    they come, and some models know them by their order alone; it would not go on before the last of them anyway."""
    open_steps = {
        call.asked_by.id
        for call in calls
        if call.approval.runs == "browser" and not call.has_result and not call.approval.is_final
    }
    return [call for call in undelivered if call.approval.runs == "server" or call.asked_by.id not in open_steps]


def _new_segment() -> str:
    return secrets.token_urlsafe(3)


def _folded(chunks: Iterable[AnyChunk]) -> UIMessage:
    fold = MessageFold()
    for chunk in chunks:
        fold.feed(chunk)
    return fold.message()


def _is_free_for_browser(call: SessionCall) -> bool:
    return call.approval.runs == "browser" and call.approval.state is State.APPROVED


def _as_if_unanswered(recorded: Mapping[CallKey, Approval], calls: Collection[CallKey]) -> dict[CallKey, Approval]:
    """The record as the client knew it when the last segment ended."""

    def unanswered(approval: Approval) -> Approval:
        return msgspec.structs.replace(approval, state=State.PENDING, approved=None, payload=None)

    return {key: unanswered(found) if key in calls else found for key, found in recorded.items()}


def known_outputs(answers: Sequence[Answer[SessionCall]], recorded: Mapping[CallKey, Approval]) -> set[CallKey]:
    """The calls whose recorded output these answers have brought."""
    return {
        answer.asked.key
        for answer in answers
        if answer.result is not None
        and (found := recorded.get(answer.asked.key)) is not None
        and found.state is State.DONE
        and canonical_json(found.result) == canonical_json(answer.result)
    }


_ENDED_BADLY = (State.FAILED, State.UNKNOWN)
_RECENT_S = 3600  # in which a worker may have died that had not told ADK of a call's end


async def catch_up(store: Store, chat: Chat, held: Held) -> None:
    """Before the user's next words: browser calls may run out of time, and the model hears of those, and of all calls
    that came to their end while it was not listening."""
    now = held.snapshot.now
    late = [
        found.call
        for found in held.snapshot.approvals
        if found.state is State.APPROVED and approvals.expire(found, now=now) is not found
    ]
    ended = [found for found in held.snapshot.approvals if found.is_final]
    doubtful = any(found.state in _ENDED_BADLY or _moved_at(found) > now - _RECENT_S for found in ended)
    session = await chat.load() if late or doubtful else None
    if session is None:
        return
    for call in late:
        await advance(store, chat.key, call, lambda found, now: approvals.expire(found, now=now))
    recorded = (await store.read(chat.key)).approvals
    asked = find_asked_calls(chat.key, session.events, recorded)
    await chat.append(outcome_events(call for call in asked if call.is_undelivered and call.approval.is_final))


async def refuse_call(store: Store, chat: ChatKey, call: CallKey, reason: str) -> None:
    """Nobody will answer this call any more."""

    def refuse(found: Approval, now: float) -> Approval:
        if found.state is State.PENDING:
            return approvals.decide(found, by=chat.user_id, approved=False, now=now, reason=reason)
        if found.runs == "browser" and found.state is State.APPROVED:
            return approvals.take_output(found, by=chat.user_id, result={"error": f"Not run: {reason}."}, now=now)
        return found  # its tool is running, or has run

    with suppress(NotAllowed):
        await advance(store, chat, call, refuse)


async def park_calls(store: Store, chat: Chat) -> None:
    """A live session has ended. What it has asked is left as request mode would have left it."""
    recorded = (await store.read(chat.key)).approvals
    session = await chat.load() if any(found.approval_id for found in recorded) else None
    if session is not None:
        asked = find_asked_calls(chat.key, session.events, recorded)
        # ADK has held results back for siblings that have none yet. Where there is none, whoever has brought the
        # end about goes on with the call right away, and the model is to hear of it then.
        waiting = {call.asked_by.id for call in asked if not call.has_result and not call.approval.is_final}
        ended = [call for call in asked if call.is_undelivered and call.approval.is_final]
        ended = [call for call in ended if call.asked_by.id in waiting]
        await chat.append([*parking_events(call for call in asked if call not in ended), *outcome_events(ended)])


def _moved_at(approval: Approval) -> float:
    return approval.decided_at or approval.asked_at
