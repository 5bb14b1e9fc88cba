"""From request bytes to a Turn: what is accepted, what is refused and as what, and that nothing else can happen."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_stream_protocol.errors import (
    BridgeError,
    ConfigurationError,
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
    quick,
    some_id,
    some_message,
    text,
    user,
)


def parts_of(*parts: Any, limits: Limits = LIMITS) -> tuple[TextInput | FileInput, ...]:
    return decode_turn(body(user(*parts)), limits).parts


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


# -- refused ----------------------------------------------------------------------------------------------------------

DEEP = b"[" * 100_000
BAD_IDS = ["", " ", "a b", "a/b", "a\\b", "..", ".", "a\n", "\x00", "\x7f", "\u2028", "x" * 129]
UNPRINTABLE_IDS = {"terminal-control": "a\u009b31m", "right-to-left-override": "a\u202eb", "zero-width": "a\u200bb"}


@pytest.mark.parametrize(
    "request_body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="cut"),
        pytest.param(body() + b"x", id="something-after-it"),
        pytest.param(b"\xef\xbb\xbf" + body(), id="byte-order-mark"),
        pytest.param(b"\xff", id="not-utf-8"),
        *(pytest.param(shape, id=shape.decode()) for shape in (b"null", b"[]", b"{}", b'"x"', b"1")),
        pytest.param(DEEP, id="deep"),
        pytest.param(b'{"x":' + DEEP, id="deep-in-an-unknown-field"),
        pytest.param(b'{"messages":[' + DEEP, id="deep-in-the-history"),
        pytest.param(body(user(text() | {"x": 1})).replace(b'"x": 1', b'"x": ' + DEEP), id="deep-in-a-part"),
        *(
            pytest.param(body(user(text() | {"x": 1})).replace(b'"x": 1', b'"x": ' + number), id=number[:9].decode())
            for number in (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000, b"01", b"0x1")
        ),
        pytest.param(body(user(text("@"))).replace(b"@", b"\\ud83d"), id="half-an-emoji-escaped"),
        pytest.param(body(user(text("@"))).replace(b"@", b"\\ude00\\ud83d"), id="halves-in-the-wrong-order"),
        pytest.param(body(user(text("@"))).replace(b"@", b"\xed\xa0\xbd"), id="half-an-emoji-in-bytes"),
        pytest.param(body(user(text("@"))).replace(b"@", b"\xff"), id="text-that-is-not-utf-8"),
        pytest.param(body(id=None), id="no-chat-id"),
        pytest.param(body(id=7), id="chat-id-of-another-type"),
        *(pytest.param(body(id=bad), id=f"chat-id-{bad[:9]!a}") for bad in BAD_IDS),
        *(pytest.param(body(user(id=bad)), id=f"message-id-{bad[:9]!a}") for bad in BAD_IDS),
        *(pytest.param(body(id=bad), id=f"chat-id-{name}") for name, bad in UNPRINTABLE_IDS.items()),
        pytest.param(body(user(id=7)), id="message-id-of-another-type"),
        pytest.param(body(messageId="a b"), id="bad-messageId"),
        pytest.param(body(trigger="resume-stream"), id="unknown-trigger"),
        pytest.param(body(trigger="other"), id="unknown-trigger"),
        pytest.param(body(trigger=1), id="trigger-of-another-type"),
        pytest.param(body(messages=None), id="no-messages"),
        pytest.param(body(messages=[]), id="empty-messages"),
        pytest.param(body(messages=None, messageId="u1"), id="an-edit-without-a-message"),
        pytest.param(body(messages=None, trigger="regenerate-message"), id="an-answer-again-without-a-name"),
        pytest.param(body(messages=None, trigger="regenerate-message", messageId="a b"), id="again-with-a-bad-id"),
        pytest.param(body(messages={}), id="messages-of-another-type"),
        pytest.param(body(message=[]), id="message-of-another-type"),
        *(pytest.param(body(user(role=role)), id=f"role-{role}") for role in ("system", "tool", "User", "", 1, None)),
        pytest.param(body({"role": "user", "content": "hi"}), id="message-of-ai-sdk-4"),
        pytest.param(body({"role": "user", "parts": "hi"}), id="parts-of-another-type"),
        pytest.param(body({"role": "user", "parts": ["hi"]}), id="part-of-another-type"),
        pytest.param(body({"role": "user", "parts": []}), id="no-parts"),
        pytest.param(body({"role": "assistant"}), id="answer-without-parts"),
        pytest.param(body({"role": "assistant", "parts": {}}), id="answer-with-parts-of-another-type"),
        pytest.param(body({"role": "assistant", "parts": ["hi"]}), id="answer-with-a-part-of-another-type"),
        pytest.param(body(ANSWER | {"id": "a b"}), id="answer-with-a-bad-message-id"),
        pytest.param(body(ANSWER, trigger="resume-stream"), id="answer-with-an-unknown-trigger"),
        pytest.param(body(ANSWER, sdkVersion=4), id="answer-to-an-unknown-version"),
        pytest.param(body(user(), message=1), id="message-that-is-no-message"),
        pytest.param(body(approvalStyle="none"), id="unknown-approval-style"),
        *(pytest.param(body(sdkVersion=v), id=f"version-{v}") for v in (4, 8, -6, 6.5, True, "", "x", "60", "6x", [6])),
    ],
)
def test_these_bodies_are_malformed(request_body: bytes) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        decode_turn(request_body, LIMITS)
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([text("")], id="empty-text"),
        pytest.param([text(" \t\n\u3000")], id="only-white-space"),
        pytest.param([{"type": "data-note", "data": 1}], id="only-data"),
        pytest.param([text(None)], id="text-null"),
        pytest.param([text(1)], id="text-of-another-type"),
        pytest.param([{"type": "text"}], id="no-text"),
        *(
            pytest.param([text(), {"type": kind}], id=f"type-{kind}")
            for kind in ("tool-add", "reasoning", "step-start", "Text", "", None, 1, ["text"])
        ),
        pytest.param([text(), {}], id="no-type"),
        pytest.param([file(None)], id="no-url"),
        pytest.param([file(media_type=None)], id="no-media-type"),
        pytest.param([file(filename=1)], id="name-of-another-type"),
        pytest.param([file(filename="f" * 256)], id="name-too-long"),
        *(pytest.param([file(filename=bad)], id=f"name-{bad!a}") for bad in ("", "../a", "a\\b", "a\0", "user:a")),
        *(
            pytest.param([file(media_type=bad)], id=f"media-type-{bad[:9]!a}")
            for bad in ("", "image", "image/", "/png", "a/b/c", "image/png\n", "im age/png", "-/x", "i" * 65 + "/x")
        ),
        pytest.param([file(media_type="imagé/png")], id="media-type-not-ascii"),
        pytest.param([file(media_type="image/x画")], id="media-subtype-not-ascii"),
        *(
            pytest.param([file(url)], id=url)
            for url in (
                *("", "http://a/b.png", "https://a/b.png", "file:///etc/passwd", "javascript:alert(1)"),
                *("gs://bucket/x", " data:,x", "blob:http://a/1", "//a/b"),
            )
        ),
        pytest.param([file("data:")], id="data-url-without-a-comma"),
        pytest.param([file("data:image/png;base64")], id="base64-url-without-a-comma"),
        *(
            pytest.param([file(f"data:;base64,{bad}")], id=f"base64-{bad!a}")
            for bad in ("A", "AP8", "AP8=AA", "AP 8=", "AP8=\n", "AP-_", "é===")
        ),
    ],
)
def test_messages_of_these_parts_are_malformed(parts: list[Any]) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        parts_of(*parts)
    assert refusal.value.status == 400


def test_an_allowed_prefix_that_would_allow_other_hosts_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="ends with a slash"):
        Limits(allowed_file_urls=("https://cdn.example",))


@pytest.mark.parametrize(
    "url", ["gs://bucket", "gs://bucket-of-others/a", "GS://bucket/a", "xgs://bucket/a", "gs://bucket/../b"]
)
def test_urls_that_only_resemble_an_allowed_prefix_are_malformed(url: str) -> None:
    with pytest.raises(MalformedRequest):
        parts_of(file(url), limits=Limits(allowed_file_urls=("gs://bucket/",)))


def test_a_refusal_quotes_nothing_of_the_body() -> None:
    with pytest.raises(MalformedRequest) as refusal:
        decode_turn(body(user(secret="hunter2"), id={"hunter2": 1}), LIMITS)
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


def test_extra_fields_of_a_body_that_is_no_object_are_malformed() -> None:
    with pytest.raises(MalformedRequest):
        decode_body(b"[]")


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
