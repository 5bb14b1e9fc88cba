"""Every kind of tool that ADK has, in a live session: what asks for itself, answers later, fails, or is not there."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol.testing import call
from live.live_pages import (
    DENIED,
    A,
    D,
    E,
    I,
    O,
    X,
    beside,
    both_families,
    live_page,
    segment,
    step,
    told_results,
)
from support.pages import Till

pytestmark = pytest.mark.virtual_time

FAILED = {"error": "The tool pay failed."}

decisions = pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])


# -- tools that ask ---------------------------------------------------------------------------------------------------


class Careful(Till):
    """Asks for itself, and is called once more when it has its answer."""

    async def pay(self, amount: int, tool_context: ToolContext) -> dict[str, Any]:  # pyright: ignore
        """Pays."""
        confirmed = tool_context.tool_confirmation
        if confirmed is None:
            tool_context.request_confirmation(hint=f"Pay {amount}?", payload={"tip": 0})
            return {"status": "asked"}
        if not confirmed.confirmed:
            return {"status": "kept"}
        self.paid.append(amount)
        return {"paid": amount, "tip": (confirmed.payload or {}).get("tip")}


@both_families
@decisions
async def test_a_tool_that_asks_for_itself_runs_again_once_it_is_approved(family: str, yes: bool) -> None:
    tool = Careful()
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(tool.pay,)) as at:
        asked = await at.say("Pay.")
        assert asked.types == segment(*step(*I, *A))
        assert asked.of_type("data-adk-approval")[0]["data"]["hint"] == "Pay 5?"
        at.decide("pay", approved=yes)
        assert (await at.answer()).types == segment(*(O if yes else D), *X)
        assert told_results(at.model) == [{"paid": 5, "tip": 0} if yes else DENIED]
        assert tool.paid == ([5] if yes else [])
        await at.is_what_a_reload_shows()


@both_families
async def test_a_tool_that_asks_for_itself_and_then_raises_has_failed(family: str) -> None:
    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Pay?")
            return {}
        raise ConnectionError("SECRET")

    async with live_page([call("pay", amount=5)], "It failed.", family=family, tools=(pay,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).types == segment(*E, *X)
        assert told_results(at.model) == [FAILED]
        assert await at.world.states() == ["failed"]


class Remote(BaseTool):
    """As a tool of an MCP server's: no function of ours, and it is the tool who knows whether it must be confirmed."""

    def __init__(self, must_ask: bool) -> None:
        super().__init__(name="pay", description="Pays.")
        self.must_ask = must_ask
        self.paid: list[int] = []

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description)

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return self.must_ask

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        self.paid.append(args["amount"])
        return {"content": [{"type": "text", "text": "paid"}]}


@both_families
@decisions
async def test_a_remote_tool_that_says_so_is_asked_about(family: str, yes: bool) -> None:
    tool = Remote(must_ask=True)
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(tool,)) as at:
        assert (await at.say("Pay.")).types == segment(*step(*I, *A))
        at.decide("pay", approved=yes)
        assert (await at.answer()).types == segment(*(O if yes else D), *X)
        assert tool.paid == ([5] if yes else [])
        await at.is_what_a_reload_shows()


@both_families
async def test_a_remote_tool_that_does_not_say_so_runs_at_once(family: str) -> None:
    tool = Remote(must_ask=False)
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(tool,)) as at:
        assert (await at.say("Pay.")).types == segment(*step(*I, *O), *X)
        assert tool.paid == [5]


@both_families
async def test_only_large_amounts_are_asked_about_where_a_function_says_so(family: str) -> None:
    till = Till()
    tool = FunctionTool(till.pay, require_confirmation=lambda amount: amount > 5)
    async with live_page([call("pay", amount=5), call("pay", amount=6)], "Done.", family=family, tools=(tool,)) as at:
        assert (await at.say("Pay.")).types == segment(*step(*I, *I, *O, *A))
        assert till.paid == [5]
        at.decide("pay", 1)
        assert (await at.answer()).types == segment(*O, *X)
        assert till.paid == [5, 6]
        assert told_results(at.model) == [{"paid": 5}, {"paid": 6}]
        await at.is_what_a_reload_shows()


# -- tools that answer later ------------------------------------------------------------------------------------------


@both_families
async def test_a_long_running_tool_without_a_result_is_answered_later(family: str) -> None:
    def ask_boss(question: str) -> None:
        """Asks somebody who takes his time."""

    tool = LongRunningFunctionTool(ask_boss)
    async with live_page([call("ask_boss", question="May I?")], "You may.", family=family, tools=(tool,)) as at:
        assert (await at.say("Ask.")).types == segment(*step(*I))
        await asyncio.sleep(1000)  # there is no deadline
        await at.is_what_a_reload_shows()
        at.output("ask_boss", {"allowed": True})
        assert (await at.answer()).types == segment(*X)
        assert told_results(at.model) == [{"allowed": True}]
        await at.is_what_a_reload_shows()
        session = await at.chat.session()
        stored = [answer.response for event in session.events for answer in event.get_function_responses()]  # pyright: ignore
        assert stored == [{"allowed": True}]


@both_families
async def test_the_user_may_write_while_a_long_running_call_is_open(family: str) -> None:
    def ask_boss() -> None:
        """Asks somebody who takes his time."""

    script = [call("ask_boss")], "It is noon.", "You may."
    async with live_page(*script, family=family, tools=(LongRunningFunctionTool(ask_boss),)) as at:
        await at.say("Ask.")
        assert (await at.say("What time is it?")).text == "It is noon."
        at.output("ask_boss", {"allowed": True})
        late = await at.answer(0)
        assert (late.types, late.text) == (segment(*X), "You may.")
        assert told_results(at.model) == [{"allowed": True}]
        await at.is_what_a_reload_shows()


@both_families
async def test_a_long_running_tool_that_tells_that_it_is_pending_is_the_servers_own(family: str) -> None:
    async def export() -> dict[str, str]:
        """Exports, which takes days."""
        return {"status": "pending"}

    script = [call("export")], "It runs.", "Hello."
    async with live_page(*script, family=family, tools=(LongRunningFunctionTool(export),)) as at:
        told = await at.say("Export.")
        assert told.types == segment(*step(*I, *O), *X)
        assert at.part("export")["preliminary"] is True
        assert told_results(at.model) == [{"status": "pending"}]
        await at.is_what_a_reload_shows()
        claimed = {**at.part("export"), "state": "output-available", "output": {"status": "done"}}
        refused = await at.send_parts(told.message_id or "", claimed)
        assert (refused.error or {})["code"] == "not-found"
        assert (await at.say("Hello?")).text == "Hello."


@both_families
@decisions
async def test_a_long_running_tool_that_must_be_approved_is_asked_about_first(family: str, yes: bool) -> None:
    till = Till()
    tool = LongRunningFunctionTool(till.pay)
    tool._require_confirmation = True
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(tool,)) as at:
        assert (await at.say("Pay.")).types == segment(*step(*I, *A))
        assert till.paid == []
        at.decide("pay", approved=yes)
        assert (await at.answer()).text == "Done."
        assert told_results(at.model) == [{"paid": 5} if yes else DENIED]
        assert till.paid == ([5] if yes else [])


@both_families
async def test_a_long_running_tool_that_was_approved_and_gives_nothing_has_failed(family: str) -> None:
    async def ask_boss() -> None:
        """Asks somebody who takes his time."""

    tool = LongRunningFunctionTool(ask_boss)
    tool._require_confirmation = True
    async with live_page([call("ask_boss")], "No answer.", family=family, tools=(tool,)) as at:
        await at.say("Ask.")
        at.decide("ask_boss")
        assert (await at.answer()).types == segment(*E, *X)
        assert await at.world.states() == ["failed"]


# -- tools that fail, and tools that are not there --------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("kind", ["free", "gated", "gated, beside the conversation"])
async def test_a_tool_that_raises_tells_the_model_and_the_session_lives(family: str, kind: str) -> None:
    def fails(_: int) -> None:
        raise ConnectionError("SECRET host")

    till = Till(fails)
    make = beside if "beside" in kind else FunctionTool
    tool = make(till.pay, require_confirmation="gated" in kind)
    script = [call("pay", amount=5)], "It failed.", "Hello."
    async with live_page(*script, family=family, tools=(tool,)) as at:
        answer = await at.say("Pay.")
        if "gated" in kind:
            at.decide("pay")
            answer = await at.answer()
        assert E[0] in answer.types
        assert answer.text == "It failed."
        assert told_results(at.model) == [FAILED]
        assert (await at.say("Hello?")).text == "Hello."
        assert till.paid == [5]
        assert len(at.model.sessions) == 1
        assert "SECRET" not in str(at.client.everything) + str(at.model.sessions[0].contents)
        await at.is_what_a_reload_shows()


@both_families
async def test_one_of_two_payments_raises_and_the_other_is_told(family: str) -> None:
    def works(amount: int) -> dict[str, int]:
        if amount == 5:
            raise ConnectionError
        return {"paid": amount}

    till = Till(works)
    calls = [call("pay", amount=5), call("pay", amount=6)]
    async with live_page(calls, "One paid.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay", 0)
        at.decide("pay", 1)
        assert (await at.answer()).types == segment(*E, *O, *X)
        assert told_results(at.model) == [FAILED, {"paid": 6}]
        await at.is_what_a_reload_shows()


@both_families
async def test_a_tool_that_is_not_there_is_told_to_the_model_and_the_session_lives(family: str) -> None:
    script = [call("fly")], "I cannot fly.", "Hello."
    async with live_page(*script, family=family, tools=(Till().gated,)) as at:
        answer = await at.say("Fly.")
        assert answer.types == segment(*step(*I, *E), *X)
        assert "fly" in str(told_results(at.model))
        assert (await at.say("Hello?")).text == "Hello."
        assert len(at.model.sessions) == 1
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.parametrize("talks_on", ["continue", "refuse"])
async def test_a_card_is_shown_though_its_model_also_calls_a_tool_that_is_not_there(family: str, talks_on: Any) -> None:
    till = Till()
    script = [call("pay", amount=5), call("fly")], "Paid, but I cannot fly.", "?"
    async with live_page(*script, family=family, tools=(till.gated,), live_while_waiting=talks_on) as at:
        await at.say("Pay and fly.")
        assert at.states("fly") == ["output-error"]
        assert "The tools you can call are: pay" in at.part("fly")["errorText"]
        at.decide("pay")
        await at.answer()
        await asyncio.sleep(60)
        assert till.paid == [5]
        shown = {part["toolCallId"]: part["state"] for part in parts_of(await at.chat.messages())}
        assert shown == {at.part("pay")["toolCallId"]: "output-available", at.part("fly")["toolCallId"]: "output-error"}


def parts_of(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for message in messages for part in message["parts"] if "toolCallId" in part]


@both_families
async def test_what_a_tool_writes_into_the_state_stays_there(family: str) -> None:
    async def note(what: str, tool_context: ToolContext) -> dict[str, Any]:
        """Notes."""
        before = tool_context.state.get("noted")
        tool_context.state["noted"] = what
        return {"before": before}

    tool = FunctionTool(note, require_confirmation=True)
    script = [call("note", what="one")], [call("note", what="two")], "Noted."
    async with live_page(*script, family=family, tools=(tool,)) as at:
        await at.say("Note.")
        at.decide("note", 0)
        await at.answer()
        at.decide("note", 1)
        await at.answer()
        assert told_results(at.model) == [{"before": None}, {"before": "one"}]
        session = await at.chat.session()
        assert session is not None
        assert session.state["noted"] == "two"
