"""What is shown of an event, and what it opens, closes and starts: all effects, in their order."""

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.live_effects import End, Why
from protocol.live_talk import INNER, LOOK, PAY, Table, quiet, silent

CLOSED = effects.Close("A", End.FINISH)
UNPLAYED = effects.Write("A", "e", plays=False)

# -- words and results ------------------------------------------------------------------------------------------------


def test_an_event_that_says_nothing_opens_nothing() -> None:
    table = Table()
    table.ask_for(PAY)
    table.wait(PAY)
    assert table.shows() == []


def test_words_stop_the_timer_of_a_model_that_was_cut() -> None:
    table = Table()
    table.write("A")
    (timer,) = table.feed(facts.ConnectionLost())
    assert isinstance(timer, effects.StartTimer)
    assert table.says() == [effects.Write("A", "e")]
    assert table.fire(timer) == []


def test_a_result_that_the_model_speaks_about_next_starts_no_timer() -> None:
    table = Table()
    table.ask_for(LOOK)
    assert table.gets(LOOK) == [effects.Write("A", "e")]


def test_the_end_of_the_turn_of_a_call_is_waited_on() -> None:
    table = Table()
    table.ask_for(LOOK)
    table.gets(LOOK)
    assert table.shows(is_turn_complete=True) == [effects.Write("A", "e"), silent(1)]


def test_a_result_beside_a_call_that_blocks_is_shown_and_waited_on_by_nobody() -> None:
    table = Table()
    table.write("A")
    table.says(calls=(LOOK, PAY), is_turn_complete=True)
    table.begin(LOOK, beside=True)
    table.shows(heard=True)  # the conversation is elsewhere
    table.wait(PAY)
    assert table.settle(LOOK, 7) == [effects.WriteResult("A", LOOK, 7), CLOSED]
    assert table.gets(LOOK) == [effects.Open("A"), effects.Notify("A"), effects.Write("A", "e"), CLOSED]


def test_a_result_that_comes_before_its_sibling_is_decided_keeps_the_segment_open() -> None:
    """The model speaks about it."""
    table = Table()
    table.write("A")
    assert table.says(calls=(LOOK, PAY), is_turn_complete=True) == [effects.Write("A", "e"), silent(1)]
    assert table.gets(LOOK) == [effects.Write("A", "e")]
    assert table.begin(PAY) == []


def test_a_segment_that_was_kept_for_a_call_closes_when_its_tool_begins() -> None:
    table = Table()
    table.write("A")
    table.says(calls=(PAY,), is_turn_complete=True)
    assert table.begin(PAY) == [effects.Close("A", End.FINISH, frozenset({PAY}))]


# -- what nobody wants to hear ----------------------------------------------------------------------------------------


def superseded(*, blocks: bool) -> Table:
    """A message with two calls that wait, when the user has written something else, and the result of one comes."""
    table = Table()
    table.ask_for(LOOK, PAY)
    table.wait(LOOK, blocks=blocks)
    table.wait(PAY)
    table.write("B")
    table.go_on(PAY)
    table.settle(PAY)
    table.comes(is_said=True, results=(PAY,))
    return table


def test_a_superseded_message_is_wanted_again_after_the_results_that_the_model_waited_for() -> None:
    table = superseded(blocks=False)
    assert table.emits() == [effects.Open("A", frozenset({PAY})), UNPLAYED, CLOSED]
    table.go_on(LOOK)
    assert table.gets(LOOK) == [
        effects.Open("A", frozenset({LOOK})),
        effects.Notify("A"),
        effects.Write("A", "e"),
        quiet(1),
    ]


def test_a_superseded_message_is_not_wanted_before_the_last_of_these_results() -> None:
    table = superseded(blocks=True)
    table.emits()
    table.go_on(LOOK)
    assert table.gets(LOOK) == [effects.Open("A", frozenset({LOOK})), UNPLAYED, CLOSED]


def test_a_superseded_message_whose_tool_runs_closes_when_it_is_quiet() -> None:
    table = superseded(blocks=False)
    table.go_on(LOOK)
    assert table.emits() == [effects.Open("A", frozenset({LOOK, PAY})), UNPLAYED, quiet(1)]
    assert table.fire(quiet(1)) == [effects.Close("A", End.FINISH, frozenset({LOOK}))]


def test_a_call_that_comes_late_into_a_superseded_message_is_shown_and_nobody_is_told() -> None:
    table = Table()
    table.ask_for(PAY)
    table.comes(is_said=True, calls=(LOOK,))
    assert table.wait(PAY) == [effects.Close("A", End.FINISH, frozenset({LOOK}))]
    table.write("B")
    assert table.emits() == [effects.Open("A", frozenset({LOOK})), UNPLAYED]


def test_an_interrupted_message_stays_unwanted_after_a_result() -> None:
    table = Table()
    table.ask_for(PAY)
    table.wait(PAY, blocks=False)
    table.interrupt()
    table.go_on(PAY)
    opened = [effects.Open("A", frozenset({PAY})), effects.Notify("A")]
    assert table.gets(PAY) == [*opened, UNPLAYED, CLOSED]
    assert table.says() == [silent(3)]  # and nothing of it


def interrupted_with_a_call() -> Table:
    """The user has written something else already, when the interrupted model makes a call."""
    table = Table()
    table.write("A")
    table.says()
    table.interrupt()
    table.write("B")
    table.comes(is_said=True, calls=(PAY,))
    return table


def test_a_call_of_an_interrupted_model_is_shown_and_not_played() -> None:
    table = interrupted_with_a_call()
    assert table.emits() == [effects.Open("A", frozenset({PAY})), effects.Notify("A"), UNPLAYED]


def test_in_an_open_segment_that_nobody_wants_words_are_left_out_and_other_things_are_not() -> None:
    table = interrupted_with_a_call()
    table.emits()
    assert table.says() == []
    assert table.shows() == [UNPLAYED]


def test_a_call_of_the_clients_is_shown_though_the_user_waits_for_an_answer() -> None:
    table = Table()
    table.comes(is_said=True, calls=(PAY,))
    table.write("B")
    begun = [effects.Open("begun-1", frozenset({PAY})), effects.Notify("begun-1")]
    assert table.emits() == [*begun, effects.Write("begun-1", "e")]
    assert table.feed(facts.LeftToClient(PAY)) == [quiet(1, "begun-1")]


def test_a_call_that_the_model_waits_for_is_refused_when_the_user_waits_for_an_answer() -> None:
    table = Table()
    table.comes(is_said=True, calls=(PAY,))
    table.write("B")
    table.emits()
    assert table.wait(PAY) == [effects.Refuse(PAY, Why.SUPERSEDED), effects.Wake()]


# -- events that come out late ----------------------------------------------------------------------------------------


def test_words_that_come_out_after_the_user_has_written_are_shown_in_their_message() -> None:
    table = Table()
    table.ask_for(INNER)
    table.feed(facts.LeftToClient(INNER))
    table.fire(quiet(1))
    table.comes(is_said=True)
    table.write("B")
    opened = [effects.Open("A"), effects.Notify("A")]
    assert table.emits() == [*opened, effects.Write("A", "e"), quiet(2)]
    assert table.fire(quiet(2)) == [CLOSED]


LATE = [effects.Open("A"), effects.Notify("A"), effects.Write("A", "e")]


def test_the_first_words_of_a_message_that_the_user_does_not_wait_for_close_it_when_it_is_quiet() -> None:
    table = Table()
    table.comes(is_said=True)
    table.write("B")
    begun = [effects.Open("begun-1"), effects.Notify("begun-1"), effects.Write("begun-1", "e")]
    assert table.emits() == [*begun, quiet(1, "begun-1")]
    assert table.fire(quiet(1, "begun-1")) == [effects.Close("begun-1", End.FINISH)]


def test_words_that_come_out_after_their_answer_was_given_up_close_it_when_it_is_quiet() -> None:
    table = Table()
    table.write("A")
    table.says()
    (timer,) = table.feed(facts.ConnectionLost())
    assert isinstance(timer, effects.StartTimer)
    table.comes(is_said=True)
    assert table.fire(timer) == [effects.Close("A", End.LOST)]
    assert table.emits() == [*LATE, quiet(2)]


def test_words_that_come_out_after_a_cut_answer_was_interrupted_close_it_when_it_is_quiet() -> None:
    table = Table()
    table.write("A")
    table.says()
    table.feed(facts.ConnectionLost())
    table.comes(is_said=True)
    assert table.interrupt() == [effects.ClearVoice(), effects.Close("A", End.INTERRUPTED)]
    assert table.emits() == [*LATE, quiet(2)]


def test_voice_that_comes_out_in_a_message_that_the_model_has_left_takes_no_short_cut() -> None:
    table = Table()
    table.write("A")
    table.says()
    assert table.turns.voice_came("voice")
    table.turns.routes.current = None
    assert table.turns.voice_emitted("voice") is None
    assert table.feed(facts.Emitted("voice")) == [effects.Write("A", "voice"), quiet(1)]
