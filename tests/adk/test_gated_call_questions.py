"""What is written down when a person or a browser is asked about a call."""

import asyncio

import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.adk.calls.gated_call import to_its_end
from adk_stream_protocol.adk.calls.live_observer import NestedCall
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallRecord, State
from support.gated_calls import KEY, PAY, Gate, logged, stopped_while_the_store_is_busy
from support.records import CHAT

pytestmark = pytest.mark.virtual_time

DOWN = "This call was not run: approvals cannot be recorded right now."
SCHEMA = {"type": "object"}


async def test_a_question_is_written_down_as_a_person_will_see_it() -> None:
    gate = await Gate.opened()
    call = gate.call()
    assert call.record is None
    assert await call.ask(hint="Pay?", payload={"to": ""}, approval_id=None) is None
    now = gate.store.clock.now
    assert call.record is not None
    assert call.record.question_id is not None
    assert (
        call.record
        == await gate.stored()
        == CallRecord(
            question_id=call.record.question_id,
            chat=CHAT,
            call=KEY,
            tool="pay",
            arguments=PAY,
            executor="server",
            state=State.PENDING,
            asked_at=now,
            hint="Pay?",
            deadline=now + 100,
            message_id="m1",
            prepared={"model": "large"},
            asked_payload={"to": ""},
            delivered=False,
        )
    )
    assert call.record.delivered is False
    assert gate.leased.unasked == {KEY}


async def test_a_question_of_our_own_has_an_id_and_the_policys_hint() -> None:
    gate = await Gate.opened()
    call = gate.call(hints={"pay": "Really?"})
    assert await call.ask(hint="Pay?", approval_id="a1") is None
    stored = await gate.stored()
    assert (stored.approval_id, stored.hint, stored.asked_payload) == ("a1", "Really?", None)
    assert gate.leased.unasked == set()


async def test_a_browsers_call_has_its_time_from_now_on() -> None:
    gate = await Gate.opened()
    tool = client_tool("pay", "Pays.", output=SCHEMA)
    assert await gate.call(tool=tool).open_for_browser(tool, approval_id=None) is None
    stored, now = await gate.stored(), gate.store.clock.now
    assert (stored.executor, stored.state, stored.output_schema) == ("browser", State.APPROVED, SCHEMA)
    assert (stored.deadline, stored.browser_deadline, stored.approval_id) == (None, now + 10, None)
    assert gate.leased.unasked == set()


@pytest.mark.parametrize("hints", [{}, {"pay": "Really?"}])
async def test_a_browsers_call_that_is_to_be_approved_waits_for_the_person_first(hints: dict[str, str]) -> None:
    gate = await Gate.opened()
    tool = client_tool("pay", "Pays.", output=SCHEMA)
    assert await gate.call(tool=tool, hints=hints).open_for_browser(tool, approval_id="a1") is None
    stored, now = await gate.stored(), gate.store.clock.now
    assert (stored.executor, stored.state, stored.output_schema) == ("browser", State.PENDING, SCHEMA)
    assert (stored.deadline, stored.browser_deadline, stored.approval_id) == (now + 100, None, "a1")
    assert stored.hint == hints.get("pay")
    assert gate.leased.unasked == set()


async def test_what_is_left_to_others_has_no_deadline() -> None:
    gate = await Gate.opened()
    assert await gate.call().leave_to_client() is None
    stored = await gate.stored()
    assert (stored.executor, stored.state) == ("browser", State.APPROVED)
    assert (stored.deadline, stored.browser_deadline, stored.approval_id) == (None, None, None)


async def test_consent_has_the_time_that_an_approval_has() -> None:
    gate = await Gate.opened()
    call = gate.call()
    assert await call.ask_for_consent() is None
    stored = await gate.stored()
    assert (stored.executor, stored.state) == ("browser", State.APPROVED)
    assert (stored.browser_deadline, stored.deadline) == (stored.asked_at + call.policy.deadline_s, None)


async def test_what_cannot_be_shown_is_not_asked() -> None:
    gate = await Gate.opened()
    tool = client_tool("pay", "Pays.")
    infinite = gate.call({"amount": float("inf")})
    reason = "its arguments contain a number that is infinite or not a number"
    assert await infinite.ask(hint=None, approval_id=None) == f"This call was not run: {reason}."
    large = gate.call({"amount": 2**53 + 1}, tool)
    assert await large.open_for_browser(tool, approval_id=None) == (
        "This call was not run: a browser cannot read an integer above 2^53 exactly. Send it as a string."
    )
    assert gate.leased.records == {}


async def test_an_id_is_used_once() -> None:
    gate = await Gate.opened()
    assert await gate.call().ask(hint=None, approval_id=None) is None
    first = gate.leased.records[KEY]
    gate.leased.unasked.clear()
    refusal = await gate.call({"amount": 6}).ask(hint=None, approval_id=None)
    assert refusal == "This call was not run: an earlier call of this turn has the same id."
    assert gate.leased.records == {KEY: first}
    assert gate.leased.unasked == set()


@pytest.mark.parametrize("at", ["read", "add"])
async def test_what_cannot_be_written_is_not_asked(at: str, caplog: pytest.LogCaptureFixture) -> None:
    gate = await Gate.opened()
    gate.store.is_failing_reads, gate.store.failures = at == "read", [StoreUnavailable()]
    assert await gate.call().ask(hint=None, approval_id=None) == DOWN
    assert gate.leased.records == {}
    assert logged(caplog) == ["the store is down: call 1 of chat c1 was not run"]


async def test_a_stop_finds_what_is_written_and_what_is_known_the_same() -> None:
    gate = await Gate.opened()
    await stopped_while_the_store_is_busy(gate, gate.call().ask(hint=None, approval_id=None))
    assert gate.leased.records[KEY] == await gate.stored()


async def test_work_is_done_before_whoever_waits_for_it_leaves() -> None:
    async def work() -> int:
        await asyncio.sleep(1)
        done.append(1)
        return 5

    done: list[int] = []
    assert await to_its_end(work()) == 5
    task = asyncio.create_task(to_its_end(work()))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [1, 1]


async def test_a_payload_that_cannot_be_shown_exactly_is_not_asked_with() -> None:
    gate = await Gate.opened()
    reason = await gate.call().ask(hint=None, payload={"rate": float("nan")}, approval_id=None)
    assert reason is not None
    assert reason.startswith("This call was not run: ")
    assert gate.leased.records == {}


@pytest.mark.parametrize("is_nested", [True, False])
async def test_a_call_of_a_nested_agent_is_recorded_as_one(is_nested: bool) -> None:
    gate = await Gate.opened()
    call = gate.call()
    call.nested_in = NestedCall(None, "cashier", frozenset()) if is_nested else None
    assert await call.ask(hint=None, approval_id="a1") is None
    assert (await gate.stored()).is_nested is (True if is_nested else None)
