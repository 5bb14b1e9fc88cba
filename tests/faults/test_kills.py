"""A worker dies at every step between a decision and its recorded result. Whoever comes next does what was not begun,
tells what was, and never runs anything twice."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.adk.sessions import DatabaseSessionService

from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store import open_store
from faults.test_decision_races import Asked, Request, post, question, read
from faults.workers.paying_app import STEPS, Death
from faults.workers.pool import Worker, WorkerDied, WorkerPool
from security.bank import answer_body, approval_of
from support.databases import postgres_url, sqlite_url
from support.evidence import World, look_into
from support.truth import disagreements

FULL_SIZE = bool(os.environ.get("FULL_SIZE"))
KILLS = 1_000 if FULL_SIZE else 50
LEASE_S = 4  # instead of ten: every batch waits for the leases of its dead. Less would be lost on a busy machine
PATIENCE_S = 60
BATCH = 5 * len(STEPS)
AT_A_TIME = 6

BEGUN = ("after_start", "after_effect")

Database = Callable[[], AbstractContextManager[str]]


class Victim(NamedTuple):
    """A chat whose worker dies in the middle of its approval."""

    step: str
    asked: Asked

    @property
    def chat_id(self) -> str:
        return self.asked.chat_id

    @property
    def call_ids(self) -> list[str]:
        return [part["toolCallId"] for part in self.asked.answer.approvals]

    @property
    def approval(self) -> Request:
        assert self.asked.answer.message_id
        parts = [approval_of(part) for part in self.asked.answer.approvals]
        return post(answer_body(self.chat_id, self.asked.answer.message_id, parts))


def ask(pool: WorkerPool, steps: Sequence[str], name: str, calls: Sequence[int]) -> list[Victim]:
    chats = [f"{name}-{number}-{step}" for number, step in enumerate(steps)]
    questions = [question(chat_id, calls[number % len(calls)]) for number, chat_id in enumerate(chats)]
    with pool.worker() as worker:
        told = worker.serve(questions)
    return [Victim(*each) for each in zip(steps, map(Asked.of, chats, *zip(*told, strict=True)), strict=True)]


def kill(pool: WorkerPool, victims: Sequence[Victim]) -> None:
    for first in range(0, len(victims), AT_A_TIME):
        with ExitStack() as dying:
            for victim in victims[first : first + AT_A_TIME]:
                worker = dying.enter_context(pool.worker(death=Death(victim.step), lease_s=LEASE_S))
                worker.send([victim.approval])
                dying.callback(_expect_death, worker)


def _expect_death(worker: Worker) -> None:
    with pytest.raises(WorkerDied):
        worker.answers()


# -- who comes next ---------------------------------------------------------------------------------------------------


def retry(pool: WorkerPool, victims: Sequence[Victim]) -> None:
    """Each client sends its approval again, to another worker: none is refused, and all learn what became of it."""
    with pool.worker(lease_s=LEASE_S) as worker:
        for first in range(0, len(victims), AT_A_TIME):
            some = victims[first : first + AT_A_TIME]
            for victim, (status, body) in zip(some, worker.serve([victim.approval for victim in some]), strict=True):
                ends = [c["toolCallId"] for c in read(status, body).chunks if c["type"].startswith("tool-output-")]
                assert (status, ends) == (200, victim.call_ids), (victim.step, body)


def recover(pool: WorkerPool, victims: Sequence[Victim]) -> None:
    """Nobody says anything, and another worker finds what was left behind."""
    with pool.worker(lease_s=LEASE_S) as worker:
        worker.serve("recover")
        until(lambda: all(_is_settled(message) for message in messages_of(worker, victims)))


def until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.1)


def messages_of(worker: Worker, victims: Sequence[Victim]) -> Iterator[Any]:
    """The assistant's message of each chat; None while it is being written."""
    for history in histories_of(worker, victims):
        yield next((message for message in history if message["role"] == "assistant"), None)


def histories_of(worker: Worker, victims: Sequence[Victim]) -> Iterator[Any]:
    told = worker.serve([{"method": "GET", "path": f"/api/chat/{victim.chat_id}/messages"} for victim in victims])
    for status, body in told:
        assert status == 200
        yield json.loads(body)


def _is_settled(message: Any) -> bool:
    return message is not None and all(part["state"] != "approval-responded" for part in _calls(message))


def _calls(message: Any) -> list[Any]:
    return [part for part in message["parts"] if part["type"] == "tool-pay"]


# -- what must hold ---------------------------------------------------------------------------------------------------


async def check(url: str, pool: WorkerPool, victims: Sequence[Victim]) -> Counter[str]:
    runs, states = pool.log.runs(), Counter[str]()
    with pool.worker() as worker:
        histories = list(histories_of(worker, victims))
    store = open_store(url)
    async with DatabaseSessionService(url) as sessions:
        for victim, history in zip(victims, histories, strict=True):
            chat, made = ChatKey("payer", "ann", victim.chat_id), [run for run in runs if run.chat_id == victim.chat_id]
            world = await look_into(store, sessions, chat, history=history, runs=made)
            assert disagreements(world) == [], victim.step
            check_step(victim, world)
            states += Counter(record.state.value for record in world.records)
        await store.aclose()
    return states


def check_step(victim: Victim, world: World) -> None:
    """What is more than the truth: how much of the work was saved, and that the model has answered."""
    records = {record.call.call_id: record for record in world.records}
    assert sorted(records) == sorted(victim.call_ids)
    moves = Counter(entry.state for entry in world.audit)
    assert moves["started"] == len(records), (victim.step, moves)
    made = [run.call.call_id for run in world.runs]
    unknown = [call_id for call_id in victim.call_ids if records[call_id].state is State.UNKNOWN]
    if victim.step in BEGUN:
        assert unknown
        assert (unknown[0] in made) == (victim.step == "after_effect") or len(unknown) > 1
    elif victim.step == "after_record":  # the others' tools may have been at work
        assert len(unknown) < len(records)
    else:
        assert not unknown, victim.step
    if victim.step != "after_append":  # the model knew the result, and its answer died with the worker
        message = next(message for message in world.history or () if message["role"] == "assistant")
        told = [part.get("output", {"error": part.get("errorText")}) for part in _calls(message)]
        said = [part["text"] for part in message["parts"] if part["type"] == "text"]
        assert said == [f"I was told {json.dumps(told)}"], victim.step


@pytest.mark.figures
@pytest.mark.parametrize(
    ("database", "kills"), [(sqlite_url, KILLS * 4 // 5), (postgres_url, KILLS // 5)], ids=["SQLite", "PostgreSQL"]
)
def test_a_killed_worker_costs_no_work_and_no_double_effect(
    database: Database, kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began, killed, states = time.monotonic(), Counter[str](), Counter[str]()
    with database() as url:
        pool = WorkerPool(url, tmp_path)
        while killed.total() < kills:
            steps = (STEPS * BATCH)[: min(BATCH, kills - killed.total())]
            victims = ask(pool, steps, f"b{killed.total()}", calls=(1, 1, 3))
            kill(pool, victims)
            with ThreadPoolExecutor() as at_once:
                for work in [at_once.submit(retry, pool, victims[::2]), at_once.submit(recover, pool, victims[1::2])]:
                    work.result()
            retry(pool, victims)  # the last ones that were not even decided; to all others nothing happens any more
            states += asyncio.run(check(url, pool, victims))
            killed += Counter(steps)
        assert max(pool.effects().values()) == 1
    with capsys.disabled():
        where, took_s = url.partition("+")[0], time.monotonic() - began
        print(f"\n{killed.total()} kills on {where}, {took_s:.0f} s: payments {dict(states)}, none made twice")


# -- workers that only seemed dead ------------------------------------------------------------------------------------


@contextmanager
def frozen(pool: WorkerPool, victim: Victim) -> Iterator[None]:
    """A worker that stands still in the middle of its approval, and goes on when the block ends."""
    with pool.worker(death=Death(victim.step, signal.SIGSTOP), lease_s=LEASE_S) as worker:
        pid: int = worker.serve("pid")
        worker.send([victim.approval])
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)
        ((status, _),) = worker.answers()
        assert status == 200


@pytest.mark.figures
@pytest.mark.parametrize("database", [sqlite_url, postgres_url] if FULL_SIZE else [sqlite_url])
def test_a_worker_that_comes_back_from_the_dead_changes_nothing(database: Database, tmp_path: Path) -> None:
    steps = STEPS[STEPS.index("after_lease") : STEPS.index("after_record") + 1]
    with database() as url:
        pool = WorkerPool(url, tmp_path)
        victims = ask(pool, steps, "f", calls=[1])
        with ExitStack() as standing:
            for victim in victims:
                standing.enter_context(frozen(pool, victim))
            retry(pool, victims)
            with pool.worker() as worker:
                before = list(messages_of(worker, victims))
        # What was begun takes its effect now, late; and that is why nobody else was allowed to begin it again.
        asyncio.run(check(url, pool, [v for v in victims if v.step != "after_start"]))
        assert set(pool.effects().values()) == {1}
        assert set(pool.effects()) == {call_id for victim in victims for call_id in victim.call_ids}
        with pool.worker() as worker:
            assert list(messages_of(worker, victims)) == before


def test_an_outcome_is_told_also_to_a_person_who_writes_something_else_first(tmp_path: Path) -> None:
    """The next turn takes the lease that would have led others to what was left behind."""
    steps = ("after_start", "after_effect", "after_record")
    with sqlite_url() as url:
        pool = WorkerPool(url, tmp_path)
        victims = ask(pool, steps, "w", calls=[1])
        kill(pool, victims)
        with pool.worker(lease_s=LEASE_S) as worker:
            words = [question(victim.chat_id, 1) for victim in victims]
            until(lambda: all(status == 200 for status, _ in worker.serve(words)))  # refused while the lease lasts
            for victim, message in zip(victims, messages_of(worker, victims), strict=True):
                (part,) = _calls(message)
                assert part["state"] == ("output-available" if victim.step == "after_record" else "output-error")
