"""Remote agents, over A2A with a real server: what they ask reaches the client, and the answer reaches them."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool, request_input

from adk_stream_protocol import ApprovalPolicy, ApprovalRequest, Chain, Link, Nobody, Owner
from adk_stream_protocol.adk import versions
from adk_stream_protocol.adk.runner import resumable
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from support import releases
from support.approvers import ended, of, shown
from support.conversations import asked_parts
from support.pages import Clock, Page, Till, page
from support.records import read_whole
from support.workers import answer_body

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # ADK's: A2A is experimental
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of uvicorn and of the A2A SDK
]

PAY = [call("pay", amount=5)]
both_dialects = pytest.mark.parametrize("use_legacy", [True, False], ids=["legacy", "new"])


def book() -> None:
    """Books, some time."""


@asynccontextmanager
async def remote(*script: Any, till: Till) -> AsyncGenerator[tuple[str, ScriptedModel]]:
    """The address of a remote agent's card, and its model."""
    from google.adk.a2a.utils.agent_to_a2a import to_a2a

    model = ScriptedModel(script)
    tools = [FunctionTool(till.pay, require_confirmation=True), LongRunningFunctionTool(book), request_input]
    agent = LlmAgent(name="cashier", description="Pays.", model=model, tools=tools)
    app = App(name="cashier", root_agent=agent, resumability_config=resumable())
    runner = Runner(app=app, session_service=InMemorySessionService())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = to_a2a(agent, host="127.0.0.1", port=port, runner=runner)
    server = uvicorn.Server(uvicorn.Config(served, host="127.0.0.1", port=port, log_level="critical"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{port}/.well-known/agent-card.json", model
    server.should_exit = True
    await serving


@asynccontextmanager
async def shop(
    *script: Any, till: Till, use_legacy: bool = True, **options: Any
) -> AsyncGenerator[tuple[Page, ScriptedModel]]:
    from google.adk.agents.remote_a2a_agent import RemoteA2aAgent

    async with remote(*script, till=till) as (card, model), httpx.AsyncClient() as http:
        local = RemoteA2aAgent(name="helper", agent_card=card, use_legacy=use_legacy, httpx_client=http)
        async with page(agent=local, **options) as at:
            yield at, model


async def states(at: Page, store: MemoryStore) -> list[str]:
    key = ChatKey(at.chat.runner.app_name, "ann", "c1")
    return [record.state for record in await read_whole(store, key)]


@releases.remote_questions
@both_dialects
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_a_remote_agents_question_is_asked_and_its_answer_reaches_it(yes: bool, use_legacy: bool) -> None:
    till, store = Till(), MemoryStore()
    async with shop(PAY, "Remote done.", till=till, use_legacy=use_legacy, record=store) as (at, model):
        asked = await at.say("Pay.")
        assert len(asked.of_type("tool-approval-request")) == 1
        assert (at.states("pay"), till.paid, await states(at, store)) == (["approval-requested"], [], ["pending"])
        await at.is_what_a_reload_shows()
        at.decide("pay", approved=yes)
        answer = await at.answer()
        assert answer.text.endswith("Remote done.")
        assert at.states("pay") == ["output-available" if yes else "output-denied"]
        assert till.paid == ([5] if yes else [])
        assert await states(at, store) == ["done" if yes else "denied"]
        told = [
            part["result"] for part in asked_parts(model.requests[-1]) if isinstance(part, dict) and "result" in part
        ]
        assert told == [{"paid": 5} if yes else {"error": "This tool call is rejected."}]
        await at.is_what_a_reload_shows()


@releases.remote_questions
@both_dialects
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_those_whom_the_policy_names_decide_about_a_remote_agents_call(yes: bool, use_legacy: bool) -> None:
    till, store, wanted = Till(), MemoryStore(), list[ApprovalRequest]()

    def decide(request: ApprovalRequest) -> Chain:
        wanted.append(request)
        return Chain([Link(["max"]), Link(["eva"])])

    options = {"use_legacy": use_legacy, "record": store, "approvals": ApprovalPolicy(decide=decide)}
    async with shop(PAY, "Remote done.", till=till, **options) as (at, model):
        asked = await at.say("Pay.")
        assert [(each.user, each.tool, each.arguments, each.agent) for each in wanted] == [
            ("ann", "pay", {"amount": 5}, "helper")
        ]
        assert asked.of_type("tool-approval-request") == []
        assert (shown(at)["status"], at.states("pay"), till.paid) == ("pending", ["input-available"], [])
        assert (await of(at, "ann").inbox(), await of(at, "eva").inbox()) == ([], [])
        await at.is_what_a_reload_shows()
        await of(at, "max").decide()
        assert till.paid == []
        await of(at, "eva").decide(yes)
        await ended(at)
        assert (till.paid, at.states("pay")) == (([5], ["output-available"]) if yes else ([], ["output-error"]))
        assert shown(at)["status"] == ("approved" if yes else "denied")
        assert await states(at, store) == ["done" if yes else "denied"]
        told = [
            part["result"] for part in asked_parts(model.requests[-1]) if isinstance(part, dict) and "result" in part
        ]
        assert told == [{"paid": 5} if yes else {"error": "This tool call is rejected."}]


@releases.remote_questions
@pytest.mark.parametrize("answer", [Nobody, Owner, "?"])
async def test_the_owner_answers_a_remote_agent_where_the_policy_names_nobody_else(answer: Any) -> None:
    till = Till()
    async with shop(PAY, "Remote done.", till=till, approvals=ApprovalPolicy(decide=lambda _: answer)) as (at, _):
        await at.say("Pay.")
        assert (at.states("pay"), till.paid) == (["approval-requested"], [])
        at.decide("pay")
        assert (await at.answer()).text.endswith("Remote done.")
        assert till.paid == [5]


@releases.remote_questions
async def test_an_answer_counts_once_and_in_time() -> None:
    till, store = Till(), MemoryStore(clock=Clock())
    async with shop(PAY, "Remote done.", till=till, record=store) as (at, _):
        await at.say("Pay.")
        at.decide("pay")
        answers = await asyncio.gather(*(at.chat.post(answer_body(at)) for _ in range(4)))
        assert {answer.status for answer in answers} == {200}
        assert (till.paid, await states(at, store)) == ([5], ["done"])


async def test_where_an_answer_does_not_reach_a_remote_agent_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(versions, "ANSWERS_REACH_REMOTE_AGENTS", False)
    till, store = Till(), MemoryStore()
    async with shop(PAY, "Remote done.", till=till, record=store) as (at, _):
        asked = await at.say("Pay.")
        assert asked.of_type("tool-approval-request") == []
        assert (at.states("pay"), till.paid, await states(at, store)) == (["output-error"], [], [])
        await at.is_what_a_reload_shows()
    assert "install google-adk 2.11 or newer" in caplog.text


@releases.remote_questions
async def test_a_late_answer_does_not_reach_the_remote_agent_as_a_yes() -> None:
    till, clock = Till(), Clock()
    store = MemoryStore(clock=clock)
    async with shop(PAY, "Remote done.", till=till, record=store) as (at, _):
        await at.say("Pay.")
        clock.now += 601
        at.decide("pay")
        await at.answer()
        assert (till.paid, await states(at, store)) == ([], ["expired"])


@both_dialects
async def test_a_remote_agents_long_running_call_is_answered_by_the_client(use_legacy: bool) -> None:
    till = Till()
    async with shop([call("book")], "Remote done.", till=till, use_legacy=use_legacy) as (at, model):
        await at.say("Book.")
        assert at.states("book") == ["input-available"]
        await at.is_what_a_reload_shows()
        at.output("book", {"seat": 7})
        answer = await at.answer()
        assert answer.text.endswith("Remote done.")
        assert asked_parts(model.requests[-1])[-1] == {"result": {"seat": 7}}
        await at.is_what_a_reload_shows()


@releases.remote_questions
async def test_a_remote_agents_form_is_answered() -> None:
    till = Till()
    async with shop([call("adk_request_input", message="Sure?")], "Remote done.", till=till) as (at, model):
        await at.say("Go.")
        assert at.states("adk_request_input") == ["input-available"]
        at.output("adk_request_input", "yes")
        answer = await at.answer()
        assert answer.text.endswith("Remote done.")
        assert asked_parts(model.requests[-1])[-1] == {"result": {"result": "yes"}}


@asynccontextmanager
async def shop_with_a_sub_agent(till: Till, **options: Any) -> AsyncGenerator[Page]:
    from google.adk.agents.remote_a2a_agent import RemoteA2aAgent

    async with remote(PAY, "Remote done.", till=till) as (card, _), httpx.AsyncClient() as http:
        cashier = RemoteA2aAgent(name="cashier", description="Pays.", agent_card=card, httpx_client=http)
        script = ScriptedModel([[call("transfer_to_agent", agent_name="cashier")]])
        root = LlmAgent(name="helper", model=script, sub_agents=[cashier])
        async with page(agent=root, **options) as at:
            yield at


@releases.remote_sub_agents
async def test_a_remote_sub_agent_asks_too() -> None:
    till = Till()
    async with shop_with_a_sub_agent(till) as at:
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).text.endswith("Remote done.")
        assert till.paid == [5]
        await at.is_what_a_reload_shows()


async def test_where_a_remote_sub_agent_gets_no_answer_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "REMOTE_SUB_AGENTS_GO_ON", False)
    till, store = Till(), MemoryStore()
    async with shop_with_a_sub_agent(till, record=store) as at:
        asked = await at.say("Pay.")
        assert asked.of_type("tool-approval-request") == []
        assert (at.states("pay"), till.paid, await states(at, store)) == (["output-error"], [], [])
        await at.is_what_a_reload_shows()


@releases.remote_questions
async def test_a_remote_root_is_asked_where_its_sub_agents_get_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "REMOTE_SUB_AGENTS_GO_ON", False)
    till = Till()
    async with shop(PAY, "Remote done.", till=till) as (at, _):
        await at.say("Pay.")
        at.decide("pay")
        await at.answer()
        assert till.paid == [5]
