"""The live sessions of a bridge: which clients listen to which, and how one is opened."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import takewhile

from ..adk.calls.gate import ApprovalGate
from ..adk.content import encode_content
from ..adk.live.live_message import LiveMessage
from ..adk.live.live_options import LiveOptions
from ..adk.live.live_run import LiveRun
from ..adk.live.model_watch import has_live_mode, live_model_of
from ..adk.live_listener import LiveListener
from ..adk.run import Run
from ..adk.run_config import effective_live_config
from ..adk.session import Chat, MessageIds
from ..chunk_log import ChunkLog
from ..errors import BridgeError, LiveFailed, LocalProtocolError, NoLiveMode, RunActive, TooMany
from ..limits import Limits
from ..protocol.call_record import ChatKey
from ..protocol.messages import ClientStyle
from ..protocol.turn import Turn
from .leases import ChatLeases
from .live_voice import LiveVoice
from .prepared import Prepared, encode_prepared, presentation
from .refused_voice import RefusedVoice
from .segments import RunDefaults, Segments

logger = logging.getLogger(__name__)


class LiveChats:
    """
    | About | Attributes |
    |---|---|
    | what it was built from | `_gate`, `_leases`, `_segments`, `_limits`, `_defaults` |
    | live sessions, by chat | `_runs`, `_opening` |
    | clients, by chat | `_listeners`, `_silenced`, `_styles`, `_refused_voice` |
    """

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
        self._refused_voice = RefusedVoice(limits)
        self._listeners: defaultdict[ChatKey, set[LiveListener]] = defaultdict(set)
        self._silenced: defaultdict[ChatKey, set[LiveListener]] = defaultdict(set)
        self._styles: dict[ChatKey, ClientStyle] = {}  # of the client that wrote or spoke last, while anybody listens

    def get(self, chat: ChatKey) -> LiveRun | None:
        return self._runs.get(chat)

    async def say(self, chat: Chat, turn: Turn, prepared: Prepared, by: LiveListener) -> ChunkLog:
        ids = MessageIds(user_message_id=None, message_id=None, **presentation(prepared, turn.approval_style))
        await self._end_waiting(chat.key)
        live = await self._open_in_style(chat, prepared, ClientStyle(turn.sdk_version, turn.approval_style))
        translator = self._segments.new_translator(chat, ids, turn.sdk_version)
        message = LiveMessage(translator, user_message_id=turn.message_id, shown=ids)
        return await live.say(message, encode_content(turn), prepared.get("state_delta"), by)

    async def _end_waiting(self, chat: ChatKey) -> None:
        """A run of request mode that only waits for its user: the user wants something else."""
        run = self._leases.get(chat)
        if run is not None and chat not in self._runs and run.log is None:
            await run.stop_after_tools()

    def announce_turn(self, chat: ChatKey, message_id: str) -> None:
        """A message of request mode goes on that no client has asked for."""
        for listener in list(self._listeners.get(chat, ())):
            listener.turn(chat.chat_id, message_id, "")

    # -- listeners ----------------------------------------------------------------------------------------------------

    def listen(self, chat: ChatKey, listener: LiveListener) -> None:
        """A client is there: a live session of this chat goes on as long as it is."""
        if listener.listens_to(chat.chat_id):
            self._listeners[chat].add(listener)
        self._listeners_changed(chat)

    def silence(self, chat: ChatKey) -> None:
        """The session was stopped, or the chat deleted: an open microphone of those who listen does not begin another
        one, until they write, attach anew, or open it anew."""
        if self._listeners.get(chat):
            self._silenced[chat] |= self._listeners[chat]

    def let_speak(self, chat: ChatKey, listener: LiveListener) -> None:
        if chat in self._silenced:
            self._silenced[chat].discard(listener)
            if not self._silenced[chat]:
                del self._silenced[chat]

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
            self._refused_voice.forget(chat)
            self._styles.pop(chat, None)

    # -- sessions -----------------------------------------------------------------------------------------------------

    async def open_voice(
        self, chat: Chat, prepare: Callable[[], Awaitable[Prepared]], by: LiveListener, style: ClientStyle
    ) -> LiveVoice:
        """The live session of this chat, or a new one. Where there can be none now, voice is dropped. `style`: of the
        answers to this client's voice; an empty one changes nothing."""
        if by in self._silenced.get(chat.key, ()):
            return self._refused_voice
        self.listen(chat.key, by)
        if self._refused_voice.is_refused(chat.key, by, is_busy=self._is_busy(chat.key)):
            return self._refused_voice
        try:
            return await self._open_in_style(chat, await prepare(), style)
        except Exception as error:
            refusal = error if isinstance(error, BridgeError) else LocalProtocolError()
            if refusal is not error:  # its text may quote what the user wrote
                logger.error("a live session was not opened: %s", type(error).__qualname__)
            is_busy = isinstance(error, RunActive) and self._is_busy(chat.key)
            self._refused_voice.refuse(chat.key, refusal, by, is_busy=is_busy)
            return self._refused_voice

    def _is_busy(self, chat: ChatKey) -> bool:
        """Whether request mode has the chat, in this process."""
        return chat in self._leases and chat not in self._runs

    async def _open_in_style(self, chat: Chat, prepared: Prepared, style: ClientStyle) -> LiveRun:
        """The live session of this chat, or a new one. From now on its spoken answers have this style."""
        if style != ClientStyle():
            self._styles[chat.key] = style
        live = await self.open(chat, prepared)
        live.spoken_style = self._styles.get(chat.key, style)
        live.leased.prepared, live.leased.sdk_version = encode_prepared(prepared), live.spoken_style.sdk_version
        return live

    async def open(self, chat: Chat, prepared: Prepared) -> LiveRun:
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
        model = live_model_of(chat.runner.agent)
        if model is not None and not has_live_mode(model):
            raise NoLiveMode
        self._leases.require_room(chat.key, self._limits.max_runs_per_user)
        await self._require_room(chat.key)
        leased = await self._leases.begin(chat.key)
        if leased is None:
            raise RunActive
        await self._segments.deliver_outcomes(chat, leased)
        changes, metadata = prepared.get("run_config", {}), prepared.get("custom_metadata", {})
        options = LiveOptions(
            run_config=effective_live_config(self._defaults.run_config, changes, metadata),
            translators=self._defaults.translators,
            shown=MessageIds(user_message_id=None, message_id=None, **presentation(prepared, None)),
            while_waiting=self._defaults.live_while_waiting,
        )
        context = self._segments.context(chat, leased, self)
        live = self._runs[chat.key] = LiveRun(context, self._gate, options, self._listeners[chat.key])
        self._leases.put(chat.key, live)
        live.start()
        return live

    async def _require_room(self, chat: ChatKey) -> None:
        """Sessions that nobody listens to any more make room for a new one."""
        most = self._limits.max_live_sessions_per_user
        for other in self._others(chat):
            if len(self._others(chat)) < most:
                return
            if other in self._runs and not self._listeners[other]:
                await self._runs[other].end_if_idle()
        if len(self._others(chat)) >= most:
            raise TooMany(f"You have {most} live sessions, as many as one user may have. Leave one, then try again.")

    def _others(self, chat: ChatKey) -> list[ChatKey]:
        """Other chats of the same user with a live session, or with one that began to open before this chat's."""
        known = dict.fromkeys((*self._runs, *takewhile(lambda other: other != chat, self._opening)))
        return [other for other in known if other.user_id == chat.user_id and other != chat]

    def segment_opened(self, run: Run) -> None:
        """Its listeners are told by itself."""

    async def run_ended(self, run: Run) -> None:
        await self._leases.end(run.leased)
        live = self._runs.get(run.leased.key)
        if live is not None and live is run:
            del self._runs[run.leased.key]
            for message_id, log in live.last_logs().items():
                self._segments.keep_log(run.leased.key, message_id, log)
            self._notify_of_end(live)
            for listener in list(self._listeners.get(run.leased.key, ())):
                listener.ended(run.leased.key.chat_id)
        self._listeners_changed(run.leased.key)

    def keep_log(self, chat: ChatKey, message_id: str, log: ChunkLog) -> None:
        self._segments.keep_log(chat, message_id, log)

    def _notify_of_end(self, live: LiveRun) -> None:
        """Streams of open messages say it, too, but a client that only speaks has none."""
        chat, failure = live.leased.key, live.failure
        if failure is None:
            self._refused_voice.forget(chat)
            return
        error = NoLiveMode() if failure == NoLiveMode.public_text else LiveFailed(failure)
        self._refused_voice.fail(chat, error, self._listeners[chat], has_spoken=live.has_spoken)
