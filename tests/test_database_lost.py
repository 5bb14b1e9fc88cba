"""One database for calls and sessions, lost while an approved payment is made: its outcome is unknown to everybody. Or
lost before it is made: it may be made later, and nobody is told that it was not."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool

from adk_stream_protocol import ApprovalPolicy, Limits, Nobody
from adk_stream_protocol.adk.calls import gated_call
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, call
from support.pages import Clock, Page, Till, page, results_told

CHAT = ChatKey("helper", "ann", "c1")
TRY_AGAIN = "Try again"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gated_call, "RETRIES_S", (0.001,) * 3)


class Database:
    """One, for sessions and calls alike."""

    is_down = False

    def store(self, clock: Clock) -> MemoryStore:
        def failing(name: str) -> Any:
            works = getattr(MemoryStore, name)

            async def method(*args: Any, **options: Any) -> Any:
                if self.is_down:
                    raise StoreUnavailable
                return await works(*args, **options)

            return method

        names = ("read", "add", "compare_and_set", "acquire", "renew", "release", "abandoned")
        return type("Store", (MemoryStore,), {name: failing(name) for name in names})(clock=clock)

    def sessions(self) -> InMemorySessionService:
        database = self

        class Lost(InMemorySessionService):
            async def append_event(self, *args: Any, **options: Any) -> Any:
                if database.is_down:
                    raise ConnectionError("gone")
                return await super().append_event(*args, **options)

            async def get_session(self, **options: Any) -> Any:
                if database.is_down:
                    raise ConnectionError("gone")
                return await super().get_session(**options)

        return Lost()


@asynccontextmanager
async def lost_database() -> AsyncGenerator[tuple[Page, Answer, list[int], Database, MemoryStore]]:
    """A payment during which the database is lost; it has not come back yet."""
    clock, database, paid = Clock(), Database(), list[int]()
    store = database.store(clock)

    async def pay(amount: int) -> dict[str, Any]:
        """Pays."""
        database.is_down = True
        paid.append(amount)
        return {"paid": amount}

    tools = (FunctionTool(pay, require_confirmation=True),)
    replies = [[call("pay", amount=5)], "Hm.", "Hm.", "Hm."]
    limits = Limits(lease_s=10)
    async with page(*replies, tools=tools, record=store, session_service=database.sessions(), limits=limits) as at:
        await at.say("Pay.")
        at.decide("pay")
        answer = await at.answer()
        assert paid == [5]
        yield at, answer, paid, database, store
        database.is_down = False
        clock.now += 60


def is_unknown(text: str) -> bool:
    return "unknown" in text


async def test_a_payment_during_which_the_database_was_lost_is_told_as_unknown() -> None:
    async with lost_database() as (at, _, _, _, _):
        assert at.part("pay")["state"] == "output-error"
        assert is_unknown(at.part("pay")["errorText"])


async def test_nobody_is_told_to_try_again_a_payment_that_may_have_been_made() -> None:
    async with lost_database() as (_, answer, _, _, _):
        told = [chunk for chunk in answer.chunks if chunk["type"].startswith("tool-")]
        assert TRY_AGAIN not in str(told)
        assert not answer.of_type("tool-output-available")


async def test_a_payment_during_which_the_database_was_lost_is_unknown_after_a_reload() -> None:
    async with lost_database() as (at, _, _, database, store):
        database.is_down = False
        store._clock.now += 60  # pyright: ignore
        await at.chat.bridge.recover()
        while at.chat.is_running:
            await asyncio.sleep(0)
        tab = await at.second_tab()
        assert tab.part("pay")["state"] == "output-error"
        assert is_unknown(tab.part("pay")["errorText"])


async def test_a_payment_during_which_the_database_was_lost_is_unknown_to_the_model() -> None:
    async with lost_database() as (at, _, paid, database, store):
        database.is_down = False
        store._clock.now += 60  # pyright: ignore
        answer = await at.chat.say("Did it work?")
        assert answer.status == 200
        assert is_unknown(str(results_told(at.chat.model)[-1]))
        assert paid == [5]


async def test_a_payment_during_which_the_database_was_lost_is_recorded_as_unknown() -> None:
    async with lost_database() as (at, _, _, database, store):
        database.is_down = False
        store._clock.now += 60  # pyright: ignore
        await at.chat.say("Did it work?")
        (record,) = (await store.read(CHAT)).records
        assert record.state is State.UNKNOWN


# -- before the payment -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sdk_version", [5, 6, 7])
async def test_a_payment_that_the_policy_approved_before_the_database_was_lost_is_made_later_and_not_told_as_failed(
    sdk_version: int,
) -> None:
    clock, database, till = Clock(), Database(), Till()

    class LostAfterwards(type(database.store(clock))):
        async def add(self, record: CallRecord) -> bool:
            is_new = await super().add(record)
            database.is_down = True
            return is_new

    options: dict[str, Any] = {
        "record": LostAfterwards(clock=clock),
        "session_service": database.sessions(),
        "approvals": ApprovalPolicy(decide=lambda _: Nobody),
        "limits": Limits(lease_s=10),
    }
    script = [call("pay", amount=5)], "Paid."
    async with page(*script, tools=(till.gated,), sdk_version=sdk_version, **options) as at:
        answer = await at.say("Pay.")
        assert (answer.types[-1], answer.of_type("tool-output-error"), till.paid) == ("error", [], [])
        database.is_down = False
        before = await at.second_tab()
        assert before.states() == ["approval-responded" if sdk_version == 7 else "input-available"]
        clock.now += 60
        await at.chat.bridge.recover()
        while at.chat.is_running:
            await asyncio.sleep(0)
        resumed = await at.chat.request("GET", f"/stream?message={answer.message_id}")
        chunks = [json.loads(line[6:]) for line in resumed.text.splitlines() if line.startswith("data: {")]
        told = [chunk for chunk in chunks if chunk["type"].startswith("tool-output")]
        assert [chunk.get("output") for chunk in told] == [{"paid": 5}]
        after = await at.second_tab()
        assert (after.states(), till.paid) == (["output-available"], [5])
