"""What the gate does with each call of a live session: what it tells the person, the tool, the model and whoever runs
the server, and what it writes down."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.adk.calls.policy import Hint
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallRecord, State
from adk_stream_protocol.store.base import Lease
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from live.live_pages import (
    CHAT,
    DEADLINE_S,
    A,
    E,
    I,
    LivePage,
    O,
    X,
    approved,
    both_families,
    live_page,
    segment,
    step,
    told_results,
)
from support.pages import Page, Till, page
from support.records import read_whole

FAILED = {"error": "The tool pay failed."}
NOT_APPROVED = {"error": "This call was not run: nobody has approved it."}
STORE_DOWN = {"error": "This call was not run: approvals cannot be recorded right now."}
ID_USED_BEFORE = {"error": "This call was not run: an earlier call of this turn has the same id."}
ASKS_AGAIN = {"error": "This call was not completed: a tool cannot ask for approval a second time."}
NO_RESULT = {"error": "This call was run, and gave no result."}
UNKNOWN = "The server stopped while this call was running. Whether it took effect is unknown; it was not run again."


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the gate tells whoever runs the server."""
    modules = [f"adk_stream_protocol.adk.calls.{name}" for name in ("gate", "gate_steps")]
    return [record.getMessage() for record in caplog.records if record.name in modules]


def hints_of(at: Page) -> list[str | None]:
    parts = [part for message in at.messages for part in message["parts"]]
    return [part["data"].get("hint") for part in parts if part["type"] == "data-adk-approval"]


async def recorded(at: LivePage) -> list[tuple[State, Any]]:
    return [(found.state, found.result) for found in await at.world.records()]


class Asking(Till):
    """Asks for itself, and works when it has its answer."""

    async def pay(self, amount: int, tool_context: ToolContext) -> Any:  # pyright: ignore
        """Pays."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint=f"Pay {amount}?")
            return {"status": "asked"}
        self.paid.append(amount)
        return self._works(amount)


def payment(kind: str) -> tuple[Till, Any]:
    till = Till() if kind == "gated" else Asking()
    return till, till.gated if kind == "gated" else till.pay


both_kinds = pytest.mark.parametrize("kind", ["gated", "asks for itself"])


# -- what the person reads, and what comes of the answer --------------------------------------------------------------


def asks_for(arguments: Mapping[str, Any]) -> str:
    return f"Pay {arguments['amount']}?"


@both_families
@pytest.mark.parametrize(
    ("hints", "told"),
    [({}, None), ({"pay": "Really?"}, "Really?"), ({"pay": asks_for}, "Pay 5?")],
    ids=["none", "of the policy", "of a function"],
)
@pytest.mark.virtual_time
async def test_the_person_reads_the_hint_of_the_policy_and_nothing_that_adk_writes_for_programs(
    family: str, hints: dict[str, Hint], told: str | None
) -> None:
    policy = ApprovalPolicy(deadline_s=DEADLINE_S, hints=hints)
    tools = (Till().gated,)
    async with live_page([call("pay", amount=5)], family=family, tools=tools, approvals=policy) as at:
        await at.say("Pay.")
        assert hints_of(at) == [told]
        assert [found.hint for found in await at.world.records()] == [told]


@both_families
@pytest.mark.virtual_time
async def test_what_a_person_adds_to_the_approval_reaches_the_tool(family: str) -> None:
    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        confirmed = tool_context.tool_confirmation
        assert confirmed is not None
        return {"paid": amount, "confirmed": confirmed.confirmed, "added": confirmed.payload}

    tool = FunctionTool(pay, require_confirmation=True)
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(tool,)) as at:
        await at.say("Pay.")
        card = approved(at.part("pay"), payload={"tip": 2})
        assert (await at.send_parts(at.messages[-1]["id"], card)).text == "Paid."
        assert told_results(at.model) == [{"paid": 5, "confirmed": True, "added": {"tip": 2}}]


class Taken(MemoryStore):
    """Has a record of every call already."""

    async def add(self, record: CallRecord) -> bool:
        return False


@both_families
@both_kinds
@pytest.mark.virtual_time
async def test_a_call_whose_id_is_taken_is_not_asked_about(family: str, kind: str) -> None:
    till, tool = payment(kind)
    script = [call("pay", amount=5)], "Done."
    async with live_page(*script, family=family, tools=(tool,), record=Taken()) as at:
        assert (await at.say("Pay.")).text == "Done."
        assert told_results(at.model) == [ID_USED_BEFORE]
        assert (till.paid, await at.world.states()) == ([], [])


@both_families
@pytest.mark.virtual_time
async def test_a_call_that_was_refused_does_not_run_though_its_tool_asks_no_more(family: str) -> None:
    till = Till()
    asked: list[int] = []

    def asks_once(amount: int) -> bool:
        asked.append(amount)
        return asked.count(amount) == 1

    tool = FunctionTool(till.pay, require_confirmation=asks_once)
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(tool,), record=Taken()) as at:
        assert (await at.say("Pay.")).text == "Done."
        assert told_results(at.model) == [ID_USED_BEFORE]
        assert till.paid == []


@both_families
@both_kinds
@pytest.mark.virtual_time
async def test_a_question_that_was_forgotten_meanwhile_comes_to_nothing(family: str, kind: str) -> None:
    till, tool = payment(kind)
    async with live_page([call("pay", amount=5)], "Not paid.", family=family, tools=(tool,)) as at:
        await at.say("Pay.")
        at.world.store._records.pop(CHAT)
        assert (await at.unasked_turn()).text == "Not paid."
        assert told_results(at.model) == [NOT_APPROVED]
        assert till.paid == []


# -- results ----------------------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("nothing", [None, {}], ids=str)
@pytest.mark.virtual_time
async def test_a_call_that_gives_nothing_is_done_while_another_waits(family: str, nothing: Any) -> None:
    async def look() -> Any:
        """Sees nothing."""
        return nothing

    till = Till()
    calls = [call("look"), call("pay", amount=5)]
    async with live_page(calls, "Done.", family=family, tools=(look, till.gated)) as at:
        assert (await at.say("Look, and pay.")).types == segment(*step(*I, *I, *O, *A))
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        assert told_results(at.model) == [{} if nothing == {} else {"result": None}, {"paid": 5}]


@both_families
@pytest.mark.virtual_time
async def test_an_approved_call_that_gives_nothing_is_done(family: str) -> None:
    till = Till(lambda _: None)
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        assert told_results(at.model) == [{"result": None}]
        assert await recorded(at) == [(State.DONE, {"response": None, "state": {}})]


@both_families
@pytest.mark.virtual_time
async def test_a_call_that_is_left_to_others_has_no_output_while_another_waits(family: str) -> None:
    async def ask_boss() -> None:
        """Asks somebody who takes his time."""

    tools = (LongRunningFunctionTool(ask_boss), Till().gated)
    calls = [call("ask_boss"), call("pay", amount=5)]
    async with live_page(calls, "Paid.", "You may.", family=family, tools=tools) as at:
        asked = await at.say("Ask, and pay.")
        assert asked.of_type("tool-output-available") == []
        assert at.states() == ["input-available", "approval-requested"]


async def test_a_long_running_call_is_left_to_others_in_request_mode_too() -> None:
    async def ask_boss() -> None:
        """Asks somebody who takes his time."""

    async with page([call("ask_boss")], "You may.", tools=(LongRunningFunctionTool(ask_boss),)) as at:
        assert (await at.say("Ask.")).types == segment(*step(*I))
        at.output("ask_boss", {"allowed": True})
        assert (await at.answer()).text == "You may."


def failing_long_run() -> tuple[LongRunningFunctionTool, list[str]]:
    asked: list[str] = []

    async def ask_boss(tool_context: ToolContext) -> None:
        """Asks somebody who never answers."""
        asked.append("asked")
        tool_context.state["asked"] = len(asked)

    tool = LongRunningFunctionTool(ask_boss)
    tool._require_confirmation = True  # pyright: ignore
    return tool, asked


@both_families
@pytest.mark.virtual_time
async def test_an_approved_long_running_call_without_a_result_is_told_as_failed_ever_after(family: str) -> None:
    tool, asked = failing_long_run()
    async with live_page([call("ask_boss")], "No answer.", family=family, tools=(tool,)) as at:
        await at.say("Ask.")
        card = dict(at.part("ask_boss"))
        at.decide("ask_boss")
        assert (await at.answer()).types == segment(*E, *X)
        assert told_results(at.model) == [NO_RESULT]
        assert await recorded(at) == [(State.FAILED, {"response": NO_RESULT, "state": {"asked": 1}})]
        again = await at.send_parts(at.messages[-1]["id"], approved(card))
        assert [chunk["errorText"] for chunk in again.of_type("tool-output-error")] == [NO_RESULT["error"]]
        assert asked == ["asked"]
        await at.is_what_a_reload_shows()


async def test_an_approved_long_running_call_without_a_result_is_done_in_request_mode() -> None:
    tool, asked = failing_long_run()
    store = MemoryStore()
    async with page([call("ask_boss")], "No answer.", tools=(tool,), record=store) as at:
        await at.say("Ask.")
        at.decide("ask_boss")
        await at.answer()
        found = await read_whole(store, CHAT)
        assert [(each.state, each.result["response"]) for each in found] == [(State.DONE, None)]
        assert asked == ["asked"]


# -- tools that ask for themselves ------------------------------------------------------------------------------------


@both_families
@pytest.mark.virtual_time
async def test_tools_that_ask_for_themselves_ask_each_for_one_call(family: str) -> None:
    till = Asking()
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_page(calls, "Done.", family=family, tools=(till.pay,)) as at:
        await at.say("Pay.")
        approvals = [part["approval"]["id"] for part in at.parts("pay")]
        assert len(set(approvals)) == 2
        assert all(approval_id.startswith("adk-") for approval_id in approvals)
        at.decide("pay", 0)
        assert (await at.answer()).types == segment(*O)
        assert (at.part("pay")["output"], till.paid) == ({"paid": 5}, [5])
        assert await at.world.states() == ["done", "pending"]
        at.decide("pay", 1, approved=False)
        assert (await at.answer()).text == "Done."
        assert till.paid == [5]
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.parametrize("result", ["paid", None], ids=str)
@pytest.mark.virtual_time
async def test_what_a_tool_that_asked_for_itself_returns_is_recorded(family: str, result: str | None) -> None:
    till = Asking(lambda _: result)
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(till.pay,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        assert told_results(at.model) == [{"result": result}]
        assert await recorded(at) == [(State.DONE, {"response": result, "state": {}})]


@both_families
@pytest.mark.virtual_time
async def test_a_tool_that_asks_for_itself_cannot_ask_twice(family: str) -> None:
    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        tool_context.request_confirmation(hint="Pay?")
        return {"status": "asked"}

    async with live_page([call("pay", amount=5)], "It asks on.", family=family, tools=(pay,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).types == segment(*E, *X)
        assert told_results(at.model) == [ASKS_AGAIN]
        assert await recorded(at) == [(State.FAILED, {"response": ASKS_AGAIN, "state": {}})]
        await at.is_what_a_reload_shows()


class FragileStore(MemoryStore):
    """Fails at a call's next move into one of these states."""

    def __init__(self) -> None:
        super().__init__(clock=asyncio.get_running_loop().time)
        self.fails_at: set[State] = set()

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        if any(step.state in self.fails_at for step in steps):
            raise StoreUnavailable
        return await super().compare_and_set(old, *steps, lease=lease)


@both_families
@pytest.mark.parametrize("state", [State.CLAIMED, State.STARTED])
@pytest.mark.virtual_time
async def test_a_tool_that_asked_for_itself_does_not_run_on_what_cannot_be_recorded(family: str, state: State) -> None:
    till, store = Asking(), FragileStore()
    script = [call("pay", amount=5)], "Not now.", "Hello."
    async with live_page(*script, family=family, tools=(till.pay,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {state}
        at.decide("pay")
        assert (await at.answer()).types == segment(*E, *X)
        assert told_results(at.model) == [STORE_DOWN]
        assert till.paid == []
        assert (await at.say("Hello?")).text == "Hello."


@both_families
@pytest.mark.virtual_time
async def test_a_call_that_could_not_begin_before_a_stop_does_not_begin_after_it(family: str) -> None:
    till, store = Till(), FragileStore()
    async with live_page([call("pay", amount=5)], family=family, tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {State.CLAIMED}
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await asyncio.sleep(1)
        await at.world.bridge.stop("ann", "c1")
        await answering
        store.fails_at = set()
        await asyncio.sleep(300)
        assert (await at.world.states(), till.paid) == (["failed"], [])


# -- tools that fail, and tools that are not there --------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("kind", ["free", "gated", "asks for itself"])
@pytest.mark.virtual_time
async def test_the_log_tells_which_tool_failed_and_how_but_not_what_it_said(
    family: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: int) -> None:
        raise ConnectionError("SECRET")

    till = Asking(fails) if kind == "asks for itself" else Till(fails)
    tool = till.gated if kind == "gated" else till.pay
    async with live_page([call("pay", amount=5)], "It failed.", family=family, tools=(tool,)) as at:
        await at.say("Pay.")
        if kind != "free":
            at.decide("pay")
            await at.answer()
            assert await recorded(at) == [(State.FAILED, {"response": FAILED, "state": {}})]
        assert told_results(at.model) == [FAILED]
        assert logged(caplog) == ["tool pay failed in a live session: ConnectionError"]


@both_families
@pytest.mark.virtual_time
async def test_a_model_that_calls_what_is_not_there_is_told_what_there_is(
    family: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with live_page([call("fly")], "I cannot fly.", family=family, tools=(Till().gated,)) as at:
        await at.say("Fly.")
        (told,) = told_results(at.model)
        assert "The tools you can call are: pay." in told["error"]
        assert logged(caplog) == []


@both_families
@both_kinds
@pytest.mark.virtual_time
async def test_a_tool_that_is_stopped_half_way_has_an_unknown_outcome_and_no_failure(
    family: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    started = asyncio.Event()
    at_work: list[asyncio.Task[Any] | None] = []

    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Pay?")
            return {"status": "asked"}
        at_work.append(asyncio.current_task())
        started.set()
        await asyncio.Event().wait()
        return {"paid": amount}

    tool = FunctionTool(pay, require_confirmation=kind == "gated")
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(tool,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        told = asyncio.create_task(at.answer())
        await started.wait()
        assert await at.chat.stop() == 204
        assert (await told).types[-1] == "abort"
        assert [task and task.cancelled() for task in at_work] == [True]
        assert await at.world.states() == ["outcome-unknown"]
        (shown,) = [part for part in (await at.chat.messages())[-1]["parts"] if part["type"] == "tool-pay"]
        assert (shown["state"], shown["errorText"]) == ("output-error", UNKNOWN)
        assert len(at.model.requests) == 1
        assert logged(caplog) == []
