"""A decision that is recorded is never answered with "nothing was run", whatever the store does after it."""

from typing import Any

import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.pages import Till
from support.workers import answer_body, workers

pytestmark = pytest.mark.virtual_time

NOTHING_RUN = "nothing was run"


class Failing(MemoryStore):
    """Fails to give a lease: before anything is written, or with the news that it is."""

    fails: str | None = None

    async def acquire(self, *args: Any, **options: Any) -> Any:
        if self.fails == "before":
            raise StoreUnavailable
        acquired = await super().acquire(*args, **options)
        if self.fails == "after":
            raise StoreUnavailable
        return acquired


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


async def test_a_decision_that_is_not_recorded_is_refused_and_can_be_sent_again() -> None:
    till = Till()
    async with workers([call("pay", amount=5)], "Paid.", tools=(till.gated,), store=Failing) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        staff.store.fails = "before"  # pyright: ignore
        refused = await at.chat.post(answer_body(at))
        assert (refused.status, await staff.states()) == (503, [State.PENDING])
        staff.store.fails = None  # pyright: ignore
        assert (await at.answer()).text == "Paid."


async def test_a_decision_whose_record_was_not_confirmed_is_not_told_that_nothing_was_run() -> None:
    till = Till()
    async with workers([call("pay", amount=5)], "Paid.", tools=(till.gated,), store=Failing) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        staff.store.fails = "after"  # pyright: ignore
        answer = await at.chat.post(answer_body(at))
        assert await staff.states() == [State.APPROVED]
        assert NOTHING_RUN not in answer.raw


@pytest.mark.parametrize("approve", [False, True], ids=["an output", "an approval and an output"])
@pytest.mark.parametrize("fails", ["before", "after"])
async def test_an_output_that_is_recorded_is_not_told_that_nothing_was_run(approve: bool, fails: str) -> None:
    tools = (client_tool(where, approve=approve),)
    async with workers([call("where")], "There.", tools=tools, store=Failing) as staff:
        at = staff.page()
        await at.say("Where?")
        if approve:
            at.decide("where")
        at.output("where", {"latitude": 1})
        staff.store.fails = fails  # pyright: ignore
        answer = await at.chat.post(answer_body(at))
        is_recorded = await staff.states() == [State.DONE]
        assert not (is_recorded and NOTHING_RUN in answer.raw)
