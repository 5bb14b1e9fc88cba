"""ChatBridge: one ADK agent for any number of AI SDK clients. It orders the effects of a turn."""

import asyncio
import inspect
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from .adk.content import encode_content
from .adk.request_run import RequestRun, RunRequest, effective_run_config
from .adk.runner import AgentLike, build_runner
from .adk.translator import Translator
from .chunk_log import ChunkLog
from .errors import ConfigurationError, NotFound, NoUser, RunActive
from .limits import Limits
from .protocol.chunks import SdkVersion
from .protocol.messages import ApprovalStyle
from .protocol.turn import decode_body, decode_turn

if TYPE_CHECKING:
    from fastapi import APIRouter
    from google.adk.agents.run_config import RunConfig
    from google.adk.artifacts import BaseArtifactService
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
        self._runs: dict[tuple[str, str], RequestRun] = {}

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
        await asyncio.gather(*(run.stop() for run in list(self._runs.values())))
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
        message_id = f"msg-{secrets.token_urlsafe(12)}"
        ids = {"adk_stream": {"user_message_id": turn.message_id, "message_id": message_id}}
        request = RunRequest(
            user_id=user,
            chat_id=turn.chat_id,
            message_id=message_id,
            content=encode_content(turn),
            run_config=effective_run_config(
                self._run_config,
                prepared.get("run_config", {}),
                {**prepared.get("custom_metadata", {}), **ids},
            ),
            state_delta=prepared.get("state_delta"),
            files_url=f"{files_root}/{turn.chat_id}/files",
        )
        translator = Translator(
            root_author=self._runner.agent.name if self._runner.agent else "",
            sdk_version=turn.sdk_version or self._sdk_version,
            approval_style=turn.approval_style or self._approval_style,
            send_state=prepared.get("send_state", ()),
            send_nodes=prepared.get("send_nodes", False),
        )
        run = RequestRun(
            self._runner,
            request,
            translator,
            ChunkLog(secrets.token_urlsafe(3)),
            on_end=lambda: self._runs.pop(key, None),
        )
        self._runs[key] = run
        run.start()
        return run.log

    async def _prepared(self, connection: HTTPConnection, body: bytes) -> Prepared:
        if self._prepare is None:
            return {}
        prepared = self._prepare(connection, decode_body(body))
        if inspect.isawaitable(prepared):
            prepared = await prepared
        return prepared or {}

    async def load_file(self, user: str, chat_id: str, name: str, version: int | None) -> tuple[bytes, str]:
        """An artifact of the caller's own chat: its bytes and media type."""
        service = self._runner.artifact_service
        part = service and await service.load_artifact(
            app_name=self._runner.app_name, user_id=user, session_id=chat_id, filename=name, version=version
        )
        if not part:
            raise NotFound
        if part.inline_data is not None and part.inline_data.data is not None:
            return part.inline_data.data, part.inline_data.mime_type or "application/octet-stream"
        if part.text is not None:
            return part.text.encode("utf-8", "replace"), "text/plain; charset=utf-8"
        raise NotFound
