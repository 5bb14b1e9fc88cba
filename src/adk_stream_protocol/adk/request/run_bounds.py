"""The bounds of a request run: its wall time, and how long it goes on with nobody reading it."""

import asyncio
from typing import Protocol

from ...chunk_log import ChunkLog
from ...limits import Limits
from ..calls.leased_chat import LeasedChat

_FIRST_READER_S = 10
_LATE_S, _CATCH_UP_S = 0.1, 1
_TOOL_AT_WORK_S = 1


class BoundedRun(Protocol):
    @property
    def last_log(self) -> ChunkLog: ...

    @property
    def leased(self) -> LeasedChat: ...

    def end_by(self, limit: str) -> None:
        """End it, and say by which limit."""
        ...

    def stop_soon(self) -> None: ...


class RunBounds:
    def __init__(self, run: BoundedRun, limits: Limits) -> None:
        self._run = run
        self._limits = limits
        self._time: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._left_s = limits.max_run_s

    def watch_readers(self) -> None:
        self._run.last_log.on_readers_changed = self._readers_changed
        # The first reader may still be on its way, however short the time is afterwards.
        patience_s = max(self._limits.unread_run_s, _FIRST_READER_S)
        self._unread = asyncio.get_running_loop().call_later(patience_s, self._nobody_reads)

    def watch_time(self) -> None:
        """Also after `stop_watching_time`: what was used up then stays used up."""
        loop = asyncio.get_running_loop()
        self._time = loop.call_later(self._left_s, self._out_of_time, loop.time() + self._left_s)

    def stop_watching_time(self) -> None:
        if self._time is not None:
            self._left_s = max(0, self._time.when() - asyncio.get_running_loop().time())
            self._time.cancel()

    def stop_watching_readers(self) -> None:
        self._run.last_log.on_readers_changed = lambda: None
        if self._unread is not None:
            self._unread.cancel()

    def _out_of_time(self, due: float) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - due > _LATE_S:  # something has blocked the loop: results that came meanwhile are read first
            self._time = loop.call_later(_CATCH_UP_S, self._run.end_by, "time")
        else:
            self._run.end_by("time")

    def _readers_changed(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        if not self._run.last_log.is_read:
            loop = asyncio.get_running_loop()
            self._unread = loop.call_later(self._limits.unread_run_s, self._nobody_reads)

    def _nobody_reads(self) -> None:
        if self._run.leased.at_work:  # it may be paying: let it finish, and look again
            self._unread = asyncio.get_running_loop().call_later(_TOOL_AT_WORK_S, self._nobody_reads)
        else:
            self._run.stop_soon()
