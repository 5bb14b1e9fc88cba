"""The live table at work: what ADK, the gate and clients report to it, and how its effects are carried out.

Nothing is decided here: see protocol/live_turns.py.
"""

import asyncio
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from typing import Any

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool
from google.genai import types

from ...protocol import live_effects as effects
from ...protocol import live_facts as facts
from ...protocol.call_record import CallKey
from ...protocol.live_effects import Effect, End
from ...protocol.live_facts import Fact
from ...protocol.live_turns import LiveTurns
from ..calls.inner_calls import call_event
from ..calls.live_observer import NestedCall
from ..calls.resumption import answer_event, response_part
from ..event_parts import is_all_voice
from ..live_listener import LiveListener
from ..run import AnsweredCalls, RunContext
from ..run_end import unfinished_events
from .effect_queue import Cause, EffectQueue
from .input_queue import LiveInput
from .live_message import LiveMessage, SessionEnd, StoredIds
from .live_timers import LiveTimers
from .live_writer import Files, LiveWriter, result_event
from .model_events import read_event, shown_calls
from .refusals import Refusals
from .talking_on import TalkingOn

_LOST_ANSWER = "The connection to the model was lost during this answer. Send your message again."
_INTERRUPTION = Event(author="model", interrupted=True)
_UNCAUSED = Cause()

Words = tuple[types.Content, dict[str, Any] | None]


class LiveSegments:
    """
    | About | Attributes |
    |---|---|
    | the chat | `_context`, `writer`, `_input`, `_talking_on`, `session` |
    | the table | `turns`, `effect_queue`, `_timers`, `_belongs` |
    | messages | `messages`, `_new_message`, `_words`, `_emitting`, `_stored` |
    | calls | `records`, `announced`, `_made_by`, `_beside`, `_storing`, `_refusals`, `_news` |
    | the end | `is_ending`, `end` |
    """

    def __init__(
        self,
        context: RunContext,
        live_input: LiveInput,
        new_message: Callable[[], LiveMessage],
        listeners: AbstractSet[LiveListener],
        talking_on: TalkingOn,
    ) -> None:
        self.turns = LiveTurns(context.limits.live_resume_s)
        self.messages: dict[str, LiveMessage] = {}
        self.records = context.leased.records
        self.announced: set[CallKey] = set()
        """Calls of agents that run as tools: the session has no events of them."""
        self.is_ending, self.end = False, SessionEnd()
        self.session: Session | None = None
        """The one that ADK appends to: no other may be, while it does."""
        self._context, self._input, self._talking_on, self._new_message = context, live_input, talking_on, new_message
        self.writer = LiveWriter(context.chat.chat_id, self.records, listeners)
        self.effect_queue, self._timers = EffectQueue(self._act), LiveTimers(self.feed)
        self._belongs: effects.Belongs | None = None
        self._words: dict[str, Words] = {}
        self._stored = StoredIds()
        self._emitting: dict[str, tuple[Event, Files]] = {}
        self._made_by: dict[CallKey, Event] = {}
        self._beside: dict[CallKey, asyncio.Task[Any]] = {}
        self._storing: set[asyncio.Task[Any]] = set()  # of tools beside the conversation that have ended
        self._news = asyncio.Event()
        self._refusals = Refusals(context, self.wake, self.feed)

    @property
    def open_message(self) -> LiveMessage | None:
        message = self.turns.open_message
        return self._message(message.name) if message is not None else None

    def feed(self, fact: Fact, cause: Cause = _UNCAUSED) -> "asyncio.Future[None]":
        return self.effect_queue.put(self.turns.receive(fact), cause)

    def _message(self, name: str) -> LiveMessage:
        if (found := self.messages.get(name)) is None:
            found = self.messages[name] = self._new_message()
        return found

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

    # -- what the gate reports ----------------------------------------------------------------------------------------

    def route(self, event: Event, session: Session) -> None:
        """Before the event is stored: it is given its place in our messages."""
        self.session = session
        is_stored = not is_all_voice(event)
        if not (is_stored or event.interrupted or event.turn_complete) and self.turns.voice_came(event.id):
            return
        self.feed(facts.Came(read_event(event, self.records)))
        belongs, self._belongs = self._belongs, None
        if belongs is not None and belongs.message is not None and is_stored:
            self._stored.note(event, self._message(belongs.message), belongs.step)
        if not getattr(self._context.chat.runner.agent, "sub_agents", None):
            # Otherwise ADK would later show the agent its own words as those of another agent.
            event.live_session_id = None

    def began(self, call: CallKey, beside: asyncio.Task[Any] | None) -> None:
        if beside is not None:
            self._beside[call] = beside
        self.feed(facts.Began(call, beside=beside is not None))

    def waits(self, call: CallKey, tool: BaseTool, nested_in: NestedCall | None, *, blocks: bool) -> None:
        owner = self.turns.find_message(frozenset({call}))
        is_asked = owner is not None and self._message(owner).translator.call_parts.has_asked(call, self.records)
        outer = nested_in.outer if nested_in is not None else None
        tells_model = self._talking_on.is_on and not blocks and outer is None
        self.feed(facts.Waits(call, blocks=blocks, outer=outer, is_asked=is_asked, tells_model=tells_model))

    def message_id_of(self, outer: CallKey | None) -> str | None:
        name = self.turns.find_message(frozenset({outer})) if outer is not None else None
        return self._message(name).message_id if name is not None else None

    def left(self, call: CallKey) -> None:
        self.feed(facts.LeftToClient(call))

    def goes_on(self, call: CallKey) -> None:
        self.feed(facts.GoesOn(call))

    def abandoned(self, call: CallKey) -> None:
        self.feed(facts.Abandoned(call))

    def settled(self, call: CallKey, response: Any) -> bool:
        if (task := self._beside.pop(call, None)) is not None:
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)
        is_orphan = self.turns.is_orphan(call)
        self.feed(facts.Settled(call, response))
        return is_orphan

    async def news(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()

    async def finish_beside(self, longest_s: float) -> None:
        """Tools that run beside the conversation come to their ends: ADK has given them up."""
        if self._beside:
            await asyncio.wait(list(self._beside.values()), timeout=longest_s)

    def cancel_beside(self) -> None:
        for task in (*self._beside.values(), *self._storing):
            task.cancel()

    # -- what the model says ------------------------------------------------------------------------------------------

    async def take(self, event: Event) -> None:
        """An event comes out of ADK."""
        results, files = list[CallKey](), None
        if is_all_voice(event):
            if self.effect_queue.is_idle and (name := self.turns.voice_emitted(event.id)) is not None:
                return self.writer.play(self._message(name), event)
        else:
            results = [CallKey(event.invocation_id, response.id or "") for response in event.get_function_responses()]
            for call in results if not event.partial else ():
                self._context.leased.store_result(call)
            named = event.actions.artifact_delta
            files = await self._context.chat.files(named) if named else None
            for call in shown_calls(event):
                self._made_by[CallKey(event.invocation_id, call.id or "")] = event
        self._emitting[event.id] = event, files
        await self.feed(facts.Emitted(event.id))
        del self._emitting[event.id]
        for call in results:
            self._made_by.pop(call, None)

    # -- effects ------------------------------------------------------------------------------------------------------

    def _act(self, effect: Effect, cause: Cause) -> Awaitable[Any] | None:
        match effect:
            case effects.Belongs():
                self._belongs = effect
            case effects.Open(name, answered):
                self._open(name, answered, cause.answered)
            case effects.Write(name, event_id, plays):
                self.writer.write(self._message(name), *self._emitting[event_id], plays=plays)
            case effects.Announce(name, call):
                self._announce(self._message(name), call)
            case effects.WriteResult(name, call, response):
                self._write_result(self._message(name), call, response)
            case effects.Close(name, end, at_work):
                return self._close(self._message(name), end, at_work)
            case effects.Forget(name):
                self._forget(name)
            case effects.Hear(name, event_id):
                self.writer.hear(self._message(name), self._emitting[event_id][0])
            case effects.Refuse(call, why):
                return self._refusals.refuse(call, why, raises=cause.raises)
            case effects.TellPending(call):
                if self.turns.is_waiting(call):  # the result may have come while this effect had to wait
                    self._input.tell_pending(self._talking_on.pending_answer(call, self._made_by[call]))
            case effects.Withdraw(call):
                self._refusals.withdraw(call)
            case effects.Deliver(name, call):
                return self._deliver(self._message(name), call)
            case effects.StoreResult():
                return self._store_result(effect)
            case effects.Send(name):
                self._input.say(*self._words.pop(name))
            case effects.Wake():
                self.wake()
            case effects.StartTimer(timer, seconds):
                self._timers.start(timer, seconds)
            case effects.Notify(name):
                self.writer.notify(self._message(name), cause.by)
            case effects.ClearVoice():
                self.writer.clear_voice()
        return None

    def _open(self, name: str, answered: frozenset[CallKey], request: AnsweredCalls | None) -> None:
        message = self._message(name)
        self._context.leased.note_answers(answered & self.announced)
        if request is not None:
            message.open(self.records, answered, request.known_outputs, request.start_id)
        else:
            message.open(self.records, [call for call in answered if self._is_answered(call)])

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
                    self._stored.skip(message)
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
        message = self.messages.pop(name, None)
        if message is not None and message.last_log is not None:
            self._context.owner.keep_log(self._context.leased.key, message.message_id, message.last_log)
        self._timers.cancel(name)

    def wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # -- effects: what is written -------------------------------------------------------------------------------------

    def _announce(self, message: LiveMessage, call: CallKey) -> None:
        event = call_event(self.records[call], message.ids())
        self.announced.add(call)
        self._context.leased.unplaced.append(("call", call))
        self._made_by[call] = event
        self.writer.write_event(message, event)

    def _write_result(self, message: LiveMessage, call: CallKey, response: Any) -> None:
        if (made_by := self._made_by.get(call)) is not None:
            if call in self.announced:
                self._context.leased.unplaced.append(("result", call))
            self.writer.write_event(message, result_event(made_by, call, response))

    # -- effects: what is stored --------------------------------------------------------------------------------------

    async def _deliver(self, message: LiveMessage, call: CallKey) -> None:
        """The result of a call that ADK no longer manages: ADK neither waits for it nor stores it."""
        part = response_part(self.records[call])
        event = answer_event(self._made_by[call], [part], message.ids())
        await self._append(call, event)
        self.writer.write_event(message, event)
        self._input.send_content(types.Content(role="user", parts=[part]))

    async def _store_result(self, wanted: effects.StoreResult) -> None:
        made_by, message = self._made_by.get(wanted.call), self._message(wanted.message)
        if made_by is not None:
            event = result_event(made_by, wanted.call, wanted.response)
            event.custom_metadata = message.ids(self.turns.routes.step).metadata()
            await self._append(wanted.call, event)
            if not wanted.is_shown:
                self.writer.write_event(message, event)

    async def _append(self, call: CallKey, event: Event) -> None:
        if self.session is not None:
            await self._context.chat.runner.session_service.append_event(self.session, event)
        self._made_by.pop(call, None)
        self._context.leased.store_result(call)

    # -- the end ------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing more is decided or carried out."""
        self._timers.cancel_all()
        self._refusals.give_up()
        await self.effect_queue.drained()
