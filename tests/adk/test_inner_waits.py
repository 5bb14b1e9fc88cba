"""Request mode: a call of an agent that runs as a tool waits inside the run, and an answer goes on with the run."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext, request_input

from adk_stream_protocol import ApprovalPolicy, Limits, client_tool
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey
from adk_stream_protocol.store.base import Lease, Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from live.live_pages import DENIED, EXPIRED, SUPERSEDED, until
from support.conversations import asked_parts
from support.pages import Page, Slow, Till, page, results_told
from support.workers import Workers, answer_body, words_body, workers

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own
    pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated:DeprecationWarning"),
]

PAY = [call("pay", amount=5)]
ASK = [call("cashier", request="Pay 5.")]
OVER = "the run that it waited in is over"


def agent(name: str, *script: Any, tools: list[Any]) -> LlmAgent:
    return LlmAgent(name=name, description="Works.", model=ScriptedModel(script), tools=tools)


def told(inner: LlmAgent) -> Any:
    """What the inner model was told last."""
    return asked_parts(inner.model.requests[-1])[-1]  # pyright: ignore


class LoopsStore(MemoryStore):
    """On the loop's own clock, and down when it is told to be."""

    def __init__(self, **_: Any) -> None:
        super().__init__(clock=lambda: asyncio.get_running_loop().time())
        self.is_down = False

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        if self.is_down:
            raise StoreUnavailable
        return await super().read(chat, call)

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        if self.is_down:
            raise StoreUnavailable
        return await super().compare_and_set(old, *steps, lease=lease)


@asynccontextmanager
async def shop(*outer: Any, cashier: LlmAgent, **options: Any) -> AsyncGenerator[tuple[Workers, Page]]:
    """A helper with a cashier as its tool."""
    given = {"tools": (AgentTool(cashier),), "store": LoopsStore, **options}
    async with workers(*(outer or (ASK, "Outer done.")), **given) as staff:
        yield staff, staff.page()


@asynccontextmanager
async def asked(**options: Any) -> AsyncGenerator[tuple[Workers, Page, Till, LlmAgent]]:
    """It has asked the person about a payment, and waits."""
    till: Till = options.pop("till", None) or Till()
    cashier = agent("cashier", PAY, "Inner done.", tools=[till.gated])
    async with shop(*options.pop("outer", ()), cashier=cashier, **options) as (staff, at):
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested"]
        yield staff, at, till, cashier


# -- the answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
@pytest.mark.parametrize("style", ["approval-request", "confirmation-tool"])
async def test_a_gated_tool_of_an_inner_agent_is_asked_about_and_told_as_decided(yes: bool, style: str) -> None:
    till = Till()
    cashier = agent("cashier", PAY, "Inner done.", tools=[till.gated])
    async with shop(cashier=cashier) as (staff, at):
        question = await at.say("Pay.", approvalStyle=style)
        assert question.chunks[-1]["finishReason"] == "tool-calls"
        assert (till.paid, await staff.states()) == ([], ["pending"])
        await at.is_what_a_reload_shows()
        if style == "approval-request":
            at.decide("pay", approved=yes)
        else:
            at.output("adk_request_confirmation", {"confirmed": yes})
        answer = await at.answer()
        assert (answer.text, answer.message_id) == ("Outer done.", question.message_id)
        assert at.states("pay") == ["output-available" if yes else "output-denied"]
        assert at.states("cashier") == ["output-available"]
        assert told(cashier) == {"result": {"paid": 5} if yes else DENIED}
        assert results_told(staff.model) == [{"result": "Inner done."}]
        assert till.paid == ([5] if yes else [])
        assert await staff.states() == ["done" if yes else "denied"]
        await at.is_what_a_reload_shows()


async def test_a_denial_tells_its_reason_to_the_inner_model() -> None:
    async with asked() as (_, at, till, cashier):
        at.decide("pay", approved=False, reason="Too much.")
        await at.answer()
        reason = f"{DENIED['error']} Reason: Too much."
        assert told(cashier) == {"result": {"error": reason}}
        assert till.paid == []
        await at.is_what_a_reload_shows()


async def test_a_browsers_tool_a_form_and_a_long_running_call_of_an_inner_agent_are_answered() -> None:
    def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
        """Runs in the browser."""

    def book() -> None:
        """Books, some time."""

    script = [call("where")], [call("book")], [call("adk_request_input", message="Sure?")], "Inner done."
    tools = [client_tool(where), LongRunningFunctionTool(book), request_input]
    cashier = agent("cashier", *script, tools=tools)
    async with shop(cashier=cashier) as (_, at):
        await at.say("Where?")
        for name, output in (("where", {"latitude": 1}), ("book", {"seat": 7}), ("adk_request_input", {"a": 1})):
            assert at.states(name) == ["input-available"]
            await at.is_what_a_reload_shows()
            at.output(name, output)
            answer = await at.answer()
            assert told(cashier) == {"result": output}
        assert answer.text == "Outer done."  # pyright: ignore[reportPossiblyUnboundVariable]
        await at.is_what_a_reload_shows()


async def test_a_tool_that_asks_by_itself_gets_what_it_has_asked_for() -> None:
    given: list[Any] = []

    async def pay(tool_context: ToolContext, amount: int) -> dict[str, Any]:
        """Pays."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Sure?", payload={"days": 1})
            return {"status": "asked"}
        given.append(tool_context.tool_confirmation.payload)
        return {"paid": amount}

    cashier = agent("cashier", PAY, "Inner done.", tools=[FunctionTool(pay)])
    async with shop(cashier=cashier) as (_, at):
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
        assert given == [{"days": 1}]
        assert told(cashier) == {"result": {"paid": 5}}


async def test_agents_in_agents_ask_at_every_level() -> None:
    class Gated(AgentTool):
        async def check_require_confirmation(self, args: Any, tool_context: ToolContext) -> bool:
            return True

    till = Till()
    clerk = agent("clerk", PAY, "Clerk done.", tools=[till.gated])
    cashier = agent("cashier", [call("clerk", request="Pay.")], "Cashier done.", tools=[Gated(clerk)])
    async with shop(cashier=cashier) as (staff, at):
        await at.say("Pay.")
        for name in ("clerk", "pay"):
            assert at.states(name) == ["approval-requested"]
            await at.is_what_a_reload_shows()
            at.decide(name)
            answer = await at.answer()
        assert answer.text == "Outer done."  # pyright: ignore[reportPossiblyUnboundVariable]
        assert at.states() == ["output-available"] * 3
        assert (till.paid, await staff.states()) == ([5], ["done"] * 2)
        await at.is_what_a_reload_shows()


async def test_an_agent_in_an_agent_that_nobody_is_asked_about_shows_only_its_gated_call() -> None:
    till = Till()
    clerk = agent("clerk", PAY, "Clerk done.", tools=[till.gated])
    cashier = agent("cashier", [call("clerk", request="Pay.")], "Cashier done.", tools=[AgentTool(clerk)])
    async with shop(cashier=cashier) as (_, at):
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
        assert [part["type"] for part in at.parts()] == ["tool-cashier", "tool-pay"]
        await at.is_what_a_reload_shows()


async def test_two_calls_of_an_inner_agent_are_asked_together_and_answered_in_any_order() -> None:
    till = Till()
    cashier = agent("cashier", [call("pay", amount=5), call("pay", amount=6)], "Inner done.", tools=[till.gated])
    async with shop(cashier=cashier) as (_, at):
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested"] * 2
        at.decide("pay", 1)
        first = await at.answer()
        assert (till.paid, at.states("pay")) == ([6], ["approval-requested", "output-available"])
        assert first.chunks[-1]["finishReason"] == "tool-calls"
        await at.is_what_a_reload_shows()
        at.decide("pay", approved=False)
        assert (await at.answer()).text == "Outer done."
        assert till.paid == [6]
        await at.is_what_a_reload_shows()


async def test_two_agents_at_once_ask_in_one_segment() -> None:
    tills = Till(), Till()
    tools = [
        AgentTool(agent(name, PAY, f"{name} done.", tools=[till.gated]))
        for name, till in zip(("anna", "bert"), tills, strict=True)
    ]
    both = [call("anna", request="Pay."), call("bert", request="Pay.")]
    async with workers(both, "Outer done.", tools=tuple(tools), store=LoopsStore) as staff:
        at = staff.page()
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested"] * 2
        for number in (0, 1):
            at.decide("pay", number)
        assert (await at.answer()).text == "Outer done."
        assert [till.paid for till in tills] == [[5], [5]]
        await at.is_what_a_reload_shows()


async def test_a_gated_call_beside_the_agent_is_asked_about_next() -> None:
    inner, own = Till(), Till()
    cashier = agent("cashier", PAY, "Inner done.", tools=[inner.gated])

    async def refund(amount: int) -> Any:
        """Pays back."""
        return await own.pay(amount)

    tools = AgentTool(cashier), FunctionTool(refund, require_confirmation=True)
    async with shop([*ASK, call("refund", amount=2)], "Outer done.", cashier=cashier, tools=tools) as (_, at):
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested"]
        at.decide("pay")
        await at.answer()
        assert (inner.paid, own.paid, at.states("refund")) == ([5], [], ["approval-requested"])
        at.decide("refund")
        assert (await at.answer()).text == "Outer done."
        assert own.paid == [2]
        await at.is_what_a_reload_shows()


async def test_a_slow_tool_beside_the_agent_ends_before_the_segment_does() -> None:
    slow = Slow()
    cashier = agent("cashier", PAY, "Inner done.", tools=[Till().gated])
    both = [*ASK, call("wait", amount=1)]

    async def wait(amount: int) -> Any:
        """Takes its time."""
        return await slow.pay(amount)

    async with shop(both, "Outer done.", cashier=cashier, tools=(AgentTool(cashier), wait)) as (_, at):
        asking = asyncio.create_task(at.say("Pay."))
        await slow.started.wait()
        await asyncio.sleep(10)
        assert not asking.done()
        slow.go_on.set()
        await asking
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."


async def test_what_another_agent_says_meanwhile_is_told_in_the_next_segment() -> None:
    till = Till()
    cashier = agent("cashier", PAY, "Inner done.", tools=[till.gated])
    buyer = agent("buyer", ASK, "Bought.", tools=[AgentTool(cashier)])
    speaks = asyncio.Event()

    class Late(ScriptedModel):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            await speaks.wait()
            async for response in super().generate_content_async(llm_request, stream):
                yield response

    talker = LlmAgent(name="talker", model=Late(["It rains."]))
    root = ParallelAgent(name="helper", sub_agents=[buyer, talker])
    async with page(agent=root) as at:
        first = await at.say("Pay.")
        assert (first.text, at.states("pay")) == ("", ["approval-requested"])
        speaks.set()
        await until(lambda: talker.model.requests)  # pyright: ignore
        await asyncio.sleep(1)
        at.decide("pay")
        answer = await at.answer()
        assert "It rains." in answer.text
        assert "Bought." in answer.text
        assert till.paid == [5]


# -- other tabs, workers and processes --------------------------------------------------------------------------------


async def test_two_tabs_that_answer_get_one_run_and_both_read_it() -> None:
    async with asked() as (staff, at, till, _):
        tab = await at.second_tab()
        at.decide("pay")
        tab.decide("pay", approved=False)
        body = answer_body(tab)
        answers = await asyncio.gather(at.answer(), tab.answer())
        assert [answer.text for answer in answers] == ["Outer done."] * 2
        assert till.paid == [5]
        assert at.states() == tab.states() == ["output-available"] * 2
        late = await at.chat.post(body)
        assert [chunk["output"] for chunk in late.of_type("tool-output-available")] == [
            {"paid": 5},
            {"result": "Inner done."},
        ]
        assert till.paid == [5]
        assert await staff.states() == ["done"]


async def test_an_answer_that_another_worker_gets_is_acted_on_by_the_run_that_waits() -> None:
    async with asked() as (staff, at, till, _):
        elsewhere = Page(staff.page().chat)
        elsewhere.messages, elsewhere._judges = at.messages, at._judges  # pyright: ignore[reportPrivateUsage]
        elsewhere.decide("pay")
        answer = await elsewhere.answer()
        assert answer.status == 200
        assert elsewhere.states() == ["output-available"] * 2
        assert till.paid == [5]
        (_, shown) = await elsewhere.chat.messages()
        assert shown["parts"][-1]["text"] == "Outer done."


async def test_a_question_is_read_again_by_its_message_and_by_a_repeated_request() -> None:
    async with asked() as (_, at, till, _):
        assert not at.chat.is_running
        again = await at.chat.request("GET", f"/stream?message={at.messages[-1]['id']}")
        assert again.status_code in (200, 204)
        repeated = await at.chat.post({"id": "c1", "messages": at.messages[:1]})
        assert repeated.message_id == at.messages[-1]["id"]
        assert len(repeated.of_type("tool-approval-request")) == 1
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
        assert till.paid == [5]


@pytest.mark.parametrize("ending", ["drain", "aclose"])
async def test_a_server_that_goes_refuses_what_waits_and_says_so(ending: str) -> None:
    async with asked() as (staff, at, till, _):
        await getattr(at.chat.bridge, ending)()
        (record,) = await staff.records()
        assert (record.state, record.reason) == ("denied", OVER)
        after = staff.page()
        after.messages, after._judges = at.messages, at._judges  # pyright: ignore[reportPrivateUsage]
        after.decide("pay")
        await after.answer()
        assert (after.states("pay"), till.paid) == (["output-denied"], [])
        await after.chat.messages()


@pytest.mark.parametrize("approves", ["before", "after"])
async def test_after_a_crash_the_next_worker_refuses_the_call_and_says_so(approves: str) -> None:
    async with asked() as (staff, at, till, _):
        if approves == "before":
            staff.store.is_down = True  # pyright: ignore[reportAttributeAccessIssue]
        for task in asyncio.all_tasks():
            if task.get_name().startswith("adk-stream"):
                task.cancel()  # kill -9: nothing is written any more
        staff.store.is_down = True  # pyright: ignore[reportAttributeAccessIssue]
        await asyncio.sleep(1)
        staff.store.is_down = False  # pyright: ignore[reportAttributeAccessIssue]
        await asyncio.sleep(60)
        after = staff.page()
        after.messages, after._judges = at.messages, at._judges  # pyright: ignore[reportPrivateUsage]
        after.decide("pay")
        await after.answer()
        assert after.states("pay")[0] in ("output-error", "output-denied")
        assert (till.paid, "pending" in await staff.states()) == ([], False)
        await after.is_what_a_reload_shows()


# -- no answer --------------------------------------------------------------------------------------------------------


async def test_a_new_message_refuses_what_waits_and_begins() -> None:
    outer = ASK, "Hello.", "Again."
    async with asked(outer=outer) as (staff, at, till, _):
        answer = await at.say("Hello?")
        assert answer.text == "Hello."
        (record,) = await staff.records()
        assert (record.state, record.reason) == ("denied", "superseded: the user wrote something else instead")
        assert till.paid == []
        shown = await at.chat.messages()
        pay = next(part for part in shown[1]["parts"] if part["type"] == "tool-pay")
        assert pay["state"] == "output-denied"
        assert (await at.say("And?")).text == "Again."


async def test_a_message_that_cannot_refuse_what_waits_is_not_taken() -> None:
    async with asked(outer=(ASK, "Outer done.")) as (staff, at, till, _):
        staff.store.is_down = True  # pyright: ignore[reportAttributeAccessIssue]
        refused = await at.chat.post(words_body("Hello?"))
        assert refused.status != 200 or "error" in refused.types
        staff.store.is_down = False  # pyright: ignore[reportAttributeAccessIssue]
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
        assert till.paid == [5]


async def test_stop_refuses_what_waits_and_frees_the_chat() -> None:
    async with asked(outer=(ASK, "Hello.")) as (staff, at, till, _):
        assert await at.chat.stop() == 204
        (record,) = await staff.records()
        assert (record.state, till.paid) == ("denied", [])
        at.decide("pay")
        await at.answer()
        assert at.states("pay") == ["output-denied"]
        assert (await at.say("Hello?")).text == "Hello."


async def test_after_its_deadline_the_run_goes_on_by_itself() -> None:
    async with asked(approvals=ApprovalPolicy(deadline_s=100)) as (staff, at, till, cashier):
        await asyncio.sleep(102)
        assert told(cashier) == {"result": EXPIRED}
        assert (await staff.states(), till.paid) == (["expired"], [])
        shown = await at.chat.messages()
        assert shown[-1]["parts"][-1]["text"] == "Outer done."
        at.decide("pay")
        await at.answer()
        assert at.states("pay") == ["output-error"]
        assert till.paid == []


@pytest.mark.parametrize("limits", [Limits(max_run_s=20), Limits(unread_run_s=5)], ids=["time", "readers"])
async def test_waiting_counts_for_no_limit_of_a_run(limits: Limits) -> None:
    async with asked(limits=limits) as (_, at, till, _):
        await asyncio.sleep(300)
        at.decide("pay")
        assert (await at.answer()).text == "Outer done."
        assert till.paid == [5]


async def test_a_failing_store_keeps_the_call_waiting_and_loses_no_answer() -> None:
    async with asked() as (staff, at, till, _):
        staff.store.is_down = True  # pyright: ignore[reportAttributeAccessIssue]
        at.decide("pay")
        refused = await at.chat.post(answer_body(at))
        assert refused.status == 503
        staff.store.is_down = False  # pyright: ignore[reportAttributeAccessIssue]
        assert (await at.answer()).text == "Outer done."
        assert till.paid == [5]


async def test_a_decision_from_the_inbox_goes_on_with_the_run() -> None:
    async with asked() as (staff, _, till, _):
        await staff.approve_and_die()  # whoever has decided: nobody reads what follows
        await until(lambda: till.paid == [5])
        await until(lambda: len(staff.model.requests) == 2)


@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_an_answer_to_another_worker_ends_when_the_run_has_acted_on_it(yes: bool) -> None:
    """Also if the run goes on, and waits for something else."""
    till = Till()
    cashier = agent("cashier", PAY, [call("pay", amount=6)], "Inner done.", tools=[till.gated])
    async with shop(cashier=cashier) as (staff, at):
        elsewhere = staff.page()
        elsewhere.read(await at.say("Pay."))
        elsewhere.decide("pay", approved=yes)
        answer = await elsewhere.answer()
        assert answer.types[:2] == ["start", "tool-output-available" if yes else "tool-output-denied"]
        assert answer.chunks[-1]["type"] == "finish"
        await until(lambda: len(cashier.model.requests) == 2)  # pyright: ignore
        assert till.paid == ([5] if yes else [])
        assert list(at.chat.bridge._service._leases)  # pyright: ignore


async def test_a_call_that_its_tool_gives_up_is_refused() -> None:
    till = Till()
    cashier = agent("cashier", PAY, "Inner done.", tools=[till.gated])

    class Hasty(AgentTool):
        async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
            try:
                async with asyncio.timeout(50):
                    return await super().run_async(args=args, tool_context=tool_context)
            except TimeoutError:
                return {"error": "too slow"}

    async with shop(cashier=cashier, tools=(Hasty(cashier),)) as (staff, at):
        await at.say("Pay.")
        await asyncio.sleep(60)
        (record,) = await staff.records()
        assert (record.state, record.reason) == ("denied", OVER)
        at.decide("pay")
        await at.answer()
        assert (at.states("pay"), till.paid) == (["output-denied"], [])


async def test_a_deleted_chat_ends_what_waits() -> None:
    async with asked() as (staff, at, till, _):
        assert (await at.chat.request("DELETE")).status_code == 204
        assert (await staff.records(), till.paid) == ([], [])
        at.decide("pay")
        assert (await at.chat.post(answer_body(at))).status == 404


async def test_an_answer_again_takes_the_call_back() -> None:
    async with asked(outer=(ASK, "Anew.")) as (staff, at, till, _):
        anew = await at.chat.regenerate(at.messages[0]["id"])
        assert anew.text == "Anew."
        (record,) = await staff.records()
        assert (record.state, till.paid) == ("denied", [])
        assert all(part["type"] != "tool-pay" for message in await at.chat.messages() for part in message["parts"])


def test_nothing_is_superseded_by_another_text() -> None:
    assert SUPERSEDED["error"].startswith(DENIED["error"])
