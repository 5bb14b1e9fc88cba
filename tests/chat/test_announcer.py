"""The application is notified of calls that wait for somebody."""

import pytest

from adk_stream_protocol import WaitingCall
from adk_stream_protocol.testing import call
from support.approvers import CHAINED, of, until
from support.pages import Till, page


async def test_the_application_is_told_of_each_link_after_it_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    told: list[WaitingCall] = []

    async def on_waiting(waiting: WaitingCall) -> None:
        told.append(waiting)
        raise RuntimeError("secret")

    options = {**CHAINED, "on_waiting": on_waiting}
    async with page([call("pay", amount=5)], "Paid.", tools=(Till().gated,), **options) as at:
        await at.say("Pay.")
        await until(lambda: len(told) == 1)
        (card,) = await of(at, "max", "managers").inbox()
        assert (told[0].id, told[0].approvers, told[0].link) == (card["id"], ("group:managers",), 0)
        assert (told[0].tool, told[0].arguments, told[0].chat.user_id) == ("pay", {"amount": 5}, "ann")
        assert told[0].digest == card["digest"]
        await of(at, "max", "managers").decide()
        await until(lambda: len(told) == 2)
        assert (told[1].approvers, told[1].link) == (("eva",), 1)
    assert "on_waiting failed" in caplog.text
    assert "secret" not in caplog.text
