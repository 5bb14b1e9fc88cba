"""What has been asked over live sockets, and can go on over other ones."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...chat.background import Opened
from ...chunk_log import ChunkLog, LogReader, Reading
from ...errors import MalformedRequest, TooMany

RequestKey = tuple[str, str, str]
"""User, chat and request id."""

_MOST_OF_A_USER = 500  # requests that are remembered: many more than anybody's pages begin in a minute


@dataclass(frozen=True)
class Told:
    """A request's stream by its sequence numbers: the log as it grows."""

    log: ChunkLog
    replays_until: int | None = None
    """It began with the whole message up to this place of the log."""

    @classmethod
    def replaying(cls, log: ChunkLog) -> "Told":
        return cls(log, len(log))

    @property
    def is_whole(self) -> bool:
        return self.log.is_closed

    async def reader(self, sequence: int, max_bytes: int) -> LogReader:
        """Begins with chunk `sequence`."""
        if self.replays_until is None and 0 <= sequence <= len(self.log):
            return LogReader(self.log, max_bytes, cursor=sequence)
        reader = LogReader(self.log, max_bytes, replays_until=self.replays_until)
        if sequence < 0 or not await reader.skip(sequence):
            raise MalformedRequest("There is no chunk of this lastSequence yet.")
        return reader


@dataclass
class _Begun:
    asked: bytes
    told: asyncio.Task[Told]
    was_whole: bool = False


class LiveRequests:
    """A request is begun once, however often its frame comes, and goes on without its socket."""

    def __init__(self, kept_s: float) -> None:
        """`kept_s`: how long after its end."""
        self._kept_s = kept_s
        self._begun: dict[RequestKey, _Begun] = {}
        self._of_users: Counter[str] = Counter()

    async def open(self, key: RequestKey, asked: bytes, begin: Callable[[], Awaitable[Opened]]) -> Told:
        """`asked`: what tells this request from another under the same id."""
        known = self._begun.get(key)
        if known is None:
            self._require_room(key[0])

            async def opened() -> Told:
                begun = await begin()
                reading = begun if isinstance(begun, Reading) else await asyncio.shield(begun)
                return Told.replaying(reading.log) if reading.is_replay else Told(reading.log)

            known = self._keep(key, asked, asyncio.create_task(opened(), name="adk-stream open"))
        elif known.asked != asked:
            raise MalformedRequest("This requestId was used for something else before.")
        known.was_whole = False  # its time begins anew
        return await asyncio.shield(known.told)

    async def find(self, key: RequestKey) -> Told | None:
        known = self._begun.get(key)
        if known is None:
            return None
        known.was_whole = False
        return await asyncio.shield(known.told)

    def add(self, key: RequestKey, told: Told) -> Told:
        self._require_room(key[0])

        async def known() -> Told:
            return told

        self._keep(key, b"", asyncio.create_task(known(), name="adk-stream resume"))
        return told

    def _require_room(self, user: str) -> None:
        if self._of_users[user] >= _MOST_OF_A_USER:
            raise TooMany

    def _keep(self, key: RequestKey, asked: bytes, task: asyncio.Task[Told]) -> _Begun:
        self._begun[key] = begun = _Begun(asked, task)
        self._of_users[key[0]] += 1
        # Whoever asked may be gone by the time it fails, and asyncio would log what it said.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        asyncio.get_running_loop().call_later(self._kept_s, self._forget, key, begun)
        return begun

    def _forget(self, key: RequestKey, begun: _Begun) -> None:
        if self._begun.get(key) is not begun:
            return
        task = begun.told
        is_whole = task.done() and (task.cancelled() or task.exception() is not None or task.result().is_whole)
        if is_whole and begun.was_whole:
            del self._begun[key]
            self._of_users[key[0]] -= 1
            if not self._of_users[key[0]]:
                del self._of_users[key[0]]
        else:
            begun.was_whole = is_whole
            asyncio.get_running_loop().call_later(self._kept_s, self._forget, key, begun)

    async def aclose(self) -> None:
        tasks = [begun.told for begun in self._begun.values() if not begun.told.done()]
        self._begun.clear()
        self._of_users.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
