"""The live sessions of a bridge: who listens to which, and how one is opened."""

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from ..adk.calls.gate import ApprovalGate
from ..adk.calls.leased_chat import LeasedChat
from ..adk.content import encode_content
from ..adk.live.live_message import LiveMessage
from ..adk.live.live_run import LiveRun, LiveServices
from ..adk.live.live_segments import LiveListener
from ..adk.run_config import effective_live_config
from ..adk.session import Chat, MessageIds
from ..chunk_log import ChunkLog
from ..errors import RunActive
from ..limits import Limits
from ..protocol.call_record import ChatKey
from ..protocol.turn import Turn
from ..store.base import Store
from .answers import deliver_outcomes, leave_calls_pending, refuse_call
from .leases import ChatLeases
from .prepared import Prepared, presentation
from .segments import Segments

if TYPE_CHECKING:
    from google.adk.agents.run_config import RunConfig
    from google.adk.events import Event


class LiveChats:
    def __init__(
        self,
        store: Store,
        gate: ApprovalGate,
        leases: ChatLeases,
        segments: Segments,
        limits: Limits,
        run_config: "RunConfig | None",
    ) -> None:
        self._store = store
        self._gate = gate
        self._leases = leases
        self._segments = segments
        self._limits = limits
        self._run_config = run_config
        self._opening: dict[ChatKey, asyncio.Task[LiveRun]] = {}
        self._listeners: defaultdict[ChatKey, set[LiveListener]] = defaultdict(set)

    def get(self, chat: ChatKey) -> LiveRun | None:
        run = self._leases.get(chat)
        return run if isinstance(run, LiveRun) else None

    def announced(self, chat: ChatKey) -> "list[Event]":
        """Calls of which the session has no events."""
        live = self.get(chat)
        return list(live.announced) if live is not None else []

    async def say(self, chat: Chat, turn: Turn, prepared: Prepared, by: LiveListener) -> ChunkLog:
        live = await self.open(chat, prepared)
        ids = MessageIds(user_message_id=None, message_id=None, **presentation(prepared, turn.approval_style))
        translator = self._segments.new_translator(chat, ids, turn.sdk_version)
        message = LiveMessage(translator, user_message_id=turn.message_id, is_typed=True, shown=ids)
        return await live.say(message, encode_content(turn), prepared.get("state_delta"), by)

    # -- listeners ----------------------------------------------------------------------------------------------------

    def listen(self, chat: ChatKey, listener: LiveListener) -> None:
        """A client is there: a live session of this chat goes on as long as it is."""
        if not listener.is_gone:
            self._listeners[chat].add(listener)
        self._listeners_changed(chat)

    def unlisten(self, chat: ChatKey, listener: LiveListener) -> None:
        self._listeners[chat].discard(listener)
        self._listeners_changed(chat)

    def _listeners_changed(self, chat: ChatKey) -> None:
        live = self.get(chat)
        if live is not None:
            live.watch_listeners()
        elif not self._listeners[chat]:
            del self._listeners[chat]

    # -- sessions -----------------------------------------------------------------------------------------------------

    async def open(self, chat: Chat, prepared: Prepared) -> LiveRun:
        """The live session of this chat, or a new one."""
        run = self.get(chat.key)
        if run is not None:
            if not run.is_ending:
                return run
            await run.has_ended.wait()
        opening = self._opening.get(chat.key)
        if opening is None:  # words and voice may come together, or from two pages
            opening = asyncio.create_task(self._open(chat, prepared), name="adk-stream open live")
            self._opening[chat.key] = opening
            opening.add_done_callback(lambda _: self._opening.pop(chat.key))
        return await asyncio.shield(opening)

    async def _open(self, chat: Chat, prepared: Prepared) -> LiveRun:
        self._leases.require_room(chat.key, self._limits.max_runs_per_user)
        leased = await self._leases.begin(chat.key)
        if leased is None:
            raise RunActive
        try:
            await deliver_outcomes(self._store, chat, leased)
        except BaseException:
            await self._leases.end(leased)
            raise
        ids = MessageIds(user_message_id=None, message_id=None, **presentation(prepared, None))
        changes, metadata = prepared.get("run_config", {}), prepared.get("custom_metadata", {})
        live = LiveRun(
            chat,
            leased,
            self._gate,
            self._limits,
            effective_live_config(self._run_config, changes, metadata),
            LiveServices(
                new_message=lambda: LiveMessage(self._segments.new_translator(chat, ids), shown=ids),
                refuse=lambda call, reason: refuse_call(self._store, chat.key, call, reason),
                park=lambda: leave_calls_pending(self._store, chat, leased),
                let_go=lambda: self._ended(leased),
            ),
            self._listeners[chat.key],
        )
        self._leases.put(chat.key, live)
        live.start()
        return live

    async def _ended(self, leased: LeasedChat) -> None:
        await self._leases.end(leased)
        self._listeners_changed(leased.key)
