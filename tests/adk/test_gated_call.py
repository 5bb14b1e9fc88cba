"""One call from its approval to its end: what is written down, what the run knows of it, and what ADK is told."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from adk_stream_protocol.adk.calls.outcomes import OUTCOME_UNKNOWN
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import State
from support.gated_calls import KEY, PAY, Gate, logged, stopped_while_the_store_is_busy
from support.records import CHAT

pytestmark = pytest.mark.virtual_time

NOT_APPROVED = {"error": "This call was not run: nobody has approved it."}
ELSEWHERE = {"error": "This call was not run: another run has taken it up."}
DENIED = {"error": "This call was not run: the user denied it."}
UNKNOWN = {
    "error": "The server stopped while this call was running. Whether it took effect is unknown; it was not run again."
}


# -- the run ----------------------------------------------------------------------------------------------------------


async def test_an_approved_call_may_run_once() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    assert not call.is_started
    gate.store.reads = 0
    gate.store.clock.now += 29
    assert await call.take_up(PAY) is None
    assert call.is_started
    assert gate.store.reads == 0
    assert call.record == await gate.stored()
    assert (await gate.stored()).lease_token == gate.leased.lease.token
    assert [entry.state for entry in (await gate.store.audit(CHAT))[-2:]] == ["claimed", "started"]
    assert gate.leased.at_work == gate.leased.unstored == {KEY}
    gate.store.clock.now += 29
    assert await gate.store.renew(gate.leased.lease, 1)
    again = gate.call()
    assert await again.take_up(PAY) == UNKNOWN
    assert not again.is_started


async def test_taking_a_call_up_renews_the_lease() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.store.clock.now += 31
    assert await call.take_up(PAY) is None
    gate.store.clock.now += 29
    assert (await gate.store.acquire(CHAT, 30)).lease is None


async def test_what_nobody_has_approved_does_not_run() -> None:
    gate = await Gate.opened()
    call = gate.call()
    assert await call.take_up(PAY) == NOT_APPROVED
    await call.ask(hint=None, approval_id=None)
    assert await call.take_up(PAY) == NOT_APPROVED
    approved = await gate.change(state=State.APPROVED, approved=True)
    assert await call.take_up({"amount": 6}) == NOT_APPROVED
    assert call.record == approved
    assert not gate.leased.at_work
    assert not call.is_started
    assert await call.take_up(PAY) is None


async def test_a_decision_that_came_in_elsewhere_is_read() -> None:
    gate = await Gate.opened()
    call = gate.call()
    await call.ask(hint=None, approval_id=None)
    await gate.change(state=State.APPROVED, approved=True)
    assert await call.take_up(PAY) is None


async def test_a_call_that_is_gone_is_forgotten() -> None:
    gate = await Gate.opened()
    call = gate.call()
    await call.ask(hint=None, approval_id=None)
    await gate.store.forget(gate.leased.lease)
    assert await call.take_up(PAY) == NOT_APPROVED
    assert gate.leased.records == {}


async def test_a_call_that_has_ended_is_told_and_does_not_run() -> None:
    gate = await Gate.opened()
    call = gate.call()
    await call.ask(hint=None, approval_id=None)
    await gate.change(state=State.DENIED, approved=False)
    assert await call.take_up(PAY) == DENIED
    gate.store.reads = 0
    assert await call.take_up(PAY) == DENIED
    assert gate.store.reads == 0
    assert not gate.leased.at_work
    assert not gate.leased.unstored


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"state": State.DONE, "result": {"response": {"paid": 5}, "state": {}}}, {"paid": 5}),
        ({"state": State.STARTED, "lease_token": "other"}, UNKNOWN),
        ({"state": State.CLAIMED, "lease_token": "other"}, ELSEWHERE),
    ],
    ids=["ended", "started", "claimed"],
)
async def test_a_call_that_another_run_has_is_told_as_it_stands(change: dict[str, Any], told: dict[str, Any]) -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    moved = await gate.change(**change)
    assert await call.take_up(PAY) == told
    assert call.record == moved
    assert not gate.leased.at_work
    assert not gate.leased.unstored
    assert not call.is_started


async def test_a_call_of_a_chat_that_is_deleted_or_held_elsewhere_does_not_run() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.store.clock.now += 31
    other = (await gate.store.acquire(CHAT, 30)).lease
    assert other is not None
    assert await call.take_up(PAY) == ELSEWHERE
    assert (await gate.stored()).state is State.APPROVED
    await gate.store.forget(other)
    assert await call.take_up(PAY) == ELSEWHERE
    assert gate.leased.records == {}


async def test_a_store_that_fails_at_the_start_leaves_nothing_at_work() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.store.failures = [StoreUnavailable()]
    with pytest.raises(StoreUnavailable):
        await call.take_up(PAY)
    assert not gate.leased.at_work
    assert not gate.leased.unstored
    assert (await gate.stored()).state is State.APPROVED
    assert call.record == await gate.stored()


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
async def test_a_start_whose_news_were_lost_is_unknown_and_one_that_was_not_stored_is_tried_again(
    is_stored: bool,
) -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.store.failures, gate.store.fails_late = [StoreUnavailable()], is_stored
    with pytest.raises(StoreUnavailable):
        await call.take_up(PAY)
    told = await call.take_up(PAY)
    assert told == ({"error": OUTCOME_UNKNOWN} if is_stored else None)
    assert (await gate.stored()).state is (State.UNKNOWN if is_stored else State.STARTED)
    assert call.is_started is not is_stored


async def test_a_start_of_this_run_that_this_call_has_not_tried_is_left_to_whoever_made_it() -> None:
    gate = await Gate.opened()
    await gate.started()
    assert await gate.call().take_up(PAY) == {"error": OUTCOME_UNKNOWN}
    assert (await gate.stored()).state is State.STARTED


async def test_a_start_of_another_run_is_left_to_that() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.store.failures = [StoreUnavailable()]
    with pytest.raises(StoreUnavailable):
        await call.take_up(PAY)
    await gate.change(state=State.STARTED, lease_token="another")
    assert await call.take_up(PAY) == {"error": OUTCOME_UNKNOWN}
    assert (await gate.stored()).state is State.STARTED


async def test_a_call_that_is_stopped_while_its_start_is_written_has_not_run() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.store.is_free.clear()
    task = asyncio.create_task(call.take_up(PAY))
    await asyncio.sleep(0.1)
    assert gate.leased.at_work == gate.leased.unstored == {KEY}
    task.cancel()
    gate.store.is_free.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not gate.leased.at_work
    assert not gate.leased.unstored
    assert not call.is_started
    stored = await gate.stored()
    told = {"error": "This call was not run: it was stopped before it began."}
    assert (stored.state, stored.result) == (State.FAILED, {"response": told, "state": {}})
    assert call.record == stored


# -- the result -------------------------------------------------------------------------------------------------------


async def test_a_result_is_written_down_as_json() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    assert await call.finish({"paid": (5,)}, {"total": 5}) is None
    stored = await gate.stored()
    assert (stored.state, stored.result) == (State.DONE, {"response": {"paid": [5]}, "state": {"total": 5}})
    assert call.record == stored
    assert not call.is_started


def nested(depth: int) -> dict[str, Any]:
    return {"in": nested(depth - 1)} if depth else {}


async def test_a_deep_result_is_written_down_as_it_is() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    assert await call.finish(nested(150), {}) is None
    assert (await gate.stored()).result == {"response": nested(150), "state": {}}


@pytest.mark.parametrize("result", [{1: 2}, nested(300)], ids=["keys that are no texts", "too deep"])
async def test_adk_gets_what_is_recorded_of_a_result_that_it_cannot_store(result: dict[Any, Any]) -> None:
    gate = await Gate.opened()
    call = await gate.started()
    told = await call.finish(result, {})
    assert told == (await gate.stored()).result["response"] != result
    assert json.dumps(told).count("{") <= 101


async def test_a_failure_is_written_down() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    assert await call.fail("No.", {"total": 5}) is None
    stored = await gate.stored()
    assert (stored.state, stored.result) == (State.FAILED, {"response": {"error": "No."}, "state": {"total": 5}})
    assert call.record == stored


async def test_what_was_cancelled_half_way_is_unknown() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    await call.lose()
    assert (await gate.stored()).state is State.UNKNOWN
    assert call.record == await gate.stored()
    assert not call.is_started


@pytest.mark.parametrize("end", ["finish", "fail", "lose"])
async def test_a_stop_waits_until_the_end_is_written(end: str) -> None:
    gate = await Gate.opened()
    call = await gate.started()
    work = {"finish": lambda: call.finish({}, {}), "fail": lambda: call.fail("No.", {}), "lose": call.lose}[end]()
    await stopped_while_the_store_is_busy(gate, work)
    assert (await gate.stored()).is_final
    assert call.record == await gate.stored()


async def test_what_is_recorded_counts_and_is_told() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    moved = await gate.change(state=State.DONE, result={"response": {"paid": 6}, "state": {}})
    assert await call.finish({"paid": 5}, {}) == {"paid": 6}
    assert call.record == moved


async def test_the_end_of_a_call_whose_chat_is_deleted_is_unknown() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    await gate.store.forget(gate.leased.lease)
    began = asyncio.get_running_loop().time()
    assert await call.finish({"paid": 5}, {}) == UNKNOWN
    assert gate.leased.records == {}
    assert asyncio.get_running_loop().time() == began


async def test_the_end_of_a_call_that_another_run_has_is_unknown_here() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    moved = await gate.change(lease_token="other")
    gate.store.reads = 0
    assert await call.finish({"paid": 5}, {}) == UNKNOWN
    assert gate.store.reads == 2
    assert call.record == msgspec.structs.replace(moved, state=State.UNKNOWN)
    assert (await gate.stored()).state is State.STARTED


async def test_a_result_is_written_again_until_the_store_is_back(caplog: pytest.LogCaptureFixture) -> None:
    gate = await Gate.opened()
    call = await gate.started()
    gate.store.failures = [ValueError(), StoreUnavailable(), ValueError(), ValueError(), ValueError()]
    began = asyncio.get_running_loop().time()
    assert await call.finish({"paid": 5}, {}) is None
    assert asyncio.get_running_loop().time() - began == pytest.approx(3.75)
    assert (await gate.stored()).state is State.DONE
    failed = ["ValueError", "StoreUnavailable", "ValueError", "ValueError", "ValueError"]
    assert logged(caplog) == [f"the end of call 1 was not recorded: {name}" for name in failed]


async def test_a_result_that_cannot_be_written_is_unknown_to_everybody() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    gate.store.failures = [ValueError()] * 6
    began = asyncio.get_running_loop().time()
    assert await call.finish({"paid": 5}, {}) == UNKNOWN
    assert asyncio.get_running_loop().time() - began == pytest.approx(3.75)
    assert gate.store.failures == []
    assert call.record == msgspec.structs.replace(await gate.stored(), state=State.UNKNOWN)


async def test_the_end_of_a_call_without_a_record_is_unknown() -> None:
    gate = await Gate.opened()
    call = gate.call()
    gate.store.is_failing_reads = True
    assert await call.finish({"paid": 5}, {}) == UNKNOWN
    assert gate.leased.records == {}


async def test_a_first_attempt_to_end_a_call_needs_no_look_into_the_store() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    gate.store.reads = 0
    await call.finish({"paid": 5}, {})
    assert gate.store.reads == 0
    assert (await gate.stored()).state is State.DONE


async def test_a_result_that_was_not_read_is_read_when_the_call_comes_again() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    await call.finish({"paid": 5}, {})
    record = gate.leased.records[KEY]
    gate.leased.records[KEY] = msgspec.structs.replace(record, result=None)
    assert await gate.call().take_up(PAY) == {"paid": 5}


async def test_no_nul_character_is_recorded() -> None:
    gate = await Gate.opened()
    call = await gate.started()
    await call.finish({"note": "a\0b"}, {})
    assert "\0" not in str((await gate.stored()).result)
    assert "\\x00" not in repr((await gate.stored()).result)
