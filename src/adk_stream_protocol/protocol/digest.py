"""A digest of what a person was shown: 64 characters for a call's name and arguments as canonical JSON.

Two argument sets have the same digest exactly when they are the same JSON value: the order of keys does not count, `1`
and `1.0` are one number, but `true` is not `1`, and a letter in another normalisation form is another letter.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from .chunks import encode_json

MAX_DEPTH = 100
"""Of arguments that a person can be shown."""

_LARGEST_EXACT = 2**53 - 1  # in JavaScript, whose numbers are floats
_LONGEST_BITS = 14_000  # Python turns no number into text that is much longer
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def digest_of_call(tool: str, arguments: Any) -> str:
    return hashlib.sha256(canonical_json([tool, arguments])).hexdigest()


def canonical_json(value: Any) -> bytes:
    return _canonical(value, int)


def is_what_was_shown(shown: Any, claimed: Any) -> bool:
    """Whether a client's copy of the arguments is the one that it was sent: `shown_arguments`. JavaScript writes large
    floats as whole numbers, with other digits than Python's."""
    if any(depth > MAX_DEPTH + 1 for _, depth in _everything([shown, claimed])):
        return False
    return _canonical(shown, _number) == _canonical(claimed, _number)


def shown_arguments(arguments: Any) -> Any:
    """A copy of arguments as they are sent to whoever approves them: whole numbers that JavaScript would round travel
    as text."""
    copied = [arguments]
    places: list[tuple[Any, Any]] = [(copied, 0)]
    while places:  # no recursion: a model may nest without limit
        inside, place = places.pop()
        value = inside[place]
        if isinstance(value, dict):
            inside[place] = dict(cast(dict[Any, Any], value))
            places += [(inside[place], key) for key in inside[place]]
        elif isinstance(value, list | tuple):
            inside[place] = list(cast(list[Any], value))
            places += [(inside[place], index) for index in range(len(inside[place]))]
        elif _is_large(value):
            inside[place] = str(value)
    return copied[0]


def has_large_integer(arguments: Any) -> bool:
    return any(_is_large(value) for value, _ in _everything(arguments))


def cannot_be_shown(arguments: Any) -> str | None:
    """Why a page cannot show these arguments, as the end of a sentence; None if it can."""
    for value, depth in _everything(arguments):
        if depth > MAX_DEPTH:
            return f"its arguments are nested deeper than {MAX_DEPTH} levels"
        if isinstance(value, float) and not math.isfinite(value):
            return "its arguments contain a number that is infinite or not a number"
        if isinstance(value, str) and _HALF_CHARACTER.search(value):
            return "its arguments contain half a character"
        if isinstance(value, int) and value.bit_length() > _LONGEST_BITS:
            return "its arguments contain a number with thousands of digits"
    return None


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > _LARGEST_EXACT


def _everything(arguments: Any) -> Iterator[tuple[Any, int]]:
    """All keys and values, each with how many lists and objects it is in."""
    found: list[tuple[Any, int]] = [(arguments, 0)]
    while found:
        value, depth = found.pop()
        yield value, depth
        if isinstance(value, dict):
            items = cast(dict[Any, Any], value)
            found += [(below, depth + 1) for below in (*items.keys(), *items.values())]
        elif isinstance(value, list | tuple):
            found += [(below, depth + 1) for below in cast(list[Any], value)]


def _canonical(value: Any, whole_number: Callable[[str], Any]) -> bytes:
    # The arguments as the JSON that a client reads.
    plain = json.loads(encode_json(value), parse_int=whole_number, parse_float=_number)
    return msgspec.json.encode(plain, order="deterministic")


def _number(text: str) -> int | float:
    """As JavaScript reads it. What is infinite there is null in the JSON that comes back, and in ours."""
    number = float(text)
    return int(number) if number.is_integer() else number
