"""Request mode: `Runner.run_async` in a task of its own, from the first chunk of a segment to its terminal one."""

import asyncio
import secrets
from contextlib import aclosing
from dataclasses import replace

from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types

from ...chunk_log import ChunkLog
from ...protocol.call_record import CallKey, CallRecord
from ...protocol.chunks import AnyChunk, encode_chunks
from ...protocol.live_effects import Why
from .. import versions
from ..calls.remote_calls import start_remote
from ..calls.session_calls import note_stored, note_unasked
from ..calls.waiting import current_chat
from ..event_parts import ArtifactFile
from ..failures import public_failure_text
from ..run import LEASE_LOST, RESTARTING, STOP_GRACE_S, AnsweredCalls, RunContext
from ..run_config import resolve_telemetry
from ..run_end import append_if_leased, log_failure, unfinished_events
from ..session import find_repeated
from ..title import has_title
from ..translate.translator import Translator
from ..words.direct_text import DirectText, current_direct_text
from .inner_waits import InnerWaits
from .run_bounds import RunBounds
from .run_request import RunRequest, SaidBefore


class RequestRun:
    """Belongs to its session: readers come and go, and it goes on until it is done, stopped or out of bounds.

    | Attributes | |
    |---|---|
    | `leased`, `_context` | where it runs |
    | `ids`, `asked_by`, `answered`, `_request` | what it was started with |
    | `last_log`, `_translator`, `_max_log_bytes`, `_direct_text` | what it writes |
    | `_waits`, `_is_waiting`, `_unwritten` | calls that wait inside ADK, and what comes while no segment is open |
    | `is_accepted`, `_invocation_id` | how far ADK is |
    | `_task`, `_abort`, `_stopping`, `_bounds` | what runs, and what may end it |
    | `_is_ending`, `_is_over`, `_ended_by`, `_failure` | how it ends |
    """

    def __init__(self, context: RunContext, request: RunRequest, translator: Translator, log: ChunkLog) -> None:
        self.last_log = log
        self.ids = request.ids
        self.asked_by = request.asked_by or request.ids
        self.answered = request.answered
        self.is_accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when ADK has taken the user's message; fails with what refuses it."""
        self.leased = context.leased
        self._context = context
        self._request = request
        self._translator = translator
        self._abort = asyncio.Event()
        self._is_ending = self._is_over = False
        self._ended_by: str | None = "stop"  # until it turns out otherwise
        self._failure: str | None = None
        self._invocation_id = next((call.invocation_id for call in request.answered), "")
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._bounds = RunBounds(self, context.limits)
        self._max_log_bytes = context.limits.max_log_bytes
        ways = context.chat.model_ways()
        resolve_telemetry(request.run_config, is_traced=not ways.direct)
        self._direct_text = DirectText(ways, self._grow)
        self._waits = InnerWaits(self, context.leased, context.store)
        self._is_waiting = False
        self._unwritten: list[tuple[Event, dict[str, ArtifactFile] | None]] = []

    @property
    def log(self) -> ChunkLog | None:
        return None if self._is_waiting else self.last_log

    @property
    def message_id(self) -> str | None:
        return self.ids.message_id

    def start(self) -> None:
        self.leased.message_id = self.message_id
        self.leased.on_user_message = self._accept_user_message
        self.leased.observer = self._waits
        if self._request.answered:  # there is no message that could have been said before
            self._accept()
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream run {self.last_log.segment}")
        if self._request.needs_reader:
            self._bounds.watch_readers()

    async def _accept_user_message(self, session: Session) -> None:
        repeated = await find_repeated(session.events, self.ids) if self.ids.user_message_id is not None else None
        if repeated is not None and not self.is_accepted.done():
            raise SaidBefore(repeated[0], is_same=repeated[1])
        if self._request.run_config.get_session_config is None and not self._request.answered:
            await note_unasked(self._context.chat, self.leased, session.events)
            if not await has_title(session.events):
                self.leased.begun = session
        self._accept()

    def _accept(self) -> None:
        if not self.is_accepted.done():
            self._write(list(self._request.opening))
            self.is_accepted.set_result(None)

    # -- what others may ask of it ------------------------------------------------------------------------------------

    def log_of(self, message_id: str) -> ChunkLog | None:
        return self.last_log if message_id == self.message_id else None

    def accepts(self, calls: frozenset[CallKey]) -> bool:
        if self._waits.is_ending or self._is_over:
            return False
        return bool(calls & self._waits.unshown) or (calls <= self.answered and not self.last_log.is_closed)

    def has_shown(self, calls: frozenset[CallKey]) -> bool:
        """Whether it has shown these calls to its readers. Calls that it has not shown come with its end; after that
        they are in the session."""
        return calls <= self._waits.shown

    async def continue_message(self, answered: AnsweredCalls) -> ChunkLog | None:
        """Answers that it was started with are taken up already."""
        if not self.accepts(answered.calls):
            return None
        mine = answered.calls & self._waits.unshown
        if mine:
            self.leased.records.update({call: answered.records[call] for call in mine if call in answered.records})
            if self._is_waiting:
                self._open_segment(mine, answered)
            self._waits.wake()
        return self.last_log if answered.calls <= mine | self._waits.shown | self.answered else None

    async def take_work(self, record: CallRecord) -> bool:
        """Progress is shown. The end is for the run that follows this one."""
        if not record.is_final and record.message_id == self.message_id:
            self.leased.records[record.call] = record
            self._write(self._translator.call_parts.show_work(record))
        return False

    async def is_abandoned(self, within_s: float) -> bool:
        return self._is_waiting or await self.last_log.is_left(within_s)

    async def end_when_idle(self) -> None:
        """It does so by itself, when nothing is left to do. While it waits for its user, somebody has decided to do
        something else."""
        if self._is_waiting:
            await self.stop_after_tools()

    # -- ends ---------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """ADK gets the abort signal, closes the model and answers open calls. What does not react is cancelled, and
        what does not react to that either is left alone. The stream ends in any case."""
        await self._waits.refuse_if_possible(Why.STOPPED)
        versions.abort(self._abort, self._cancel)
        await self._wait_for_the_end()

    async def stop_after_tools(self) -> None:
        await self._waits.refuse(Why.SUPERSEDED)
        self.leased.begins_nothing = True
        await self.leased.until_tools_end(self._context.limits.max_run_s)
        await self.stop()

    async def drain(self) -> None:
        self.leased.begins_nothing = self._waits.is_ending = True
        await self.leased.until_tools_end(self._context.limits.drain_s)
        await self._leave("restart", RESTARTING)

    async def lose_lease(self) -> None:
        self.leased.begins_nothing = self.leased.is_lost = self._waits.is_ending = True
        await self._leave("failure", LEASE_LOST)

    def end_by(self, limit: str) -> None:
        self._ended_by = limit
        self.stop_soon()

    def stop_soon(self) -> None:
        self._stopping = asyncio.create_task(self.stop(), name=f"adk-stream stop {self.last_log.segment}")

    async def _leave(self, ended_by: str, failure: str) -> None:
        self._ended_by, self._failure = ended_by, failure
        self.leased.leaves_calls = True
        self._cancel()
        await self._wait_for_the_end()

    def _cancel(self) -> None:
        if self._task is not None and not self._is_ending:
            self._task.cancel()

    async def _wait_for_the_end(self) -> None:
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=STOP_GRACE_S)
        self._cancel()
        await asyncio.wait([self._task], timeout=STOP_GRACE_S)
        await self._context.owner.run_ended(self)
        self._end()

    async def _drive(self) -> None:
        current_direct_text.set(self._direct_text)
        current_chat.set(self.leased)
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
            log_failure(error, self.last_log.segment)
            if not self.leased.leaves_calls:
                self._ended_by, self._failure = "failure", public_failure_text(error)
        finally:
            self._is_ending = True
            self._bounds.stop_watching_time()
            self._waits.stop_watching()
            try:
                if not self.leased.is_lost:
                    await self._store_unfinished_answer()
            finally:
                await self._context.owner.run_ended(self)
                self._end()

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._accept()
        self._bounds.stop_watching_readers()
        self.leased.lose_calls()
        if not self._is_waiting:
            self._write(self._translator.end(self.leased.records, self._ended_by, self._failure))
            self.last_log.close()

    # -- events -------------------------------------------------------------------------------------------------------

    async def _consume_in_session(self) -> None:
        await self._context.chat.append(self._request.appended)
        await start_remote(self._request.answered, self._context.store, self.leased)
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
        chat, request = self._context.chat, self._request
        events = chat.runner.run_async(
            user_id=chat.user_id,
            session_id=chat.chat_id,
            new_message=content,
            state_delta=request.state_delta if content is request.contents[0] else None,
            run_config=request.run_config,
            **versions.abort_option(self._abort),
        )
        async with aclosing(events):
            async for event in events:
                self._invocation_id = event.invocation_id
                if event.partial:  # nearly all of them, and never with artifacts
                    self.tell(event)
                else:
                    await note_stored(chat, self.leased, event)
                    self.tell(event, await chat.files(event.actions.artifact_delta))

    def tell(self, event: Event, files: dict[str, ArtifactFile] | None = None) -> None:
        if self._is_waiting:
            self._unwritten.append((event, files))
            return
        records = {} if event.partial else self.leased.records
        self._write(self._translator.feed(event, files, records=records))
        self._direct_text.came_out(event)
        self._waits.written()

    def _write(self, chunks: list[AnyChunk]) -> None:
        self._append(encode_chunks(chunks))

    def _append(self, chunks: list[bytes]) -> None:
        if chunks and not self.last_log.is_closed:  # a run that was given up may still be talking
            self.last_log.append(chunks)
            if self.last_log.size_bytes > self._max_log_bytes and self._stopping is None and not self._abort.is_set():
                self.end_by("size")

    def _grow(self, text: str, *, is_thought: bool) -> bool:
        is_over = self._abort.is_set() or self.last_log.size_bytes > self._max_log_bytes
        chunk = None if is_over else self._translator.grow(text, is_thought=is_thought)
        if chunk is not None:
            self._append([chunk])
            self._waits.written()
        return chunk is not None

    # -- calls that wait inside ADK -----------------------------------------------------------------------------------

    def end_segment(self) -> None:
        if self._is_waiting or self._is_ending or self._abort.is_set():
            return
        self._bounds.stop_watching_time()
        self._bounds.stop_watching_readers()
        self._direct_text.pause()
        for call in self.leased.unasked:  # ADK asks when all calls of its model's answer have ended
            self._translator.works_on(call.call_id)
        self._write(self._translator.end(self.leased.records, None, None))
        self.last_log.close()
        self._is_waiting = True

    def go_on(self, call: CallKey) -> None:
        if self._is_waiting and not self._is_over:
            self._open_segment(frozenset({call}), None)

    def _open_segment(self, calls: frozenset[CallKey], request: AnsweredCalls | None) -> None:
        """`request`: of the client that has answered. Nobody has to read what follows from a deadline."""
        records, parts = self.leased.records, self._translator.call_parts
        start_id, known = (request.start_id, request.known_outputs) if request else (self.message_id or "", ())
        opening = self._translator.new_segment(start_id, records, calls, known)
        by_client = encode_chunks(parts.sent_by_client(records, calls))
        self.last_log = ChunkLog(secrets.token_urlsafe(3), [*self.last_log.told(), *by_client])
        self._is_waiting = False
        self.leased.note_answers(calls)
        self._write(opening)
        unwritten, self._unwritten = self._unwritten, []
        for event, files in unwritten:
            self.tell(event, files)
        self._bounds.watch_time()
        if request is not None and self._request.needs_reader:
            self._bounds.watch_readers()
        self._context.owner.segment_opened(self)

    async def _store_unfinished_answer(self) -> None:
        """ADK stores nothing of an answer that does not end by itself, but the user has read it."""
        if not self._invocation_id:
            return
        ids = replace(self._request.ids, ended_by=self._ended_by, failure=self._failure)
        events = unfinished_events(self._translator, ids, self._invocation_id, self._context.chat.root_author)
        if not await append_if_leased(
            self._context, events, self.last_log.segment, has_failed=self._ended_by == "failure"
        ):
            self._failure = LEASE_LOST
