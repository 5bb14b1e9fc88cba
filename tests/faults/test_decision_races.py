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

from adk_stream_protocol.protocol.approvals import Approval, ChatKey, State
from adk_stream_protocol.store import open_store
from adk_stream_protocol.store.base import AuditEntry, Store
from adk_stream_protocol.testing import Answer
from faults.workers.paying_app import PayingApp
from faults.workers.pool import WorkerPool
from security.bank import answer_body, approval_of
from support.apps import figure
from support.asgi import exchange
from support.databases import postgres_url, sqlite_url

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


def check_told(asked: Asked, records: Sequence[Approval], told: Sequence[tuple[int, str]]) -> None:
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


def check_recorded(records: Sequence[Approval], audit: Sequence[AuditEntry], effects: Counter[str]) -> None:
    for record in records:
        assert record.state in (State.DONE, State.DENIED)
        moves = [entry.state for entry in audit if entry.call == record.call]
        if record.state is State.DONE:
            assert moves == ["pending", "approved", "claimed", "started", "done"]
        else:
            assert moves == ["pending", "denied"]
        assert effects[record.call.call_id] == (record.state is State.DONE)


# -- the races --------------------------------------------------------------------------------------------------------


@pytest.mark.figures
def test_one_decision_wins_in_one_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    effects = tmp_path / "effects"

    async def scenario() -> Counter[str]:
        paying, random, states = PayingApp("memory", effects), Random(5), Counter[str]()

        async def send(request: Request) -> tuple[int, str]:
            path, body = request["path"], request["body"]
            answer = await exchange(paying.app, method=request["method"], path=path, body=body.encode())
            return answer.status, answer.body.decode()

        while states.total() < figure(APPROVALS):
            chat_id = f"c{states.total()}"
            asked = Asked.of(chat_id, *await send(question(chat_id, random.choice(CALLS))))
            told = await asyncio.gather(*(send(asked.decision(random)) for _ in range(DECISIONS)))
            states += await check_chat(paying.store, asked, told, Counter(effects_in(effects)))
        return states

    report(capsys, "memory", lambda: asyncio.run(scenario()))


def effects_in(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


async def check_chat(
    store: Store, asked: Asked, told: Sequence[tuple[int, str]], effects: Counter[str]
) -> Counter[str]:
    chat = ChatKey("payer", "ann", asked.chat_id)
    records = (await store.read(chat)).approvals
    assert len(records) == len(asked.answer.approvals)
    check_told(asked, records, told)
    check_recorded(records, await store.audit(chat), effects)
    return Counter(record.state.value for record in records)


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
            states += asyncio.run(_check_chats(url, asked, by_chat, pool.effects()))
    return states


async def _check_chats(
    url: str, asked: Sequence[Asked], told: Sequence[Sequence[tuple[int, str]]], effects: Counter[str]
) -> Counter[str]:
    store = open_store(url)
    try:
        states = Counter[str]()
        for each, answers in zip(asked, told, strict=True):
            states += await check_chat(store, each, answers, effects)
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
def test_an_approval_posted_again_and_again_runs_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        paying = PayingApp("memory", tmp_path / "effects")

        async def send(request: Request) -> tuple[int, str]:
            answer = await exchange(paying.app, path=request["path"], body=request["body"].encode())
            return answer.status, answer.body.decode()

        asked = Asked.of("c1", *await send(question("c1", 1)))
        assert asked.answer.message_id
        approved = post(answer_body("c1", asked.answer.message_id, [approval_of(asked.answer.approvals[0])]))
        told = [await send(approved) for _ in range(figure(REPLAYS))]
        await check_chat(paying.store, asked, told, Counter(effects_in(tmp_path / "effects")))
        assert len(effects_in(tmp_path / "effects")) == 1

    asyncio.run(scenario())
