"""What has happened in a world of the live table: the test's own books, and what no single effect may do."""

from dataclasses import dataclass, field

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_effects import WRITES, Effect, End, Timer, Why
from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_turns import LiveTurns


@dataclass(frozen=True)
class Scene:
    """What may happen, and how often."""

    name: str
    family: str = "2.5"
    calls: tuple[str, ...] = ("c1", "c2")
    """c1 blocks ADK, c2 runs beside the conversation, c3 is made by an agent that runs as c1, c4 is left to the client.
    """
    words: int = 2
    utterances: int = 0
    unasked: int = 0
    interrupts: int = 1
    cuts: int = 0
    losses: int = 0
    handovers: int = 0
    withdrawals: int = 0
    absences: int = 0
    ends: tuple[str, ...] = ()
    gated: bool = True
    """Tools may need an approval."""
    talks_on: bool = False
    """The model is told of calls that wait beside the conversation."""


@dataclass
class CallBook:
    beside: bool = False
    outer: str | None = None
    state: str = "to come"
    """to come, made, running, waiting, free (answered, and the gate does not know yet), settled, over."""
    is_shown: bool = False
    is_seen: bool = False
    """Its card was in a segment that somebody has read."""
    is_refused: bool = False
    is_taken_back: bool = False
    """By the model, which gets no result of it."""
    is_orphan: bool = False
    message: str = ""
    has_result: int = 0
    is_told: bool = False
    """The model knows that it waits."""

    @property
    def needs_nobody(self) -> bool:
        return self.is_refused or self.is_taken_back


@dataclass
class Books:
    """What has happened."""

    left: dict[str, int]
    calls: dict[str, CallBook]
    segments: dict[str, bool] = field(default_factory=dict[str, bool])
    """By message: whether a segment is open."""
    asked_for: set[str] = field(default_factory=set[str])
    """Messages whose segment somebody reads, or was told of."""
    timers: dict[str, Timer] = field(default_factory=dict[str, Timer])
    stale: list[Timer] = field(default_factory=list[Timer])
    sent: dict[str, int] = field(default_factory=dict[str, int])
    unanswered: set[str] = field(default_factory=set[str])
    utterances: list[str] = field(default_factory=list[str])
    unanswered_speech: str = ""
    """The message of what the user said last, if the model has said nothing since."""
    order: list[str] = field(default_factory=list[str])
    """Messages, as a client shows them."""
    taken_up: set[str] = field(default_factory=set[str])
    """Older messages with an answer that came after what the user wrote last."""
    opened_late: set[str] = field(default_factory=set[str])
    """Older messages that are open for a result, and that nobody has asked for."""
    owed: int = 0
    """Turns that the model has not ended."""
    is_joined: bool = False
    """It has answered several things in one turn."""
    is_talking: bool = False
    said_in: str = ""
    """The message that has the words of the turn that goes on."""
    in_flight: ModelEvent | None = None
    unheard: int = 0
    """Turns that the user wants to hear no more of."""
    unheard_in: str = ""
    is_cut: bool = False
    is_attended: bool = True
    is_lost: bool = False
    is_stopped: bool = False
    is_over: bool = False
    answered_by: str | None = None
    events: int = 0
    effects: list[Effect] = field(default_factory=list[Effect])


def key(name: str) -> CallKey:
    return CallKey("inner" if name == "c3" else "inv", name)


class BookedTable:
    """The table, and its effects in the books."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.turns = LiveTurns()
        names = {"c1": CallBook(), "c2": CallBook(beside=True), "c3": CallBook(outer="c1"), "c4": CallBook(beside=True)}
        self.books = Books(
            left={
                "write": scene.words,
                "speak": scene.utterances,
                "unasked": scene.unasked,
                "interrupt": scene.interrupts,
                "cut": scene.cuts,
                "lose": scene.losses,
                "hand over": scene.handovers,
                "take back": scene.withdrawals,
                "go": scene.absences,
            },
            calls={name: names[name] for name in scene.calls},
        )
        self.feed(facts.Attached())

    # -- the table, and its effects in the books ----------------------------------------------------------------------

    def feed(self, fact: facts.Fact) -> list[Effect]:
        done = self.turns.receive(fact)
        self.books.effects += done
        for effect in done:
            self.note(effect, fact)
        return done

    def note(self, effect: Effect, fact: facts.Fact) -> None:
        books = self.books
        assert not (books.is_lost and isinstance(effect, WRITES)), "something is written after the lease was lost"
        if isinstance(effect, effects.Open | effects.Belongs) and effect.message not in (None, *books.order):
            books.order.append(effect.message)
        match effect:
            case effects.Open(name, answered):
                assert not books.segments.get(name), "a segment is opened twice"
                books.segments[name] = True
                waiting = {key(call) for call, book in books.calls.items() if book.state in ("waiting", "left")}
                is_answer = isinstance(fact, facts.Answered)
                assert is_answer or not (answered & waiting), "a segment goes on after an answer that nobody gave"
                books.asked_for.discard(name)
                if isinstance(fact, facts.Wrote | facts.Answered) and name == (books.answered_by or name):
                    books.asked_for.add(name)
            case effects.Close(name, end, at_work):
                assert books.segments.get(name), "a segment is closed that is not open"
                books.segments[name] = False
                books.opened_late.discard(name)
                for book in books.calls.values():
                    if book.message == name and book.is_shown and book.state in ("waiting", "left"):
                        book.is_seen = book.is_seen or name in books.asked_for
                running = {key(call) for call, book in books.calls.items() if book.state in ("waiting", "left")}
                assert not (at_work & running), "a call that waits is shown as one that works"
                assert (end is End.RUN) == isinstance(fact, facts.Over), "a segment does not end as its session does"
            case (
                effects.Write(name)
                | effects.WriteResult(name)
                | effects.Announce(name)
                | effects.StoreResult(name)
                | effects.Deliver(name)
            ) if not getattr(effect, "is_shown", False):
                assert books.segments.get(name), "something is written into a closed segment"
                books.unanswered.discard(name)
            case effects.Notify(name):
                assert books.is_attended, "nobody is there to be told"
                assert name in books.segments, "somebody is told of a message that has no segment"
                books.asked_for.add(name)
            case effects.Send(name):
                books.sent[name] = books.sent.get(name, 0) + 1
                assert books.sent[name] == 1, "the user's words are sent twice"
                waiting = [book for book in books.calls.values() if book.state == "waiting" and not book.beside]
                assert not waiting, "words go to a model that waits for a call"
                books.owed += 1
            case effects.Refuse(call, why):
                book = books.calls[call.call_id]
                assert book.state in ("waiting", "left"), "a call is refused that does not wait"
                allowed = {
                    Why.STOPPED: isinstance(fact, facts.Stopped),
                    Why.UNSEEN: False,
                    Why.SUPERSEDED: isinstance(fact, facts.Wrote) or books.left["write"] < self.scene.words,
                }
                assert allowed[why], "a call is refused for no reason"
                book.is_refused = True
            case effects.TellPending(call):
                book = books.calls[call.call_id]
                is_waiting = book.state == "waiting" and not book.is_refused
                assert is_waiting, "the model is told of a call that does not wait"
                assert not book.is_told, "the model is told twice that a call waits"
                book.is_told = True
            case effects.StartTimer(timer):
                if timer.message in books.timers:
                    books.stale.append(books.timers[timer.message])
                books.timers[timer.message] = timer
            case _:
                pass
        if isinstance(effect, effects.WriteResult | effects.StoreResult | effects.Deliver):
            self.note_result(effect)

    def note_result(self, effect: effects.WriteResult | effects.StoreResult | effects.Deliver) -> None:
        book = self.books.calls[effect.call.call_id]
        if isinstance(effect, effects.StoreResult):
            assert book.is_orphan, "a result is stored that ADK stores itself"
        if isinstance(effect, effects.StoreResult | effects.Deliver):
            book.has_result += 1
            book.state = "over"
        if isinstance(effect, effects.Deliver):
            self.books.owed += 1

    def blocks(self, book: CallBook) -> bool:
        return not book.beside and book.outer is None and book.state not in ("to come", "over")
