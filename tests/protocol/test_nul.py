"""NUL characters are found wherever they are, and replaced there."""

from typing import Any

import pytest

from adk_stream_protocol.protocol.nul import has_nul, without_nul


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        ("\0", "\ufffd"),
        ("a\0b\0", "a\ufffdb\ufffd"),
        (["\0"], ["\ufffd"]),
        ({"a": "\0"}, {"a": "\ufffd"}),
        ({"\0": 1}, {"\ufffd": 1}),
        ({"a": [{"b": {"c\0": None}}]}, {"a": [{"b": {"c\ufffd": None}}]}),
        ([[["\0"]]], [[["\ufffd"]]]),
    ],
)
def test_a_nul_is_found_and_replaced(value: Any, instead: Any) -> None:
    assert has_nul(value)
    assert without_nul(value) == instead
    assert not has_nul(instead)


@pytest.mark.parametrize("value", [None, 0, "", "\\u0000", "\x01", {"a": [1, {"b": "0"}]}, [], {}, True, 1.5, 10**400])
def test_everything_else_stays(value: Any) -> None:
    assert not has_nul(value)
    assert without_nul(value) == value
