"""The live table at work: what ADK, the gate and clients tell it, and how its effects are carried out.

Nothing is decided here: see protocol/live_turns.py.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool
from google.genai import types

from ...protocol import live_effects as effects
from ...protocol import live_facts as facts
from ...protocol.call_record import CallKey
from ...protocol.live_effects import Effect, End, Why
from ...protocol.live_facts import Fact
from ...protocol.live_turns import LiveTurns
from ..calls.live_observer import NestedCall
from ..calls.resumption import answer_event, response_part
from ..live_listener import LiveListener
from ..run import AnsweredCalls, RunContext
from ..run_end import unfinished_events
from .effect_queue import Cause, EffectQueue
from .input_queue import LiveInput
from .live_message import LiveMessage
from .live_writer import Files, LiveWriter, announced_event, result_event
from .model_events import is_all_voice, read_event, shown_calls
from .refusals import Refusals

logger = logging.getLogger(__name__)

_LOST_ANSWER = "The connection to the model was lost during this answer. Send your message again."
_INTERRUPTION = Event(author="model", interrupted=True)
_UNCAUSED = Cause()

Words = tuple[types.Content, dict[str, Any] | None]


@dataclass
class SessionEnd:
    """How the session ends."""

    by: str | None = None
    failure: str | None = None


class LiveSegments:
    """
    | About | Attributes |
    |---|---|
    | the chat | `_context`, `_writer`, `_input`, `session` |
    | the table | `turns`, `_effects`, `_timers`, `_belongs` |
    | messages | `messages`, `_new_message`, `_words`, `_emitting` |
    | calls | `records`, `announced`, `_made_by`, `_nested`, `_beside`, `_refusals`, `_news` |
    | the end | `is_ending`, `end` |
    """

    def __init__(
        self,
        context: RunContext,
        live_input: LiveInput,
        new_message: Callable[[], LiveMessage],
        listeners: AbstractSet[LiveListener],
    ) -> None:
        self.turns = LiveTurns(context.limits.live_resume_s)
        self.messages: dict[str, LiveMessage] = {}
        self.records = context.leased.records
        self.announced: dict[CallKey, Event] = {}
        """Calls of agents that run as tools: the session has no events of them."""
        self.is_ending = False
        self.end = SessionEnd()
        self.session: Session | None = None
        """The one that ADK appends to: no other may be, while it does."""
        self._context = context
        self._input = live_input
        self._writer = LiveWriter(context.chat.chat_id, self.records, listeners)
        self._new_message = new_message
        self._effects = EffectQueue(self._act)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._belongs: effects.Belongs | None = None
        self._words: dict[str, Words] = {}
        self._emitting: dict[str, tuple[Event, Files]] = {}
        self._made_by: dict[CallKey, Event] = {}
        self._nested: dict[CallKey, tuple[BaseTool, NestedCall]] = {}
        self._beside: dict[CallKey, asyncio.Task[Any]] = {}
        self._news = asyncio.Event()
        self._refusals = Refusals(context, self.wake)

    @property
    def open_message(self) -> LiveMessage | None:
        message = self.turns.open_message
        return self._message(message.name) if message is not None else None

    def feed(self, fact: Fact, cause: Cause = _UNCAUSED) -> "asyncio.Future[None]":
        return self._effects.put(self.turns.receive(fact), cause)

    def _message(self, name: str) -> LiveMessage:
        if name not in self.messages:
            self.messages[name] = self._new_message()
        return self.messages[name]

    # -- what clients do ----------------------------------------------------------------------------------------------

    async def write(self, message: LiveMessage, words: Words, by: LiveListener) -> None:
        name = message.message_id
        self.messages[name], self._words[name] = message, words
        try:
            await self.feed(facts.Wrote(name), Cause(by=by, raises=True))
        except BaseException:
            await self.feed(facts.NotSent(name))
            raise

    async def answer(self, answered: AnsweredCalls) -> LiveMessage | None:
        """The message that goes on; None if this session does not wait for these answers."""
        name = self.turns.find_message(answered.calls)
        if name is None or self._message(name).message_id != answered.message_id:
            return None
        self.records.update(answered.records)
        calls = self.turns.calls_of(name)
        known = frozenset(call for call in answered.calls if call in calls)  # the others have their results
        done = frozenset(call for call in calls if self._is_answered(call))
        await self.feed(facts.Answered(known, done), Cause(by=answered.by, answered=answered))
        return self._message(name)

    def _is_answered(self, call: CallKey) -> bool:
        found = self.records.get(call)
        return found is not None and found.is_answered

    # -- what the gate tells ------------------------------------------------------------------------------------------

    def route(self, event: Event, session: Session) -> None:
        """Before the event is stored: it is given its place in our messages."""
        self.session = session
        self.feed(facts.Came(read_event(event)))
        belongs, self._belongs = self._belongs, None
        # Voice alone is not stored, and comes fifty times a second.
        if belongs is not None and belongs.message is not None and not is_all_voice(event):
            ids = self._message(belongs.message).ids(belongs.step)
            event.custom_metadata = {**(event.custom_metadata or {}), **ids.metadata()}
        if not getattr(self._context.chat.runner.agent, "sub_agents", None):
            # ADK would tell the agent's own words to it later as those of somebody else.
            event.live_session_id = None

    def began(self, call: CallKey, beside: asyncio.Task[Any] | None) -> None:
        if beside is not None:
            self._beside[call] = beside
        self.feed(facts.Began(call, beside=beside is not None))

    def waits(self, call: CallKey, tool: BaseTool, nested_in: NestedCall | None, *, blocks: bool) -> None:
        if nested_in is not None:
            self._nested[call] = tool, nested_in
        owner = self.turns.find_message(frozenset({call}))
        is_asked = owner is not None and self._message(owner).translator.call_parts.has_asked(call, self.records)
        outer = nested_in.outer if nested_in is not None else None
        self.feed(facts.Waits(call, blocks=blocks, outer=outer, is_asked=is_asked))

    def left(self, call: CallKey) -> None:
        self.feed(facts.LeftToClient(call))

    def goes_on(self, call: CallKey) -> None:
        self.feed(facts.GoesOn(call))

    def abandoned(self, call: CallKey) -> None:
        self.feed(facts.Abandoned(call))

    def settled(self, call: CallKey, response: Any) -> bool:
        self._beside.pop(call, None)
        is_orphan = self.turns.is_orphan(call)
        self.feed(facts.Settled(call, response))
        return is_orphan

    async def news(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):  # `wait_for` of Python 3.11 may lose a cancellation
                await self._news.wait()

    async def finish_beside(self, longest_s: float) -> None:
        """Tools that run beside the conversation come to their ends: ADK has given them up."""
        if self._beside:
            await asyncio.wait(list(self._beside.values()), timeout=longest_s)

    def cancel_beside(self) -> None:
        for task in self._beside.values():
            task.cancel()

    # -- what the model says ------------------------------------------------------------------------------------------

    async def take(self, event: Event) -> None:
        """An event comes out of ADK."""
        named = event.actions.artifact_delta
        files = await self._context.chat.files(named) if named else None
        self._emitting[event.id] = event, files
        for call in shown_calls(event):
            self._made_by[CallKey(event.invocation_id, call.id or "")] = event
        await self.feed(facts.Emitted(event.id))
        del self._emitting[event.id]
        for response in event.get_function_responses():
            self._made_by.pop(CallKey(event.invocation_id, response.id or ""), None)

    # -- effects ------------------------------------------------------------------------------------------------------

    def _act(self, effect: Effect, cause: Cause) -> Awaitable[Any] | None:
        match effect:
            case effects.Belongs():
                self._belongs = effect
            case effects.Open(name, answered):
                self._open(name, answered, cause.answered)
            case effects.Write(name, event_id, plays):
                self._writer.write(self._message(name), *self._emitting[event_id], plays=plays)
            case effects.Announce(name, call):
                self._announce(self._message(name), call)
            case effects.WriteResult(name, call, response):
                self._write_result(self._message(name), call, response)
            case effects.Close(name, end, at_work):
                return self._close(self._message(name), end, at_work)
            case effects.Forget(name):
                self._forget(name)
            case effects.Hear(name, event_id):
                self._writer.hear(self._message(name), self._emitting[event_id][0])
            case effects.Refuse(call, why):
                if cause.raises:
                    return self._refusals.now(call, why)
                if why is Why.STOPPED:
                    return self._refusals.once(call, why)
                self._refusals.at_last(call, why)
            case effects.Withdraw(call):
                self._refusals.withdraw(call)
            case effects.Deliver(name, call):
                return self._deliver(self._message(name), call)
            case effects.StoreResult(name, call, response):
                return self._store_result(self._message(name), call, response)
            case effects.Send(name):
                self._input.say(*self._words.pop(name))
            case effects.Wake():
                self.wake()
            case effects.StartTimer(timer, seconds):
                self._start_timer(timer, seconds)
            case effects.Notify(name):
                self._writer.notify(self._message(name), cause.by)
            case effects.ClearVoice():
                self._writer.clear_voice()
        return None

    def _open(self, name: str, answered: frozenset[CallKey], request: AnsweredCalls | None) -> None:
        message = self._message(name)
        if answered and request is not None:
            message.open(self.records, answered, request.known_outputs, request.start_id)
        else:
            message.open(self.records, [call for call in self.turns.calls_of(name) if self._is_answered(call)])

    def _close(self, message: LiveMessage, end: End, at_work: frozenset[CallKey]) -> Awaitable[None] | None:
        translator = message.translator
        match end:
            case End.RUN:
                message.close(translator.end(self.records, self.end.by, self.end.failure))
            case End.LOST:
                message.close(translator.fail(_LOST_ANSWER, records=self.records))
                return self._keep_lost(message)
            case End.UNSENT:
                message.close(translator.abort(records=self.records))
            case End.FINISH | End.INTERRUPTED:
                if end is End.INTERRUPTED:
                    message.write(translator.feed(_INTERRUPTION, records=self.records))
                for call in at_work:
                    translator.works_on(call.call_id)
                message.close(translator.finish(records=self.records))
        return None

    async def _keep_lost(self, message: LiveMessage) -> None:
        """ADK stores nothing of an answer that does not come to its end, but the user has read it."""
        if self.session is None or not self.session.events:
            return
        ids = replace(message.ids(), ended_by="failure", failure=_LOST_ANSWER)
        invocation_id, author = self.session.events[-1].invocation_id, self._context.chat.root_author
        for event in unfinished_events(message.translator, ids, invocation_id, author):
            await self._context.chat.runner.session_service.append_event(self.session, event)

    def _forget(self, name: str) -> None:
        self.messages.pop(name, None)
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _start_timer(self, timer: effects.Timer, seconds: float) -> None:
        former = self._timers.pop(timer.message, None)
        if former is not None:
            former.cancel()
        loop = asyncio.get_running_loop()
        self._timers[timer.message] = loop.call_later(seconds, self.feed, facts.TimerFired(timer))

    def wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # -- effects: what is written -------------------------------------------------------------------------------------

    def _announce(self, message: LiveMessage, call: CallKey) -> None:
        tool, nested = self._nested.pop(call)
        event = announced_event(call, tool, nested, message.ids(self.turns.routes.step).metadata())
        self.announced[call] = self._made_by[call] = event
        message.write(message.translator.delegate(nested.outer.call_id))
        self._writer.write_event(message, event)

    def _write_result(self, message: LiveMessage, call: CallKey, response: Any) -> None:
        made_by = self._made_by.get(call)
        if made_by is not None:
            self._writer.write_event(message, result_event(made_by, call, response))

    # -- effects: what is stored --------------------------------------------------------------------------------------

    async def _deliver(self, message: LiveMessage, call: CallKey) -> None:
        """The result of a call that ADK has given out of its hands: it neither waits for it nor stores it."""
        part = response_part(self.records[call])
        await self._append(message, call, answer_event(self._made_by[call], [part], message.ids()))
        self._input.send_content(types.Content(role="user", parts=[part]))

    async def _store_result(self, message: LiveMessage, call: CallKey, response: Any) -> None:
        made_by = self._made_by.get(call)
        if made_by is not None:
            event = result_event(made_by, call, response)
            event.custom_metadata = message.ids(self.turns.routes.step).metadata()
            await self._append(message, call, event)

    async def _append(self, message: LiveMessage, call: CallKey, event: Event) -> None:
        if self.session is not None:
            await self._context.chat.runner.session_service.append_event(self.session, event)
        self._made_by.pop(call, None)
        self._writer.write_event(message, event)
        self._context.leased.store_result(call)

    # -- the end ------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing more is decided or carried out."""
        for timer in self._timers.values():
            timer.cancel()
        self._refusals.give_up()
        await self._effects.drained()
