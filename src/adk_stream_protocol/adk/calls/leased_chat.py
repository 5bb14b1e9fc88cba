"""What this process knows of a chat while it holds the chat's lease. The gate and the run share it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from google.adk.sessions import BaseSessionService, Session
from google.adk.tools import ToolContext

from ...lazy_event import LazyEvent
from ...protocol.call_record import CallKey, CallRecord, ChatKey, State
from ...protocol.chunks import SdkVersion
from ...store.base import Lease, Snapshot
from ..title import title_of
from .call_ids import CallIds
from .live_observer import LiveObserver, WaitObserver
from .outcomes import outer_of

InnerStep = Literal["call", "answer", "result"]


async def _ignore_user_message(_: Session) -> None:
    """For runs that need no notice of it."""


def announce_nothing(_: CallRecord) -> None:
    """For chats whose application does not want to know."""


@dataclass(eq=False)
class LeasedChat:
    """What this process knows of a chat while it holds the chat's lease.

    | About | Attributes |
    |---|---|
    | the lease, and what the store has | `lease`, `records`, `now`, `delivered` |
    | the run | `prepared`, `sdk_version`, `message_id`, `observer`, `live_observer`, `begun`, `sessions`, `given` |
    | what is called | `on_user_message`, `on_asked` |
    | calls and questions | `call_ids`, `unasked`, `questions`, `not_run`, `withdrawn`, `unplaced` |
    | tools that run | `at_work`, `waiting`, `unstored`, `_changed` |
    | how the run ends | `begins_nothing`, `is_lost`, `leaves_calls` |
    """

    lease: Lease
    records: dict[CallKey, CallRecord]
    """The records of the chat's calls. Only the holder of the lease starts and ends calls, so they are up to date,
    except for answers that other workers receive."""
    now: float
    """The store's clock when the lease was taken."""
    delivered: set[CallKey] = field(default_factory=set[CallKey])
    """Calls whose outcome is in the session. The store marks them when the lease is released."""

    prepared: Any = None
    """What the application's `prepare` chose for this run. It is recorded with each call, for the run that goes on with
    the call later."""
    sdk_version: SdkVersion | None = None
    """The version of the client that the run is for. It is recorded with each call, too."""
    message_id: str | None = None
    """The assistant's message that this run writes."""
    observer: WaitObserver | None = None
    """The run in which calls may wait inside ADK."""
    live_observer: LiveObserver | None = None
    """The live run that the gate notifies. None in request mode."""
    sessions: BaseSessionService | None = None
    """Where the chat's session is."""
    given: dict[CallKey, dict[str, str]] = field(default_factory=dict[CallKey, dict[str, str]])
    """What the application has given for requests that wait inside this run. It is recorded nowhere."""
    on_user_message: Callable[[Session], Awaitable[None]] = _ignore_user_message
    """Called with ADK's session before ADK stores the user's message in it."""
    on_asked: Callable[[CallRecord], None] = announce_nothing
    """Called when a call waits for somebody's decision, after it is recorded."""
    begun: Session | None = None
    """ADK's session, if the chat's title is to be made from it when this run ends."""

    call_ids: CallIds = field(default_factory=lambda: CallIds(()))
    unasked: set[CallKey] = field(default_factory=set[CallKey])
    """Calls that are recorded as asked, while ADK has not emitted its question yet."""
    questions: dict[CallKey, CallRecord] = field(default_factory=dict[CallKey, CallRecord])
    """What nodes of workflows ask the user. They ask without a tool, so the gate has not recorded it."""

    not_run: set[CallKey] = field(default_factory=set[CallKey])
    """Calls that everybody was told were not run, since the store was down. Their records may say something else."""

    withdrawn: set[str] = field(default_factory=set[str])
    """Ids of calls that the live model took back. It may do so before the gate has seen the call."""

    unplaced: list[tuple[InnerStep, CallKey]] = field(default_factory=list[tuple[InnerStep, CallKey]])
    """What was told of nested calls, in this order, since ADK stored an event: see `inner_calls.py`."""

    at_work: set[CallKey] = field(default_factory=set[CallKey])
    """Tools that have begun, and have not ended."""
    waiting: dict[CallKey, frozenset[CallKey]] = field(default_factory=dict[CallKey, frozenset[CallKey]])
    """Calls that wait inside ADK for their answers, each with all calls that cannot end before it."""
    unstored: set[CallKey] = field(default_factory=set[CallKey])
    """Tools that have begun, and whose results are not in the session yet."""
    _changed: LazyEvent = field(default_factory=LazyEvent)

    begins_nothing: bool = False
    """No tool may begin any more: this run is about to end."""
    is_lost: bool = False
    """Somebody else has the lease by now."""
    leaves_calls: bool = False
    """Calls that are approved and have not begun are left to the next holder of the lease: this run does not give them
    up."""

    @property
    def key(self) -> ChatKey:
        return self.lease.chat

    @property
    def held(self) -> frozenset[CallKey]:
        """Tools that do nothing but wait for the answer to a call that is made in them."""
        return frozenset(self.waiting).union(*self.waiting.values())

    def waits(self, call: CallKey, above: frozenset[CallKey]) -> None:
        self.waiting[call] = above
        self._changed.set()

    @property
    def turn(self) -> dict[str, Any]:
        """What each call of this run is recorded with, for the run that goes on with it later."""
        return {"prepared": self.prepared, "sdk_version": self.sdk_version}

    async def title(self) -> str | None:
        """The chat's new title; None if this run does not change it."""
        return await title_of(self.begun.events) if self.begun is not None else None

    @classmethod
    def taken(cls, lease: Lease, snapshot: Snapshot) -> "LeasedChat":
        records = {record.call: record for record in snapshot.records}
        return cls(lease, records, snapshot.now, call_ids=CallIds(call.call_id for call in records))

    def known(self) -> Snapshot:
        """For a first attempt to change a record, without reading the store again."""
        return Snapshot(list(self.records.values()), self.now)

    def begin(self, call: CallKey) -> None:
        self.at_work.add(call)
        self.unstored.add(call)

    def end(self, call: CallKey, *, has_result: bool = True) -> None:
        self.at_work.discard(call)
        if not has_result:
            self.unstored.discard(call)
        self._changed.set()

    def note_answers(self, calls: Iterable[CallKey]) -> None:
        """The message goes on with the answers to these nested calls."""
        self.unplaced.extend(("answer", call) for call in calls)

    def lose_calls(self) -> None:
        """The run is over. The outcome of calls that have begun and not ended is unknown."""
        self.at_work.clear()
        self.unstored.clear()
        self._changed.set()
        for call, record in self.records.items():
            if record.state is State.STARTED and record.lease_token == self.lease.token:
                self.records[call] = msgspec.structs.replace(record, state=State.UNKNOWN)

    def store_result(self, call: CallKey) -> None:
        """The call's result is in the session now, or the session has no place for it. Results of calls that were made
        in another one come into the session with that one's."""
        self.unstored.discard(call)
        told = {key for key, found in self.records.items() if outer_of(found) == call.call_id}
        if call in self.records and outer_of(self.records[call]) is None:
            told.add(call)
        self.delivered |= told
        self._changed.set()

    async def until_tools_end(self, longest_s: float) -> None:
        """Wait for the tools that have begun, and then a moment until their results are in the session. That can take
        for ever: ADK stores the results of one message together, and a call that may not begin any more gives none."""
        await self._until(lambda: self.at_work <= self.held, longest_s)
        await self._until(lambda: self.unstored <= self.held, min(longest_s, _STORING_S))

    async def _until(self, is_so: Callable[[], bool], longest_s: float) -> None:
        try:
            async with asyncio.timeout(longest_s):
                while not is_so():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass


_STORING_S = 1


def call_keys(tool_context: ToolContext) -> tuple[ChatKey, CallKey]:
    session = tool_context.session
    chat = ChatKey(session.app_name, session.user_id, session.id)
    return chat, CallKey(tool_context.invocation_id, tool_context.function_call_id or "")
