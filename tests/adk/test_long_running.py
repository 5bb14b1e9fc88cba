"""The names of long-running calls."""

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from adk_stream_protocol import call_ref
from adk_stream_protocol.adk.calls.long_running import decode_call_ref
from adk_stream_protocol.protocol.call_record import CallKey, ChatKey


class Context(SimpleNamespace):
    """It can be referred to weakly, as ADK's can."""

    __hash__ = object.__hash__


def context(**changes: str) -> Any:
    named = {"app": "shop", "user": "ann", "chat": "c1", "invocation": "e-1", "call": "0", **changes}
    session = SimpleNamespace(app_name=named["app"], user_id=named["user"], id=named["chat"])
    return Context(session=session, invocation_id=named["invocation"], function_call_id=named["call"])


def test_a_ref_names_one_call_of_one_chat() -> None:
    assert decode_call_ref(call_ref(context())) == (ChatKey("shop", "ann", "c1"), CallKey("e-1", "0"))
    others = ({"app": "x"}, {"user": "bob"}, {"chat": "c2"}, {"invocation": "e-2"}, {"call": "1"}, {"call": "\u2603"})
    assert len({call_ref(context()), *(call_ref(context(**other)) for other in others)}) == 7


def test_a_ref_stays_what_it_is() -> None:
    """The application may have stored it."""
    ref = "WyIxIiwic2hvcCIsImFubiIsImMxIiwiZS0xIiwiMCJd"
    assert call_ref(context()) == ref
    assert decode_call_ref(ref) == (ChatKey("shop", "ann", "c1"), CallKey("e-1", "0"))


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "?>?>?>", "\u00ff\u00ff\u00ff", *"0123456789~"])
def test_a_ref_of_any_length_and_text_can_be_read(text: str) -> None:
    for length in range(4):
        chat, call = f"{'c' * length}{text}", f"{text}{'0' * length}"
        ref = call_ref(context(chat=chat, call=call))
        assert decode_call_ref(ref) == (ChatKey("shop", "ann", chat), CallKey("e-1", call))


def test_a_ref_can_be_part_of_an_address() -> None:
    assert call_ref(context(chat="a/b?c&\u2603")).replace("-", "").replace("_", "").isalnum()


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "?",
        "\u2603",
        "abc",
        encoded({}),
        encoded(["1", "a"]),
        encoded(["2", "shop", "ann", "c1", "e-1", "0"]),
        encoded(["1", "shop", "ann", "c1", "e-1", 0]),
        encoded(["1", "shop", "ann", "c1", "e-1", "0", "1"]),
        encoded(["1", "shop", "ann", "c1", "e-1", "0"]) + "!!!!",
    ],
)
def test_anything_else_names_nothing(ref: str) -> None:
    assert decode_call_ref(ref) is None
