"""What the user writes and takes back, and which messages are forgotten: all effects, in their order."""

import pytest

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.live_effects import End, Why
from adk_stream_protocol.protocol.live_messages import Phase, Unwanted
from protocol.live_talk import LOOK, PAY, Table, of, quiet, silent

SENT = [effects.Open("C"), effects.Send("C"), effects.Notify("C")]

# -- messages that are over -------------------------------------------------------------------------------------------


def test_words_are_sent_and_whatever_is_over_is_forgotten_but_the_newest() -> None:
    table = Table()
    table.answers("A")
    table.answers("B")
    assert table.write("C") == [effects.Forget("A"), *SENT]


def test_a_message_is_kept_until_somebody_has_been_told_of_it() -> None:
    table = Table(is_attended=False)
    table.answers("A")
    table.answers("B")
    assert table.write("C") == SENT[:2]
    assert table.feed(facts.Attached()) == [effects.Notify(name) for name in "ABC"]
    assert table.comes(is_turn_complete=True)[0] == effects.Forget("A")


def test_a_message_is_kept_until_the_event_has_come_out_that_ends_it() -> None:
    table = Table()
    table.write("A")
    table.says(is_partial=True)
    table.interrupt()
    table.shows(is_interrupted=True)
    table.shows(heard=True)
    table.shows(heard=False)
    belongs = effects.Belongs("e", "begun-2", "step-0", over_before="A")
    assert table.comes(is_said=True, is_partial=True) == [belongs]
    table.emits()
    assert table.comes() == [effects.Forget("A"), effects.Belongs("e", "begun-2", "step-0")]


# -- calls that wait --------------------------------------------------------------------------------------------------


def test_words_refuse_what_the_model_waits_for_and_nothing_else() -> None:
    table = Table()
    table.ask_for(LOOK, PAY)
    table.wait(LOOK, blocks=False)
    table.wait(PAY)
    refused = effects.Refuse(PAY, Why.SUPERSEDED)
    assert table.write("B") == [effects.Open("B"), refused, effects.Wake(), effects.Notify("B")]


def test_what_became_of_a_superseded_call_is_shown_and_nobody_is_told() -> None:
    table = Table()
    table.ask_for(PAY)
    table.wait(PAY)
    table.write("B")
    table.go_on(PAY)
    assert table.settle(PAY) == []
    shown = effects.Write("A", "e", plays=False)
    assert table.gets(PAY) == [effects.Open("A", frozenset({PAY})), shown, effects.Close("A", End.FINISH)]


def test_an_answer_that_was_interrupted_stays_so_when_words_refuse_its_call() -> None:
    table = Table()
    table.write("A")
    table.comes(is_said=True, calls=(PAY,))
    table.wait(PAY)
    table.interrupt()
    table.write("B")
    assert table.emits() == [
        effects.Open("A"),
        effects.Notify("A"),
        effects.Write("A", "e", plays=False),
        effects.Refuse(PAY, Why.SUPERSEDED),
        effects.Wake(),
        silent(2),  # an interrupted model may say no more
        effects.Close("A", End.FINISH),
    ]


def test_words_are_sent_once_when_the_model_waits_for_nothing_more() -> None:
    table = Table()
    table.ask_for(PAY, LOOK)
    table.wait(PAY)
    table.wait(LOOK)
    table.write("B")
    table.go_on(PAY)
    assert table.feed(facts.ResultSent()) == []
    table.go_on(LOOK)
    assert table.feed(facts.ResultSent()) == [effects.Send("B")]
    assert table.feed(facts.ResultSent()) == []


# -- words that are taken back ----------------------------------------------------------------------------------------


def test_a_call_that_waits_on_is_wanted_again_when_the_words_are_taken_back() -> None:
    table = Table()
    table.ask_for(PAY)
    table.wait(PAY)
    table.write("B")
    assert table.feed(facts.NotSent("B")) == [effects.Close("B", End.UNSENT)]
    table.go_on(PAY)
    table.settle(PAY)
    opened = [effects.Open("A", frozenset({PAY})), effects.Notify("A")]
    assert table.gets(PAY) == [*opened, effects.Write("A", "e"), quiet(1)]


@pytest.mark.parametrize(
    ("phase", "unwanted", "after"),
    [
        (Phase.WAITING, Unwanted.SUPERSEDED, None),
        (Phase.WAITING, Unwanted.INTERRUPTED, Unwanted.INTERRUPTED),
        (Phase.OPEN, Unwanted.SUPERSEDED, Unwanted.SUPERSEDED),
        (Phase.ENDED, Unwanted.SUPERSEDED, Unwanted.SUPERSEDED),
        (Phase.ENDED, Unwanted.INTERRUPTED, Unwanted.INTERRUPTED),
    ],
)
def test_only_what_waits_on_is_wanted_again(phase: Phase, unwanted: Unwanted, after: Unwanted | None) -> None:
    table = Table()
    message = table.turns.routes.begin(phase, "A")
    message.unwanted = unwanted
    table.write("B")
    table.feed(facts.NotSent("B"))
    assert message.unwanted is after


def test_a_second_interrupt_ends_the_answer_that_is_next() -> None:
    table = Table()
    table.write("A")
    table.event(is_said=True, is_partial=True)
    table.interrupt()
    table.write("B")
    assert effects.Close("B", End.INTERRUPTED, frozenset()) in table.interrupt()
    assert of(effects.Write, table.says(is_partial=True)) == []
