"""Every gated tool runs after its approval, once: kinds of tools, agents around them, plugins and callbacks."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool, BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, client_tool
from adk_stream_protocol.protocol.call_record import ChatKey, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from support import releases
from support.conversations import asked_parts
from support.pages import Clock, Page, Till, page, results_told
from support.records import read_whole

CHAT = ChatKey("helper", "ann", "c1")


def paying() -> list[types.Part]:
    return [call("pay", amount=5)]


def numbered(amount: int) -> list[types.Part]:
    """By a model that numbers its calls anew in every answer."""
    return [types.Part(function_call=types.FunctionCall(id="0", name="pay", args={"amount": amount}))]


async def responses(at: Page, tool: str) -> list[Any]:
    """What the session has as the results of a tool."""
    session = await at.chat.session()
    assert session is not None
    found = [response for event in session.events for response in event.get_function_responses()]
    return [response.response for response in found if response.name == tool]


async def is_paid_after_approval(at: Page, till: Till, model: ScriptedModel | None = None) -> None:
    """One call, asked about once, run once."""
    await at.say("Pay.")
    assert at.states("pay") == ["approval-requested"]
    assert till.paid == []
    at.decide("pay")
    await at.answer()
    assert till.paid == [5]
    assert at.part("pay")["output"] == {"paid": 5}
    told_model = asked_parts((model or at.chat.model).requests[-1])
    assert [part for part in told_model if isinstance(part, dict) and "result" in part] == [{"result": {"paid": 5}}]
    await at.is_what_a_reload_shows()


async def test_a_function_runs_once_and_only_after_its_approval() -> None:
    till = Till()
    async with page(paying(), "Paid.", tools=(till.gated,)) as at:
        await is_paid_after_approval(at, till)


class PayTool(BaseTool):
    """A tool that is no function."""

    def __init__(self, till: Till) -> None:
        super().__init__(name="pay", description="Pays.")
        self._till = till

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
        return types.FunctionDeclaration(name="pay", description="Pays.", parameters_json_schema=schema)

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return True

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return await self._till.pay(args["amount"])


async def test_a_tool_that_is_no_function_runs_once_and_only_after_its_approval() -> None:
    till = Till()
    async with page(paying(), "Paid.", tools=(PayTool(till),)) as at:
        await is_paid_after_approval(at, till)


async def test_a_tool_of_an_agent_that_was_transferred_to_is_gated_too() -> None:
    till, model = Till(), ScriptedModel([paying(), "Paid."])
    payer = LlmAgent(name="payer", model=model, tools=[till.gated], description="Pays.")
    script = ScriptedModel([[call("transfer_to_agent", agent_name="payer")]])
    async with page(agent=LlmAgent(name="root", model=script, sub_agents=[payer])) as at:
        await is_paid_after_approval(at, till, model)


@pytest.mark.parametrize(("amount", "is_asked"), [(5, False), (6, True)])
async def test_a_tool_may_tell_by_its_arguments_whether_a_person_is_asked(amount: int, is_asked: bool) -> None:
    till = Till()
    tool = FunctionTool(till.pay, require_confirmation=lambda amount: amount > 5)
    async with page([call("pay", amount=amount)], "Paid.", tools=(tool,)) as at:
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested" if is_asked else "output-available"]
        if is_asked:
            assert till.paid == []
            at.decide("pay")
            await at.answer()
        assert till.paid == [amount]


async def test_a_tool_may_ask_for_itself_and_gets_the_persons_payload() -> None:
    seen: list[Any] = []

    def book(tool_context: ToolContext) -> dict[str, Any]:
        """Books."""
        confirmation = tool_context.tool_confirmation
        if confirmation is None:
            tool_context.request_confirmation(hint="Which seat?", payload={"seats": ["1A", "1B"]})
            return {"status": "asked"}
        seen.append((confirmation.confirmed, confirmation.payload))
        return {"booked": confirmation.payload}

    async with page([call("book")], "Booked.", tools=(book,)) as at:
        asked = await at.say("Book.")
        (about,) = asked.of_type("data-adk-approval")
        assert about["data"]["hint"] == "Which seat?"
        assert about["data"]["payload"] == {"seats": ["1A", "1B"]}
        assert await responses(at, "book") == [{"status": "asked"}]
        at.decide("book", payload={"seat": "1B"})
        await at.answer()
        assert seen == [(True, {"seat": "1B"})]
        assert at.part("book")["output"] == {"booked": {"seat": "1B"}}


async def test_a_tool_that_asks_for_itself_does_not_go_on_when_it_is_denied() -> None:
    went_on: list[bool] = []

    def book(tool_context: ToolContext) -> dict[str, Any]:
        """Books, and does not look at what the person said."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Sure?")
            return {"status": "asked"}
        went_on.append(True)
        return {"booked": True}

    async with page([call("book")], "Not booked.", tools=(book,)) as at:
        await at.say("Book.")
        at.decide("book", approved=False)
        await at.answer()
        assert went_on == []
        assert at.states() == ["output-denied"]


async def test_a_tool_that_asks_a_second_time_is_told_that_it_cannot() -> None:
    def book(tool_context: ToolContext) -> dict[str, Any]:
        """Never has enough."""
        tool_context.state["asked"] = tool_context.state.get("asked", 0) + 1
        tool_context.request_confirmation(hint="Really?")
        return {"status": "asked"}

    store = MemoryStore()
    async with page([call("book")], "It asked again.", tools=(book,), record=store) as at:
        await at.say("Book.")
        at.decide("book")
        await at.answer()
        assert at.states() == ["output-error"]
        words = "This call was not completed: a tool cannot ask for approval a second time."
        assert at.part("book")["errorText"] == words
        assert results_told(at.chat.model) == [{"error": words}]
        (recorded,) = await read_whole(store, CHAT)
        assert recorded.state is State.FAILED
        assert recorded.result == {"response": {"error": words}, "state": {"asked": 2}}
        await at.is_what_a_reload_shows()


async def test_a_long_running_tool_of_the_servers_can_be_gated_too() -> None:
    till = Till()
    tool = LongRunningFunctionTool(till.pay)
    tool._require_confirmation = True  # ADK gives it no argument for that
    async with page(paying(), "Paid.", tools=(tool,)) as at:
        await is_paid_after_approval(at, till)


def export() -> dict[str, str]:
    """Works elsewhere."""
    return {"status": "started"}


def forget() -> None:
    """Has nothing to say."""


@pytest.mark.parametrize("tool", [LongRunningFunctionTool(export), forget], ids=["with a first word", "of one run"])
async def test_only_a_long_running_tool_without_a_word_is_left_to_the_client(tool: Any) -> None:
    store = MemoryStore()
    name = "export" if isinstance(tool, LongRunningFunctionTool) else "forget"
    async with page([call(name)], "Done.", tools=(tool,), record=store) as at:
        assert (await at.say("Go.")).text == "Done."
        assert (await store.read(CHAT)).records == []


@pytest.mark.parametrize("kind", ["server", "browser", "long-running"])
async def test_a_second_call_of_one_turn_under_the_id_of_the_first_is_a_call_of_its_own(kind: str) -> None:
    def pay(amount: int) -> None:
        """Pays."""

    def answer(number: int, amount: int) -> None:
        if kind == "server":
            at.decide("pay", number)
        else:
            at.output("pay", {"paid": amount}, number)

    till, store = Till(), MemoryStore()
    tools: dict[str, BaseTool] = {
        "server": till.gated,
        "browser": client_tool(pay),
        "long-running": LongRunningFunctionTool(pay),
    }
    async with page(numbered(5), numbered(6), "Done.", tools=(tools[kind],), record=store) as at:
        await at.say("Pay.")
        answer(0, 5)
        await at.answer()
        answer(1, 6)
        assert (await at.answer()).text == "Done."
        assert [part["toolCallId"] for part in at.parts("pay")] == ["0", "0-2"]
        assert [record.call.call_id for record in (await store.read(CHAT)).records] == ["0", "0-2"]
        assert results_told(at.chat.model) == [{"paid": 5}, {"paid": 6}]
        assert till.paid == ([5, 6] if kind == "server" else [])
        await at.is_what_a_reload_shows()


def isolated(till: Till) -> AgentTool:
    """An agent that runs without our plugins."""

    def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
        """Runs in the browser."""

    inner_model = ScriptedModel([[*paying(), call("where")], "I could not."])
    inner = LlmAgent(name="inner", model=inner_model, tools=[till.gated, client_tool(where)], description="Pays.")
    return AgentTool(inner, include_plugins=False)


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # ADK's own use of it
async def test_tools_inside_an_agent_without_our_plugins_are_not_run_and_nobody_is_asked() -> None:
    till = Till()
    async with page([call("inner", request="Pay.")], "It could not.", tools=(isolated(till),)) as at:
        answer = await at.say("Pay.")
        assert answer.text == "It could not."
        assert till.paid == []
        assert answer.of_type("tool-approval-request") == []


@releases.unresumable_agents_told
@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # ADK's own use of it
async def test_the_model_is_told_why_tools_inside_such_an_agent_are_not_run() -> None:
    async with page([call("inner", request="Pay.")], "It could not.", tools=(isolated(Till()),)) as at:
        await at.say("Pay.")
        (told,) = results_told(at.chat.model)
        assert "which AgentTool cannot resume" in told["result"]


# -- what people and models are told ----------------------------------------------------------------------------------


def test_a_policy_is_given_by_names_and_stays_as_it_is() -> None:
    policy: Any = ApprovalPolicy()
    assert (policy.deadline_s, policy.browser_deadline_s, policy.hints) == (600, 60, {})
    with pytest.raises(FrozenInstanceError):
        policy.deadline_s = 1
    with pytest.raises(TypeError):
        ApprovalPolicy(1)  # pyright: ignore


@pytest.mark.parametrize(
    ("after_s", "said", "words"),
    [
        (599, {"approved": False}, "the user denied it."),
        (599, {"approved": False, "reason": "Too much."}, "the user denied it. Reason: Too much."),
        (600, {"approved": True}, "it expired, because it was not answered or not started in time."),
    ],
    ids=["denied", "denied for a reason", "too late"],
)
async def test_the_model_is_told_why_a_call_came_to_nothing(after_s: float, said: dict[str, Any], words: str) -> None:
    till, clock = Till(), Clock()
    async with page(paying(), "Not paid.", tools=(till.gated,), record=MemoryStore(clock=clock)) as at:
        await at.say("Pay.")
        clock.now += after_s
        at.decide("pay", **said)
        await at.answer()
        assert results_told(at.chat.model) == [{"error": f"This call was not run: {words}"}]
        assert till.paid == []


def in_words(arguments: Mapping[str, Any]) -> str:
    return f"Pay {arguments['amount']} dollars?"


@pytest.mark.parametrize(("hint", "read"), [("Really?", "Really?"), (in_words, "Pay 5 dollars?")])
@pytest.mark.parametrize("kind", ["server", "browser"])
async def test_hints_are_given_by_tool(kind: str, hint: Any, read: str) -> None:
    till = Till()
    tool = till.gated if kind == "server" else client_tool(till.pay, approve=True)
    tools = (tool, client_tool("other", "Another one."))
    policy = ApprovalPolicy(hints={"pay": hint, "other": "Not this one."})
    async with page(paying(), tools=tools, approvals=policy, sdk_version=7) as at:
        answer = await at.say("Pay.")
        assert answer.of_type("data-adk-approval")[0]["data"]["hint"] == read
        (asked,) = answer.of_type("tool-approval-request")
        assert asked["reason"] == read
        assert asked["approvalDescriptor"]["hint"] == read
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("kind", ["server", "browser"])
@pytest.mark.parametrize("version", ["5", "6", "7"])
async def test_what_adk_writes_for_programs_is_not_sent_to_people(kind: str, version: str) -> None:
    till = Till()
    tool = till.gated if kind == "server" else client_tool(till.pay, approve=True)
    async with page(paying(), tools=(tool,)) as at:
        answer = await at.chat.say("Pay.", sdkVersion=version)
        assert "FunctionResponse" not in answer.raw
        assert all("hint" not in about["data"] for about in answer.of_type("data-adk-approval"))
        history = await at.chat.request("GET", "/messages", headers={"x-ai-sdk-version": version})
        assert "FunctionResponse" not in history.text
