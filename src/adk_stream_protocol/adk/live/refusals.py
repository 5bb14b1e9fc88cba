"""How a live session refuses and withdraws calls: once and at once, or until the store has taken it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ...errors import StoreUnavailable
from ...protocol import live_facts as facts
from ...protocol.call_record import CallKey, State
from ...protocol.live_effects import Why
from ...protocol.live_facts import Fact
from ..calls.delivery import refuse_call, stop_call, withdraw_call
from ..calls.outcomes import ended_response
from ..run import RunContext

logger = logging.getLogger(__name__)

_RETRY_S = 1


class Refusals:
    def __init__(self, context: RunContext, wake: Callable[[], None], report: Callable[[Fact], object]) -> None:
        """`wake`: calls that wait are to look for their answers. `report`: to the table."""
        self._context = context
        self._wake = wake
        self._report = report
        self._work: set[asyncio.Task[None]] = set()

    def refuse(self, call: CallKey, why: Why, *, raises: bool) -> Awaitable[None] | None:
        """Returns what the caller must await, if anything. `raises`: a failure of the store goes to the caller.
        Otherwise it is tried again until the store takes it, or the session ends."""
        if raises:
            return self._refuse(call, why)
        if why is Why.STOPPED:
            return self._stop(call)
        self._begin(lambda: self._refuse(call, why))
        return None

    def _refuse(self, call: CallKey, why: Why) -> Awaitable[None]:
        return refuse_call(self._context.store, self._context.leased.key, call, why)

    async def _stop(self, call: CallKey) -> None:
        try:
            await stop_call(self._context.store, self._context.leased, call)
        except StoreUnavailable:  # then it stays pending, and nothing runs without the record
            logger.error("a call that was stopped is still pending")

    def withdraw(self, call: CallKey) -> None:
        """The model took the call back. If its tool has begun, nothing changes."""
        self._begin(lambda: self._withdraw(call))

    async def _withdraw(self, call: CallKey) -> None:
        leased = self._context.leased
        await withdraw_call(self._context.store, leased, call)
        found = leased.records.get(call)
        if found is not None and found.state is State.WITHDRAWN:
            self._report(facts.WithdrawalRecorded(call, ended_response(found)))

    def _begin(self, write: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(self._until_done(write), name="adk-stream live refusal")
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _until_done(self, write: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await write()
                break
            except StoreUnavailable:
                logger.error("a call was not refused or withdrawn: the store is down")
                await asyncio.sleep(_RETRY_S)
        self._wake()

    def give_up(self) -> None:
        for task in self._work:
            task.cancel()
