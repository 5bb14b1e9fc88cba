"""Every order of facts that a live session can meet, breadth first over the real table, and what holds in all of them.

The other side is played here: a user who writes, speaks, interrupts and answers; a model that says, calls, and ends or
does not end its turns, as both families of Gemini do; ADK, which reads nothing from the model while a blocking tool
waits; a gate; a connection that is lost; a server that stops. The books of what happened are the test's own; of the
table they only read which timers are still set.
"""

from collections.abc import Iterator
from typing import Any

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_messages import Phase
from protocol.live_books import BookedTable, CallBook, key
from protocol.live_checks import check


class World(BookedTable):
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
        if books.owed > 1 and not books.is_talking and not books.is_cut:
            yield "join"
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
        elif book.state == "free" or (book.state == "waiting" and book.needs_nobody):
            yield f"free {name}"
        if books.left["take back"] and book.state in ("waiting", "free") and not book.needs_nobody:
            yield f"withdraw {name}"
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
        books.unanswered_speech = ""
        books.taken_up.clear()
        books.unanswered.add(name)
        self.feed(facts.Wrote(name))
        books.answered_by = None
        assert books.segments.get(name), "what the user wrote has no segment"
        assert all(books.calls[call].is_refused for call in waiting), "words do not free a model that waits for a call"

    def _interrupt(self, _: str) -> None:
        self.books.left["interrupt"] -= 1
        done = self.feed(facts.InterruptedByUser())
        assert effects.ClearVoice() in done, "the voice goes on"
        awaited = (found for found in self.turns.routes.messages.values() if found.phase is Phase.ASKED)
        is_emitted = self.books.in_flight is None  # else it ends with that
        assert not is_emitted or not any(awaited), "the user goes on waiting for an answer that was interrupted"
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
        if event.is_turn_complete:
            shown = {call for effect in done if isinstance(effect, effects.Close) for call in effect.at_work}
            undecided = {key(call) for call, book in books.calls.items() if book.state == "made"}
            assert not shown & undecided, "a segment ends before its card can come"
            has_calls = any(book.message == books.said_in for book in books.calls.values())
            assert has_calls or not books.segments.get(books.said_in), "a turn is over, and its segment is open"
            books.said_in = ""
            is_idle = all(book.state in ("to come", "over") for book in books.calls.values()) and not books.owed
            if is_idle and not self.scene.losses and not books.is_joined:  # then nobody can tell what was answered
                kept = [name for name, timer in books.timers.items() if timer.name == "silent" and books.segments[name]]
                assert not kept, "a turn is over, and its segment is open"
        if event.calls:
            for call in event.calls:
                books.calls[call.call_id].is_shown = True
        if event.results:
            opened = {effect.message for effect in done if isinstance(effect, effects.Open)}
            books.opened_late |= opened - set(books.order[-1:]) - books.taken_up
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
        newest, is_closed = books.order[-1] if books.order else "", not any(books.segments.values())
        asked = [book for book in books.calls.values() if book.message == newest and book.state == "waiting"]
        speech, books.unanswered_speech = books.unanswered_speech, ""
        self._came(self._event(is_said=True, is_partial=True))
        self._emit()
        written = [effect.message for effect in books.effects if isinstance(effect, effects.Write)]
        books.said_in = "".join(written[-1:])
        assert not books.opened_late.intersection(written), "words stand in an old message"
        if is_closed and speech:
            assert written in ([], [speech]), "what was said aloud is not answered in its message"
        elif is_closed and written:
            assert written == books.order[-1:], "words stand in an old message"
            assert not asked or written == [newest], "words stand behind a card that waits"

    def _call(self, name: str) -> None:
        books = self.books
        if not books.owed:
            books.left["unasked"] -= 1
            books.owed += 1
        books.is_talking, books.is_cut, books.unanswered_speech = True, False, ""
        books.calls[name].state = "made"
        self._came(self._event(is_said=True, calls=(key(name),)))

    def _done(self, _: str) -> None:
        self.books.owed -= 1
        self.books.unheard = max(0, self.books.unheard - 1)
        self.books.is_talking = False
        self._came(self._event(is_turn_complete=True, goes_on=None if self.scene.family == "2.5" else False))

    def _join(self, _: str) -> None:
        """The model answers all that it was told in one turn."""
        self.books.owed, self.books.is_joined = 1, True
        self.books.unheard = min(1, self.books.unheard)

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
        event, shown = self._event(heard=True), list(books.order)
        self.feed(facts.Came(event))
        (heard,) = self.feed(facts.Emitted(event.id))
        assert isinstance(heard, effects.Hear), "nobody is told what was heard"
        assert heard.message not in books.utterances, "two utterances stand in one message"
        assert heard.message not in ("A", "B"), "what was spoken stands in what was written"
        books.utterances.append(heard.message)
        if heard.message not in shown:  # else it was answered before the model told what it had heard
            books.unanswered_speech = heard.message
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
        books.said_in = ""  # the call that hands over is in this turn, and has its result
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
        tells = self.scene.talks_on and book.beside
        self.feed(facts.Waits(key(name), blocks=not book.beside, outer=outer, tells_model=tells))

    def _await(self, name: str) -> None:
        """The end of the segment has shown the card: the record was there, and the gate had not said so."""
        book = self.books.calls[name]
        book.state, book.is_seen = "waiting", True
        tells = self.scene.talks_on and book.beside
        self.feed(facts.Waits(key(name), blocks=not book.beside, is_asked=True, tells_model=tells))

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
        books.opened_late.discard(books.calls[name].message)
        books.taken_up.add(books.calls[name].message)
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
        if book.needs_nobody:
            self._settle(name)
        else:
            self.feed(facts.Began(key(name), beside=book.beside))

    def _withdraw(self, name: str) -> None:
        self.books.left["take back"] -= 1
        self.books.calls[name].is_taken_back = True
        done = self.feed(facts.Withdrawn((key(name),)))
        assert effects.Withdraw(key(name)) in done or self.books.is_lost, "nobody is told that a call was taken back"

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
        is_untold = books.calls[name].is_taken_back
        if not is_untold and (self.scene.family == "2.5" or not books.owed):
            books.owed += 1  # it ends the turn of the call, and answers in another one
        books.unheard += bool(books.unheard)
        self._came(self._event(is_said=True, results=(key(name),), is_untold=is_untold))
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
