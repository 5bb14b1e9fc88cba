"""What a whole text adds to the pieces that were said."""

import pytest

from adk_stream_protocol.adk.translate.spoken_text import SpokenText


def spoken(*pieces: tuple[str, str]) -> SpokenText:
    """Pieces: (event id, words)."""
    text = SpokenText()
    for event_id, words in pieces:
        text.add("text", event_id, words)
    return text


@pytest.mark.parametrize(
    ("pieces", "whole", "already_said"),
    [
        ([], "It is sunny.", 0),
        ([("1", "It is "), ("1", "sunny.")], "It is sunny.", 12),
        ([("1", "It is ")], "It is sunny.", 6),
        ([("1", "It is sunny. ```code```")], "It is sunny.", 23),
        ([("1", "It is "), ("2", "sunny.")], "It is sunny.", 12),
        ([("1", "Never confirmed."), ("2", "It is ")], "It is sunny.", 6),
        ([("1", "The key is 1234.")], "[removed]", None),
        ([("1", "One."), ("2", "Two.")], "[removed]", None),
    ],
)
def test_how_much_of_the_whole_was_said(pieces: list[tuple[str, str]], whole: str, already_said: int | None) -> None:
    assert spoken(*pieces).settle("text", whole) == already_said


def test_pieces_count_for_one_whole_only() -> None:
    text = spoken(("1", "Again."))
    assert text.is_unconfirmed
    assert text.settle("text", "Again.") == 6
    assert not text.is_unconfirmed
    assert text.settle("text", "Again.") == 0


def test_thoughts_and_text_are_kept_apart() -> None:
    text = spoken(("1", "Words."))
    text.add("reasoning", "1", "Thoughts.")
    assert text.settle("reasoning", "Thoughts.") == 9
    assert text.is_unconfirmed
    assert text.settle("text", "Words.") == 6


def test_what_is_forgotten_was_not_said() -> None:
    text = spoken(("1", "Words."))
    text.forget()
    assert not text.is_unconfirmed
    assert text.settle("text", "Words.") == 0


def test_what_no_whole_has_confirmed_is_all_that_was_said_thoughts_first() -> None:
    text = spoken(("1", "It is "), ("1", "sunny. "), ("2", "Or not."))
    text.add("reasoning", "2", "Hm")
    text.add("reasoning", "2", ".")
    assert text.unconfirmed() == [("reasoning", "Hm."), ("text", "It is sunny. Or not.")]
    assert text.unconfirmed() == [("reasoning", "Hm."), ("text", "It is sunny. Or not.")]  # asking changes nothing
    assert text.settle("text", "It is sunny. Or not.") == 20


def test_a_kind_of_which_nothing_was_said_is_not_among_the_unconfirmed() -> None:
    assert SpokenText().unconfirmed() == []
    assert spoken(("1", "Words.")).unconfirmed() == [("text", "Words.")]
    assert spoken(("1", ""), ("2", "")).unconfirmed() == []


@pytest.mark.parametrize("whole", ["Words.", "Words and more.", "[removed]"])
def test_a_whole_confirms_the_pieces_of_its_kind_whatever_it_says(whole: str) -> None:
    text = spoken(("1", "Words."))
    text.add("reasoning", "1", "Thoughts.")
    text.settle("text", whole)
    assert text.unconfirmed() == [("reasoning", "Thoughts.")]
    text.add("text", "1", "Later.")
    assert text.unconfirmed() == [("reasoning", "Thoughts."), ("text", "Later.")]


def test_what_is_forgotten_is_not_unconfirmed() -> None:
    text = spoken(("1", "Words."))
    text.forget()
    assert text.unconfirmed() == []
