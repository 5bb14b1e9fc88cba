"""What a refusal says of a request: which field is at fault, and nothing of what stands there."""

import json
from typing import Any

import pytest

from adk_stream_protocol.errors import MalformedRequest
from adk_stream_protocol.limits import Limits
from adk_stream_protocol.protocol.frames import decode_frame
from adk_stream_protocol.protocol.turn import decode_body, decode_turn

SECRET = "secret-4711"
WHAT_TO_SEND = " Send JSON with the `id` of the chat and its `messages`, as `useChat` does."
USER = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def refusal(body: Any) -> str:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(MalformedRequest) as refused:
        decode_turn(raw, Limits())
    return str(refused.value)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"messages": [USER]}, "`id` is missing"),
        ({"id": 4711, "messages": [USER]}, "`id` has a wrong type or value"),
        ({"id": "c", "messages": SECRET}, "`messages` has a wrong type or value"),
        ({"id": "c", "messages": [USER], "messageId": {SECRET: 1}}, "`messageId` has a wrong type or value"),
        ({"id": "c", "messages": [USER], "approvalStyle": SECRET}, "`approvalStyle` has a wrong type or value"),
        ({"id": "c", "messages": [USER], "sdkVersion": [SECRET]}, "`sdkVersion` has a wrong type or value"),
        ({"id": "c", "messages": [USER, {"id": SECRET}]}, "`messages[1].role` is missing"),
        ({"id": "c", "messages": [USER, {**USER, "id": 4711}]}, "`messages[1].id` has a wrong type or value"),
        ({"id": "c", "messages": [USER, SECRET]}, "`messages[1]` has a wrong type or value"),
        ({"id": "c", "messages": [{"role": "user"}]}, "`messages[0].parts` is missing"),
        (
            {"id": "c", "messages": [{**USER, "parts": [{}, SECRET]}]},
            "`messages[0].parts[1]` has a wrong type or value",
        ),
        ({"id": "c", "message": {"role": "user", "parts": SECRET}}, "`message.parts` has a wrong type or value"),
        ({"id": "c", "message": {"role": "assistant"}}, "`message.parts` is missing"),
        (
            {"id": "c", "messageId": "a1", "messages": [{"id": "a1", "role": "assistant"}, USER]},
            "`messages[0].parts` is missing",
        ),
        ([SECRET], "it is not an object"),
        (SECRET, "it is not an object"),
        (b"", "it is not JSON"),
        (b'{"id": "secret-4711"', "it is not JSON"),
        (b'{"id": "\xff"}', "it is not JSON"),
        (b'{"id": "c", "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "it is nested too deep"),
    ],
)
def test_a_refusal_names_the_field_and_quotes_nothing(body: Any, fault: str) -> None:
    said = refusal(body)
    assert said.removesuffix(WHAT_TO_SEND) == f"The request is not a chat request of the AI SDK: {fault}."


@pytest.mark.parametrize("body", [b"", b"{", [], {}, {"messages": [USER]}, {"id": 7}, {"id": "c", "messages": 7}])
def test_a_body_that_is_none_is_refused_with_what_to_send(body: Any) -> None:
    assert refusal(body).endswith(WHAT_TO_SEND)


def test_the_body_for_the_application_is_refused_in_the_same_words() -> None:
    with pytest.raises(MalformedRequest, match="it is not an object"):
        decode_body(b"[]")


TYPES = (
    " It is one of `send`, `resume`, `abort`, `ping`, `attach`, `detach`, `voice-start`, `voice-end`, `audio`, "
    "`activity-start`, `activity-end`, `interrupt`, `stop`"
)


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        ({"type": "send", "requestId": "r", "messages": []}, "`id` is missing"),
        ({"type": "send", "requestId": "r", "id": 1, "messages": []}, "`id` has a wrong type or value"),
        ({"type": SECRET, "requestId": "r"}, f"`type` has a wrong type or value.{TYPES}"),
        ({"requestId": "r"}, f"`type` is missing.{TYPES}"),
        ([SECRET], "it is not an object"),
    ],
)
def test_so_does_that_of_a_frame(frame: Any, fault: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        decode_frame(json.dumps(frame))
    assert str(refused.value) == f"This is not a frame of docs/reference/websocket.md: {fault}."


def test_and_that_of_a_frame_s_body() -> None:
    frame = decode_frame(
        json.dumps({"type": "send", "requestId": "r", "id": "c", "messages": [], "body": {"sdkVersion": []}})
    )
    with pytest.raises(MalformedRequest, match=r"`body\.sdkVersion` has a wrong type or value"):
        frame.request()  # pyright: ignore


def test_a_frame_that_is_not_json_is_told_so() -> None:
    with pytest.raises(MalformedRequest, match="it is not JSON"):
        decode_frame("{")


def test_no_text_of_a_user_s_has_one() -> None:
    said = refusal({"id": "c", "messages": [{**USER, "parts": [{"type": "text", "text": "a\0b"}]}]})
    assert said == "A text must not have NUL characters in it."
