"""ChatBridge: one ADK agent for any number of AI SDK clients. The front door; the work is done in `chat/`."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from .adk.calls.gate import ApprovalGate
from .adk.calls.named_tools import NamedTools
from .adk.calls.policy import ApprovalPolicy
from .adk.generator_tools import warn_of_generator_tools
from .adk.live.talking_on import LiveWhileWaiting
from .adk.runner import AgentLike, RunnerOptions, build_runner
from .adk.translate.translators import Translators
from .chat.announcer import OnWaiting
from .chat.hooks import Groups, Prepare, UserId, require_function
from .chat.listing import ChatSummary
from .chat.segments import RunDefaults
from .chat.service import ChatService, Close, ServiceSettings
from .errors import ConfigurationError
from .limits import Limits
from .protocol.chunks import SdkVersion
from .protocol.fold import UIMessage
from .protocol.messages import ApprovalStyle
from .store import open_store
from .store.base import AuditEntry, AuditFilter, Store
from .transports.http import respond
from .transports.router import build_router
from .transports.security import Access
from .transports.surface import Surface
from .transports.unfinished import UnfinishedRequests

if TYPE_CHECKING:
    from fastapi import APIRouter
    from google.adk.agents.run_config import RunConfig
    from google.adk.artifacts import BaseArtifactService
    from google.adk.memory import BaseMemoryService
    from google.adk.sessions import BaseSessionService


class ChatBridge:
    """Puts an ADK agent, `App` or `Runner` behind AI SDK clients.

    `user_id` says who the caller is: it gets the connection (HTTP or WebSocket) and returns the user's id, or `None` to
    refuse. There is no default, since a fixed user would share all chats with everybody.

    ```python
    bridge = ChatBridge(root_agent, user_id=lambda connection: connection.session.get("user"))
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    ```
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
        groups: Groups | None = None,
        on_waiting: OnWaiting | None = None,
        sdk_version: SdkVersion = 6,
        approval_style: ApprovalStyle | None = None,
        live_while_waiting: LiveWhileWaiting | None = None,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        allowed_origins: Collection[str] = (),
        allowed_headers: Collection[str] = (),
        allowed_hosts: Collection[str] = (),
        direct_text: bool = True,
        merge_text: bool = False,
    ) -> None:
        for option, given, kind in (("approvals", approvals, ApprovalPolicy), ("limits", limits, Limits)):
            if given is not None and not isinstance(given, kind):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may be untyped
                raise ConfigurationError(f"{option} must be {kind.__name__}(...), not {type(given).__name__}.")
        decide = approvals.decide if approvals else None
        for option, hook in (("user_id", user_id), ("groups", groups), ("prepare", prepare), ("decide", decide)):
            if option == "user_id" or hook is not None:
                require_function(option, hook)
        if approval_style not in (None, "approval-request", "confirmation-tool"):
            raise ConfigurationError('approval_style must be "approval-request", "confirmation-tool" or None.')
        if sdk_version not in (5, 6, 7):
            raise ConfigurationError("sdk_version must be 5, 6 or 7.")
        if live_while_waiting not in (None, "continue", "refuse"):
            raise ConfigurationError('live_while_waiting must be "continue", "refuse" or None.')
        access = Access(origins=allowed_origins, headers=allowed_headers, hosts=allowed_hosts)
        settings = ServiceSettings(
            user_id=user_id,
            groups=groups,
            on_waiting=on_waiting,
            prepare=prepare,
            policy=approvals or ApprovalPolicy(),
            limits=limits or Limits(),
            direct_text=direct_text,
            merge_text=merge_text,
            defaults=RunDefaults(
                run_config=run_config,
                translators=Translators(sdk_version=sdk_version, approval_style=approval_style),
                live_while_waiting=live_while_waiting,
            ),
        )
        opened = open_store(store)
        gate = ApprovalGate(opened, settings.policy, settings.limits.lease_s)
        options = RunnerOptions(
            app_name=app_name,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
        )
        runner = build_runner(agent, options, gate)
        gate.named_tools = NamedTools(settings.policy, runner.agent)
        warn_of_generator_tools(runner.agent)
        close_last: list[Close] = []
        if runner is not agent:
            close_last.append(runner.close)
        if opened is not store:
            close_last.append(opened.aclose)
        self.limits = settings.limits
        self._service = ChatService(runner, opened, gate, settings, close_last)
        self._surface = Surface(self._service, access, UnfinishedRequests(settings.limits))
        self._prefix = ""

    # -- routes -------------------------------------------------------------------------------------------------------

    def router(self, prefix: str = "") -> "APIRouter":
        """All routes below `prefix`. Its lifespan closes the bridge when the application ends.

        ```python
        app.include_router(bridge.router("/api/chat"))
        ```
        """
        self._prefix = prefix
        return build_router(self._surface, prefix)

    async def respond(self, request: Request) -> Response:
        """One turn, inside a route of your own.

        ```python
        @app.post("/my/chat")
        async def chat(request: Request) -> Response:
            return await bridge.respond(request)
        ```
        """
        return await respond(self._surface, request)

    # -- chats --------------------------------------------------------------------------------------------------------

    async def messages(self, user_id: str, chat_id: str) -> list[UIMessage]:
        """The conversation as its clients saw it, without an answer that is still running. Raises `NotFound`.

        ```python
        for message in await bridge.messages("ann", "chat-1"):
            print(message["role"], message["parts"])
        ```
        """
        return await self._service.history(user_id, chat_id, files_root=self._prefix).load()

    async def chats(self, user_id: str) -> list[ChatSummary]:
        """The user's newest chats (`Limits.max_listed_chats`), newest first.

        ```python
        waiting = [chat["id"] for chat in await bridge.chats("ann") if chat["waiting"]]
        ```
        """
        return await self._service.chats(user_id)

    async def stop(self, user_id: str, chat_id: str) -> None:
        """End what runs in this chat, if anything does. When this returns, the next turn may come. Raises a `Refusal`
        with the status 503 if another process runs the chat, or if its run has not started after 5 s.

        ```python
        await bridge.stop("ann", "chat-1")
        ```
        """
        await self._service.stop(user_id, chat_id)

    async def delete(self, user_id: str, chat_id: str) -> None:
        """Delete a chat, its files and its approvals, but not its audit trail. Started tools finish first. Raises
        `NotFound`, or `RunActive` if another process still runs the chat. Can be repeated if it fails.

        ```python
        for chat in await bridge.chats("ann"):
            await bridge.delete("ann", chat["id"])
        ```
        """
        await self._service.delete(user_id, chat_id)

    async def audit(
        self,
        user_id: str | None = None,
        chat_id: str | None = None,
        *,
        tool: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Sequence[AuditEntry]:
        """What was asked, decided and run, by whom and when, oldest first: in a chat, of a user's chats, with a tool,
        in a span of time (seconds since 1970). It outlives the chats.

        ```python
        for entry in await bridge.audit("ann", "chat-1"):
            print(entry.at, entry.tool, entry.state, entry.by)
        payments = await bridge.audit(tool="process_payment", since=time.time() - 86400)
        ```
        """
        wanted = AuditFilter(user_id=user_id, chat_id=chat_id, tool=tool, since=since, until=until)
        return await self._service.find_audit(wanted)

    # -- calls --------------------------------------------------------------------------------------------------------

    async def complete_call(
        self, ref: str, output: Any = None, *, error: str | None = None, final: bool = True
    ) -> dict[str, Any]:
        """Report how far a long-running call is (`final=False`), or its end: an `output`, or an `error`. `ref` is what
        `call_ref(tool_context)` gave to the tool. The end is recorded, put into the conversation and sent to the model,
        even if nobody is connected. Returns what is recorded, also for a repeat: `{"output": ...}` or
        `{"error": text}`.
        Raises `NotFound` if there is no such call, or its chat was deleted.

        ```python
        await bridge.complete_call(ref, {"rows": 1200})
        ```
        """
        if error is not None and (output is not None or not final):
            raise ValueError("An error is the end of a call, and has no output.")
        result = {"output": output} if error is None else {"error": error}
        return await self._service.complete_call(ref, result, is_final=final)

    async def complete_auth(
        self,
        user_id: str,
        callback_url: str | None = None,
        *,
        request_id: str | None = None,
        api_key: str | None = None,
    ) -> None:
        """Pass on the consent that a user has given to a provider: `callback_url` is the URL of your application to
        which the provider has redirected the user. The OAuth `state` in it names the request, among those that wait for
        this user. The tool runs again, and its message goes on. An API key is passed on with the `request_id` of
        `data-adk-auth-request` instead. Raises `NotFound` if no such request waits for this user.

        ```python
        @app.get("/oauth/callback")
        async def callback(request: Request) -> str:
            await bridge.complete_auth(user_of(request), str(request.url))
            return "You may close this window."
        ```
        """
        if callback_url is not None and request_id is None and api_key is None:
            await self._service.give_consent(user_id, callback_url)
        elif callback_url is None and request_id is not None and api_key is not None:
            await self._service.give_key(user_id, request_id, api_key)
        else:
            raise ValueError("Give either callback_url, or request_id and api_key.")

    # -- the process --------------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Continue now the work of processes that have died. A bridge looks for such work by itself every few seconds,
        from the start of the application that has its router, or from its first request on.

        ```python
        await bridge.recover()
        ```
        """
        await self._service.recover()

    async def drain(self) -> None:
        """Take no new turns, let started tools finish (`Limits.drain_s`), and end all streams with an `error` that says
        that the server restarts. Calls that wait for a person go on waiting. The next process runs calls that are
        approved and not started. Call it before a server closes its connections; `aclose` does it, too.

        ```python
        await bridge.drain()
        ```
        """
        await self._service.drain()

    async def aclose(self) -> None:
        """Drain, then close what the bridge has opened. Only for those who do not use the router's lifespan.

        ```python
        await bridge.aclose()
        ```
        """
        await self._service.aclose()
