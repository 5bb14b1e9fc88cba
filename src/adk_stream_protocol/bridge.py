"""ChatBridge: one ADK agent for any number of AI SDK clients. It orders the effects of a turn."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from .adk.calls.gate import ApprovalGate
from .adk.calls.policy import ApprovalPolicy
from .adk.control_flow import control_flow_by_author
from .adk.live.live_run import LiveRun
from .adk.live.live_segments import LiveListener
from .adk.runner import AgentLike, build_runner
from .adk.session import Chat
from .adk.translate.history import encode_history
from .chat.hooks import Prepare, UserId, ask_prepare, ask_user_id
from .chat.leases import ChatLeases
from .chat.listing import ChatList, ChatSummary
from .chat.live import LiveChats
from .chat.prepared import Prepared
from .chat.recovery import Recovery
from .chat.segments import Defaults, Segments
from .chat.turns import ChatTurns, Opened
from .chunk_log import ChunkLog, Reading
from .errors import ConfigurationError, MalformedRequest, NotFound, Restarting, RunActive
from .limits import Limits
from .protocol.call_record import ChatKey
from .protocol.chunks import SdkVersion
from .protocol.fold import UIMessage
from .protocol.frames import Send, sdk_version_of
from .protocol.messages import ApprovalStyle
from .protocol.turn import decode_body, decode_sdk_version, decode_turn, is_chat_id, read_turn
from .store import open_store
from .store.base import AuditEntry, Store
from .transports.security import Access
from .transports.unfinished import UnfinishedRequests

if TYPE_CHECKING:
    from fastapi import APIRouter
    from google.adk.agents.run_config import RunConfig
    from google.adk.artifacts import BaseArtifactService
    from google.adk.memory import BaseMemoryService
    from google.adk.sessions import BaseSessionService

logger = logging.getLogger(__name__)

_DELETE_S = 5  # how long a deletion waits for a run of another worker's


class ChatBridge:
    """Puts an ADK agent, `App` or `Runner` behind AI SDK clients.

    `user_id` tells who is asking: it gets the connection (HTTP or WebSocket) and returns the user's id, or `None` to
    refuse. There is no default, since a fixed user shares all chats with everybody.
    """

    def __init__(
        self,
        agent: AgentLike,
        *,
        user_id: UserId,
        app_name: str | None = None,
        session_service: "BaseSessionService | None" = None,
        artifact_service: "BaseArtifactService | None" = None,
        memory_service: "BaseMemoryService | None" = None,
        run_config: "RunConfig | None" = None,
        store: Store | str = "memory",
        approvals: ApprovalPolicy | None = None,
        sdk_version: SdkVersion = 6,
        approval_style: ApprovalStyle | None = None,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        allowed_origins: Collection[str] = (),
        allowed_headers: Collection[str] = (),
        allowed_hosts: Collection[str] = (),
    ) -> None:
        if not callable(user_id):
            raise ConfigurationError("user_id must be a function of the connection that returns the user's id.")
        if sdk_version not in (5, 6, 7):
            raise ConfigurationError("sdk_version must be 5, 6 or 7.")
        self.limits = limits or Limits()
        self.access = Access(origins=allowed_origins, headers=allowed_headers, hosts=allowed_hosts)
        policy = approvals or ApprovalPolicy()
        self._store = open_store(store)
        self._owns_store = self._store is not store
        gate = ApprovalGate(self._store, policy, self.limits.lease_s)
        self._runner = build_runner(
            agent,
            app_name=app_name,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
            gate=gate,
        )
        self._owns_runner = self._runner is not agent
        self._control_flow = control_flow_by_author(self._runner.agent)
        self._user_id = user_id
        self._prepare = prepare
        self._leases = ChatLeases(self._store, gate, policy, self.limits.lease_s)
        defaults = Defaults(run_config=run_config, sdk_version=sdk_version, approval_style=approval_style)
        self._segments = Segments(self._store, self._leases, self.limits, defaults)
        self._turns = ChatTurns(self._store, self._leases, policy, self.limits, self._segments)
        self._recovery = Recovery(self._store, self._segments, self._lost_chat, self.limits.lease_s)
        self._live = LiveChats(self._store, gate, self._leases, self._segments, self.limits, run_config)
        self._list = ChatList(
            self._runner,
            self._store,
            lambda key: self._chat(key.user_id, key.chat_id, ""),
            self.limits.max_listed_chats,
        )
        self.unfinished = UnfinishedRequests(self.limits)
        self._draining: asyncio.Task[None] | None = None
        self.before_drain: list[Callable[[], None]] = []
        """What its transports tell their clients before streams are ended."""
        self.before_close: list[Callable[[], Awaitable[None]]] = []
        """What its transports have to do first."""
        with suppress(RuntimeError):  # elsewhere there is no loop yet: the first request starts it
            asyncio.get_running_loop().call_soon(self.watch_for_lost_runs)

    # The transports stand above the bridge; these two are its only look upwards.

    def router(self, prefix: str = "") -> "APIRouter":
        """All routes below `prefix`, for `app.include_router`. It closes the bridge when the application ends."""
        from .transports.router import build_router
        from .transports.surface import Surface

        return build_router(Surface(self, self.access, self.unfinished), prefix)

    async def respond(self, request: Request) -> Response:
        """One turn, inside a route of your own."""
        from .transports.http import respond
        from .transports.surface import Surface

        return await respond(Surface(self, self.access, self.unfinished), request)

    async def drain(self) -> None:
        """Take no new turns, let tools that have begun come to their ends (`Limits.drain_s`), and end all streams with
        an `error` that says that the server restarts. What waits for a person goes on waiting, and what is approved and
        not begun is for the next process. Call it before a server closes its connections; `aclose` does it, too."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name="adk-stream drain")
        await asyncio.shield(self._draining)

    async def _drain(self) -> None:
        await self._recovery.stop()
        for tell in self.before_drain:
            tell()
        await self._turns.drain()
        await self._leases.drain(self.limits.drain_s)

    async def aclose(self) -> None:
        """Drain, then let go of the runner. For those who do not use the router's lifespan."""
        await self.drain()
        for close in self.before_close:
            await close()
        if self._owns_runner:
            await self._runner.close()
        if self._owns_store:
            await self._store.aclose()

    def _refuse_while_draining(self) -> None:
        if self._draining is not None:
            raise Restarting

    async def identify(self, connection: HTTPConnection) -> str:
        """The user who is asking, by the application's own function."""
        self.watch_for_lost_runs()
        return await ask_user_id(self._user_id, connection)

    # -- a turn -------------------------------------------------------------------------------------------------------

    async def open_turn(self, connection: HTTPConnection, user: str, body: bytes, files_root: str) -> Opened:
        """Start the run of one turn, and give what its client reads. Refuses before anything is stored."""
        header = connection.headers.get("x-ai-sdk-version")
        is_long = len(body) > self.limits.threaded_decode_bytes
        if is_long:
            turn = await asyncio.to_thread(decode_turn, body, self.limits, sdk_version_header=header)
        else:
            turn = decode_turn(body, self.limits, sdk_version_header=header)
        self._refuse_while_draining()
        if is_long and self._prepare is not None:
            whole = await asyncio.to_thread(decode_body, body)
            prepared = await self._prepared(connection, lambda: whole)
        else:
            prepared = await self._prepared(connection, lambda: decode_body(body))
        chat = self._chat(user, turn.chat_id, files_root)
        if turn.answers is not None:
            return await self._turns.answer(chat, turn, prepared, self._live.announced(chat.key))
        return await self._turns.open(chat, turn, prepared)

    # -- a live session -----------------------------------------------------------------------------------------------

    async def open_live_turn(
        self, connection: HTTPConnection, user: str, frame: Send, files_root: str, by: LiveListener
    ) -> Opened:
        """What a client has sent over a socket: words for the chat's live session, or answers."""
        turn = read_turn(frame.request(), self.limits, sdk_version_header=sdk_version_of(frame))
        self._refuse_while_draining()
        prepared = await self._prepared(connection, lambda: {**(frame.body or {}), "id": frame.id})
        chat = self._chat(user, turn.chat_id, files_root)
        if turn.answers is not None:
            return await self._turns.answer(chat, turn, prepared, self._live.announced(chat.key), by)
        if turn.again is not None:
            raise MalformedRequest("In a live session nothing can be said again. Send it as a new message.")
        self._live.listen(chat.key, by)
        return Reading(await self._live.say(chat, turn, prepared, by))

    async def open_live_voice(
        self, connection: HTTPConnection, user: str, chat_id: str, files_root: str, by: LiveListener
    ) -> LiveRun:
        """The live session that a client is about to speak to."""
        self._refuse_while_draining()
        chat = self._chat(user, chat_id, files_root)
        self._live.listen(chat.key, by)
        return await self._live.open(chat, await self._prepared(connection, lambda: {"id": chat_id}))

    def listen(self, user: str, chat_id: str, listener: LiveListener) -> None:
        self._live.listen(self._key(user, chat_id), listener)

    def unlisten(self, user: str, chat_id: str, listener: LiveListener) -> None:
        self._live.unlisten(self._key(user, chat_id), listener)

    def live_run(self, user: str, chat_id: str) -> LiveRun | None:
        return self._live.get(self._key(user, chat_id))

    # -- what runs ----------------------------------------------------------------------------------------------------

    def watch_for_lost_runs(self) -> None:
        """Take up what other workers have left behind, from now on. The first request starts it, and so does the
        router's lifespan."""
        if self._draining is None:
            self._recovery.start()

    async def recover(self) -> None:
        """One look for runs that were lost with their worker."""
        await self._recovery.look()

    def _lost_chat(self, key: ChatKey) -> Chat | None:
        return self._chat(key.user_id, key.chat_id, "") if key.app_name == self._runner.app_name else None

    def running(self, user: str, chat_id: str, message_id: str | None = None) -> ChunkLog | None:
        """The log of the turn that is running in this chat. By its id an answer can be read for a while longer."""
        key = self._key(user, chat_id)
        run = self._leases.get(key)
        if message_id is None:
            return run.log if run is not None else None
        live = self._live.get(key)
        log = live.log_of(message_id) if live is not None else None
        return log or self._segments.log_of(key, message_id)

    async def stop(self, user: str, chat_id: str) -> None:
        """End what runs in this chat, if anything does. When this returns, the next turn may come."""
        run = self._leases.get(self._key(user, chat_id))
        if run is not None:
            await run.stop()

    def _key(self, user: str, chat_id: str) -> ChatKey:
        return ChatKey(self._runner.app_name, user, chat_id)

    async def _prepared(self, connection: HTTPConnection, body: Callable[[], dict[str, Any]]) -> Prepared:
        return {} if self._prepare is None else await ask_prepare(self._prepare, connection, body())

    # -- the conversation ---------------------------------------------------------------------------------------------

    async def messages(
        self, connection: HTTPConnection, user: str, chat_id: str, files_root: str
    ) -> tuple[list[UIMessage], str | None]:
        """The conversation as its clients saw it, and the id of the answer that it leaves out, since it is running."""
        chat = self._chat(user, chat_id, files_root)
        # Before the session is read: what ends meanwhile is left out, and can be read by its id for a while.
        run = self._leases.get(chat.key)
        running = run.message_id if run is not None and run.log is not None else None
        session = await chat.load()
        if session is None:
            raise NotFound
        version = decode_sdk_version(None, connection.headers.get("x-ai-sdk-version"))
        history = await encode_history(
            chat,
            [*session.events, *self._live.announced(chat.key)],
            new_translator=lambda ids: self._segments.new_translator(chat, ids, version),
            records=await self._segments.records(chat.key),
            running=running,
        )
        return history, running

    async def chats(self, user: str) -> list[ChatSummary]:
        """The user's newest chats, newest first."""
        return await self._list.of(user)

    async def delete(self, user: str, chat_id: str) -> None:
        """Forget a chat. What runs in it is stopped, after the tools that have begun; nothing else runs meanwhile. If
        it fails half-way, it can be asked for again: the session goes last."""
        chat = self._chat(user, chat_id, "")
        if await chat.load() is None:
            raise NotFound
        leased = await self._leases.take_over(chat.key, _DELETE_S)
        if leased is None:
            raise RunActive
        try:
            await chat.delete_files()
            if not await self._store.forget(leased.lease):
                raise RunActive  # it took us too long, and somebody else has the chat
            leased.records.clear()
            await chat.delete_session()
        finally:
            await self._leases.end(leased)

    async def audit(self, user: str, chat_id: str) -> Sequence[AuditEntry]:
        """What was asked, decided and run in this chat, by whom and when, oldest first. It outlives the chat: a
        deletion leaves it as it is."""
        return await self._store.audit(self._key(user, chat_id))

    async def load_file(self, user: str, chat_id: str, name: str, version: int | None) -> tuple[bytes, str]:
        """An artifact of the caller's own chat: its bytes and media type."""
        file = await self._chat(user, chat_id, "").load_file(name, version)
        if file is None:
            raise NotFound
        return file

    def _chat(self, user: str, chat_id: str, files_root: str) -> Chat:
        if not is_chat_id(chat_id):
            raise NotFound
        files_url = f"{files_root}/{quote(chat_id, safe='')}/files"
        return Chat(self._runner, user, chat_id, files_url, self._control_flow)
