"""The frames that clients of a live session send: what is read as what, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.errors import MalformedRequest
from adk_stream_protocol.limits import Limits
from adk_stream_protocol.protocol import frames
from adk_stream_protocol.protocol.frames import (
    OURS,
    decode_frame,
    decode_received,
    decode_request_id,
    encode_audio,
    sdk_version_of,
)
from adk_stream_protocol.protocol.messages import ClientStyle
from adk_stream_protocol.protocol.turn import read_turn
from protocol.request_bodies import hello, json_value, quick, user

MESSAGE = user()
SEND = {"type": "send", "requestId": "r1", "id": "chat", "trigger": "submit-message", "messages": [MESSAGE]}
RESUME = {"type": "resume", "requestId": "r1", "id": "chat"}
CANARY = "canary-5f3a"


def read(frame: dict[str, Any] | str | bytes, **fields: Any) -> Any:
    return decode_frame(json.dumps({**frame, **fields}) if isinstance(frame, dict) else frame)


OWN_KINDS = (
    *("ping", "attach", "detach", "voice-start", "voice-end"),
    *("audio", "activity-start", "activity-end", "interrupt", "stop"),
)


def ours(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "requestId": "-", **fields}


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (RESUME, frames.Resume("r1", "chat")),
        ({**RESUME, "lastSequence": 7}, frames.Resume("r1", "chat", 7)),
        ({**RESUME, "lastSequence": None}, frames.Resume("r1", "chat")),
        (
            {**RESUME, "headers": {"a": "b"}, "body": {"c": 1}, "metadata": {"d": 2}},
            frames.Resume("r1", "chat", None, {"a": "b"}, {"c": 1}),
        ),
        ({"type": "abort", "requestId": "r1"}, frames.Abort("r1")),
        (ours("ping"), frames.Ping(OURS)),
        (ours("attach", id="chat"), frames.Attach(OURS, "chat")),
        (ours("detach", id="chat"), frames.Detach(OURS, "chat")),
        (ours("voice-start"), frames.VoiceStart(OURS)),
        (
            ours("voice-start", client="c1", name="Phone", sdkVersion="7.0.1", approvalStyle="confirmation-tool"),
            frames.VoiceStart(OURS, "c1", "Phone", "7.0.1", "confirmation-tool"),
        ),
        (ours("voice-end"), frames.VoiceEnd(OURS)),
        (ours("audio", data="AAA="), frames.Audio(OURS, "AAA=")),
        (ours("activity-start"), frames.ActivityStart(OURS)),
        (ours("activity-end"), frames.ActivityEnd(OURS)),
        (ours("interrupt"), frames.Interrupt(OURS)),
        (ours("stop"), frames.Stop(OURS)),
        (ours("ping", sent=1, more={"deep": [1]}), frames.Ping(OURS)),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_each_frame_is_read_as_what_it_is(frame: dict[str, Any], expected: Any) -> None:
    assert read(frame) == expected
    assert read(json.dumps(frame).encode()) == expected


def test_a_send_is_read_as_the_request_that_http_would_bring() -> None:
    headers = {"x-ai-sdk-version": "7.0.1"}
    frame = read(SEND, headers=headers, body={"approvalStyle": "confirmation-tool", "theirs": 1}, metadata={"m": 1})
    turn = read_turn(frame.request(), Limits(), sdk_version_header=sdk_version_of(frame))
    assert turn == hello(version=7, style="confirmation-tool")


def test_a_send_needs_no_trigger_no_headers_and_no_body() -> None:
    frame = read({"type": "send", "requestId": "r1", "id": "chat", "messages": [MESSAGE]})
    assert (frame.trigger, frame.message_id, frame.headers, frame.body) == ("submit-message", None, None, None)
    assert read_turn(frame.request(), Limits()) == hello()


def test_what_the_frame_says_outranks_its_body() -> None:
    body = {"id": "theirs", "trigger": "regenerate-message", "messageId": "theirs", "sdkVersion": 5}
    request = read(SEND, messageId="m1", body=body).request()
    assert (request.id, request.trigger, request.message_id) == ("chat", "submit-message", "m1")
    assert request.sdk_version == 5
    assert [json.loads(bytes(raw)) for raw in request.messages] == [MESSAGE]


@pytest.mark.parametrize(
    "body", [{"message": user(id="u1")}, {"message": user(id="u1"), "messages": None}, {"messages": [user(id="u1")]}]
)
def test_a_message_in_the_body_is_the_one_that_counts(body: dict[str, Any]) -> None:
    frame = read({**SEND, "messages": [user(id="old")]}, body=body)
    assert read_turn(frame.request(), Limits()) == hello()


@pytest.mark.parametrize(
    "body", [{"approvalStyle": CANARY}, {"sdkVersion": [CANARY]}, {"messages": CANARY}, {"messages": {"a": CANARY}}]
)
def test_a_body_that_http_would_refuse_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest) as refused:
        read(SEND, body=body).request()
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        (None, None),
        ({}, None),
        ({"x-ai-sdk-version": "6"}, "6"),
        ({"X-AI-SDK-Version": "7.1"}, "7.1"),
        ({"x-ai-sdk-version": 6}, None),
        ({"x-ai-sdk-version": None}, None),
        ({"accept": "6"}, None),
    ],
)
@pytest.mark.parametrize("kind", [SEND, RESUME], ids=["send", "resume"])
def test_the_version_is_in_a_header_of_any_case(kind: dict[str, Any], headers: Any, version: str | None) -> None:
    assert sdk_version_of(read(kind, headers=headers)) == version


@pytest.mark.parametrize("samples", [b"", b"\x00\x01", bytes(range(256))])
def test_voice_comes_out_as_it_went_in(samples: bytes) -> None:
    assert read(ours("audio", data=encode_audio(samples))).samples() == samples


def test_a_voice_says_how_its_answers_are_shown() -> None:
    assert read(ours("voice-start")).style() == ClientStyle()
    style = read(ours("voice-start", sdkVersion="7.0.1", approvalStyle="confirmation-tool")).style()
    assert style == ClientStyle(7, "confirmation-tool")
    with pytest.raises(MalformedRequest):
        read(ours("voice-start", sdkVersion=4)).style()


@pytest.mark.parametrize("data", ["A", "AAA", "AA-_", "AAA= ", "\nAAA=", "AAA=é", "=AAA", "AA==AA==", CANARY])
def test_voice_that_is_not_base64_is_refused(data: str) -> None:
    with pytest.raises(MalformedRequest, match="base64") as refused:
        read(ours("audio", data=data)).samples()
    assert data not in str(refused.value)


def without(frame: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in frame.items() if key != name}


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("", id="nothing"),
        pytest.param("ping", id="no-json"),
        pytest.param("[]", id="a-list"),
        pytest.param("null", id="null"),
        pytest.param("7", id="a-number"),
        pytest.param("{}", id="no-type"),
        pytest.param('{"type":"ping","requestId":"-"}}', id="more-behind-it"),
        pytest.param('{"type":"ping","requestId":"-"', id="half-of-it"),
        pytest.param(b'{"type":"attach","requestId":"-","id":"\xff"}', id="invalid-utf-8"),
        pytest.param('{"type":"ping","requestId":"-","x":"\ud800"}', id="a-lone-surrogate"),
        pytest.param('{"type":"attach","requestId":"-","id":"\\ud800"}', id="an-escaped-surrogate"),
        pytest.param('{"type":"send","requestId":"r1","id":"c","messages":[],"body":{"x":NaN}}', id="not-a-number"),
        pytest.param(
            '{"type":"send","requestId":"r1","id":"c","messages":[],"body":{"x":' + "[" * 9999 + "]" * 9999 + "}}",
            id="too-deep",
        ),
        pytest.param(
            '{"type":"resume","requestId":"r1","id":"c","lastSequence":' + "9" * 5000 + "}", id="a-giant-number"
        ),
        pytest.param({"type": "say", "requestId": "r1"}, id="an-unknown-type"),
        pytest.param({"type": 1, "requestId": "r1"}, id="a-type-that-is-no-text"),
        pytest.param({"type": "ping"}, id="no-request-id"),
        pytest.param({"type": "ping", "requestId": 1}, id="a-request-id-that-is-no-text"),
        pytest.param({"type": "abort", "requestId": ""}, id="an-empty-request-id"),
        pytest.param({"type": "abort", "requestId": "r" * 129}, id="a-long-request-id"),
        pytest.param({"type": "abort", "requestId": "-"}, id="abort-under-our-id"),
        pytest.param({**SEND, "requestId": "-"}, id="send-under-our-id"),
        pytest.param({**RESUME, "requestId": "-"}, id="resume-under-our-id"),
        *[
            pytest.param({**ours(kind, id="chat", data="AAA="), "requestId": "r1"}, id=f"{kind}-under-another-id")
            for kind in OWN_KINDS
        ],
        pytest.param(without(SEND, "id"), id="send-without-chat"),
        pytest.param({**SEND, "id": 7}, id="send-to-a-number"),
        pytest.param(without(SEND, "messages"), id="send-without-messages"),
        pytest.param({**SEND, "messages": {}}, id="messages-that-are-no-list"),
        pytest.param({**SEND, "trigger": None}, id="send-with-no-trigger"),
        pytest.param({**SEND, "headers": []}, id="headers-that-are-a-list"),
        pytest.param({**SEND, "body": "x"}, id="a-body-that-is-text"),
        pytest.param(without(RESUME, "id"), id="resume-without-chat"),
        *[
            pytest.param({**RESUME, "lastSequence": bad}, id=f"last-sequence-{bad}")
            for bad in (1.5, 1.0, "3", True, [1])
        ],
        pytest.param(ours("attach"), id="attach-to-nothing"),
        pytest.param(ours("detach"), id="detach-from-nothing"),
        pytest.param(ours("voice-start", name="x" * 65), id="a-long-name"),
        pytest.param(ours("voice-start", client="x" * 129), id="a-long-client"),
        pytest.param(ours("voice-start", approvalStyle="none"), id="an-unknown-style"),
        pytest.param(ours("audio"), id="audio-without-data"),
        pytest.param(ours("audio", data=[0, 0]), id="audio-as-numbers"),
    ],
)
def test_what_is_no_frame_is_refused(frame: dict[str, Any] | str | bytes) -> None:
    with pytest.raises(MalformedRequest):
        read(frame)


def test_a_refusal_quotes_nothing_of_the_frame() -> None:
    for frame in ({"type": CANARY}, ours("attach", id={CANARY: 1}), {**SEND, "trigger": [CANARY]}, f'"{CANARY}'):
        with pytest.raises(MalformedRequest) as refused:
            read(frame)
        assert CANARY not in repr(refused.value)
        assert refused.value.__cause__ is None


def test_request_ids_have_up_to_128_characters_of_any_kind() -> None:
    for request_id in ("r", "r" * 128, "Grüße 🎈", "--", '"'):
        assert read({"type": "abort", "requestId": request_id}).request_id == request_id


@pytest.mark.parametrize(
    ("frame", "request_id"),
    [
        ('{"requestId":"r1"}', "r1"),
        ('{"type":"nonsense","requestId":"r1","more":{}}', "r1"),
        (b'{"requestId":"r1"}', "r1"),
        ('{"requestId":"-"}', OURS),
        ('{"requestId":""}', OURS),
        ('{"requestId":7}', OURS),
        ('{"requestId":"' + "r" * 128 + '"}', "r" * 128),
        ('{"requestId":"' + "r" * 129 + '"}', OURS),
        ("{}", OURS),
        ('["requestId"]', OURS),
        ("", OURS),
        ('{"requestId":"r1"', OURS),
        (b'{"requestId":"\xff"}', OURS),
        ('{"requestId":"\ud800"}', OURS),
        ('{"requestId":' + "[" * 9999, OURS),
    ],
)
def test_a_refusal_goes_to_the_request_that_can_be_made_out(frame: str | bytes, request_id: str) -> None:
    assert decode_request_id(frame) == request_id


KIB = 1024
SMALL = Limits(max_json_bytes=9 * KIB, max_file_bytes=30 * KIB, max_socket_file_bytes=9 * KIB, max_frame_bytes=20 * KIB)


def received(frame: dict[str, Any] | str) -> Any:
    got = decode_received(frame if isinstance(frame, str) else json.dumps(frame), SMALL)
    return (got.request_id, got.error.code) if isinstance(got, frames.Refused) else type(got)


def data_url(size: int) -> dict[str, Any]:
    return {"type": "file", "url": "data:image/png;base64," + "A" * size}


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (SEND, frames.Send),
        ({**SEND, "body": {"x": "y" * 5 * KIB}}, frames.Send),
        ({**SEND, "body": {"x": "y" * 10 * KIB}}, ("r1", "too-large")),
        ({**SEND, "messages": [data_url(11 * KIB)]}, frames.Send),
        ({**SEND, "messages": [data_url(13 * KIB)]}, ("r1", "too-large")),
        ({**SEND, "messages": [data_url(11 * KIB)] * 2}, ("r1", "too-large")),
        ({**RESUME, "metadata": "x" * 3 * KIB}, frames.Resume),
        ({**RESUME, "metadata": "x" * 5 * KIB}, ("r1", "too-large")),
        (ours("ping", x="y" * 5 * KIB), (OURS, "too-large")),
        (ours("audio", data="A" * 8 * KIB), frames.Audio),
        ("nonsense", (OURS, "malformed")),
        ({"type": "nonsense", "requestId": "r1"}, ("r1", "malformed")),
    ],
)
def test_a_frame_that_is_not_taken_is_refused_under_the_id_of_its_request(frame: Any, expected: Any) -> None:
    assert received(frame) == expected


@pytest.mark.parametrize(("size", "goes_over_http"), [(13 * KIB, True), (50 * KIB, False)])
def test_a_file_is_sent_to_http_if_it_is_taken_there(size: int, goes_over_http: bool) -> None:
    refused = decode_received(json.dumps({**SEND, "messages": [data_url(size)]}), SMALL)
    assert isinstance(refused, frames.Refused)
    assert ("over HTTP" in str(refused.error)) == goes_over_http


def test_other_messages_have_another_digest() -> None:
    assert read(SEND).digest() == read({**SEND, "requestId": "r2"}).digest()
    assert read(SEND).digest() != read({**SEND, "messages": [user(id="other")]}).digest()


@pytest.mark.parametrize(
    ("fields", "is_larger"),
    [
        ({}, False),
        ({"body": {"theirs": "x" * 1000}}, False),
        ({"messages": [MESSAGE, "x" * 1000]}, True),
        ({"body": {"message": {}}}, True),
        ({"body": {"messages": []}}, True),
    ],
)
def test_the_messages_of_a_frame_make_it_large(fields: dict[str, Any], is_larger: bool) -> None:
    assert read(SEND, **fields).is_larger_than(500) is is_larger


some_frame = st.fixed_dictionaries(
    {"type": st.sampled_from(["send", "resume", "abort", "ping", "attach", "audio", "stop", "x"]) | json_value},
    optional={
        "requestId": st.sampled_from(["-", "r1", ""]) | json_value,
        "id": st.just("chat") | json_value,
        "messages": st.lists(json_value, max_size=2) | json_value,
        "data": st.text("A=", max_size=4) | json_value,
        "lastSequence": st.integers(-2, 2) | json_value,
        "body": st.dictionaries(st.sampled_from(["message", "messages", "sdkVersion"]), json_value) | json_value,
        "headers": json_value,
    },
)


@quick
@given(some_frame.map(json.dumps) | st.text(max_size=40) | st.binary(max_size=40) | json_value.map(json.dumps))
def test_any_bytes_are_a_frame_or_one_refusal(text: str | bytes) -> None:
    assert decode_request_id(text)
    try:
        frame = decode_frame(text)
        if isinstance(frame, frames.Send):
            frame.request()
        if isinstance(frame, frames.Audio):
            frame.samples()
    except MalformedRequest:
        pass
