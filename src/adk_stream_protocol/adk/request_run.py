"""Request mode: `Runner.run_async` in a task of its own, from the first chunk of a segment to its terminal one."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage] -- the documented path
)
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.telemetry.context import TelemetryConfig
from google.genai import types

from ..chunk_log import ChunkLog
from ..errors import StoreUnavailable
from ..limits import Limits
from ..protocol.answers import CONFIRMATION
from ..protocol.approvals import Approval, CallKey
from ..protocol.chunks import AnyChunk, encode_chunks
from .chat import Chat, MessageIds
from .event_parts import ABORTED
from .failures import public_failure_text
from .translator import Translator

logger = logging.getLogger(__name__)

# How long ADK may take to end a run by itself, sealing its open calls. Some agents do not look at the signal while
# their model is silent, and some tools never do.
_STOP_GRACE_S = 1
_FIRST_READER_S = 10


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What to run."""

    ids: MessageIds
    opening: Sequence[AnyChunk]
    """With which the segment begins."""
    contents: Sequence[types.Content]
    """One run of ADK's for each. None: there is nothing to tell ADK yet."""
    run_config: RunConfig
    state_delta: dict[str, Any] | None = None
    appended: Sequence[Event] = ()
    """What is put into the session first."""
    answered: frozenset[CallKey] = frozenset()
    """The calls whose answers this run takes up."""


Approvals = Callable[[], Awaitable[Mapping[CallKey, Approval]]]


class RequestRun:
    """A run that belongs to its session: readers come and go, it goes on until it is done, stopped or out of bounds."""

    def __init__(
        self,
        chat: Chat,
        request: RunRequest,
        translator: Translator,
        log: ChunkLog,
        limits: Limits,
        approvals: Approvals,
        let_go: Callable[[], Awaitable[None]],
    ) -> None:
        """`approvals`: reads what is recorded about this chat's calls. `let_go`: lets the next turn come."""
        self.log = log
        self.message_id = request.ids.message_id
        self.answered = request.answered
        self.has_ended = asyncio.Event()
        self._chat = chat
        self._request = request
        self._translator = translator
        self._limits = limits
        self._approvals = approvals
        self._let_go = let_go
        self._abort = asyncio.Event()
        self._is_ending = False
        self._ended_by: str | None = "stop"  # until it turns out otherwise
        self._failure: str | None = None
        self._invocation_id = ""
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._write(list(self._request.opening))
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream run {self.log.segment}")
        self.log.on_readers_changed = self._watch_readers
        # The first reader may be on its way still, however short the patience is afterwards.
        patience_s = max(self._limits.unread_run_s, _FIRST_READER_S)
        self._unread_timer = asyncio.get_running_loop().call_later(patience_s, self._nobody_reads)

    async def stop(self) -> None:
        """End the run: ADK closes the model and seals open calls; what does not listen is cancelled, and what does
        not even then is left alone. The stream ends in any case, and the next turn may come."""
        self._abort.set()
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        if not self._is_ending:
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        await self._let_go()
        self._end()

    async def _drive(self) -> None:
        time_limit = asyncio.get_running_loop().call_later(self._limits.max_run_s, self._end_by, "time")
        try:
            await self._consume_in_session()
            if not self._abort.is_set():
                self._ended_by = None
        except LlmCallsLimitExceededError:
            self._ended_by = "model-calls"
        except Exception as error:
            log_failure(error, self.log.segment)
            self._ended_by, self._failure = "failure", public_failure_text(error)
        finally:
            self._is_ending = True
            time_limit.cancel()
            try:
                await self._keep_what_was_said()
                if self._translator.waiting.has_calls:
                    await self._read_approvals()
            finally:
                await self._let_go()  # before the last chunk: a client that reads it may send its next turn at once
                self._end()

    def _end(self) -> None:
        if self.log.is_closed:
            return
        self.log.on_readers_changed = lambda: None
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        self._write(last_words(self._translator, self._ended_by, self._failure))
        self.log.close()
        self.has_ended.set()

    async def _consume_in_session(self) -> None:
        await self._chat.append(self._request.appended)
        for content in self._request.contents:
            try:
                await self._consume(content)
            except SessionNotFoundError:
                if self._invocation_id or self._request.answered:
                    raise  # deleted meanwhile: what has run must not run again, and what was answered is gone
                # A runner of the user's own that does not create sessions.
                await self._chat.create()
                await self._consume(content)
            if self._abort.is_set():
                return

    async def _consume(self, content: types.Content) -> None:
        chat, request = self._chat, self._request
        events = chat.runner.run_async(
            user_id=chat.user_id,
            session_id=chat.chat_id,
            new_message=content,
            state_delta=request.state_delta if content is request.contents[0] else None,
            run_config=request.run_config,
            abort_signal=self._abort,
        )
        async with aclosing(events):
            async for event in events:
                self._invocation_id = event.invocation_id
                if event.partial:  # nearly all of them, and never with artifacts
                    self._write(self._translator.feed(event))
                else:
                    files = await chat.files(event.actions.artifact_delta)
                    asks = any(call.name == CONFIRMATION for call in event.get_function_calls())
                    if asks or event.error_code == ABORTED:
                        await self._read_approvals()
                    self._write(self._translator.feed(event, files))

    async def _read_approvals(self) -> None:
        try:
            self._translator.waiting.approvals = await self._approvals()
        except StoreUnavailable as error:  # the stream must go on with what is known
            log_failure(error, self.log.segment)

    def _write(self, chunks: list[AnyChunk]) -> None:
        if chunks and not self.log.is_closed:  # a run that was given up may still be talking
            self.log.append(encode_chunks(chunks))
            if self.log.size_bytes > self._limits.max_log_bytes and not self._abort.is_set():
                self._end_by("size")

    async def _keep_what_was_said(self) -> None:
        """ADK stores nothing of an answer that does not come to its end, but the user has read it. And not every
        agent tells why it ended."""
        if not self._invocation_id:
            return
        ids = replace(self._request.ids, ended_by=self._ended_by, failure=self._failure)
        events = half_said_events(self._translator, ids, self._invocation_id, self._chat.root_author)
        try:
            await self._chat.append(events)
        except Exception as error:  # the session is gone or busy: the stream must end all the same
            log_failure(error, self.log.segment)

    # -- bounds -------------------------------------------------------------------------------------------------------

    def _end_by(self, limit: str) -> None:
        self._ended_by = limit
        self._stop_soon()

    def _stop_soon(self) -> None:
        self._stopping = asyncio.create_task(self.stop(), name=f"adk-stream stop {self.log.segment}")

    def _watch_readers(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        if not self.log.is_read:
            loop = asyncio.get_running_loop()
            self._unread_timer = loop.call_later(self._limits.unread_run_s, self._nobody_reads)

    def _nobody_reads(self) -> None:
        if self._translator.tool_is_at_work:  # it may be paying: let it finish, and look again
            self._unread_timer = asyncio.get_running_loop().call_later(1, self._nobody_reads)
        else:
            self._stop_soon()


def half_said_events(translator: Translator, ids: MessageIds, invocation_id: str, root_author: str) -> list[Event]:
    """What was told of an answer and never stored, and why it ended."""
    half_said = translator.half_said()
    if ids.ended_by is not None and not half_said:
        half_said.append((root_author, None, []))  # for the reason alone
    return [
        Event(
            author=author,
            branch=branch,
            invocation_id=invocation_id,
            content=types.Content(role="model", parts=parts) if parts else None,
            custom_metadata=ids.metadata(),
        )
        for author, branch, parts in half_said
    ]


def last_words(translator: Translator, ended_by: str | None, failure: str | None) -> list[AnyChunk]:
    """How a stream ends: by itself, by a stop, by a failure, or by a limit."""
    lost = translator.waiting.end_lost()
    if ended_by is None:
        return [*lost, *translator.finish()]
    if ended_by == "stop":
        return [*lost, *translator.abort()]
    return [*lost, *(translator.fail(failure) if failure is not None else translator.finish(ended_by))]


def log_failure(error: Exception, segment: str) -> None:
    """Where a run failed, without what it said: messages of exceptions quote prompts, arguments and keys."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "unknown"
    logger.error("run %s failed: %s at %s", segment, type(error).__qualname__, where)
    logger.debug("details of run %s", segment, exc_info=error)


def effective_run_config(base: RunConfig | None, changes: Mapping[str, Any], metadata: dict[str, Any]) -> RunConfig:
    """The user's configuration with what every run of ours needs: streaming, telemetry resolved, our ids."""
    config = base or RunConfig()
    ours = {} if "streaming_mode" in config.model_fields_set else {"streaming_mode": StreamingMode.SSE}
    return _merged(config, {**ours, **changes}, metadata)


def effective_live_config(base: RunConfig | None, changes: Mapping[str, Any], metadata: dict[str, Any]) -> RunConfig:
    """For live sessions: a connection that is lost is taken up again, and what was said in it is not forgotten."""
    config = base or RunConfig()
    is_resumed = config.session_resumption is not None
    ours = {} if is_resumed else {"session_resumption": types.SessionResumptionConfig()}
    return _merged(config, {**ours, **changes}, metadata)


def _merged(config: RunConfig, updates: dict[str, Any], metadata: dict[str, Any]) -> RunConfig:
    if config.telemetry is None:
        updates.setdefault("telemetry", resolved_telemetry())
    updates["custom_metadata"] = {
        **(config.custom_metadata or {}),
        **(updates.get("custom_metadata") or {}),
        **metadata,
    }
    return config.model_copy(update=updates)


def resolved_telemetry() -> TelemetryConfig:
    """What ADK would read from the environment for every single delta, read once. Spans and logs stay the same."""
    from_environment = TelemetryConfig()
    experimental = from_environment.should_use_experimental_genai_semconv
    # A variable of its own outranks the switch below, so it is left to ADK.
    features_named = bool(os.environ.get("ADK_EXPERIMENTAL_TELEMETRY_FEATURES"))
    return TelemetryConfig(
        genai_semconv_stability_opt_in="experimental" if experimental else "stable",
        adk_experimental_telemetry_opt_in=(
            None if features_named else from_environment.should_emit_experimental_telemetry
        ),
    )
