"""Every order of facts that a live session can meet, breadth first over the real table, and what holds in all of them.

The other side is played here: a user who writes, speaks, interrupts and answers; a model that says, calls, and ends or
does not end its turns, as both families of Gemini do; ADK, which reads nothing from the model while a blocking tool
waits; a gate; a connection that is lost; a server that stops. The books of what happened are the test's own; of the
table they only read which timers are still set.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

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
    absences: int = 0
    ends: tuple[str, ...] = ()
    gated: bool = True
    """Tools may need an approval."""


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
    is_orphan: bool = False
    message: str = ""
    has_result: int = 0


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
    owed: int = 0
    """Turns that the model has not ended."""
    is_talking: bool = False
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


class World:
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
        match effect:
            case effects.Open(name):
                assert not books.segments.get(name), "a segment is opened twice"
                books.segments[name] = True
                books.asked_for.discard(name)
                if isinstance(fact, facts.Wrote | facts.Answered) and name == (books.answered_by or name):
                    books.asked_for.add(name)
            case effects.Close(name, end, at_work):
                assert books.segments.get(name), "a segment is closed that is not open"
                books.segments[name] = False
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
            ):
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

    # -- what can happen ----------------------------------------------------------------------------------------------

    def moves(self) -> Iterator[str]:
        books = self.books
        if books.is_over:
            return
        if books.in_flight is not None:
            yield "emit"
        yield from self.moves_of_the_user()
        for name, book in books.calls.items():
            yield from self.moves_of_a_call(name, book)
        is_blocked = any(self.blocks(book) for book in books.calls.values())
        if books.in_flight is None and not is_blocked:
            yield from self.moves_of_the_model()
        for message in books.timers:
            yield f"timer {message}"
        yield from self.scene.ends if not books.is_stopped else ("over",)

    def moves_of_the_user(self) -> Iterator[str]:
        books = self.books
        is_open = any(books.segments.values())
        if books.left["write"] and not is_open and not books.is_stopped:
            yield "write"
        if books.left["interrupt"]:
            yield "interrupt"
        if books.left["go"] and books.is_attended:
            yield "go"
        if not books.is_attended:
            yield "come"

    def moves_of_the_model(self) -> Iterator[str]:
        books, left = self.books, self.books.left
        if books.owed or left["unasked"]:
            yield "say"
            for name, book in books.calls.items():
                if book.state == "to come" and book.outer is None:
                    yield f"call {name}"
        if books.owed:
            yield "done"
        if left["cut"] and books.is_talking:
            yield "cut"
        if left["speak"]:
            yield "speak"
        if left["lose"]:
            yield "lose"
            yield "lose, and send again"
        if left["hand over"] and any(book.beside and book.state != "to come" for book in books.calls.values()):
            yield "hand over"

    def moves_of_a_call(self, name: str, book: CallBook) -> Iterator[str]:
        books = self.books
        if book.state == "made":
            if name == "c4":
                yield f"leave {name}"
            elif self.scene.gated:
                yield f"wait {name}"
                if self.is_visible(book) and book.message in books.asked_for:
                    yield f"await {name}"
            if name != "c4":
                yield f"run {name}"
        outer = books.calls[book.outer] if book.outer is not None else None
        if book.state == "to come" and outer is not None and outer.state == "running":
            yield f"wait {name}"
        if book.state in ("waiting", "left") and not book.is_refused and self.is_visible(book):
            yield f"answer {name}"
        if book.state in ("waiting", "free") and book.is_orphan:
            yield f"abandon {name}"
        elif book.state == "free" or (book.state == "waiting" and book.is_refused):
            yield f"free {name}"
        inner = [
            other for other in books.calls.values() if other.outer == name and other.state not in ("to come", "over")
        ]
        if book.state == "running" and not inner:
            yield f"settle {name}"
        if book.state == "settled" and books.in_flight is None:
            yield f"result {name}"

    def is_visible(self, book: CallBook) -> bool:
        """A client has the card, and nothing is open that keeps it from answering."""
        return book.is_shown and not self.books.segments.get(book.message, False)

    # -- it happens ---------------------------------------------------------------------------------------------------

    def happen(self, move: str) -> None:
        self.books.effects = []
        kind, _, name = move.partition(" ")
        getattr(self, f"_{kind.replace(',', '')}")(name)
        for message, timer in list(self.books.timers.items()):
            known = self.turns.routes.messages.get(message)
            if known is None or known.timer != timer:  # it runs on, and may do nothing any more
                self.books.stale.append(self.books.timers.pop(message))
        check(self)

    def _write(self, _: str) -> None:
        books = self.books
        books.left["write"] -= 1
        name = "AB"[books.left["write"]]
        waiting = [call for call, book in books.calls.items() if book.state == "waiting" and not book.beside]
        waiting = [call for call in waiting if not books.calls[call].is_refused]
        books.answered_by = name
        books.unanswered.add(name)
        self.feed(facts.Wrote(name))
        books.answered_by = None
        assert books.segments.get(name), "what the user wrote has no segment"
        assert all(books.calls[call].is_refused for call in waiting), "words do not free a model that waits for a call"

    def _interrupt(self, _: str) -> None:
        self.books.left["interrupt"] -= 1
        done = self.feed(facts.InterruptedByUser())
        assert effects.ClearVoice() in done, "the voice goes on"
        if any(isinstance(effect, effects.Close) for effect in done):
            self.books.unheard = self.books.owed
            self.books.unheard_in = self.spoken_in

    def _go(self, _: str) -> None:
        self.books.left["go"] -= 1
        self.books.is_attended = False
        assert self.feed(facts.Left()) == [], "something happens because nobody is there"

    def _come(self, _: str) -> None:
        self.books.is_attended = True
        self.feed(facts.Attached())

    def _timer(self, name: str) -> None:
        timer = self.books.timers.pop(name)
        self.books.stale.append(timer)
        self.feed(facts.TimerFired(timer))
        if timer.name == "silent" and name == self.books.unheard_in:
            self.books.unheard = 0

    # -- the model

    def _event(self, **fields: Any) -> ModelEvent:
        self.books.events += 1
        return ModelEvent(f"e{self.books.events}", **fields)

    def _came(self, event: ModelEvent) -> None:
        done = self.feed(facts.Came(event))
        (belongs,) = (effect for effect in done if isinstance(effect, effects.Belongs))
        for call in event.calls:
            assert belongs.message is not None, "a call belongs to no message"
            self.books.calls[call.call_id].message = belongs.message
        self.books.in_flight = event

    def _emit(self, _: str = "") -> None:
        event, books = self.books.in_flight, self.books
        assert event is not None
        books.in_flight = None
        done = self.feed(facts.Emitted(event.id))
        assert self.turns.receive(facts.Emitted(event.id)) == [], "an event is emitted twice"
        written = [effect for effect in done if isinstance(effect, effects.Write)]
        if event.calls or event.results:
            assert written, "a call or a result is not shown"
        if event.calls:
            for call in event.calls:
                books.calls[call.call_id].is_shown = True
        if event.results:
            self.feed(facts.ResultSent())
        if event.is_said and event.is_partial and not event.calls:
            assert written or books.unheard, "words are lost"
            assert all(not effect.plays for effect in written) or not books.is_cut, "voice after an interruption"
        if event.is_turn_complete:
            books.is_cut = False

    def _say(self, _: str) -> None:
        books = self.books
        if not books.owed:
            books.left["unasked"] -= 1
            books.owed += 1
        books.is_talking, books.is_cut = True, False  # something new begins
        self._came(self._event(is_said=True, is_partial=True))
        self._emit()

    def _call(self, name: str) -> None:
        books = self.books
        if not books.owed:
            books.left["unasked"] -= 1
            books.owed += 1
        books.is_talking, books.is_cut = True, False
        books.calls[name].state = "made"
        self._came(self._event(is_said=True, calls=(key(name),)))

    def _done(self, _: str) -> None:
        self.books.owed -= 1
        self.books.unheard = max(0, self.books.unheard - 1)
        self.books.is_talking = False
        self._came(self._event(is_turn_complete=True, goes_on=None if self.scene.family == "2.5" else False))

    def _cut(self, _: str) -> None:
        self.books.left["cut"] -= 1
        self.books.is_cut, self.books.is_talking = True, False
        unanswered = set(self.books.unanswered)
        self._came(self._event(is_interrupted=True))
        done = self.feed(facts.Emitted(f"e{self.books.events}"))
        self.books.unanswered = unanswered
        self.books.in_flight = None
        assert effects.ClearVoice() in done, "an interrupted voice goes on"

    def _speak(self, _: str) -> None:
        books = self.books
        books.left["speak"] -= 1
        event = self._event(heard=True)
        self.feed(facts.Came(event))
        (heard,) = self.feed(facts.Emitted(event.id))
        assert isinstance(heard, effects.Hear), "nobody is told what was heard"
        assert heard.message not in books.utterances, "two utterances stand in one message"
        assert heard.message not in ("A", "B"), "what was spoken stands in what was written"
        books.utterances.append(heard.message)
        books.left["unasked"] += 1

    def _lose(self, how: str) -> None:
        books = self.books
        books.left["lose"] -= 1
        again = bool(how)
        books.owed = 1 if again and books.unanswered and books.owed > books.is_talking else 0
        books.is_talking = books.is_cut = False
        books.unheard = 0
        self.feed(facts.ConnectionLost())
        if again:
            self.feed(facts.SaidAgain())
            timers = {name: message.timer for name, message in self.turns.routes.messages.items()}
            cut = {name for name, timer in timers.items() if timer is not None and timer.name == "resumes"}
            assert not books.unanswered & cut, "words that were sent again are given up"

    def _hand(self, _: str) -> None:
        books = self.books
        books.left["hand over"] -= 1
        event = self._event(is_said=True, results=(CallKey("inv", "transfer"),), hands_over=True)
        books.owed = max(books.owed, 1) + (self.scene.family == "2.5")
        books.unheard += bool(books.unheard)
        self.feed(facts.Came(event))
        self.feed(facts.Emitted(event.id))
        for book in books.calls.values():
            if book.beside and book.state in ("running", "waiting", "free"):
                book.is_orphan = True

    # -- calls

    def _wait(self, name: str) -> None:
        book = self.books.calls[name]
        book.state = "waiting"
        if book.outer is not None:
            book.message, book.is_shown = self.books.calls[book.outer].message, True
        outer = key(book.outer) if book.outer is not None else None
        self.feed(facts.Waits(key(name), blocks=not book.beside, outer=outer))

    def _await(self, name: str) -> None:
        """The end of the segment has shown the card: the record was there, and the gate had not said so."""
        book = self.books.calls[name]
        book.state, book.is_seen = "waiting", True
        self.feed(facts.Waits(key(name), blocks=not book.beside, is_asked=True))

    def _leave(self, name: str) -> None:
        self.books.calls[name].state = "left"
        self.feed(facts.LeftToClient(key(name)))

    def _run(self, name: str) -> None:
        self.books.calls[name].state = "running"
        self.feed(facts.Began(key(name), beside=self.books.calls[name].beside))

    def _answer(self, name: str) -> None:
        books, calls = self.books, frozenset({key(name)})
        if books.calls[name].state == "waiting" and not books.is_lost:
            books.calls[name].state = "free"
        books.answered_by = books.calls[name].message
        done = self.feed(facts.Answered(calls, done=calls))
        books.answered_by = None
        if books.is_lost:
            assert done == [], "something is written after the lease was lost"
            return
        if books.calls[name].message == self.spoken_in:
            books.unheard = 0
        assert effects.Wake() in done, "the call does not learn of its answer"
        opened = [effect.message for effect in done if isinstance(effect, effects.Open)]
        assert books.calls[name].message in opened, "an answer has no stream"

    @property
    def spoken_in(self) -> str:
        return self.turns.routes.current.name if self.turns.routes.current else ""

    def _free(self, name: str) -> None:
        book = self.books.calls[name]
        book.state = "running"
        self.feed(facts.GoesOn(key(name)))
        if book.is_refused:
            self._settle(name)
        else:
            self.feed(facts.Began(key(name), beside=book.beside))

    def _abandon(self, name: str) -> None:
        self.books.calls[name].state = "over"
        done = self.feed(facts.Abandoned(key(name)))
        assert not any(isinstance(effect, effects.Refuse) for effect in done), "a call is refused that stays pending"
        assert self.turns.find_message(frozenset({key(name)})) is None, "answers go to a run that cannot act on them"

    def _settle(self, name: str) -> None:
        book = self.books.calls[name]
        book.state = "over" if book.outer is not None else "settled"
        done = self.feed(facts.Settled(key(name), "result"))
        if book.outer is not None:
            assert any(isinstance(effect, effects.WriteResult) for effect in done), "a nested result is not shown"
        if book.is_orphan:
            assert book.has_result or self.books.is_lost, "the result of a tool that was given up is lost"
            book.state = "over"

    def _result(self, name: str) -> None:
        books = self.books
        books.calls[name].state = "over"
        books.calls[name].has_result += 1
        if self.scene.family == "2.5" or not books.owed:
            books.owed += 1  # it ends the turn of the call, and answers in another one
        books.unheard += bool(books.unheard)
        self._came(self._event(is_said=True, results=(key(name),)))
        self._emit()

    # -- the end

    def _stop(self, _: str) -> None:
        self.books.is_stopped = True
        self.feed(facts.Stopped())
        for book in self.books.calls.values():
            assert book.state not in ("waiting", "left") or book.is_refused, "a stopped call goes on waiting"

    def _shutdown(self, _: str) -> None:
        self.books.is_stopped = True
        assert self.feed(facts.Shutdown()) == [], "a shutdown decides something"

    def _unlease(self, _: str) -> None:
        self.books.is_stopped = self.books.is_lost = True
        assert self.feed(facts.LeaseLost()) == [], "a lost lease decides something"

    def _over(self, _: str) -> None:
        was_open = [name for name, is_open in self.books.segments.items() if is_open]
        done = self.feed(facts.Over())
        self.books.is_over = True
        closed = [effect.message for effect in done if isinstance(effect, effects.Close)]
        assert sorted(closed) == sorted(was_open), "a segment outlives its session"
        assert not any(isinstance(effect, effects.Refuse) for effect in done), "the end refuses what waits"
        for fact in (facts.Wrote("C"), facts.InterruptedByUser(), facts.Over()):
            assert self.turns.receive(fact) == [], "something happens after the end"


# -- what holds in each world ------------------------------------------------------------------------------------------


def check(world: World) -> None:
    books = world.books
    for timer in books.stale:
        assert world.turns.receive(facts.TimerFired(timer)) == [], "a late timer changes something"
    for name, book in books.calls.items():
        assert book.has_result <= 1, "a result comes twice"
        if book.state in ("waiting", "left") and not book.is_refused and not books.is_over:
            check_waiting(world, name, book)
    if books.is_over:
        return
    for name, is_open in books.segments.items():
        if is_open:
            check_open(world, name)
    unsent = [name for name in "AB" if name in books.segments and name not in books.sent]
    if unsent and not books.is_lost:
        blocked = [book for book in books.calls.values() if world.blocks(book)]
        assert blocked, "the user's words never reach the model"


def check_waiting(world: World, name: str, book: CallBook) -> None:
    """Somebody sees its card, or something that comes will show it."""
    books = world.books
    if not book.beside:
        asked = {other for other in books.unanswered if books.segments[other]} - {book.message}
        assert not asked or not book.is_shown, "the user's words wait for a call"
    if book.is_shown and not books.segments.get(book.message):
        assert book.is_seen or book.message in books.asked_for or not books.is_attended, (
            "a call waits that nobody is told of"
        )
        return
    assert books.in_flight is not None or is_moving(world, book.message), "a call waits behind an open segment"


def check_open(world: World, name: str) -> None:
    """The model owes something, a tool works, or a timer runs."""
    books = world.books
    assert books.owed or books.in_flight is not None or is_moving(world, name), "a segment is open for ever"
    assert name in books.asked_for or not books.is_attended or name in superseded(world), "nobody is told of a segment"


def is_moving(world: World, name: str) -> bool:
    books = world.books
    at_work = ("made", "running", "free", "settled")
    asking = {book.outer for book in books.calls.values() if book.state == "waiting" and not book.is_refused}
    working = [call for call, book in books.calls.items() if book.state in at_work and call not in asking]
    refused = [book for book in books.calls.values() if book.is_refused and book.state != "over"]
    return bool(working or refused) or name in books.timers


def superseded(world: World) -> set[str]:
    return {book.message for book in world.books.calls.values() if book.is_refused}


# -- the walk ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explored:
    worlds: int
    steps: int
    depth: int


def explore(scene: Scene, most_worlds: int) -> Explored:
    """Breadth first, so that the trail of what fails is the shortest one."""
    frontier: list[tuple[bytes, tuple[str, ...]]] = [(pickle.dumps(World(scene)), ())]
    seen: set[bytes] = set()
    steps = depth = 0
    while frontier and len(seen) < most_worlds:
        depth += 1
        reached: list[tuple[bytes, tuple[str, ...]]] = []
        for world, trail in frontier:
            for move in list(pickle.loads(world).moves()):
                after: World = pickle.loads(world)
                steps += 1
                try:
                    after.happen(move)
                except Exception as broken:
                    raise AssertionError(f"{broken}, after {[*trail, move]}") from broken
                print_of = fingerprint(after)
                if print_of not in seen:
                    seen.add(print_of)
                    reached.append((pickle.dumps(after), (*trail, move)))
        frontier = reached
    return Explored(len(seen), steps, depth)


def fingerprint(world: World) -> bytes:
    """Worlds that differ only in the numbers of their events and timers are the same."""
    turns, books = world.turns, world.books
    routes = turns.routes
    named = [getattr(routes, name) for name in ("current", "heard", "after", "unheard", "last")]
    state = (
        turns.phase.value,
        routes.turn.value,
        [message.name if message else "" for message in named],
        [
            (
                message.name,
                message.phase.value,
                message.awaits_words,
                message.unwanted,
                message.timer.name if message.timer else "",
                [(call.key.call_id, call.phase.value, call.blocks, call.is_shown) for call in message.calls.values()],
            )
            for message in routes.messages.values()
        ],
        turns._unsent,  # pyright: ignore[reportPrivateUsage]
        turns._unnotified,  # pyright: ignore[reportPrivateUsage]
        sorted(books.left.items()),
        sorted((name, repr(book)) for name, book in books.calls.items()),
        sorted(books.segments.items()),
        sorted(books.asked_for),
        sorted((name, timer.name) for name, timer in books.timers.items()),
        sorted(books.sent.items()),
        books.utterances,
        repr(replace(books.in_flight, id="")) if books.in_flight else "",
        (books.owed, books.is_talking, books.unheard, books.is_cut, books.is_attended),
        (books.is_lost, books.is_stopped, books.is_over),
    )
    return repr(state).encode()


SCENES = [
    Scene("words and two calls"),
    Scene("words and two calls, Gemini 3", family="3"),
    Scene("speech", calls=("c1",), words=1, utterances=2, unasked=1, cuts=1),
    Scene("a tool beside the conversation, and a transfer", calls=("c2",), handovers=1),
    Scene("a lost connection", calls=("c1",), losses=1, cuts=1),
    Scene("an agent that runs as a tool", calls=("c1", "c3"), words=2),
    Scene("a call that is left to the client", calls=("c4",), words=2),
    Scene("the end", calls=("c1", "c2"), words=1, ends=("stop", "shutdown", "unlease", "over")),
    Scene("the end of a call that is left", calls=("c4",), words=1, ends=("stop", "shutdown", "unlease", "over")),
    Scene("nobody is there", calls=("c2",), words=2, absences=1),
    Scene("tools that need nobody", gated=False),
]
