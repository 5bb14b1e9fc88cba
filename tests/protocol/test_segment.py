"""Segment: when chunks can be written."""

from collections.abc import Callable

import pytest

from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.protocol.segment import Segment

Move = Callable[[Segment], None]


@pytest.mark.parametrize(
    "moves",
    [
        [Segment.start, Segment.require_open],
        [Segment.start, Segment.end],
        [Segment.start, Segment.end, Segment.renew, Segment.start, Segment.require_open],
        [Segment.start, Segment.renew, Segment.start, Segment.end],
    ],
)
def test_a_segment_is_open_from_its_start_to_its_end(moves: list[Move]) -> None:
    segment = Segment()
    for move in moves:
        move(segment)


@pytest.mark.parametrize(
    ("before", "forbidden"),
    [
        ([], Segment.require_open),
        ([], Segment.end),
        ([Segment.start], Segment.start),
        ([Segment.start, Segment.end], Segment.require_open),
        ([Segment.start, Segment.end], Segment.end),
        ([Segment.start, Segment.end], Segment.start),
        ([Segment.start, Segment.end, Segment.renew], Segment.require_open),
        ([Segment.start, Segment.end, Segment.renew], Segment.end),
    ],
)
def test_a_segment_that_is_not_open_takes_no_chunk(before: list[Move], forbidden: Move) -> None:
    segment = Segment()
    for move in before:
        move(segment)
    with pytest.raises(LocalProtocolError):
        forbidden(segment)
