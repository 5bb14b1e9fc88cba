"""Which chats run in this process, and the leases that tell all others."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from ..adk.calls.gate import ApprovalGate
from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.policy import ApprovalPolicy
from ..adk.run import Run
from ..chunk_log import ChunkLog
from ..errors import Restarting, TooMany
from ..protocol import call_record
from ..protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed, State
from ..store.base import Lease, Step, Store, advance
from .lease_keeper import LeaseKeeper

logger = logging.getLogger(__name__)

Change = tuple[CallRecord, CallRecord]

_NOT_TAKEN_UP = "This call was not run: the server failed before it began."
_TAKEN_BACK = "This call was not run: what the user had said was taken back."
_NOT_ASKED = "the run ended before anybody was asked"
_TOO_MANY_RUNS = "Too many of your chats are answering. Wait for the end of one, or stop it, then send again."
_STOPPING_S = 5  # what it may take to end a run whose tools have ended
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.05, 1.0  # at a chat of another worker's, of whose end nobody tells us

_NO_MORE = "what the user had said was taken back"


class ChatLeases:
    """One run a chat: here by a dictionary, everywhere by the store's lease."""

    def __init__(self, store: Store, gate: ApprovalGate, policy: ApprovalPolicy, lease_s: float) -> None:
        self._store = store
        self._lease_s = lease_s
        self._policy = policy
        self._gate = gate
        self._runs: dict[ChatKey, Run | None] = {}  # None: a turn is about to start
        self._leases: dict[ChatKey, LeasedChat] = {}
        self._free: dict[ChatKey, asyncio.Event] = {}
        self._starting: dict[ChatKey, asyncio.Event] = {}
        self._queues: dict[ChatKey, tuple[asyncio.Lock, int]] = {}
        self._taken_over: Counter[ChatKey] = Counter()
        self._is_draining = False
        self._losing: dict[Lease, asyncio.Task[None]] = {}
        self._keeper = LeaseKeeper(store, lease_s, self._lose)

    def __contains__(self, chat: ChatKey) -> bool:
        return chat in self._runs

    def __iter__(self) -> Iterator[Run]:
        return iter([run for run in self._runs.values() if run is not None])

    def get(self, chat: ChatKey) -> Run | None:
        return self._runs.get(chat)

    async def begun(self, chat: ChatKey, within_s: float) -> Run | None:
        """What runs in this chat here. A turn that is about to start gets a moment to do so."""
        starting = self._starting.get(chat)
        if starting is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(starting.wait(), within_s)
        return self._runs.get(chat)

    def put(self, chat: ChatKey, run: Run) -> None:
        self._runs[chat] = run
        self._has_started(chat)

    def _has_started(self, chat: ChatKey) -> None:
        if (starting := self._starting.pop(chat, None)) is not None:
            starting.set()

    # -- taking a chat ------------------------------------------------------------------------------------------------

    def require_room(self, chat: ChatKey, max_runs_per_user: int) -> None:
        """For whoever is about to `begin` something new. What goes on with something begun is not refused."""
        running = sum(other.user_id == chat.user_id for other in self._runs)
        if running >= max_runs_per_user and chat not in self._runs:
            raise TooMany(_TOO_MANY_RUNS)

    async def begin(self, chat: ChatKey, changes: Sequence[Change] = ()) -> LeasedChat | None:
        """The right to run in this chat, if nobody has it. `changes` are written in any case, except those that
        somebody has overtaken. What a lost run has left behind is put in order first."""
        if self._is_draining:
            raise Restarting
        if chat in self._runs:
            for old, new in changes:
                await self._store.compare_and_set(old, new)
            return None
        self._runs[chat] = None  # ours from here on, also while we wait for the store
        self._free[chat], self._starting[chat] = asyncio.Event(), asyncio.Event()
        lease: Lease | None = None
        try:
            lease, snapshot = await self._store.acquire(chat, self._lease_s, changes)
            if lease is None:
                self._set_free(chat)
                return None
            leased = LeasedChat.taken(lease, snapshot)
            await self._put_in_order(leased)
            if self._is_draining:  # meanwhile
                raise Restarting
            self._keeper.keep(lease)
        except BaseException as error:
            self._set_free(chat)
            if lease is not None:
                await self._release(lease)
            if isinstance(error, NotAllowed):  # the lease is gone already: it took us too long
                return None
            raise
        self._leases[chat] = leased
        self._gate.begin_run(leased)
        return leased

    async def _put_in_order(self, leased: LeasedChat) -> None:
        """Calls of a run that was lost, and approvals that nobody has acted on for too long."""
        token, recover_s = leased.lease.token, self._policy.recover_s

        def lose(found: CallRecord, _: float) -> CallRecord:
            return call_record.lose_run(found, living_run=token)

        def expire(found: CallRecord, now: float) -> CallRecord:
            return call_record.expire_unclaimed(found, now=now, recover_s=recover_s)

        for call, found in list(leased.records.items()):
            if expire(lose(found, leased.now), leased.now) is not found:
                leased.records[call] = await advance(
                    self._store, leased.key, call, lose, expire, lease=leased.lease, known=leased.known()
                )

    @asynccontextmanager
    async def queue(self, chat: ChatKey) -> AsyncGenerator[None]:
        """One at a time waits for a chat; the others wait for it. However many there are, the store is asked by one."""
        lock, count = self._queues.get(chat, (asyncio.Lock(), 0))
        self._queues[chat] = lock, count + 1
        try:
            async with lock:
                yield
        finally:
            lock, count = self._queues.pop(chat)
            if count > 1:
                self._queues[chat] = lock, count - 1

    async def wait_for(self, chat: ChatKey, calls: frozenset[CallKey]) -> LeasedChat | ChunkLog:
        """The lease of this chat as soon as it is free; or the segment of a run that was started with answers to these
        calls."""
        look_s = _FIRST_LOOK_S
        async with self.queue(chat):
            while True:
                run = self._runs.get(chat)
                log = run.log if run is not None and calls <= run.answered else None
                if log is not None and not log.is_closed:
                    return log
                if chat in self._runs:
                    await self._free[chat].wait()
                    continue
                leased = await self.begin(chat) if chat not in self._taken_over else None
                if leased is not None:
                    return leased
                if chat not in self._runs:  # another worker has it, or it is about to be taken over
                    await asyncio.sleep(look_s)
                    look_s = min(look_s * 2, _LONGEST_LOOK_S)

    async def take_over(self, chat: ChatKey, patience_s: float) -> LeasedChat | None:
        """The right to run in this chat, after the end of whatever runs in it here. None if another worker has it, and
        does not let go for a while."""
        give_up_at = asyncio.get_running_loop().time() + patience_s
        self._taken_over[chat] += 1
        try:
            while True:
                run = self._runs.get(chat)
                if run is not None:
                    await run.stop_after_tools()
                leased = await self.begin(chat)
                if leased is not None:
                    return leased
                if chat not in self._runs and asyncio.get_running_loop().time() >= give_up_at:
                    return None
                await asyncio.sleep(_FIRST_LOOK_S)
        finally:
            self._taken_over -= Counter([chat])

    # -- giving it back -----------------------------------------------------------------------------------------------

    async def end(self, leased: LeasedChat) -> None:
        """The next turn may come. May be called twice, and never raises."""
        if self._leases.get(leased.key) is not leased:
            return
        del self._leases[leased.key]
        self._keeper.let_go(leased.lease)
        self._gate.end_run(leased.lease)
        try:
            await self._release(leased.lease, leased.delivered, await leased.title())
        finally:
            self._set_free(leased.key)

    async def end_run(self, run: Run) -> None:
        """A request run is over. Calls that it was to start are given up, unless it leaves them to the next run."""
        leased = run.leased
        if self._leases.get(leased.key) is leased:
            await self._record_questions(leased)
            if not leased.leaves_calls:
                await self.give_up(leased, run.answered, _NOT_TAKEN_UP)
                await self._refuse_unasked(leased)
        await self.end(leased)

    async def _record_questions(self, leased: LeasedChat) -> None:
        """So that a list knows who is waited for. An answer does without."""
        about: dict[str, Any] = {"message_id": leased.message_id, "prepared": leased.prepared, "delivered": False}
        for call, question in leased.questions.items():
            if call not in leased.records:  # a tool has asked otherwise, and the gate has written it down
                leased.records[call] = msgspec.structs.replace(question, **about)
                try:
                    await self._store.add(leased.records[call])
                except Exception as error:  # whatever a store raises
                    logger.error("question %s was not recorded: %s", call.call_id, type(error).__qualname__)

    async def _release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        try:
            await self._store.release(lease, delivered, title)
        except Exception as error:  # whatever a store raises
            logger.error("a lease was not released, and runs out: %s", type(error).__qualname__)

    def _set_free(self, chat: ChatKey) -> None:
        del self._runs[chat]
        self._free.pop(chat).set()
        self._has_started(chat)

    async def give_up(self, leased: LeasedChat, calls: Sequence[CallKey] | frozenset[CallKey], text: str) -> None:
        """Approved calls that nobody will begin: their client is told that they failed."""
        result = {"response": {"error": text}, "state": {}}
        for call in calls:
            found = leased.records.get(call)
            if found is None or found.executor != "server" or found.state not in (State.APPROVED, State.CLAIMED):
                continue
            await self._settle(
                leased,
                call,
                lambda found, _: call_record.lose_run(found, living_run=None),
                lambda found, _: call_record.give_up(found, result=result),
            )

    async def take_back(self, leased: LeasedChat, made: Collection[CallKey]) -> None:
        """Calls that a rewind took back are not among those of the session any more: nobody goes on with them, nobody
        is asked about them, and the session is owed nothing."""

        def refuse(found: CallRecord, now: float) -> CallRecord:
            return call_record.refuse(found, reason=_NO_MORE, now=now)

        gone = [call for call, found in leased.records.items() if call not in made and found.delivered is not True]
        await self.give_up(leased, gone, _TAKEN_BACK)
        for call in gone:
            if refuse(leased.records[call], leased.now) is not leased.records[call]:
                await self._settle(leased, call, refuse)
        leased.delivered |= {call for call in gone if leased.records[call].is_final}

    async def _refuse_unasked(self, leased: LeasedChat) -> None:
        def deny(found: CallRecord, now: float) -> CallRecord:
            return call_record.decide(found, by=leased.key.user_id, approved=False, now=now, reason=_NOT_ASKED)

        for call in leased.unasked:
            await self._settle(leased, call, deny)

    async def _settle(self, leased: LeasedChat, call: CallKey, *moves: Step) -> None:
        try:
            leased.records[call] = await advance(
                self._store, leased.key, call, *moves, lease=leased.lease, known=leased.known()
            )
        except NotAllowed:
            pass  # somebody was faster
        except Exception as error:  # whatever a store raises
            logger.error("call %s was not settled: %s", call.call_id, type(error).__qualname__)

    # -- losing it ----------------------------------------------------------------------------------------------------

    def _lose(self, lease: Lease) -> None:
        leased, run = self._leases.get(lease.chat), self._runs.get(lease.chat)
        if run is not None and leased is not None and leased.lease == lease and lease not in self._losing:
            logger.error("the run of chat %s lost its lease", lease.chat.chat_id)
            self._losing[lease] = asyncio.create_task(self._lose_run(run, lease), name="adk-stream lost run")

    async def _lose_run(self, run: Run, lease: Lease) -> None:
        with suppress(Exception):
            await run.lose_lease()
        del self._losing[lease]

    async def drain(self, longest_s: float) -> None:
        """End what runs or is about to, without taking anything from whoever comes next. Nothing begins any more."""
        self._is_draining = True
        for leased in self._leases.values():
            leased.begins_nothing = True
        drained: set[ChatKey] = set()  # once each: also one that fails at it
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s + _STOPPING_S):
                while True:
                    begun = {chat: run for chat, run in self._runs.items() if run and chat not in drained}
                    if not begun and not self._starting:
                        break
                    drained |= begun.keys()
                    await asyncio.gather(*(run.drain() for run in begun.values()), return_exceptions=True)
                    for starting in list(self._starting.values()):
                        await starting.wait()
        await self._keeper.aclose()
