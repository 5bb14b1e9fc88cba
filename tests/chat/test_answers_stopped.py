"""Answers and what cuts them short: stops, readers who leave, tools that are gone. Nothing stays behind."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from adk_stream_protocol.adk.request import request_run
from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from support.conversations import Endless, until
from support.pages import Clock, Page, Slow, Till, page, results_told

CHAT = ChatKey("helper", "ann", "c1")


# -- stops ------------------------------------------------------------------------------------------------------------


async def test_a_stop_while_nothing_runs_leaves_an_approval_pending() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        assert await at.chat.stop() == 204
        assert (await at.chat.request("GET", "/stream")).status_code == 204
        await at.is_what_a_reload_shows()
        at.decide("pay")
        assert (await at.answer()).text == "Paid."


async def test_a_stop_of_another_turn_leaves_an_approval_pending() -> None:
    till, tool = Till(), Endless()
    script = [call("pay", amount=5)], [call("endless")], "Paid."
    async with page(*script, tools=(till.gated, tool.endless)) as at:
        await at.say("Pay.")
        other_turn = asyncio.create_task(at.say("Work."))
        await tool.started.wait()
        await at.chat.stop()
        await other_turn
        assert at.states("pay") == ["approval-requested"]
        await at.is_what_a_reload_shows()
        at.decide("pay")
        assert (await at.answer(0)).text == "Paid."
        assert till.paid == [5]


async def test_a_stop_while_one_of_two_approved_calls_runs_leaves_the_other_one_pending() -> None:
    """The stop ends what runs; what nobody has decided yet is not its business."""
    tool, till, store = Endless(), Till(), MemoryStore()
    gated = FunctionTool(tool.endless, require_confirmation=True)
    async with page([call("endless"), call("pay", amount=5)], "Done.", tools=(gated, till.gated), record=store) as at:
        await at.say("Go.")
        at.decide("endless")
        answer = asyncio.create_task(at.answer())
        await tool.started.wait()
        await at.chat.stop()
        assert (await answer).types[-1] == "abort"
        assert at.states() == ["output-error", "approval-requested"]
        await at.is_what_a_reload_shows()
        assert [approval.state for approval in (await store.read(CHAT)).records] == [State.UNKNOWN, State.PENDING]
        at.decide("pay")
        assert (await at.answer()).text == "Done."
        assert till.paid == [5]


async def stopped(at: Page, tool: Endless) -> None:
    """A call that was approved, and stopped while it ran."""
    await at.say("Go.")
    at.decide("endless")
    answer = asyncio.create_task(at.answer())
    await tool.started.wait()
    await at.chat.stop()
    await answer
    await until(lambda: tool.was_cancelled)
    assert at.states() == ["output-error"]


async def test_a_stopped_continuation_is_the_same_after_a_reload() -> None:
    tool = Endless()
    gated = FunctionTool(tool.endless, require_confirmation=True)
    async with page([call("endless")], tools=(gated,)) as at:
        await stopped(at, tool)
        await at.is_what_a_reload_shows()
        assert (await at.chat.chats())[0]["waiting"] is False


@pytest.mark.parametrize("grace_s", [5, 0], ids=["in time", "after the run was given up"])
async def test_the_model_hears_of_a_call_that_was_stopped_with_the_users_next_words(
    grace_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_run, "STOP_GRACE_S", grace_s)

    tool = Endless()
    gated = FunctionTool(tool.endless, require_confirmation=True)
    async with page([call("endless")], "Who knows.", tools=(gated,)) as at:
        await stopped(at, tool)
        assert (await at.say("What now?")).text == "Who knows."
        (told,) = results_told(at.chat.model)
        assert "Whether it took effect is unknown" in told["error"]
        (_, message, _, _) = await at.chat.messages()
        assert [part["state"] for part in message["parts"] if "toolCallId" in part] == ["output-error"]


async def test_a_reader_who_leaves_does_not_stop_the_payment() -> None:
    slow = Slow()
    model = ScriptedModel([[call("pay", amount=5)], "Paid."])
    async with page(agent=LlmAgent(name="helper", model=model, tools=[slow.gated])) as at:
        await at.say("Pay.")
        at.decide("pay")
        answer = asyncio.create_task(at.answer())
        await slow.started.wait()
        answer.cancel()
        slow.go_on.set()
        await until(lambda: not at.chat.is_running)
        assert results_told(model) == [{"paid": 5}]
        (_, told) = await at.chat.messages()
        assert told["parts"][-1]["text"] == "Paid."


# -- what is left behind ----------------------------------------------------------------------------------------------


async def test_an_answered_call_leaves_no_lease_behind() -> None:
    till, store = Till(), MemoryStore()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        await at.answer()
        lease = (await store.acquire(CHAT, 10)).lease
        assert lease is not None
        await store.release(lease)
        assert await store.abandoned(-1) == []


async def test_an_approved_call_that_adk_cannot_take_up_does_not_fill_the_session_for_ever() -> None:
    """The tool is gone with a new release, say. Recovery looks for such calls every few seconds."""
    till, clock = Till(), Clock()
    async with page([call("pay", amount=5)], tools=(till.gated,), record=MemoryStore(clock=clock)) as at:
        await at.say("Pay.")
        at.chat.runner.agent.tools = []  # pyright: ignore
        at.decide("pay")
        assert (await at.answer()).types[-1] == "error"
        sizes: list[int] = []
        for _ in range(6):
            clock.now += 3600
            await at.chat.bridge.recover()
            await until(lambda: not at.chat.is_running)
            session = await at.chat.session()
            sizes.append(len(session.events if session else ()))
        assert sizes[2:] == [sizes[2]] * 4
        assert till.paid == []


async def test_a_call_that_the_client_was_told_has_failed_is_not_run_behind_its_back() -> None:
    """The server of the tool was down, say, when the person agreed, and comes back an hour later."""
    till, clock = Till(), Clock()
    async with page([call("pay", amount=5)], "No.", tools=(till.gated,), record=MemoryStore(clock=clock)) as at:
        await at.say("Pay.")
        helper: Any = at.chat.runner.agent
        tools, helper.tools = helper.tools, []
        at.decide("pay")
        assert (await at.answer()).types[-1] == "error"
        assert at.states() == ["output-error"]
        helper.tools = tools
        clock.now += 3600
        await at.chat.bridge.recover()
        await until(lambda: not at.chat.is_running)
        assert till.paid == []
        await at.say("What happened?")
        assert "requires confirmation" not in str(results_told(at.chat.model))
        assert till.paid == []
