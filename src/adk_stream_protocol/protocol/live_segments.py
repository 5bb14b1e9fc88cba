"""How the segments of a live session open, close and wait, and a short cut for voice: see `live_turns.py`."""

from collections.abc import Collection
from enum import StrEnum, auto

from . import live_effects as effects
from .call_record import CallKey
from .live_effects import QUIET_S, SILENT_S, WRITES, Effect, End, Timer, Why
from .live_facts import ModelEvent
from .live_messages import Call, CallPhase, Message, Phase, Unwanted
from .live_routes import Place, Routes


class SessionPhase(StrEnum):
    OPEN = auto()
    LOST = auto()
    """Somebody else has the chat: nothing is written any more."""
    CLOSED = auto()


class LiveSegments:
    def __init__(self) -> None:
        self.phase = SessionPhase.OPEN
        self.routes = Routes()
        self._places: dict[str, Place] = {}  # of events that ADK is storing
        self._is_attended = False
        self._unnotified: list[str] = []  # messages that went on while nobody listened
        self._timers = 0
        self._effects: list[Effect] = []

    # -- what is asked of it ------------------------------------------------------------------------------------------

    @property
    def open_message(self) -> Message | None:
        """The message of the open segment: the one that the model speaks in, if there are several."""
        if self.routes.current is not None and self.routes.current.is_open:
            return self.routes.current
        return next((message for message in self.routes.messages.values() if message.is_open), None)

    @property
    def is_at_work(self) -> bool:
        """Whether a tool is."""
        return any(message.at_work for message in self.routes.messages.values())

    def find_message(self, calls: frozenset[CallKey]) -> str | None:
        """Whose calls these are, if answers to them are for this session."""
        found = (self.routes.calls[key] for key in calls if key in self.routes.calls)
        return next((call.message.name for call in found if call.phase is not CallPhase.SHOWN), None)

    def calls_of(self, name: str) -> list[CallKey]:
        """The calls of a message whose results clients do not have."""
        calls = self.routes.messages[name].calls.values()
        return [call.key for call in calls if call.phase is not CallPhase.SHOWN]

    def has_shown(self, key: CallKey) -> bool:
        """Whether clients have the result of this call, which ADK keeps back until its siblings have theirs."""
        call = self.routes.calls.get(key)
        return call is not None and call.phase is CallPhase.SHOWN

    def is_waiting(self, key: CallKey) -> bool:
        """Whether ADK waits for the answer to this call."""
        call = self.routes.calls.get(key)
        return call is not None and call.phase is CallPhase.WAITING

    def is_orphan(self, key: CallKey) -> bool:
        """Whether ADK does nothing with the result of this call."""
        call = self.routes.calls.get(key)
        return call is not None and call.phase is CallPhase.ORPHANED

    # -- more of the same ---------------------------------------------------------------------------------------------

    # Voice comes fifty times a second, and hardly ever changes anything. So there is a short cut: for an event of voice
    # alone that goes on with what the model says, the facts `Came` and `Emitted` are not reported. Nor are they for
    # words that do not go through ADK.

    def voice_came(self, event_id: str) -> bool:
        """Whether `Came` would decide nothing but the place of this event. Then it has that."""
        if not self.routes.goes_on:
            return False
        self._places[event_id] = Place(_VOICE, self.routes.current)
        return True

    def voice_emitted(self, event_id: str) -> str | None:
        """The message in which this voice is to be played, if `Emitted` would decide nothing else."""
        place = self._places.get(event_id)
        message = place.message if place is not None and place.event is _VOICE else None
        if message is None or self.phase is SessionPhase.CLOSED or not self._only_grows(message):
            return None
        del self._places[event_id]
        message.timer = None
        return message.name

    def more_said(self) -> str | None:
        """The message to which a piece of text belongs that goes on with the last one; None if the facts `Came` and
        `Emitted` would decide anything else, or if there is an event in between."""
        message = self.routes.current if self.routes.goes_on and not self._places else None
        if message is None or self.phase is not SessionPhase.OPEN or not self._only_grows(message):
            return None
        message.timer = None
        return message.name

    def _only_grows(self, message: Message) -> bool:
        is_open = message is self.routes.current and message.phase is Phase.OPEN
        return is_open and message.unwanted is None and not message.calls

    # -- effects ------------------------------------------------------------------------------------------------------

    def _do(self, *wanted: Effect) -> None:
        if self.phase is SessionPhase.LOST:
            self._effects += [effect for effect in wanted if not isinstance(effect, WRITES)]
        else:
            self._effects += wanted

    # -- clients ------------------------------------------------------------------------------------------------------

    def _attend(self) -> None:
        self._is_attended = True
        for name in self._unnotified:
            self._notify(name)
        self._unnotified = []

    def _notify(self, name: str) -> None:
        """If nobody listens, the next listener is notified."""
        if self._is_attended:
            self._do(effects.Notify(name))
        elif name not in self._unnotified:
            self._unnotified.append(name)

    # -- segments -----------------------------------------------------------------------------------------------------

    def _open(self, message: Message, answered: frozenset[CallKey] = frozenset()) -> None:
        """Before something is written: the message may have no open segment."""
        if not message.is_open:
            message.move(Phase.OPEN)
            self._do(effects.Open(message.name, answered or message.not_waiting))
            if message.unwanted is not Unwanted.SUPERSEDED:
                self._notify(message.name)

    def _close(self, message: Message, end: End = End.FINISH) -> None:
        if message.is_open:
            message.timer, message.is_over = None, False
            message.move(Phase.WAITING if message.waiting else Phase.ENDED)
            self._do(effects.Close(message.name, end, message.not_waiting))

    def _close_when_decided(self, message: Message) -> None:
        """The model's turn is over. If the gate is about to ask somebody, the card belongs into this segment."""
        message.is_over = message.is_open and message.is_undecided
        if message.is_over:
            self._start_timer("silent", message, SILENT_S)
        else:
            self._close(message)

    def _close_if_it_waits(self, message: Message) -> None:
        """A client sends nothing while its stream is open: to be answered, the segment must end."""
        waiting = message.waiting
        if not message.is_open or not waiting or message.at_work:
            return
        if not all(call.is_shown for call in waiting):
            return  # the gate is ahead: the event of the call comes
        for call in [call for call in message.calls.values() if call.phase is CallPhase.SETTLED]:
            self._do(effects.WriteResult(message.name, call.key, call.response))
            call.phase = CallPhase.SHOWN
        if message.is_blocked:
            self._close(message)
        else:
            self._start_timer("quiet", message, QUIET_S)

    def _close_when_quiet(self, message: Message) -> None:
        """A segment that the model does not speak in, and that nothing keeps open."""
        is_kept = message is self.routes.current or message.calls or message.timer is not None
        if message.is_open and message.phase is not Phase.ASKED and not is_kept:
            self._start_timer("quiet", message, QUIET_S)

    def _start_timer(self, name: str, message: Message, seconds: float) -> None:
        self._timers += 1
        message.timer = Timer(name, message.name, self._timers)
        self._do(effects.StartTimer(message.timer, seconds))

    def _fired(self, timer: Timer) -> None:
        message = self.routes.messages.get(timer.message)
        if message is None or message.timer != timer:
            return
        message.timer = None
        is_lost = timer.name == "resumes"
        self._close(message, End.LOST if is_lost else End.FINISH)
        if is_lost or message.unwanted is Unwanted.INTERRUPTED or self.routes.after is not None:
            self._end_turn(message)

    def _end_turn(self, message: Message) -> None:
        """The model says nothing more in it by itself. What it says about a late result is wanted again."""
        if message is self.routes.current:
            self.routes.end(message)
        if message.unwanted is Unwanted.INTERRUPTED:
            message.unwanted = None

    # -- calls --------------------------------------------------------------------------------------------------------

    def _forget_call(self, key: CallKey) -> None:
        call = self.routes.calls.pop(key, None)
        if call is not None:
            del call.message.calls[key]

    def _store_result(self, call: Call, response: object) -> None:
        """Of a call that ADK does not wait for. The model does not get it."""
        message, was_open = call.message, call.message.is_open
        self._forget_call(call.key)
        self._open(message)
        self._do(effects.StoreResult(message.name, call.key, response))
        if was_open:
            self._close_when_quiet(message)
        else:
            self._close(message)

    def _show_waiting(self, call: Call, *, is_asked: bool = False) -> None:
        """A call that waits and is shown: its card must reach a client, or it is refused."""
        message = call.message
        asked = (other for other in self.routes.messages.values() if other.phase is Phase.ASKED)
        if message.unwanted is not None or (call.blocks and any(other is not message for other in asked)):
            # The user has gone on: nobody looks at its card, and the words wait for it.
            message.unwanted = message.unwanted or Unwanted.SUPERSEDED
            self._do(effects.Refuse(call.key, Why.SUPERSEDED), effects.Wake())
            return
        if call.tells_model:
            call.tells_model = False
            self._do(effects.TellPending(call.key))
        is_closed, is_over = not message.is_open, message.is_over
        if is_asked and is_closed:
            message.move(Phase.WAITING)
            return
        self._open(message)
        self._close_if_it_waits(message)
        if (is_closed or is_over) and message.timer is not None and not message.is_undecided:
            self._close(message)  # it was opened or kept open for the card alone

    def _keep_results(self, message: Message) -> None:
        """ADK stores the results of calls that it waits for together, and has given up one of them."""
        for call in [call for call in message.calls.values() if call.blocks and call.phase in _ENDED]:
            is_shown = call.phase is CallPhase.SHOWN
            self._forget_call(call.key)
            self._do(effects.StoreResult(message.name, call.key, call.response, is_shown=is_shown))

    def _store_settled(self, coming: Collection[CallKey]) -> None:
        """The run is over, and with it goes what ADK had to store of tools beside the conversation. `coming`: calls
        whose results it has stored, though they have not come out yet."""
        for call in list(self.routes.calls.values()):
            if call.phase is CallPhase.SETTLED and not call.blocks and call.key not in coming:
                self._store_result(call, call.response)


_ENDED = (CallPhase.SETTLED, CallPhase.SHOWN)
_VOICE = ModelEvent("", is_said=True)
