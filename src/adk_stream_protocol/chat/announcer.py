"""Notifies the application of calls that wait for somebody's decision: `ChatBridge(on_waiting=...)`.

That happens after the call is recorded, and at least once for each link of a chain. If a worker is lost before it has
notified the application, another worker does it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..adk.translate.approval_card import card_of
from ..protocol.approval_chain import turn_of
from ..protocol.call_record import CallKey, CallRecord, ChatKey
from ..protocol.digest import shown_arguments
from ..store.base import Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WaitingCall:
    """A call that waits for somebody's decision."""

    id: str
    """For `POST {prefix}/approvals/{id}`."""
    chat: ChatKey
    """With the user whose agent makes the call."""
    tool: str
    arguments: Mapping[str, Any]
    approvers: tuple[str, ...]
    """Who may decide now: user ids, and groups as `group:name`."""
    link: int
    """Which link of the chain, from 0 on."""
    card: Mapping[str, Any]
    """What they read, as `data-adk-approval` has it."""
    digest: str
    deadline: float | None


OnWaiting = Callable[[WaitingCall], Awaitable[None]]


class Announcer:
    def __init__(self, store: Store, app_name: str, on_waiting: OnWaiting | None) -> None:
        self._store = store
        self._app_name = app_name
        self._on_waiting = on_waiting
        self._tasks: dict[tuple[ChatKey, CallKey, int], asyncio.Task[None]] = {}

    def announce(self, record: CallRecord) -> None:
        """Notify the application, if it wants to know. Nobody waits for it: it may take its time, or hang."""
        place = record.chat, record.call, record.version
        if self._on_waiting is not None and not record.is_decided and place not in self._tasks:
            task = asyncio.create_task(self._notify(record, self._on_waiting), name="adk-stream announcement")
            self._tasks[place] = task
            task.add_done_callback(lambda _: self._tasks.pop(place))

    async def catch_up(self, after_s: float) -> None:
        """Notify it of calls that other workers have not announced."""
        if self._on_waiting is not None:
            for record in await self._store.unannounced(self._app_name, after_s):
                self.announce(record)

    async def aclose(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()), timeout=_CLOSING_S)

    async def _notify(self, record: CallRecord, on_waiting: OnWaiting) -> None:
        try:
            await on_waiting(_waiting_call(record))
        except Exception as error:  # the application's; its text may quote what people wrote
            logger.error("on_waiting failed for a call of %s: %s", record.tool, type(error).__qualname__)
        try:
            await self._store.mark_announced(record)
        except Exception as error:  # then it is notified again
            logger.error("an announcement was not marked: %s", type(error).__qualname__)


_CLOSING_S = 5


def _waiting_call(record: CallRecord) -> WaitingCall:
    return WaitingCall(
        id=record.asked_as or "",
        chat=record.chat,
        tool=record.tool,
        arguments=shown_arguments(record.arguments),
        approvers=record.waits_for,
        link=turn_of(record.chain or ()),
        card=card_of(record),
        digest=record.shown_digest,
        deadline=record.deadline,
    )
