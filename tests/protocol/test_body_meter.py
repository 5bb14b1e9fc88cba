"""BodyMeter: the verdict on a body while it arrives, however it is cut."""

import base64
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.errors import RequestTooLarge
from adk_stream_protocol.limits import MIB, Limits
from adk_stream_protocol.protocol.body_meter import BodyMeter

quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def is_refused(limits: Limits, *chunks: bytes) -> bool:
    meter = BodyMeter(limits)
    try:
        for chunk in chunks:
            meter.feed(chunk)
    except RequestTooLarge as refusal:
        assert refusal.status == 413  # noqa: PT017
        return True
    return False


def limits(*, json_bytes: int = MIB, file_bytes: int = MIB, body_bytes: int = MIB) -> Limits:
    return Limits(max_json_bytes=json_bytes, max_file_bytes=file_bytes, max_body_bytes=body_bytes)


@pytest.mark.parametrize(
    ("body", "json_bytes"),
    [
        pytest.param(b"", 0, id="nothing"),
        pytest.param(b'{"text":"hi"}', 13, id="no-url"),
        pytest.param(b'"data:xxxx"', 7, id="a-url"),
        pytest.param(b'"data:xxxx","data:yyyy"', 15, id="two-urls"),
        pytest.param(b'"data:"', 7, id="an-empty-url"),
        pytest.param(b'"data:xxxx', 6, id="a-url-without-an-end"),
        pytest.param(b'"data', 5, id="half-an-opening"),
        pytest.param(b'""data:x"', 8, id="an-opening-right-after-a-string"),
        pytest.param(b'"data:x"data:yy"', 15, id="the-end-of-a-url-opens-no-other"),
        pytest.param(b'"a data:xxxx"', 13, id="text-that-holds-the-word"),
        pytest.param(b'"data: he said', 6, id="text-that-begins-with-the-word"),
        pytest.param(rb'"data: he said \"hi\" to me"', 18, id="text-that-begins-with-the-word-and-has-quotes"),
    ],
)
def test_only_what_stands_in_urls_is_no_json(body: bytes, json_bytes: int) -> None:
    assert not is_refused(limits(json_bytes=json_bytes), body)
    assert not body or is_refused(limits(json_bytes=json_bytes - 1), body)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, 1001, 1002])
def test_a_file_of_the_limit_passes_with_the_longest_head(size: int) -> None:
    url = f"data:{'a' * 64}/{'b' * 128};base64,{base64.b64encode(bytes(size)).decode()}"
    assert not is_refused(limits(file_bytes=size), json.dumps({"url": url}).encode())


@pytest.mark.parametrize("size", [0, 30, 300])
def test_a_url_is_refused_at_the_byte_that_no_file_of_the_limit_needs(size: int) -> None:
    longest = size * 4 // 3 + 256
    for refused, length in ((False, longest), (True, longest + 1)):
        url = b'"data:' + b"x" * length
        assert is_refused(limits(file_bytes=size), url + b'"') == refused
        assert is_refused(limits(file_bytes=size), url) == refused, "without waiting for its end"


def test_each_url_has_the_whole_limit_of_a_file() -> None:
    url = b'"data:' + b"x" * 286 + b'"'
    assert not is_refused(limits(file_bytes=30), b",".join([url] * 10))


def test_the_whole_body_has_a_limit_of_its_own() -> None:
    body = b'"data:' + b"x" * 100 + b'"'
    assert not is_refused(limits(body_bytes=len(body)), body)
    assert is_refused(limits(body_bytes=len(body) - 1), body)


def test_a_body_is_refused_at_the_chunk_that_crosses_the_limit() -> None:
    meter = BodyMeter(limits(json_bytes=3))
    meter.feed(b"{}")
    meter.feed(b" ")
    with pytest.raises(RequestTooLarge):
        meter.feed(b" ")


def test_the_defaults_have_room_for_a_file_and_a_conversation() -> None:
    defaults = Limits()
    conversation = b"x" * (defaults.max_json_bytes - 64)
    url = b'"data:image/png;base64,' + b"A" * (-(-defaults.max_file_bytes // 3) * 4) + b'"'
    assert not is_refused(defaults, conversation, url)


# -- however it is cut ------------------------------------------------------------------------------------------------

pieces = st.sampled_from([b'"data:', b"data:", b'"da', b"ta:", b'"', b'","', b'{"url":', b"\\", b"x", b"xxxxxxxxxx"])
small_limits = st.builds(
    limits,
    json_bytes=st.integers(0, 40),
    file_bytes=st.just(0),
    body_bytes=st.integers(0, 400),
)


@settings(quick, max_examples=300)
@given(small_limits, st.lists(pieces, max_size=15).map(b"".join), st.integers(0, 30))
def test_no_cut_changes_the_verdict(bounds: Limits, body: bytes, stretch: int) -> None:
    body = body.replace(b"xxxxxxxxxx", b"x" * 10 * stretch)
    verdict = is_refused(bounds, body)
    for length in range(1, 12):
        chunks = [body[start : start + length] for start in range(0, len(body), length)]
        assert is_refused(bounds, *chunks) == verdict
    for at in range(len(body)):
        assert is_refused(bounds, body[:at], b"", body[at:]) == verdict
