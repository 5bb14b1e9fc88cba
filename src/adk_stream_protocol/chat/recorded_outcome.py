"""A segment for a client that asks for the outcomes of calls that have ended."""

from typing import TYPE_CHECKING

from ..adk.calls.inner_calls import with_inner_calls
from ..adk.event_parts import as_dict
from ..adk.session import Chat
from ..adk.translate.approval_card import card_of
from ..adk.translate.history import replay
from ..adk.translate.recorded_chunks import recorded_chunk
from ..adk.translate.translator import Translator
from ..chunk_log import ChunkLog
from ..protocol.call_record import Records
from ..protocol.chunks import Data
from ..protocol.outcome import encode_outcome
from ..protocol.replay import ended_calls
from .closed_logs import closed_log
from .segments import fold_in_slices

if TYPE_CHECKING:
    from .answers import DecodedAnswers


async def encode_recorded_outcome(
    chat: Chat, translator: Translator, records: Records, decoded: "DecodedAnswers", start_id: str
) -> ChunkLog:
    """`start_id`: what the client calls the message."""
    session = await chat.load()
    events = with_inner_calls(session.events if session else [], records.values())
    chunks = await replay(translator, chat, events, decoded.message_id, records)
    message = await fold_in_slices([*chunks, *translator.call_parts.end_recorded(records)])
    outer = [as_dict(answer.asked.record.made_in).get("outer") for answer in decoded.answers]
    wire_ids = [*(answer.asked.wire_id for answer in decoded.answers), *(call_id for call_id in outer if call_id)]
    shown = {part.get("toolCallId") for part in message["parts"]}
    gone = [answer.asked for answer in decoded.answers if answer.asked.wire_id not in shown]
    ended = [(call.wire_id, records[call.key]) for call in gone if call.key in records]
    taken_back = [recorded_chunk(wire_id, record) for wire_id, record in ended if record.is_final]
    known = [(answer.asked.wire_id, records.get(answer.asked.key)) for answer in decoded.answers]
    chains = [
        Data("data-adk-approval", {"toolCallId": wire_id, **card_of(record)}, record.asked_as)
        for wire_id, record in known
        if record is not None and record.chain
    ]
    return await closed_log(encode_outcome(message, start_id, wire_ids, [*taken_back, *chains]))


def was_shown_before(log: ChunkLog, decoded: "DecodedAnswers") -> bool:
    """Whether an earlier segment than the log's shows an outcome that these answers ask for. Outcomes of browser calls
    do not count: the browser knows them."""
    asked = {answer.asked.wire_id for answer in decoded.answers if answer.asked.record.executor == "server"}
    return not asked.isdisjoint(ended_calls(log.earlier))
