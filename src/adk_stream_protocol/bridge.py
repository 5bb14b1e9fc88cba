"""ChatBridge: one ADK agent for any number of AI SDK clients. It orders the effects of a turn."""

import asyncio
import inspect
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from .adk.chat import Chat, MessageIds
from .adk.content import encode_content
from .adk.history import encode_history, find_turn, title_of, waits_for_the_user
from .adk.request_run import RequestRun, RunRequest, effective_run_config
from .adk.runner import AgentLike, build_runner
from .adk.translator import Translator
from .chunk_log import ChunkLog
from .errors import ConfigurationError, NotFound, NoUser, RunActive
from .limits import Limits
from .protocol.chunks import SdkVersion
from .protocol.fold import UIMessage
from .protocol.messages import ApprovalStyle
from .protocol.turn import Turn, decode_body, decode_sdk_version, decode_turn, is_chat_id

if TYPE_CHECKING:
    from fastapi import APIRouter
    from google.adk.agents.run_config import RunConfig
    from google.adk.artifacts import BaseArtifactService
    from google.adk.events import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.sessions import BaseSessionService

logger = logging.getLogger(__name__)


class Prepared(TypedDict, total=False):
    """What a `prepare` hook may set for one turn."""

    state_delta: dict[str, Any]
    """Session state to write with the user's message."""
    run_config: dict[str, Any]
    """Fields of ADK's `RunConfig` to change."""
    custom_metadata: dict[str, Any]
    """Stored by ADK with every event of the run."""
    send_state: Collection[str]
    """Keys of the session's state whose changes the client sees as `data-adk-state`. None by default."""
    send_nodes: bool
    """Whether the client sees outputs and routes of workflow nodes as `data-adk-node`."""


class ChatSummary(TypedDict):
    """One line of the list of chats."""

    id: str
    title: str
    updatedAt: str
    waiting: bool


UserId = Callable[[HTTPConnection], str | Awaitable[str | None] | None]
Prepare = Callable[[HTTPConnection, Mapping[str, Any]], Prepared | Awaitable[Prepared | None] | None]


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
        sdk_version: SdkVersion = 6,
        approval_style: ApprovalStyle | None = None,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        allowed_origins: Collection[str] = (),
    ) -> None:
        if not callable(user_id):
            raise ConfigurationError("user_id must be a function of the connection that returns the user's id.")
        if sdk_version not in (5, 6, 7):
            raise ConfigurationError("sdk_version must be 5, 6 or 7.")
        for origin in allowed_origins:
            if "://" not in origin or origin.endswith("/"):
                raise ConfigurationError(f"An allowed origin looks like https://app.example.com, not {origin!r}.")
        self.limits = limits or Limits()
        self.allowed_origins = frozenset(allowed_origins)
        self._runner = build_runner(
            agent,
            app_name=app_name,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
        )
        self._owns_runner = self._runner is not agent
        self._user_id = user_id
        self._run_config = run_config
        self._sdk_version: SdkVersion = sdk_version
        self._approval_style: ApprovalStyle | None = approval_style
        self._prepare = prepare
        self._runs: dict[tuple[str, str], RequestRun | None] = {}  # None: a turn is about to start

    # The transports stand above the bridge; these two are its only look upwards.

    def router(self, prefix: str = "") -> "APIRouter":
        """All routes below `prefix`, for `app.include_router`. It closes the bridge when the application ends."""
        from .transports.router import build_router

        return build_router(self, prefix)

    async def respond(self, request: Request) -> Response:
        """One turn, inside a route of your own."""
        from .transports.http import respond

        return await respond(self, request)

    async def aclose(self) -> None:
        """Stop what runs and let go of the runner. For those who do not use the router's lifespan."""
        await asyncio.gather(*(run.stop() for run in self._runs.values() if run is not None))
        if self._owns_runner:
            await self._runner.close()

    async def identify(self, connection: HTTPConnection) -> str:
        try:
            user = self._user_id(connection)
            if inspect.isawaitable(user):
                user = await user
        except Exception as error:
            logger.info("user_id refused a connection: %s", type(error).__qualname__)
            raise NoUser from None
        if not user:
            raise NoUser
        return user

    # -- a turn -------------------------------------------------------------------------------------------------------

    async def open_turn(self, connection: HTTPConnection, user: str, body: bytes, files_root: str) -> ChunkLog:
        """Start the run of one turn, and give the log that it writes. Refuses before anything is stored."""
        header = connection.headers.get("x-ai-sdk-version")
        if len(body) > self.limits.threaded_decode_bytes:
            turn = await asyncio.to_thread(decode_turn, body, self.limits, sdk_version_header=header)
        else:
            turn = decode_turn(body, self.limits, sdk_version_header=header)
        prepared = await self._prepared(connection, body)
        key = (user, turn.chat_id)
        if key in self._runs:
            raise RunActive
        self._runs[key] = None  # ours from here on, also while we wait for the session
        try:
            run = await self._new_run(self._chat(user, turn.chat_id, files_root), turn, prepared)
        except BaseException:
            del self._runs[key]
            raise
        self._runs[key] = run
        run.start()
        return run.log

    async def _new_run(self, chat: Chat, turn: Turn, prepared: Prepared) -> RequestRun:
        content, user_message_id = encode_content(turn), turn.message_id
        if turn.again is not None:
            session = await chat.load()
            past = session and turn.target_id and find_turn(session.events, turn.target_id)
            if past:
                if turn.again == "regenerate":
                    content, user_message_id = past.content, past.user_message_id
                await chat.rewind_before(past.invocation_id)
            # else the message never got here, or its chat was deleted: it is as good as new
        ids = MessageIds(user_message_id=user_message_id, message_id=f"msg-{secrets.token_urlsafe(12)}")
        custom_metadata = {**prepared.get("custom_metadata", {}), **ids.metadata()}
        request = RunRequest(
            ids=ids,
            content=content,
            run_config=effective_run_config(self._run_config, prepared.get("run_config", {}), custom_metadata),
            state_delta=prepared.get("state_delta"),
        )
        translator = Translator(
            root_author=chat.root_author,
            sdk_version=turn.sdk_version or self._sdk_version,
            approval_style=turn.approval_style or self._approval_style,
            send_state=prepared.get("send_state", ()),
            send_nodes=prepared.get("send_nodes", False),
        )
        log = ChunkLog(secrets.token_urlsafe(3))
        key = (chat.user_id, chat.chat_id)
        return RequestRun(chat, request, translator, log, self.limits, on_end=lambda: self._runs.pop(key, None))

    async def _prepared(self, connection: HTTPConnection, body: bytes) -> Prepared:
        if self._prepare is None:
            return {}
        prepared = self._prepare(connection, decode_body(body))
        if inspect.isawaitable(prepared):
            prepared = await prepared
        return prepared or {}

    def running(self, user: str, chat_id: str) -> ChunkLog | None:
        """The log of the turn that is running in this chat."""
        run = self._runs.get((user, chat_id))
        return run.log if run is not None else None

    async def stop(self, user: str, chat_id: str) -> None:
        """End what runs in this chat, if anything does. When this returns, the next turn may come."""
        run = self._runs.get((user, chat_id))
        if run is not None:
            await run.stop()

    # -- the conversation ---------------------------------------------------------------------------------------------

    async def messages(self, connection: HTTPConnection, user: str, chat_id: str, files_root: str) -> list[UIMessage]:
        """The conversation as its clients saw it, without the answer that is still running."""
        chat = self._chat(user, chat_id, files_root)
        session = await chat.load()
        if session is None:
            raise NotFound
        return await self._history(chat, session.events, connection.headers.get("x-ai-sdk-version"))

    async def _history(self, chat: Chat, events: "list[Event]", sdk_version: str | None) -> list[UIMessage]:
        run = self._runs.get((chat.user_id, chat.chat_id))
        return await encode_history(
            chat,
            events,
            sdk_version=decode_sdk_version(None, sdk_version) or self._sdk_version,
            approval_style=self._approval_style,
            running=run.message_id if run is not None else None,
        )

    async def chats(self, user: str, files_root: str) -> list[ChatSummary]:
        """The user's newest chats, newest first."""
        listed = await self._runner.session_service.list_sessions(app_name=self._runner.app_name, user_id=user)
        newest = sorted(listed.sessions, key=lambda session: session.last_update_time, reverse=True)
        summaries: list[ChatSummary] = []
        for session in [session for session in newest if is_chat_id(session.id)][: self.limits.max_listed_chats]:
            chat = self._chat(user, session.id, files_root)
            loaded = await chat.load()
            if loaded is None:  # deleted meanwhile
                continue
            told = await self._history(chat, loaded.events, None)
            updated_at = datetime.fromtimestamp(loaded.last_update_time, UTC).isoformat(timespec="milliseconds")
            summaries.append(
                {
                    "id": session.id,
                    "title": title_of(told),
                    "updatedAt": updated_at.replace("+00:00", "Z"),
                    "waiting": waits_for_the_user(told),
                }
            )
        return summaries

    async def delete(self, user: str, chat_id: str) -> None:
        chat = self._chat(user, chat_id, "")
        if await chat.load() is None:
            raise NotFound
        await self.stop(user, chat_id)
        await chat.delete()

    async def load_file(self, user: str, chat_id: str, name: str, version: int | None) -> tuple[bytes, str]:
        """An artifact of the caller's own chat: its bytes and media type."""
        file = await self._chat(user, chat_id, "").load_file(name, version)
        if file is None:
            raise NotFound
        return file

    def _chat(self, user: str, chat_id: str, files_root: str) -> Chat:
        if not is_chat_id(chat_id):
            raise NotFound
        return Chat(self._runner, user, chat_id, f"{files_root}/{quote(chat_id, safe='')}/files")
