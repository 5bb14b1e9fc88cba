"""The records of work that goes on after a long-running tool has returned."""

from typing import Any

import pytest
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from adk_stream_protocol import call_ref
from adk_stream_protocol.adk.calls.live_observer import NestedCall
from adk_stream_protocol.adk.calls.long_running import (
    STILL_AT_WORK,
    find_work,
    has_ended,
    has_ref,
    open_work,
    work_record,
)
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_keys import CallKey, work_key
from adk_stream_protocol.protocol.call_record import CallRecord, State
from support.at_the_gate import AtTheGate
from support.gated_calls import KEY, PAY, Gate, logged, stopped_while_the_store_is_busy
from support.records import CHAT
from support.session_events import calling, chat_with, empty_chat, pay


def work(**fields: Any) -> CallRecord:
    about: dict[str, Any] = {"tool": "pay", "arguments": PAY, "asked_at": 0.0, "delivered": False, **fields}
    return CallRecord(chat=CHAT, call=work_key(KEY), executor="browser", state=State.APPROVED, **about)


def test_work_is_nobodys_to_answer_and_not_delivered() -> None:
    assert work_record(CHAT, KEY, "pay", PAY) == work()


async def test_a_call_has_a_name_once_somebody_took_it() -> None:
    at = await AtTheGate.opened()
    assert not has_ref(at.tool_context)
    call_ref(at.tool_context)
    assert has_ref(at.tool_context)


# -- the first word ---------------------------------------------------------------------------------------------------


async def test_work_is_recorded_with_what_was_chosen_for_its_turn() -> None:
    gate = await Gate.opened()
    await open_work(gate.call())
    expected = work(asked_at=gate.store.clock.now, message_id="m1", prepared={"model": "large"})
    assert await gate.stored() == expected == gate.leased.records[work_key(KEY)]


async def test_work_of_an_agent_that_runs_as_a_tool_is_not_recorded() -> None:
    gate = await Gate.opened()
    call = gate.call()
    call.nested_in = NestedCall(None, "cashier", frozenset())
    await open_work(call)
    assert (await gate.store.read(CHAT)).records == []


async def test_work_that_is_recorded_already_stays_as_it_is() -> None:
    gate = await Gate.opened()
    await gate.store.add(work(arguments={}))
    await open_work(gate.call())
    assert await gate.stored() == work(arguments={})
    assert gate.leased.records == {}


async def test_work_is_recorded_though_its_run_is_stopped_meanwhile() -> None:
    gate = await Gate.opened()
    await stopped_while_the_store_is_busy(gate, open_work(gate.call()))
    assert (await gate.stored()).call == work_key(KEY)


def test_the_model_is_told_that_work_goes_on() -> None:
    assert STILL_AT_WORK == {"status": "pending"}


@pytest.mark.parametrize("fails", ["read", "add"])
async def test_work_is_recorded_with_its_end_if_the_store_is_down(fails: str, caplog: pytest.LogCaptureFixture) -> None:
    gate = await Gate.opened()
    gate.store.is_failing_reads = fails == "read"
    gate.store.failures = [StoreUnavailable()]
    await open_work(gate.call())
    assert logged(caplog) == ["the store is down: the work of call 1 is recorded with its end"]
    assert gate.leased.records == {}


async def test_work_has_ended_when_the_application_has_said_so() -> None:
    gate = await Gate.opened()
    call = gate.call()
    assert await has_ended(call) is False
    await gate.store.add(work())
    assert await has_ended(call) is False
    assert await gate.store.compare_and_set(work(), call_record.complete(work(), result={"output": 5}))
    assert await has_ended(call) is True


# -- an end that comes first ------------------------------------------------------------------------------------------


async def found(*events: Event) -> CallRecord | None:
    return await find_work(await chat_with(*events), KEY)


def long_running(*calls: types.FunctionCall, **fields: Any) -> Event:
    return calling(*calls, **{"long_running_tool_ids": {"1"}, **fields})


async def test_work_is_found_by_the_call_that_began_it() -> None:
    made = long_running(pay("2"), pay("1", "first"), pay("1", "second"))
    assert await found(made) == work(tool="first", asked_at=made.timestamp, message_id="m1")
    bare = long_running(types.FunctionCall(id="1"), in_message=None)
    assert await found(bare) == work(tool="", arguments={}, asked_at=bare.timestamp, message_id="msg-i1")


@pytest.mark.parametrize(
    "other",
    [
        long_running(pay("1"), invocation_id="i2"),
        long_running(pay("1"), long_running_tool_ids={"2"}),
        long_running(pay("1"), long_running_tool_ids=None),
        long_running(pay("2")),
        *(long_running(pay("1", f"adk_request_{question}")) for question in ("confirmation", "credential", "input")),
    ],
)
async def test_other_calls_began_no_work_and_are_passed_over(other: Event) -> None:
    assert await found(other) is None
    made = long_running(pay("1"))
    assert await found(other, made) == work(asked_at=made.timestamp, message_id="m1")


async def test_a_call_that_a_rewind_took_back_began_no_work() -> None:
    back = Event(author="user", invocation_id="i2", actions=EventActions(rewind_before_invocation_id="i1"))
    assert await found(long_running(pay("1")), back) is None


async def test_a_chat_without_a_session_has_no_work() -> None:
    assert await find_work(empty_chat(), CallKey("i1", "1")) is None
