"""Remote agents behind an `AgentTool`, over A2A with a real server: what they ask waits inside the run."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from google.adk.tools import AgentTool

from adk.test_remote_calls import PAY, both_dialects, remote, states
from adk.test_remote_calls import pytestmark as pytestmark
from adk_stream_protocol import ApprovalPolicy, Nobody
from adk_stream_protocol.adk import versions
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from live.live_pages import live_page, told_results
from support import releases
from support.approvers import ended, in_chain, of, shown
from support.conversations import asked_parts, other_tasks
from support.pages import Slow, Till, page, results_told

SHOP = [call("cashier", request="Pay.")]


@asynccontextmanager
async def cashier(*script: Any, till: Till, use_legacy: bool = True) -> AsyncGenerator[tuple[AgentTool, ScriptedModel]]:
    from google.adk.agents.remote_a2a_agent import RemoteA2aAgent

    async with remote(*script, till=till) as (card, model), httpx.AsyncClient() as http:
        agent = RemoteA2aAgent(
            name="cashier", description="Pays.", agent_card=card, use_legacy=use_legacy, httpx_client=http
        )
        yield AgentTool(agent), model


@asynccontextmanager
async def shop(*script: Any, till: Till, is_live: bool) -> AsyncGenerator[tuple[Any, ScriptedModel]]:
    on_page: Any = live_page if is_live else page
    async with AsyncExitStack() as remotes:
        tool, model = await remotes.enter_async_context(cashier(*script, till=till))
        async with on_page(SHOP, "All done.", tools=(tool,)) as at:
            yield at, model
            await remotes.aclose()
            for task in other_tasks():
                if "_shutdown_watcher" in repr(task):  # of the remote server's: nothing may be left of the page
                    task.cancel()


@releases.remote_questions
@both_dialects
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_its_question_is_asked_and_its_answer_reaches_it(yes: bool, use_legacy: bool) -> None:
    till, store = Till(), MemoryStore()
    async with (
        cashier(PAY, "Remote done.", till=till, use_legacy=use_legacy) as (tool, model),
        page(SHOP, "All done.", tools=(tool,), record=store) as at,
    ):
        asked = await at.say("Pay.")
        assert len(asked.of_type("tool-approval-request")) == 1
        assert (at.states("pay"), till.paid, await states(at, store)) == (["approval-requested"], [], ["pending"])
        at.decide("pay", approved=yes)
        answer = await at.answer()
        assert answer.text.endswith("All done.")
        assert at.states("pay") == ["output-available" if yes else "output-denied"]
        assert till.paid == ([5] if yes else [])
        assert await states(at, store) == ["done" if yes else "denied"]
        assert results_told(at.chat.model) == [{"result": "Remote done."}]
        assert at.part("cashier")["output"] == {"result": "Remote done."}
        assert len(model.requests) == 2
        await at.is_what_a_reload_shows()


@releases.remote_questions
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_a_live_session_asks_too(yes: bool) -> None:
    till = Till()
    async with shop(PAY, "Remote done.", till=till, is_live=True) as (at, _):
        asked = await at.say("Pay.")
        assert len(asked.of_type("tool-approval-request")) == 1
        assert till.paid == []
        at.decide("pay", approved=yes)
        answer = await at.answer()
        assert answer.text.endswith("All done.")
        assert (till.paid, at.states("pay")) == (([5], ["output-available"]) if yes else ([], ["output-denied"]))
        assert told_results(at.model) == [{"result": "Remote done."}]
        assert await at.world.states() == ["done" if yes else "denied"]


@releases.remote_questions
@pytest.mark.parametrize("is_live", [False, True], ids=["request", "live"])
async def test_its_long_running_call_and_its_form_are_answered(is_live: bool) -> None:
    script = [call("book")], [call("adk_request_input", message="Sure?")], "Remote done."
    async with shop(*script, till=Till(), is_live=is_live) as (at, model):
        await at.say("Book.")
        assert at.states("book") == ["input-available"]
        at.output("book", {"seat": 7})
        await at.answer()
        assert asked_parts(model.requests[1])[-1] == {"result": {"seat": 7}}
        assert at.states("adk_request_input") == ["input-available"]
        at.output("adk_request_input", "yes")
        assert (await at.answer()).text.endswith("All done.")
        assert asked_parts(model.requests[-1])[-1] == {"result": {"result": "yes"}}


@releases.remote_questions
async def test_those_whom_the_policy_names_decide_and_the_run_goes_on_by_itself() -> None:
    till, policy = Till(), in_chain("max", "eva")
    asked_about = policy.decide

    def decide(request: Any) -> Any:
        assert asked_about is not None
        assert request.user == "ann"
        return asked_about(request) if request.tool == "pay" else Nobody

    async with (
        cashier(PAY, "Remote done.", till=till) as (tool, _),
        page(SHOP, "All done.", tools=(tool,), approvals=ApprovalPolicy(decide=decide)) as at,
    ):
        asked = await at.say("Pay.")
        assert asked.of_type("tool-approval-request") == []
        await of(at, "max").decide()
        assert (till.paid, shown(at)["status"]) == ([], "pending")
        await of(at, "eva").decide()
        await ended(at)
        assert (till.paid, at.states("pay")) == ([5], ["output-available"])


async def test_where_an_answer_does_not_reach_a_remote_agent_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "ANSWERS_REACH_REMOTE_AGENTS", False)
    till, store = Till(), MemoryStore()
    async with (
        cashier(PAY, "Remote done.", till=till) as (tool, _),
        page(SHOP, "All done.", tools=(tool,), record=store) as at,
    ):
        asked = await at.say("Pay.")
        assert asked.of_type("tool-approval-request") == []
        assert asked.text.endswith("All done.")
        assert (till.paid, await states(at, store)) == ([], [])
        await at.is_what_a_reload_shows()


@releases.remote_questions
async def test_other_words_refuse_what_it_asks_and_a_late_yes_changes_nothing() -> None:
    till, store = Till(), MemoryStore()
    async with (
        cashier(PAY, "Remote done.", till=till) as (tool, _),
        page(SHOP, "Hello.", tools=(tool,), record=store) as at,
    ):
        await at.say("Pay.")
        stale = await at.second_tab()
        assert (await at.say("Hi.")).text == "Hello."
        assert await states(at, store) == ["denied"]
        stale.decide("pay")
        await stale.answer(number=0)
        assert (till.paid, await states(at, store)) == ([], ["denied"])


@releases.remote_questions
async def test_what_it_does_not_tell_is_unknown() -> None:
    till, store = Slow(), MemoryStore()
    async with (
        cashier(PAY, "Remote done.", till=till) as (tool, _),
        page(SHOP, "Unclear.", tools=(tool,), record=store) as at,
    ):
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await till.started.wait()
        await tool.agent._httpx_client.aclose()  # pyright: ignore
        assert (await answering).text.endswith("Unclear.")
        till.go_on.set()
        assert (till.paid, await states(at, store), at.states("pay")) == ([5], ["outcome-unknown"], ["output-error"])


@releases.remote_questions
async def test_a_remote_agent_that_has_been_refused_an_answer_by_a_stop_asks_no_more() -> None:
    till, store = Till(), MemoryStore()
    async with (
        cashier(PAY, "Remote done.", till=till) as (tool, model),
        page(SHOP, "Hello.", tools=(tool,), record=store) as at,
    ):
        await at.say("Pay.")
        await at.chat.bridge.stop("ann", "c1")
        assert (await states(at, store), till.paid, len(model.requests)) == (["denied"], [], 1)
        assert (await at.say("Hi.")).text == "Hello."
