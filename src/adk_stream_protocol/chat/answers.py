"""Answers to calls: they are checked and recorded first, and then the message of the calls continues."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ..adk.calls.client_tools import fits
from ..adk.calls.inner_calls import with_inner_calls
from ..adk.calls.input_requests import value_of_answer
from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.session_calls import SessionCall, are_delivered, find_session_calls
from ..adk.event_parts import REQUEST_INPUT
from ..adk.live_listener import LiveListener
from ..adk.run import AnsweredCalls
from ..adk.session import Chat, MessageIds
from ..chunk_log import ChunkLog, Reading
from ..errors import (
    MalformedRequest,
    NotFound,
    OutputDoesNotFit,
    RequestTooLarge,
    Restarting,
    StoreUnavailable,
    TooMany,
)
from ..limits import Limits, size
from ..protocol import call_record
from ..protocol.answers import CallAnswer, decode_answers
from ..protocol.call_record import CallKey, CallRecord, State
from ..protocol.chunks import encode_json
from ..protocol.digest import canonical_json
from ..protocol.nul import has_nul
from ..protocol.turn import Turn
from ..store.base import Store, load_results
from .background import BackgroundWork, Opened
from .closed_logs import failed_log
from .completions import record_late
from .inbox import require_edit
from .leases import ChatLeases
from .prepared import Prepared
from .recorded_outcome import encode_recorded_outcome, was_shown_before
from .segments import Continuation, Segments, known_outputs

_ANSWER_KEPT = "Your answer is recorded, but the server cannot continue now. It will continue later."
_NOT_KNOWN = "Whether your answer was recorded is not known right now. Send it again."
_TOO_MANY_ANSWERS = "Too many of your answers wait for their chats. Wait for one of them, then send this one again."


# -- what a client says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DecodedAnswers:
    """Answers to calls of one message."""

    message_id: str
    answers: Sequence[CallAnswer[SessionCall]]
    open_calls: frozenset[CallKey]
    """Their calls that have no result in the session yet. None: the client asks for outcomes that it could know."""
    changes: Sequence[Sequence[CallRecord]]
    """What is to be written: of each call the record as it was found, and as it is after each step."""
    unrecorded: Sequence[CallRecord] = ()
    """Questions that were asked without a tool, as they were found in the session alone."""


class AnswerDecoder:
    """Reads, and writes nothing."""

    def __init__(self, store: Store, limits: Limits, browser_deadline_s: float) -> None:
        self.store = store
        self._limits = limits
        self._browser_deadline_s = browser_deadline_s

    async def decode(self, chat: Chat, turn: Turn) -> DecodedAnswers:
        """The answers that count. Raises what refuses the request."""
        snapshot = await self.store.read(chat.key)
        session = await chat.load()
        if session is None:
            raise NotFound
        found = await find_session_calls(chat, with_inner_calls(session.events, snapshot.records), snapshot.records)
        # Work and credentials come from the application, never from a client.
        clients = [call for call in found if not call.record.is_work and not call.is_credential]
        asked = [shown for call in clients if (shown := _as_asked(call)) is not None]
        # In chats of older versions a call's id is unique within its message only.
        in_message = [call for call in asked if call.message_id == turn.message_id]
        decoded = decode_answers(turn.answers or (), in_message or asked)
        repeated = {answer.asked.key: answer.asked.record for answer in decoded if answer.result is not None}
        await load_results(self.store, chat.key, repeated, repeated)
        answers = [answer for answer in decoded if not _is_another_output(answer, repeated)]
        if not answers:
            raise NotFound
        continued = answers[-1].asked.message_id
        answers = [answer for answer in answers if answer.asked.message_id == continued]
        for answer in answers:
            self._check_output(answer)
        changes = [steps for answer in answers if len(steps := self._steps(answer, snapshot.now)) > 1]
        # One link of a chain has decided: there is nothing to go on with yet.
        undecided = {steps[-1].call for steps in changes if not steps[-1].is_decided}
        open_calls = frozenset(answer.asked.key for answer in answers if not answer.asked.has_result) - undecided
        unrecorded = [steps[0] for steps in changes if snapshot.find(steps[0].call) is None]
        return DecodedAnswers(continued, answers, open_calls, changes, unrecorded)

    def _check_output(self, answer: CallAnswer[SessionCall]) -> None:
        if answer.asked.record.is_final:
            return
        if len(encode_json([answer.result, answer.payload])) > self._limits.max_output_bytes:
            raise RequestTooLarge(
                f"The output of a tool is too large: {size(self._limits.max_output_bytes)} are allowed."
            )
        if has_nul(answer.result):
            raise OutputDoesNotFit(
                "The output has a NUL character in it. The call is still open: send an output without it."
            )
        if has_nul([answer.payload, answer.reason]):
            raise MalformedRequest("A decision must not have NUL characters in it.")
        if answer.result is not None and "output" in answer.result:
            output, schema = answer.result["output"], answer.asked.record.output_schema
            if answer.asked.record.tool == REQUEST_INPUT:
                output = value_of_answer(output)
            if not fits(output, schema):
                raise OutputDoesNotFit

    def _steps(self, answer: CallAnswer[SessionCall], now: float) -> list[CallRecord]:
        found = answer.asked.record
        user = found.chat.user_id
        steps = [found]
        if answer.approved is not None:
            takes_edits = found.chain is not None or found.edits is not None
            if answer.approved and answer.payload is not None and takes_edits:
                require_edit(found, answer.payload)
            steps.append(
                call_record.decide(
                    found,
                    by=user,
                    approved=answer.approved,
                    now=now,
                    reason=answer.reason,
                    payload=_payload_of(answer),
                    browser_s=self._browser_deadline_s,
                )
            )
        if answer.result is not None:
            steps.append(call_record.take_output(steps[-1], by=user, result=answer.result, now=now))
        return [found, *(new for old, new in pairwise(steps) if new is not old)]


def _as_asked(call: SessionCall) -> SessionCall | None:
    """The call as far as the chat's owner may answer it; None if only others decide."""
    if call.record.asks_owner:
        return call
    is_browsers = call.record.executor == "browser" and call.record.is_decided
    return replace(call, approval_id=None) if is_browsers else None


def _payload_of(answer: CallAnswer[SessionCall]) -> Any:
    """What the tool gets with an approval. A page that has only buttons sends nothing: then it is what was asked."""
    return answer.payload if answer.payload is not None else answer.asked.record.asked_payload


def _is_another_output(answer: CallAnswer[SessionCall], records: Mapping[CallKey, CallRecord]) -> bool:
    """Whether this is another output for a call that has one. The same output again only asks for the outcome."""
    call = answer.asked
    if answer.result is None or call.record.state is not State.DONE or not call.has_result:
        return False
    return canonical_json(answer.result) != canonical_json(records[call.key].result)


# -- what comes of it -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnswerRequest:
    chat: Chat
    turn: Turn
    prepared: Prepared
    by: LiveListener | None = None
    """The socket that it came by."""


class ChatAnswers:
    def __init__(
        self,
        decoder: AnswerDecoder,
        leases: ChatLeases,
        segments: Segments,
        background: BackgroundWork,
        limits: Limits,
    ) -> None:
        self._store = decoder.store
        self._decoder = decoder
        self._leases = leases
        self._segments = segments
        self._background = background
        self._limits = limits
        self._under_way: Counter[str] = Counter()  # by user

    async def answer(self, request: AnswerRequest) -> Opened:
        """Record the answers, and continue their message; or read the segment that does so already. All refusals come
        before this returns."""
        user = request.chat.key.user_id
        if self._under_way[user] >= self._limits.max_waiting_answers_per_user:
            raise TooMany(_TOO_MANY_ANSWERS)
        self._under_way[user] += 1
        try:
            opened = await self._record(request)
        except BaseException:
            self._is_over(user)
            raise
        if isinstance(opened, Reading):
            self._is_over(user)
        else:
            opened.add_done_callback(lambda _: self._is_over(user))
        return opened

    def _is_over(self, user: str) -> None:
        self._under_way[user] -= 1
        if not self._under_way[user]:
            del self._under_way[user]

    async def _record(self, request: AnswerRequest) -> Opened:
        chat, turn = request.chat, request.turn
        decoded = await self._decoder.decode(chat, turn)
        leased: LeasedChat | None = None
        if decoded.open_calls or decoded.changes:
            self._leases.require_room(chat.key, self._limits.max_runs_per_user)
            for question in decoded.unrecorded:
                await record_late(self._store, self._leases, chat, question)
            try:
                leased = await self._write(chat, decoded)
            except (StoreUnavailable, Restarting) as error:
                if not await self._is_recorded(chat, decoded):
                    raise type(error) from None
                await self._leases.leave(chat.key)
                return Reading(failed_log(turn.message_id or decoded.message_id, _ANSWER_KEPT))
        if leased is not None:
            await self._require_records(leased, decoded)
        work = self._continue(request, decoded, leased)
        return self._background.start(work, turn.message_id or decoded.message_id, _ANSWER_KEPT)

    async def _write(self, chat: Chat, decoded: DecodedAnswers) -> LeasedChat | None:
        """Gives the lease of the chat, if it is free."""
        if any(len(steps) > 2 for steps in decoded.changes):
            # Approved and run by the browser in one request: two lines of the audit trail. `begin` writes one, and
            # leaves out what is written already.
            for found, *steps in decoded.changes:
                await self._store.compare_and_set(found, *steps)
        return await self._leases.begin(chat.key, [(steps[0], steps[-1]) for steps in decoded.changes])

    async def _is_recorded(self, chat: Chat, decoded: DecodedAnswers) -> bool:
        """The store failed while it wrote the answers, or the server began to go. If they are written all the same,
        nobody may deny it."""
        try:
            records = await self._segments.records(chat.key, ())
        except StoreUnavailable:
            raise StoreUnavailable(_NOT_KNOWN) from None
        asked = [answer.asked for answer in decoded.answers]
        return all(call.key in records and records[call.key].version != call.record.version for call in asked)

    async def _require_records(self, leased: LeasedChat, decoded: DecodedAnswers) -> None:
        """The chat may have been deleted meanwhile."""
        if not any(answer.asked.key in leased.records for answer in decoded.answers):
            await self._leases.end(leased)
            raise NotFound

    async def _continue(self, request: AnswerRequest, decoded: DecodedAnswers, leased: LeasedChat | None) -> Reading:
        chat, turn = request.chat, request.turn
        start_id = turn.message_id or decoded.message_id
        if leased is None and decoded.open_calls:
            place = await self._find_place(request, decoded, start_id)
            if isinstance(place, LeasedChat):
                leased = place
                await self._require_records(leased, decoded)
            elif place is not None:
                return Reading(place)
        if leased is not None:
            continuation = Continuation(
                message_id=decoded.message_id,
                start_id=start_id,
                prepared=request.prepared,
                answers=decoded.answers,
                sdk_version=turn.sdk_version,
                approval_style=turn.approval_style,
            )
            async with self._segments.ending_at_failure(leased):
                events, calls = await self._segments.read_session(chat, leased)
            log = await self._segments.continue_message(chat, leased, continuation, events, calls)
            if log is not None:
                return Reading(log)
            # Another request was faster, and its run is over.
        run = self._leases.get(chat.key)
        log = run.log if run is not None and run.message_id == decoded.message_id else None
        if log is not None and not was_shown_before(log, decoded):
            return Reading(log)
        ids = MessageIds(user_message_id=None, message_id=decoded.message_id, approval_style=turn.approval_style)
        translator = self._segments.new_translator(chat, ids, turn.sdk_version)
        records = await self._segments.records(chat.key)
        return Reading(await encode_recorded_outcome(chat, translator, records, decoded, start_id))

    async def _find_place(
        self, request: AnswerRequest, decoded: DecodedAnswers, start_id: str
    ) -> LeasedChat | ChunkLog | None:
        """The chat is busy. Gives the segment of the run that acts on the answers, or the lease once it is free. None
        if the run has acted on them, here or on another worker."""
        chat, calls = request.chat, decoded.open_calls
        run = self._leases.get(chat.key)
        if run is not None and run.has_shown(calls):
            return None
        if run is not None and run.accepts(calls):
            records = await self._segments.records(chat.key, [answer.asked.key for answer in decoded.answers])
            log = await run.continue_message(
                AnsweredCalls(
                    message_id=decoded.message_id,
                    start_id=start_id,
                    calls=calls,
                    known_outputs=known_outputs(decoded.answers, records),
                    records=records,
                    by=request.by,
                )
            )
            if log is not None:
                return log
        if run is not None and run.message_id == decoded.message_id and run.log is None:
            return None  # it waits for another call of the same message: what is recorded is taken up after it
        if run is not None:
            await run.end_when_idle()
        async with asyncio.timeout(self._limits.max_run_s):
            return await self._leases.wait_for(
                chat.key, calls, is_done=lambda records: are_delivered(chat, calls, records)
            )
