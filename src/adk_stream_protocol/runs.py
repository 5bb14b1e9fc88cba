"""Which chats run in this process, and the leases that tell all others."""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

from .adk.gate import ApprovalGate
from .adk.live_run import LiveRun
from .adk.request_run import RequestRun
from .errors import StoreUnavailable
from .protocol import approvals
from .protocol.approvals import Approval, CallKey, ChatKey, NotAllowed
from .store.base import Lease, Snapshot, Store, advance

logger = logging.getLogger(__name__)


Run = RequestRun | LiveRun


class Held(NamedTuple):
    """A chat in which we may run, and what is recorded about its calls."""

    lease: Lease
    snapshot: Snapshot

    @property
    def approvals(self) -> dict[CallKey, Approval]:
        return {approval.call: approval for approval in self.snapshot.approvals}


class ChatRuns:
    """One run a chat: here by a dictionary, everywhere by the store's lease."""

    def __init__(self, store: Store, gate: ApprovalGate, lease_s: float) -> None:
        self._store = store
        self._lease_s = lease_s
        self._gate = gate
        self._runs: dict[ChatKey, Run | None] = {}  # None: a turn is about to start
        self._leases: dict[ChatKey, Lease] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    def __contains__(self, chat: ChatKey) -> bool:
        return chat in self._runs

    def __iter__(self) -> Iterator[Run]:
        return iter([run for run in self._runs.values() if run is not None])

    def get(self, chat: ChatKey) -> Run | None:
        return self._runs.get(chat)

    async def begin(self, chat: ChatKey) -> Held | None:
        """The right to run in this chat, if nobody has it. What a lost run has left behind is put in order first."""
        if chat in self._runs:
            return None
        self._runs[chat] = None  # ours from here on, also while we wait for the store
        lease: Lease | None = None
        try:
            lease = await self._store.acquire(chat, self._lease_s)
            if lease is None:
                del self._runs[chat]
                return None
            snapshot = await self._store.read(chat)
            if lost := _lost_calls(snapshot, lease):
                for found in lost:
                    await self._lose_run(found, lease)
                snapshot = await self._store.read(chat)
                if _lost_calls(snapshot, lease):  # so is our lease by now: it took us too long
                    del self._runs[chat]
                    return None
        except BaseException:
            del self._runs[chat]
            if lease is not None:
                with suppress(StoreUnavailable):
                    await self._store.release(lease)
            raise
        self._leases[chat] = lease
        self._gate.begin_run(lease)
        self._renew_later()
        return Held(lease, snapshot)

    async def _lose_run(self, approval: Approval, lease: Lease) -> None:
        def lose(found: Approval, _: float) -> Approval:
            return approvals.lose_run(found, living_run=lease.token)

        with suppress(NotAllowed):
            await advance(self._store, approval.chat, approval.call, lose, lease)

    def put(self, chat: ChatKey, run: Run) -> None:
        self._runs[chat] = run

    async def end(self, lease: Lease) -> None:
        """The next turn may come. May be called twice."""
        if self._leases.get(lease.chat) is not lease:
            return
        del self._leases[lease.chat]
        if not self._leases and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._gate.end_run(lease)
        try:
            await self._store.release(lease)
        except StoreUnavailable:
            logger.error("a lease was not released; it runs out in %s s", self._lease_s)
        finally:
            del self._runs[lease.chat]

    def _renew_later(self) -> None:
        if self._timer is None and self._leases:
            self._timer = asyncio.get_running_loop().call_later(self._lease_s / 3, self._renew_now)

    def _renew_now(self) -> None:
        self._renewing = asyncio.create_task(self._renew_leases(), name="adk-stream leases")

    async def _renew_leases(self) -> None:
        await asyncio.gather(*(self._renew(lease) for lease in list(self._leases.values())))
        self._timer = None
        self._renew_later()

    async def _renew(self, lease: Lease) -> None:
        try:
            is_ours = await self._store.renew(lease, self._lease_s)
        except StoreUnavailable:
            return  # for two more times; then somebody else may take over, and the gate will not let us run tools
        run = self._runs.get(lease.chat)
        if not is_ours and run is not None:
            logger.error("the run of chat %s lost its lease", lease.chat.chat_id)
            await run.stop()

    async def give_up(self, lease: Lease, calls: Collection[CallKey]) -> None:
        """Of the calls that a run was to take up, those that it did not: its client has been told that they failed."""
        result = {"response": {"error": _NOT_TAKEN_UP}, "state": {}}
        try:
            for call in calls:
                with suppress(NotAllowed):
                    await advance(
                        self._store,
                        lease.chat,
                        call,
                        lambda found, _: approvals.lose_run(found, living_run=None),
                        lease,
                    )
                    await advance(
                        self._store, lease.chat, call, lambda found, _: approvals.give_up(found, result=result), lease
                    )
        except StoreUnavailable:
            logger.error("calls that were not taken up are still approved")

    async def stop_all(self) -> None:
        await asyncio.gather(*(run.stop() for run in self), return_exceptions=True)

    async def wait_for(self, chat: ChatKey, calls: frozenset[CallKey], longest_s: float) -> Held | RequestRun | None:
        """The right to run in this chat, as soon as it is free; or the run that is answering just these calls."""
        give_up_at = asyncio.get_running_loop().time() + longest_s
        while asyncio.get_running_loop().time() < give_up_at:
            run = self._runs.get(chat)
            if isinstance(run, RequestRun) and calls <= run.answered and not run.log.is_closed:
                return run
            held = await self.begin(chat)
            if held is not None:
                return held
            await _at_most(_POLL_S, run.has_ended.wait() if run is not None else asyncio.sleep(_POLL_S))
        return None


def _lost_calls(snapshot: Snapshot, lease: Lease) -> list[Approval]:
    """Those that a run holds which is not there any more."""
    return [found for found in snapshot.approvals if approvals.lose_run(found, living_run=lease.token) is not found]


_NOT_TAKEN_UP = "This call was not run: the server failed before it began."
_POLL_S = 0.05  # for runs of other workers, of whose end nobody tells us


async def _at_most(seconds: float, work: Awaitable[object]) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)
