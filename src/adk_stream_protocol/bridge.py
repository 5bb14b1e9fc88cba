"""ChatBridge: one ADK agent for any number of AI SDK clients. It orders the effects of a turn."""

import asyncio
import inspect
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from .adk.asked_calls import SessionCall, find_asked_calls, outcome_events
from .adk.chat import Chat, MessageIds
from .adk.content import encode_content
from .adk.gate import ApprovalGate, ApprovalPolicy
from .adk.history import encode_history, find_turn, title_of, waits_for_the_user
from .adk.live_message import LiveMessage
from .adk.live_run import LiveRun, LiveServices
from .adk.live_segments import LiveListener
from .adk.request_run import RequestRun, RunRequest, effective_live_config, effective_run_config
from .adk.runner import AgentLike, build_runner
from .adk.translator import Translator
from .answering import (
    catch_up,
    continue_message,
    known_outputs,
    park_calls,
    refuse_call,
    take_answers,
    tell_outcome,
)
from .chunk_log import ChunkLog
from .errors import ConfigurationError, MalformedRequest, NotFound, NoUser, RunActive, StoreUnavailable
from .limits import Limits
from .protocol.answers import Answer
from .protocol.approvals import Approval, CallKey, ChatKey
from .protocol.chunks import SdkVersion
from .protocol.fold import UIMessage
from .protocol.frames import Send, sdk_version_of
from .protocol.messages import ApprovalStyle
from .protocol.turn import Turn, decode_body, decode_sdk_version, decode_turn, is_chat_id, read_turn
from .runs import ChatRuns, Held
from .store import open_store
from .store.base import Store

if TYPE_CHECKING:
    from fastapi import APIRouter
    from google.adk.agents.run_config import RunConfig
    from google.adk.artifacts import BaseArtifactService
    from google.adk.events import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.sessions import BaseSessionService

logger = logging.getLogger(__name__)

_RECOVERY_ATTEMPTS = 2  # at one call: what ADK cannot take up then, the tool having been renamed say, it never will


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
        store: Store | str = "memory",
        approvals: ApprovalPolicy | None = None,
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
        self._policy = approvals or ApprovalPolicy()
        self._store = open_store(store)
        self._owns_store = self._store is not store
        self._gate = gate = ApprovalGate(self._store, self._policy, self.limits.lease_s)
        self._runner = build_runner(
            agent,
            app_name=app_name,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
            gate=gate,
        )
        self._owns_runner = self._runner is not agent
        self._user_id = user_id
        self._run_config = run_config
        self._sdk_version: SdkVersion = sdk_version
        self._approval_style: ApprovalStyle | None = approval_style
        self._prepare = prepare
        self._runs = ChatRuns(self._store, gate, self.limits.lease_s)
        self._recovering: asyncio.Task[None] | None = None
        self._attempts: Counter[CallKey] = Counter()
        self._opening: dict[ChatKey, asyncio.Task[LiveRun]] = {}
        self.before_close: list[Callable[[], Awaitable[None]]] = []
        """What its transports have to do first."""
        self._listeners: defaultdict[ChatKey, set[LiveListener]] = defaultdict(set)

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
        for close in self.before_close:
            await close()
        if self._recovering is not None:
            self._recovering.cancel()
        await self._runs.stop_all()
        if self._owns_runner:
            await self._runner.close()
        if self._owns_store:
            await self._store.aclose()

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
        prepared = await self._prepared(connection, lambda: decode_body(body))
        chat = self._chat(user, turn.chat_id, files_root)
        if turn.answers is not None:
            return await self._answer(chat, turn, turn.answers, prepared)
        held = await self._runs.begin(chat.key)
        if held is None:
            raise RunActive
        try:
            await catch_up(self._store, chat, held)
            run = await self._new_run(chat, turn, prepared, held)
        except BaseException:
            await self._runs.end(held.lease)
            raise
        return self._start(chat, run)

    async def _new_run(self, chat: Chat, turn: Turn, prepared: Prepared, held: Held) -> RequestRun:
        content, user_message_id = encode_content(turn), turn.message_id
        if turn.again is not None:
            session = await chat.load()
            past = session and turn.target_id and find_turn(session.events, turn.target_id)
            if past and not past.is_alone:
                raise MalformedRequest("What was said in a live session cannot be taken back.")
            if past:
                if turn.again == "regenerate":
                    content, user_message_id = past.content, past.user_message_id
                await chat.rewind_before(past.invocation_id)
            # else the message never got here, or its chat was deleted: it is as good as new
        message_id = f"msg-{secrets.token_urlsafe(12)}"
        ids = MessageIds(user_message_id=user_message_id, message_id=message_id)
        translator = self._translator(chat, prepared, turn.sdk_version, turn.approval_style)
        request = RunRequest(
            ids=ids,
            opening=translator.start(message_id),
            contents=[content],
            run_config=self._run_config_for(ids, prepared),
            state_delta=prepared.get("state_delta"),
        )
        return self._run(chat, held, request, translator, ChunkLog(secrets.token_urlsafe(3)))

    async def _answer(
        self,
        chat: Chat,
        turn: Turn,
        parts: Sequence[dict[str, Any]],
        prepared: Prepared,
        by: LiveListener | None = None,
    ) -> ChunkLog:
        """Write the answers down, and go on with the message that they belong to; or read what already does."""
        taken = await take_answers(
            self._store,
            chat,
            parts,
            turn.message_id,
            browser_s=self._policy.browser_deadline_s,
            limits=self.limits,
            announced=self._announced(chat.key),
        )
        start_id = turn.message_id or taken.message_id
        if taken.open_calls:
            live = self._runs.get(chat.key)
            if isinstance(live, LiveRun):
                recorded = await self._approvals(chat.key)
                known = known_outputs(taken.answers, recorded)
                told = await live.take_up(taken.message_id, start_id, taken.open_calls, known, recorded, by)
                if told is not None:
                    return told
                await live.end_if_idle()  # they are not its own: request mode takes them up
            place = await self._runs.wait_for(chat.key, taken.open_calls, self.limits.max_run_s)
            if place is None:
                raise RunActive
            if isinstance(place, RequestRun):
                return place.log
            translator = self._translator(chat, prepared, turn.sdk_version, turn.approval_style)
            log = await self._continue(chat, place, translator, prepared, taken.message_id, start_id, taken.answers)
            if log is not None:
                return log
            # Somebody else was faster, and has come to the end already.
        run = self._runs.get(chat.key)
        if run is not None and run.message_id == taken.message_id and run.log is not None:
            return run.log
        translator = self._translator(chat, prepared, turn.sdk_version, turn.approval_style)
        recorded, announced = await self._approvals(chat.key), self._announced(chat.key)
        return await tell_outcome(chat, recorded, translator, taken, start_id, announced)

    async def _continue(
        self,
        chat: Chat,
        held: Held,
        translator: Translator,
        prepared: Prepared,
        message_id: str,
        start_id: str,
        answers: Sequence[Answer[SessionCall]],
    ) -> ChunkLog | None:
        try:
            ids = MessageIds(user_message_id=None, message_id=message_id)
            segment = await continue_message(
                chat,
                held,
                translator,
                message_id,
                start_id,
                answers,
                run_config=self._run_config_for(ids, prepared),
                state_delta=prepared.get("state_delta"),
            )
        except BaseException:
            await self._runs.end(held.lease)
            raise
        if segment is None:
            await self._runs.end(held.lease)
            return None
        log, request = segment
        return self._start(chat, self._run(chat, held, request, translator, log))

    # -- a live session -----------------------------------------------------------------------------------------------

    async def open_live_turn(
        self, connection: HTTPConnection, user: str, frame: Send, files_root: str, by: LiveListener
    ) -> ChunkLog:
        """What a client has sent over a socket: words for the chat's live session, or answers."""
        turn = read_turn(frame.request(), self.limits, sdk_version_header=sdk_version_of(frame))
        prepared = await self._prepared(connection, lambda: {**(frame.body or {}), "id": frame.id})
        chat = self._chat(user, turn.chat_id, files_root)
        if turn.answers is not None:
            log = await self._answer(chat, turn, turn.answers, prepared, by)
        elif turn.again is not None:
            raise MalformedRequest("In a live session nothing can be said again. Send it as a new message.")
        else:
            self.listen(user, turn.chat_id, by)
            live = await self._live_run(chat, prepared)
            translator = self._translator(chat, prepared, turn.sdk_version, turn.approval_style)
            message = LiveMessage(translator, user_message_id=turn.message_id, is_typed=True)
            log = await live.say(message, encode_content(turn), prepared.get("state_delta"), by)
        return log

    async def open_live_voice(
        self, connection: HTTPConnection, user: str, chat_id: str, files_root: str, by: LiveListener
    ) -> LiveRun:
        """The live session that a client is about to speak to."""
        self.listen(user, chat_id, by)
        prepared = await self._prepared(connection, lambda: {"id": chat_id})
        return await self._live_run(self._chat(user, chat_id, files_root), prepared)

    def listen(self, user: str, chat_id: str, listener: LiveListener) -> None:
        """A client is there: a live session of this chat goes on as long as it is."""
        if not listener.is_gone:
            self._listeners[self._key(user, chat_id)].add(listener)
        self._listeners_changed(self._key(user, chat_id))

    def unlisten(self, user: str, chat_id: str, listener: LiveListener) -> None:
        self._listeners[self._key(user, chat_id)].discard(listener)
        self._listeners_changed(self._key(user, chat_id))

    def _listeners_changed(self, chat: ChatKey) -> None:
        live = self._runs.get(chat)
        if isinstance(live, LiveRun):
            live.watch_listeners()
        elif not self._listeners[chat]:
            del self._listeners[chat]

    async def _live_run(self, chat: Chat, prepared: Prepared) -> LiveRun:
        run = self._runs.get(chat.key)
        if isinstance(run, LiveRun):
            if not run.is_ending:
                return run
            await run.has_ended.wait()
        opening = self._opening.get(chat.key)
        if opening is None:  # words and voice may come together, or from two pages
            opening = asyncio.create_task(self._open_live_run(chat, prepared), name="adk-stream open live")
            self._opening[chat.key] = opening
            opening.add_done_callback(lambda _: self._opening.pop(chat.key))
        return await asyncio.shield(opening)

    async def _open_live_run(self, chat: Chat, prepared: Prepared) -> LiveRun:
        held = await self._runs.begin(chat.key)
        if held is None:
            raise RunActive
        try:
            await catch_up(self._store, chat, held)
        except BaseException:
            await self._runs.end(held.lease)
            raise
        live = LiveRun(
            chat,
            held.lease,
            self._gate,
            self.limits,
            effective_live_config(
                self._run_config, prepared.get("run_config", {}), prepared.get("custom_metadata", {})
            ),
            LiveServices(
                new_translator=lambda: self._translator(chat, prepared),
                refuse=lambda call, reason: refuse_call(self._store, chat.key, call, reason),
                park=lambda: park_calls(self._store, chat),
                let_go=lambda: self._live_run_ended(held),
            ),
            self._listeners[chat.key],
        )
        self._runs.put(chat.key, live)
        live.start()
        return live

    def _announced(self, chat: ChatKey) -> "list[Event]":
        run = self._runs.get(chat)
        return list(run.announced) if isinstance(run, LiveRun) else []

    async def _live_run_ended(self, held: Held) -> None:
        await self._runs.end(held.lease)
        self._listeners_changed(held.lease.chat)

    def _start(self, chat: Chat, run: RequestRun) -> ChunkLog:
        self._runs.put(chat.key, run)
        run.start()
        return run.log

    def _run(self, chat: Chat, held: Held, request: RunRequest, translator: Translator, log: ChunkLog) -> RequestRun:
        return RequestRun(
            chat,
            request,
            translator,
            log,
            self.limits,
            approvals=lambda: self._approvals(chat.key),
            let_go=lambda: self._let_go(held, request),
        )

    async def _let_go(self, held: Held, request: RunRequest) -> None:
        await self._runs.give_up(held.lease, request.answered)
        await self._runs.end(held.lease)

    def _translator(
        self,
        chat: Chat,
        prepared: Prepared,
        sdk_version: SdkVersion | None = None,
        approval_style: ApprovalStyle | None = None,
    ) -> Translator:
        return Translator(
            root_author=chat.root_author,
            sdk_version=sdk_version or self._sdk_version,
            approval_style=approval_style or self._approval_style,
            send_state=prepared.get("send_state", ()),
            send_nodes=prepared.get("send_nodes", False),
        )

    def _run_config_for(self, ids: MessageIds, prepared: Prepared) -> "RunConfig":
        custom_metadata = {**prepared.get("custom_metadata", {}), **ids.metadata()}
        return effective_run_config(self._run_config, prepared.get("run_config", {}), custom_metadata)

    async def _approvals(self, chat: ChatKey) -> dict[CallKey, Approval]:
        return {approval.call: approval for approval in (await self._store.read(chat)).approvals}

    # -- after a crash ------------------------------------------------------------------------------------------------

    def watch_for_lost_runs(self) -> None:
        """Take up what other workers have left behind, from now on. The router does so while its application lives."""
        if self._recovering is None:
            self._recovering = asyncio.create_task(self._recover_for_ever(), name="adk-stream recovery")

    async def _recover_for_ever(self) -> None:
        while True:
            try:
                await self.recover()
            except StoreUnavailable:
                logger.error("lost runs were not looked for: the store is down")
            await asyncio.sleep(self.limits.lease_s)

    async def recover(self) -> None:
        """One look for runs that were lost with their worker: what was approved and not begun is done, and what was
        begun is called unknown."""
        for key in await self._store.abandoned(self.limits.lease_s):
            if key.app_name == self._runner.app_name:
                try:
                    await self._recover_chat(self._chat(key.user_id, key.chat_id, ""))
                except Exception as error:  # one chat that cannot be read keeps no other waiting
                    logger.error("a lost run was not taken up: %s", type(error).__qualname__)

    async def _recover_chat(self, chat: Chat) -> None:
        held = await self._runs.begin(chat.key)
        if held is None:
            return
        try:
            session = await chat.load()
            asked = find_asked_calls(chat.key, session.events if session else [], held.snapshot.approvals)
            tried = [call for call in asked if call.is_undelivered and self._attempts[call.key] < _RECOVERY_ATTEMPTS]
            lost = next(iter(tried), None)
        except BaseException:
            await self._runs.end(held.lease)
            raise
        if lost is None:
            await self._runs.end(held.lease)
            return
        self._attempts[lost.key] += 1
        await self._continue(chat, held, self._translator(chat, {}), {}, lost.message_id, lost.message_id, ())

    async def _prepared(self, connection: HTTPConnection, body: Callable[[], dict[str, Any]]) -> Prepared:
        if self._prepare is None:
            return {}
        prepared = self._prepare(connection, body())
        if inspect.isawaitable(prepared):
            prepared = await prepared
        return prepared or {}

    def running(self, user: str, chat_id: str) -> ChunkLog | None:
        """The log of the turn that is running in this chat."""
        run = self._runs.get(self._key(user, chat_id))
        return run.log if run is not None else None

    async def stop(self, user: str, chat_id: str) -> None:
        """End what runs in this chat, if anything does. When this returns, the next turn may come."""
        run = self._runs.get(self._key(user, chat_id))
        if run is not None:
            await run.stop()

    def live_run(self, user: str, chat_id: str) -> LiveRun | None:
        run = self._runs.get(self._key(user, chat_id))
        return run if isinstance(run, LiveRun) else None

    def _key(self, user: str, chat_id: str) -> ChatKey:
        return ChatKey(self._runner.app_name, user, chat_id)

    # -- the conversation ---------------------------------------------------------------------------------------------

    async def messages(self, connection: HTTPConnection, user: str, chat_id: str, files_root: str) -> list[UIMessage]:
        """The conversation as its clients saw it, without the answer that is still running."""
        chat = self._chat(user, chat_id, files_root)
        session = await chat.load()
        if session is None:
            raise NotFound
        return await self._history(chat, session.events, connection.headers.get("x-ai-sdk-version"))

    async def _history(self, chat: Chat, events: "list[Event]", sdk_version: str | None) -> list[UIMessage]:
        run = self._runs.get(chat.key)
        approvals = await self._approvals(chat.key)
        events = [*events, *self._announced(chat.key)]
        asked = find_asked_calls(chat.key, events, approvals.values())
        untold = outcome_events(call for call in asked if call.is_undelivered and call.approval.runs == "browser")
        return await encode_history(
            chat,
            [*events, *untold],
            sdk_version=decode_sdk_version(None, sdk_version) or self._sdk_version,
            approval_style=self._approval_style,
            approvals=approvals,
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
        await self._store.forget(chat.key)

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
