"""What a `prepare` hook chose is kept with a call, for the worker that continues it."""

from typing import Any

import pytest

from adk_stream_protocol.chat.prepared import Prepared, decode_prepared, encode_prepared, presentation


def test_it_comes_back_without_the_state_which_is_in_the_session() -> None:
    prepared: Prepared = {
        "state_delta": {"a": 1},
        "run_config": {"max_llm_calls": 3},
        "custom_metadata": {"tenant": "x"},
        "send_state": {"b", "a"},
        "send_nodes": True,
    }
    kept = encode_prepared(prepared)
    assert decode_prepared(kept) == {
        "run_config": {"max_llm_calls": 3},
        "custom_metadata": {"tenant": "x"},
        "send_state": ["a", "b"],
        "send_nodes": True,
    }


@pytest.mark.parametrize("empty", [{}, {"state_delta": {"a": 1}}, {"run_config": {"no_such_field": 1}}])
def test_nothing_is_kept_where_nothing_was_chosen(empty: Any) -> None:
    assert encode_prepared(empty) is None


@pytest.mark.parametrize("kept", [None, [], "text"])
def test_what_is_not_ours_is_ignored(kept: Any) -> None:
    assert decode_prepared(kept) == {}


def test_an_answer_remembers_how_it_was_shown() -> None:
    assert presentation({"send_state": {"b", "a"}}, "confirmation-tool") == {
        "approval_style": "confirmation-tool",
        "send_state": ["a", "b"],
        "send_nodes": None,
    }
