"""An approved tool returns what ADK cannot store. It has run all the same: everybody gets what is recorded, and the
chat goes on."""

from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions import DatabaseSessionService, InMemorySessionService

from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.testing import call
from support.pages import Till, results_told
from support.workers import workers


def nested(depth: int) -> dict[str, Any]:
    return {"in": nested(depth - 1)} if depth else {}


RESULTS: dict[str, Any] = {
    "too deep": lambda _: nested(300),
    "keys that are no texts": lambda _: {1: 2},
    "no number": lambda _: {"paid": float("nan")},
    "an error": lambda _: {"error": ValueError("x"), "paid": 5},
    "an iterator": lambda _: (number for number in range(2)),
}


@pytest.mark.parametrize("sessions", ["memory", "SQLite"])
@pytest.mark.parametrize("kind", RESULTS)
async def test_what_a_tool_returned_is_shown_recorded_and_told(kind: str, sessions: str, tmp_path: Path) -> None:
    till, url = Till(RESULTS[kind]), f"sqlite+aiosqlite:///{tmp_path / 'sessions.db'}"
    database = DatabaseSessionService(url) if sessions == "SQLite" else None
    service = database or InMemorySessionService()
    async with workers([call("pay", amount=5)], "Paid.", "Yes.", tools=(till.gated,), sessions=service) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        (made,) = await staff.records()
        assert made.state is State.DONE
        assert (await at.say("Have you?")).text == "Yes."
        shown = at.part("pay")["output"]
        assert results_told(staff.model) == [shown]
        await at.is_what_a_reload_shows()
        assert till.paid == [5]
    if database is not None:
        await database.close()
