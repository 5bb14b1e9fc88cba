"""Stop at any moment of an approved payment: the person, the model and the record know the same of it."""

import asyncio
from random import Random
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol.store.memory import MemoryStore
from faults.paying_chat import PayingChat, UsersPlugin
from faults.seeds import play_seeds
from faults.unsteady import some_turns, unsteady
from support.apps import figure
from support.truth import disagreements

STOPS = 150
TURNS = 400  # of the event loop, in which an approved payment comes to its end when nothing takes any time
LONGER_THAN_ANY_STOP_S = 10_000


class SlowPlugin(UsersPlugin):
    def __init__(self, random: Random, takes_s: float) -> None:
        super().__init__(name="users")
        self._random, self._takes_s = random, takes_s

    async def after_tool_callback(self, **_: Any) -> None:
        await some_turns(self._random, 10)
        await asyncio.sleep(self._takes_s)

    async def on_event_callback(self, **_: Any) -> None:
        await some_turns(self._random, 3)


async def stop_once(seed: int) -> tuple[str, list[str]]:
    """How the payment is recorded, and where anybody disagrees."""
    random = Random(seed)
    loop = asyncio.get_running_loop()
    tool_s, plugin_s = random.choice([0, 0, 0.5, 5]), random.choice([0, 0, 0, 3])

    async def works() -> None:
        await some_turns(random, 20)
        await asyncio.sleep(tool_s)

    chat = PayingChat(
        store=unsteady(MemoryStore, random)(clock=lambda: 1_000_000 + loop.time()),
        sessions=unsteady(InMemorySessionService, random)(),
        plugin=SlowPlugin(random, plugin_s),
        works=works,
    )
    await chat.tab.say("Pay.")
    approval = asyncio.create_task(chat.tab.decide(chat.tab.part("pay"), approved=True))
    await asyncio.sleep(random.choice([0, 0, random.uniform(0, tool_s + plugin_s)]))
    await some_turns(random, TURNS)
    await chat.tab.stop()
    await approval
    world = await chat.settled()
    await chat.bridge.aclose()
    return str(world.records[0].state), disagreements(world)


@pytest.mark.figures
def test_a_stop_at_any_moment_leaves_one_truth(capsys: pytest.CaptureFixture[str]) -> None:
    states, wrong = play_seeds(figure(STOPS), stop_once, LONGER_THAN_ANY_STOP_S)
    with capsys.disabled():
        print(f"\n{states.total()} stops: payments {dict(states)}")
    assert not wrong, f"{len(wrong)} of {states.total()} stops, by seed: {wrong}"
    assert 0 < states["done"] < states.total(), "no stop came before the payment, or none after it"
