"""From request bytes to a Turn: what is accepted, what is refused and as what, and that nothing else can happen."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_stream_protocol.errors import (
    BridgeError,
    MalformedRequest,
    RemoteProtocolError,
    RequestTooLarge,
)
from adk_stream_protocol.limits import Limits
from adk_stream_protocol.protocol.turn import FileInput, TextInput, Turn, decode_body, decode_sdk_version, decode_turn
from protocol.request_bodies import (
    ANSWER,
    HELLO,
    LIMITS,
    body,
    file,
    hello,
    json_value,
    parts_of,
    quick,
    some_id,
    some_message,
    text,
    user,
)

# -- accepted ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_body", "turn"),
    [
        pytest.param(body(), HELLO, id="first-message"),
        pytest.param(body(user(text("one"), id="u0"), ANSWER, user()), HELLO, id="whole-history"),
        pytest.param(body(messages=None, message=user()), HELLO, id="only-the-last-message"),
        pytest.param(body(user(text("no")), message=user()), HELLO, id="message-outranks-messages"),
        pytest.param(b'{"message":null,' + body()[1:], HELLO, id="message-null"),
        pytest.param(body(messageId="u1"), hello(again="edit", target_id="u1"), id="an-edited-message"),
        pytest.param(
            body(trigger="regenerate-message"), hello(again="regenerate", target_id="u1"), id="the-last-answer-again"
        ),
        pytest.param(
            body(trigger="regenerate-message", messageId="a7"),
            hello(again="regenerate", target_id="a7"),
            id="an-earlier-answer-again",
        ),
        pytest.param(
            body(messages=None, trigger="regenerate-message", messageId="a7", sdkVersion=7),
            Turn("chat", None, (), 7, None, again="regenerate", target_id="a7"),
            id="an-answer-again-by-its-id-alone",
        ),
        pytest.param(
            body(messages=[], message=None, trigger="regenerate-message", messageId="u1"),
            Turn("chat", None, (), None, None, again="regenerate", target_id="u1"),
            id="an-answer-again-by-its-question-s-id-alone",
        ),
        pytest.param(b'{"messageId":null,"sdkVersion":null,' + body()[1:], HELLO, id="optional-fields-null"),
        pytest.param(body(trigger=None), HELLO, id="no-trigger"),
        pytest.param(
            body(user(metadata={"at": 1}, createdAt="2026", content="hi")), HELLO, id="unknown-message-fields"
        ),
        pytest.param(body(model="x", headers={"a": [1]}, body=None), HELLO, id="fields-of-the-application"),
        pytest.param(body(sdkVersion="7.0.169"), hello(version=7), id="sdk-7"),
        pytest.param(body(sdkVersion=5), hello(version=5), id="sdk-5"),
        pytest.param(
            b'{"id":"chat","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}',
            hello(message_id=None),
            id="message-without-an-id",
        ),
        *(
            pytest.param(body(approvalStyle=style), hello(style=style), id=style)
            for style in ("approval-request", "confirmation-tool")
        ),
        pytest.param(body(None, 1, "x", [], {}, {"role": 5}, {"parts": "none"}, user()), HELLO, id="odd-history"),
        pytest.param(body().replace(b"[{", b'["\xff\xfe",{', 1), HELLO, id="history-that-is-not-utf-8"),
        pytest.param(body(id="日本-é.1_~%"), hello("日本-é.1_~%"), id="any-script"),
        pytest.param(body(id="x" * 128), hello("x" * 128), id="longest-id"),
    ],
)
def test_these_bodies_are_a_turn(request_body: bytes, turn: Turn) -> None:
    assert decode_turn(request_body, LIMITS) == turn


@pytest.mark.parametrize(
    ("parts", "taken"),
    [
        pytest.param([text(" hi ")], [TextInput(" hi ")], id="text-keeps-its-spaces"),
        pytest.param(
            [text("a"), text(" \n"), text("b")], [TextInput("a"), TextInput("b")], id="blank-text-is-left-out"
        ),
        pytest.param([text('data: "data:"')], [TextInput('data: "data:"')], id="text-like-a-data-url"),
        pytest.param([text("😀\u0001")], [TextInput("😀\u0001")], id="nearly-any-character"),
        pytest.param([text(), {"type": "data-note", "data": {}}], [TextInput("hi")], id="data-parts-are-the-page's"),
        pytest.param([text() | {"state": "done", "providerMetadata": {}}], [TextInput("hi")], id="unknown-part-fields"),
        pytest.param(
            [file(filename="a.png"), text()],
            [FileInput("image/png", b"\x00\xff", "a.png"), TextInput("hi")],
            id="file-and-text-in-their-order",
        ),
        pytest.param([file(filename=None)], [FileInput("image/png", b"\x00\xff")], id="file-without-a-name"),
        pytest.param([file(filename="f" * 255)], [FileInput("image/png", b"\x00\xff", "f" * 255)], id="longest-name"),
        pytest.param([file("DATA:;BASE64,AP8=")], [FileInput("image/png", b"\x00\xff")], id="capital-letters"),
        pytest.param([file("data:,a%20b%C3%A9,c")], [FileInput("image/png", "a bé,c".encode())], id="percent-encoded"),
        pytest.param([file("data:;charset=utf-8,é")], [FileInput("image/png", "é".encode())], id="plain-text"),
        pytest.param(
            [file("data:,x", "audio/webm;codecs=opus")], [FileInput("audio/webm", b"x")], id="media-type-with-codecs"
        ),
        pytest.param([file("data:,")], [FileInput("image/png", b"")], id="empty-file"),
        *(
            pytest.param([file("data:,x", media_type)], [FileInput(media_type, b"x")], id=media_type)
            for media_type in ("image/svg+xml", "application/vnd.ms-excel", "image/*", "X/Y_z")
        ),
    ],
)
def test_these_parts_are_taken_in(parts: list[Any], taken: list[Any]) -> None:
    assert parts_of(*parts) == tuple(taken)


def test_urls_with_an_allowed_prefix_are_handed_on_as_they_are() -> None:
    limits = Limits(allowed_file_urls=("gs://bucket/", "https://files.example/"))
    assert parts_of(file("gs://bucket/a"), file("https://files.example/b"), limits=limits) == (
        FileInput("image/png", "gs://bucket/a"),
        FileInput("image/png", "https://files.example/b"),
    )


@pytest.mark.parametrize(
    ("in_body", "in_header", "version"),
    [
        (None, None, None),
        (None, "5", 5),
        (None, "6.0.326", 6),
        (7, None, 7),
        ("7.0.0-beta.1", "5", 7),
    ],
)
def test_the_version_is_read_from_the_body_else_the_header(in_body: Any, in_header: Any, version: Any) -> None:
    assert decode_sdk_version(in_body, in_header) == version
    assert decode_turn(body(sdkVersion=in_body), LIMITS, sdk_version_header=in_header).sdk_version == version


def test_the_application_sees_every_field_of_the_body() -> None:
    assert decode_body(body(model="x"))["model"] == "x"
    for whole in (body(user(text("é 😀"), file()), ANSWER, model="x", deep={"a": [1, None]}), b'{"messages":null}'):
        assert decode_body(whole) == json.loads(whole)


# -- sizes ------------------------------------------------------------------------------------------------------------


def base64_url(size: int) -> str:
    return "data:;base64," + base64.b64encode(bytes(size)).decode()


@pytest.mark.parametrize("limit", [10, 11, 12])
@pytest.mark.parametrize("url_of", [base64_url, lambda size: "data:," + "x" * size], ids=["base64", "plain"])
def test_a_file_of_the_limit_is_taken_and_one_byte_more_is_too_large(url_of: Any, limit: int) -> None:
    limits = Limits(max_file_bytes=limit)
    assert parts_of(file(url_of(limit)), limits=limits)
    for size in (limit + 1, limit + 2, limit + 3, limit + 100):
        with pytest.raises(RequestTooLarge) as refusal:
            parts_of(file(url_of(size)), limits=limits)
        assert refusal.value.status == 413


def test_a_percent_encoded_file_is_measured_by_what_it_decodes_to() -> None:
    assert parts_of(file("data:," + "%00" * 10), limits=Limits(max_file_bytes=10)) == (
        FileInput("image/png", bytes(10)),
    )


@pytest.mark.parametrize("words", ["aaaaaaaaaa", "ééééé"])
def test_text_is_measured_in_bytes_over_all_parts(words: str) -> None:
    assert parts_of(text(words), limits=Limits(max_json_bytes=10))
    with pytest.raises(RequestTooLarge) as refusal:
        parts_of(text(words), text("x"), limits=Limits(max_json_bytes=10))
    assert refusal.value.status == 413


# -- any bytes at all -------------------------------------------------------------------------------------------------

near_body = st.fixed_dictionaries(
    {"id": some_id},
    optional={
        "messages": st.lists(some_message, max_size=3) | json_value,
        "message": some_message,
        "trigger": st.sampled_from(["submit-message", "regenerate-message", None]),
        "messageId": some_id,
        "sdkVersion": st.sampled_from([5, "6.0", "7", 4, None, 1.5]),
    },
).map(lambda fields: json.dumps(fields).encode())


WHOLE = body(user(text("é"), file(), id="u0"), ANSWER, user(text("é 😀"), file("data:,%41"), file()), sdkVersion=6)
LATE = body(user(text("é"), id="u0"), ANSWER, user(text("é")), messageId="m1")
JUNK = rb"""  " \ \ud800 \uZZ [[[[ { } ] , : 1e999 NaN null -1 % data: """.split()


def assert_turn_or_refusal(data: bytes) -> None:
    for decode in (lambda: decode_turn(data, LIMITS), lambda: decode_body(data)):
        try:
            decode()
        except BridgeError as refusal:
            assert isinstance(refusal, RemoteProtocolError)  # noqa: PT017
            assert refusal.status in (400, 413)  # noqa: PT017


@settings(quick, max_examples=500)
@given(st.binary(max_size=60) | near_body)
def test_any_bytes_give_a_turn_or_a_refusal_of_their_sender(data: bytes) -> None:
    assert_turn_or_refusal(data)


@pytest.mark.parametrize("junk", [b"", b"\xff", b"\x00", *JUNK], ids=ascii)
@pytest.mark.parametrize("whole", [WHOLE, LATE], ids=["words", "late-answer"])
def test_a_body_damaged_anywhere_gives_a_turn_or_a_refusal_of_its_sender(whole: bytes, junk: bytes) -> None:
    for at in range(len(whole)):
        for lost in (0, 1, 4):
            assert_turn_or_refusal(whole[:at] + junk + whole[at + lost :])


@settings(quick, max_examples=300)
@given(
    st.lists(json_value | some_message, max_size=4),
    st.lists(json_value | some_message, max_size=4),
    st.sampled_from([None, "u1"]),
)
def test_no_earlier_message_changes_the_turn(told: list[Any], told_otherwise: list[Any], edited: str | None) -> None:
    last = user(text("the only one that counts"), file())
    turns = [decode_turn(body(*history, last, messageId=edited), LIMITS) for history in (told, told_otherwise, [])]
    assert turns[0] == turns[1] == turns[2]


@pytest.mark.parametrize("messages", [None, []])
def test_whoever_wants_an_answer_anew_is_told_what_is_missing(messages: list[Any] | None) -> None:
    with pytest.raises(MalformedRequest, match="`messageId`"):
        decode_turn(body(messages=messages, trigger="regenerate-message"), LIMITS)


# -- older clients ----------------------------------------------------------------------------------------------------


def test_a_list_under_content_is_read_as_the_parts() -> None:
    message = {"id": "u1", "role": "user", "content": [text()]}
    assert decode_turn(body(message), LIMITS) == HELLO
    stored_by_4 = {**message, "parts": [text()], "content": "something else"}
    assert decode_turn(body(stored_by_4, trigger="submit-message"), LIMITS) == HELLO


@pytest.mark.parametrize("more", [{}, {"parts": [text()]}], ids=["before 4.2", "from 4.2 on"])
def test_a_text_under_content_is_refused_with_what_to_send(more: dict[str, Any]) -> None:
    message = {"id": "u1", "role": "user", "content": "my secret", **more}
    with pytest.raises(MalformedRequest, match="AI SDK 4") as refused:
        decode_turn(body(message, trigger=None), LIMITS)
    assert "`parts: [" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "`messages[0].parts` is missing"),
        ({"content": None}, "`messages[0].content` has a wrong type or value"),
        ({"content": {"a": "secret"}}, "`messages[0].content` has a wrong type or value"),
        ({"content": ["secret"]}, "`messages[0].content[0]` has a wrong type or value"),
        ({"parts": None, "content": []}, "`messages[0].parts` has a wrong type or value"),
    ],
)
def test_a_message_without_parts_is_refused(content: dict[str, Any], says: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        decode_turn(body({"id": "u1", "role": "user", **content}), LIMITS)
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)
