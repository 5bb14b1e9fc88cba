"""How often a turn asks the store and the sessions. A database is a network away, and a long chat is slow to load."""

import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol import client_tool
from adk_stream_protocol.store.base import STORE_CONTRACT_VERSION
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.pages import Page, Till, page

pytestmark = pytest.mark.virtual_time

MOST = 5
PAY = [call("pay", amount=5)]


class CountedStore:
    """Counts what the bridge asks; what a store asks itself is its own business."""

    contract_version = STORE_CONTRACT_VERSION

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self._store = MemoryStore()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        async def counted(*args: Any, **options: Any) -> Any:
            self.asked[name] += 1
            return await method(*args, **options)

        return counted

    def for_another_loop(self) -> "CountedStore":
        return self

    @property
    def round_trips(self) -> int:
        """Renewals aside: they come with time."""
        return self.asked.total() - self.asked["renew"]


class CountedSessions(InMemorySessionService):
    """Counts the loads that are ours, and not those of ADK's runner."""

    def __init__(self) -> None:
        super().__init__()
        self.loads = 0

    async def get_session(self, **key: Any) -> Any:
        callers = traceback.extract_stack()[-4:-1]
        if not any("google/adk/runners" in frame.filename for frame in callers):
            self.loads += 1
        return await super().get_session(**key)


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


def approve(at: Page) -> None:
    at.decide("pay")


def deny(at: Page) -> None:
    at.decide("pay", approved=False)


def send_output(at: Page) -> None:
    at.output("where", {"latitude": 1})


def approve_and_send_output(at: Page) -> None:
    at.decide("where")
    at.output("where", {"latitude": 1})


ANSWERS: dict[str, tuple[Any, Any, Callable[[Page], None]]] = {
    "an approval": (PAY, Till().gated, approve),
    "a denial": (PAY, Till().gated, deny),
    "an output": ([call("where")], client_tool(where), send_output),
    "an approval and an output": ([call("where")], client_tool(where, approve=True), approve_and_send_output),
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_an_answer_asks_the_store_a_few_times_from_its_request_to_its_last_chunk(kind: str) -> None:
    reply, tool, fill_in = ANSWERS[kind]

    store = CountedStore()
    async with page(reply, "Done.", tools=(tool,), record=store) as at:
        await at.say("Do it.")
        fill_in(at)
        store.asked.clear()
        assert (await at.answer()).text == "Done."
        assert store.round_trips <= MOST, store.asked


async def test_an_approval_in_a_long_chat_asks_the_store_no_more_often() -> None:
    store = CountedStore()
    replies = [reply for number in range(10) for reply in ([call("pay", amount=number)], "Paid.")]
    async with page(*replies, tools=(Till().gated,), record=store) as at:
        for number in range(10):
            await at.say("Pay.")
            at.decide("pay", number)
            store.asked.clear()
            await at.answer()
            assert store.round_trips <= MOST, store.asked


@pytest.mark.parametrize("kind", ["an approval", "a denial"])
async def test_an_answer_that_is_sent_again_asks_the_store_no_more_often(kind: str) -> None:
    reply, tool, fill_in = ANSWERS[kind]

    store = CountedStore()
    async with page(reply, "Done.", tools=(tool,), record=store) as at:
        await at.say("Do it.")
        tab = await at.second_tab()
        fill_in(at)
        await at.answer()
        fill_in(tab)
        store.asked.clear()
        assert (await tab.answer()).status == 200
        assert store.round_trips <= MOST, store.asked


async def test_a_plain_turn_takes_its_lease_and_gives_it_back_and_asks_nothing_else() -> None:
    store = CountedStore()
    async with page("One.", "Two.", record=store) as at:
        await at.say("Hello.")
        store.asked.clear()
        await at.say("And?")
        assert store.asked == {"acquire": 1, "release": 1}


@pytest.mark.parametrize("before", ["nothing", "a payment", "a denial", "a pending payment"])
async def test_a_plain_turn_loads_no_session_but_what_adk_loads(before: str) -> None:
    sessions = CountedSessions()
    replies = ["One."] if before == "nothing" else [PAY] if before == "a pending payment" else [PAY, "One."]
    async with page(*replies, "Two.", tools=(Till().gated,), session_service=sessions) as at:
        await at.say("Hello.")
        if before in ("a payment", "a denial"):
            at.decide("pay", approved=before == "a payment")
            await at.answer()
        sessions.loads = 0
        assert (await at.say("And?")).text == "Two."
        assert sessions.loads == 0


async def test_the_first_turn_of_a_chat_loads_no_session_but_what_adk_loads() -> None:
    sessions = CountedSessions()
    async with page("One.", session_service=sessions) as at:
        await at.say("Hello.")
        assert sessions.loads == 0
