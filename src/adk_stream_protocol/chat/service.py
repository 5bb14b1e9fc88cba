"""ChatService: everything that can be asked about a chat. The transports and the front door call nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection

from ..adk.calls.gate import ApprovalGate
from ..adk.calls.policy import ApprovalPolicy
from ..adk.chats import Chats
from ..adk.live_listener import LiveListener
from ..adk.session import Chat
from ..adk.words.direct_agents import find_ways
from ..chunk_log import ChunkLog, Reading
from ..errors import Busy, MalformedRequest, NotFound, Restarting, RunActive, RunElsewhere
from ..limits import Limits
from ..protocol.call_record import CallRecord, ChatKey, State
from ..protocol.chunks import SdkVersion
from ..protocol.frames import Send, sdk_version_of
from ..protocol.messages import ClientStyle
from ..protocol.turn import Turn, decode_body, decode_turn, read_turn
from ..store.base import AuditEntry, AuditFilter, Store
from .announcer import Announcer, OnWaiting
from .answers import AnswerDecoder, AnswerRequest, ChatAnswers
from .background import BackgroundWork, Opened
from .caller import Caller
from .completions import CallCompletions
from .consents import Consents
from .history import ChatHistory
from .hooks import Groups, Prepare, UserId, ask_groups, ask_prepare, ask_user_id
from .inbox import Approver, Inbox, InboxPage
from .leases import ChatLeases
from .listing import ChatList, ChatSummary
from .live import LiveChats
from .live_voice import LiveVoice
from .prepared import Prepared
from .recovery import Recovery
from .segments import RunDefaults, Segments
from .turns import ChatTurns
from .unasked_turns import UnaskedTurns

if TYPE_CHECKING:
    from google.adk.runners import Runner

_DELETE_S = 5  # how long a deletion waits for a run of another worker
_START_S = 5  # how long a stop waits for a run that is about to start

_DECIDED = (State.APPROVED, State.DENIED, State.EXPIRED)

Close = Callable[[], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """What an application chooses."""

    user_id: UserId
    groups: Groups | None = None
    on_waiting: OnWaiting | None = None
    prepare: Prepare | None
    policy: ApprovalPolicy
    limits: Limits
    defaults: RunDefaults
    direct_text: bool = True
    merge_text: bool = False


class ChatService:
    """
    | Attributes | |
    |---|---|
    | `limits`, `_settings`, `_store`, `_chats` | what it was built from |
    | `_leases`, `_background` | what runs in this process |
    | `_segments`, `_turns`, `_answers`, `_live`, `_list`, `_recovery` | who does what: a module of `chat/` each |
    | `_inbox`, `_announcer`, `_unasked`, `_completions`, `_consents` | likewise, for approvers and the application |
    | `before_drain`, `before_close`, `_close_last`, `_draining` | how it ends |
    """

    def __init__(
        self, runner: "Runner", store: Store, gate: ApprovalGate, settings: ServiceSettings, close_last: Sequence[Close]
    ) -> None:
        """`close_last`: closes what was opened for this service alone."""
        limits = self.limits = settings.limits
        self._settings = settings
        self._store = store
        self._chats = Chats(runner, find_ways(runner, gate, direct=settings.direct_text, merge=settings.merge_text))
        self._background = BackgroundWork()
        self._announcer = Announcer(store, runner.app_name, settings.on_waiting)
        self._leases = ChatLeases(store, gate, settings.policy, limits.lease_s, self._announcer.announce)
        self._segments = Segments(store, self._leases, limits, settings.defaults)
        self._turns = ChatTurns(store, self._leases, self._segments, self._background, limits)
        decoder = AnswerDecoder(store, limits, settings.policy.browser_deadline_s)
        self._answers = ChatAnswers(decoder, self._leases, self._segments, self._background, limits)
        self._live = LiveChats(gate, self._leases, self._segments, settings.defaults, limits)
        on_turn = self._segments.on_turn = self._live.announce_turn
        self._unasked = UnaskedTurns(self._leases, self._segments, limits, on_turn)
        self._inbox = Inbox(store, runner.app_name, settings.policy, limits, self._go_on)
        self._recovery = Recovery(store, self._unasked, self._chats, self._announcer, limits.lease_s)
        self._completions = CallCompletions(store, self._chats, self._leases, self._unasked)
        self._consents = Consents(store, self._chats, self._leases, self._segments, on_turn)
        self._list = ChatList(self._chats, store, limits.max_listed_chats)
        self._draining: asyncio.Task[None] | None = None
        self.before_drain: list[Close] = []
        """How the transports notify their clients before streams end."""
        self.before_close: list[Close] = []
        """What the transports close first."""
        self._close_last = close_last
        with suppress(RuntimeError):  # without a running loop the first request starts it
            asyncio.get_running_loop().call_soon(self.watch_for_lost_runs)

    # -- who asks -----------------------------------------------------------------------------------------------------

    async def identify(self, connection: HTTPConnection) -> str:
        """The user's id. Refuses who has none."""
        self.watch_for_lost_runs()
        return await ask_user_id(self._settings.user_id, connection)

    async def _prepare(self, caller: Caller, body: dict[str, Any]) -> Prepared:
        prepare = self._settings.prepare
        return {} if prepare is None else await ask_prepare(prepare, caller.connection, body)

    # -- a turn -------------------------------------------------------------------------------------------------------

    async def open_turn(self, caller: Caller, body: bytes) -> Opened:
        """Start the run of one turn. Refuses before anything is stored."""
        header = caller.connection.headers.get("x-ai-sdk-version")
        whole: dict[str, Any] = {}
        if len(body) > self.limits.threaded_decode_bytes:
            turn = await asyncio.to_thread(decode_turn, body, self.limits, sdk_version_header=header)
            if self._settings.prepare is not None:
                whole = await asyncio.to_thread(decode_body, body)
        else:
            turn = decode_turn(body, self.limits, sdk_version_header=header)
            if self._settings.prepare is not None:
                whole = decode_body(body)
        self._refuse_while_draining()
        prepared = await self._prepare(caller, whole)
        chat = self._chat(caller.user_id, turn.chat_id, caller.files_root)
        if turn.answers is not None:
            return await self._answers.answer(AnswerRequest(chat, turn, prepared))
        return await self._turns.open(chat, turn, prepared)

    # -- a live session -----------------------------------------------------------------------------------------------

    async def open_live_turn(self, caller: Caller, frame: Send, by: LiveListener) -> Opened:
        """A message for the chat's live session, or answers to calls."""
        is_large = frame.is_larger_than(self.limits.threaded_decode_bytes)
        turn = await asyncio.to_thread(_read_frame, frame, self.limits) if is_large else _read_frame(frame, self.limits)
        self._refuse_while_draining()
        prepared = await self._prepare(caller, {**(frame.body or {}), "id": frame.id})
        chat = self._chat(caller.user_id, turn.chat_id, caller.files_root)
        if turn.answers is not None:
            return await self._answers.answer(AnswerRequest(chat, turn, prepared, by))
        if turn.again is not None:
            raise MalformedRequest("In a live session nothing can be regenerated or edited. Send a new message.")
        self._live.listen(chat.key, by)
        self._live.let_speak(chat.key, by)
        return Reading(await self._live.say(chat, turn, prepared, by))

    async def open_live_voice(self, caller: Caller, chat_id: str, by: LiveListener, style: ClientStyle) -> LiveVoice:
        """The live session of a chat, for a client that speaks. Opens it if there is none. `style`: of the answers."""

        async def prepare() -> Prepared:
            self._refuse_while_draining()
            return await self._prepare(caller, {"id": chat_id})

        chat = self._chat(caller.user_id, chat_id, caller.files_root)
        return await self._live.open_voice(chat, prepare, by, style)

    def live_voice(self, user: str, chat_id: str) -> LiveVoice | None:
        """The live session of a chat, if there is one."""
        return self._live.get(self._key(user, chat_id))

    def listen(self, user: str, chat_id: str, listener: LiveListener) -> None:
        """A live session goes on as long as somebody listens."""
        self._live.listen(self._key(user, chat_id), listener)

    def let_speak(self, user: str, chat_id: str, listener: LiveListener) -> None:
        """The user wants to speak: the client attaches to the chat, or opens its microphone. After a stop or a
        deletion, voice alone would not open a session."""
        self._live.let_speak(self._key(user, chat_id), listener)

    def unlisten(self, user: str, chat_id: str, listener: LiveListener) -> None:
        self._live.unlisten(self._key(user, chat_id), listener)

    # -- what runs ----------------------------------------------------------------------------------------------------

    def running(self, user: str, chat_id: str, message_id: str | None = None) -> ChunkLog | None:
        """The open segment of this chat. By its message's id a segment can be read for a minute after its end."""
        key = self._key(user, chat_id)
        run = self._leases.get(key)
        if message_id is None:
            return run.log if run is not None else None
        log = run.log_of(message_id) if run is not None else None
        return log or self._segments.log_of(key, message_id)

    async def stop(self, user: str, chat_id: str) -> None:
        """End what runs in this chat, if anything does. When this returns, the next turn may come."""
        key = self._key(user, chat_id)
        self._live.silence(key)
        try:
            async with asyncio.timeout(_START_S):
                run = await self._leases.wait_for_start(key, 2 * _START_S)
        except TimeoutError:
            raise Busy from None  # it has not started yet, and will
        if run is not None:
            await run.stop()
        elif (await self._store.read(key)).is_leased and key not in self._leases:
            raise RunElsewhere

    def watch_for_lost_runs(self) -> None:
        """From now on, continue what other workers have lost. The first request starts this, or the router's
        lifespan."""
        if self._draining is None:
            self._recovery.start()

    async def recover(self) -> None:
        """Look once for runs that were lost with their worker."""
        await self._recovery.look()

    async def complete_call(self, ref: str, result: dict[str, Any], *, is_final: bool) -> dict[str, Any]:
        """Progress of a long-running call, or its end, as the application reports it."""
        return await self._completions.complete(ref, result, is_final=is_final)

    async def give_consent(self, user: str, callback_url: str) -> None:
        self._refuse_while_draining()
        await self._consents.give_consent(user, callback_url)

    async def give_key(self, user: str, request_id: str, api_key: str) -> None:
        self._refuse_while_draining()
        await self._consents.give_key(user, request_id, api_key)

    # -- the conversation ---------------------------------------------------------------------------------------------

    def history(
        self, user: str, chat_id: str, *, files_root: str = "", sdk_version: SdkVersion | None = None
    ) -> ChatHistory:
        """The conversation as its clients saw it, for a client that may have it already."""
        chat = self._chat(user, chat_id, files_root)
        return ChatHistory(chat, self._store, self._leases, self._settings.defaults.translators, sdk_version)

    async def chats(self, user: str) -> list[ChatSummary]:
        """The user's newest chats, newest first."""
        return await self._list.of(user)

    async def delete(self, user: str, chat_id: str) -> None:
        """Forget a chat, after started tools. A deletion that fails half-way can be repeated: the session goes last."""
        chat = self._chat(user, chat_id)
        if await chat.load() is None:
            raise NotFound
        self._live.silence(chat.key)
        leased = await self._leases.take_over(chat.key, _DELETE_S)
        if leased is None:
            raise RunActive
        try:
            await chat.delete_files()
            if not await self._store.forget(leased.lease):
                raise RunActive  # it took too long, and another worker has the chat
            leased.records.clear()
            await chat.delete_session()
            await self._store.forget(leased.lease)  # what was recorded meanwhile: see `record_late`
        finally:
            await self._leases.end(leased)

    async def audit(self, user: str, chat_id: str) -> Sequence[AuditEntry]:
        """What was asked, decided and run in this chat, oldest first. A deletion of the chat leaves it as it is."""
        trail = await self._store.audit(self._key(user, chat_id))
        if not trail and await self._chat(user, chat_id).load(recent=1) is None:
            raise NotFound
        return trail

    async def find_audit(self, wanted: AuditFilter) -> Sequence[AuditEntry]:
        """Only entries of this application, even if `wanted` names another one."""
        return await self._store.audit(wanted._replace(app_name=self._chats.runner.app_name))

    # -- the inbox ----------------------------------------------------------------------------------------------------

    async def waiting(self, connection: HTTPConnection, user: str, limit: int, cursor: str | None) -> InboxPage:
        """What waits for a decision of the caller, in whichever chat."""
        return await self._inbox.waiting(await self._approver(connection, user), limit, cursor)

    async def decide(self, connection: HTTPConnection, user: str, approval_id: str, body: bytes) -> dict[str, Any]:
        """Record what an approver says. The chat of the call goes on by itself."""
        self._refuse_while_draining()
        return await self._inbox.decide(await self._approver(connection, user), approval_id, body)

    async def _approver(self, connection: HTTPConnection, user: str) -> Approver:
        groups = self._settings.groups
        return Approver(user, await ask_groups(groups, connection) if groups is not None else frozenset())

    def _go_on(self, record: CallRecord) -> None:
        """After a decision that did not come from the call's chat."""
        self._announcer.announce(record)
        if record.state in _DECIDED and record.delivered is not True:
            self._unasked.continue_soon(self._chats.open(record.chat.user_id, record.chat.chat_id), record.call)

    async def load_file(self, user: str, chat_id: str, name: str, version: int | None) -> tuple[bytes, str]:
        """The bytes and the media type of an artifact of this chat."""
        file = await self._chat(user, chat_id).load_file(name, version)
        if file is None:
            raise NotFound
        return file

    def _key(self, user: str, chat_id: str) -> ChatKey:
        return self._chats.key(user, chat_id)

    def _chat(self, user: str, chat_id: str, files_root: str = "") -> Chat:
        return self._chats.open(user, chat_id, files_root)

    # -- the end ------------------------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Take no new turns, let started tools finish (`Limits.drain_s`), and end all streams."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name="adk-stream drain")
        await asyncio.shield(self._draining)

    async def _drain(self) -> None:
        await self._recovery.stop()
        for notify in self.before_drain:
            await notify()
        await self._completions.drain()
        await self._background.drain()
        await self._unasked.drain()
        await self._announcer.aclose()
        await self._leases.drain(self.limits.drain_s)

    async def aclose(self) -> None:
        await self.drain()
        for close in (*self.before_close, *self._close_last):
            await close()

    def _refuse_while_draining(self) -> None:
        if self._draining is not None:
            raise Restarting


def _read_frame(frame: Send, limits: Limits) -> Turn:
    return read_turn(frame.request(), limits, sdk_version_header=sdk_version_of(frame))
