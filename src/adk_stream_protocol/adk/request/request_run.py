"""Request mode: `Runner.run_async` in a task of its own, from the first chunk of a segment to its terminal one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
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
from ...limits import Limits
from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey
from ...protocol.chunks import AnyChunk, encode_chunks
from ..calls.leased_chat import LeasedChat
from ..calls.session_calls import open_questions
from ..event_parts import as_dict, is_frameworks_own
from ..failures import public_failure_text
from ..session import Chat, MessageIds, find_repeated
from ..title import title_of
from ..translate.translator import Translator

logger = logging.getLogger(__name__)

# How long ADK may take to end a run by itself, sealing its open calls. Some agents do not look at the signal while
# their model is silent, and some tools never do.
_STOP_GRACE_S = 1
_FIRST_READER_S = 10
_LATE_S, _HEARING_S = 0.1, 1

RESTARTING = "The server restarts. Resume this answer, or ask for it again."
LEASE_LOST = "The server lost this chat to another one. Resume this answer, or ask for it again."


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
    """A run that belongs to its session: readers come and go, it goes on until it is done, stopped or out of bounds."""

    def __init__(
        self,
        chat: Chat,
        leased: LeasedChat,
        request: RunRequest,
        translator: Translator,
        log: ChunkLog,
        limits: Limits,
        let_go: Callable[[LeasedChat], Awaitable[None]],
    ) -> None:
        """`let_go`: lets the next turn come. It does not raise."""
        self.log = log
        self.ids = request.ids
        self.asked_by = request.asked_by or request.ids
        self.answered = request.answered
        self.has_ended = asyncio.Event()
        self.is_accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when ADK has taken the user's message; fails with what refuses it."""
        self._chat = chat
        self._leased = leased
        self._request = request
        self._translator = translator
        self._limits = limits
        self._let_go = let_go
        self._abort = asyncio.Event()
        self._is_ending = False
        self._ended_by: str | None = "stop"  # until it turns out otherwise
        self._failure: str | None = None
        self._invocation_id = next((call.invocation_id for call in request.answered), "")
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._time_limit: asyncio.TimerHandle | None = None

    @property
    def message_id(self) -> str | None:
        return self.ids.message_id

    def start(self) -> None:
        self._leased.message_id = self.message_id
        self._leased.on_user_message = self._take_user_message
        if self._request.answered:  # there is no message that could have been said before
            self._accept()
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream run {self.log.segment}")
        self.log.on_readers_changed = self._watch_readers
        # The first reader may be on its way still, however short the patience is afterwards.
        patience_s = max(self._limits.unread_run_s, _FIRST_READER_S)
        self._unread_timer = asyncio.get_running_loop().call_later(patience_s, self._nobody_reads)

    async def _take_user_message(self, session: Session) -> None:
        repeated = await find_repeated(session.events, self.ids) if self.ids.user_message_id is not None else None
        if repeated is not None and not self.is_accepted.done():
            raise SaidBefore(repeated[0], is_same=repeated[1])
        sees_all = self._request.run_config.get_session_config is None
        if sees_all and not self._request.answered and await title_of(session.events) is None:
            self._leased.begun = session
        self._accept()

    def _accept(self) -> None:
        if not self.is_accepted.done():
            self._write(list(self._request.opening))
            self.is_accepted.set_result(None)

    # -- ends ---------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """End the run: ADK closes the model and seals open calls; what does not listen is cancelled, and what does
        not even then is left alone. The stream ends in any case, and the next turn may come."""
        self._abort.set()
        await self._wait_for_the_end()

    async def stop_after_tools(self) -> None:
        """As `stop`, but tools that have begun come to their ends first."""
        self._leased.begins_nothing = True
        await self._leased.until_tools_end(self._limits.max_run_s)
        await self.stop()

    async def drain(self) -> None:
        """The server goes. Tools that have begun come to their ends, nothing else begins, and the rest is left to the
        next process as it is."""
        self._leased.begins_nothing = True
        await self._leased.until_tools_end(self._limits.drain_s)
        await self._leave("restart", RESTARTING)

    async def lose_lease(self) -> None:
        """Somebody else has the chat by now: nothing more is written into it."""
        self._leased.begins_nothing = self._leased.is_lost = True
        await self._leave("failure", LEASE_LOST)

    async def _leave(self, ended_by: str, failure: str) -> None:
        self._ended_by, self._failure = ended_by, failure
        self._leased.leaves_calls = True
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
        await self._let_go(self._leased)
        self._end()

    async def _drive(self) -> None:
        self._limit_time()
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
            if not self._leased.leaves_calls:
                self._ended_by, self._failure = "failure", public_failure_text(error)
        finally:
            self._is_ending = True
            if self._time_limit is not None:
                self._time_limit.cancel()
            try:
                if not self._leased.is_lost:
                    await self._keep_what_was_said()
            finally:
                await self._let_go(self._leased)  # before the last chunk: a client may send its next turn at once
                self._end()

    def _end(self) -> None:
        if self.log.is_closed:
            return
        self._accept()
        self.log.on_readers_changed = lambda: None
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        self._leased.lose_calls()
        self._write(self._translator.end(self._leased.records, self._ended_by, self._failure))
        self.log.close()
        self.has_ended.set()

    # -- events -------------------------------------------------------------------------------------------------------

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
        self._leased.delivered |= self._request.outputs

    async def _consume(self, content: types.Content) -> None:
        chat, request, leased = self._chat, self._request, self._leased
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
                self._leased.store_result(call)
                self._leased.questions.pop(call, None)
        self._leased.questions |= {asked.call: asked for asked in await open_questions(self._chat, [event])}
        for call in event.get_function_calls():
            if call.name == CONFIRMATION and is_frameworks_own(event, call):
                original = as_dict(as_dict(call.args).get("originalFunctionCall"))
                self._leased.unasked.discard(CallKey(event.invocation_id, str(original.get("id"))))

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

    def _limit_time(self) -> None:
        loop, longest_s = asyncio.get_running_loop(), self._limits.max_run_s
        self._time_limit = loop.call_later(longest_s, self._out_of_time, loop.time() + longest_s)

    def _out_of_time(self, due: float) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - due > _LATE_S:  # something has blocked the loop: what a tool got meanwhile is heard first
            self._time_limit = loop.call_later(_HEARING_S, self._end_by, "time")
        else:
            self._end_by("time")

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
        if self._leased.at_work:  # it may be paying: let it finish, and look again
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


def log_failure(error: Exception, segment: str) -> None:
    """Where a run failed, without what it said: messages of exceptions quote prompts, arguments and keys."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "unknown"
    logger.error("run %s failed: %s at %s", segment, type(error).__qualname__, where)
    logger.debug("details of run %s", segment, exc_info=error)
