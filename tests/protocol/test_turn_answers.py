"""From request bytes to answers to calls: which message is read for them, and that no other one is."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_stream_protocol.errors import MalformedRequest
from adk_stream_protocol.protocol.digest import MAX_DEPTH
from adk_stream_protocol.protocol.turn import Turn, decode_turn
from protocol.request_bodies import (
    ANSWER,
    LIMITS,
    TOOL_PART,
    body,
    file,
    hello,
    json_value,
    quick,
    some_message,
    text,
    user,
)

EARLIER = ANSWER | {"id": "m0", "parts": [TOOL_PART | {"toolCallId": "earlier"}]}
RESULT = {"type": "tool-result", "toolCallId": "a", "output": {"approved": True}}


def answers(message: dict[str, Any] = ANSWER, version: Any = None, style: Any = None) -> Turn:
    return Turn("chat", message.get("id"), (), version, style, answers=tuple(message["parts"]))


@pytest.mark.parametrize(
    ("request_body", "turn"),
    [
        pytest.param(body(user(), ANSWER, messageId="m1"), answers(), id="as-stock-clients-do"),
        pytest.param(body(user(), ANSWER), answers(), id="without-messageId"),
        pytest.param(body(messages=None, message=ANSWER, messageId="m1"), answers(), id="only-the-last-message"),
        pytest.param(body(messages=None, message=EARLIER, messageId="m0"), answers(EARLIER), id="only-the-one-named"),
        pytest.param(body(EARLIER, user(), message=ANSWER, messageId="m0"), answers(), id="message-outranks-messages"),
        pytest.param(
            body(ANSWER | {"parts": []}, user(), message=None), hello(), id="an-answer-that-the-user-spoke-after"
        ),
        pytest.param(
            body(user(), EARLIER, user(id="u2"), ANSWER, messageId="m0"), answers(EARLIER), id="late-after-an-answer"
        ),
        pytest.param(body(user(), EARLIER, user(id="u2"), messageId="m0"), answers(EARLIER), id="late-after-words"),
        pytest.param(
            body(EARLIER | {"parts": []}, EARLIER, user(id="u2"), messageId="m0"),
            answers(EARLIER),
            id="the-last-so-named",
        ),
        pytest.param(
            body(ANSWER | {"parts": []}, ANSWER, messageId="m1"), answers(), id="the-last-one-before-its-like"
        ),
        pytest.param(body({"role": "assistant", "parts": []}, user()), hello(), id="words-after-one-without-an-id"),
        pytest.param(body(user(), EARLIER, ANSWER, messageId="m9"), answers(), id="naming-what-is-not-there"),
        pytest.param(
            body(user(id="u0"), EARLIER, ANSWER, messageId="u0"), answers(), id="naming-a-message-of-the-user's"
        ),
        pytest.param(body({"role": "assistant", "parts": []}), answers({"parts": []}), id="without-id-and-parts"),
        pytest.param(body(ANSWER, trigger=None), answers(), id="without-a-trigger"),
        pytest.param(body(ANSWER, sdkVersion=7), answers(version=7), id="sdk-7"),
        pytest.param(
            body(ANSWER, approvalStyle="confirmation-tool"), answers(style="confirmation-tool"), id="confirmation-tool"
        ),
        pytest.param(
            body(None, 1, "x", [], {"role": 5}, EARLIER, {"id": 7}, user(), messageId="m0"),
            answers(EARLIER),
            id="late-in-an-odd-history",
        ),
    ],
)
def test_an_assistants_message_is_read_for_answers(request_body: bytes, turn: Turn) -> None:
    assert decode_turn(request_body, LIMITS) == turn


def test_an_edit_in_an_odd_history_is_an_edit() -> None:
    odd = body(None, 1, {"role": 5}, user(), messageId="u7")
    assert decode_turn(odd, LIMITS) == hello(again="edit", target_id="u7")


def test_to_have_a_message_answered_anew_is_no_answer_to_an_earlier_one() -> None:
    again = body(user(id="u0"), EARLIER, user(), trigger="regenerate-message", messageId="m0")
    assert decode_turn(again, LIMITS) == hello(again="regenerate", target_id="m0")


@pytest.mark.parametrize("parts", [[RESULT], [text(), RESULT, file(), RESULT | {"toolCallId": "b"}, {"type": "x"}]])
def test_a_users_message_with_results_is_read_for_answers_and_names_no_message(parts: list[Any]) -> None:
    results = tuple(part for part in parts if part["type"] == "tool-result")
    for posted in (body(user(*parts)), body(EARLIER, user(*parts), messageId="u1")):
        assert decode_turn(posted, LIMITS) == Turn("chat", None, (), None, None, answers=results)


def test_the_confirmation_tool_may_be_answered_in_a_users_message() -> None:
    part = {"type": "tool-adk_request_confirmation", "toolCallId": "adk-1", "state": "approval-responded"}
    part |= {"approval": {"id": "adk-1", "approved": True}}
    turn = decode_turn(body(user(part, RESULT)), LIMITS)
    assert turn == Turn("chat", None, (), None, None, answers=(part, RESULT))
    with pytest.raises(MalformedRequest):
        decode_turn(body(user(part | {"type": "tool-pay"})), LIMITS)


def test_words_of_the_user_answer_no_call() -> None:
    assert decode_turn(body(ANSWER, user()), LIMITS).answers is None


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if depth % 2 else {"k": value}
    return value


def deep_answers(depth: int) -> list[bytes]:
    part = TOOL_PART | {"output": nested(depth)}
    return [body(ANSWER | {"parts": [part]}), body(user(RESULT | {"output": nested(depth)}))]


@pytest.mark.parametrize("depth", [90, 91])
def test_answers_as_deep_as_anybody_reads_are_taken(depth: int) -> None:
    for posted in deep_answers(depth):
        assert decode_turn(posted, LIMITS).answers is not None


def test_the_deepest_arguments_that_were_shown_come_back() -> None:
    question = {"originalFunctionCall": {"id": "c1", "name": "pay", "args": nested(MAX_DEPTH)}}
    part = TOOL_PART | {"type": "tool-adk_request_confirmation", "input": question}
    assert decode_turn(body(ANSWER | {"parts": [part]}), LIMITS).answers == (part,)


@pytest.mark.parametrize("depth", [110, 111, 400, 901])
def test_answers_nested_beyond_measure_are_malformed(depth: int) -> None:
    """They would be compared, stored and shown, each of which ends in a failure somewhere."""
    for posted in deep_answers(depth):
        with pytest.raises(MalformedRequest):
            decode_turn(posted, LIMITS)


@settings(quick, max_examples=300)
@given(st.lists(json_value | some_message, max_size=4), st.lists(json_value | some_message, max_size=4))
def test_no_other_message_changes_a_late_answer(before: list[Any], after: list[Any]) -> None:
    history = [message for message in after if not (isinstance(message, dict) and message.get("id") == "m1")]
    posted = body(*before, ANSWER, *history, user(), messageId="m1")
    assert decode_turn(posted, LIMITS) == answers()
