"""The next segment of a message after answers to its calls: how it opens, and what ADK is given."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ..adk.calls.resumption import outcome_events, plan_resumption, question_events
from ..adk.calls.session_calls import SessionCall
from ..adk.session import Chat, MessageIds
from ..adk.translate.history import replay
from ..adk.translate.translator import Translator
from ..chunk_log import ChunkLog
from ..loop_share import LoopShare
from ..protocol.answers import CallAnswer
from ..protocol.call_record import CallKey, CallRecord, Records, State
from ..protocol.chunks import AnyChunk
from ..protocol.fold import MessageFold, UIMessage
from ..protocol.outcome import results_of
from .answer_records import known_outputs
from .closed_logs import encode_in_slices, new_log

if TYPE_CHECKING:
    from google.adk.events import Event
    from google.genai.types import Content

_ENDED = (State.DONE, State.FAILED, State.UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class MessageToContinue:
    chat: Chat
    ids: MessageIds
    start_id: str
    """What the client calls the message."""
    events: "list[Event]"
    """Of the whole session."""
    calls: Sequence[SessionCall]
    """Those of the message."""
    records: dict[CallKey, CallRecord]


@dataclass(frozen=True, kw_only=True)
class NextSegment:
    """As `RunRequest` takes it."""

    log: ChunkLog
    opening: Sequence[AnyChunk]
    contents: "Sequence[Content]"
    appended: "Sequence[Event]"
    answered: frozenset[CallKey]
    outputs: frozenset[CallKey]


async def plan_next_segment(
    message: MessageToContinue, translator: Translator, answers: Sequence[CallAnswer[SessionCall]]
) -> NextSegment | None:
    """None if ADK has everything already. `answers`: none when nobody asks, after a crash."""
    ids, calls, records = message.ids, message.calls, message.records
    answered = {answer.asked.key for answer in answers}
    undelivered = [call for call in calls if call.is_undelivered and call.is_asked]
    unasked = [call for call in calls if call.is_undelivered and not call.is_asked]
    released = [call for call in calls if call.key in answered and _is_released_to_browser(call)]
    continued = frozenset(call.key for call in (*undelivered, *released))
    if not continued:
        return None
    before = _as_if_unanswered(records, continued)
    earlier = await replay(translator, message.chat, message.events, ids.message_id or "", before)
    # The segment before showed what had ended by then. It is shown again only to a client that asks for it.
    shown = {call.key for call in undelivered if call.record.executor == "server" and call.record.state in _ENDED}
    known = known_outputs(answers, records) | (shown - answered)
    resumption = plan_resumption(_in_whole_steps(undelivered, calls), ids)
    opening = translator.new_segment(message.start_id, records, continued, known)
    unknown = answered - known
    missed = [call.wire_id for call in calls if call.has_result and call.key in unknown]
    opening += results_of(await fold_in_slices(earlier), missed)
    for event in plan_resumption(undelivered, ids).browser_answers:
        opening += translator.feed(event, records=records)
    earlier += translator.call_parts.sent_by_client(records, continued)
    return NextSegment(
        log=new_log(await encode_in_slices(earlier)),
        opening=opening,
        contents=resumption.messages,
        appended=[*question_events(undelivered), *outcome_events(unasked), *resumption.appended],
        answered=continued,
        outputs=resumption.outputs,
    )


async def fold_in_slices(chunks: Iterable[AnyChunk]) -> UIMessage:
    fold, share = MessageFold(), LoopShare()
    for chunk in chunks:
        await share.give_way()
        fold.feed(chunk)
    return fold.message()


def _in_whole_steps(undelivered: Sequence[SessionCall], calls: Sequence[SessionCall]) -> list[SessionCall]:
    """Without the outputs of a step in which a browser's call is still open. ADK stores results in the order in which
    they come, and some models match them by their order alone. ADK would not go on before the last of them anyway."""
    open_steps = {
        call.asked_by.id
        for call in calls
        if call.record.executor == "browser" and not call.has_result and not call.record.is_final
    }
    return [call for call in undelivered if call.record.executor == "server" or call.asked_by.id not in open_steps]


def _is_released_to_browser(call: SessionCall) -> bool:
    return call.record.executor == "browser" and call.record.state is State.APPROVED


def _as_if_unanswered(records: Records, calls: Collection[CallKey]) -> dict[CallKey, CallRecord]:
    """The records as the client knew them when the last segment ended."""

    def unanswered(record: CallRecord) -> CallRecord:
        return msgspec.structs.replace(record, state=State.PENDING, approved=None, payload=None)

    return {key: unanswered(found) if key in calls else found for key, found in records.items()}
