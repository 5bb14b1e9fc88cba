"""Which message an event of a live session belongs to, and when the model's turn is over, step by step."""

from typing import Any

import pytest

from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_messages import Phase, Unwanted
from adk_stream_protocol.protocol.live_routes import Place, Turn
from protocol.live_talk import LOOK, PAY, Talk, interrupted_in_a_sentence

# -- the user writes --------------------------------------------------------------------------------------------------


def test_words_that_the_user_writes_into_an_answer_get_what_the_model_says_next() -> None:
    at = Talk()
    at.write("A")
    at.says()
    second = at.write("B")
    assert (at.current, at.after) == (second, None)


def test_only_a_model_in_the_middle_of_a_sentence_goes_on_with_what_was_interrupted() -> None:
    at, first, second = interrupted_in_a_sentence()
    assert (at.current, at.after) == (first, second)


def test_a_model_that_was_interrupted_before_its_first_word_goes_on_with_what_is_new() -> None:
    at = Talk()
    at.write("A")
    at.says()  # of something else than B
    at.write("B").unwanted = Unwanted.INTERRUPTED
    third = at.write("C")
    assert (at.current, at.after) == (third, None)


def test_a_model_that_was_interrupted_after_a_result_goes_on_with_what_is_new() -> None:
    at = Talk()
    first = at.write("A")
    at.says(calls=(PAY,))
    at.gets(PAY)
    first.unwanted = Unwanted.INTERRUPTED
    second = at.write("B")
    assert (at.current, at.after) == (second, None)


def test_the_end_of_what_the_model_was_saying_is_not_the_end_of_the_answer() -> None:
    at = Talk()
    at.write("A")
    at.says()
    second = at.write("B")
    assert at.completes() == Place(ModelEvent("event", is_turn_complete=True), second)
    assert at.completes().is_over


def test_an_end_for_a_reason_is_the_end_of_the_answer() -> None:
    at = Talk()
    at.write("A")
    at.says()
    second = at.write("B")
    place = at.completes(has_reason=True)
    assert (place.message, place.is_over) == (second, True)


def test_a_model_that_has_come_to_its_end_is_at_nothing_else_when_the_user_writes() -> None:
    at = Talk()
    at.write("A")
    at.says()
    at.write("B")
    at.completes()
    third = at.write("C")
    place = at.completes()
    assert (place.message, place.is_over) == (third, True)


def test_words_of_the_user_end_what_was_heard_of_them() -> None:
    at = Talk()
    heard = at.hears()
    at.write("A")
    assert (heard.phase, at.heard) == (Phase.ENDED, None)


# -- and takes it back ------------------------------------------------------------------------------------------------


def test_nothing_more_belongs_to_words_that_are_taken_back() -> None:
    at = Talk()
    message = at.write("A")
    at.take_back(message)
    assert at.current is None
    assert at.is_idle


def test_an_end_that_comes_after_words_were_taken_back_is_awaited_no_more() -> None:
    at = Talk()
    at.write("A")
    at.says()
    at.take_back(at.write("B"))
    third = at.write("C")
    assert at.turn is Turn.EARLIER
    at.take_back(third)
    assert at.turn is Turn.PLAIN


def test_what_is_said_and_what_is_next_stays_when_other_words_are_taken_back() -> None:
    at, first, second = interrupted_in_a_sentence()
    third = at.write("C")
    assert (at.current, at.after) == (first, third)
    at.take_back(second)
    assert (at.current, at.after) == (first, third)
    at.take_back(third)
    assert (at.current, at.after) == (first, None)


def test_an_answer_that_was_cut_is_cut_though_words_are_taken_back() -> None:
    at, _, second = interrupted_in_a_sentence()
    at.comes(is_interrupted=True)
    at.take_back(second)
    assert at.turn is Turn.CUT


def test_new_words_after_a_cut_answer_that_was_taken_back_begin_a_message() -> None:
    at = Talk()
    message = at.write("A")
    at.says(is_partial=True)
    at.comes(is_interrupted=True)
    at.take_back(message)
    place = at.comes(is_said=True, is_partial=True)
    assert place.over_before is None
    assert place.message is not message


# -- and wants to hear none of it -------------------------------------------------------------------------------------


def test_what_is_next_after_an_interrupt_can_be_interrupted_too() -> None:
    at, _, second = interrupted_in_a_sentence()
    at.skip()
    assert (at.current, at.after) == (second, None)
    assert not at.completes().is_over  # the end of the first answer
    assert at.says() is second
    assert at.completes().is_over


def test_without_anything_next_nothing_is_skipped() -> None:
    at = Talk()
    message = at.write("A")
    at.says()
    at.skip()
    assert (at.current, at.turn) == (message, Turn.PLAIN)


# -- calls are answered -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "goes_on"), [(Phase.OPEN, False), (Phase.ASKED, False), (Phase.WAITING, True), (Phase.ENDED, True)]
)
def test_an_answered_message_gets_the_next_words_unless_another_one_is_open(phase: Phase, goes_on: bool) -> None:
    at = Talk()
    answered, other = at.begin(Phase.OPEN, "A"), at.begin(phase, "B")
    at.current = other
    at.resume(answered)
    assert at.current is (answered if goes_on else other)


def test_an_answer_to_the_current_message_changes_nothing() -> None:
    at = Talk()
    message = at.write("A")
    at.says(calls=(PAY,))
    at.comes(is_interrupted=True)
    message.move(Phase.WAITING)
    at.resume(message)
    assert (at.current, at.turn) == (message, Turn.CUT)


@pytest.mark.parametrize(("is_cut", "turn"), [(False, Turn.PLAIN), (True, Turn.EARLIER)])
def test_a_model_that_was_cut_still_ends_that_turn_after_an_answer_and_others_go_on(is_cut: bool, turn: Turn) -> None:
    at = Talk()
    at.write("A")
    said = at.says()
    if is_cut:
        at.comes(is_interrupted=True)
    said.move(Phase.WAITING)
    at.resume(at.begin(Phase.OPEN, "B"))
    assert at.turn is turn


# -- what the model is at ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", Phase)
def test_a_model_that_has_been_asked_is_not_idle(phase: Phase) -> None:
    at = Talk()
    at.current = at.begin(phase, "A")
    assert at.is_idle is (phase is not Phase.ASKED)


@pytest.mark.parametrize("turn", Turn)
def test_a_model_is_not_idle_before_the_end_of_its_turn(turn: Turn) -> None:
    at = Talk()
    at.turn = turn
    assert at.is_idle is (turn is Turn.PLAIN)


def test_a_model_that_has_said_nothing_yet_has_no_voice_that_goes_on() -> None:
    assert Talk().goes_on is False


def test_the_voice_after_an_answered_call_begins_something() -> None:
    at = Talk()
    message = at.answers("A", PAY)
    at.resume(message)
    assert (at.current, at.last, message.phase) == (message, message, Phase.OPEN)
    assert at.goes_on is False
    at.says()
    assert at.goes_on is True


def test_of_the_messages_that_have_ended_the_newest_is_kept_and_so_are_those_that_something_comes_of() -> None:
    at = Talk()
    busy = at.answers("A", PAY)
    busy.move(Phase.ENDED)
    *others, newest = (at.begin(Phase.ENDED, name) for name in "BCDE")
    at.last = None
    assert at.done_with() == others
    at.last = others[0]
    assert at.done_with() == others[1:]
    assert newest not in at.done_with()


# -- events -----------------------------------------------------------------------------------------------------------


def test_what_was_recorded_belongs_to_the_answer_that_is_awaited_or_to_the_last_one() -> None:
    at = Talk()
    first = at.answers("A")
    assert at.comes(is_recording=True).message is first
    second = at.write("B")
    assert at.comes(is_recording=True).message is second


def test_an_event_that_says_nothing_interrupts_nothing() -> None:
    at = Talk()
    message = at.write("A")
    at.says()
    assert at.comes().message is message
    assert at.turn is Turn.PLAIN


def test_each_call_of_a_model_is_a_step() -> None:
    at = Talk()
    at.write("A")
    at.says()
    steps = [at.step]
    for inside in (PAY, PAY, None):  # words of an agent that works on a call
        at.says(inside=inside)
        steps.append(at.step)
    at.completes()
    steps.append(at.step)
    assert steps == ["step-0", "step-1", "step-1", "step-2", "step-3"]


# -- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_words", [False, True])
def test_a_message_is_over_with_the_models_turn(with_words: bool) -> None:
    at = Talk()
    message = at.write("A")
    at.says()
    place = at.completes(is_said=with_words)
    assert (place.message, place.is_over) == (message, True)
    assert at.current is None
    assert at.is_idle


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_model_that_announces_more_goes_on_unless_it_was_cut(is_cut: bool) -> None:
    at = Talk()
    message = at.write("A")
    at.says()
    if is_cut:
        at.comes(is_interrupted=True)
    assert at.completes(goes_on=True).is_over is is_cut
    assert at.current is (None if is_cut else message)


def test_a_model_that_announces_more_goes_on_with_what_the_user_wrote_meanwhile() -> None:
    at, first, second = interrupted_in_a_sentence()
    place = at.completes(goes_on=True)
    assert (place.message, place.is_over) == (first, True)
    assert (at.current, at.after) == (second, None)


@pytest.mark.parametrize(
    ("about", "is_heard", "is_new"),
    [
        ({}, False, False),  # the whole text
        ({"is_partial": True}, False, True),
        ({"calls": (LOOK,)}, False, True),
        ({"is_partial": True, "is_transcript": True}, False, False),  # may come late
        ({"is_partial": True, "is_transcript": True}, True, True),
    ],
    ids=str,
)
def test_something_new_after_an_answer_that_was_cut_ends_it(
    about: dict[str, Any], is_heard: bool, is_new: bool
) -> None:
    at = Talk()
    message = at.write("A")
    at.says(is_partial=True)
    at.comes(is_interrupted=True)
    if is_heard:
        at.hears()
    place = at.comes(is_said=True, **about)
    assert place.over_before is (message if is_new else None)
    assert (place.message is message) is not is_new


# -- the user speaks --------------------------------------------------------------------------------------------------


def test_an_utterance_that_gets_no_answer_before_the_next_one_is_over() -> None:
    at = Talk()
    first = at.hears(is_all=True)
    second = at.hears()
    assert (first.phase, second.phase) == (Phase.ENDED, Phase.HEARD)


def test_what_the_user_says_after_a_written_turn_is_awaited_by_nobody() -> None:
    at = Talk()
    message = at.answers("A")
    assert at.unheard is None
    assert at.hears() is not message


def test_pieces_of_an_utterance_stay_together_though_an_older_answer_ends_meanwhile() -> None:
    at = Talk()
    older = at.says(calls=(PAY,), is_turn_complete=True)  # to something that was said, and never written down
    older.move(Phase.OPEN)
    at.answers("B")
    heard = at.hears()
    at.resume(older)
    at.says(is_turn_complete=True)
    assert at.unheard is older
    assert at.hears() is heard
