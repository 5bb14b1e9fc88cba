"""Request bodies that are no turn: what each is refused as."""

from typing import Any

import pytest

from adk_stream_protocol.errors import (
    ConfigurationError,
    MalformedRequest,
)
from adk_stream_protocol.limits import Limits
from adk_stream_protocol.protocol.turn import decode_body, decode_turn
from protocol.request_bodies import (
    ANSWER,
    LIMITS,
    body,
    file,
    parts_of,
    text,
    user,
)

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
