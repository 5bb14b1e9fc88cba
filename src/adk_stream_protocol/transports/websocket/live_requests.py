"""The requests of all live sockets of a bridge. Each outlives its socket, and can be resumed on another one."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...chat.background import Opened
from ...chunk_log import ChunkLog, LogReader, Reading
from ...errors import MalformedRequest, TooMany

RequestKey = tuple[str, str, str]
"""User, chat and request id."""

_MAX_PER_USER = 500  # many more than one user's pages send in a minute


@dataclass(frozen=True)
class RequestStream:
    """The stream of a request, whose chunks are numbered from 0: a log, or a replay that goes on into a log."""

    log: ChunkLog
    replays_until: int | None = None
    """The stream begins with a replay of the whole message, up to this place in the log."""

    @classmethod
    def replaying(cls, log: ChunkLog) -> "RequestStream":
        return cls(log, len(log))

    @property
    def has_ended(self) -> bool:
        return self.log.is_closed

    async def reader(self, sequence: int, max_bytes: int) -> LogReader:
        """Begins with chunk `sequence`."""
        if self.replays_until is None and 0 <= sequence <= len(self.log):
            return LogReader(self.log, max_bytes, cursor=sequence)
        reader = LogReader(self.log, max_bytes, replays_until=self.replays_until)
        if sequence < 0 or not await reader.skip(sequence):
            raise MalformedRequest("`lastSequence` is beyond the last chunk of this request.")
        return reader


@dataclass
class _Known:
    digest: bytes
    opening: asyncio.Task[RequestStream]
    had_ended: bool = False
    """Whether it had ended at the last look, and nobody has asked for it since."""

    @property
    def has_ended(self) -> bool:
        task = self.opening
        return task.done() and (task.cancelled() or task.exception() is not None or task.result().has_ended)


class LiveRequests:
    """A request is opened once, however often its frame comes."""

    def __init__(self, kept_s: float) -> None:
        """`kept_s`: how long a request is known after its end, at least."""
        self._kept_s = kept_s
        self._known: dict[RequestKey, _Known] = {}
        self._counts: Counter[str] = Counter()

    async def open(self, key: RequestKey, digest: bytes, begin: Callable[[], Awaitable[Opened]]) -> RequestStream:
        """`digest`: differs from that of another request under the same id."""
        known = self._known.get(key)
        if known is None:
            self._require_room(key[0])

            async def opened() -> RequestStream:
                begun = await begin()
                reading = begun if isinstance(begun, Reading) else await asyncio.shield(begun)
                return RequestStream.replaying(reading.log) if reading.is_replay else RequestStream(reading.log)

            known = self._keep(key, digest, asyncio.create_task(opened(), name="adk-stream open"))
        elif known.digest != digest:
            raise MalformedRequest("This requestId was used for something else before.")
        known.had_ended = False
        return await asyncio.shield(known.opening)

    async def find(self, key: RequestKey) -> RequestStream | None:
        known = self._known.get(key)
        if known is None:
            return None
        known.had_ended = False
        return await asyncio.shield(known.opening)

    def add(self, key: RequestKey, stream: RequestStream) -> RequestStream:
        self._require_room(key[0])

        async def opened() -> RequestStream:
            return stream

        self._keep(key, b"", asyncio.create_task(opened(), name="adk-stream resume"))
        return stream

    def _require_room(self, user: str) -> None:
        if self._counts[user] >= _MAX_PER_USER:
            raise TooMany

    def _keep(self, key: RequestKey, digest: bytes, opening: asyncio.Task[RequestStream]) -> _Known:
        self._known[key] = known = _Known(digest, opening)
        self._counts[key[0]] += 1
        # If it fails when its client is gone, nobody awaits it, and asyncio would log the exception with its text.
        opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        asyncio.get_running_loop().call_later(self._kept_s, self._forget_if_ended, key, known)
        return known

    def _forget_if_ended(self, key: RequestKey, known: _Known) -> None:
        """It must have ended at two looks in a row, so that it is kept for the whole time after its end."""
        if self._known.get(key) is not known:
            return
        if known.has_ended and known.had_ended:
            del self._known[key]
            self._counts[key[0]] -= 1
            if not self._counts[key[0]]:
                del self._counts[key[0]]
        else:
            known.had_ended = known.has_ended
            asyncio.get_running_loop().call_later(self._kept_s, self._forget_if_ended, key, known)

    async def aclose(self) -> None:
        tasks = [known.opening for known in self._known.values() if not known.opening.done()]
        self._known.clear()
        self._counts.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
