"""The steps of the gate that both modes share, one by one."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation

from adk_stream_protocol.adk.calls.gate_steps import (
    divert_question,
    record_failure,
    refuse_after,
    run_by_policy,
    take_up,
    wait_if_run_is_ending,
)
from adk_stream_protocol.adk.calls.gated_call import ELSEWHERE, NOT_APPROVED, STORE_DOWN
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallKey, State
from support.gated_calls import PAY, Gate, logged
from support.records import CHAT

pytestmark = pytest.mark.virtual_time

FAILED = {"error": "The tool pay failed."}
UNKNOWN = {
    "error": "The server stopped while this call was running. Whether it took effect is unknown; it was not run again."
}


async def test_a_run_that_is_about_to_end_begins_no_tool() -> None:
    gate = await Gate.opened()
    await wait_if_run_is_ending(gate.leased)
    gate.leased.begins_nothing = True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wait_if_run_is_ending(gate.leased), 3600)


async def test_what_the_policy_waives_runs_as_if_somebody_had_confirmed_it() -> None:
    for payload in ({}, {"payload": {"to": "Bob"}}):
        gate, context = await Gate.opened(), Context()
        assert await run_by_policy(gate.call(), PAY, context, **payload) is None  # pyright: ignore[reportArgumentType]
        assert context.tool_confirmation == ToolConfirmation(confirmed=True, payload=payload.get("payload"))
        stored = await gate.stored()
        assert (stored.state, stored.decided_by) == (State.STARTED, "by policy")


async def test_what_the_policy_waives_does_not_run_if_that_cannot_be_recorded() -> None:
    gate, context = await Gate.opened(), Context()
    gate.store.failures = [StoreUnavailable()]
    refused = await run_by_policy(gate.call(), PAY, context)  # pyright: ignore[reportArgumentType]
    assert refused == {"error": STORE_DOWN}
    assert (context.tool_confirmation, gate.leased.records) == (None, {})


@pytest.mark.parametrize("error", [StoreUnavailable(), ConnectionError()], ids=["as promised", "otherwise"])
async def test_a_live_call_that_is_approved_begins_when_the_store_is_back(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.leased.observer = gate.leased.live_observer = any_observer()
    gate.store.failures = [error, error]
    began = asyncio.get_running_loop().time()
    assert await take_up(call, PAY, Context()) is None  # pyright: ignore[reportArgumentType]
    assert asyncio.get_running_loop().time() - began == pytest.approx(0.25)
    assert ((await gate.stored()).state, call.is_started) == (State.STARTED, True)
    assert logged(caplog) == [f"call 1 is approved, and cannot begin: {type(error).__name__}"] * 2
    assert gate.leased.not_run == set()


@pytest.mark.parametrize("failures", [5, 6])
async def test_a_live_call_that_is_approved_is_told_as_not_run_if_the_store_does_not_come_back(failures: int) -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.leased.observer = gate.leased.live_observer = any_observer()
    gate.store.failures = [StoreUnavailable()] * failures
    taking_up = asyncio.create_task(take_up(call, PAY, Context()))  # pyright: ignore[reportArgumentType]
    await asyncio.wait([taking_up])
    assert isinstance(taking_up.exception(), StoreUnavailable) is (failures == 6)
    assert gate.leased.not_run == ({call.key} if failures == 6 else set())


async def test_a_live_call_that_is_approved_does_not_begin_when_its_run_ends_before_the_store_is_back() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.leased.observer = gate.leased.live_observer = any_observer()
    gate.store.failures, gate.leased.begins_nothing = [StoreUnavailable()], True
    taking_up = asyncio.create_task(take_up(call, PAY, Context()))  # pyright: ignore[reportArgumentType]
    await asyncio.sleep(3600)
    taking_up.cancel()
    await asyncio.wait([taking_up])
    assert ((await gate.stored()).state, gate.leased.at_work) == (State.APPROVED, set())


@pytest.mark.parametrize(
    ("change", "has_lease", "told"),
    [
        ({"state": State.CLAIMED, "lease_token": "other"}, True, {"error": ELSEWHERE}),
        ({"state": State.CLAIMED, "lease_token": "other"}, False, None),
        ({"state": State.STARTED, "lease_token": "other"}, True, UNKNOWN),
        ({"state": State.STARTED, "lease_token": "other"}, False, UNKNOWN),
    ],
)
async def test_a_live_call_that_another_run_has_taken_is_left_to_whoever_has_the_lease(
    change: dict[str, Any], has_lease: bool, told: Any
) -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.leased.observer = gate.leased.live_observer = any_observer()
    await gate.change(**change)
    if not has_lease:
        gate.store.clock.now += 31
        assert (await gate.store.acquire(CHAT, 30)).lease is not None
    taking_up = asyncio.create_task(take_up(call, PAY, Context()))  # pyright: ignore[reportArgumentType]
    await asyncio.wait([taking_up], timeout=3600)
    assert (taking_up.result() if taking_up.done() else None) == told
    taking_up.cancel()


@pytest.mark.parametrize("is_live", [False, True], ids=["request mode", "live mode"])
@pytest.mark.parametrize("error", [StoreUnavailable(), ConnectionError()], ids=["as promised", "otherwise"])
async def test_a_live_model_is_told_whatever_fails_before_its_tool_runs(
    error: Exception, is_live: bool, caplog: pytest.LogCaptureFixture
) -> None:
    gate = await Gate.opened()
    gate.leased.observer = gate.leased.live_observer = any_observer() if is_live else None
    is_down = isinstance(error, StoreUnavailable)
    if not is_live and not is_down:
        with pytest.raises(ConnectionError):
            refuse_after(error, gate.call())
        return
    assert refuse_after(error, gate.call()) == {"error": STORE_DOWN}
    assert logged(caplog) == [f"{'the store is down' if is_down else 'ConnectionError'}: call 1 was not run"]


async def test_in_request_mode_a_call_does_not_wait_for_the_store() -> None:
    gate = await Gate.opened()
    call = await gate.approved()
    gate.store.failures = [StoreUnavailable()]
    with pytest.raises(StoreUnavailable):
        await take_up(call, PAY, Context())  # pyright: ignore[reportArgumentType]
    assert gate.leased.not_run == {call.key}


async def test_what_the_policy_waives_does_not_run_with_other_arguments() -> None:
    gate, context = await Gate.opened(), Context()
    refused = await run_by_policy(gate.call(), {"amount": 6}, context)  # pyright: ignore[reportArgumentType]
    assert refused == {"error": NOT_APPROVED}
    assert context.tool_confirmation is None
    assert (await gate.stored()).state is State.APPROVED


@pytest.mark.parametrize("error", [ValueError(), asyncio.CancelledError()], ids=["failed", "cancelled"])
async def test_nobody_waits_for_a_tool_that_has_raised(error: BaseException) -> None:
    gate = await Gate.opened()
    call = await gate.started()
    assert gate.leased.at_work == {call.key}
    await record_failure(call, error)
    assert gate.leased.at_work == set()
    assert (await gate.stored()).state is (State.FAILED if isinstance(error, ValueError) else State.UNKNOWN)


@pytest.mark.parametrize("is_live", [False, True], ids=["request mode", "live mode"])
async def test_the_model_is_told_of_a_failure_what_is_recorded(is_live: bool, caplog: pytest.LogCaptureFixture) -> None:
    gate = await Gate.opened()
    gate.leased.observer = gate.leased.live_observer = any_observer() if is_live else None
    # In request mode ADK gives the error to the application's callbacks first.
    assert await record_failure(await gate.started(), ValueError()) == (FAILED if is_live else None)
    assert (await gate.stored()).result == {"response": FAILED, "state": {}}
    assert logged(caplog) == (["tool pay failed in a live session: ValueError"] if is_live else [])


@pytest.mark.parametrize("is_live", [False, True], ids=["request mode", "live mode"])
async def test_the_outcome_of_a_failed_tool_in_a_chat_that_is_gone_is_unknown(is_live: bool) -> None:
    gate = await Gate.opened()
    gate.leased.observer = gate.leased.live_observer = any_observer() if is_live else None
    call = await gate.started()
    await gate.store.forget(gate.leased.lease)
    assert await record_failure(call, ValueError()) == UNKNOWN


@pytest.mark.parametrize(
    ("asked", "hint", "payload"),
    [({}, "", None), ({"hint": "Sure?"}, "Sure?", None), ({"payload": {"to": ""}}, "", {"to": ""})],
)
async def test_what_a_tool_in_a_node_asks_by_itself_is_asked_by_the_gate(asked: Any, hint: str, payload: Any) -> None:
    gate, context = await Gate.opened(), Context(node=object())
    call = gate.call()
    divert_question(call, context)  # pyright: ignore[reportArgumentType]
    context.request_confirmation(**asked)
    assert call.diverted == ToolConfirmation(hint=hint, payload=payload)
    assert context.asked == []


async def test_what_another_tool_asks_is_asked_by_adk() -> None:
    gate, context = await Gate.opened(), Context()
    call = gate.call()
    divert_question(call, context)  # pyright: ignore[reportArgumentType]
    context.request_confirmation(hint="Sure?")
    assert (call.diverted, context.asked) == (None, [{"hint": "Sure?"}])


async def test_a_live_model_that_calls_no_tool_is_told_which_there_are() -> None:
    gate, told = await Gate.opened(), list[Any]()

    class Observer:
        def settled(self, call: CallKey, response: Any) -> None:
            told.append((call, response))

    observer: Any = Observer()
    gate.leased.observer = gate.leased.live_observer = observer
    call = gate.call()
    call.tool = BaseTool(name="fly", description="")
    response = await record_failure(call, ValueError("Tool 'fly' not found.\nAvailable tools: pay, think\nHints: none"))
    assert response == {"error": "There is no tool fly. The tools you can call are: pay, think."}
    assert told == [(call.key, response)]


class Context:
    """What these steps use of ADK's context of a tool."""

    tool_confirmation: ToolConfirmation | None = None

    def __init__(self, node: object = None) -> None:
        self.node = node
        self.asked: list[dict[str, Any]] = []

    def request_confirmation(self, **asked: Any) -> None:
        self.asked.append(asked)


def any_observer() -> Any:
    """Nothing is told to it here."""
    return object()
