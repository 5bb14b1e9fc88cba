"""Which message the model speaks in after a result, and what a late result has to do with what the user says."""

import pytest

from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_messages import Message, Phase, Unwanted
from adk_stream_protocol.protocol.live_routes import Turn
from protocol.live_talk import LOOK, PAY, STRANGE, Talk, interrupted_in_a_sentence


def talked_on(phase: Phase = Phase.ENDED) -> tuple[Talk, Message]:
    """A message with a call, and the conversation has gone on since."""
    at = Talk()
    first = at.answers("A", PAY)
    if phase is not Phase.OPEN:
        first.move(phase)
    at.answers("B").move(Phase.ENDED)
    return at, first


# -- while the model is at something ----------------------------------------------------------------------------------


def test_a_result_that_the_model_does_not_get_belongs_to_its_call() -> None:
    at, first = talked_on()
    at.write("C")
    assert at.comes(results=(PAY,), is_untold=True).message is first


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.ENDED])
def test_what_a_model_says_after_a_call_that_it_took_back_stands_in_no_older_message(phase: Phase) -> None:
    at, first = talked_on(Phase.OPEN)
    at.current = first  # it called a tool there, for whoever read on
    first.move(phase)
    assert at.comes(results=(PAY,), is_untold=True).message is first
    first.move(Phase.OPEN)  # for the result, which somebody reads
    said = at.says()
    assert said.name == "begun-1"
    assert said.awaits_words  # it is about no result


def test_the_newest_message_goes_on_after_a_call_that_its_model_took_back() -> None:
    at = Talk()
    first = at.write("A")
    at.says(calls=(PAY,))
    first.move(Phase.WAITING)
    at.comes(results=(PAY,), is_untold=True)
    first.move(Phase.OPEN)
    assert at.says() is first


def test_a_result_that_comes_while_the_user_has_written_is_spoken_about_next() -> None:
    at = Talk()
    first = at.write("A")
    at.says(calls=(PAY,))
    at.write("B")
    assert at.gets(PAY) is first
    assert at.turn is Turn.HAS_RESULT


def test_a_model_that_gets_two_results_speaks_of_both_at_once() -> None:
    at, _ = talked_on(Phase.OPEN)
    third = at.write("C")
    at.says(calls=(LOOK,))
    at.gets(LOOK)
    at.gets(PAY)
    assert at.says(is_turn_complete=True) is third
    assert at.says().name == "begun-1"  # and it owes nothing to A


def test_a_model_in_a_sentence_speaks_of_a_result_after_it() -> None:
    at, first = talked_on(Phase.OPEN)
    third = at.write("C")
    at.says()
    at.gets(PAY)
    assert at.says(is_turn_complete=True) is third
    assert at.says() is first


def test_words_that_were_next_are_answered_together_with_a_result() -> None:
    at, first, second = interrupted_in_a_sentence()
    assert at.gets(PAY) is first
    assert first.unwanted is Unwanted.SUPERSEDED
    assert (at.current, at.after) == (second, None)
    assert at.says() is second


def written_twice() -> tuple[Talk, Message, Message, Message]:
    """The first message is wanted again, since its call was answered; and the user writes once more."""
    at, first, second = interrupted_in_a_sentence()
    first.unwanted = None
    return at, first, second, at.write("C")


def test_a_result_of_another_message_does_not_change_which_one_is_next() -> None:
    at, first, second, third = written_twice()
    assert at.gets(PAY) is first
    assert (at.current, at.after, first.unwanted) == (third, second, None)


def test_a_result_that_belongs_to_nobody_does_not_change_which_one_is_next() -> None:
    at, _, second, third = written_twice()
    at.take_back(third)
    assert at.gets(STRANGE) is None
    assert (at.current, at.after) == (None, second)


# -- while it is at nothing -------------------------------------------------------------------------------------------


def test_a_model_that_gets_a_late_result_has_something_to_say() -> None:
    at, _ = talked_on()
    assert at.is_idle
    at.gets(PAY)
    assert not at.is_idle
    at.completes()  # or it has not
    assert at.is_idle


def test_words_of_the_user_wait_for_the_end_of_what_the_model_says_about_a_late_result() -> None:
    at, _ = talked_on()
    at.gets(PAY)
    third = at.write("C")
    assert not at.completes().is_over
    assert at.says() is third


def test_the_newest_message_goes_on_with_its_result_though_it_had_ended() -> None:
    at = Talk()
    message = at.answers("A", PAY)
    message.move(Phase.ENDED)
    at.gets(PAY)
    assert at.current is message
    assert at.says() is message


@pytest.mark.parametrize(
    ("phase", "unwanted", "is_read"),
    [
        (Phase.OPEN, None, True),
        (Phase.OPEN, Unwanted.SUPERSEDED, False),
        (Phase.ENDED, None, False),
    ],
)
def test_an_older_message_goes_on_with_its_result_if_somebody_reads_it(
    phase: Phase, unwanted: Unwanted | None, is_read: bool
) -> None:
    at, first = talked_on(phase)
    first.unwanted = unwanted
    assert at.gets(PAY) is first
    assert at.current is (first if is_read else None)
    assert (at.says() is first) is is_read


def test_words_about_a_late_result_are_no_answer_to_what_the_user_says() -> None:
    at, _ = talked_on()
    at.gets(PAY)
    said = at.says()
    assert said.name == "begun-1"
    assert at.hears() is not said


def test_words_of_a_message_that_nobody_reads_any_more_are_no_answer_to_what_the_user_says() -> None:
    at, first = talked_on(Phase.OPEN)
    at.gets(PAY)
    first.move(Phase.ENDED)
    said = at.says()
    assert said.name == "begun-1"
    assert at.hears() is not said


def test_a_message_that_nobody_reads_any_more_is_left_for_what_was_heard() -> None:
    at = Talk()
    first = at.answers("A", PAY)
    first.move(Phase.ENDED)
    at.gets(PAY)
    heard = at.hears()
    assert at.says() is heard


@pytest.mark.parametrize("result", [PAY, STRANGE], ids=str)
def test_words_after_a_result_that_the_model_said_nothing_about_may_answer_what_the_user_says(
    result: CallKey,
) -> None:
    at = Talk()
    at.answers("A", PAY).move(Phase.ENDED)
    at.gets(result)
    at.completes()
    said = at.says()
    assert said.name == "begun-1"
    assert at.hears() is said


def test_the_goes_on_once_the_model_has_begun_to_speak_of_a_late_result() -> None:
    at, _ = talked_on()
    at.gets(PAY)
    assert at.goes_on is False
    at.says().move(Phase.OPEN)
    assert at.goes_on is True


def test_what_is_said_after_a_result_that_came_in_mid_sentence_is_for_whoever_reads_on_there() -> None:
    at, first = talked_on(Phase.OPEN)
    at.write("C")
    at.says()
    assert at.gets(PAY) is first
    at.completes()  # what it was saying
    assert at.says() is first


def test_a_model_talks_on_in_the_newest_message_while_that_waits_for_somebody() -> None:
    at = Talk()
    first = at.answers("A", PAY)
    first.move(Phase.WAITING)
    assert at.says() is first
