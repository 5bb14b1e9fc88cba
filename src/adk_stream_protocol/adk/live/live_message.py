"""One answer in a live session: its segments, and the calls of it that are under way."""

import secrets
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...chunk_log import ChunkLog
from ...protocol.call_record import CallKey, Records
from ...protocol.chunks import AnyChunk, encode_chunks
from ...protocol.replay import VOICE
from ..calls.outcomes import as_response
from ..session import MessageIds
from ..translate.translator import Translator

_AS_USUAL = MessageIds(user_message_id=None, message_id=None)


class LiveMessage:
    def __init__(
        self,
        translator: Translator,
        *,
        message_id: str | None = None,
        user_message_id: str | None = None,
        is_typed: bool = False,
        shown: MessageIds = _AS_USUAL,
    ) -> None:
        """`shown`: how the answer is shown."""
        self.message_id = message_id or f"msg-{secrets.token_urlsafe(12)}"
        self.user_message_id = user_message_id or f"msg-{secrets.token_urlsafe(12)}"
        self.translator = translator
        self.log: ChunkLog | None = None
        """The segment that is open."""
        self.last_log: ChunkLog | None = None
        self.calls: dict[CallKey, Event] = {}
        """Those without a result, by the event that made them."""
        self.waiting: dict[CallKey, bool] = {}
        """Those that wait for an answer, and whether ADK listens to nobody meanwhile."""
        self.ended: dict[CallKey, Any] = {}
        """Those whose tool has come to its end while ADK waits for others: what it returned."""
        self.is_to_come = is_typed
        """The user has written, and the model has said nothing since."""
        self.is_interrupted = False
        self.is_superseded = False
        """The user has written something else instead of an answer."""
        self.is_unwanted = False
        """The user wants to hear no more of it."""
        self.event_count = 0
        self.heard = ""
        self.said_aloud = ""
        """By the model, since the last whole transcript."""
        self._is_heard = is_typed
        self._shown = shown
        self._is_started = False
        self._told: list[bytes] = []

    # -- what the user said -------------------------------------------------------------------------------------------

    @property
    def awaits_transcript(self) -> bool:
        return not self._is_heard

    def hear(self, text: str, *, is_all: bool) -> None:
        """Pieces come as they are heard; the last one is the whole."""
        self.heard = text if is_all else self.heard + text
        self._is_heard = is_all

    def ids(self, step: str | None = None) -> MessageIds:
        return replace(self._shown, user_message_id=self.user_message_id, message_id=self.message_id, step=step)

    # -- segments -----------------------------------------------------------------------------------------------------

    def open(
        self,
        records: Records,
        answered: Collection[CallKey] = (),
        known_outputs: Collection[CallKey] = (),
        start_id: str | None = None,
    ) -> ChunkLog:
        """A new segment: the first, or one that goes on after answers."""
        named = start_id or self.message_id
        if self._is_started:
            chunks = self.translator.new_segment(named, records, answered, known_outputs)
            by_client = encode_chunks(self.translator.call_parts.sent_by_client(records, answered))
        else:
            chunks = self.translator.start(named)
            by_client = []
        self._is_started = True
        self._told += by_client
        self.log = self.last_log = ChunkLog(secrets.token_urlsafe(3), list(self._told))
        self.write(chunks)
        return self.log

    def write(self, chunks: Sequence[AnyChunk]) -> None:
        if chunks and self.log is not None:
            self.log.append(encode_chunks(list(chunks)))

    def close(self, last: Sequence[AnyChunk]) -> None:
        if self.log is None:
            return
        self.write(last)
        # To be told again as one: with the first start, and without the ends.
        chunks = self.log.since(0, sys.maxsize)[1 if self._told else 0 : -1]
        self._told += [chunk for chunk in chunks if not chunk.startswith(VOICE)]
        self.log.close()
        self.log = None

    # -- calls --------------------------------------------------------------------------------------------------------

    @property
    def is_blocked(self) -> bool:
        """Whether a person or a browser must answer before ADK goes on."""
        return any(self.waiting.values())

    @property
    def is_at_work(self) -> bool:
        """Whether a call is neither waiting nor done."""
        return bool(self.calls.keys() - self.waiting.keys() - self.ended.keys())

    def tell_ended(self, records: Records) -> None:
        """Results that ADK holds back until their siblings have theirs, too."""
        for call, response in list(self.ended.items()):
            if call in self.calls:
                self.write(self.translator.feed(result_event(self.calls[call], call, response), records=records))
                del self.calls[call]


def result_event(made_by: Event, call: CallKey, response: Any) -> Event:
    name = next((found.name for found in made_by.get_function_calls() if found.id == call.call_id), "")
    answer = types.FunctionResponse(id=call.call_id, name=name, response=as_response(response))
    return Event(
        author=made_by.author,
        branch=made_by.branch,
        invocation_id=made_by.invocation_id,
        content=types.Content(role="user", parts=[types.Part(function_response=answer)]),
    )
