"""When things go wrong around a gated tool: the store is down, the tool raises, the run is stopped."""

import asyncio
import copy
from collections.abc import Sequence
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, Nobody, client_tool
from adk_stream_protocol.adk.calls import gated_call
from adk_stream_protocol.adk.request import request_run
from adk_stream_protocol.chat.leases import Change
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey, State
from adk_stream_protocol.store.base import Acquired, Lease, Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from support.conversations import Endless, asked_parts, until
from support.pages import Page, Till, page, results_told
from support.records import read_whole

CHAT = ChatKey("helper", "ann", "c1")
STORE_DOWN = "This call was not run: approvals cannot be recorded right now."
UNKNOWN = "The server stopped while this call was running. Whether it took effect is unknown; it was not run again."


def paying() -> list[types.Part]:
    return [call("pay", amount=5)]


class FragileStore(MemoryStore):
    """Fails at a call's next move into one of these states; at its question, if `pending` is among them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.fails_at: set[State] = set()

    async def add(self, approval: CallRecord) -> bool:
        self._fail(approval.state)
        return await super().add(approval)

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        for step in steps:
            self._fail(step.state)
        return await super().compare_and_set(old, *steps, lease=lease)

    async def acquire(self, chat: ChatKey, lasts_s: float, changes: Sequence[Change] = ()) -> Acquired:
        for _, new in changes:
            self._fail(new.state)
        return await super().acquire(chat, lasts_s, changes)

    async def read(self, chat: ChatKey, call: Any = None) -> Snapshot:
        if call is not None and self.fails_at == set(State):
            raise StoreUnavailable
        return await super().read(chat, call)

    def _fail(self, state: State) -> None:
        if state in self.fails_at:
            raise StoreUnavailable


async def states(store: MemoryStore, chat: ChatKey = CHAT) -> list[State]:
    return [approval.state for approval in (await store.read(chat)).records]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the gate tells whoever runs the server."""
    return [
        record.getMessage() for record in caplog.records if record.name.startswith("adk_stream_protocol.adk.calls.gate")
    ]


async def decides(at: Page, *, approved: bool = True) -> dict[str, Any]:
    """A person's decision; gives the request, so that it can be sent again."""
    at.decide("pay", approved=approved)
    return {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}


# -- the store is down ------------------------------------------------------------------------------------------------


def pay(amount: int) -> None:
    """Pays."""


@pytest.mark.parametrize(
    "tool",
    [
        FunctionTool(pay, require_confirmation=True),
        client_tool(pay, approve=True),
        client_tool(pay),
        LongRunningFunctionTool(pay),
    ],
    ids=["gated", "gated in the browser", "free in the browser", "long-running"],
)
async def test_what_cannot_be_recorded_is_not_asked(tool: Any) -> None:
    store = FragileStore()
    async with page(paying(), "Not now.", tools=(tool,), record=store) as at:
        store.fails_at = {State.PENDING, State.APPROVED}
        answer = await at.say("Pay.")
        assert answer.of_type("tool-approval-request") == []
        assert results_told(at.chat.model) == [{"error": STORE_DOWN}]
        assert at.states() == ["output-error"]
        await at.is_what_a_reload_shows()


async def test_a_tool_that_needs_no_approval_runs_without_the_store() -> None:
    till, store = Till(), FragileStore()
    async with page(paying(), "Paid.", tools=(till.pay,), record=store) as at:
        store.fails_at = set(State)
        assert (await at.say("Pay.")).text == "Paid."
        assert till.paid == [5]


async def test_a_decision_that_cannot_be_recorded_is_refused_and_can_be_sent_again() -> None:
    till, store = Till(), FragileStore()
    async with page(paying(), "Paid.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {State.APPROVED}
        request = await decides(at)
        refused = await at.chat.post(request)
        assert (refused.status, (refused.error or {})["code"]) == (503, "store-unavailable")
        assert await states(store) == [State.PENDING]
        assert till.paid == []
        store.fails_at = set()
        assert (await at.chat.post(request)).text == "Paid."
        assert till.paid == [5]


@pytest.mark.parametrize("step", [State.CLAIMED, State.STARTED])
async def test_an_approved_call_that_cannot_be_taken_up_does_not_run(
    step: State, caplog: pytest.LogCaptureFixture
) -> None:
    till, store = Till(), FragileStore()
    async with page(paying(), "Not now.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {step}
        await at.chat.post(await decides(at))
        assert till.paid == []
        assert results_told(at.chat.model) == [{"error": STORE_DOWN}]
        assert not await lingers(at)
        called = at.part("pay")["toolCallId"]
        assert logged(caplog) == [f"the store is down: call {called} was not run"]


class LateStore(MemoryStore):
    """Loses the connection after it has written the start of a call."""

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        is_set = await super().compare_and_set(old, *steps, lease=lease)
        if steps[-1].state is State.STARTED:
            raise StoreUnavailable
        return is_set


@pytest.mark.parametrize("decide", [None, lambda _: Nobody()], ids=["by its user", "by the policy"])
@pytest.mark.parametrize("kind", [FragileStore, LateStore], ids=["not written", "written all the same"])
async def test_an_approved_call_that_was_told_as_not_run_is_recorded_so(kind: type[MemoryStore], decide: Any) -> None:
    till, store = Till(), kind()
    if isinstance(store, FragileStore):
        store.fails_at = {State.STARTED}
    policy = ApprovalPolicy(decide=decide)
    async with page(paying(), "Not now.", tools=(till.gated,), record=store, approvals=policy) as at:
        await at.say("Pay.")
        if decide is None:
            at.decide("pay")
            await at.answer()
        assert results_told(at.chat.model) == [{"error": STORE_DOWN}]
        assert at.part("pay")["errorText"] == STORE_DOWN
        assert till.paid == []
        [found] = await read_whole(store, CHAT)
        assert (found.state, found.result["response"], found.delivered) == (State.FAILED, {"error": STORE_DOWN}, True)
        await at.is_what_a_reload_shows()


async def lingers(at: Page) -> bool:
    """Whether the chat still waits for its user."""
    return (await at.chat.chats())[0]["waiting"]


async def test_a_result_that_cannot_be_recorded_is_unknown_to_everybody_and_the_tool_never_runs_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gated_call, "RETRIES_S", (0,))

    till, store = Till(), FragileStore()
    async with page(paying(), "Who knows.", "Hello.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {State.DONE}
        at.decide("pay")
        assert (await at.answer()).text == "Who knows."
        assert results_told(at.chat.model) == [{"error": UNKNOWN}]
        assert at.states() == ["output-error"]
        called = at.part("pay")["toolCallId"]
        assert logged(caplog) == [f"the end of call {called} was not recorded: StoreUnavailable"] * 2
        store.fails_at = set()
        assert (await at.say("hi")).text == "Hello."
        assert await states(store) == [State.UNKNOWN]
        assert till.paid == [5]
        assert {"result": {"error": UNKNOWN}} in asked_parts(at.chat.model.requests[-1])
        await at.is_what_a_reload_shows()


async def test_a_result_is_written_again_after_a_failure_of_the_store() -> None:
    till, store = Till(), FragileStore()
    async with page(paying(), "Paid.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {State.DONE}
        at.decide("pay")
        answer = asyncio.create_task(at.answer())
        await until(lambda: bool(till.paid))
        store.fails_at = set()
        assert (await answer).text == "Paid."
        assert results_told(at.chat.model) == [{"paid": 5}]
        assert await states(store) == [State.DONE]


# -- tools that fail or are stopped -----------------------------------------------------------------------------------


async def test_a_tool_that_raises_has_failed_and_the_same_approval_never_runs_it_again() -> None:
    def fails(_: int) -> None:
        raise ConnectionError("SECRET host")

    till, store = Till(fails), MemoryStore()
    async with page(paying(), "It failed.", "As I said.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        request = await decides(at)
        failed = await at.chat.post(request)
        assert failed.types == ["start", "tool-output-error", "error"]
        assert await states(store) == [State.FAILED]
        again = await at.chat.post(request)
        assert [chunk["errorText"] for chunk in again.of_type("tool-output-error")] == ["The tool pay failed."]
        await at.say("What happened?")
        assert results_told(at.chat.model) == [{"error": "The tool pay failed."}]
        assert till.paid == [5]
        assert "SECRET" not in failed.raw + again.raw + str(await store.read(CHAT))


async def test_a_tool_that_raised_is_a_failed_call_after_a_reload_and_nobody_waits_for_it() -> None:
    def fails(_: int) -> None:
        raise ConnectionError

    till = Till(fails)
    async with page(paying(), "It failed.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert at.states() == ["output-error"]
        await at.is_what_a_reload_shows()
        assert not await lingers(at)


async def test_after_a_tool_raised_the_model_hears_of_it_with_the_users_next_words() -> None:
    def fails(_: int) -> None:
        raise ConnectionError

    till = Till(fails)
    async with page(paying(), "It had failed.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert (await at.say("What now?")).text == "It had failed."
        assert results_told(at.chat.model) == [{"error": "The tool pay failed."}]
        assert till.paid == [5]


async def test_a_failure_that_a_callback_answers_is_recorded_as_a_failure_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_: int) -> None:
        raise ConnectionError

    def answers(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
        return {"status": "try again tomorrow"}

    till, store, model = Till(fails), MemoryStore(), ScriptedModel([paying(), "Tomorrow."])
    agent = LlmAgent(name="helper", model=model, tools=[till.gated], on_tool_error_callback=answers)
    async with page(agent=agent, record=store) as at:
        await at.say("Pay.")
        assert (await at.chat.post(await decides(at))).text == "Tomorrow."
        assert results_told(model) == [{"status": "try again tomorrow"}]
        (recorded,) = await read_whole(store, CHAT)
        assert recorded.state is State.FAILED
        assert recorded.result == {"response": {"error": "The tool pay failed."}, "state": {}}
        assert logged(caplog) == []


@pytest.mark.parametrize("is_bridged", [True, False], ids=["in a chat", "in a run past the bridge"])
async def test_of_a_tool_that_needs_no_approval_no_failure_is_recorded(
    is_bridged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: int) -> None:
        raise ConnectionError

    till, store = Till(fails), MemoryStore()
    async with page(paying(), tools=(till.pay,), record=store) as at:
        if is_bridged:
            assert (await at.say("Pay.")).types[-1] == "error"
        else:
            words = types.Content(role="user", parts=[types.Part(text="Pay.")])
            with pytest.raises(ConnectionError):
                async for _ in at.chat.runner.run_async(user_id="ann", session_id="c1", new_message=words):
                    pass
        assert till.paid == [5]
        assert await states(store) == []
        assert logged(caplog) == []


@pytest.mark.parametrize("grace_s", [5, 0], ids=["in time", "after the run was given up"])
async def test_a_tool_that_is_stopped_has_an_unknown_outcome_and_never_runs_again(
    grace_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_run, "STOP_GRACE_S", grace_s)

    tool, store = Endless(), MemoryStore()
    gated = FunctionTool(tool.endless, require_confirmation=True)
    async with page([call("endless")], "Stopped.", tools=(gated,), record=store) as at:
        await at.say("Work.")
        at.decide("endless")
        request = {"id": "c1", "messages": copy.deepcopy(at.messages), "messageId": at.messages[-1]["id"]}
        answer = asyncio.create_task(at.chat.post(request))
        await tool.started.wait()
        await at.chat.stop()
        stopped = await answer
        assert stopped.types[-1] == "abort"
        await until(lambda: tool.was_cancelled)
        tool.started.clear()
        again = await at.chat.post(request)
        assert [chunk["errorText"] for chunk in again.of_type("tool-output-error")] == [UNKNOWN]
        assert await states(store) == [State.UNKNOWN]
        assert not tool.started.is_set()
        assert not await lingers(at)
