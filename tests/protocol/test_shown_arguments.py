"""What a person is shown of a call is what runs, or nothing runs."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol.chunks import encode_json
from adk_stream_protocol.protocol.digest import (
    MAX_DEPTH,
    cannot_be_shown,
    has_large_integer,
    is_what_was_shown,
    shown_arguments,
)

EXACT = 2**53 - 1
HUGE = 10**400
ENDLESS = 10**5000  # Python itself makes no text of it


def nested(depth: int, leaf: Any) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"k": leaf}
    return leaf


# -- large whole numbers travel as text -------------------------------------------------------------------------------

SHOWN: dict[str, tuple[Any, Any]] = {
    "nothing": ({}, {}),
    "no object": (None, None),
    "small ones": ({"n": 5, "m": -5}, {"n": 5, "m": -5}),
    "the largest exact ones": ([EXACT, -EXACT], [EXACT, -EXACT]),
    "the first inexact ones": ([EXACT + 1, -EXACT - 1], [str(EXACT + 1), str(-EXACT - 1)]),
    "an account": ({"account": 12345678901234567}, {"account": "12345678901234567"}),
    "beyond every float": ({"n": HUGE}, {"n": str(HUGE)}),
    "deep inside": ({"a": [{"b": [2**60, "x"]}], "c": 1}, {"a": [{"b": [str(2**60), "x"]}], "c": 1}),
    "in a tuple": ({"n": (2**60, 1)}, {"n": [str(2**60), 1]}),
    "alone": (2**60, str(2**60)),
    "booleans": ({"n": True, "m": False}, {"n": True, "m": False}),
    "large floats": ({"n": 1e22, "m": -1e300}, {"n": 1e22, "m": -1e300}),
    "texts and nulls": ({"n": "9007199254740993", "m": None}, {"n": "9007199254740993", "m": None}),
}


@pytest.mark.parametrize("case", SHOWN)
def test_whole_numbers_that_javascript_would_round_travel_as_text(case: str) -> None:
    arguments, expected = SHOWN[case]
    before = encode_json(arguments)
    shown = shown_arguments(arguments)
    assert (shown, [type(value) for value in leaves(shown)]) == (expected, [type(value) for value in leaves(expected)])
    assert has_large_integer(arguments) is (shown != json.loads(before))
    assert encode_json(arguments) == before, "the record's own arguments have changed"


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for below in value.values() for leaf in leaves(below)]
    return [leaf for below in value for leaf in leaves(below)] if isinstance(value, list) else [value]


def test_a_number_that_travelled_as_text_comes_back_as_that_text_only() -> None:
    shown = shown_arguments({"account": 12345678901234567})
    assert is_what_was_shown(shown, {"account": "12345678901234567"})
    assert not is_what_was_shown(shown, {"account": "12345678901234568"})
    assert not is_what_was_shown(shown, {"account": 12345678901234567})
    assert not is_what_was_shown(shown, {"account": 12345678901234568})


def test_large_floats_come_back_in_the_digits_of_javascript() -> None:
    assert is_what_was_shown(shown_arguments({"n": 1.2345678901234568e20}), {"n": 123456789012345680000})


# -- what cannot be shown ---------------------------------------------------------------------------------------------

INFINITE = "its arguments contain a number that is infinite or not a number"
HALF = "its arguments contain half a character"
DEEP = "its arguments are nested deeper than 100 levels"
LONG = "its arguments contain a number with thousands of digits"

NOT_SHOWN: dict[str, tuple[Any, str]] = {
    "not a number": ({"n": math.nan}, INFINITE),
    "infinity": ({"n": math.inf}, INFINITE),
    "minus infinity, deep inside": ({"a": [{"b": (-math.inf,)}]}, INFINITE),
    "half a character": ({"to": "Bob\ud800"}, HALF),
    "the other half": ({"to": ["\udfffBob"]}, HALF),
    "half a character in a key": ({"to": "Bob", "\ud800": "Eve"}, HALF),
    "half a character in a key, deep inside": ({"a": [{"\udc00": 1}]}, HALF),
    "too deep": (nested(MAX_DEPTH + 1, 1), DEEP),
    "much too deep": (nested(1100, "Eve"), DEEP),
    "the first number that is too long": ({"n": 2**14_000}, LONG),
    "a number without end": ({"n": ENDLESS}, LONG),
    "a negative number without end": ({"n": [-ENDLESS]}, LONG),
}


@pytest.mark.parametrize("case", NOT_SHOWN)
def test_what_no_page_can_show_has_a_reason(case: str) -> None:
    arguments, reason = NOT_SHOWN[case]
    assert cannot_be_shown(arguments) == reason


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"to": "Bob", "amount": 5, "fast": True, "note": None},
        {"to": "B\u200bob \U0001f600 e\u0301 \ufffd \uffff"},
        {"n": [HUGE, -HUGE, 1e308, 5e-324, -0.0]},
        {"n": 2**14_000 - 1},
        nested(MAX_DEPTH, "Eve"),
        nested(MAX_DEPTH - 1, {}),
    ],
    ids=[
        "nothing",
        "plain",
        "odd characters",
        "odd numbers",
        "a long number",
        "as deep as may be",
        "as deep, and empty",
    ],
)
def test_other_arguments_can_be_shown(arguments: Any) -> None:
    assert cannot_be_shown(arguments) is None


def test_the_deepest_arguments_come_back() -> None:
    assert is_what_was_shown(nested(MAX_DEPTH, "Eve"), nested(MAX_DEPTH, "Eve"))
    assert not is_what_was_shown(nested(MAX_DEPTH, "Eve"), nested(MAX_DEPTH, "Bob"))


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 960, 1100, 100_000])
def test_no_depth_is_too_much_to_look_at(depth: int) -> None:
    deep = nested(depth, 2**60)
    assert has_large_integer(deep)
    assert not has_large_integer(nested(depth, 5))
    assert cannot_be_shown(deep) is not None
    assert is_what_was_shown(deep, 1) is False
    assert is_what_was_shown(1, deep) is False
    assert is_what_was_shown(deep, deep) is False
    shown, levels = shown_arguments(deep), 0
    while isinstance(shown, dict | list):
        shown, levels = shown["k" if isinstance(shown, dict) else 0], levels + 1
    assert (shown, levels) == (str(2**60), depth)


# -- any arguments ----------------------------------------------------------------------------------------------------

numbers = st.integers() | st.integers(EXACT - 3, EXACT + 3) | st.integers(-(2**80), 2**80) | st.floats()
texts = st.text(st.characters(exclude_categories=()), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


def as_javascript_reads(sent: bytes) -> Any:
    return json.loads(sent, parse_int=lambda digits: int(float(digits)))


@settings(deadline=None, max_examples=500)
@given(values)
def test_what_is_shown_is_exact_to_javascript_and_comes_back_as_what_was_shown(arguments: Any) -> None:
    shown = shown_arguments(arguments)
    assert not has_large_integer(shown)
    assert shown_arguments(shown) == shown or cannot_be_shown(arguments)
    if cannot_be_shown(arguments) is None:
        sent = encode_json(shown)
        assert json.loads(sent) == shown, "something was replaced on its way"
        assert as_javascript_reads(sent) == shown
        assert is_what_was_shown(shown, json.loads(sent))
