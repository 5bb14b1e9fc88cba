"""The calls of a request run that wait inside ADK, because ADK could not come back to them: those of agents that run as
tools, and of workflow nodes.

While one of them waits and nothing else is at work, no segment is open, so that the client can answer. The run keeps
its lease; an answer opens the next segment. So does a deadline, or a decision from elsewhere.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Any, Protocol

from google.adk.events import Event
from google.adk.tools import BaseTool

from ...errors import StoreUnavailable
from ...lazy_event import LazyEvent
from ...protocol import call_record
from ...protocol.call_record import CallKey
from ...store.base import Store, advance
from ..calls.inner_calls import call_event, result_event
from ..calls.leased_chat import LeasedChat
from ..calls.live_observer import NestedCall
from ..session import MessageIds

logger = logging.getLogger(__name__)

_QUIET_S = 0.1  # calls of one model answer come one after the other


class SegmentedRun(Protocol):
    @property
    def ids(self) -> MessageIds: ...

    def tell(self, event: Event) -> None:
        """Write the event, in the open segment or the next one."""
        ...

    def end_segment(self) -> None:
        """The message waits for its client."""
        ...

    def go_on(self, call: CallKey) -> None:
        """The message goes on with this call, in the open segment or a new one."""
        ...


class InnerWaits:
    def __init__(self, run: SegmentedRun, leased: LeasedChat, store: Store) -> None:
        self.is_ending = False
        self.unshown: set[CallKey] = set()
        """Calls that wait or run, and whose results the client has not got."""
        self.shown: set[CallKey] = set()
        self._run = run
        self._leased = leased
        self._store = store
        self._waiting: dict[CallKey, NestedCall] = {}
        self._news = LazyEvent()
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, call: CallKey) -> bool:
        return call in self._waiting

    # -- what the gate tells ------------------------------------------------------------------------------------------

    def message_id_of(self, outer: CallKey | None) -> str | None:
        return self._run.ids.message_id

    def waits(self, call: CallKey, tool: BaseTool, nested_in: NestedCall | None, *, blocks: bool) -> None:
        if nested_in is None:
            return
        if call not in self.unshown:  # a long-running tool may have asked before it left the call to the client
            self._leased.unplaced.append(("call", call))
            self._run.tell(call_event(self._leased.records[call], self._run.ids))
        self.unshown.add(call)
        self._waiting[call] = nested_in
        self._changed()

    def goes_on(self, call: CallKey) -> None:
        self._waiting.pop(call, None)
        self._changed()
        self._run.go_on(call)

    def abandoned(self, call: CallKey) -> None:
        self._waiting.pop(call, None)
        self.unshown.discard(call)
        self._changed()

    def settled(self, call: CallKey, response: Any) -> bool:
        record = self._leased.records.get(call)
        if call in self.unshown and record is not None and record.is_final:
            self.unshown.discard(call)
            self.shown.add(call)
            self._leased.unplaced.append(("result", call))
            self._run.tell(result_event(record, self._run.ids))
        return False

    async def news(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()

    def wake(self) -> None:
        """A client may have answered."""
        self._news.set()
        self._news = LazyEvent()

    # -- when the segment ends ----------------------------------------------------------------------------------------

    def written(self) -> None:
        """Something was written: more may follow at once."""
        if self._waiting:
            self._changed()

    def _changed(self) -> None:
        self.stop_watching()
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(_QUIET_S, self._is_quiet)

    def _is_quiet(self) -> None:
        if self._leased.at_work <= self._leased.held:
            self._run.end_segment()
        else:  # a tool beside them is at work
            self._changed()

    def stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- the end ------------------------------------------------------------------------------------------------------

    async def refuse(self, why: str) -> None:
        """Nobody will answer any more. Raises if that cannot be recorded: then the calls go on waiting."""
        self.is_ending = True
        try:
            for call in list(self._waiting):
                with suppress(call_record.NotAllowed):
                    self._leased.records[call] = await advance(
                        self._store,
                        self._leased.key,
                        call,
                        lambda found, now: call_record.refuse(found, reason=why, now=now),
                    )
        except BaseException:
            self.is_ending = False
            raise

    async def refuse_if_possible(self, why: str) -> None:
        try:
            await self.refuse(why)
        except StoreUnavailable:  # then it stays pending until the lease is given back or taken, and nothing runs
            logger.error("a call that was stopped is still pending")
        self.is_ending = True
