"""Bytes of requests that have not arrived completely count for their user, and beyond a free part for everybody."""

import pytest

from adk_stream_protocol import Limits
from adk_stream_protocol.errors import Busy, TooMany
from adk_stream_protocol.transports.unfinished import UnfinishedRequests

KIB = 1024


def test_a_user_has_a_share_which_is_free_again_after_the_request() -> None:
    unfinished = UnfinishedRequests(Limits(max_unfinished_bytes_per_user=100))
    with unfinished.counting("ann") as first, unfinished.counting("ann") as second, unfinished.counting("bob") as other:
        first(60)
        second(40)
        other(100)
        with pytest.raises(TooMany):
            second(1)
    with unfinished.counting("ann") as again:
        again(100)


def test_all_users_have_a_share_but_small_requests_always_get_through() -> None:
    unfinished = UnfinishedRequests(Limits(max_unfinished_bytes=10 * KIB))
    with unfinished.counting("ann") as large, unfinished.counting("bob") as small:
        large(74 * KIB)
        small(64 * KIB)
        with pytest.raises(Busy):
            small(1)
    with unfinished.counting("bob") as later:
        later(74 * KIB)
