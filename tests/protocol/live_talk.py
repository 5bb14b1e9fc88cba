"""A live session, told in few words what the user, the model and the gate do: its routes alone, or the whole table."""

import itertools
from typing import Any

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_effects import QUIET_S, SILENT_S, Effect, Timer
from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_messages import Message, Phase, Unwanted
from adk_stream_protocol.protocol.live_routes import Place, Routes
from adk_stream_protocol.protocol.live_turns import LiveTurns

PAY, LOOK, INNER, STRANGE = (CallKey("inv", name) for name in ("pay", "look", "inner", "strange"))


class Talk(Routes):
    def write(self, name: str) -> Message:
        message = self.begin(Phase.ASKED, name)
        self.ask(message)
        return message

    def comes(self, **about: Any) -> Place:
        return self.route(ModelEvent("event", **about))

    def says(self, **about: Any) -> Message:
        message = self.comes(is_said=True, **about).message
        assert message is not None
        return message

    def hears(self, *, is_all: bool = False) -> Message:
        message = self.comes(heard=is_all).message
        assert message is not None
        return message

    def gets(self, *keys: CallKey) -> Message | None:
        """The model gets these results."""
        return self.comes(is_said=True, results=keys).message

    def completes(self, **about: Any) -> Place:
        return self.comes(is_turn_complete=True, **about)

    def answers(self, name: str, *calls: CallKey) -> Message:
        """The user has written, and this is the whole answer."""
        message = self.write(name)
        self.says(calls=calls, is_turn_complete=True)
        return message


def interrupted_in_a_sentence() -> tuple[Talk, Message, Message]:
    """And the user has written something else since, which is next."""
    at = Talk()
    first = at.write("A")
    at.says(calls=(PAY,))
    first.unwanted = Unwanted.INTERRUPTED
    return at, first, at.write("B")


class Table:
    """A session with a listener. What is done for an event is told without its place; the event is called `e`."""

    def __init__(self, *, is_attended: bool = True) -> None:
        self.turns = LiveTurns()
        self._numbers = itertools.count()
        if is_attended:
            self.feed(facts.Attached())

    def feed(self, fact: facts.Fact) -> list[Effect]:
        return self.turns.receive(fact)

    def phase(self, name: str) -> Phase:
        return self.turns.routes.messages[name].phase

    # -- the model

    def event(self, **about: Any) -> list[Effect]:
        """It comes, and is emitted."""
        event = ModelEvent(f"e{next(self._numbers)}", **about)
        return [*self.feed(facts.Came(event)), *self.feed(facts.Emitted(event.id))]

    def call(self, *keys: CallKey) -> list[Effect]:
        return self.event(is_said=True, calls=keys)

    def comes(self, **about: Any) -> list[Effect]:
        """It is not emitted yet."""
        return self.feed(facts.Came(ModelEvent("e", **about)))

    def emits(self) -> list[Effect]:
        return self.feed(facts.Emitted("e"))

    def shows(self, **about: Any) -> list[Effect]:
        """What is done when the event is emitted."""
        self.comes(**about)
        return self.emits()

    def says(self, **about: Any) -> list[Effect]:
        return self.shows(is_said=True, **about)

    def gets(self, *keys: CallKey) -> list[Effect]:
        """The model gets these results."""
        return self.says(results=keys)

    # -- the user

    def write(self, name: str) -> list[Effect]:
        return self.feed(facts.Wrote(name))

    def ask_for(self, *keys: CallKey, name: str = "A") -> None:
        """The user writes, and the model makes these calls."""
        self.write(name)
        self.call(*keys)

    def answers(self, name: str) -> None:
        """The user writes, and this is the whole answer."""
        self.write(name)
        self.event(is_said=True, is_turn_complete=True)

    def interrupt(self) -> list[Effect]:
        return self.feed(facts.InterruptedByUser())

    def answer(self, *keys: CallKey, done: tuple[CallKey, ...] | None = None) -> list[Effect]:
        return self.feed(facts.Answered(frozenset(keys), frozenset(keys if done is None else done)))

    # -- the gate

    def wait(self, key: CallKey, **about: Any) -> list[Effect]:
        return self.feed(facts.Waits(key, **{"blocks": True, **about}))

    def begin(self, key: CallKey, *, beside: bool = False) -> list[Effect]:
        return self.feed(facts.Began(key, beside=beside))

    def go_on(self, *keys: CallKey) -> None:
        for key in keys:
            assert self.feed(facts.GoesOn(key)) == []

    def settle(self, key: CallKey, response: object = None) -> list[Effect]:
        return self.feed(facts.Settled(key, response))

    # -- time

    def fire(self, started: effects.StartTimer) -> list[Effect]:
        return self.feed(facts.TimerFired(started.timer))


def of(kind: type[Effect], done: list[Effect]) -> list[Any]:
    return [effect for effect in done if isinstance(effect, kind)]


def quiet(serial: int, message: str = "A") -> effects.StartTimer:
    return effects.StartTimer(Timer("quiet", message, serial), QUIET_S)


def silent(serial: int, message: str = "A") -> effects.StartTimer:
    return effects.StartTimer(Timer("silent", message, serial), SILENT_S)
