"""Server-sent events: framing, numbering, and that no chunk can break out of its frame."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol import sse
from adk_stream_protocol.protocol.chunks import TextDelta, encode_json


def read_events(stream: bytes) -> list[tuple[str, str]]:
    """(id, data) of each event, read line by line as the HTML standard says; comments are skipped."""
    events: list[tuple[str, str]] = []
    event_id, data = "", list[str]()
    for line in stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "" and data:
            events.append((event_id, "\n".join(data)))
            data = []
        elif field == "id":
            event_id = value
        elif field == "data":
            data.append(value)
    assert not data, "the last event has no blank line after it, so clients drop it"
    return events


@pytest.mark.parametrize(
    ("first", "chunks", "expected"),
    [
        (0, [], b""),
        (0, [b"{}"], b"id: seg-0\ndata: {}\n\n"),
        (7, [b"1", b"2"], b"id: seg-7\ndata: 1\n\nid: seg-8\ndata: 2\n\n"),
    ],
)
def test_chunks_are_framed_and_numbered_from_the_first(first: int, chunks: list[bytes], expected: bytes) -> None:
    assert sse.encode_events(b"seg", list(enumerate(chunks, first))) == expected


def test_framing_in_one_go_and_one_by_one_gives_the_same_bytes() -> None:
    chunks = [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    one_by_one = b"".join(sse.encode_events(b"s", [event]) for event in enumerate(chunks, 4))
    assert sse.encode_events(b"s", list(enumerate(chunks, 4))) == one_by_one


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.text(st.sampled_from('a: \n\r\u2028\u2029\x85\x00"\\😀') | st.characters(exclude_categories=["Cs"])))
)
def test_no_text_breaks_out_of_its_event(texts: list[str]) -> None:
    stream = sse.encode_events(b"s", list(enumerate(encode_json(TextDelta("t1", text)) for text in texts)))
    events = read_events(sse.PING + stream + sse.PING + sse.DONE)
    assert [event_id for event_id, _ in events[:-1]] == [f"s-{n}" for n in range(len(texts))]
    assert [json.loads(data)["delta"] for _, data in events[:-1]] == texts
    assert events[-1][1] == "[DONE]"


def test_a_ping_is_a_comment_and_no_event() -> None:
    assert sse.PING.startswith(b":")
    assert read_events(sse.PING) == []


def test_the_headers_are_those_of_the_ai_sdk() -> None:
    assert sse.HEADERS == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "connection": "keep-alive",
        "x-vercel-ai-ui-message-stream": "v1",
        "x-accel-buffering": "no",
    }


def test_one_event_is_framed_as_among_many() -> None:
    assert sse.encode_event(b"seg", 7, b'{"a":1}') == b'id: seg-7\ndata: {"a":1}\n\n'
    assert sse.encode_event(b"seg", 7, b"{}") == sse.encode_events(b"seg", [(7, b"{}")])


def test_an_event_that_no_cursor_leads_to_has_no_id() -> None:
    assert sse.encode_event(b"seg", None, b'{"a":1}') == b'data: {"a":1}\n\n'
    assert read_events(sse.encode_event(b"seg", None, b"{}")) == [("", "{}")]
    assert sse.encode_events(b"seg", [(None, b"{}")]) == b"data: {}\n\n"


@given(st.text(st.sampled_from("ab-0"), min_size=1), st.integers(0, 10**9 - 1))
def test_the_id_of_an_event_is_the_cursor_after_it(segment: str, place: int) -> None:
    [(event_id, _)] = read_events(sse.encode_event(segment.encode(), place, b"{}"))
    assert sse.decode_cursor(event_id, segment) == place + 1


@pytest.mark.parametrize(
    "forged",
    [
        None, "", "-", "seg", "seg-", "-3", "3",  # no cursor at all
        "other-3", "SEG-3", "xseg-3", "seg-x-3", "seg-3-3", " seg-3", "seg\x00-3",  # of another stream
        "seg--3", "seg-+3", "seg-3.0", "seg-3e1", "seg-0x3", "seg-1_0", "seg- 3", "seg-3 ", "seg-3\n", "seg-NaN",
        "seg-٣", "seg-３", "seg-²", "seg-Ⅲ",  # digits to Unicode, and some of them to int()
        "seg-1000000000", "seg-" + "9" * 10_000,  # more than any log holds, and more than int() takes
    ],
)  # fmt: skip
def test_any_other_id_is_no_cursor(forged: str | None) -> None:
    assert sse.decode_cursor(forged, "seg") is None
