"""Messages that go on after answers to their calls, without a bridge."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.adk.events import Event

from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.calls.session_calls import find_session_calls
from adk_stream_protocol.adk.session import MessageIds
from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.chat.answers import DecodedAnswers
from adk_stream_protocol.chat.recorded_outcome import encode_recorded_outcome
from adk_stream_protocol.chat.segments import MessageToContinue, NextSegment, plan_next_segment
from adk_stream_protocol.chunk_log import ChunkLog
from adk_stream_protocol.protocol.answers import CallAnswer
from adk_stream_protocol.protocol.call_record import CallRecord, State
from adk_stream_protocol.protocol.chunks import encode_chunks
from adk_stream_protocol.store.base import Lease, Snapshot

from .records import CHAT, record
from .session_events import asking, calling, chat_with, empty_chat, pay

IDS = MessageIds(user_message_id="u1", message_id="m1")


def browsers(id: str = "1", state: State = State.APPROVED, **fields: Any) -> CallRecord:
    return record(id, state, executor="browser", **fields)


def played(id: str = "1") -> CallRecord:
    return browsers(id, State.DONE, result={"output": {"plays": 1}})


def asked_about(*ids: str) -> list[Event]:
    return [calling(*(pay(id) for id in ids)), *(asking(f"q{id}", {"id": id}) for id in ids)]


def waiting(*ids: str) -> list[Event]:
    """Calls of the browser's in one step."""
    return [calling(*(pay(id) for id in ids), long_running_tool_ids=set(ids))]


def short(chunks: Sequence[bytes]) -> list[tuple[str, str | None]]:
    read = [json.loads(chunk) for chunk in chunks]
    return [(chunk["type"], chunk.get("toolCallId") or chunk.get("messageId")) for chunk in read]


def written(log: ChunkLog) -> list[tuple[str, str | None]]:
    return short(log.since(0, 1_000_000))


class Segment:
    """The message of these events, with these records, as it goes on after answers to some of its calls."""

    def __init__(self, events: list[Event], *records: CallRecord) -> None:
        self.events = events
        self.leased = LeasedChat.taken(Lease(CHAT, "run-1"), Snapshot(records, 0.0))
        with ThreadPoolExecutor() as elsewhere:  # in a loop of its own: most tests have one already
            self.calls = elsewhere.submit(asyncio.run, find_session_calls(empty_chat(), events, records)).result()

    def answers(self, *ids: str, **said: Any) -> list[CallAnswer[Any]]:
        return [CallAnswer(asked=call, **said) for call in self.calls if call.wire_id in ids]

    async def outcome(self, *ids: str, events: list[Event] | None = None) -> ChunkLog:
        chat = await chat_with(*(self.events if events is None else events))
        decoded = DecodedAnswers("m1", self.answers(*ids), frozenset(), [])
        translator = Translator(root_author="a")
        return await encode_recorded_outcome(chat, translator, self.leased.records, decoded, "client-1")

    async def next(self, *ids: str, style: Any = None, **said: Any) -> NextSegment | None:
        message = MessageToContinue(
            chat=await chat_with(*self.events),
            ids=IDS,
            start_id="client-1",
            events=self.events,
            calls=self.calls,
            records=self.leased.records,
        )
        translator = Translator(root_author="a", approval_style=style)
        return await plan_next_segment(message, translator, self.answers(*ids, **said))

    async def opening(self, *ids: str, **said: Any) -> list[tuple[str, str | None]]:
        found = await self.next(*ids, **said)
        assert found is not None
        return short(encode_chunks(found.opening))
