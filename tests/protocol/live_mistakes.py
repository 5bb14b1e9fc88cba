"""Mistakes that the exploration of the live table must notice. Each of them changes one thing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_segments
from adk_stream_protocol.protocol.live_effects import Effect, End
from adk_stream_protocol.protocol.live_messages import Call, CallPhase, Message, Phase, Unwanted
from adk_stream_protocol.protocol.live_routes import Routes
from adk_stream_protocol.protocol.live_segments import LiveSegments, SessionPhase
from adk_stream_protocol.protocol.live_turns import LiveTurns

Plant = Callable[[pytest.MonkeyPatch], None]
Real = Callable[..., Any]


def method(owner: type, name: str, mistaken: Callable[..., Any]) -> Plant:
    """`mistaken` gets the real method first."""
    real = getattr(owner, name)
    return lambda patch: patch.setattr(owner, name, lambda *args, **given: mistaken(real, *args, **given))


def never(owner: type, name: str) -> Plant:
    return method(owner, name, lambda real, *args, **given: None)


def answers(owner: type, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(owner, name, property(lambda _: value))


def without(kind: type[Effect]) -> Plant:
    """The effect is never decided."""
    return effects_changed(lambda done: [effect for effect in done if not isinstance(effect, kind)])


def effects_changed(change: Callable[[list[Effect]], list[Effect]]) -> Plant:
    return method(LiveTurns, "receive", lambda real, turns, fact: change(real(turns, fact)))


def twice(kind: type[Effect]) -> Plant:
    return effects_changed(lambda done: [effect for one in done for effect in [one] * (1 + isinstance(one, kind))])


def ignored(fact_name: str) -> Plant:
    return method(
        LiveTurns,
        "_decide",
        lambda real, turns, fact: None if type(fact).__name__ == fact_name else real(turns, fact),
    )


def on_fact(fact_name: str, act: Callable[[LiveTurns], None]) -> Plant:
    def decide(real: Real, turns: LiveTurns, fact: Any) -> None:
        real(turns, fact)
        if type(fact).__name__ == fact_name:
            act(turns)

    return method(LiveTurns, "_decide", decide)


def refuse_all(turns: LiveTurns) -> None:
    waiting = [call for call in turns.routes.calls.values() if call.phase is CallPhase.WAITING]
    turns._do(*(effects.Refuse(call.key, effects.Why.STOPPED) for call in waiting))  # pyright: ignore


def send_at_once(real: Real, turns: LiveTurns, name: str) -> None:
    real(turns, name)
    turns._do(*(effects.Send(name) for name in turns._unsent))  # pyright: ignore
    turns._unsent = []  # pyright: ignore


def swallow_calls(real: Real, turns: LiveTurns, message: Message, *given: Any) -> None:
    if message.unwanted is None:
        real(turns, message, *given)


def stay_asked(real: Real, routes: Routes, event: Any) -> Any:
    before = routes.current.phase if routes.current else None
    place = real(routes, event)
    if before is Phase.ASKED and routes.current is not None:
        routes.current.phase = Phase.ASKED
    return place


def one_for_all(real: Real, routes: Routes, *, is_all: bool) -> Message:
    if routes.heard is not None:
        return routes.heard
    return real(routes, is_all=is_all)


def close_twice(real: Real, turns: LiveTurns, message: Message, end: End = End.FINISH) -> None:
    real(turns, message, end)
    if end is End.INTERRUPTED:
        turns._do(effects.Close(message.name, end))  # pyright: ignore


def fire_anything(real: Real, turns: LiveTurns, timer: Any) -> None:
    message = turns.routes.messages.get(timer.message)
    if message is not None:
        message.timer = timer
    real(turns, timer)


def lose_interrupted(real: Real, turns: LiveTurns) -> None:
    if turns.routes.current is None or turns.routes.current.unwanted is None:
        real(turns)


def wait_for_cut_answer(_: Real, turns: LiveTurns) -> None:
    if turns.routes.current is not None:
        turns.routes.current.timer = None


def drop_owner(real: Real, routes: Routes, event: Any) -> Any:
    calls, routes.calls = routes.calls, {}
    try:
        return real(routes, event)
    finally:
        routes.calls = calls


def close_all(turns: LiveTurns) -> None:
    for message in turns.routes.messages.values():
        turns._close(message)  # pyright: ignore


def show_if_open(real: Real, turns: LiveTurns, call: Call, **given: Any) -> None:
    if call.message.is_open:
        real(turns, call, **given)


def show_always(real: Real, turns: LiveTurns, call: Call, **given: Any) -> None:
    turns._close_if_it_waits(call.message)  # pyright: ignore


def forget_after(real: Real, routes: Routes, message: Message) -> None:
    routes.after = None
    real(routes, message)


def store_again(real: Real, turns: LiveTurns, key: Any, response: Any) -> None:
    turns._do(effects.StoreResult("B", key, response))  # pyright: ignore


def refuse_without_lease(turns: LiveTurns) -> None:
    turns.phase = SessionPhase.OPEN
    refuse_all(turns)


def clear_timers_when_heard(real: Real, turns: LiveTurns, fact: Any) -> None:
    real(turns, fact)
    if any(isinstance(effect, effects.Hear) for effect in turns._effects):  # pyright: ignore
        for message in turns.routes.messages.values():
            message.timer = None


def tell_again(turns: LiveTurns) -> None:
    for call in turns.routes.calls.values():
        call.tells_model = True


def result_is_current(real: Real, routes: Routes, event: Any) -> Any:
    before = routes.current
    owner = real(routes, event)
    routes.current = before or owner
    return owner


def wait_behind(real: Real, routes: Routes, message: Message) -> None:
    if routes.current is not None and routes.current.unwanted is Unwanted.INTERRUPTED:
        routes.after = message
    else:
        real(routes, message)


def speak_of_result(real: Real, routes: Routes, event: Any) -> Any:
    routes._is_saying = False
    return real(routes, event)


def wait_for_words_about_nothing(real: Real, turns: LiveTurns, event_id: str) -> None:
    place = turns._places.get(event_id)  # pyright: ignore
    if place is not None:
        told = replace(place.event, is_untold=False)
        turns._places[event_id] = replace(place, event=told)  # pyright: ignore
    real(turns, event_id)


PLANTED: dict[str, tuple[Plant, str, str]] = {
    "segments are opened again": (
        method(LiveSegments, "_open", lambda real, turns, message, *given: turns._do(effects.Open(message.name))),
        "words and two calls",
        "opened twice",
    ),
    "segments are not opened": (without(effects.Open), "words and two calls", "no segment"),
    "segments are not closed": (without(effects.Close), "words and two calls", "words are lost"),
    "an interrupted segment is closed twice": (
        method(LiveSegments, "_close", close_twice),
        "words and two calls",
        "closed that is not open",
    ),
    "the end of a turn closes nothing": (
        method(Routes, "_complete", lambda real, routes, event: replace(real(routes, event), is_over=False)),
        "speech",
        "a turn is over",
    ),
    "a late result counts as one of the turn that goes on": (
        method(Routes, "_take_results", speak_of_result),
        "a result that comes late",
        "a turn is over",
    ),
    "nobody is told of turns": (without(effects.Notify), "words and two calls", "nobody is told"),
    "turns are told to nobody": (
        method(LiveSegments, "_notify", lambda real, turns, name: turns._do(effects.Notify(name))),
        "nobody is there",
        "nobody is there to be told",
    ),
    "whoever comes back is told nothing": (
        method(LiveSegments, "_attend", lambda real, turns: setattr(turns, "_is_attended", True)),
        "nobody is there",
        "nobody is told",
    ),
    "a card does not end its segment": (
        never(LiveSegments, "_close_if_it_waits"),
        "words and two calls",
        "behind an open segment",
    ),
    "a card that comes late is not shown": (
        method(LiveSegments, "_show_waiting", show_if_open),
        "a tool beside the conversation, and a transfer",
        "behind a card that waits",
    ),
    "calls of an interrupted answer are not shown": (
        method(LiveTurns, "_show", swallow_calls),
        "words and two calls",
        "is not shown",
    ),
    "cards of an answer that nobody reads wait": (
        method(LiveSegments, "_show_waiting", show_always),
        "words and two calls",
        "words wait for a call",
    ),
    "words after an interrupt cannot be interrupted": (
        never(Routes, "skip"),
        "words after an interrupt",
        "goes on waiting",
    ),
    "words after an interrupt are forgotten": (
        method(Routes, "end", forget_after),
        "words and two calls",
        "open for ever",
    ),
    "words after an interrupt wait for an answer of their own": (
        method(Routes, "_go_on", wait_behind),
        "words and two calls",
        "open for ever",
    ),
    "words do not refuse what waits": (without(effects.Refuse), "words and two calls", "words do not free"),
    "words overtake the result": (
        method(LiveTurns, "_wrote", send_at_once),
        "words and two calls",
        "words go to a model that waits",
    ),
    "words are never sent": (never(LiveTurns, "_send_unsent"), "words and two calls", "never reach the model"),
    "words are sent twice": (twice(effects.Send), "words and two calls", "sent twice"),
    "the voice goes on after an interrupt": (without(effects.ClearVoice), "words and two calls", "voice goes on"),
    "two utterances are one": (method(Routes, "_hear", one_for_all), "speech", "two utterances"),
    "late timers count": (method(LiveSegments, "_fired", fire_anything), "words and two calls", "a late timer"),
    "no timer is started": (never(LiveSegments, "_start_timer"), "words and two calls", "behind an open segment"),
    "a lost connection is ignored": (ignored("ConnectionLost"), "a lost connection", "open for ever"),
    "an interrupted answer survives a lost connection": (
        method(LiveTurns, "_connection_lost", lose_interrupted),
        "a lost connection",
        "open for ever|words are lost",
    ),
    "words that are sent again are given up": (
        never(LiveTurns, "_said_again"),
        "a lost connection",
        "given up",
    ),
    "an answer that was cut is waited for when words are said again": (
        method(LiveTurns, "_said_again", wait_for_cut_answer),
        "a lost connection",
        "open for ever",
    ),
    "what was asked stays unanswered": (method(Routes, "_say", stay_asked), "a lost connection", "open for ever"),
    "a shutdown refuses what waits": (on_fact("Shutdown", refuse_all), "the end", "refused for no reason"),
    "a shutdown closes what is open": (on_fact("Shutdown", close_all), "the end", "a shutdown decides"),
    "a lost lease refuses what waits": (
        on_fact("LeaseLost", refuse_without_lease),
        "the end",
        "after the lease was lost",
    ),
    "a session without its lease goes on": (
        ignored("LeaseLost"),
        "the end of a call that is left",
        "after the lease was lost",
    ),
    "the end refuses what waits": (on_fact("Over", refuse_all), "the end", "refused for no reason"),
    "a stop refuses nothing": (ignored("Stopped"), "the end", "goes on waiting"),
    "the end leaves segments open": (
        method(LiveTurns, "_over", lambda real, turns: setattr(turns, "phase", SessionPhase.CLOSED)),
        "the end",
        "outlives its session",
    ),
    "something happens after the end": (
        on_fact("Over", lambda turns: setattr(turns, "phase", SessionPhase.OPEN)),
        "the end",
        "after the end",
    ),
    "a call that was given up goes on here": (
        ignored("Abandoned"),
        "a tool beside the conversation, and a transfer",
        "a run that cannot act",
    ),
    "a model that took a call back is waited for": (
        method(LiveTurns, "_emitted", wait_for_words_about_nothing),
        "calls that are taken back",
        "open for ever",
    ),
    "a tool that was given up is lost": (
        never(LiveTurns, "_hand_over"),
        "a tool beside the conversation, and a transfer",
        "was given up is lost",
    ),
    "a result of ADK's is stored again": (
        method(LiveTurns, "_settled", store_again),
        "words and two calls",
        "into a closed segment|stores itself",
    ),
    "calls that wait are taken for answered": (
        lambda patch: patch.setattr(Message, "not_waiting", property(lambda message: frozenset(message.calls))),
        "words and two calls",
        "shown as one that works",
    ),
    "an answer opens nothing": (
        method(LiveTurns, "_answered", lambda real, turns, calls, done: turns._do(effects.Wake())),
        "words and two calls",
        "has no stream",
    ),
    "an answer wakes nobody": (without(effects.Wake), "words and two calls", "does not learn of its answer"),
    "a nested result is not shown": (without(effects.WriteResult), "an agent that runs as a tool", "a nested result"),
    "an agent works while its call waits": (
        method(Message, "waits", lambda real, message, call: call.phase in (CallPhase.WAITING, CallPhase.LEFT)),
        "an agent that runs as a tool",
        "behind an open segment",
    ),
    "a result belongs to whoever speaks": (
        method(Routes, "_take_results", drop_owner),
        "words and two calls",
        "is not shown",
    ),
    "what was heard is told to nobody": (without(effects.Hear), "speech", "not enough values"),
    "a call that is left is not delivered": (
        without(effects.Deliver),
        "a call that is left to the client",
        "behind an open segment",
    ),
    "the model is not told of a call that waits": (without(effects.TellPending), "talking on", "does not know"),
    "the model is told twice of a call that waits": (twice(effects.TellPending), "talking on", "told twice"),
    "the model is told of a call that was refused": (
        on_fact("Stopped", tell_again),
        "the end while the model talks on",
        "does not wait",
    ),
    "a session without its lease tells the model": (
        lambda patch: patch.setattr(live_segments, "WRITES", (effects.Send,)),
        "the end while the model talks on",
        "after the lease was lost",
    ),
    "a turn ends before the gate has asked": (
        method(LiveSegments, "_close_when_decided", lambda real, turns, message: turns._close(message)),
        "talking on",
        "before its card can come",
    ),
    "a segment that was kept for a card is not closed": (
        lambda patch: patch.setattr(LiveSegments, "_start_timer", lambda *_: None),
        "talking on",
        "behind an open segment|open for ever",
    ),
    "the model talks on in a message of its own": (
        method(Routes, "_next", lambda real, routes: routes.begin(Phase.HEARD)),
        "talking on",
        "behind a card",
    ),
    "speech is answered in the message that waits": (
        never(Routes, "_leave_closed"),
        "speech while a call waits, Gemini 3",
        "not answered in its message",
    ),
    "words about a late result stand with it": (
        method(Routes, "_take_results", result_is_current),
        "a result that comes late",
        "in an old message",
    ),
    "a transcript stops the timer of a card": (
        method(LiveTurns, "_decide", clear_timers_when_heard),
        "speech while a call waits",
        "behind an open segment",
    ),
}
