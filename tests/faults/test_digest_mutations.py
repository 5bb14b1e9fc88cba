"""Thousands of changes to arguments: each that changes the value changes the digest, and no other does. What clients
may echo is judged by the JavaScript they run on."""

import json
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol.digest import digest_of_call, is_what_was_shown
from conformance.node import _find_node as find_node  # pyright: ignore
from support.apps import figure

MUTATIONS = 5_000
FIGURE = settings(max_examples=figure(MUTATIONS), deadline=None, suppress_health_check=[HealthCheck.too_slow])

numbers = (
    st.integers(-5, 5)
    | st.integers(2**53 - 3, 2**53 + 9).flatmap(lambda n: st.sampled_from([n, -n, float(n)]))
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([10**22, 1e22, 10**400, -(10**400), -0.0, 1.0, 2.5, 1e-7])
    | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.sampled_from('aB1 ."\\\n\x00é\u0301\u200b\u2028\uffff😀'), max_size=4)
# V8 of Node 24 reads the key `"` as `\\` once it has seen an object with that key: no backslash in keys.
keys = texts.filter(lambda text: "\\" not in text) | st.just("__proto__")
leaves = st.none() | st.booleans() | numbers | texts | st.sampled_from(["1", "true", "null", "__proto__"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=6,
)


def same_value(one: Any, other: Any) -> bool:
    """Whether two things are one JSON value, in other words than those of the digest."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    return one == other  # Python compares integers and floats exactly


def of_number(number: float) -> list[Any]:
    others = [number + 1, number - 1, -number, str(number), bool(number), [number], None]
    if isinstance(number, float):
        return [*others, int(number)]
    return [*others, 10 * number, *([float(number)] if abs(number) < 2**1000 else [])]


def of_text(text: str) -> list[Any]:
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC")]
    return [*forms, text + " ", text + "\u0301", text.swapcase(), text[1:], text[::-1], [text], None]


def of_list(items: list[Any]) -> list[Any]:
    return [
        items[1:],
        items[::-1],
        [*items, *items[:1]],
        [*items, None],
        [items],
        {str(n): i for n, i in enumerate(items)},
    ]


def of_object(items: dict[str, Any]) -> list[Any]:
    swapped = dict(zip(items, reversed(items.values()), strict=True))
    renamed = {key + " ": item for key, item in items.items()}
    return [{**items, "more": None}, dict(list(items.items())[1:]), swapped, renamed, list(items.values()), [items]]


@st.composite
def mutated(draw: st.DrawFn, value: Any) -> Any:
    """The value with one change, somewhere."""
    if isinstance(value, dict | list) and value and draw(st.booleans()):
        places: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        place = draw(st.sampled_from(places))
        copy = value.copy()
        copy[place] = draw(mutated(value[place]))
        return copy
    if value is None or isinstance(value, bool):
        return draw(st.sampled_from([0, 1, "", str(value), [], {}, None, True, False]))
    kinds: list[tuple[Any, Callable[[Any], list[Any]]]] = [
        (dict, of_object),
        (list, of_list),
        (str, of_text),
        (int | float, of_number),
    ]
    changed = next(change for kind, change in kinds if isinstance(value, kind))
    return draw(st.sampled_from(changed(value)))


@st.composite
def reordered(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, list):
        return [draw(reordered(item)) for item in value]
    if isinstance(value, dict):
        return {key: draw(reordered(value[key])) for key in draw(st.permutations(list(value)))}
    return value


changes = values.flatmap(lambda value: st.tuples(st.just(value), mutated(value)))
orders = values.flatmap(lambda value: st.tuples(st.just(value), reordered(value)))


@pytest.mark.figures
@FIGURE
@given(changes)
def test_a_digest_changes_exactly_when_the_value_does(change: tuple[Any, Any]) -> None:
    value, mutant = change
    is_same = digest_of_call("pay", value) == digest_of_call("pay", mutant)
    assert is_same == same_value(value, mutant)


@settings(FIGURE, max_examples=200)
@given(orders)
def test_the_order_of_keys_changes_no_digest(orders: tuple[Any, Any]) -> None:
    value, other_order = orders
    assert digest_of_call("pay", value) == digest_of_call("pay", other_order)


ECHO = """
const { isDeepStrictEqual } = require('util')
const echo = value => JSON.parse(JSON.stringify(value))
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const [shown, claimed] = JSON.parse(line)
  console.log(JSON.stringify([shown, isDeepStrictEqual(echo(shown), echo(claimed))]))
})
"""


@pytest.fixture(scope="module")
def javascript() -> Iterator[Callable[[Any, Any], tuple[Any, bool]]]:
    """What a client would echo of the first value, and whether the second is the same to it."""
    with subprocess.Popen([find_node(), "-e", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.stdin
        assert node.stdout
        stdin, stdout = node.stdin, node.stdout

        def ask(shown: Any, claimed: Any) -> tuple[Any, bool]:
            stdin.write(json.dumps([shown, claimed]).encode() + b"\n")
            stdin.flush()
            echoed, is_same = msgspec.json.decode(stdout.readline())
            return echoed, is_same

        yield ask


@pytest.mark.figures
@FIGURE
@given(change=changes)
def test_a_client_s_copy_is_taken_exactly_when_it_is_the_same_to_javascript(
    javascript: Callable[[Any, Any], tuple[Any, bool]], change: tuple[Any, Any]
) -> None:
    shown, mutant = change
    echoed, is_same = javascript(shown, mutant)
    assert is_what_was_shown(shown, echoed)
    assert is_what_was_shown(shown, mutant) == is_same
