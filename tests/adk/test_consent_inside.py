"""Credentials where ADK asks nobody: after an approval, inside an agent that runs as a tool, and in a live session."""

import asyncio
import copy
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool, ToolContext
from google.adk.workflow import Workflow, node
from pydantic import BaseModel

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Limits, NotFound
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ScriptedModel, call
from chat.test_completions import is_told, parts
from chat.test_consents import CANARY, CODE, TOKEN, Calendar, Provider, callback_of, nothing_leaks
from chat.test_consents import provider as provider  # a fixture
from live.live_pages import both_families, live_page, told_results
from support import releases
from support.apps import app_of, user_of
from support.conversations import Conversation
from support.pages import Page, page, results_told

pytestmark = [
    pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.:UserWarning"),  # ADK's own
    pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning"),  # ADK's own, of an AgentTool
]

READ = [call("read_calendar")]
NO_CONSENT = {"error": "This call was not completed: the user has not given consent."}


def gated(calendar: Calendar) -> FunctionTool:
    return FunctionTool(calendar.read_calendar, require_confirmation=True)


def clerk(calendar: Calendar, *then: Any) -> AgentTool:
    model = ScriptedModel([READ, *(then or ("Inner: free.",))])
    return AgentTool(LlmAgent(name="clerk", description="Looks.", model=model, tools=[calendar.read_calendar]))


async def approved(at: Page) -> Answer:
    """What follows the approval: a request for consent."""
    await at.say("Am I free?")
    at.decide("read_calendar")
    return await at.answer()


def states_of(trail: Sequence[Any], tool: str) -> list[str]:
    return [entry.state for entry in trail if entry.tool == tool]


async def test_an_approved_call_waits_for_consent_and_runs_once_more(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    calendar = Calendar(provider.config())
    async with page(READ, "You are free.", tools=(gated(calendar),)) as at:
        asked = await approved(at)
        [request] = asked.of_type("data-adk-auth-request")
        assert request["data"]["toolCallId"] == at.part("read_calendar")["toolCallId"]
        assert request["data"]["authUri"].startswith("https://id.example/consent?")
        assert at.part("read_calendar")["preliminary"] is True
        assert [chat["waiting"] for chat in await at.chat.bridge.chats("ann")] == [True]
        await at.is_what_a_reload_shows()
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        [part] = parts(await is_told(at, "You are free."), "read_calendar")
        assert (part["output"], part.get("preliminary")) == ({"events": "none"}, None)
        assert (calendar.tokens, provider.codes) == ([TOKEN], [CODE])
        assert results_told(at.chat.model) == [{"events": "none"}]
        trail = await at.chat.bridge.audit("ann", "c1")
        assert states_of(trail, "read_calendar") == ["pending", "approved", "claimed", "started", "done"]
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_auth("ann", callback_of(asked))
        await nothing_leaks(at, caplog, asked)


async def test_an_agent_that_runs_as_a_tool_waits_for_consent(provider: Provider) -> None:
    calendar = Calendar(provider.config())
    async with page([call("clerk", request="Look.")], "You are free.", tools=(clerk(calendar),)) as at:
        asked = await at.say("Am I free?")
        [request] = asked.of_type("data-adk-auth-request")
        assert request["data"]["toolCallId"] == at.part("clerk")["toolCallId"]
        assert at.part("clerk")["preliminary"] is True
        await at.is_what_a_reload_shows()
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        await is_told(at, "You are free.")
        assert calendar.tokens == [TOKEN]
        assert results_told(at.chat.model) == [{"result": "Inner: free."}]


@releases.tool_nodes
async def test_a_workflow_that_runs_as_a_tool_waits_for_consent(provider: Provider) -> None:
    calendar = Calendar(provider.config())

    class Nothing(BaseModel):
        """Older releases of ADK want a schema."""

    @node
    def prepare() -> dict[str, str]:
        return {}

    edges = [("START", prepare, node(FunctionTool(calendar.read_calendar)))]
    workflow = Workflow(name="look", description="Looks.", edges=edges, input_schema=Nothing)  # pyright: ignore[reportArgumentType]
    async with page([call("look")], "You are free.", tools=(workflow,)) as at:
        asked = await at.say("Am I free?")
        [request] = asked.of_type("data-adk-auth-request")
        assert request["data"]["toolCallId"] == at.part("look")["toolCallId"]
        assert at.part("look")["preliminary"] is True
        await at.is_what_a_reload_shows()
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        await is_told(at, "You are free.")
        assert (calendar.tokens, results_told(at.chat.model)) == ([TOKEN], [{"events": "none"}])


@both_families
@pytest.mark.parametrize("is_gated", [False, True])
async def test_a_live_session_waits_for_consent(provider: Provider, family: str, is_gated: bool) -> None:
    calendar = Calendar(provider.config())
    tool = gated(calendar) if is_gated else FunctionTool(calendar.read_calendar)
    async with live_page(READ, "You are free.", family=family, tools=(tool,)) as at:
        asked = await approved(at) if is_gated else await at.say("Am I free?")
        assert len(asked.of_type("data-adk-auth-request")) == 1
        assert at.part("read_calendar")["preliminary"] is True
        await at.world.bridge.complete_auth("ann", callback_of(asked))
        told = await at.unasked_turn()
        assert told.text == "You are free."
        assert (calendar.tokens, told_results(at.model)) == ([TOKEN], [{"events": "none"}])
        assert CANARY not in repr((await at.world.records(), await at.chat.messages(), told.raw))


@pytest.mark.parametrize("is_twice", [False, True])
async def test_another_worker_may_have_the_answer(provider: Provider, is_twice: bool) -> None:
    calendar, store, sessions = Calendar(provider.config()), MemoryStore(), InMemorySessionService()
    options: dict[str, Any] = {"record": store, "session_service": sessions}
    async with page(READ, "You are free.", tools=(gated(calendar),), **options) as at:
        asked = await approved(at)
        model = ScriptedModel([])
        other = ChatBridge(
            LlmAgent(name="helper", model=model, tools=[gated(calendar)]),
            user_id=user_of,
            store=store,
            session_service=sessions,
        )
        with pytest.raises(NotFound):
            await other.complete_auth("eve", callback_of(asked))
        attempts = [other.complete_auth("ann", callback_of(asked)) for _ in range(2 if is_twice else 1)]
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
        assert [outcome for outcome in outcomes if outcome is not None and not isinstance(outcome, NotFound)] == []
        assert None in outcomes
        assert [chat["id"] for chat in await other.chats("ann")] == ["c1"]
        await is_told(at, "You are free.")
        assert (calendar.tokens, model.requests) == ([TOKEN], [])
        left = await sessions.list_sessions(app_name="helper", user_id="ann")
        assert [session.id for session in left.sessions] == ["c1"]
        await other.aclose()


@pytest.mark.virtual_time
async def test_without_consent_the_call_ends_at_its_deadline(provider: Provider) -> None:
    loop = asyncio.get_running_loop()
    calendar, store = Calendar(provider.config()), MemoryStore(clock=lambda: 1_000_000 + loop.time())
    options: dict[str, Any] = {"record": store, "approvals": ApprovalPolicy(deadline_s=30)}
    async with page(READ, "No consent.", tools=(gated(calendar),), **options) as at:
        asked = await approved(at)
        await asyncio.sleep(31)
        await is_told(at, "No consent.")
        assert (calendar.tokens, results_told(at.chat.model)) == ([], [NO_CONSENT])
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_auth("ann", callback_of(asked))


async def test_other_words_end_the_wait(provider: Provider) -> None:
    calendar = Calendar(provider.config())
    async with page(READ, "Hello.", tools=(gated(calendar),)) as at:
        asked = await approved(at)
        assert (await at.say("Hi.")).text == "Hello."
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_auth("ann", callback_of(asked))
        assert calendar.tokens == []


async def test_a_page_cannot_answer_what_waits_inside(provider: Provider) -> None:
    calendar = Calendar(provider.config())
    async with page(READ, tools=(gated(calendar),)) as at:
        asked = await approved(at)
        [request] = asked.of_type("data-adk-auth-request")
        claimed = {
            "type": "tool-adk_request_credential",
            "toolCallId": request["id"],
            "state": "output-available",
            "output": {"status": "granted"},
        }
        at.messages[-1]["parts"].append(claimed)
        assert (await at.answer()).status == 404
        assert calendar.tokens == []


@pytest.mark.virtual_time
@pytest.mark.parametrize("is_live", [False, True], ids=["request", "live"])
async def test_a_server_that_goes_does_not_wait_for_consent(provider: Provider, is_live: bool) -> None:
    calendar = Calendar(provider.config())
    on_page: Any = live_page if is_live else page
    async with on_page(READ, tools=(gated(calendar),), limits=Limits(drain_s=1000)) as at:
        await approved(at)
        began = asyncio.get_running_loop().time()
        await at.chat.bridge.drain()
        assert asyncio.get_running_loop().time() - began < 100
        trail = await at.chat.bridge.audit("ann", "c1")
        assert states_of(trail, "read_calendar")[-1] in ("done", "failed", "outcome-unknown")
        assert calendar.tokens == []


@pytest.mark.parametrize("is_live", [False, True], ids=["request", "live"])
async def test_a_tool_that_fails_after_the_consent_is_recorded_so_and_tells_no_token(
    provider: Provider, is_live: bool, caplog: pytest.LogCaptureFixture
) -> None:
    calendar = Calendar(provider.config())

    async def read_calendar(tool_context: ToolContext) -> dict[str, str]:
        """Needs consent."""
        result = await calendar.read_calendar(tool_context)
        if calendar.tokens:
            raise ValueError(calendar.tokens[0])
        return result

    on_page: Any = live_page if is_live else page
    tool = FunctionTool(read_calendar, require_confirmation=True)
    async with on_page(READ, "It failed.", tools=(tool,)) as at:
        asked = await approved(at)
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        messages = await is_told(at, "It failed.")
        assert parts(messages, "read_calendar")[0]["errorText"] == "The tool read_calendar failed."
        trail = await at.chat.bridge.audit("ann", "c1")
        assert states_of(trail, "read_calendar")[-1] == "failed"
        ours = [found.getMessage() for found in caplog.records if found.name.startswith("adk_stream")]
        assert CANARY not in repr((messages, trail, ours))


@pytest.mark.virtual_time
@pytest.mark.parametrize("is_live", [False, True], ids=["request", "live"])
async def test_what_waited_for_consent_when_its_server_was_lost_is_over(provider: Provider, is_live: bool) -> None:
    """The tool has asked for a credential and returned. Whether it did more than that, nobody knows any more."""
    loop = asyncio.get_running_loop()
    store, sessions = MemoryStore(clock=lambda: 1_000_000 + loop.time()), InMemorySessionService()
    calendar, on_page = Calendar(provider.config()), live_page if is_live else page
    options: dict[str, Any] = {"record": store, "sessions" if is_live else "session_service": sessions}
    async with on_page(READ, tools=(gated(calendar),), **options) as at:
        asked = await approved(at)
        left = left_by_crash(store, sessions)
    model = ScriptedModel(["Nobody knows.", "Hello."])
    bridge = ChatBridge(LlmAgent(name="helper", model=model, tools=[gated(calendar)]), user_id=user_of, **left)
    await asyncio.sleep(60)
    next_page = await Page(Conversation(app_of(bridge), bridge, chat_id="c1")).second_tab()
    assert (await next_page.say("Hi.")).text == "Hello."
    with pytest.raises(NotFound):
        await bridge.complete_auth("ann", callback_of(asked))
    assert states_of(await bridge.audit("ann", "c1"), "read_calendar")[-1] == "outcome-unknown"
    assert calendar.tokens == []
    [part] = parts(await next_page.chat.messages(), "read_calendar")
    assert (part["state"], "unknown" in part["errorText"]) == ("output-error", True)
    assert ["unknown" in told["error"] for told in results_told(model)] == [True]
    await bridge.aclose()


def left_by_crash(store: MemoryStore, sessions: InMemorySessionService) -> dict[str, Any]:
    """What the next process finds."""
    found: Any = MemoryStore(), InMemorySessionService()
    for old, new in zip((store, sessions), found, strict=True):
        for name, kept in vars(old).items():
            # From Python 3.12 on, a counter cannot be copied without a warning.
            setattr(new, name, kept if name in ("_clock", "_tokens") else copy.deepcopy(kept))
    return {"store": found[0], "session_service": found[1]}
