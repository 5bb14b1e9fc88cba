"""One answer in a live session, as its clients read it: its segments, and what was heard and said aloud."""

import secrets
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from google.adk.events import Event

from ...chunk_log import ChunkLog
from ...protocol.call_record import CallKey, Records
from ...protocol.chunks import AnyChunk, encode_chunks
from ...protocol.replay import VOICE
from ..session import MessageIds
from ..translate.translator import Translator

_AS_USUAL = MessageIds(user_message_id=None, message_id=None)


@dataclass
class SessionEnd:
    """How the session ends."""

    by: str | None = None
    failure: str | None = None


class LiveMessage:
    """
    | Attributes | |
    |---|---|
    | `message_id`, `user_message_id`, `is_stored`, `_shown` | which message it is, and how it is shown |
    | `translator`, `log`, `last_log`, `_is_started`, `_emitted` | its segments |
    | `_heard`, `_said_aloud` | what was said aloud |
    """

    def __init__(
        self,
        translator: Translator,
        *,
        message_id: str | None = None,
        user_message_id: str | None = None,
        shown: MessageIds = _AS_USUAL,
    ) -> None:
        """`shown`: how the answer is shown."""
        self.message_id = message_id or f"msg-{secrets.token_urlsafe(12)}"
        self.user_message_id = user_message_id or f"msg-{secrets.token_urlsafe(12)}"
        self.translator = translator
        self.log: ChunkLog | None = None
        """The segment that is open."""
        self.last_log: ChunkLog | None = None
        self.is_stored = False
        """Whether an event of it is."""
        self._heard = ""
        self._said_aloud = ""  # by the model, since the last whole transcript
        self._shown = shown
        self._is_started = False
        self._emitted: list[bytes] = []

    def ids(self, step: str | None = None) -> MessageIds:
        return replace(self._shown, user_message_id=self.user_message_id, message_id=self.message_id, step=step)

    # -- what was said aloud ------------------------------------------------------------------------------------------

    def hear(self, text: str, *, is_all: bool) -> str:
        """What the user has said. Pieces come as they are heard; the last one is the whole."""
        self._heard = text if is_all else self._heard + text
        return self._heard

    def say_aloud(self, text: str, *, is_all: bool) -> str:
        """What the model has said, in the same way."""
        whole = text if is_all else self._said_aloud + text
        self._said_aloud = "" if is_all else whole
        return whole

    # -- segments -----------------------------------------------------------------------------------------------------

    def open(
        self,
        records: Records,
        answered: Collection[CallKey] = (),
        known_outputs: Collection[CallKey] = (),
        start_id: str | None = None,
    ) -> None:
        """A new segment: the first, or one that goes on after answers."""
        named = start_id or self.message_id
        if self._is_started:
            chunks = self.translator.new_segment(named, records, answered, known_outputs)
            by_client = encode_chunks(self.translator.call_parts.sent_by_client(records, answered))
        else:
            chunks = self.translator.start(named)
            by_client = []
        self._is_started = True
        self._emitted += by_client
        self.log = self.last_log = ChunkLog(secrets.token_urlsafe(3), list(self._emitted))
        self.write(chunks)

    def write(self, chunks: Sequence[AnyChunk]) -> None:
        if chunks and self.log is not None:
            self.log.append(encode_chunks(list(chunks)))

    def close(self, last: Sequence[AnyChunk]) -> None:
        if self.log is None:
            return
        self.write(last)
        # To be read again as one: with the first start, and without the ends.
        chunks = self.log.since(0, sys.maxsize)[1 if self._emitted else 0 : -1]
        self._emitted += [chunk for chunk in chunks if not chunk.startswith(VOICE)]
        self.log.close()
        self.log = None


class StoredIds:
    """Writes into the events of a session which messages they belong to. ADK stores no ids with what the user writes:
    the history finds them in the events of the answers, in their order. So an answer without events is named by the
    next one."""

    def __init__(self) -> None:
        self._skipped: list[str] = []

    def note(self, event: Event, message: LiveMessage, step: str) -> None:
        ids = replace(message.ids(step), skipped=self._skipped or None)
        event.custom_metadata = {**(event.custom_metadata or {}), **ids.metadata()}
        if not event.partial:  # ADK does not store those
            message.is_stored, self._skipped = True, []

    def skip(self, message: LiveMessage) -> None:
        """Nothing more comes of this message."""
        if not message.is_stored:
            self._skipped = [*self._skipped, message.user_message_id]
