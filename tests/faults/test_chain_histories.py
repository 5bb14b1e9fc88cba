"""Random histories of chains on two processes: three links decide, edit, repeat, are late and race, and others try. The
tool runs after all links, for what all of them were shown, at most once; nobody else decides or sees anything."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store import open_store
from adk_stream_protocol.store.base import AuditEntry
from faults.workers.paying_app import CHAINED_S
from faults.workers.pool import Worker, WorkerPool
from support.apps import figure
from support.databases import postgres_url

HISTORIES = 1_000
AT_A_TIME = 10
ROUNDS = 4
PEOPLE = {"max": "managers", "meg": "managers", "eva": "", "hal": "heads", "zoe": "managers,heads", "ada": ""}
LINKS = ({"max", "meg", "zoe"}, {"eva", "hal", "zoe"}, {"zoe", "ada"})
STRANGERS = {"eve": "", "group:managers": "", **dict.fromkeys(CHAINED_S, "")}  # the owners, too
EVERYBODY = PEOPLE | STRANGERS

Card = dict[str, Any]


def request(user: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    headers = {"x-user": user, "x-groups": EVERYBODY[user]}
    return {"method": method, "path": f"/api/chat{path}", "headers": headers, "body": json.dumps(body) if body else ""}


class History:
    """One chat with one call."""

    def __init__(self, owner: str, chat_id: str) -> None:
        self.owner, self.chat_id = owner, chat_id
        self.id = ""
        self.digests: list[str] = []

    def question(self) -> dict[str, Any]:
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "Make 1 payment."}]}
        return request(self.owner, "POST", "", {"id": self.chat_id, "messages": [message]})

    def learn(self, status: int, body: str) -> None:
        assert status == 200
        chunks = [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: {")]
        assert not any(chunk["type"] == "tool-approval-request" for chunk in chunks)
        (data,) = [chunk for chunk in chunks if chunk["type"] == "data-adk-approval"]
        self.id = data["id"]

    def word(self, random: Random) -> tuple[str, dict[str, Any]]:
        user = random.choice([*PEOPLE] * 4 + [*STRANGERS])
        body: dict[str, Any] = {"approved": random.random() < 0.92, "digest": random.choice(self.digests[-2:] or ["x"])}
        if random.random() < 0.15:
            body["payload"] = {"amount": random.randint(1, 3)}
        return user, request(user, "POST", f"/approvals/{self.id}", body)


def check_words(users: Sequence[str], answers: Sequence[tuple[int, str]]) -> None:
    for user, (status, body) in zip(users, answers, strict=True):
        assert status in (200, 404, 409), (status, body)
        assert user in PEOPLE or (status, json.loads(body)["error"]["code"]) == (404, "not-found"), (user, body)


def check_trail(trail: Sequence[AuditEntry], runs: int) -> str:
    """What the trail says is what may have happened. The last state before the tool."""
    votes: dict[int, tuple[str, str]] = {}
    states = [entry.state for entry in trail]
    assert states.count("started") == runs <= 1
    for entry in trail[1:]:
        if entry.state not in ("in-chain", "approved", "denied"):
            continue
        assert entry.link is not None
        assert entry.by in LINKS[entry.link], "somebody decided who was not named"
        turn = next(place for place in range(3) if place not in votes)
        assert entry.link == turn, "somebody decided out of turn"
        if not entry.approved:
            assert entry.state == "denied"
            break
        digest = entry.shown_digest or entry.digest
        is_edit = any(shown != digest for _, shown in votes.values())
        assert not is_edit or entry.replaces is not None, "an edit does not name what it replaces"
        votes = {place: vote for place, vote in votes.items() if vote[1] == digest}
        assert entry.by not in {by for by, _ in votes.values()}, "somebody approved twice"
        votes[entry.link] = (entry.by, digest)
        assert (entry.state == "approved") == (len(votes) == 3)
    if runs:
        assert len(votes) == 3, "the tool ran without everybody"
        assert len({shown for _, shown in votes.values()}) == 1, "not all approved the same"
    return next((state for state in reversed(states) if state in ("in-chain", "approved", "denied", "expired")), "")


@pytest.mark.figures
def test_a_chain_is_decided_by_all_its_links_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began, random, ends = time.monotonic(), Random(14), Counter[str]()
    with postgres_url() as url:
        pool = WorkerPool(url, tmp_path)
        with pool.worker() as one, pool.worker() as other:
            while ends.total() < figure(HISTORIES):
                ends += _play(random, (one, other), pool, url, ends.total())
    with capsys.disabled():
        print(f"\n{ends.total()} chains, two processes: {dict(ends)}, {time.monotonic() - began:.0f} s")
    assert min(ends["ran"], ends["denied"], ends["not in time"]) > ends.total() // 50


def _play(random: Random, workers: tuple[Worker, Worker], pool: WorkerPool, url: str, number: int) -> Counter[str]:
    one, other = workers
    chats = [History(random.choice(["olga", "olga", "otto"]), f"c{number}-{place}") for place in range(AT_A_TIME)]
    for chat, told in zip(chats, one.serve([chat.question() for chat in chats]), strict=True):
        chat.learn(*told)
    for _ in range(ROUNDS):
        lists = one.serve([request(user, "GET", "/approvals") for user in EVERYBODY])
        for user, (status, body) in zip(EVERYBODY, lists, strict=True):
            cards: list[Card] = json.loads(body)["approvals"]
            assert status == 200
            assert user in PEOPLE or not cards, "a stranger has something in his inbox"
            for chat in chats:
                chat.digests += [card["digest"] for card in cards if card["id"] == chat.id]
        words = [[chat.word(random) for chat in chats for _ in range(4)] for _ in workers]
        for worker, said in zip(workers, words, strict=True):
            worker.send([each for _, each in said])
        for worker, said in zip(workers, words, strict=True):
            check_words([user for user, _ in said], worker.answers())
    return asyncio.run(_check(url, chats, pool, other))


async def _check(url: str, chats: Sequence[History], pool: WorkerPool, worker: Worker) -> Counter[str]:
    store, ends = open_store(url), Counter[str]()
    try:
        for chat in chats:
            trail = await store.audit(ChatKey("payer", chat.owner, chat.chat_id))
            give_up_at = time.monotonic() + 30
            while any(entry.state == "approved" for entry in trail) and trail[-1].state != "done":
                assert time.monotonic() < give_up_at, "what was approved did not run"
                await asyncio.sleep(0.05)
                trail = await store.audit(ChatKey("payer", chat.owner, chat.chat_id))
            runs = [run for run in pool.log.runs() if run.chat_id == chat.chat_id]
            state = check_trail(trail, len(runs))
            ends["ran" if runs else {"in-chain": "not in time", "expired": "not in time"}.get(state, state)] += 1
    finally:
        await store.aclose()
    assert worker.serve("pid")
    return ends
