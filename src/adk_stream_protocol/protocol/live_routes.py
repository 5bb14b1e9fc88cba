"""Which message an event of a live session belongs to, and when the model's turn is over.

All events of a live run come under one invocation, and nothing in them says where an answer begins or ends but
`turn_complete` - which, for some models, also ends the half of a turn in which a tool was called.
"""

from dataclasses import dataclass
from enum import StrEnum, auto

from .call_record import CallKey
from .live_facts import ModelEvent
from .live_messages import Call, Message, Phase, Unwanted


class Turn(StrEnum):
    """How far the model is in its turn."""

    PLAIN = auto()
    HAS_RESULT = auto()
    """A tool has answered, and the model has said nothing since."""
    CALL_ENDED = auto()
    """And it has ended the turn in which it called the tool."""
    CUT = auto()
    """It was interrupted, and its end is still to come."""
    EARLIER = auto()
    """It was still at something else when the user wrote, or was interrupted by that: the end that comes is not the end
    of the answer."""


@dataclass(frozen=True, slots=True)
class Place:
    event: ModelEvent
    message: Message | None
    """None: it is about none in particular."""
    over_before: Message | None = None
    is_over: bool = False
    plays: bool = True
    """Its voice is to be heard: the model was not interrupted."""


class Routes:
    """
    | Attribute | The message |
    |---|---|
    | `current` | that the model's next words belong to |
    | `heard` | whose user is speaking already; the model is not |
    | `after` | that is next, when the model has come to the end of what nobody wants to hear |
    | `unheard` | that is over, while what the user had said is not known yet |
    | `last` | that the model spoke in last |
    | `_told` | whose result came, for somebody who reads on, while the model spoke of something else |

    | Attributes | |
    |---|---|
    | `messages`, `calls` | all that are not forgotten |
    | `turn`, `_is_speaking`, `_is_saying` | how far the model is |
    | `_speaks_of_result` | its next words are about a late result, and not about anything that the user has said |
    | `_step`, `_begun` | counters |
    | `_inside` | the call that the agent works on whose words came last |
    """

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.calls: dict[CallKey, Call] = {}
        self.current: Message | None = None
        self.heard: Message | None = None
        self.after: Message | None = None
        self.unheard: Message | None = None
        self.last: Message | None = None
        self._told: Message | None = None
        self.turn = Turn.PLAIN
        self._is_speaking = False  # the model has begun a turn and not ended it, or a result begins one
        self._is_saying = False  # and it has said something since the last result
        self._speaks_of_result = False
        self._step = 0
        self._inside: CallKey | None = None
        self._begun = 0

    @property
    def step(self) -> str:
        """Of the model call that goes on now."""
        return f"step-{self._step}"

    def begin(self, phase: Phase, name: str | None = None) -> Message:
        """A message; without a name, one that nobody has asked for in writing."""
        if name is None:
            self._begun += 1
        message = Message(name or f"begun-{self._begun}", phase, awaits_words=name is None)
        self.messages[message.name] = message
        return message

    def done_with(self) -> list[Message]:
        """Messages of which nothing more can come. The newest is kept: a client that was away may still ask for it."""
        needed = (self.current, self.heard, self.after, self.unheard, self.last)
        ended = [message for message in self.messages.values() if message.phase is Phase.ENDED and not message.calls]
        return [message for message in ended[:-1] if message not in needed]

    # -- the user -----------------------------------------------------------------------------------------------------

    def ask(self, message: Message) -> None:
        """The user has written, and this is to be the answer."""
        self._give_up_heard()
        self.unheard = self._told = None
        self._go_on(message)

    def take_back(self, message: Message) -> None:
        """The model does not get what the user wrote: it is where it was."""
        self.current = None if self.current is message else self.current
        self.after = None if self.after is message else self.after
        if self.turn is Turn.EARLIER:
            self.turn = Turn.PLAIN

    def skip(self) -> None:
        """The user does not want to hear what is next, either: it is what the model is at."""
        if self.after is not None:
            self.current, self.after, self.turn = self.after, None, Turn.EARLIER

    def resume(self, message: Message) -> None:
        """Something was answered, and what the model says next is about it; unless it is saying something else."""
        if self.current is not message and (self.current is None or not self.current.is_open):
            self._go_on(message)

    def _go_on(self, message: Message) -> None:
        is_interrupted = self.current is not None and self.current.unwanted is Unwanted.INTERRUPTED
        if is_interrupted and self.current is self.last and self._is_saying:
            self.after = message
            return  # else it may answer what was interrupted and this together
        self.current = message
        if self.turn is Turn.CUT or (self._is_speaking and message.phase is Phase.ASKED):
            self.turn = Turn.EARLIER

    def end(self, message: Message) -> None:
        """The model's turn is over, and so is its message, the current one."""
        self.turn, self._is_speaking, self._is_saying = Turn.PLAIN, False, False
        self.current, self.after = self.after, None
        self.unheard = message if message.awaits_words else None

    @property
    def is_idle(self) -> bool:
        """The model says nothing before it gets something."""
        is_asked = self.current is not None and self.current.phase is Phase.ASKED
        return not self._is_speaking and not is_asked and self.turn is Turn.PLAIN

    def _give_up_heard(self) -> None:
        """The user goes on: what was said gets no answer of its own."""
        if self.heard is not None:
            self.heard.move(Phase.ENDED)
            self.heard = None

    # -- events -------------------------------------------------------------------------------------------------------

    @property
    def goes_on(self) -> bool:
        """Whether more of the same from the model, voice or text, changes nothing here."""
        message = self.current
        is_open = message is not None and message is self.last and message.phase is Phase.OPEN
        return is_open and self._is_saying and not self._speaks_of_result and self.turn is Turn.PLAIN

    def route(self, event: ModelEvent) -> Place:
        if event.is_recording:
            return Place(event, self.current or self.last)
        if event.results:
            return Place(event, self._take_results(event))
        if event.heard is not None:
            return Place(event, self._hear(is_all=event.heard))
        if event.is_said:
            return self._say(event)
        if event.is_turn_complete:
            return self._complete(event)
        if event.is_interrupted:
            is_answering = self.current is not None and self.current.phase is not Phase.ASKED
            self.turn = Turn.CUT if is_answering else Turn.EARLIER
        return Place(event, self.current)

    def _take_results(self, event: ModelEvent) -> Message | None:
        self._step += 1
        if event.is_untold:  # nothing to speak about
            self._leave_closed()  # what the model says next is about something else
            return self.calls[event.results[0]].message if event.results[0] in self.calls else self.current
        known = [self.calls[key] for key in event.results if key in self.calls]
        owner = known[0].message if known else self.current
        if owner is not None and owner is not self.current and self.current is self.last and self._is_saying:
            self._told = owner if owner.is_open else None  # the model comes to the end of what it says first
            return owner
        if self.turn is not Turn.CUT:  # a model that has ended its turn answers in one
            self.turn = Turn.HAS_RESULT if self._is_speaking else Turn.PLAIN
        self._is_speaking, self._is_saying = True, False
        if owner is self.current and owner is not None and self.after is not None:
            owner.unwanted = Unwanted.SUPERSEDED  # the model may answer this together with the user's next words
            self.current, self.after = self.after, None
        if self.current is None:  # what the model says next is about this
            is_read = owner is not None and owner.is_open and owner.unwanted is None
            is_near = owner is None or owner is self._newest or is_read
            self.current, self._speaks_of_result = (owner, False) if is_near else (None, True)
        return owner

    def _say(self, event: ModelEvent) -> Place:
        over: Message | None = None
        if self.turn is Turn.CUT and self.current is not None and self._is_new(event):
            over = self.current  # something new begins, though no event ended the message
            self.end(over)
        if self._leave_closed():
            self._speaks_of_result = self.heard is None
        if self.current is None:
            self.current, self.unheard = self._next(), None
        self._speaks_of_result = False
        if event.inside != self._inside:  # another model's call
            self._inside, self._step = event.inside, self._step + 1
        message = self.last = self.current
        self._is_speaking = self._is_saying = True
        if message.phase is Phase.ASKED:
            message.move(Phase.OPEN)
        if self.turn is not Turn.CUT:
            self.turn = Turn.CUT if event.is_interrupted else Turn.PLAIN
        for key in event.calls:
            if key not in self.calls:
                self.calls[key] = message.calls[key] = Call(key, message, inside=event.inside)
        plays = self.turn is not Turn.CUT
        if event.is_turn_complete:
            self.end(message)
        return Place(event, message, over, is_over=event.is_turn_complete, plays=plays)

    def _is_new(self, event: ModelEvent) -> bool:
        """Whether this is no rest of the answer that was interrupted. What was spoken of that may be told late; but not
        after the user has been heard."""
        is_late = event.is_transcript and self.heard is None
        return bool(event.calls) or (event.is_partial and not is_late)

    def _leave_closed(self) -> bool:
        """Nobody reads the current message any more, and the user has spoken or gone on since: the model does, too."""
        closed = self.current
        if closed is None or closed.phase not in (Phase.WAITING, Phase.ENDED) or closed.unwanted is not None:
            return False
        if closed is self._newest:  # what was heard is always newer
            return False
        self.end(closed)
        return True

    def _next(self) -> Message:
        """The message of words that belong to none: what was heard is answered; whoever has answered a call, and reads
        on, gets what is said of it; in a message that waits for somebody the model talks on, since clients look for
        cards in the last message; or the model begins by itself."""
        heard, self.heard = self.heard, None
        told, self._told = self._told, None
        if heard is not None:
            return heard
        if told is not None and told.is_open and told.unwanted is None:
            return told
        newest = self._newest
        if newest is not None and newest.phase is Phase.WAITING:
            return newest
        message = self.begin(Phase.HEARD)
        message.awaits_words = not self._speaks_of_result
        return message

    @property
    def _newest(self) -> Message | None:
        return next(reversed(self.messages.values()), None)

    def _hear(self, *, is_all: bool) -> Message:
        """The transcript of what the user said may come late, after the answer to it has begun."""
        message = self.current or (self.unheard if self.heard is None else None)
        if message is None or not message.awaits_words:
            if self.heard is None or not self.heard.awaits_words:
                self._give_up_heard()
                self.heard = self.begin(Phase.HEARD)
            message = self.heard
        message.awaits_words = not is_all
        return message

    def _complete(self, event: ModelEvent) -> Place:
        self._step += 1
        self._is_speaking = self._is_saying = False
        message = self.current
        if self.turn is Turn.EARLIER and (message is None or not event.has_reason):
            self.turn = Turn.PLAIN
            return Place(event, message)
        if message is None:
            return Place(event, None)
        # Older models end the turn in which they called a tool, and answer in another one: that, and what the user has
        # written since.
        is_half = event.goes_on is None and self.turn is Turn.HAS_RESULT
        if self.after is None and (is_half or (event.goes_on and self.turn is not Turn.CUT)):
            self.turn = Turn.CALL_ENDED
            return Place(event, message)
        self.end(message)
        return Place(event, message, is_over=True)
