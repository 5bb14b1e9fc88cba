"""The turns and segments of a live session, as a table: facts in, effects out.

It decides which message an event belongs to, when a segment opens and closes and how, who is notified, and which calls
are refused. It has no clock and does no I/O: a timer is an effect, and comes back as a fact. `adk/live/` feeds it and
carries out its effects, in their order.

- live_facts.py, live_effects.py: what comes in, and what goes out.
- live_messages.py: the phases of messages and calls.
- live_routes.py: which message an event belongs to.
- live_segments.py: how segments open, close and wait; the short cut for voice.
"""

from . import live_effects as effects
from . import live_facts as facts
from .call_record import CallKey
from .live_effects import QUIET_S, SILENT_S, Effect, End, Why
from .live_facts import Fact, ModelEvent
from .live_messages import Call, CallPhase, Message, Phase, Unwanted
from .live_routes import Place
from .live_segments import LiveSegments, SessionPhase


class LiveTurns(LiveSegments):
    def __init__(self, resume_s: float = 10) -> None:
        """`resume_s`: how long a model gets to go on that was cut in the middle of an answer."""
        super().__init__()
        self._resume_s = resume_s
        self._unsent: list[str] = []  # what the user has written while ADK waited for an answer to a call

    # -- facts --------------------------------------------------------------------------------------------------------

    def receive(self, fact: Fact) -> list[Effect]:
        if self.phase is SessionPhase.CLOSED:
            return []
        self._decide(fact)
        decided, self._effects = self._effects, []
        return decided

    def _decide(self, fact: Fact) -> None:
        match fact:
            case facts.Came(event):
                self._came(event)
            case facts.Emitted(event_id):
                self._emitted(event_id)
            case facts.Wrote(name):
                self._wrote(name)
            case facts.NotSent(name):
                self._not_sent(self.routes.messages[name])
            case facts.Answered(calls, done):
                self._answered(calls, done)
            case facts.InterruptedByUser():
                self._interrupted()
            case facts.Attached():
                self._attend()
            case facts.Left():
                self._is_attended = False
            case facts.ResultSent():
                self._send_unsent()
            case facts.Began(key, beside):
                self._began(key, beside)
            case facts.Waits():
                self._waits(fact)
            case facts.LeftToClient(key):
                self._left(key)
            case facts.GoesOn(key):
                self._goes_on(key)
            case facts.Abandoned(key):
                self._abandoned(key)
            case facts.Settled(key, response):
                self._settled(key, response)
            case facts.Withdrawn(keys):
                self._do(*(effects.Withdraw(key) for key in keys if key in self.routes.calls), effects.Wake())
            case facts.WithdrawalRecorded(key, response):
                call = self.routes.calls.get(key)
                if call is not None and call.phase is CallPhase.LEFT:
                    self._store_result(call, response)
            case facts.ConnectionLost():
                self._connection_lost()
            case facts.SaidAgain():
                self._said_again()
            case facts.HandedOver():
                self._hand_over()
                self._store_settled({key for place in self._places.values() for key in place.event.results})
            case facts.Stopped():
                waiting = [call for call in self.routes.calls.values() if call.phase in _ASKED]
                for call in waiting:
                    call.tells_model = False
                self._do(*(effects.Refuse(call.key, Why.STOPPED) for call in waiting), effects.Wake())
            case facts.Shutdown():
                pass  # what waits is left as it is
            case facts.LeaseLost():
                self.phase = SessionPhase.LOST
            case facts.Over():
                self._over()
            case _:
                self._fired(fact.timer)

    # -- the user -----------------------------------------------------------------------------------------------------

    def _wrote(self, name: str) -> None:
        """Calls that ADK waits for are refused by that: it would hear nothing before they end."""
        self._forget_ended()
        blocked = [other for other in self.routes.messages.values() if other.is_blocked]
        message = self.routes.begin(Phase.ASKED, name)
        self.routes.ask(message)
        self._do(effects.Open(name))
        for other in blocked:
            other.unwanted = other.unwanted or Unwanted.SUPERSEDED
            for call in other.calls.values():
                if call.phase is CallPhase.WAITING and call.blocks:
                    self._do(effects.Refuse(call.key, Why.SUPERSEDED))
        if blocked:
            self._unsent.append(name)  # the model is to hear first what became of its calls
            self._do(effects.Wake())
        else:
            self._do(effects.Send(name))
        self._notify(name)

    def _forget_ended(self) -> None:
        in_flight = [found for place in self._places.values() for found in (place.message, place.over_before)]
        for message in self.routes.done_with():
            if message not in in_flight and message.name not in self._unnotified:
                del self.routes.messages[message.name]
                self._do(effects.Forget(message.name))

    def _not_sent(self, message: Message) -> None:
        if message.name in self._unsent:
            self._unsent.remove(message.name)
        for other in self.routes.messages.values():
            if other.phase is Phase.WAITING and other.unwanted is Unwanted.SUPERSEDED:
                other.unwanted = None
        self._close(message, End.UNSENT)
        self.routes.take_back(message)

    def _send_unsent(self) -> None:
        if not any(message.is_blocked for message in self.routes.messages.values()):
            self._do(*(effects.Send(name) for name in self._unsent))
            self._unsent = []

    def _answered(self, answered: frozenset[CallKey], done: frozenset[CallKey]) -> None:
        known = [self.routes.calls[key] for key in answered if key in self.routes.calls]
        if not known or self.phase is SessionPhase.LOST:
            return
        message = known[0].message
        message.unwanted, message.timer = None, None
        left = [call for call in known if call.phase is CallPhase.LEFT and call.key in done]
        for call in message.calls.values():
            if call.phase is CallPhase.WAITING and call.key in done:
                call.phase = CallPhase.RUNNING
        if message.is_open:
            self._notify(message.name)
        self._open(message, frozenset(call.key for call in known))
        self.routes.resume(message)
        for call in left:
            self._forget_call(call.key)
            self._do(effects.Deliver(message.name, call.key))
        self._close_if_it_waits(message)
        self._close_when_quiet(message)
        self._do(effects.Wake())

    def _interrupted(self) -> None:
        self._do(effects.ClearVoice())  # also of a message whose words are complete
        self.routes.skip()
        message = self.routes.current
        if message is not None and message.is_open and not message.is_busy:
            is_said = self.routes.is_idle or (message.timer is not None and message.timer.name == "resumes")
            message.unwanted = Unwanted.INTERRUPTED
            self._close(message, End.INTERRUPTED)
            if is_said:
                self._end_turn(message)  # the model says no more of it: what comes next is something else
            else:
                self._start_timer("silent", message, SILENT_S)

    # -- the model ----------------------------------------------------------------------------------------------------

    def _came(self, event: ModelEvent) -> None:
        place = self._places[event.id] = self.routes.route(event)
        self._forget_ended()
        name, before = (found.name if found else None for found in (place.message, place.over_before))
        self._do(effects.Belongs(event.id, name, self.routes.step, place.is_over, before))

    def _emitted(self, event_id: str) -> None:
        place = self._places.pop(event_id, None)
        if place is None:
            return
        if place.over_before is not None:
            self._close(place.over_before)
        message, event = place.message, place.event
        if event.is_interrupted:  # a voice may still be playing
            self._do(effects.ClearVoice())
        if event.hands_over:
            self._hand_over()
        if message is None or event.is_recording:  # what was recorded, clients have heard
            return
        if event.heard is not None:
            self._do(effects.Hear(message.name, event_id))
            return
        message.timer = None
        self._show(message, place, event_id)
        if place.is_over:
            self._close_when_decided(message)
            self._end_turn(message)
        elif message.unwanted is not None and event.results and not message.at_work:
            self._close(message)
            if message.unwanted is Unwanted.SUPERSEDED and not any(call.blocks for call in message.calls.values()):
                message.unwanted = None
        elif event.results and (event.is_untold or message is not self.routes.current) and not message.is_blocked:
            self._start_timer("quiet", message, QUIET_S)  # the model is at something else, or gets no result
        elif event.is_turn_complete or (message.unwanted is Unwanted.INTERRUPTED and not message.is_busy):
            self._start_timer("silent", message, SILENT_S)
        self._close_if_it_waits(message)
        self._close_when_quiet(message)  # the user may have gone on before this event came out

    def _show(self, message: Message, place: Place, event_id: str) -> None:
        event = place.event
        if event.calls and self.routes.after is None and message.unwanted is Unwanted.INTERRUPTED:
            message.unwanted = None  # the model did not know: what it asks and does is shown after all
        is_wanted = message.unwanted is None
        if event.is_said and (is_wanted or event.calls or event.results):
            self._open(message)
        if message.is_open and (is_wanted or event.calls or event.results or not event.is_said):
            self._do(effects.Write(message.name, event_id, plays=is_wanted and place.plays))
        for key in event.calls:
            call = self.routes.calls.get(key)
            if call is not None:
                call.is_shown = True
                if call.phase is CallPhase.MADE:
                    call.phase = CallPhase.RUNNING
                elif call.phase is CallPhase.WAITING:
                    self._show_waiting(call)
        for key in event.results:
            self._forget_call(key)
            message.is_over = False  # there is something to talk about again

    def _hand_over(self) -> None:
        for call in self.routes.calls.values():
            if call.phase is CallPhase.RUNNING and not call.blocks:
                call.phase = CallPhase.ORPHANED

    def _connection_lost(self) -> None:
        """An answer that is cut in the middle has a few seconds to go on."""
        if self.routes.current is not None and self.routes.current.unwanted is Unwanted.INTERRUPTED:
            self._end_turn(self.routes.current)
        message = self.routes.current
        has_timer = message is not None and message.phase is Phase.ASKED and message.timer is not None
        if message is not None and message.is_open and not message.calls and not has_timer:
            self._start_timer("resumes", message, self._resume_s)

    def _said_again(self) -> None:
        """An answer that has not begun comes from the start."""
        message = self.routes.current
        is_cut = message is not None and message.timer is not None and message.timer.name == "resumes"
        if message is not None and message.phase is Phase.ASKED and is_cut:
            message.timer = None

    # -- the gate -----------------------------------------------------------------------------------------------------

    def _began(self, key: CallKey, beside: bool) -> None:
        call = self.routes.calls.get(key)
        if call is not None:
            call.blocks, call.has_begun = not beside, True
            if call.message.is_over:
                self._close_when_decided(call.message)

    def _waits(self, fact: facts.Waits) -> None:
        call = self.routes.calls.get(fact.call)
        outer = self.routes.calls.get(fact.outer) if fact.outer is not None else None
        if call is None:
            message = outer.message if outer is not None else self.routes.current
            if message is None or fact.outer is None:  # no event of it will come
                self._do(effects.Refuse(fact.call, Why.UNSEEN), effects.Wake())
                return
            call = self.routes.calls[fact.call] = message.calls[fact.call] = Call(fact.call, message)
            call.outer = fact.outer
        outer = outer or (self.routes.calls.get(call.inside) if call.inside is not None else None)
        call.phase, call.tells_model = CallPhase.WAITING, fact.tells_model and call.inside is None
        call.blocks = fact.blocks if outer is None else outer.blocks
        call.message.timer = None
        if fact.outer is not None:
            self._open(call.message)
            self._do(effects.Announce(call.message.name, call.key, fact.outer))
            call.is_shown = True
        if call.is_shown:
            self._show_waiting(call, is_asked=fact.is_asked)

    def _left(self, key: CallKey) -> None:
        call = self.routes.calls.get(key)
        if call is not None:
            call.phase, call.blocks = CallPhase.LEFT, False
            if call.is_shown:
                self._show_waiting(call)

    def _goes_on(self, key: CallKey) -> None:
        call = self.routes.calls.get(key)
        if call is not None and call.phase is CallPhase.WAITING:
            call.phase = CallPhase.RUNNING
            call.message.timer = None

    def _abandoned(self, key: CallKey) -> None:
        call = self.routes.calls.get(key)
        if call is None:
            return
        self._forget_call(key)
        message = call.message
        if call.blocks:
            self._keep_results(message)
        if message.phase is Phase.WAITING and not message.waiting:
            message.move(Phase.ENDED)
        elif not message.is_busy:
            self._start_timer("quiet", message, QUIET_S)

    def _settled(self, key: CallKey, response: object) -> None:
        call = self.routes.calls.get(key)
        if call is None:
            return
        message = call.message
        if call.phase is CallPhase.ORPHANED:
            self._store_result(call, response)
        elif call.outer is not None:  # ADK emits no event of it
            self._forget_call(key)
            self._open(message)
            self._do(effects.WriteResult(message.name, key, response))
            self._close_if_it_waits(message)
        else:
            call.phase, call.response = CallPhase.SETTLED, response
            if message.is_blocked:
                self._open(message)
                self._close_if_it_waits(message)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _over(self) -> None:
        for message in self.routes.messages.values():
            self._close(message, End.RUN)
        self.phase = SessionPhase.CLOSED


_ASKED = (CallPhase.WAITING, CallPhase.LEFT)
