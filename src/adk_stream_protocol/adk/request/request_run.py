"""Request mode: `Runner.run_async` in a task of its own, from the first chunk of a segment to its terminal one."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types

from ...chunk_log import ChunkLog
from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey
from ...protocol.chunks import AnyChunk, encode_chunks
from ..calls.session_calls import open_questions
from ..event_parts import as_dict, is_frameworks_own
from ..failures import public_failure_text
from ..run import LEASE_LOST, RESTARTING, AnsweredCalls, RunContext
from ..run import STOP_GRACE_S as _STOP_GRACE_S
from ..run_end import log_failure, still_has_lease, unfinished_events
from ..session import MessageIds, find_repeated
from ..title import title_of
from ..translate.translator import Translator
from .run_bounds import RunBounds

logger = logging.getLogger(__name__)


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
    asked_by: MessageIds | None = None
    """Of the user's message, where the segment is not the first that answers it."""
    outputs: frozenset[CallKey] = frozenset()
    """Those of them whose results are in `appended` or `contents`."""


class SaidBefore(BaseException):
    """The session has the user's message already. Not an `Exception`: ADK would take it for a failure of a plugin, and
    log it as one."""

    def __init__(self, message_id: str, *, is_same: bool) -> None:
        super().__init__()
        self.message_id = message_id
        """Of the answer to it."""
        self.is_same = is_same


class RequestRun:
    """Belongs to its session: readers come and go, and it goes on until it is done, stopped or out of bounds.

    | Attributes | |
    |---|---|
    | `leased`, `_context` | where it runs |
    | `ids`, `asked_by`, `answered`, `_request` | what it was started with |
    | `log`, `_translator`, `_max_log_bytes` | what it writes |
    | `is_accepted`, `_invocation_id` | how far ADK is |
    | `_task`, `_abort`, `_stopping`, `_bounds` | what runs, and what may end it |
    | `_is_ending`, `_ended_by`, `_failure`, `ended` | how it ends |
    """

    def __init__(
        self,
        context: RunContext,
        request: RunRequest,
        translator: Translator,
        log: ChunkLog,
    ) -> None:
        self.log = log
        self.ids = request.ids
        self.asked_by = request.asked_by or request.ids
        self.answered = request.answered
        self.ended = asyncio.Event()
        self.is_accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when ADK has taken the user's message; fails with what refuses it."""
        self.leased = context.leased
        self._context = context
        self._request = request
        self._translator = translator
        self._abort = asyncio.Event()
        self._is_ending = False
        self._ended_by: str | None = "stop"  # until it turns out otherwise
        self._failure: str | None = None
        self._invocation_id = next((call.invocation_id for call in request.answered), "")
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._bounds = RunBounds(self, context.limits)
        self._max_log_bytes = context.limits.max_log_bytes

    @property
    def message_id(self) -> str | None:
        return self.ids.message_id

    def start(self) -> None:
        self.leased.message_id = self.message_id
        self.leased.on_user_message = self._accept_user_message
        if self._request.answered:  # there is no message that could have been said before
            self._accept()
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream run {self.log.segment}")
        self._bounds.watch_readers()

    async def _accept_user_message(self, session: Session) -> None:
        repeated = await find_repeated(session.events, self.ids) if self.ids.user_message_id is not None else None
        if repeated is not None and not self.is_accepted.done():
            raise SaidBefore(repeated[0], is_same=repeated[1])
        sees_all = self._request.run_config.get_session_config is None
        if sees_all and not self._request.answered and await title_of(session.events) is None:
            self.leased.begun = session
        self._accept()

    def _accept(self) -> None:
        if not self.is_accepted.done():
            self._write(list(self._request.opening))
            self.is_accepted.set_result(None)

    # -- what others may ask of it ------------------------------------------------------------------------------------

    calls_outside_session: Sequence[Event] = ()

    def log_of(self, message_id: str) -> ChunkLog | None:
        return self.log if message_id == self.message_id else None

    def accepts(self, calls: frozenset[CallKey]) -> bool:
        return calls <= self.answered and not self.log.is_closed

    def has_told(self, calls: frozenset[CallKey]) -> bool:
        return False  # it ends soon, and whoever comes then looks into the session

    async def continue_message(self, answered: AnsweredCalls) -> ChunkLog | None:
        """It does so already: these are answers that it was started with."""
        return self.log if self.accepts(answered.calls) else None

    async def is_abandoned(self, within_s: float) -> bool:
        return await self.log.is_left(within_s)

    async def end_when_idle(self) -> None:
        """It does so by itself: it ends when nothing is left to do."""

    # -- ends ---------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """ADK gets the abort signal, closes the model and answers open calls. What does not react is cancelled, and
        what does not react to that either is left alone. The stream ends in any case."""
        self._abort.set()
        await self._wait_for_the_end()

    async def stop_after_tools(self) -> None:
        self.leased.begins_nothing = True
        await self.leased.until_tools_end(self._context.limits.max_run_s)
        await self.stop()

    async def drain(self) -> None:
        self.leased.begins_nothing = True
        await self.leased.until_tools_end(self._context.limits.drain_s)
        await self._leave("restart", RESTARTING)

    async def lose_lease(self) -> None:
        self.leased.begins_nothing = self.leased.is_lost = True
        await self._leave("failure", LEASE_LOST)

    async def _leave(self, ended_by: str, failure: str) -> None:
        self._ended_by, self._failure = ended_by, failure
        self.leased.leaves_calls = True
        if self._task is not None and not self._is_ending:
            self._task.cancel()
        await self._wait_for_the_end()

    async def _wait_for_the_end(self) -> None:
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        if not self._is_ending:
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        await self._context.owner.run_ended(self)
        self._end()

    async def _drive(self) -> None:
        self._bounds.watch_time()
        try:
            await self._consume_in_session()
            if not self._abort.is_set():
                self._ended_by = None
        except SaidBefore as before:
            self._ended_by = None
            self.is_accepted.set_exception(before)
        except LlmCallsLimitExceededError:
            self._ended_by = "model-calls"
        except Exception as error:
            log_failure(error, self.log.segment)
            if not self.leased.leaves_calls:
                self._ended_by, self._failure = "failure", public_failure_text(error)
        finally:
            self._is_ending = True
            self._bounds.stop_watching_time()
            try:
                if not self.leased.is_lost:
                    await self._store_unfinished_answer()
            finally:
                await self._context.owner.run_ended(self)
                self._end()

    def _end(self) -> None:
        if self.log.is_closed:
            return
        self._accept()
        self._bounds.stop_watching_readers()
        self.leased.lose_calls()
        self._write(self._translator.end(self.leased.records, self._ended_by, self._failure))
        self.log.close()
        self.ended.set()

    # -- events -------------------------------------------------------------------------------------------------------

    async def _consume_in_session(self) -> None:
        await self._context.chat.append(self._request.appended)
        for content in self._request.contents:
            try:
                await self._consume(content)
            except SessionNotFoundError:
                if self._invocation_id or self._request.answered:
                    raise  # deleted meanwhile: what has run must not run again, and what was answered is gone
                # A runner of the user's own that does not create sessions.
                await self._context.chat.create()
                await self._consume(content)
            if self._abort.is_set():
                return
        self.leased.delivered |= self._request.outputs

    async def _consume(self, content: types.Content) -> None:
        chat, request, leased = self._context.chat, self._request, self.leased
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
                    await self._note_stored(event)
                    files = await chat.files(event.actions.artifact_delta)
                    self._write(self._translator.feed(event, files, records=leased.records))

    async def _note_stored(self, event: Event) -> None:
        for response in event.get_function_responses():
            if response.id not in event.actions.requested_tool_confirmations:
                call = CallKey(event.invocation_id, response.id or "")
                self.leased.store_result(call)
                self.leased.questions.pop(call, None)
        self.leased.questions |= {asked.call: asked for asked in await open_questions(self._context.chat, [event])}
        for call in event.get_function_calls():
            if call.name == CONFIRMATION and is_frameworks_own(event, call):
                original = as_dict(as_dict(call.args).get("originalFunctionCall"))
                self.leased.unasked.discard(CallKey(event.invocation_id, str(original.get("id"))))

    def _write(self, chunks: list[AnyChunk]) -> None:
        if chunks and not self.log.is_closed:  # a run that was given up may still be talking
            self.log.append(encode_chunks(chunks))
            if self.log.size_bytes > self._max_log_bytes and not self._abort.is_set():
                self.end_by("size")

    async def _store_unfinished_answer(self) -> None:
        """ADK stores nothing of an answer that does not end by itself, but the user has read it."""
        if not self._invocation_id:
            return
        ids = replace(self._request.ids, ended_by=self._ended_by, failure=self._failure)
        events = unfinished_events(self._translator, ids, self._invocation_id, self._context.chat.root_author)
        try:
            if self._ended_by == "failure" and not await still_has_lease(self._context):
                self._failure = LEASE_LOST
            else:
                await self._context.chat.append(events)
        except Exception as error:  # the session is gone or busy: the stream must end all the same
            log_failure(error, self.log.segment)

    # -- bounds -------------------------------------------------------------------------------------------------------

    def end_by(self, limit: str) -> None:
        self._ended_by = limit
        self.stop_soon()

    def stop_soon(self) -> None:
        self._stopping = asyncio.create_task(self.stop(), name=f"adk-stream stop {self.log.segment}")
