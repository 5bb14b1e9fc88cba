"""What becomes of a chat's open calls when its lease is taken and when it is given back."""

import asyncio
from typing import Any

import pytest

from adk_stream_protocol.adk.calls.gated_call import STORE_DOWN
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from support.leases import LEASE_S, Store, approved, begun, ended, logged, worker
from support.records import CHAT, paid, record

pytestmark = pytest.mark.virtual_time

KEY = CallKey("i1", "1")
NOT_TAKEN_UP = "This call was not run: the server failed before it began."
TAKEN_BACK = "This call was not run: the user edited or regenerated the turn."


def said_of(found: CallRecord) -> Any:
    return found.result["response"]["error"] if found.result else found.reason


@pytest.mark.parametrize(
    ("left", "state"),
    [
        (approved(), State.FAILED),
        (record(state=State.CLAIMED, approved=True, lease_token="run-1"), State.FAILED),
        (record(state=State.STARTED, approved=True, lease_token="run-1"), State.STARTED),
        (approved(executor="browser"), State.APPROVED),
        (record(), State.PENDING),
    ],
)
async def test_nobody_does_later_what_a_run_should_have_done(left: CallRecord, state: State) -> None:
    store = Store()
    await store.add(left)
    here = worker(store)
    leased = await begun(here)
    await here.end_run(ended(leased, frozenset({CallKey("i1", "9"), KEY})))
    assert store.reads == 1
    found = await store.the_call()
    assert found.state is leased.records[KEY].state is state
    assert said_of(found) == (NOT_TAKEN_UP if state is State.FAILED else None)
    assert found.result is None or found.result["state"] == {}
    assert CHAT not in here


async def test_calls_that_are_left_to_the_next_holder_stay_as_they_are() -> None:
    store = Store()
    await store.add(approved())
    await store.add(record("2"))
    here = worker(store)
    leased = await begun(here)
    leased.leaves_calls = True
    leased.unasked.add(CallKey("i1", "2"))
    await here.end_run(ended(leased, frozenset({KEY})))
    assert [found.state for found in (await store.read(CHAT)).records] == [State.APPROVED, State.PENDING]
    assert CHAT not in here


async def test_a_run_that_has_ended_settles_nothing_any_more() -> None:
    store = Store()
    await store.add(approved())
    here = worker(store)
    first = await begun(here)
    await here.end(first)
    second = await begun(here)
    first.questions[CallKey("i1", "2")] = record("2")
    await here.end_run(ended(first, frozenset({KEY})))
    assert [found.state for found in (await store.read(CHAT)).records] == [State.APPROVED]
    await here.end(second)


async def test_what_was_recorded_and_never_asked_is_denied() -> None:
    store = Store()
    await store.add(record("1"))
    await store.add(record("2"))
    here = worker(store)
    leased = await begun(here)
    leased.unasked.add(KEY)
    await here.end_run(ended(leased, frozenset()))
    denied, asked = (await store.read(CHAT)).records
    assert (denied.state, denied.approved, denied.decided_by) == (State.DENIED, False, "ann")
    assert denied.reason == "the run ended before anybody was asked"
    assert leased.records[KEY].state is State.DENIED
    assert asked.state is State.PENDING


@pytest.mark.parametrize(
    ("left", "state", "reason", "result"),
    [
        (record(), State.DENIED, "the run ended before anybody was asked", None),
        (approved(), State.FAILED, None, {"response": {"error": STORE_DOWN}, "state": {}}),
        (paid(), State.DONE, None, paid().result),
    ],
    ids=["pending", "approved", "done"],
)
async def test_what_was_told_as_not_run_is_recorded_so_when_the_lease_is_given_back(
    left: CallRecord, state: State, reason: str | None, result: Any
) -> None:
    store = Store()
    await store.add(record("2"))
    await store.add(left)
    here = worker(store)
    leased = await begun(here)
    leased.not_run |= {KEY, CallKey("i1", "9")}
    await here.end(leased)
    other, found = (await store.read(CHAT)).records
    assert (found.state, leased.records[KEY].state, other.state) == (state, state, State.PENDING)
    assert (found.reason, found.result) == (reason, result)
    assert CHAT not in here


async def test_what_was_told_as_not_run_and_whose_start_was_recorded_all_the_same_has_not_run() -> None:
    store = Store()
    await store.add(approved())
    here = worker(store)
    leased = await begun(here)
    old = leased.records[KEY]
    claimed = call_record.claim(old, digest=old.digest, lease_token=leased.lease.token)
    assert await store.compare_and_set(old, call_record.start(claimed, lease_token=leased.lease.token))
    leased.not_run.add(KEY)
    await here.end(leased)
    found = await store.the_call()
    assert (found.state, said_of(found)) == (State.FAILED, STORE_DOWN)


async def test_calls_that_a_rewind_took_back_are_given_up() -> None:
    store = Store()
    await store.add(approved(call_id="1"))
    await store.add(approved(call_id="2"))
    here = worker(store)
    leased = await begun(here)
    await here.calls.take_back(leased, frozenset({KEY}))
    kept, gone = (await store.read(CHAT)).records
    assert (kept.state, gone.state, said_of(gone)) == (State.APPROVED, State.FAILED, TAKEN_BACK)
    assert gone.result == {"response": {"error": TAKEN_BACK}, "state": {}}
    await here.end(leased)


@pytest.mark.parametrize("left", [record(), record(executor="browser")], ids=["server", "browser"])
async def test_what_was_approved_before_it_is_taken_back_is_settled_as_the_store_has_it(left: CallRecord) -> None:
    store = Store()
    await store.add(left)
    here = worker(store)
    leased = await begun(here)
    assert await store.compare_and_set(left, call_record.decide(left, by="ann", approved=True, now=0))
    await here.calls.take_back(leased, frozenset())
    found = await store.the_call()
    assert leased.records[KEY] == found
    assert (found.approved, found.is_final, leased.delivered) == (True, True, {KEY})
    if left.executor == "server":
        assert (found.state, said_of(found)) == (State.FAILED, TAKEN_BACK)
    await here.end(leased)


async def test_a_call_that_cannot_be_settled_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    await store.add(approved())
    here = worker(store)
    leased = await begun(here)
    store.fails_at = {"set"}
    await here.end_run(ended(leased, frozenset({KEY})))
    assert CHAT not in here
    assert (await store.the_call()).state is State.APPROVED
    assert logged(caplog) == ["call 1 was not settled: ConnectionError"]


async def test_a_call_that_somebody_else_has_is_left_to_them(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    await store.add(approved())
    here, there = worker(store), worker(store)
    leased = await begun(here)
    store.fails_at = {"renew"}
    await asyncio.sleep(LEASE_S + 1)
    other = await begun(there)
    caplog.clear()
    await here.end_run(ended(leased, frozenset({KEY})))
    assert (await store.the_call()).state is State.APPROVED
    assert logged(caplog) == []
    await there.end(other)


async def test_what_waits_when_it_is_taken_back_is_refused_and_owed_to_nobody() -> None:
    store = Store()
    await store.add(record("1"))
    await store.add(record("2", state=State.STARTED, approved=True, lease_token="run-1"))
    here = worker(store)
    leased = await begun(here)
    leased.records[CallKey("i1", "3")] = paid("3", delivered=True)
    leased.records[CallKey("i1", "2")] = record("2", state=State.STARTED, approved=True, lease_token="run-1")
    await here.calls.take_back(leased, frozenset())
    refused = leased.records[KEY]
    assert (refused.state, refused.reason) == (State.DENIED, "the user edited or regenerated the turn")
    assert (await store.the_call()).state is State.DENIED
    assert leased.delivered == {KEY}
    await here.end(leased)


async def test_what_nodes_ask_is_recorded_when_their_run_ends() -> None:
    store = Store()
    here = worker(store)
    leased = await begun(here)
    leased.message_id, leased.prepared = "m1", {"send_nodes": True}
    leased.questions[KEY] = record(executor="browser", state=State.APPROVED)
    await here.end_run(ended(leased))
    found = await store.the_call()
    assert (found.message_id, found.prepared, found.delivered) == ("m1", {"send_nodes": True}, False)
    assert leased.records[KEY] == found


async def test_a_question_that_the_gate_has_recorded_is_left_as_it_is() -> None:
    store = Store()
    await store.add(record())
    here = worker(store)
    leased = await begun(here)
    recorded = leased.records[KEY]
    leased.questions[KEY] = record(executor="browser", state=State.APPROVED)
    await here.end_run(ended(leased))
    assert leased.records[KEY] is recorded


async def test_a_question_that_cannot_be_recorded_does_not_hold_up_the_end(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    here = worker(store)
    leased = await begun(here)
    leased.questions[KEY] = record(executor="browser", state=State.APPROVED)
    store.fails_at = {"add"}
    await here.end_run(ended(leased))
    assert CHAT not in here
    assert logged(caplog) == ["question 1 was not recorded: ConnectionError"]
