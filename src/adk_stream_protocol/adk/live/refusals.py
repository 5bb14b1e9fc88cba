"""How a live session refuses and withdraws calls: once and at once, or until the store has taken it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ...errors import StoreUnavailable
from ...protocol.call_record import CallKey
from ..calls.delivery import refuse_call, withdraw_call
from ..run import RunContext

logger = logging.getLogger(__name__)

_RETRY_S = 1


class Refusals:
    def __init__(self, context: RunContext, wake: Callable[[], None]) -> None:
        """`wake`: calls that wait are to look for their answers."""
        self._context = context
        self._wake = wake
        self._work: set[asyncio.Task[None]] = set()

    def now(self, call: CallKey, reason: str) -> Awaitable[None]:
        """Raises if the store is down."""
        return refuse_call(self._context.store, self._context.leased.key, call, reason)

    async def once(self, call: CallKey, reason: str) -> None:
        try:
            await self.now(call, reason)
        except StoreUnavailable:  # then it stays pending, and nothing runs without the record
            logger.error("a call that was stopped is still pending")

    def at_last(self, call: CallKey, reason: str) -> None:
        """While the call waits, the session does: a store that fails is asked again."""
        self._begin(lambda: self.now(call, reason))

    def withdraw(self, call: CallKey) -> None:
        """The model took the call back. If its tool has begun, nothing changes."""
        self._begin(lambda: withdraw_call(self._context.store, self._context.leased, call))

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
                logger.error("a call is to be refused or withdrawn, and the store is down")
                await asyncio.sleep(_RETRY_S)
        self._wake()

    def give_up(self) -> None:
        for task in self._work:
            task.cancel()
