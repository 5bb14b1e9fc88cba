"""What is done when the gate speaks of a call, and when the connection to the model is lost: all effects."""

import pytest

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_effects import End, Timer, Why
from adk_stream_protocol.protocol.live_messages import Phase
from protocol.live_talk import INNER, LOOK, PAY, STRANGE, Table, quiet, silent

CLOSED = effects.Close("A", End.FINISH)

# -- calls that wait --------------------------------------------------------------------------------------------------


def test_a_call_beside_the_conversation_waits_and_the_model_is_not_told_unless_it_is_to_be() -> None:
    table = Table()
    table.ask_for(PAY, LOOK)
    assert table.wait(PAY, blocks=False) == []  # the other one is undecided
    assert table.wait(LOOK, blocks=False, tells_model=True) == [effects.TellPending(LOOK), quiet(1)]


@pytest.mark.parametrize("outer", [None, LOOK], ids=str)
def test_a_call_that_no_event_tells_of_is_refused(outer: CallKey | None) -> None:
    table = Table()
    if outer is None:
        table.write("A")
    assert table.wait(STRANGE, outer=outer) == [effects.Refuse(STRANGE, Why.UNSEEN), effects.Wake()]


def test_a_call_of_an_agent_that_is_not_known_is_announced_where_the_model_speaks() -> None:
    table = Table()
    table.write("A")
    assert table.wait(INNER, outer=LOOK) == [effects.Announce("A", INNER, LOOK), CLOSED]


def test_a_call_of_an_agent_is_announced_in_the_message_of_the_agent() -> None:
    table = Table()
    table.ask_for(LOOK)
    table.begin(LOOK)
    table.event(is_turn_complete=True)
    table.wait(PAY, outer=LOOK)
    closed = effects.Close("A", End.FINISH, frozenset({LOOK}))
    opened = [effects.Open("A", frozenset({LOOK})), effects.Notify("A")]
    assert table.wait(INNER, outer=LOOK) == [*opened, effects.Announce("A", INNER, LOOK), closed]


@pytest.mark.parametrize("beside", [True, False])
def test_a_call_that_an_agent_makes_blocks_as_the_agent_does_whatever_the_gate_says(beside: bool) -> None:
    table = Table()
    table.ask_for(LOOK)
    table.begin(LOOK, beside=beside)
    table.says(calls=(PAY,), inside=LOOK)
    closed = effects.Close("A", End.FINISH, frozenset({LOOK}))
    assert table.wait(PAY, blocks=beside) == [quiet(1) if beside else closed]


def test_a_card_that_is_on_its_way_stops_the_timer_of_its_segment() -> None:
    table = Table()
    table.ask_for(LOOK)
    assert table.wait(LOOK, blocks=False) == [quiet(1)]
    table.comes(is_said=True, calls=(PAY,))
    assert table.wait(PAY) == []
    assert table.fire(quiet(1)) == []
    assert table.emits() == [effects.Write("A", "e"), CLOSED]


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_card_that_clients_have_is_not_shown_again(is_asked: bool) -> None:
    table = Table()
    table.ask_for(PAY)
    table.begin(PAY)
    table.event(is_turn_complete=True)
    shown = [effects.Open("A"), effects.Notify("A"), CLOSED]
    assert table.wait(PAY, is_asked=is_asked) == ([] if is_asked else shown)
    assert table.phase("A") is Phase.WAITING


def test_a_call_of_the_clients_opens_nothing_before_its_event_comes_out() -> None:
    table = Table()
    table.comes(is_said=True, calls=(PAY,))
    assert table.feed(facts.LeftToClient(PAY)) == []
    begun = [effects.Open("begun-1"), effects.Notify("begun-1")]
    assert table.emits() == [*begun, effects.Write("begun-1", "e"), quiet(1, "begun-1")]


# -- and go on, or not ------------------------------------------------------------------------------------------------


def test_a_call_that_goes_on_stops_the_timer_of_its_segment() -> None:
    table = Table()
    table.ask_for(PAY)
    assert table.wait(PAY, blocks=False) == [quiet(1)]
    table.go_on(PAY)
    assert table.fire(quiet(1)) == []
    assert table.phase("A") is Phase.OPEN


def test_only_a_call_that_waits_goes_on() -> None:
    table = Table()
    table.ask_for(PAY)
    table.begin(PAY, beside=True)
    table.settle(PAY, 7)
    table.go_on(PAY)
    assert table.feed(facts.HandedOver()) == [effects.StoreResult("A", PAY, 7)]


def test_a_call_that_is_given_up_beside_another_one_that_waits_leaves_that_waiting() -> None:
    table = Table()
    table.ask_for(PAY, LOOK)
    table.wait(PAY)
    table.wait(LOOK)
    table.feed(facts.Abandoned(PAY))
    assert table.phase("A") is Phase.WAITING
    table.feed(facts.Abandoned(LOOK))
    assert table.phase("A") is Phase.ENDED


def test_a_segment_whose_call_is_given_up_closes_when_it_is_quiet() -> None:
    table = Table()
    table.ask_for(PAY)
    assert table.feed(facts.Abandoned(PAY)) == [quiet(1)]


def test_the_result_of_a_call_that_an_agent_made_is_shown_and_the_next_one_waits() -> None:
    table = Table()
    table.ask_for(LOOK)
    table.begin(LOOK)
    table.wait(INNER, outer=LOOK)
    table.wait(PAY, outer=LOOK)
    table.go_on(INNER)
    assert table.settle(INNER, 7) == [
        effects.Open("A", frozenset({LOOK})),
        effects.Notify("A"),
        effects.WriteResult("A", INNER, 7),
        effects.Close("A", End.FINISH, frozenset({LOOK})),
    ]
    assert table.turns.calls_of("A") == [LOOK, PAY]


# -- lost connections -------------------------------------------------------------------------------------------------


def resumes(serial: int) -> effects.StartTimer:
    return effects.StartTimer(Timer("resumes", "A", serial), 10)


def test_an_answer_that_has_begun_gets_its_time_anew_with_each_loss() -> None:
    table = Table()
    table.write("A")
    table.says()
    assert table.feed(facts.ConnectionLost()) == [resumes(1)]
    assert table.feed(facts.ConnectionLost()) == [resumes(2)]


def test_an_answer_that_has_not_begun_gets_its_time_once() -> None:
    table = Table()
    table.write("A")
    assert table.feed(facts.ConnectionLost()) == [resumes(1)]
    assert table.feed(facts.ConnectionLost()) == []


def test_an_answer_with_a_call_is_not_given_up() -> None:
    table = Table()
    table.ask_for(PAY)
    assert table.feed(facts.ConnectionLost()) == []


def test_an_answer_that_is_closed_is_not_given_up() -> None:
    table = Table()
    table.ask_for(PAY)
    table.feed(facts.Abandoned(PAY))
    assert table.fire(quiet(1)) == [CLOSED]
    assert table.feed(facts.ConnectionLost()) == []


def test_words_that_are_said_again_without_need_change_nothing() -> None:
    table = Table()
    table.write("A")
    assert table.feed(facts.SaidAgain()) == []


def test_words_that_are_said_again_stop_no_other_timer() -> None:
    table = Table()
    table.write("B")
    table.says()
    table.write("A")
    assert table.shows(is_turn_complete=True) == [effects.Write("A", "e"), silent(1)]  # of what was said before
    table.feed(facts.SaidAgain())
    assert table.fire(silent(1)) == [CLOSED]
