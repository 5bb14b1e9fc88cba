"""Every new event gives a session another revision, also where clocks go back or stand still."""

from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig

from adk_stream_protocol.adk.revision import RECENT, has_revisions, revision_of
from support.conversations import Store, every_store

KEY: dict[str, Any] = {"app_name": "helper", "user_id": "ann", "session_id": "c1"}


class OfMyOwn(InMemorySessionService):
    async def get_session(self, **about: Any) -> Any:
        return await super().get_session(**about)


class Renamed(InMemorySessionService):
    """A subclass that changes nothing."""


@every_store
async def test_adks_own_services_have_revisions(store: Store) -> None:
    async with store() as service:
        assert has_revisions(service)


def test_a_service_that_loads_in_its_own_way_has_none() -> None:
    assert has_revisions(Renamed())
    assert not has_revisions(OfMyOwn())
    patched: Any = InMemorySessionService()
    patched.append_event = partial(InMemorySessionService.append_event, patched)
    assert not has_revisions(patched)


def test_an_event_that_was_stored_last_and_is_not_among_the_recent_ones_is_missed() -> None:
    events = [Event(author="user", timestamp=100.0 + number) for number in range(3)]
    session = Session(id="c1", app_name="helper", user_id="ann", events=events, last_update_time=102.0)
    assert revision_of(session) is not None
    for stored_at in (103.0, 99.0):
        session.last_update_time = stored_at
        assert revision_of(session) is None


async def both(service: BaseSessionService) -> tuple[Any, Any]:
    """The revision of the whole session, and of what is read of it to know that."""
    whole = await service.get_session(**KEY)
    recent = await service.get_session(**KEY, config=GetSessionConfig(num_recent_events=RECENT))
    assert whole is not None
    assert recent is not None
    assert len(recent.events) <= RECENT
    return revision_of(whole), revision_of(recent)


async def ids(service: BaseSessionService) -> list[str]:
    session = await service.get_session(**KEY)
    return [event.id for event in session.events] if session is not None else []


async def append(service: BaseSessionService, timestamp: float, event_id: str = "") -> None:
    session = await service.get_session(**KEY)
    assert session is not None
    event = Event(author="user", invocation_id="i", timestamp=timestamp)
    event.id = event_id or event.id
    await service.append_event(session, event)


TIMES = {
    "forward": [float(number) for number in range(1, 13)],
    "fractions": [1_800_000_000.1234567 + number * 3.3e-5 for number in range(12)],
    "at a time": [5.0] * 12,
    "back": [float(20 - number) for number in range(12)],
    "back and forth": [5.0, 9.0, 5.0, 5.0, 9.0, 9.0, 1.0, 1.0, 5.0, 20.0, 20.0, 5.0, 5.0, 21.0, 1.0, 1.0, 22.0, 23.0],
    "one far behind, twice": [*map(float, range(100, 109)), 3.0, 3.0, 112.0],
}


@every_store
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("order", ["rising", "falling"])
async def test_no_two_states_of_a_session_have_the_same_revision(store: Store, times: list[float], order: str) -> None:
    async with store() as service:
        await service.create_session(**KEY)
        seen: dict[str, list[str]] = {}
        for number, timestamp in enumerate(times):
            name = number if order == "rising" else 999 - number  # databases sort ties by the id
            with suppress(ValueError):  # SQLite takes a session whose date went back for an old copy
                await append(service, timestamp, f"e{name:03}")
            whole, recent = await both(service)
            events = await ids(service)
            assert whole == recent
            assert whole is None or seen.setdefault(str(whole), events) == events


@every_store
async def test_a_session_in_order_has_a_revision_at_every_step(store: Store) -> None:
    async with store() as service:
        await service.create_session(**KEY)
        assert await both(service) == ([], [])
        for number in range(2 * RECENT):
            await append(service, 1_800_000_000.1234567 + number)
            whole, recent = await both(service)
            assert whole == recent is not None


@every_store
async def test_an_event_that_is_dated_a_little_back_is_seen(store: Store) -> None:
    """As ADK stores the result of a call after the question about it."""
    async with store() as service:
        await service.create_session(**KEY)
        seen: list[Any] = []
        for timestamp in (1.0, 2.0, 3.0, 2.5, 4.0):
            await append(service, timestamp)
            whole, recent = await both(service)
            assert whole == recent is not None
            assert whole not in seen
            seen.append(whole)


def test_a_session_whose_date_is_not_that_of_its_newest_event_has_none() -> None:
    event = Event(author="user", timestamp=5.0)
    assert revision_of(Session(**_named(KEY), events=[event], last_update_time=4.0)) is None
    assert revision_of(Session(**_named(KEY), events=[event], last_update_time=5.000001)) is not None


def _named(key: dict[str, Any]) -> dict[str, Any]:
    return {"id": key["session_id"], "app_name": key["app_name"], "user_id": key["user_id"]}
