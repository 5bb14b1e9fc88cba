"""The live sessions of a bridge: which clients listen to which, and how one is opened."""

import asyncio
from collections import defaultdict

from ..adk.calls.gate import ApprovalGate
from ..adk.content import encode_content
from ..adk.live.live_message import LiveMessage
from ..adk.live.live_options import LiveOptions, Shown
from ..adk.live.live_run import LiveRun
from ..adk.live_listener import LiveListener
from ..adk.run import Run
from ..adk.run_config import effective_live_config
from ..adk.session import Chat, MessageIds
from ..chunk_log import ChunkLog
from ..errors import RunActive
from ..limits import Limits
from ..protocol.call_record import ChatKey
from ..protocol.turn import Turn
from .leases import ChatLeases
from .prepared import Prepared, presentation
from .segments import RunDefaults, Segments


class LiveChats:
    def __init__(
        self,
        gate: ApprovalGate,
        leases: ChatLeases,
        segments: Segments,
        defaults: RunDefaults,
        limits: Limits,
    ) -> None:
        self._gate = gate
        self._leases = leases
        self._segments = segments
        self._limits = limits
        self._defaults = defaults
        self._runs: dict[ChatKey, LiveRun] = {}
        self._opening: dict[ChatKey, asyncio.Task[LiveRun]] = {}
        self._listeners: defaultdict[ChatKey, set[LiveListener]] = defaultdict(set)
        self._silenced: defaultdict[ChatKey, set[LiveListener]] = defaultdict(set)
        self._shown: dict[ChatKey, Shown] = {}  # as the client wants it that wrote last, while anybody listens

    def get(self, chat: ChatKey) -> LiveRun | None:
        return self._runs.get(chat)

    async def say(self, chat: Chat, turn: Turn, prepared: Prepared, by: LiveListener) -> ChunkLog:
        ids = MessageIds(user_message_id=None, message_id=None, **presentation(prepared, turn.approval_style))
        self._shown[chat.key] = Shown(ids=ids, sdk_version=turn.sdk_version)
        live = await self.open(chat, prepared)
        live.shown = self._shown[chat.key]
        translator = self._segments.new_translator(chat, ids, turn.sdk_version)
        message = LiveMessage(translator, user_message_id=turn.message_id, shown=ids)
        return await live.say(message, encode_content(turn), prepared.get("state_delta"), by)

    # -- listeners ----------------------------------------------------------------------------------------------------

    def listen(self, chat: ChatKey, listener: LiveListener) -> None:
        """A client is there: a live session of this chat goes on as long as it is."""
        if not listener.is_gone:
            self._listeners[chat].add(listener)
        self._listeners_changed(chat)

    def silence(self, chat: ChatKey) -> None:
        """The session was stopped, or the chat deleted: an open microphone of those who listen does not begin another
        one, until they write or attach anew."""
        if self._listeners.get(chat):
            self._silenced[chat] |= self._listeners[chat]

    def let_speak(self, chat: ChatKey, listener: LiveListener) -> None:
        if chat in self._silenced:
            self._silenced[chat].discard(listener)
            if not self._silenced[chat]:
                del self._silenced[chat]

    def is_silenced(self, chat: ChatKey, listener: LiveListener) -> bool:
        return listener in self._silenced.get(chat, ())

    def unlisten(self, chat: ChatKey, listener: LiveListener) -> None:
        self.let_speak(chat, listener)
        self._listeners[chat].discard(listener)
        self._listeners_changed(chat)

    def _listeners_changed(self, chat: ChatKey) -> None:
        live = self.get(chat)
        if live is not None:
            live.watch_listeners()
        elif not self._listeners[chat]:
            del self._listeners[chat]
            self._shown.pop(chat, None)

    # -- sessions -----------------------------------------------------------------------------------------------------

    async def open(self, chat: Chat, prepared: Prepared) -> LiveRun:
        """The live session of this chat, or a new one."""
        run = self.get(chat.key)
        if run is not None:
            if not run.is_ending:
                return run
            await run.ended.wait()
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
        await self._segments.deliver_outcomes(chat, leased)
        changes, metadata = prepared.get("run_config", {}), prepared.get("custom_metadata", {})
        options = LiveOptions(
            run_config=effective_live_config(self._defaults.run_config, changes, metadata),
            translators=self._defaults.translators,
        )
        ids = MessageIds(user_message_id=None, message_id=None, **presentation(prepared, None))
        shown = self._shown.get(chat.key) or Shown(ids=ids)
        context = self._segments.context(chat, leased, self)
        live = self._runs[chat.key] = LiveRun(context, self._gate, options, shown, self._listeners[chat.key])
        self._leases.put(chat.key, live)
        live.start()
        return live

    async def run_ended(self, run: Run) -> None:
        await self._leases.end(run.leased)
        live = self._runs.get(run.leased.key)
        if live is not None and live is run:
            del self._runs[run.leased.key]
            for message_id, log in live.last_logs().items():
                self._segments.keep_log(run.leased.key, message_id, log)
        self._listeners_changed(run.leased.key)
