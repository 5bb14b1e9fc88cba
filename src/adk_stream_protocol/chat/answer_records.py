"""What a client's answers change in the records of their calls. Refuses before anything is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..adk.calls.client_tools import fits
from ..adk.calls.session_calls import Events, SessionCall, find_session_calls
from ..adk.event_parts import REQUEST_INPUT
from ..adk.session import Chat
from ..errors import MalformedRequest, NotFound, OutputDoesNotFit, RequestTooLarge
from ..limits import Limits
from ..protocol import call_record
from ..protocol.answers import CallAnswer, decode_answers
from ..protocol.call_record import CallKey, CallRecord, State
from ..protocol.chunks import encode_json
from ..protocol.digest import canonical_json
from ..protocol.nul import has_nul
from ..protocol.turn import Turn
from ..store.base import Store, load_results
from .leases import Change


@dataclass(frozen=True)
class DecodedAnswers:
    """Answers to calls of one message."""

    message_id: str
    answers: Sequence[CallAnswer[SessionCall]]
    open_calls: frozenset[CallKey]
    """Their calls that have no result in the session yet. None: the client asks for outcomes that it could know."""
    changes: Sequence[Change]
    """What is to be written."""
    calls_outside_session: Events


class AnswerDecoder:
    def __init__(self, store: Store, limits: Limits, browser_deadline_s: float) -> None:
        self._store = store
        self._limits = limits
        self._browser_deadline_s = browser_deadline_s

    async def decode(self, chat: Chat, turn: Turn, calls_outside_session: Events) -> DecodedAnswers:
        """The answers that count. Raises what refuses the request."""
        snapshot = await self._store.read(chat.key)
        session = await chat.load()
        if session is None:
            raise NotFound
        asked = await find_session_calls(chat, [*session.events, *calls_outside_session], snapshot.records)
        # In chats of older versions a call's id is unique within its message only.
        in_message = [call for call in asked if call.message_id == turn.message_id]
        decoded = decode_answers(turn.answers or (), in_message or asked)
        repeated = {answer.asked.key: answer.asked.record for answer in decoded if answer.result is not None}
        await load_results(self._store, chat.key, repeated, repeated)
        answers = [answer for answer in decoded if not _is_another_output(answer, repeated)]
        if not answers:
            raise NotFound
        messages = [answer.asked.message_id for answer in answers]
        continued = turn.message_id if turn.message_id in messages else messages[-1]
        answers = [answer for answer in answers if answer.asked.message_id == continued]
        for answer in answers:
            self._check_output(answer)
        changes: list[Change] = []
        for answer in answers:
            changes += await self._changes(answer, snapshot.now)
        open_calls = frozenset(answer.asked.key for answer in answers if not answer.asked.has_result)
        return DecodedAnswers(continued or "", answers, open_calls, changes, calls_outside_session)

    def _check_output(self, answer: CallAnswer[SessionCall]) -> None:
        if answer.asked.record.is_final:
            return
        if len(encode_json([answer.result, answer.payload])) > self._limits.max_output_bytes:
            raise RequestTooLarge("The output of a tool is too large.")
        if has_nul(answer.result):
            raise OutputDoesNotFit(
                "The output has a NUL character in it. The call is still open: send an output without."
            )
        if has_nul([answer.payload, answer.reason]):
            raise MalformedRequest("A decision must not have NUL characters in it.")
        if (
            answer.result is not None
            and "output" in answer.result
            and not fits(answer.result["output"], answer.asked.record.output_schema)
        ):
            raise OutputDoesNotFit

    async def _changes(self, answer: CallAnswer[SessionCall], now: float) -> list[Change]:
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
                    browser_s=self._browser_deadline_s,
                )
            )
        if answer.result is not None:
            if found.tool == REQUEST_INPUT:  # asked without a tool, so that there may be no record yet
                await self._store.add(found)
            steps.append(call_record.take_output(steps[-1], by=user, result=answer.result, now=now))
        moved = [new for old, new in pairwise(steps) if new is not old]
        if len(moved) > 1:  # approved and run by the browser in one request: two lines of the audit trail
            await self._store.compare_and_set(found, *moved)
            return []
        return [(found, new) for new in moved]


def known_outputs(answers: Sequence[CallAnswer[SessionCall]], records: Mapping[CallKey, CallRecord]) -> set[CallKey]:
    """The calls whose recorded output came with these answers."""
    return {
        answer.asked.key
        for answer in answers
        if answer.result is not None
        and (found := records.get(answer.asked.key)) is not None
        and found.state is State.DONE
        and canonical_json(found.result) == canonical_json(answer.result)
    }


def _is_another_output(answer: CallAnswer[SessionCall], records: Mapping[CallKey, CallRecord]) -> bool:
    """Another output for a call that has one. The same output again asks for the outcome, and is no such case."""
    call = answer.asked
    if answer.result is None or call.record.state is not State.DONE or not call.has_result:
        return False
    return canonical_json(answer.result) != canonical_json(records[call.key].result)
