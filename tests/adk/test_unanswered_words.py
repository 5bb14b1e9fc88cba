"""Which words a resumed conversation lacks: those that were sent after its handle was issued, and are unanswered."""

from google.genai import types

from adk_stream_protocol.adk.live.unanswered_words import UnansweredWords


class Words(UnansweredWords):
    def write(self, *texts: str) -> None:
        for text in texts:
            self.sent(types.UserContent(text))

    def lost(self, handle: str | None) -> list[str | None]:
        return [(content.parts or [types.Part()])[0].text for content in self.take_lost(handle)]


def test_words_after_the_handle_are_lost_and_those_before_it_are_not() -> None:
    words = Words()
    words.write("known")
    words.handle_issued("h1")
    words.write("one", "two")
    assert words.lost("h1") == ["one", "two"]


def test_without_a_handle_everything_unanswered_is_lost() -> None:
    words = Words()
    words.write("one")
    words.handle_issued("h1")
    words.write("two")
    assert words.lost(None) == ["one", "two"]


def test_a_handle_that_was_given_before_the_run_is_older_than_all_words() -> None:
    words = Words()
    words.write("one")
    assert words.lost("of yesterday") == ["one"]


def test_the_handle_that_is_used_counts_and_not_the_last_that_came() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("one")
    words.handle_issued("h2")
    words.write("two")
    assert words.lost("h1") == ["one", "two"]


def test_older_handles_are_forgotten_when_a_later_one_is_in_use() -> None:
    words = Words()
    for handle in ("h1", "h2", "h3"):
        words.handle_issued(handle)
        words.write(f"after {handle}")
    words.handle_in_use("h2")
    words.handle_in_use("of nobody")
    assert words.lost("h2") == ["after h2", "after h3"]


def test_of_a_handle_that_comes_twice_the_second_counts() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("one")
    words.handle_issued("h1")
    words.write("two")
    assert words.lost("h1") == ["two"]


def test_what_is_sent_again_may_be_lost_again() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("one")
    assert words.lost("h1") == ["one"]
    words.write("one")
    assert words.lost("h1") == ["one"]
    assert words.lost("h1") == []


def test_answered_words_are_not_sent_again() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("one")
    words.said()
    assert words.is_answer_due
    words.turn_completed()
    assert not words.is_answer_due
    assert words.lost("h1") == []


def test_half_an_answer_is_none() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("one")
    words.said()
    assert words.lost("h1") == ["one"]


def test_a_turn_answers_only_what_was_written_before_it_began() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("one")
    words.said()
    words.write("two")
    words.said()
    words.turn_completed()
    assert words.is_answer_due
    assert words.lost("h1") == ["two"]


def test_a_turn_without_a_word_is_an_answer() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("one")
    words.turn_completed()
    assert words.lost("h1") == []


def test_words_that_led_to_a_call_are_not_sent_again_since_the_model_would_call_again() -> None:
    words = Words()
    words.handle_issued("h1")
    words.write("pay")
    words.called()
    assert not words.is_answer_due
    assert words.lost("h1") == []


def test_an_answer_to_words_that_the_service_has_is_still_due() -> None:
    words = Words()
    words.write("one")
    words.handle_issued("h1")
    assert words.lost("h1") == []
    assert words.is_answer_due
    words.said()
    words.turn_completed()
    assert not words.is_answer_due


def test_what_is_forgotten_is_not_sent_again() -> None:
    words = Words()
    words.write("one")
    words.said()
    words.forget()
    assert not words.is_answer_due
    assert words.lost(None) == []


def test_words_that_could_not_be_sent_are_lost_whatever_handle_came_meanwhile() -> None:
    words = Words()
    words.write("one", "two")
    failed = types.UserContent("three")
    words.sent(failed)
    words.handle_issued("h1")
    words.not_sent(failed)
    words.handle_in_use("h1")
    assert words.lost("h1") == ["three"]


def test_an_answer_to_a_tools_result_is_due_until_the_model_says_something() -> None:
    words = Words()
    words.write("pay")
    words.called()
    words.result_sent()
    assert words.is_answer_due
    words.turn_completed()
    assert not words.is_answer_due
    words.result_sent()
    words.said()
    words.turn_completed()
    assert not words.is_answer_due
    words.result_sent()
    assert words.lost("h1") == []
    assert not words.is_answer_due
