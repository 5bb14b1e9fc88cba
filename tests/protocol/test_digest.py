"""The digest of a call: one for each JSON value, whatever its spelling, and what a JavaScript client may echo."""

import hashlib
from typing import Any

import msgspec
import pytest

from adk_stream_protocol.protocol.digest import canonical_json, digest_of_call, is_what_was_shown

NFC, NFD = "\u00e9", "e\u0301"
HUGE = 10**400  # beyond every float


def digest(arguments: Any) -> str:
    return digest_of_call("pay", arguments)


SAME: dict[str, tuple[Any, Any]] = {
    "itself": ({"to": "Bob", "amount": 5}, {"to": "Bob", "amount": 5}),
    "reordered keys": ({"to": "Bob", "amount": 5}, {"amount": 5, "to": "Bob"}),
    "reordered keys deep inside": ({"a": [{"b": 1, "c": 2}]}, {"a": [{"c": 2, "b": 1}]}),
    "reordered keys beyond ASCII": ({NFC: 1, "\U0001f600": 2, "\ue000": 3}, {"\ue000": 3, "\U0001f600": 2, NFC: 1}),
    "1 and 1.0": ({"n": 1}, {"n": 1.0}),
    "1 and 1.0 in a list": ([[1], {"n": [2]}], [[1.0], {"n": [2.0]}]),
    "0 and -0.0": ({"n": 0}, {"n": -0.0}),
    "a large float and its integer": ({"n": 1e22}, {"n": 10**22}),
    "the largest float and its integer": ({"n": 1.7976931348623157e308}, {"n": int(1.7976931348623157e308)}),
    "a float in another notation": ({"n": 0.0000001}, {"n": 1e-7}),
    "a tuple and a list": ({"n": (1, 2)}, {"n": [1, 2]}),
}

DIFFERENT: dict[str, tuple[Any, Any]] = {
    "an extra key": ({"to": "Bob"}, {"to": "Bob", "amount": 5}),
    "a null instead of nothing": ({"to": "Bob"}, {"to": "Bob", "amount": None}),
    "a key in another case": ({"to": "Bob"}, {"To": "Bob"}),
    "keys and values exchanged": ({"a": "b"}, {"b": "a"}),
    "values exchanged": ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
    "another number": ({"n": 5}, {"n": 6}),
    "another sign": ({"n": 5}, {"n": -5}),
    "another fraction": ({"n": 0.1}, {"n": 0.10000000000000002}),
    "a whole number and a fraction": ({"n": 1}, {"n": 1.5}),
    "1 and true": ({"n": 1}, {"n": True}),
    "1.0 and true": ({"n": 1.0}, {"n": True}),
    "0 and false": ({"n": 0}, {"n": False}),
    "0 and null": ({"n": 0}, {"n": None}),
    "false and null": ({"n": False}, {"n": None}),
    "true and its name": ({"n": True}, {"n": "true"}),
    "1 and its text": ({"n": 1}, {"n": "1"}),
    "null and its name": ({"n": None}, {"n": "null"}),
    "null and an empty text": ({"n": None}, {"n": ""}),
    "integers that are one float": ({"n": 2**53}, {"n": 2**53 + 1}),
    "integers beyond 64 bits": ({"n": 2**64}, {"n": 2**64 + 1}),
    "negative integers beyond 64 bits": ({"n": -(2**64)}, {"n": -(2**64) - 1}),
    "an integer and the float beside it": ({"n": 2**53 + 1}, {"n": float(2**53)}),
    "integers beyond every float": ({"n": HUGE}, {"n": HUGE + 1}),
    "normalisation forms": ({"to": NFC}, {"to": NFD}),
    "normalisation forms of keys": ({NFC: 1}, {NFD: 1}),
    "a space at the end": ({"to": "Bob"}, {"to": "Bob "}),
    "a character that looks alike": ({"to": "Bob"}, {"to": "B\u043eb"}),
    "an invisible character": ({"to": "Bob"}, {"to": "B\u200bob"}),
    "a list in another order": ({"n": [1, 2]}, {"n": [2, 1]}),
    "a list with a repetition": ({"n": [1]}, {"n": [1, 1]}),
    "a list nested otherwise": ({"n": [1, [2]]}, {"n": [[1], 2]}),
    "an empty list and an empty object": ({"n": []}, {"n": {}}),
    "a value and a list of it": ({"n": 1}, {"n": [1]}),
    "an object and its text": ({"n": {"a": 1}}, {"n": '{"a":1}'}),
    "deep inside": ({"a": [{"b": {"c": [1]}}]}, {"a": [{"b": {"c": [2]}}]}),
    "nothing and an empty object": (None, {}),
}


@pytest.mark.parametrize("case", SAME)
def test_one_value_has_one_digest_however_it_is_written(case: str) -> None:
    one, other = SAME[case]
    assert canonical_json(one) == canonical_json(other)
    assert digest(one) == digest(other)
    assert is_what_was_shown(one, other)
    assert is_what_was_shown(other, one)


@pytest.mark.parametrize("case", DIFFERENT)
def test_another_value_has_another_digest(case: str) -> None:
    one, other = DIFFERENT[case]
    assert canonical_json(one) != canonical_json(other)
    assert digest(one) != digest(other)


ALIKE_IN_JAVASCRIPT = {case for case in DIFFERENT if case.startswith(("integers", "negative integers", "an integer"))}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_was_changed_is_not_what_was_shown_unless_javascript_cannot_tell(case: str) -> None:
    one, other = DIFFERENT[case]
    assert is_what_was_shown(one, other) is (case in ALIKE_IN_JAVASCRIPT)
    assert is_what_was_shown(other, one) is (case in ALIKE_IN_JAVASCRIPT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("pay", {}), ("refund", {})),
        (("pay", {}), ("Pay", {})),
        (("pay", {}), ("pay ", {})),
        (("pay", ["a"]), ('pay",["a"]', None)),
        (("pay", "a"), ("paya", "")),
        (("", "pay"), ("pay", "")),
    ],
)
def test_another_tool_has_another_digest(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    assert digest_of_call(*one) != digest_of_call(*other)


def test_the_digest_stays_what_it_is_since_stores_keep_it() -> None:
    canonical = '["pay",{"amount":5,"to":["é",true,null,0.5]}]'
    arguments = {"to": ["é", True, None, 0.5], "amount": 5.0}
    assert canonical_json(["pay", arguments]) == canonical.encode()
    assert digest_of_call("pay", arguments) == hashlib.sha256(canonical.encode()).hexdigest()


def test_what_json_cannot_hold_counts_as_what_the_person_is_shown_in_its_place() -> None:
    assert (
        canonical_json({"n": float("nan"), "text": "\ud83d", "bytes": b"a"}) == b'{"bytes":"YQ==","n":null,"text":"?"}'
    )


# What `JSON.stringify(JSON.parse(text))` of Node makes of each; tests/faults asks the real one about many more.
ECHOES = [
    ('{"n": 1.0}', '{"n":1}'),
    ("[-0.0, 1e22, 1.50]", "[0,1e+22,1.5]"),
    ("[9007199254740991, 9007199254740993]", "[9007199254740991,9007199254740992]"),
    ("[-9007199254740991, -9007199254740993]", "[-9007199254740991,-9007199254740992]"),
    ('{"n": [1152921504606846977]}', '{"n":[1152921504606847000]}'),
    ("18446744073709551617", "18446744073709552000"),
    ("100000000000000000001", "100000000000000000000"),
    ("123456789012345678901234567890", "1.2345678901234568e+29"),
    (f"[{HUGE}, {-HUGE}]", "[null,null]"),
    ('{"b": 1, "10": 2, "9": [3.0, {"c": 1.50}]}', '{"9":[3,{"c":1.5}],"10":2,"b":1}'),
    ('"\\u2028 \\u00e9 e\\u0301 \\ud83d\\ude00 \\/"', '"\u2028 é e\u0301 😀 /"'),
    ('{"__proto__": true}', '{"__proto__":true}'),
    ("[5e-324, 1.7976931348623157e308]", "[5e-324,1.7976931348623157e+308]"),
]


@pytest.mark.parametrize(("shown", "echoed"), ECHOES)
def test_what_a_javascript_client_echoes_is_what_was_shown(shown: str, echoed: str) -> None:
    assert is_what_was_shown(msgspec.json.decode(shown), msgspec.json.decode(echoed))


@pytest.mark.parametrize(
    ("shown", "claimed"),
    [
        (9007199254740993, 9007199254740994),
        (9007199254740991, 9007199254740992),
        (-9007199254740993, 9007199254740993),
        (2**60 + 1, 2**60 + 2**10),
        (2**60, True),
        (HUGE, 0),
        (HUGE, "null"),
        ([2**60 + 1, 1], [2**60 + 1, 2]),
        ({"n": 2**60 + 1}, {"n": 2**60 + 1, "more": 1}),
    ],
)
def test_rounding_excuses_no_other_change(shown: Any, claimed: Any) -> None:
    assert not is_what_was_shown(shown, claimed)
