"""A server dies, or is told to go, while a live session waits for an approval. The next one shows the same card, takes
its answer over either door, and the payment is made once."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions import DatabaseSessionService
from websockets.asyncio.client import connect

from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store import open_store
from faults.tabs import Seen
from faults.test_sigterm import FULL_SIZE, PATIENCE_S, Deploy, Socket, asked_live, outcomes
from faults.workers.servers import USER, Deployment
from security.bank import answer_body, approval_of
from support.databases import postgres_url, sqlite_url
from support.truth import disagreements

DATABASES = {"sqlite": sqlite_url} | ({"postgresql": postgres_url} if FULL_SIZE else {})


@asynccontextmanager
async def deployed(database: str, folder: Path, kind: str) -> AsyncGenerator[Deploy]:
    with DATABASES[database]() as url:
        deployment = Deployment(kind, url, folder, payment_s=0)
        store = open_store(url)
        async with deployment.running(), deployment.app.http, DatabaseSessionService(url) as sessions:
            yield Deploy(deployment, Seen(ChatKey("bank", "ann", "c1"), store, sessions, deployment.log))
            await store.aclose()


async def die(at: Deploy, live: Socket) -> None:
    await at.server.kill()
    await live.rest()


async def leave(at: Deploy, live: Socket) -> None:
    at.server.terminate()
    await live.rest()
    await at.server.ended()


async def answer_over_http(at: Deploy, question: dict[str, Any]) -> None:
    await at.tab.decide(question, approved=True)


async def answer_over_the_socket(at: Deploy, question: dict[str, Any]) -> None:
    """As a page does that has loaded the history and opened its socket anew."""
    url = f"ws://{at.server.address}/api/chat/live?user=ann"
    message_id = at.tab.messages[-1]["id"]
    async with connect(url, additional_headers=USER) as connection:
        live = Socket(connection, at.seen)
        await live.send(answer_body("c1", message_id, [approval_of(question)])["messages"][0], messageId=message_id)
        await live.until("tool-output-available")
        async with asyncio.timeout(PATIENCE_S):
            while json.loads(await connection.recv())["type"] != "end":
                pass


ENDS = {"kill -9": die, "kill -TERM": leave}
DOORS = {"http": answer_over_http, "socket": answer_over_the_socket}


KINDS = ["uvicorn 1", "uvicorn 1, talking on"]


@pytest.mark.figures
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_live_approval_outlives_its_server(
    database: str, end: str, door: str, kind: str, tmp_path: Path
) -> None:
    async with deployed(database, tmp_path, kind) as at:
        async with asked_live(at) as (live, part):
            await ENDS[end](at, live)
        await at.server.start()
        (record,) = (await at.seen.store.read(at.seen.chat)).records
        assert str(record.state) == "pending"
        await at.tab.reload()
        (question,) = at.tab.questions
        assert (question["toolCallId"], question["approval"]["id"]) == (part["toolCallId"], part["approval"]["id"])
        await DOORS[door](at, question)
        world = replace(await at.settled(), said=None)
        assert disagreements(world) == []
        assert outcomes(world) == [("done", "returned")]
