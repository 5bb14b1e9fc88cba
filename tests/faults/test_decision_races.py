"""Eight decisions at once about every approval, some yes and some no, on one worker and on two: one is recorded, all
are told it, and what was approved is done once."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from google.adk.sessions import BaseSessionService, DatabaseSessionService

from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey, State
from adk_stream_protocol.store import open_store
from adk_stream_protocol.store.base import AuditEntry, Store
from adk_stream_protocol.testing import Answer
from faults.workers.paying_app import PayingApp
from faults.workers.pool import WorkerPool
from security.bank import answer_body, approval_of
from support.apps import figure
from support.asgi import exchange
from support.databases import postgres_url, sqlite_url
from support.evidence import ClientStream, look_into
from support.tool_log import ToolLog
from support.truth import disagreements

APPROVALS = 1_000
DECISIONS = 8
CALLS = (1, 8, 8, 8)  # in one message, all decided in one request
REPLAYS = 1_000

Request = dict[str, str]


class Asked(NamedTuple):
    chat_id: str
    answer: Answer

    @classmethod
    def of(cls, chat_id: str, status: int, body: str) -> "Asked":
        assert status == 200
        return cls(chat_id, read(status, body))

    def decision(self, random: Random) -> Request:
        parts = [approval_of(part, approved=random.random() < 0.5) for part in self.answer.approvals]
        assert self.answer.message_id
        return post(answer_body(self.chat_id, self.answer.message_id, parts))


def post(body: Any) -> Request:
    return {"method": "POST", "path": "/api/chat", "body": json.dumps(body)}


def question(chat_id: str, calls: int) -> Request:
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": f"Make {calls} payments."}]}
    return post({"id": chat_id, "messages": [message]})


def read(status: int, body: str) -> Answer:
    lines = [line.removeprefix("data: ") for line in body.split("\n") if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return Answer(status, [json.loads(line) for line in lines], raw=body)


# -- what must hold ---------------------------------------------------------------------------------------------------


def check_told(asked: Asked, records: Sequence[CallRecord], told: Sequence[tuple[int, str]]) -> None:
    """Everybody learns what was recorded, of every call, whatever he said himself."""
    state = {record.call.call_id: record.state for record in records}
    calls = [part["toolCallId"] for part in asked.answer.approvals]
    outcome = [(call_id, "available" if state[call_id] is State.DONE else "denied") for call_id in calls]
    for status, body in told:
        assert status == 200, body
        answer = read(status, body)
        ends = [chunk for chunk in answer.chunks if chunk["type"].startswith("tool-output-")]
        assert [(end["toolCallId"], end["type"].removeprefix("tool-output-")) for end in ends] == outcome, body
        assert answer.message_id == asked.answer.message_id
        assert answer.chunks[-1]["type"] == "finish"


def check_recorded(records: Sequence[CallRecord], audit: Sequence[AuditEntry]) -> None:
    for record in records:
        moves = [entry.state for entry in audit if entry.call == record.call]
        if record.state is State.DONE:
            assert moves == ["pending", "approved", "claimed", "started", "done"]
        else:
            assert moves == ["pending", "denied"]


async def check_chat(
    store: Store, sessions: BaseSessionService, asked: Asked, told: Sequence[tuple[int, str]], **seen: Any
) -> Counter[str]:
    """`seen`: the history of the chat, and what its tool has done."""
    chat = ChatKey("payer", "ann", asked.chat_id)
    answers = [
        ClientStream(request="a decision", status=status, chunks=read(status, body).chunks) for status, body in told
    ]
    world = await look_into(store, sessions, chat, streams=answers, **seen)
    assert len(world.records) == len(asked.answer.approvals)
    check_told(asked, world.records, told)
    check_recorded(world.records, world.audit)
    assert disagreements(world) == []
    return Counter(record.state.value for record in world.records)


# -- the races --------------------------------------------------------------------------------------------------------


@pytest.mark.figures
def test_one_decision_wins_in_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> Counter[str]:
        paying, random, states = PayingApp("memory", ToolLog()), Random(5), Counter[str]()

        async def send(request: Request) -> tuple[int, str]:
            path, body = request["path"], request["body"]
            answer = await exchange(paying.app, method=request["method"], path=path, body=body.encode())
            return answer.status, answer.body.decode()

        while states.total() < figure(APPROVALS):
            chat_id = f"c{states.total()}"
            asked = Asked.of(chat_id, *await send(question(chat_id, random.choice(CALLS))))
            told = await asyncio.gather(*(send(asked.decision(random)) for _ in range(DECISIONS)))
            states += await check_in_process(paying, asked, told)
        return states

    report(capsys, "memory", lambda: asyncio.run(scenario()))


async def check_in_process(paying: PayingApp, asked: Asked, told: Sequence[tuple[int, str]]) -> Counter[str]:
    messages = await exchange(paying.app, method="GET", path=f"/api/chat/{asked.chat_id}/messages")
    runs, history = paying.log.runs(asked.chat_id), json.loads(messages.body)
    return await check_chat(paying.store, paying.sessions, asked, told, runs=runs, history=history)


Database = Callable[[], AbstractContextManager[str]]


@pytest.mark.figures
@pytest.mark.parametrize("database", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])
def test_one_decision_wins_in_two_processes(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with database() as url:
        pool = WorkerPool(url, tmp_path)
        report(capsys, f"two processes on {url.partition('+')[0]}", lambda: _race_workers(pool, url))


CHATS_AT_A_TIME = 4


def _race_workers(pool: WorkerPool, url: str) -> Counter[str]:
    random, states = Random(6), Counter[str]()
    each = DECISIONS // 2
    with pool.worker() as one, pool.worker() as other:
        while states.total() < figure(APPROVALS):
            chats = [f"c{states.total()}-{number}" for number in range(CHATS_AT_A_TIME)]
            questions = [question(chat_id, random.choice(CALLS)) for chat_id in chats]
            asked = [Asked.of(chat_id, *told) for chat_id, told in zip(chats, one.serve(questions), strict=True)]
            for worker in (one, other):
                worker.send([chat.decision(random) for chat in asked for _ in range(each)])
            told = [iter(one.answers()), iter(other.answers())]
            by_chat = [[next(answers) for answers in told for _ in range(each)] for _ in asked]
            histories = one.serve([{"method": "GET", "path": f"/api/chat/{chat_id}/messages"} for chat_id in chats])
            states += asyncio.run(_check_chats(url, asked, by_chat, histories, pool.log))
    return states


async def _check_chats(
    url: str, asked: Sequence[Asked], told: Sequence[Sequence[tuple[int, str]]], histories: Sequence[Any], log: ToolLog
) -> Counter[str]:
    store, runs = open_store(url), log.runs()
    async with DatabaseSessionService(url) as sessions:
        try:
            states = Counter[str]()
            for each, answers, (_, history) in zip(asked, told, histories, strict=True):
                made = [run for run in runs if run.chat_id == each.chat_id]
                seen: dict[str, Any] = {"runs": made, "history": json.loads(history)}
                states += await check_chat(store, sessions, each, answers, **seen)
            return states
        finally:
            await store.aclose()


def report(capsys: pytest.CaptureFixture[str], where: str, race: Callable[[], Counter[str]]) -> None:
    began = time.monotonic()
    states = race()
    with capsys.disabled():
        took_s = time.monotonic() - began
        print(f"\n{states.total()} approvals x {DECISIONS} decisions at once, {where}: {dict(states)}, {took_s:.0f} s")
    assert states["done"] > states.total() // 4
    assert states["denied"] > states.total() // 4


# -- replays ----------------------------------------------------------------------------------------------------------


@pytest.mark.figures
async def test_an_approval_posted_again_and_again_runs_once() -> None:
    paying = PayingApp("memory", ToolLog())

    async def send(request: Request) -> tuple[int, str]:
        answer = await exchange(paying.app, path=request["path"], body=request["body"].encode())
        return answer.status, answer.body.decode()

    asked = Asked.of("c1", *await send(question("c1", 1)))
    assert asked.answer.message_id
    approved = post(answer_body("c1", asked.answer.message_id, [approval_of(asked.answer.approvals[0])]))
    told = [await send(approved) for _ in range(figure(REPLAYS))]
    await check_in_process(paying, asked, told)
    assert len(paying.log.runs()) == 1
