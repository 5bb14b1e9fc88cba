"""Live mode: `Runner.run_live` behind one chat, told in messages and segments as request mode tells them.

The run belongs to its chat. Clients come and go; it ends when none has been there for a while, when it is stopped, or
when the model ends it. Calls that wait for an answer then stay what they are, and either mode can answer them.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from google.adk.agents.run_config import RunConfig
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.genai import types

from ...chunk_log import ChunkLog
from ...errors import RunActive, StoreUnavailable
from ...protocol.call_record import CallKey
from ...protocol.messages import ClientStyle
from ..calls.delivery import leave_calls_pending, refuse_call, withdraw_call
from ..calls.gate import ApprovalGate
from ..calls.resumption import answer_event, response_part
from ..failures import LOST_MODEL, public_failure_text
from ..live_listener import LiveListener
from ..run import LEASE_LOST, RESTARTING, AnsweredCalls, RunContext
from ..run import STOP_GRACE_S as _STOP_GRACE_S
from ..run_end import log_failure, unfinished_events
from ..session import MessageIds
from ..translate.translators import Translators
from .input_queue import LiveInput
from .live_message import LiveMessage
from .live_segments import LiveSegments
from .model_watch import ModelWatch, current_watch, watch_models

logger = logging.getLogger(__name__)

SUPERSEDED = "superseded: the user wrote something else instead"
STOPPED_BY_USER = "the user stopped the session"
ENDED = "the session has ended"

_TICK_S = 1
_LOST_ANSWER = "The connection to the model was lost during this answer. Send your message again."


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """How a live session is run and shown."""

    run_config: RunConfig
    translators: Translators
    shown: MessageIds
    """How answers are shown that nobody asked for in writing."""


class LiveRun:
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
        """Of the client that speaks."""
        self._context = context
        self._gate = gate
        self._options = options
        self._listeners = listeners
        self._segments = LiveSegments(context.chat, context.leased.records, self._new_message, listeners)
        self._deferred: list[tuple[types.Content, dict[str, Any] | None]] = []
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._ended_by: str | None = None
        self._failure: str | None = None
        self._invocation_id = ""
        self._models = ModelWatch(context.limits, self)
        self._background: set[asyncio.Task[None]] = set()
        self._heard_at = self._watched_at = asyncio.get_running_loop().time()
        self._timer: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None

    # -- clients ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.input.on_response = self._send_deferred
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream live {self._context.chat.chat_id}")
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._watch)
        self.watch_listeners()

    def watch_listeners(self) -> None:
        """Somebody has come, or gone."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self._segments.tell_untold()
        if not self._listeners and not self.is_ending:
            self._grace = asyncio.get_running_loop().call_later(self._context.limits.live_grace_s, self._nobody_listens)

    def _nobody_listens(self) -> None:
        if self._segments.is_at_work:  # it may be paying: let it finish
            self._grace = asyncio.get_running_loop().call_later(_TICK_S, self._nobody_listens)
            return
        if self.log is not None:
            self._ended_by = "stop"
        self._cancel()

    @property
    def log(self) -> ChunkLog | None:
        """The segment that is being told."""
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
        if self.log is not None or self.is_ending:
            raise RunActive
        blocked = [other for other in self._segments.messages.values() if other.is_blocked]
        self._segments.adopt(message)
        self._segments.turns.say(message)
        log = message.open(self.leased.records)
        try:
            for call in [call for other in blocked for call, blocks in other.waiting.items() if blocks]:
                await self._refuse(call, SUPERSEDED)
        except BaseException:
            message.close(message.translator.abort(records=self.leased.records))
            raise
        for other in blocked:
            other.is_superseded = True
        if any(other.is_blocked for other in blocked):
            self._deferred.append((content, state_delta))  # the model is to hear first what became of its calls
            self._segments.tell_news()
        else:
            self.input.say(content, state_delta)
        self._segments.tell_turn(message, by)
        return log

    @property
    def is_ending(self) -> bool:
        """Whether nothing can be begun here any more."""
        return self._segments.is_ending

    @property
    def calls_outside_session(self) -> Sequence[Event]:
        return list(self._segments.announced.values())

    def interrupt(self) -> None:
        """The user has heard enough of this answer."""
        self._segments.interrupt()

    def hear(self, samples: bytes) -> None:
        self.input.send_voice(samples)

    def send_activity_start(self) -> None:
        self.input.send_activity_start()

    def send_activity_end(self) -> None:
        self.input.send_activity_end()

    def accepts(self, calls: frozenset[CallKey]) -> bool:
        messages = self._segments.messages.values()
        return not self.is_ending and any(call in message.calls for message in messages for call in calls)

    async def continue_message(self, answered: AnsweredCalls) -> ChunkLog | None:
        message = self._segments.messages.get(answered.message_id)
        if message is None or self.is_ending or not any(call in message.calls for call in answered.calls):
            return None
        self._segments.records.update(answered.records)
        for call in [call for call in message.waiting if self._segments.is_answered(call)]:
            del message.waiting[call]
        under_way = [call for call in answered.calls if call in message.calls]  # the others have their results
        log = message.log or message.open(self.leased.records, under_way, answered.known_outputs, answered.start_id)
        self._segments.tell_turn(message, answered.by)
        self._segments.turns.resume(message)
        for call in [call for call in answered.calls if call in self._segments.left_to_client]:
            if self._segments.is_answered(call):
                await self._deliver(message, call)
        self._segments.end_if_it_waits(message)
        self._segments.tell_news()
        return log

    async def _deliver(self, message: LiveMessage, call: CallKey) -> None:
        """The result of a call that ADK has given out of its hands: it neither waits for it nor stores it."""
        self._segments.left_to_client.discard(call)
        made_by = message.calls.pop(call)
        part = response_part(self._segments.records[call])
        event = answer_event(made_by, [part], message.ids())
        if self._segments.session is not None:
            await self._context.chat.runner.session_service.append_event(self._segments.session, event)
        message.write(message.translator.feed(event, records=self.leased.records))
        self.leased.store_result(call)
        self.input.send_content(types.Content(role="user", parts=[part]))

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

    async def _refuse(self, call: CallKey, reason: str) -> None:
        await refuse_call(self._context.store, self.leased.key, call, reason)

    async def stop(self) -> None:
        """End the session: model, tools, stream. What waits is refused."""
        if self._task is None or self.ended.is_set():
            return
        self._ended_by = "stop"
        for message in list(self._segments.messages.values()):
            for call in list(message.waiting):
                try:
                    await self._refuse(call, STOPPED_BY_USER)
                except StoreUnavailable:  # then it stays pending, and nothing runs without the record
                    logger.error("a call that was stopped is still pending")
        self._segments.tell_news()
        self.input.close()
        await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        self._cancel()
        await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        await self._end()  # a tool that listens to nobody is left alone

    async def stop_after_tools(self) -> None:
        """As `stop`, but tools that have begun come to their ends first."""
        self.leased.begins_nothing = True
        await self.leased.until_tools_end(self._context.limits.max_run_s)
        await self.stop()

    async def drain(self) -> None:
        """The server goes. Tools that have begun come to their ends; what waits for an answer goes on waiting."""
        self.leased.begins_nothing = True
        await self.leased.until_tools_end(self._context.limits.drain_s)
        await self._leave_calls("restart", RESTARTING)

    async def lose_lease(self) -> None:
        """Somebody else has the chat by now: nothing more is written into it."""
        self.leased.begins_nothing = self.leased.is_lost = True
        await self._leave_calls("failure", LEASE_LOST)

    async def _leave_calls(self, ended_by: str, failure: str) -> None:
        self.leased.leaves_calls = True
        self._ended_by, self._failure = ended_by, failure
        self._cancel()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        await self._end()

    def log_of(self, message_id: str) -> ChunkLog | None:
        """The last segment of a message."""
        message = self._segments.messages.get(message_id)
        return message.last_log if message is not None else None

    def last_logs(self) -> dict[str, ChunkLog]:
        """Of all its messages, by their ids."""
        messages = self._segments.messages.values()
        return {message.message_id: message.last_log for message in messages if message.last_log is not None}

    async def end_if_idle(self) -> None:
        """Make room for request mode, unless something is being told."""
        if self.log is None and not self._segments.is_at_work:
            self._cancel()
            await self.ended.wait()

    def _cancel(self) -> None:
        if self._task is not None and not self.is_ending:
            # What is answered from here on is for others to take up: a result that comes now would reach no model.
            self._segments.is_ending = True
            self._task.cancel()

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
            self._ended_by, self._failure = "failure", public_failure_text(error)
        finally:
            await self._end()

    async def _consume(self) -> None:
        events = self._context.chat.runner.run_live(
            user_id=self._context.chat.user_id,
            session_id=self._context.chat.chat_id,
            live_request_queue=self.input,
            run_config=self._options.run_config,
        )
        async with aclosing(events):
            async for event in events:
                self._invocation_id = event.invocation_id
                self._heard_at = asyncio.get_running_loop().time()
                if not event.partial:
                    for response in event.get_function_responses():
                        self.leased.store_result(CallKey(event.invocation_id, response.id or ""))
                await self._segments.take(event)
                if self.log is not None and self.log.size_bytes > self._context.limits.max_log_bytes:
                    self._ended_by = "size"
                    self._cancel()

    # -- what the model's connections report ---------------------------------------------------------------------------

    @property
    def failure(self) -> str | None:
        """What clients are told if the session has failed."""
        return self._failure if self._ended_by == "failure" else None

    @property
    def has_spoken(self) -> bool:
        """Whether the model has said anything in this session."""
        return self._models.has_spoken

    def withdrawn(self, call_ids: Sequence[str]) -> None:
        """The model took calls back. Those that wait inside ADK see it for themselves."""
        self.leased.withdrawn.update(call_ids)
        for call in [call for call in self._segments.left_to_client if call.call_id in call_ids]:
            self._in_background(withdraw_call(self._context.store, self.leased, call))
        self._segments.tell_news()

    def answer_lost(self) -> None:
        """The connection was lost in the middle of an answer, and the service does not go on with it."""
        message = self._segments.open_message
        if message is not None and not message.is_at_work and not message.waiting:
            self._in_background(self._give_up(message))

    async def _give_up(self, message: LiveMessage) -> None:
        ids = replace(message.ids(), ended_by="failure", failure=_LOST_ANSWER)
        self._segments.turns.give_up(message)
        message.close(message.translator.end(self.leased.records, "failure", _LOST_ANSWER))
        for event in unfinished_events(message.translator, ids, self._invocation_id, self._context.chat.root_author):
            if self._segments.session is not None:
                await self._context.chat.runner.session_service.append_event(self._segments.session, event)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        async def logged() -> None:
            try:
                await work
            except Exception as error:  # whatever a store raises
                log_failure(error, self._context.chat.chat_id)

        task = asyncio.create_task(logged(), name=f"adk-stream live {self._context.chat.chat_id}")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _send_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        for content, state_delta in deferred:
            self.input.say(content, state_delta)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """ADK tells nobody when its sender has died."""
        message, now = self._segments.open_message, asyncio.get_running_loop().time()
        if message is None or message.is_at_work or message.waiting:
            self._heard_at = now
        was_blocked = now - self._watched_at > 2 * _TICK_S  # what came in meanwhile is heard first
        self._watched_at = now
        is_silent = now - self._heard_at > self._context.limits.live_silence_s
        is_stuck = self.input.untaken_s() > self._context.limits.send_timeout_s
        if (is_silent or is_stuck) and not was_blocked:
            logger.error("live session %s lost its model", self._context.chat.chat_id)
            self._ended_by, self._failure = "failure", LOST_MODEL
            self._cancel()
        elif not self.is_ending:
            self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._watch)

    async def _end(self) -> None:
        """Once, for whoever asks first: the run that is over, or a stop that has waited for it long enough."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._leave(), name=f"adk-stream live end {self._context.chat.chat_id}")
        await asyncio.shield(self._ending)

    async def _leave(self) -> None:
        self._segments.is_ending = True
        for timer in (self._timer, self._grace):
            if timer is not None:
                timer.cancel()
        self._models.stop()
        try:
            if self._background:
                await asyncio.wait(self._background)
            if not self.leased.is_lost:
                await self._keep_what_was_said()
                if self._options.run_config.get_session_config is None:
                    self.leased.begun = self._segments.session
                for call in self._segments.announced:  # nobody can go on with those
                    await self._refuse(call, ENDED)
                await leave_calls_pending(self._context.store, self._context.chat, self.leased)
        except Exception as error:  # the session is gone or busy: the stream must end all the same
            log_failure(error, self._context.chat.chat_id)
        finally:
            await self._context.owner.run_ended(self)  # before the last chunk: a client may send its next turn at once
            for message in self._segments.messages.values():
                if message.log is not None:
                    message.close(message.translator.end(self.leased.records, self._ended_by, self._failure))
            self.ended.set()

    async def _keep_what_was_said(self) -> None:
        """ADK stores nothing of an answer that does not come to its end, but the user has read it."""
        if not self._invocation_id:
            return
        events: list[Event] = []
        for message in self._segments.messages.values():
            if message.log is not None:
                ids = replace(message.ids(), ended_by=self._ended_by, failure=self._failure)
                events += unfinished_events(
                    message.translator, ids, self._invocation_id, self._context.chat.root_author
                )
        await self._context.chat.append(events)
