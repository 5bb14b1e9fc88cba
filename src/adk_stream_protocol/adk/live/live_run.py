"""Live mode: `Runner.run_live` behind one chat, emitted in messages and segments as in request mode.

The run belongs to its chat. Clients come and go; it ends when none has been there for a while, when it is stopped, or
when the model ends it. Calls that wait for an answer then stay what they are, and either mode can answer them.
"""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.genai import types

from ...chunk_log import ChunkLog
from ...errors import RunActive
from ...protocol import live_facts as facts
from ...protocol.call_record import CallKey, CallRecord, State
from ...protocol.messages import ClientStyle
from ..calls.credentials import CONSENT_NEEDED
from ..calls.delivery import leave_calls_pending, refuse_call, stop_call
from ..calls.gate import ApprovalGate
from ..failures import ConsentNeeded, public_failure_text
from ..live_listener import LiveListener
from ..run import LEASE_LOST, RESTARTING, STOP_GRACE_S, AnsweredCalls, RunContext
from ..run_end import log_failure, unfinished_events
from ..session import MessageIds
from .direct_words import DirectWords
from .input_queue import LiveInput
from .live_message import LiveMessage, SessionEnd
from .live_options import LiveOptions
from .live_segments import LiveSegments
from .live_watch import LiveWatch
from .live_work import LiveWork
from .model_call_ids import ModelCallIds
from .model_events import is_withdrawn
from .model_watch import ModelWatch, current_watch, watch_models
from .talking_on import TalkingOn

ENDED = "the session has ended"


class LiveRun:
    """
    | About | Attributes |
    |---|---|
    | the chat | `leased`, `_context`, `_listeners`, `spoken_style` |
    | the agent | `_gate`, `_options`, `input`, `_models`, `_work`, `_invocation_id` |
    | what is emitted | `_segments`, `_direct` |
    | its life | `_task`, `_watch`, `_ending`, `ended` |
    | the same for all live runs | `asked_by`, `answered` |
    """

    def __init__(
        self,
        context: RunContext,
        gate: ApprovalGate,
        options: LiveOptions,
        listeners: AbstractSet[LiveListener],
    ) -> None:
        """`listeners`: whoever is connected to the chat, as it changes."""
        self.input = LiveInput(context.limits.max_waiting_audio_s)
        self.ended = asyncio.Event()
        self.leased = context.leased
        self.spoken_style = ClientStyle()
        """Of the client that spoke or wrote last."""
        self._context = context
        self._gate = gate
        self._options = options
        self._listeners = listeners
        talking_on = TalkingOn(options.while_waiting)
        self._segments = LiveSegments(context, self.input, self._new_message, listeners, talking_on)
        self._work = LiveWork(context, self._segments, self.input, self._segments.writer)
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._invocation_id = ""
        self._watch = LiveWatch(context, self._segments, self.input, self._work.look_soon)
        self._direct = DirectWords(context, self._segments, self._watch.heard)
        call_ids = ModelCallIds(context.leased.call_ids)
        self._models = ModelWatch(context.limits, self, talking_on, call_ids, self._direct.skim)

    # -- clients ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.input.on_response = lambda: self._segments.feed(facts.ResultSent())
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream live {self._context.chat.chat_id}")
        self._watch.start(self._task)
        self.watch_listeners()

    def watch_listeners(self) -> None:
        """Somebody has come, or gone."""
        self._segments.feed(facts.Attached() if self._listeners else facts.Left())
        self._watch.listeners_changed(is_attended=bool(self._listeners))

    @property
    def log(self) -> ChunkLog | None:
        """The open segment."""
        message = self._segments.open_message
        return message.log if message is not None else None

    @property
    def message_id(self) -> str | None:
        message = self._segments.open_message
        return message.message_id if message is not None else None

    # -- the user's side ----------------------------------------------------------------------------------------------

    async def say(
        self, message: LiveMessage, content: types.Content, state_delta: dict[str, Any] | None, by: LiveListener
    ) -> ChunkLog:
        """The user writes. Calls that ADK waits for are refused by that: it would hear nothing before they end."""
        if self._segments.turns.open_message is not None or self.is_ending:  # its log may not be there yet
            raise RunActive
        await self._segments.write(message, (content, state_delta), by)
        if message.last_log is None:
            raise RunActive  # the session has ended meanwhile
        return message.last_log

    @property
    def is_ending(self) -> bool:
        """Whether nothing can be begun here any more."""
        return self._segments.is_ending

    def interrupt(self) -> None:
        """The user has heard enough of this answer."""
        self._segments.feed(facts.InterruptedByUser())

    def hear(self, samples: bytes) -> None:
        self.input.send_voice(samples)

    def send_activity_start(self) -> None:
        self.input.send_activity_start()

    def send_activity_end(self) -> None:
        self.input.send_activity_end()

    def accepts(self, calls: frozenset[CallKey]) -> bool:
        return not self.is_ending and self._segments.turns.find_message(calls) is not None

    def has_shown(self, calls: frozenset[CallKey]) -> bool:
        turns, stored = self._segments.turns, self.leased.delivered
        return all(call in stored or turns.has_shown(call) for call in calls)

    async def continue_message(self, answered: AnsweredCalls) -> ChunkLog | None:
        message = await self._segments.answer(answered) if not self.is_ending else None
        return message.last_log if message is not None else None

    async def take_work(self, record: CallRecord) -> bool:
        return await self._work.take(record)

    asked_by: MessageIds | None = None
    answered: frozenset[CallKey] = frozenset()

    async def is_abandoned(self, within_s: float) -> bool:
        """Its sockets are its readers: it ends by itself when they have gone."""
        return False

    def _new_message(self) -> LiveMessage:
        style = self.spoken_style
        shown = replace(self._options.shown, approval_style=style.approval_style)
        translator = self._options.translators.new(self._context.chat, shown, style.sdk_version)
        return LiveMessage(translator, shown=shown)

    async def stop(self) -> None:
        """End the session: model, tools, stream. What waits is refused."""
        if self._task is None or self.ended.is_set():
            return
        self._segments.end.by = "stop"
        await self._segments.feed(facts.Stopped())
        self._segments.cancel_beside()
        self.input.close()
        await asyncio.wait([self._task], timeout=STOP_GRACE_S)
        self._watch.cancel()
        await asyncio.wait([self._task], timeout=STOP_GRACE_S)
        await self._end()  # a tool that listens to nobody is left alone

    async def stop_after_tools(self) -> None:
        """As `stop`, but tools that have begun come to their ends first."""
        self.leased.begins_nothing = True
        await self.leased.until_tools_end(self._context.limits.max_run_s)
        await self.stop()

    async def drain(self) -> None:
        """The server goes. Tools that have begun come to their ends; what waits for an answer goes on waiting."""
        self.leased.begins_nothing = True
        self._segments.feed(facts.Shutdown())
        await self.leased.until_tools_end(self._context.limits.drain_s)
        await self._leave_calls("restart", RESTARTING)

    async def lose_lease(self) -> None:
        """Somebody else has the chat by now: nothing more is written into it."""
        self.leased.begins_nothing = self.leased.is_lost = True
        self._segments.feed(facts.LeaseLost())
        self._segments.cancel_beside()
        await self._leave_calls("failure", LEASE_LOST)

    async def _leave_calls(self, ended_by: str, failure: str) -> None:
        self.leased.leaves_calls = True
        self._segments.end = SessionEnd(ended_by, failure)
        self._watch.cancel()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=STOP_GRACE_S)
        await self._end()

    def log_of(self, message_id: str) -> ChunkLog | None:
        """The last segment of a message."""
        return self.last_logs().get(message_id)

    def last_logs(self) -> dict[str, ChunkLog]:
        """Of all its messages, by their ids."""
        messages = self._segments.messages.values()
        return {message.message_id: message.last_log for message in messages if message.last_log is not None}

    async def end_if_idle(self) -> None:
        """Make room for request mode, unless a segment is open."""
        if self._watch.is_idle:
            self._watch.cancel()
            await self.ended.wait()

    async def end_when_idle(self) -> None:
        self._watch.ends_when_idle = True
        await self.end_if_idle()

    # -- the model's side ---------------------------------------------------------------------------------------------

    async def _drive(self) -> None:
        self._gate.go_live(self.leased.lease, self._segments)
        watch_models(self._context.chat.runner.agent)
        current_watch.set(self._models)
        try:
            try:
                await self._consume()
            except SessionNotFoundError:
                if self._invocation_id:
                    raise
                await self._context.chat.create()
                await self._consume()
        except asyncio.CancelledError:
            pass  # by ourselves: nobody else has this task
        except Exception as error:
            log_failure(error, self._context.chat.chat_id)
            self._segments.end = SessionEnd("failure", public_failure_text(error))
        finally:
            await self._finish_beside()
            await self._end()

    async def _finish_beside(self) -> None:
        """Tools that run beside the conversation come to their ends, unless the user has stopped them: ADK has given
        them up."""
        self._segments.is_ending = True
        self._watch.stop()
        self._segments.feed(facts.HandedOver())
        if self._segments.end.by != "stop" and not self.leased.is_lost:
            await self._segments.finish_beside(self._context.limits.drain_s)
        self._segments.cancel_beside()

    async def _consume(self) -> None:
        events = self._context.chat.runner.run_live(
            user_id=self._context.chat.user_id,
            session_id=self._context.chat.chat_id,
            live_request_queue=self.input,
            run_config=self._options.run_config,
        )
        async with aclosing(events):
            async for event in events:
                self._watch.heard()
                self._invocation_id = event.invocation_id
                if event.error_code == CONSENT_NEEDED:
                    raise ConsentNeeded
                await self._segments.take(event)
                self._direct.came_out(event)
                log = self.log
                if log is not None and log.size_bytes > self._context.limits.max_log_bytes:
                    self._segments.end.by = "size"
                    self._watch.cancel()

    # -- what the model's connections report --------------------------------------------------------------------------

    @property
    def failure(self) -> str | None:
        """What clients read if the session has failed."""
        return self._segments.end.failure if self._segments.end.by == "failure" else None

    @property
    def has_spoken(self) -> bool:
        """Whether the model has said anything in this session."""
        return self._models.has_spoken

    def withdrawn(self, call_ids: Sequence[str]) -> None:
        self.leased.withdrawn.update(call_ids)  # also for the gate, which may not have seen the call yet
        self._segments.feed(facts.Withdrawn(tuple(CallKey(self._invocation_id, call_id) for call_id in call_ids)))

    def is_withdrawn(self, call_id: str) -> bool:
        return is_withdrawn(CallKey(self._invocation_id, call_id), self.leased.records)

    def connection_lost(self) -> None:
        self._segments.feed(facts.ConnectionLost())

    def said_again(self) -> None:
        self._segments.feed(facts.SaidAgain())

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Once, for whoever asks first: the run that is over, or a stop that has waited for it long enough."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._leave(), name=f"adk-stream live end {self._context.chat.chat_id}")
        await asyncio.shield(self._ending)

    async def _leave(self) -> None:
        self._segments.is_ending = True
        self._watch.stop()
        await self._segments.close()
        try:
            if not self.leased.is_lost:
                await self._keep_what_was_said()
                if self._options.run_config.get_session_config is None:
                    self.leased.begun = self._segments.session
                for call in self._segments.announced:  # nobody can go on with those
                    await refuse_call(self._context.store, self.leased.key, call, ENDED)
                await self._give_up_approved()
                await leave_calls_pending(self._context.store, self._context.chat, self.leased)
        except Exception as error:  # the session is gone or busy: the stream must end all the same
            log_failure(error, self._context.chat.chat_id)
        finally:
            await self._context.owner.run_ended(self)  # before the last chunk: a client may send its next turn at once
            await self._segments.feed(facts.Over())
            self.ended.set()

    async def _give_up_approved(self) -> None:
        """A stop may come when a call is approved, and has not begun since the store was down."""
        for call, found in list(self.leased.records.items()) if self._segments.end.by == "stop" else ():
            if found.state is State.APPROVED and found.executor == "server":
                await stop_call(self._context.store, self.leased, call)

    async def _keep_what_was_said(self) -> None:
        """ADK stores nothing of an answer that does not come to its end, but the user has read it."""
        if not self._invocation_id:
            return
        events: list[Event] = []
        for message in self._segments.messages.values():
            if message.log is not None:
                ids = replace(message.ids(), ended_by=self._segments.end.by, failure=self._segments.end.failure)
                events += unfinished_events(
                    message.translator, ids, self._invocation_id, self._context.chat.root_author
                )
        await self._context.chat.append(events)
