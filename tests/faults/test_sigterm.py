"""A deploy in the middle of a payment: the server gets a signal, and another one comes after it. The payment is made
and known, or it still waits for its person."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions import DatabaseSessionService
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store import open_store
from faults.tabs import Seen, Tab
from faults.workers.servers import USER, Deployment
from security.bank import answer_body, approval_of
from support.databases import sqlite_url
from support.evidence import ClientStream, World
from support.truth import disagreements

FULL_SIZE = bool(os.environ.get("FULL_SIZE"))
PAYMENT_S = 5 if FULL_SIZE else 1.5
PATIENCE_S = 60
KINDS = ["command", "uvicorn", "uvicorn 1"] if FULL_SIZE else ["command", "uvicorn 1"]


class Deploy:
    """One chat, whose server is replaced."""

    def __init__(self, deployment: Deployment, seen: Seen) -> None:
        self.deployment = deployment
        self.server = deployment.servers[0]
        self.tab = Tab(deployment.app, seen)
        self.seen = seen

    async def replace_server(self) -> None:
        self.server.terminate()
        await self.server.ended()
        await self.server.start()

    async def payment_begins(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.deployment.log.runs():
                await asyncio.sleep(0.01)

    async def settled(self) -> World:
        """The new server is asked, and the chat has one more turn."""
        await self.tab.reload()
        async with asyncio.timeout(PATIENCE_S):
            while (await self.tab.say("And?")).status != 200:
                await asyncio.sleep(0.1)
        return await self.seen.world(self.deployment.app)


@asynccontextmanager
async def deploy(kind: str, folder: Path) -> AsyncGenerator[Deploy]:
    with sqlite_url() as url:
        deployment = Deployment(kind, url, folder, payment_s=PAYMENT_S)
        store = open_store(url)
        async with deployment.running(), deployment.app.http, DatabaseSessionService(url) as sessions:
            yield Deploy(deployment, Seen(ChatKey("bank", "ann", "c1"), store, sessions, deployment.log))
            await store.aclose()


def outcomes(world: World) -> list[tuple[str, str | None]]:
    """What is recorded of each payment, and how it ended."""
    return [(str(record.state), run.end) for record, run in zip(world.records, world.runs, strict=True)]


# -- request mode -----------------------------------------------------------------------------------------------------


@pytest.mark.figures
@pytest.mark.parametrize("kind", KINDS)
async def test_a_payment_that_somebody_reads_is_finished(kind: str, tmp_path: Path) -> None:
    async with deploy(kind, tmp_path) as at:
        await at.tab.say("Pay 1.")
        reading = asyncio.create_task(at.tab.decide(at.tab.part("pay"), approved=True))
        await at.payment_begins()
        await at.replace_server()
        read = await reading
        assert read.status == 200
        if kind == "uvicorn 1":  # which cuts its connections off after that second
            at.seen.streams[at.seen.streams.index(read)] = replace(read, was_left=True)
        world = await at.settled()
        assert disagreements(world) == []
        assert outcomes(world) == [("done", "returned")]


@pytest.mark.figures
@pytest.mark.parametrize("kind", KINDS)
async def test_a_payment_that_nobody_reads_is_finished(kind: str, tmp_path: Path) -> None:
    async with deploy(kind, tmp_path) as at:
        await at.tab.say("Pay 1.")
        part, http = at.tab.part("pay"), at.deployment.app.http
        body = answer_body("c1", at.tab.messages[-1]["id"], [approval_of(part)])
        url = f"http://{at.server.address}/api/chat"
        async with http.stream("POST", url, json=body, headers=USER) as answer:
            assert answer.status_code == 200
            await at.payment_begins()
        await at.replace_server()
        world = replace(await at.settled(), said=None)
        assert disagreements(world) == []
        assert outcomes(world) == [("done", "returned")]


@pytest.mark.figures
@pytest.mark.parametrize("kind", KINDS)
async def test_a_payment_that_waits_for_its_person_goes_on_waiting(kind: str, tmp_path: Path) -> None:
    async with deploy(kind, tmp_path) as at:
        await at.tab.say("Pay 1.")
        await at.replace_server()
        await at.tab.reload()
        await at.tab.decide(at.tab.questions[0], approved=True)
        world = await at.settled()
        assert disagreements(world) == []
        assert outcomes(world) == [("done", "returned")]


# -- live mode --------------------------------------------------------------------------------------------------------


class Socket:
    def __init__(self, connection: ClientConnection, seen: Seen) -> None:
        self._connection = connection
        self._seen = seen
        self.chunks: list[dict[str, Any]] = []

    async def send(self, message: dict[str, Any], **fields: Any) -> None:
        request_id = f"r-{message['id']}"
        frame = {"type": "send", "requestId": request_id, "id": "c1", "trigger": "submit-message", "headers": {}}
        await self._connection.send(json.dumps({**frame, "body": {}, "messages": [message], **fields}))

    async def until(self, kind: str) -> dict[str, Any]:
        """The next chunk of this kind."""
        async with asyncio.timeout(PATIENCE_S):
            async for frame in self._connection:
                told = json.loads(frame)
                if told["type"] == "chunk":
                    self.chunks.append(told["chunk"])
                    if told["chunk"]["type"] == kind:
                        return told["chunk"]
        raise AssertionError(f"The socket was closed before {kind}: {self.chunks}")

    async def rest(self) -> None:
        """What still comes until the server closes."""
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionClosed):
                while True:
                    told = json.loads(await self._connection.recv())
                    self.chunks += [told["chunk"]] if told["type"] == "chunk" else []
        self._seen.streams.append(ClientStream(request="a socket", status=200, chunks=self.chunks, was_left=True))


@asynccontextmanager
async def asked_live(at: Deploy) -> AsyncGenerator[tuple[Socket, dict[str, Any]]]:
    """A live session in which somebody was asked about a payment, and the part with the question."""
    url = f"ws://{at.server.address}/api/chat/live?user=ann"
    async with connect(url, additional_headers=USER) as connection:
        live = Socket(connection, at.seen)
        await live.send({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay 1."}]})
        question = await live.until("tool-approval-request")
        part = {"type": "tool-pay", "toolCallId": question["toolCallId"], "input": {"amount": 1}}
        yield live, {**part, "approval": {"id": question["approvalId"]}}


@pytest.mark.figures
@pytest.mark.parametrize("kind", KINDS)
async def test_an_approval_that_waits_in_a_live_session_goes_on_waiting(kind: str, tmp_path: Path) -> None:
    async with deploy(kind, tmp_path) as at:
        async with asked_live(at) as (live, _):
            at.server.terminate()
            await live.rest()
        await at.server.ended()
        await at.server.start()
        (record,) = (await at.seen.store.read(at.seen.chat)).records
        assert str(record.state) == "pending"
        await at.tab.reload()
        (question,) = at.tab.questions
        await at.tab.decide(question, approved=True)
        world = await at.settled()
        assert disagreements(world) == []
        assert outcomes(world) == [("done", "returned")]


@pytest.mark.figures
@pytest.mark.parametrize("kind", KINDS)
async def test_a_payment_of_a_live_session_is_finished(kind: str, tmp_path: Path) -> None:
    async with deploy(kind, tmp_path) as at:
        async with asked_live(at) as (live, part):
            message_id = live.chunks[0]["messageId"]
            message = answer_body("c1", message_id, [approval_of(part)])["messages"][0]
            await live.send(message, messageId=message_id)
            await at.payment_begins()
            at.server.terminate()
            await live.rest()
        await at.server.ended()
        await at.server.start()
        world = replace(await at.settled(), said=None)
        assert disagreements(world) == []
        assert outcomes(world) == [("done", "returned")]
