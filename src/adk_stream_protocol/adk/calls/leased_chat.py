"""What this process knows of a chat while it holds its lease: the one place for it, for the gate and for the run."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from google.adk.sessions import Session
from google.adk.tools import ToolContext

from ...protocol.call_record import CallKey, CallRecord, ChatKey, State
from ...store.base import Lease, Snapshot
from ..title import title_of
from .call_ids import CallIds
from .live_observer import LiveObserver


async def _take(_: Session) -> None:
    """Nobody minds what the user says."""


@dataclass(eq=False)
class LeasedChat:
    lease: Lease
    records: dict[CallKey, CallRecord]
    """What is recorded of the chat's calls. Only the holder of the lease starts and ends them, so it is up to date but
    for answers that come in elsewhere."""
    now: float
    """The store's clock when the lease was taken."""
    prepared: Any = None
    """What the application chose for this run, for whoever has to go on with one of its calls."""
    message_id: str | None = None
    live_observer: LiveObserver | None = None
    delivered: set[CallKey] = field(default_factory=set[CallKey])
    """Calls whose outcome stands in the session. The store learns it when the lease is given back."""
    on_user_message: Callable[[Session], Awaitable[None]] = _take
    """Called with ADK's session before the user's words are put into it."""
    begun: Session | None = None
    """ADK's session, in which the words of this run are the first."""
    questions: dict[CallKey, CallRecord] = field(default_factory=dict[CallKey, CallRecord])
    """What nodes of workflows ask the user. No tool does, so that nobody has written it down."""
    call_ids: CallIds = field(default_factory=lambda: CallIds(()))
    unasked: set[CallKey] = field(default_factory=set[CallKey])
    """Calls that are recorded as asked, while ADK's question has not come out yet."""
    at_work: set[CallKey] = field(default_factory=set[CallKey])
    """Tools that have begun."""
    unstored: set[CallKey] = field(default_factory=set[CallKey])
    """Tools that have begun, and whose results the session does not have yet."""
    begins_nothing: bool = False
    """No tool may begin any more: this run is about to end."""
    is_lost: bool = False
    """Somebody else has the lease by now."""
    leaves_calls: bool = False
    """What is approved and not begun is for the next holder of the chat: this one gives none of it up."""
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> ChatKey:
        return self.lease.chat

    async def title(self) -> str | None:
        """What the chat is called from now on; None if this run changes nothing about it."""
        return await title_of(self.begun.events) if self.begun is not None else None

    @classmethod
    def taken(cls, lease: Lease, snapshot: Snapshot) -> "LeasedChat":
        records = {record.call: record for record in snapshot.records}
        return cls(lease, records, snapshot.now, call_ids=CallIds(call.call_id for call in records))

    def known(self) -> Snapshot:
        """For a first attempt without another look into the store."""
        return Snapshot(list(self.records.values()), self.now)

    def begin(self, call: CallKey) -> None:
        self.at_work.add(call)
        self.unstored.add(call)

    def end(self, call: CallKey, *, has_result: bool = True) -> None:
        self.at_work.discard(call)
        if not has_result:
            self.unstored.discard(call)
        self._idle.set()

    def lose_calls(self) -> None:
        """The run is over. What it has begun and not ended is unknown to everybody."""
        self.at_work.clear()
        self.unstored.clear()
        self._idle.set()
        for call, record in self.records.items():
            if record.state is State.STARTED and record.lease_token == self.lease.token:
                self.records[call] = msgspec.structs.replace(record, state=State.UNKNOWN)

    def store_result(self, call: CallKey) -> None:
        """The session has the result."""
        self.unstored.discard(call)
        if call in self.records:
            self.delivered.add(call)
        self._idle.set()

    async def until_tools_end(self, longest_s: float) -> None:
        """Wait for the tools that have begun, and a moment for the session to get their results. A call that may not
        begin any more holds back the results of the calls beside it."""
        await self._until(lambda: not self.at_work, longest_s)
        await self._until(lambda: not self.unstored, min(longest_s, _STORING_S))

    async def _until(self, is_so: Callable[[], bool], longest_s: float) -> None:
        try:
            async with asyncio.timeout(longest_s):
                while not is_so():
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            pass


_STORING_S = 1


def call_keys(tool_context: ToolContext) -> tuple[ChatKey, CallKey]:
    session = tool_context.session
    chat = ChatKey(session.app_name, session.user_id, session.id)
    return chat, CallKey(tool_context.invocation_id, tool_context.function_call_id or "")
