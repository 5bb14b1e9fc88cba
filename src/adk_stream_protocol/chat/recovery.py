"""Continues chats whose worker was lost."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence

from ..adk.calls.session_calls import SessionCall
from ..adk.chats import Chats
from ..protocol.call_record import CallKey
from ..store.base import Store
from .announcer import Announcer
from .unasked_turns import UnaskedTurns

logger = logging.getLogger(__name__)

_ATTEMPTS = 2  # per call: what ADK cannot continue then (its tool was renamed, say), it never will


class Recovery:
    """Looks for lost runs again and again. Approved calls that were not started are run; started ones are unknown."""

    def __init__(
        self, store: Store, unasked: UnaskedTurns, chats: Chats, announcer: Announcer, period_s: float
    ) -> None:
        self._announcer = announcer
        self._store = store
        self._unasked = unasked
        self._chats = chats
        self._period_s = period_s
        self._attempts: Counter[CallKey] = Counter()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._look_for_ever(), name="adk-stream recovery")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look_for_ever(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # whatever a store raises
                logger.error("lost runs were not looked for: %s", type(error).__qualname__)
            await asyncio.sleep(self._period_s)

    async def look(self) -> None:
        await self._announcer.catch_up(self._period_s)
        for key in await self._store.abandoned(self._period_s):
            if key in self._chats:
                try:
                    await self._unasked.continue_lost(self._chats.open(key.user_id, key.chat_id), self._choose)
                except Exception as error:  # the other chats are continued all the same
                    logger.error("a lost run was not taken over: %s", type(error).__qualname__)

    def _choose(self, undelivered: Sequence[SessionCall]) -> SessionCall | None:
        lost = next((call for call in undelivered if self._attempts[call.key] < _ATTEMPTS), None)
        if lost is not None:
            self._attempts[lost.key] += 1
        return lost
