"""Renews leases in a thread, so that a blocked event loop does not lose them."""

import asyncio
import logging
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from ..store.base import Lease, Store

logger = logging.getLogger(__name__)

SIGN_OF_LIFE_S = 60
"""A loop that gives no sign of life for longer counts as hung, and its leases run out."""
_LOOKS_A_LEASE = 12
_ENDING_S = 2  # a shutdown does not wait longer for a database that does not answer


class LeaseKeeper:
    """Of one bridge. Its methods are called on the bridge's event loop."""

    def __init__(self, store: Store, lease_s: float, on_lost: Callable[[Lease], None]) -> None:
        """`on_lost` is called on the bridge's loop with a lease that another worker has taken, once per renewal."""
        self._store = store
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._kept: set[Lease] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._renewals: _Renewals | None = None
        self._timer: asyncio.TimerHandle | None = None

    def keep(self, lease: Lease) -> None:
        self._loop = asyncio.get_running_loop()
        if self._renewals is None:
            self._renewals = _Renewals(self._store, self._lease_s, _weak_callback(self))
            self._end_with_us = weakref.finalize(self, self._renewals.end)
            self._end_with_us.atexit = False  # the thread is a daemon
        if self._timer is None:
            self._give_sign(self._renewals, self._loop)
        self._renewals.keep(lease)
        self._kept.add(lease)

    def let_go(self, lease: Lease) -> None:
        self._kept.discard(lease)
        if not self._kept and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._renewals is not None:
            self._renewals.let_go(lease)

    async def aclose(self) -> None:
        """Stop renewing. The thread has ended when this returns, unless its store keeps it busy."""
        for lease in list(self._kept):
            self.let_go(lease)
        renewals, self._renewals = self._renewals, None
        if renewals is not None:
            self._end_with_us()
            with suppress(TimeoutError):
                async with asyncio.timeout(_ENDING_S):
                    await asyncio.wrap_future(renewals.has_ended)

    def _give_sign(self, renewals: "_Renewals", loop: asyncio.AbstractEventLoop) -> None:
        renewals.sign_of_life_at = time.monotonic()
        period_s = min(self._lease_s, SIGN_OF_LIFE_S) / 3
        self._timer = loop.call_later(period_s, self._give_sign, renewals, loop)

    def lose(self, lease: Lease) -> None:
        """Called in the thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._on_lost, lease)


def _weak_callback(keeper: LeaseKeeper) -> Callable[[Lease], None]:
    """So that the thread does not keep an unused bridge alive."""
    reference = weakref.ref(keeper)

    def lose(lease: Lease) -> None:
        if (found := reference()) is not None:
            found.lose(lease)

    return lose


class _Renewals:
    """The side of the thread: one task for each lease, on an event loop of its own.

    A thread that is woken takes its turn from the main loop. So it is not woken for each lease: it looks by itself,
    long before a renewal is due, and most leases come and go between two looks.

    | Attributes | |
    |---|---|
    | `_store`, `_own_store`, `_lease_s`, `_on_lost` | how leases are renewed |
    | `_kept`, `sign_of_life_at` | what the main loop says |
    | `_tasks`, `_silent_since` | what the thread knows of it |
    | `_loop`, `_woken`, `_is_asleep`, `_is_over`, `has_ended` | its life |
    """

    def __init__(self, store: Store, lease_s: float, on_lost: Callable[[Lease], None]) -> None:
        self.sign_of_life_at = time.monotonic()
        self._store = store
        self._own_store: Store | None = None
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._kept: dict[Lease, float] = {}  # since when; the main loop writes it
        self._tasks: dict[Lease, asyncio.Task[None]] = {}
        self._silent_since = 0.0
        self._is_over = self._is_asleep = False
        self._woken = asyncio.Event()
        self._loop, self.has_ended = run_in_a_thread(self._run)

    def keep(self, lease: Lease) -> None:
        self._kept[lease] = self._loop.time()
        if self._is_asleep:
            self._wake()

    def let_go(self, lease: Lease) -> None:
        del self._kept[lease]
        if lease in self._tasks:
            self._wake()

    def end(self) -> None:
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: it is over
            self._loop.call_soon_threadsafe(self._woken.set)

    # -- in the thread ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._is_over:
            self._look()
            try:
                async with asyncio.timeout(self._lease_s / _LOOKS_A_LEASE):
                    await self._woken.wait()
            except TimeoutError:
                self._is_asleep = True  # before the look at what is kept: whoever adds to it looks here then
                self._is_asleep = not self._kept and not self._tasks
                if self._is_asleep:
                    await self._woken.wait()
            self._is_asleep = False
            self._woken.clear()
        self._kept.clear()
        self._look()
        if self._own_store is not None and self._own_store is not self._store:
            try:
                await self._own_store.aclose()
            except Exception as error:  # whatever a store raises
                logger.error("the connections of renewals were not closed: %s", type(error).__qualname__)

    def _look(self) -> None:
        kept, now = self._kept.copy(), asyncio.get_running_loop().time()
        for lease in self._tasks.keys() - kept.keys():
            self._tasks.pop(lease).cancel()
        for lease in kept.keys() - self._tasks.keys():
            age_s = now - kept[lease]
            if age_s >= self._lease_s / _LOOKS_A_LEASE:
                self._tasks[lease] = asyncio.create_task(self._keep(lease, age_s), name="adk-stream leases")

    async def _keep(self, lease: Lease, age_s: float) -> None:
        await asyncio.sleep(self._lease_s / 3 - age_s)
        while True:
            if time.monotonic() - self.sign_of_life_at > SIGN_OF_LIFE_S:
                self._note_silence()
            elif not await self._is_ours(lease) and lease in self._kept:
                self._on_lost(lease)
            await asyncio.sleep(self._lease_s / 3)

    def _note_silence(self) -> None:
        if self._silent_since != self.sign_of_life_at:
            self._silent_since = self.sign_of_life_at
            logger.error("the event loop has been blocked for %s s, so leases are not renewed", SIGN_OF_LIFE_S)

    async def _is_ours(self, lease: Lease) -> bool:
        try:
            if self._own_store is None:  # most turns end before that, and cost no connection
                self._own_store = self._store.for_another_loop()
            return await self._own_store.renew(lease, self._lease_s)
        except Exception as error:  # for two more times; then somebody else may take over, and the gate stops us
            logger.error("a lease was not renewed: %s", type(error).__qualname__)
            return True


def run_in_a_thread(
    work: Callable[[], Coroutine[Any, Any, None]],
) -> tuple[asyncio.AbstractEventLoop, Future[None]]:
    """Gives the thread's loop, and what is done when the thread has ended. It is a daemon: no process waits for it."""
    loop, has_ended = asyncio.new_event_loop(), Future[None]()
    has_ended.set_running_or_notify_cancel()  # whoever gives up waiting for it does not cancel it

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(work())
        finally:
            has_ended.set_result(None)

    threading.Thread(target=run, name="adk-stream leases", daemon=True).start()
    return loop, has_ended
