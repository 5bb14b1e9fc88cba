"""A chat is deleted at any moment of an approved payment, from the worker that makes it or from another one. What is
left of it, the audit trail, tells what happened."""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol.store.memory import MemoryStore
from faults.paying_chat import PayingChat
from faults.seeds import play_seeds
from faults.tabs import Tab
from faults.unsteady import some_turns, unsteady
from support.apps import app_of, figure
from support.truth import disagreements

DELETIONS = 150
TURNS = 300  # of the event loop, in which an approved payment comes to its end when nothing takes any time
LONGER_THAN_ANY_DELETION_S = 10_000


async def delete_once(seed: int) -> tuple[str, list[str]]:
    """How the trail of the payment ends, and where anybody disagrees."""
    random = Random(seed)
    loop = asyncio.get_running_loop()
    tool_s = random.choice([0, 0, 0.5, 3])

    async def works() -> None:
        await some_turns(random, 20)
        await asyncio.sleep(tool_s)

    chat = PayingChat(
        store=unsteady(MemoryStore, random)(clock=lambda: 1_000_000 + loop.time()),
        sessions=unsteady(InMemorySessionService, random)(),
        works=works,
    )
    other = chat.worker()
    await chat.tab.say("Pay.")
    approval = asyncio.create_task(chat.tab.decide(chat.tab.part("pay"), approved=True))
    await asyncio.sleep(random.choice([0, random.uniform(0, tool_s)]))
    await some_turns(random, TURNS)
    await Tab(app_of(random.choice([chat.bridge, other])), chat.seen, "other tab").delete()
    await approval
    world = await chat.settled()
    await chat.bridge.aclose()
    await other.aclose()
    return str(world.audit[-1].state), disagreements(world)


@pytest.mark.figures
def test_a_deletion_at_any_moment_leaves_a_true_trail(capsys: pytest.CaptureFixture[str]) -> None:
    states, wrong = play_seeds(figure(DELETIONS), delete_once, LONGER_THAN_ANY_DELETION_S)
    with capsys.disabled():
        print(f"\n{states.total()} deletions: trails end with {dict(states)}")
    assert not wrong, f"{len(wrong)} of {states.total()} deletions, by seed: {wrong}"


class FailsOnce(InMemoryArtifactService):
    has_failed: bool = False

    async def list_artifact_keys(self, **about: Any) -> list[str]:
        if not self.has_failed:
            self.has_failed = True
            raise ConnectionError
        return await super().list_artifact_keys(**about)


async def test_a_deletion_that_failed_can_be_repeated() -> None:
    artifacts = FailsOnce()

    async def works() -> None:
        pass

    chat = PayingChat(store=MemoryStore(), artifacts=artifacts, works=works)
    await chat.tab.say("Pay.")
    await chat.tab.decide(chat.tab.part("pay"), approved=True)
    statuses = [(await chat.tab.delete()).status for _ in range(2)]
    assert artifacts.has_failed
    assert 204 in statuses
    world = replace(await chat.seen.world(chat.tab.app), streams=[])
    assert world.history is None
    assert disagreements(world) == []
    assert await artifacts.list_artifact_keys(app_name="bank", user_id="ann", session_id="c1") == []
