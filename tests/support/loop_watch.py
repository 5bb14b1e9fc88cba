"""How long work holds the event loop, and what it costs: in CPU of the loop's thread, since the machine has others."""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session


@dataclass(frozen=True)
class Held:
    """In seconds."""

    longest: float
    """Without a turn for anybody else."""
    total: float


async def watched(work: Callable[[], Coroutine[Any, Any, Any]], rounds: int = 2) -> Held:
    """The best of some rounds, after one that does not count."""
    await work()
    with _without_collector():
        held = [await _watched(work()) for _ in range(rounds)]
    return Held(min(round.longest for round in held), min(round.total for round in held))


async def _watched(work: Coroutine[Any, Any, Any]) -> Held:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            turn_began_at = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - turn_began_at)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    began_at = time.thread_time()
    await work
    total = time.thread_time() - began_at
    await asyncio.sleep(0)  # the watch sees the end, too
    watching.cancel()
    return Held(longest, total)


@contextmanager
def _without_collector() -> Generator[None]:
    """It stops everything now and then, and for longer the more the whole process has made."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class LoadedForNothing(InMemorySessionService):
    """One chat that ADK loads without a copy, so that what is measured is ours. Nothing is kept."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self._events = events

    async def get_session(self, *, app_name: str, user_id: str, session_id: str, **_: Any) -> Session:
        return Session.model_construct(
            id=session_id, app_name=app_name, user_id=user_id, state={}, events=list(self._events), last_update_time=0.0
        )

    async def append_event(self, session: Session, event: Event) -> Event:
        session.events.append(event)
        return event
