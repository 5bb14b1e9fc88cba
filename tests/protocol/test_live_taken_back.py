"""The results of calls that the model took back: it gets none, so that it says nothing about them."""

import pytest

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_effects import QUIET_S, Effect
from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_turns import LiveTurns

CALL = CallKey("inv", "c1")


def comes(turns: LiveTurns, event: ModelEvent) -> list[Effect]:
    return [*turns.receive(facts.Came(event)), *turns.receive(facts.Emitted(event.id))]


def called() -> LiveTurns:
    turns = LiveTurns()
    turns.receive(facts.Attached())
    turns.receive(facts.Wrote("A"))
    comes(turns, ModelEvent("call", is_said=True, calls=(CALL,)))
    return turns


@pytest.mark.parametrize("is_untold", [True, False])
def test_a_turn_is_over_with_a_result_that_the_model_does_not_get(is_untold: bool) -> None:
    turns = called()
    result = comes(turns, ModelEvent("result", is_said=True, results=(CALL,), is_untold=is_untold))
    assert effects.Write("A", "result") in result
    done = comes(turns, ModelEvent("done", is_turn_complete=True))
    assert (effects.Close("A", effects.End.FINISH) in done) is is_untold


def test_it_begins_no_words_of_the_model() -> None:
    turns = called()
    turns.receive(facts.Waits(CALL, blocks=False))
    comes(turns, ModelEvent("done", is_turn_complete=True))
    turns.receive(facts.Wrote("B"))
    comes(turns, ModelEvent("words", is_said=True, is_partial=True))
    comes(turns, ModelEvent("end", is_turn_complete=True))
    comes(turns, ModelEvent("result", is_said=True, results=(CALL,), is_untold=True))
    assert turns.routes.is_idle
    assert turns.open_message is None or turns.open_message.name == "A"


@pytest.mark.parametrize("is_untold", [True, False])
def test_its_segment_closes_when_it_is_quiet_unless_the_model_waits_for_another_call(is_untold: bool) -> None:
    turns = called()
    turns.receive(facts.Waits(CALL, blocks=False))
    comes(turns, ModelEvent("done", is_turn_complete=True))
    turns.receive(facts.Answered(frozenset({CALL}), done=frozenset({CALL})))
    result = comes(turns, ModelEvent("result", is_said=True, results=(CALL,), is_untold=is_untold))
    started = [effect for effect in result if isinstance(effect, effects.StartTimer)]
    assert [effect.seconds for effect in started] == ([QUIET_S] if is_untold else [])
    for effect in started:
        assert effects.Close("A", effects.End.FINISH) in turns.receive(facts.TimerFired(effect.timer))


def test_its_segment_stays_while_another_call_waits_that_blocks() -> None:
    turns, other = called(), CallKey("inv", "c2")
    comes(turns, ModelEvent("call-2", is_said=True, calls=(other,)))
    turns.receive(facts.Waits(other, blocks=True))
    result = comes(turns, ModelEvent("result", is_said=True, results=(CALL,), is_untold=True))
    assert not [effect for effect in result if isinstance(effect, effects.StartTimer)]


def test_a_result_of_a_call_that_is_not_known_belongs_to_what_is_said_now() -> None:
    turns = called()
    other = CallKey("inv", "other")
    belongs, *_ = comes(turns, ModelEvent("result", is_said=True, results=(other,), is_untold=True))
    assert belongs == effects.Belongs("result", "A", "step-1")
