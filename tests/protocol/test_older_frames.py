"""The frames of the design notes: which they are, what they are read as, what is refused, and what clients are told."""

import json
from typing import Any

import pytest
from hypothesis import given

from adk_stream_protocol.errors import MalformedRequest, NoUser, RequestTooLarge
from adk_stream_protocol.limits import Limits
from adk_stream_protocol.protocol.frames import OURS, Refused, Send
from adk_stream_protocol.protocol.older_frames import (
    DONE,
    OlderPing,
    Target,
    decode_older,
    encode_older,
    encode_older_error,
    encode_older_pong,
    is_older,
)
from adk_stream_protocol.protocol.turn import read_turn
from protocol.request_bodies import hello, json_value, quick, user

HERE = Target("chat", "r1")
CANARY = "canary-5f3a"
STYLE = {"approvalStyle": "confirmation-tool"}


def read(frame: Any, limits: Limits | None = None) -> Any:
    text = frame if isinstance(frame, str) else json.dumps(frame)
    return decode_older(text, HERE, limits or Limits())


def turn(frame: Any) -> Any:
    sent = read(frame)
    assert isinstance(sent, Send)
    return read_turn(sent.request(), Limits())


def refusal(frame: Any) -> str:
    refused = read(frame)
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, MalformedRequest)
    assert refused.request_id == OURS
    assert CANARY not in str(refused.error)
    return str(refused.error)


def flat(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "version": "1.0", **fields}


def nested(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "version": "1.0", "data": fields}


# -- which frames they are --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [flat, nested])
@pytest.mark.parametrize("kind", ["message", "tool_result", "tool-result", "ping"])
def test_the_notes_frames_are_known_by_their_types(form: Any, kind: str) -> None:
    assert is_older(json.dumps(form(kind)))
    assert is_older(json.dumps({"type": kind}))
    assert not is_older(json.dumps({**form(kind), "requestId": "-"}))
    assert not is_older(json.dumps({**form(kind), "requestId": None}))


@pytest.mark.parametrize(
    "text",
    [
        *("", "ping", "[]", "null", "{}", '{"type":1}', '{"type":"send"}', '{"type":"attach"}', '{"type":"ping"'),
        *('{"type":"ping","x":"\ud800"}', '{"type":"ping","x":' + "[" * 9999 + "]" * 9999 + "}"),
    ],
)
def test_no_other_frame_is_one(text: str) -> None:
    assert not is_older(text)


# -- what they are read as --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [flat, nested])
def test_a_message_is_the_request_that_http_would_bring(form: Any) -> None:
    assert turn(form("message", messages=[user()])) == hello(style="confirmation-tool")
    assert turn(form("message", messages=[user()], approvalStyle="approval-request")) == hello(style="approval-request")
    assert turn(form("message", messages=[user()], sdkVersion=7)) == hello(version=7, style="confirmation-tool")


@pytest.mark.parametrize("form", [flat, nested])
def test_a_message_names_neither_a_chat_nor_a_place_in_it(form: Any) -> None:
    sent = read(form("message", messages=[user()], id="theirs", messageId="u1", timestamp=1, mine={"a": 1}))
    assert (sent.id, sent.request_id, sent.message_id, sent.trigger) == ("chat", "r1", None, "submit-message")
    assert sent.body == {**STYLE, "mine": {"a": 1}}
    assert read(form("message", messages=[], trigger="regenerate-message")).trigger == "regenerate-message"


@pytest.mark.parametrize("form", [flat, nested])
@pytest.mark.parametrize("kind", ["tool_result", "tool-result"])
@pytest.mark.parametrize("name", ["result", "output"])
@pytest.mark.parametrize("value", [{"confirmed": True}, {"latitude": 1.5}, None, "Tokyo", [1]])
def test_a_result_is_one_in_a_message_of_the_user(form: Any, kind: str, name: str, value: Any) -> None:
    frame = form(kind, toolCallId="adk-1", toolName="pay", status="approved", **{name: value})
    (part,) = turn(frame).answers
    assert part == {"type": "tool-result", "toolCallId": "adk-1", "output": value}
    assert read(frame).body == STYLE


@pytest.mark.parametrize("form", [flat, nested])
def test_a_ping_has_a_time_or_none(form: Any) -> None:
    assert read(form("ping", timestamp=1735600000000)) == OlderPing(1735600000000)
    assert read(form("ping", timestamp=1.5)) == OlderPing(1.5)
    assert read(form("ping", timestamp=None)) == read(form("ping")) == read({"type": "ping"}) == OlderPing(None)


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ("", "it is not JSON"),
        (f'{{"type": "{CANARY}', "it is not JSON"),
        ('{"type":"ping","x":"\ud800"}', "it is not JSON"),
        ([CANARY], "it is not an object"),
        ({"kind": "ping"}, "`type` is missing"),
        ({"type": [CANARY]}, "`type` has a wrong type or value"),
        ({"type": CANARY}, "send `message`, `tool_result` or `ping`"),
        ({"type": "send", "requestId": "r1", "id": "c", "messages": []}, "begun with the older frames"),
        ({"type": "ping", "version": "1.1"}, "`version` must be 1.0"),
        ({"type": "ping", "version": 1.0}, "`version` has a wrong type or value"),
        ({"type": "ping", "timestamp": CANARY}, "`timestamp` has a wrong type or value"),
        ({"type": "message", "data": [CANARY]}, "`data` has a wrong type or value"),
        (flat("message"), "`messages` is missing"),
        (nested("message"), "`messages` is missing"),
        ({"type": "message", "data": {}, "messages": [user()]}, "`messages` is missing"),
        (flat("message", messages={CANARY: 1}), "`messages` has a wrong type or value"),
        (flat("message", messages=[user()], trigger=[CANARY]), "`trigger` has a wrong type or value"),
        (flat("tool_result", result={}), "`toolCallId` is missing"),
        (flat("tool_result", toolCallId=[CANARY], result={}), "`toolCallId` has a wrong type or value"),
        (flat("tool_result", toolCallId="c1"), "`result` is missing"),
    ],
)
def test_what_is_no_such_frame_is_refused_and_not_quoted(frame: Any, says: str) -> None:
    assert says in refusal(frame)


def test_frames_have_the_sizes_of_all_frames() -> None:
    limits = Limits(max_json_bytes=10_000)
    large = read(flat("message", messages=[user({"type": "text", "text": "x" * 20_000})]), limits)
    assert isinstance(large.error, RequestTooLarge)
    assert isinstance(read(flat("message", messages=[user({"type": "text", "text": "x" * 9_000})]), limits), Send)
    assert isinstance(read(flat("ping", more="x" * 5_000)).error, RequestTooLarge)


@quick
@given(json_value)
def test_any_json_is_read_or_refused(value: Any) -> None:
    for frame in (
        value,
        {"type": "message", "data": value},
        {"type": "tool_result", "toolCallId": "1", "result": value},
    ):
        is_older(json.dumps(frame))
        assert isinstance(read(frame), Send | OlderPing | Refused)


# -- what clients are told --------------------------------------------------------------------------------------------


def test_what_comes_back_is_what_http_sends() -> None:
    assert encode_older(b'{"type":"start"}') == 'data: {"type":"start"}\n\n'
    assert DONE == "data: [DONE]\n\n"
    assert json.loads(encode_older_pong(OlderPing(7))) == {"type": "pong", "timestamp": 7}
    refused = json.loads(encode_older_error(NoUser()).removeprefix("data: "))
    assert refused == {"type": "error", "errorText": str(NoUser()), "code": "no-user"}
