"""What becomes of calls that only their run can continue, and of chains, when a lease is taken and when it is given
back."""

from typing import Any

import pytest

from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.calls.waiting import GIVEN_UP
from adk_stream_protocol.chat.leases import ChatLeases
from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from support.leases import Store, begun, ended, worker
from support.records import CHAT, read_whole, record

pytestmark = pytest.mark.virtual_time

KEY = CallKey("i1", "1")
NOT_RUN = {"response": {"error": f"Not run: {GIVEN_UP}."}, "state": {}}


def nested(state: State, **fields: Any) -> CallRecord:
    return record(state=state, is_nested=True, lease_token="run-1" if state in HAS_LEASE else None, **fields)


HAS_LEASE = (State.CLAIMED, State.STARTED)


@pytest.mark.parametrize(
    ("left", "state"),
    [
        (State.PENDING, State.DENIED),
        (State.APPROVED, State.FAILED),
        (State.CLAIMED, State.FAILED),
        (State.STARTED, State.UNKNOWN),
    ],
)
async def test_a_nested_call_ends_with_its_run_and_is_owed_to_nobody(left: State, state: State) -> None:
    store = Store()
    here = worker(store)
    leased = await begun_with(here, store, nested(left))
    await here.end_run(ended(leased, frozenset()))
    (found,) = await read_whole(store)
    assert (found.state, found.delivered) == (state, True)
    assert found.reason == (GIVEN_UP if state is State.DENIED else None)
    assert found.result == (NOT_RUN if state is State.FAILED else None)


async def begun_with(here: ChatLeases, store: Store, found: CallRecord) -> LeasedChat:
    """A run in which this call was made."""
    leased = await begun(here)
    await store.add(found)
    leased.records[KEY] = found
    return leased


async def test_a_nested_call_that_has_ended_is_delivered_by_others() -> None:
    store = Store()
    here = worker(store)
    leased = await begun_with(here, store, nested(State.DONE, result={"response": {}, "state": {}}))
    await here.end_run(ended(leased, frozenset()))
    assert (await store.the_call()).delivered is False


async def test_whoever_has_lost_the_lease_ends_nothing() -> None:
    store = Store()
    here = worker(store)
    leased = await begun_with(here, store, nested(State.PENDING))
    leased.is_lost = True
    await here.end_run(ended(leased, frozenset()))
    assert leased.records[KEY].state is State.PENDING
    assert KEY not in leased.delivered


async def test_the_next_run_ends_the_nested_calls_of_a_lost_one() -> None:
    store = Store()
    await store.add(nested(State.PENDING))
    await store.add(record("2", made_in={"delegated": True}))
    await store.add(record("3", is_nested=True, made_in={"agent": "b", "outer": "4"}))
    here = worker(store)
    leased = await begun(here)
    assert leased.delivered == {KEY}  # of the others the session is told, or of the one that they were made in
    assert [(found.state, found.reason) for found in leased.records.values()] == [(State.DENIED, GIVEN_UP)] * 3
    await here.end(leased)


@pytest.mark.parametrize("is_late", [True, False])
async def test_the_next_run_expires_chains_and_leaves_questions_to_the_owner(is_late: bool) -> None:
    store = Store()
    deadline = (await store.read(CHAT)).now + (-1 if is_late else 1)
    chain = (ChainLink(approvers=("max",), deadline_s=1),)
    await store.add(record(state=State.IN_CHAIN, chain=chain, deadline=deadline))
    await store.add(record("2", deadline=deadline))
    here = worker(store)
    leased = await begun(here)
    states = [found.state for found in leased.records.values()]
    assert states == [State.EXPIRED if is_late else State.IN_CHAIN, State.PENDING]
    assert not leased.delivered
    await here.end(leased)
