"""Which chats this process runs. One run per chat: in this process by a dictionary, among all workers by the store's
leases."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from ..adk.calls.gate import ApprovalGate
from ..adk.calls.leased_chat import LeasedChat, announce_nothing
from ..adk.calls.policy import ApprovalPolicy
from ..adk.run import Run
from ..chunk_log import ChunkLog
from ..errors import Restarting, TooMany
from ..lazy_event import LazyEvent
from ..protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed
from ..store.base import Lease, Snapshot, Store
from .lease_keeper import LeaseKeeper
from .leased_calls import LeasedCalls

logger = logging.getLogger(__name__)

Change = tuple[CallRecord, CallRecord]

_TOO_MANY_RUNS = "Too many of your chats are answering. Wait for the end of one, or stop it, then send again."
_STOPPING_S = 5  # what it may take to end a run whose tools have ended
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.05, 1.0  # between looks at a chat that another worker runs


@dataclass(eq=False)
class _Place:
    """One chat whose lease this process has, or is about to take."""

    leased: LeasedChat | None = None
    """None while the lease is being taken or given back."""
    run: Run | None = None
    """None before the run has started."""
    has_started: LazyEvent = field(default_factory=LazyEvent)
    """Set when the run has started, or will not start."""
    is_free: LazyEvent = field(default_factory=LazyEvent)


class ChatLeases:
    """
    | About | Attributes |
    |---|---|
    | what it was built from | `_store`, `_gate`, `_lease_s`, `_on_asked` |
    | the chats of this process | `_places`, `_queues`, `_taken_over` |
    | their leases and calls | `_keeper`, `_losing`, `calls` |
    | the end | `_is_draining`, `_left` |
    """

    def __init__(
        self,
        store: Store,
        gate: ApprovalGate,
        policy: ApprovalPolicy,
        lease_s: float,
        on_asked: Callable[[CallRecord], None] = announce_nothing,
    ) -> None:
        """`on_asked`: called when a call waits for somebody's decision."""
        self._on_asked = on_asked
        self.calls = LeasedCalls(store, policy.recover_s)
        self._store = store
        self._lease_s = lease_s
        self._gate = gate
        self._places: dict[ChatKey, _Place] = {}
        self._queues: dict[ChatKey, tuple[asyncio.Lock, int]] = {}
        self._taken_over: Counter[ChatKey] = Counter()
        self._is_draining = False
        self._left: set[ChatKey] | None = set()  # None: this process has ended, and leaves chats at once
        self._losing: dict[Lease, asyncio.Task[None]] = {}
        self._keeper = LeaseKeeper(store, lease_s, self._lose)

    def __contains__(self, chat: ChatKey) -> bool:
        return chat in self._places

    def __iter__(self) -> Iterator[Run]:
        return iter([place.run for place in self._places.values() if place.run is not None])

    def get(self, chat: ChatKey) -> Run | None:
        """What runs in this chat, in this process."""
        place = self._places.get(chat)
        return place.run if place is not None else None

    async def wait_for_start(self, chat: ChatKey, within_s: float) -> Run | None:
        """As `get`, but a run that is about to start gets a moment to do so."""
        place = self._places.get(chat)
        if place is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await place.has_started.wait()
        return self.get(chat)

    def put(self, chat: ChatKey, run: Run) -> None:
        self._places[chat].run = run
        self._places[chat].has_started.set()

    # -- taking a chat ------------------------------------------------------------------------------------------------

    def require_room(self, chat: ChatKey, max_runs_per_user: int) -> None:
        """Before something new begins. What continues something begun is not refused."""
        running = sum(other.user_id == chat.user_id for other in self._places)
        if running >= max_runs_per_user and chat not in self._places:
            raise TooMany(_TOO_MANY_RUNS)

    async def begin(self, chat: ChatKey, changes: Sequence[Change] = ()) -> LeasedChat | None:
        """The lease of this chat, if it is free. `changes` are written in any case, except those that somebody has
        overtaken. Calls of a lost run are cleaned up first."""
        found = await self._begin(chat, changes)
        for _, changed in changes:
            self._on_asked(changed)
        return found if isinstance(found, LeasedChat) else None

    async def _begin(self, chat: ChatKey, changes: Sequence[Change] = ()) -> LeasedChat | Snapshot | None:
        """As `begin`. If another worker has the lease: what the store has."""
        if self._is_draining:
            raise Restarting
        if chat in self._places:
            for old, new in changes:
                await self._store.compare_and_set(old, new)
            return None
        place = self._places[chat] = _Place()  # before the store is asked: nobody else here may ask meanwhile
        lease: Lease | None = None
        try:
            lease, snapshot = await self._store.acquire(chat, self._lease_s, changes)
            if lease is None:
                self._set_free(chat)
                return snapshot
            leased = LeasedChat.taken(lease, snapshot)
            leased.on_asked = self._on_asked
            await self.calls.clean_up_lost(leased)
            if self._is_draining:  # meanwhile
                raise Restarting
            self._keeper.keep(lease)
        except BaseException as error:
            self._set_free(chat)
            if lease is not None:
                await self._release(lease)
            if isinstance(error, NotAllowed):  # the lease has run out: cleaning up took too long
                return None
            raise
        place.leased = leased
        self._gate.begin_run(leased)
        return leased

    @asynccontextmanager
    async def queue(self, chat: ChatKey) -> AsyncGenerator[None]:
        """One request at a time waits for a chat, and the others wait for that one. So only one asks the store."""
        lock, count = self._queues.get(chat, (asyncio.Lock(), 0))
        self._queues[chat] = lock, count + 1
        try:
            async with lock:
                yield
        finally:
            lock, count = self._queues.pop(chat)
            if count > 1:
                self._queues[chat] = lock, count - 1

    async def wait_for(
        self,
        chat: ChatKey,
        calls: frozenset[CallKey],
        *,
        makes_room: bool = True,
        is_done: Callable[[Sequence[CallRecord]], Awaitable[bool]] | None = None,
    ) -> LeasedChat | ChunkLog | None:
        """The lease of this chat as soon as it is free; or the segment of a run that was started with answers to these
        calls. `makes_room`: a live session that only waits for its user ends for that. `is_done`: whether whoever has
        the lease has left nothing to do, by the chat's records. Then this is None."""
        look_s = _FIRST_LOOK_S
        async with self.queue(chat):
            while True:
                run = self.get(chat)
                log = run.log if run is not None and calls <= run.answered else None
                if log is not None and not log.is_closed:
                    return log
                if (place := self._places.get(chat)) is not None:
                    leased = place.leased
                    if is_done is not None and leased is not None and await is_done([*leased.records.values()]):
                        return None
                    if run is not None and makes_room:  # a live session may have begun since
                        await run.end_when_idle()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LONGEST_LOOK_S):
                            await place.is_free.wait()
                    continue
                found = await self._begin(chat) if chat not in self._taken_over else None
                if isinstance(found, LeasedChat):
                    return found
                if found is not None and is_done is not None and await is_done(found.records):
                    return None
                if chat not in self._places:  # another worker has the lease, or it is about to be taken over
                    await asyncio.sleep(look_s)
                    look_s = min(look_s * 2, _LONGEST_LOOK_S)

    async def take_over(self, chat: ChatKey, patience_s: float) -> LeasedChat | None:
        """The lease of this chat, after the end of what runs in it here. None if another worker does not give it back
        in time."""
        give_up_at = asyncio.get_running_loop().time() + patience_s
        self._taken_over[chat] += 1
        try:
            while True:
                run = self.get(chat)
                if run is not None:
                    await run.stop_after_tools()
                leased = await self.begin(chat)
                if leased is not None:
                    return leased
                if chat not in self._places and asyncio.get_running_loop().time() >= give_up_at:
                    return None
                await asyncio.sleep(_FIRST_LOOK_S)
        finally:
            self._taken_over -= Counter([chat])

    # -- giving it back -----------------------------------------------------------------------------------------------

    async def end(self, leased: LeasedChat) -> None:
        """Give the lease back: the next turn may come. May be called twice, and never raises."""
        place = self._place_of(leased)
        if place is None:
            return
        place.leased = None
        self._keeper.let_go(leased.lease)
        self._gate.end_run(leased.lease)
        try:
            await self.calls.end_not_run(leased)
            await self._release(leased.lease, leased.delivered, await leased.title())
        finally:
            self._set_free(leased.key)

    async def end_run(self, run: Run) -> None:
        """As `end`, for a request run: calls that it was to start are settled first."""
        if self._place_of(run.leased) is not None:
            await self.calls.end_run(run.leased, run.answered)
        await self.end(run.leased)

    def _place_of(self, leased: LeasedChat) -> _Place | None:
        place = self._places.get(leased.key)
        return place if place is not None and place.leased is leased else None

    async def _release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        try:
            await self._store.release(lease, delivered, title)
        except Exception as error:  # whatever a store raises
            logger.error("a lease was not released, and runs out: %s", type(error).__qualname__)

    def _set_free(self, chat: ChatKey) -> None:
        place = self._places.pop(chat)
        place.is_free.set()
        place.has_started.set()

    # -- losing it ----------------------------------------------------------------------------------------------------

    def _lose(self, lease: Lease) -> None:
        place = self._places.get(lease.chat)
        if place is None or place.run is None or place.leased is None:
            return
        if place.leased.lease == lease and lease not in self._losing:
            logger.error("the run of chat %s lost its lease", lease.chat.chat_id)
            self._losing[lease] = asyncio.create_task(self._lose_run(place.run, lease), name="adk-stream lost run")

    async def _lose_run(self, run: Run, lease: Lease) -> None:
        with suppress(Exception):
            await run.lose_lease()
        del self._losing[lease]

    async def drain(self, longest_s: float) -> None:
        """End what runs or is about to. Nothing starts any more, and nothing is taken from the next process."""
        self._is_draining = True
        for place in self._places.values():
            if place.leased is not None:
                place.leased.begins_nothing = True
        drained: set[ChatKey] = set()  # each once, also one whose `drain` fails
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s + _STOPPING_S):
                while True:
                    places = {chat: place for chat, place in self._places.items() if chat not in drained}
                    running = {chat: place.run for chat, place in places.items() if place.run is not None}
                    starting = [place for place in self._places.values() if not place.has_started.is_set()]
                    if not running and not starting:
                        break
                    drained |= running.keys()
                    await asyncio.gather(*(run.drain() for run in running.values()), return_exceptions=True)
                    for place in starting:
                        await place.has_started.wait()
        await self._keeper.aclose()
        left, self._left = self._left, None
        for chat in left or ():
            await self.leave(chat)

    async def leave_to_next(self, waiting: Mapping[tuple[ChatKey, CallKey], "asyncio.Task[None]"]) -> None:
        """Cancel what waits for these chats: the next process goes on with it."""
        tasks = dict(waiting)
        for (chat, _), task in tasks.items():
            task.cancel()
            await self.leave(chat)
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def leave(self, chat: ChatKey) -> None:
        """This process ends, and there is something in this chat to go on with. A lease that has expired makes another
        process look at the chat."""
        if self._left is not None:
            self._left.add(chat)
            return
        try:
            await self._store.acquire(chat, 0)
        except Exception as error:  # whatever a store raises
            logger.error(
                "chat %s continues only with the user's next message: %s",
                chat.chat_id,
                type(error).__qualname__,
            )
