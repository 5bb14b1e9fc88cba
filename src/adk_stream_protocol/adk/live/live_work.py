"""Long-running calls in a live session: their progress and ends are shown, and the ends go to the model's queue."""

import asyncio
import logging
from collections.abc import Collection

from google.genai import types

from ...protocol.call_record import CallKey, CallRecord
from ...store.base import load_results
from ..calls.resumption import answer_event, response_part
from ..calls.session_calls import find_session_calls
from ..run import RunContext
from ..session import MessageIds
from .input_queue import LiveInput
from .live_message import LiveMessage
from .live_segments import LiveSegments
from .live_writer import LiveWriter

logger = logging.getLogger(__name__)


class LiveWork:
    def __init__(self, context: RunContext, segments: LiveSegments, live_input: LiveInput, writer: LiveWriter) -> None:
        self._context = context
        self._segments = segments
        self._input = live_input
        self._writer = writer
        self._looking: asyncio.Task[None] | None = None

    def look_soon(self) -> None:
        """For progress and ends that another worker has recorded."""
        records = self._context.leased.records.values()
        is_open = any(record.is_work and not record.is_final for record in records)
        if is_open and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look(), name="adk-stream work")

    async def _look(self) -> None:
        try:
            await self._take_news()
        except Exception as error:  # whatever a store raises
            logger.error("whether a long-running call has ended cannot be read: %s", type(error).__qualname__)

    async def _take_news(self) -> None:
        leased = self._context.leased
        for record in (await self._context.store.read(leased.key)).records:
            known = leased.records.get(record.call)
            if record.is_work and known is not None and known.version != record.version:
                await self.take(record)

    async def take(self, record: CallRecord) -> bool:
        """True if the model has the end."""
        leased, session = self._context.leased, self._segments.session
        if self._segments.is_ending or session is None or record.call in leased.delivered:
            return record.call in leased.delivered
        if not record.is_final:
            leased.records[record.call] = record
            self._show(record)
            return False
        calls = await find_session_calls(self._context.chat, session.events, [record])
        if not calls or CallKey(calls[0].asked_by.invocation_id, record.call.call_id) in leased.unstored:
            return False  # the model gets what the tool returned first: `look_soon` comes again
        leased.records[record.call] = record
        if calls[0].has_result or record.call in leased.delivered:
            return True
        leased.delivered.add(record.call)
        await load_results(self._context.store, leased.key, leased.records, [record.call])
        part = response_part(leased.records[record.call])
        ids = MessageIds(user_message_id=None, message_id=calls[0].message_id)
        event = answer_event(calls[0].asked_by, [part], ids)
        await self._context.chat.runner.session_service.append_event(session, event)
        self._show(record)
        self._input.send_content(types.Content(role="user", parts=[part]))
        return True

    def _show(self, record: CallRecord) -> None:
        """In the open segment of its message, or in one that is opened and closed for it."""
        message = self._message_of(record, self._segments.messages.values())
        if message is None:
            return  # of an earlier session: a reload shows it
        if message.log is not None:
            message.write(message.translator.call_parts.show_work(record))
            return
        message.open(self._segments.records)
        message.write(message.translator.call_parts.show_work(record))
        message.close(message.translator.finish(records=self._segments.records))
        self._writer.notify(message, None)

    def _message_of(self, record: CallRecord, messages: Collection[LiveMessage]) -> LiveMessage | None:
        return next((message for message in messages if message.translator.call_parts.has_work(record)), None)
