"""What a person was shown, in 64 characters: a digest of a call's name and arguments as canonical JSON.

Two argument sets have one digest exactly when they are the same JSON value: the order of keys does not count, `1` and
`1.0` are one number, but `true` is not `1`, and a letter in another normalisation form is another letter.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec

from .chunks import encode_json


def digest_of_call(tool: str, arguments: Any) -> str:
    return hashlib.sha256(canonical_json([tool, arguments])).hexdigest()


def canonical_json(value: Any) -> bytes:
    return _canonical(value, int)


def is_what_was_shown(shown: Any, claimed: Any) -> bool:
    """Whether a client's copy of the arguments is the one that it was sent. JavaScript rounds what it cannot hold."""
    return _canonical(shown, _number) == _canonical(claimed, _number)


def _canonical(value: Any, whole_number: Callable[[str], Any]) -> bytes:
    # Whatever a tool is given, as the JSON that everybody sees.
    plain = json.loads(encode_json(value), parse_int=whole_number, parse_float=_number)
    return msgspec.json.encode(plain, order="deterministic")


def _number(text: str) -> int | float:
    """As JavaScript reads it. What is infinite there is null in the JSON that comes back, and in ours."""
    number = float(text)
    return int(number) if number.is_integer() else number
