"""Deploys all day: two servers behind a balancer, one of which is always being replaced, and customers who pay all the
time. No payment is lost, made twice or left in doubt, and every customer is told the truth."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from google.adk.sessions import BaseSessionService, DatabaseSessionService

from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store import open_store
from adk_stream_protocol.store.base import Store
from faults.fast_disk import fast_sqlite_url
from faults.tabs import Seen, Tab
from faults.workers.servers import Deployment
from security.bank import Part
from support.apps import figure
from support.databases import postgres_url
from support.truth import SHOWN_ENDS, disagreements

RESTARTS = 100
CUSTOMERS = 4
PAYMENT_S = 0.3  # for each dollar, of which there are up to five
PATIENCE_S = 60


class Customer:
    """Pays in one chat after the other, until the shop closes."""

    def __init__(self, name: str, deployment: Deployment, store: Store, sessions: BaseSessionService) -> None:
        self._name, self._deployment, self._store, self._sessions = name, deployment, store, sessions
        self.chats: list[Seen] = []
        """All that have come to their end."""

    async def pay_until(self, closes: asyncio.Event) -> None:
        while not closes.is_set():
            chat_id = f"{self._name}-{len(self.chats)}"
            seen = Seen(ChatKey("bank", "ann", chat_id), self._store, self._sessions, self._deployment.log)
            async with asyncio.timeout(PATIENCE_S):
                await self._pay(Tab(self._deployment.app, seen))
            self.chats.append(seen)

    async def _pay(self, tab: Tab) -> None:
        """As a person does who is told now and then that the server restarts."""
        while not tab.questions:
            await tab.say(f"Pay {len(self.chats) % 5 + 1}.")
            await tab.reload()
        asked = tab.questions[0]
        await tab.decide(asked, approved=True)
        while self._shown(tab, asked) not in SHOWN_ENDS:
            await tab.reload()
            if self._shown(tab, asked) not in SHOWN_ENDS:
                await asyncio.sleep(0.05)
                await tab.replay()
        while (await tab.say("And?")).status != 200:
            await asyncio.sleep(0.05)

    def _shown(self, tab: Tab, asked: Part) -> str:
        return next((part["state"] for part in tab.parts if part["toolCallId"] == asked["toolCallId"]), "")


async def restart(deployment: Deployment, customers: list[Customer], count: int) -> None:
    """One server after the other, and each time somebody has paid in between."""
    for number in range(count):
        server, served = deployment.servers[number % 2], sum(len(each.chats) for each in customers)
        server.terminate()
        await server.ended()
        await server.start()
        while sum(len(each.chats) for each in customers) == served:
            await asyncio.sleep(0.02)


async def day(kind: str, url: str, folder: Path, restarts: int) -> tuple[Counter[str], dict[str, list[str]]]:
    """How the payments were recorded, and where anybody disagrees or a payment was not made."""
    deployment = Deployment(kind, url, folder, payment_s=PAYMENT_S, servers=2)
    store, states, wrong = open_store(url), Counter[str](), dict[str, list[str]]()
    async with DatabaseSessionService(url) as first:  # ADK's tables: two servers that make them at once fail
        await first.list_sessions(app_name="bank", user_id="ann")
    async with deployment.running(), deployment.app.http, DatabaseSessionService(url) as sessions:
        customers = [Customer(f"c{number}", deployment, store, sessions) for number in range(CUSTOMERS)]
        closes = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for customer in customers:
                tasks.create_task(customer.pay_until(closes))
            await restart(deployment, customers, restarts)
            closes.set()
        for seen in [seen for customer in customers for seen in customer.chats]:
            world = await seen.world(deployment.app)
            states += Counter(str(record.state) for record in world.records)
            # A question may have been left when its answer was cut off; nothing else.
            not_made = [str(record) for record in world.records if record.state not in (State.DONE, State.PENDING)]
            if found := [*disagreements(world), *not_made]:
                wrong[seen.chat.chat_id] = found
        await store.aclose()
    return states, wrong


@pytest.mark.figures
@pytest.mark.parametrize(
    ("kind", "database", "restarts"),
    [
        ("command", fast_sqlite_url, RESTARTS // 2),
        ("command", postgres_url, RESTARTS * 3 // 10),
        ("uvicorn", fast_sqlite_url, RESTARTS // 5),
    ],
    ids=["command, SQLite", "command, PostgreSQL", "uvicorn, SQLite"],
)
def test_restarts_under_load_lose_nothing_and_leave_no_doubt(
    kind: str,
    database: Callable[[], AbstractContextManager[str]],
    restarts: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    began, restarts = time.monotonic(), figure(restarts)
    with database() as url:
        states, wrong = asyncio.run(day(kind, url, tmp_path, restarts))
    with capsys.disabled():
        took_s = time.monotonic() - began
        print(f"\n{restarts} restarts of {kind} on {url.partition('+')[0]}, {took_s:.0f} s: payments {dict(states)}")
    assert not wrong, f"{len(wrong)} chats: {wrong}"
