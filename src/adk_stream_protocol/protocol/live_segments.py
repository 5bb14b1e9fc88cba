"""How the segments of a live session open, close and wait: see `live_turns.py`."""

from enum import StrEnum

from . import live_effects as effects
from .call_record import CallKey
from .live_effects import QUIET_S, WRITES, Effect, End, Timer, Why
from .live_messages import Call, CallPhase, Message, Phase, Unwanted
from .live_routes import Routes


class SessionPhase(StrEnum):
    OPEN = "open"
    DRAINING = "draining"
    """It ends soon: what waits is left as it is."""
    LOST = "lost"
    """Somebody else has the chat: nothing is written any more."""
    CLOSED = "closed"


class LiveSegments:
    def __init__(self) -> None:
        self.phase = SessionPhase.OPEN
        self.routes = Routes()
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

    def has_told(self, key: CallKey) -> bool:
        """Whether clients have the result of this call, which ADK keeps back until its siblings have theirs."""
        call = self.routes.calls.get(key)
        return call is not None and call.phase is CallPhase.SHOWN

    def is_orphan(self, key: CallKey) -> bool:
        """Whether ADK does nothing with the result of this call."""
        call = self.routes.calls.get(key)
        return call is not None and call.phase is CallPhase.ORPHANED

    # -- effects ------------------------------------------------------------------------------------------------------

    def _do(self, *wanted: Effect) -> None:
        is_lost = self.phase is SessionPhase.LOST
        self._effects += [effect for effect in wanted if not (is_lost and isinstance(effect, WRITES))]

    # -- clients ------------------------------------------------------------------------------------------------------

    def _attend(self) -> None:
        self._is_attended = True
        for name in self._unnotified:
            self._notify(name)
        self._unnotified = []

    def _notify(self, name: str) -> None:
        """If nobody listens, whoever comes next is told."""
        if self._is_attended:
            self._do(effects.Notify(name))
        elif name not in self._unnotified:
            self._unnotified.append(name)

    # -- segments -----------------------------------------------------------------------------------------------------

    def _open(self, message: Message, answered: frozenset[CallKey] = frozenset()) -> None:
        """Before something is written: the message may have no open segment."""
        if not message.is_open:
            message.move(Phase.OPEN)
            self._do(effects.Open(message.name, answered))
            if message.unwanted is not Unwanted.SUPERSEDED:
                self._notify(message.name)

    def _close(self, message: Message, end: End = End.FINISH) -> None:
        if message.is_open:
            message.timer = None
            waiting = message.waiting
            message.move(Phase.WAITING if waiting else Phase.ENDED)
            working = (call for call in message.calls.values() if call.phase is not CallPhase.SHOWN)
            self._do(effects.Close(message.name, end, frozenset(call.key for call in working if call not in waiting)))

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
        if is_lost or message.unwanted is Unwanted.INTERRUPTED:
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

    def _show_waiting(self, call: Call, *, is_asked: bool = False) -> None:
        """A call that waits and is shown: its card must reach a client, or it is refused."""
        message = call.message
        asked = (other for other in self.routes.messages.values() if other.phase is Phase.ASKED)
        if message.unwanted is not None or (call.blocks and any(other is not message for other in asked)):
            # The user has gone on: nobody looks at its card, and the words wait for it.
            self._do(effects.Refuse(call.key, Why.SUPERSEDED), effects.Wake())
            return
        is_closed = not message.is_open
        if is_asked and is_closed:
            message.move(Phase.WAITING)
            return
        self._open(message)
        self._close_if_it_waits(message)
        if is_closed and message.timer is not None:
            self._close(message)  # it was opened for the card alone
