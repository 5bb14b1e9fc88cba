"""A worker whose event loop is blocked keeps its chats; one that hangs loses them. The other worker looks all the time,
in a thread of its own, on a database that both share."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.sessions import DatabaseSessionService
from google.adk.tools import FunctionTool

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.chat import lease_keeper
from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store.sql import SqlStore
from adk_stream_protocol.testing import ScriptedModel, call
from support.apps import app_of, runner_of, user_of
from support.conversations import Conversation
from support.databases import postgres_url, sqlite_url
from support.pages import Page, Slow
from support.workers import outputs

CHAT = ChatKey("helper", "ann", "c1")
PAY = [call("pay", amount=5)]
LEASE_S = 0.6
LIMITS = Limits(lease_s=LEASE_S)
DATABASES: dict[str, Callable[[], AbstractContextManager[str]]] = {"sqlite": sqlite_url, "postgres": postgres_url}


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with DATABASES[request.param]() as found:
        yield found


@asynccontextmanager
async def worker(url: str, *replies: Any, tool: FunctionTool) -> AsyncGenerator[ChatBridge]:
    async with DatabaseSessionService(url) as sessions:
        agent = LlmAgent(name="helper", model=ScriptedModel(replies), tools=[tool])
        bridge = ChatBridge(agent, user_id=user_of, store=url, session_service=sessions, limits=LIMITS)
        try:
            yield bridge
        finally:
            await bridge.aclose()


def block(seconds: float) -> None:
    time.sleep(seconds)


class OtherWorker(threading.Thread):
    """Looks for lost runs as long as its block lasts."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._is_over = threading.Event()
        self.has_looked = threading.Event()
        self.told: list[Any] = []
        """What its model was told."""

    def run(self) -> None:
        asyncio.run(self._look())

    async def _look(self) -> None:
        slow = Slow()
        async with worker(self._url, *["Taken over."] * 9, tool=slow.gated) as bridge:
            while not self._is_over.is_set():
                await bridge.recover()
                self.has_looked.set()
                await asyncio.sleep(LEASE_S / 50)
            assert slow.paid == []
            self.told = runner_of(bridge).agent.model.requests  # pyright: ignore

    def __enter__(self) -> "OtherWorker":
        self.start()
        assert self.has_looked.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()


async def state_of_the_payment(url: str) -> State:
    store = SqlStore(url)
    try:
        (found,) = (await store.read(CHAT)).records
        return found.state
    finally:
        await store.aclose()


@asynccontextmanager
async def paying(url: str, tool: FunctionTool, *replies: Any) -> AsyncGenerator[Page]:
    """A page whose person is about to approve a payment."""
    async with worker(url, PAY, *replies, tool=tool) as bridge:
        at = Page(Conversation(app_of(bridge), bridge))
        await at.say("Pay.")
        at.decide("pay")
        yield at


async def test_a_payment_stays_with_its_worker_while_something_blocks_its_loop(url: str) -> None:
    slow = Slow()
    async with paying(url, slow.gated, "Paid.") as at:
        with OtherWorker(url) as other:
            answering = asyncio.create_task(at.answer())
            await slow.started.wait()
            block(3 * LEASE_S)
            slow.go_on.set()
            answer = await answering
        assert (outputs(answer), answer.text) == ([{"paid": 5}], "Paid.")
        assert await state_of_the_payment(url) is State.DONE
        assert other.told == []
        await at.is_what_a_reload_shows()


async def test_a_payment_that_blocks_the_loop_itself_stays_with_its_worker(url: str) -> None:
    def pay(amount: int) -> dict[str, int]:
        """Pays."""
        block(3 * LEASE_S)
        return {"paid": amount}

    async with paying(url, FunctionTool(pay, require_confirmation=True), "Paid.") as at:
        with OtherWorker(url) as other:
            answer = await at.answer()
        assert (outputs(answer), answer.text) == ([{"paid": 5}], "Paid.")
        assert await state_of_the_payment(url) is State.DONE
        assert other.told == []
        await at.is_what_a_reload_shows()


async def test_a_worker_that_gives_no_sign_of_life_loses_its_chats(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_keeper, "SIGN_OF_LIFE_S", LEASE_S)

    slow = Slow()
    async with paying(url, slow.gated, "Paid.") as at:
        with OtherWorker(url) as other:
            answering = asyncio.create_task(at.answer())
            await slow.started.wait()
            block(4 * LEASE_S)
            answer = await answering
        assert (outputs(answer), answer.chunks[-1]["type"]) == ([], "error")
        assert "unknown" in at.part("pay")["errorText"]
        assert await state_of_the_payment(url) is State.UNKNOWN
        assert len(other.told) == 1
