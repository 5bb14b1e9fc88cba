"""Calls that the model takes back in a live session: what nobody has begun is not run, and everybody is told so."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.tools import FunctionTool, LongRunningFunctionTool

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import Answer, LiveSession, ScriptedLiveModel, call
from live.live_pages import (
    CHAT,
    A,
    I,
    LivePage,
    approved,
    beside,
    both_families,
    live_page,
    live_world,
    segment,
    step,
)
from support.pages import Slow, Till

pytestmark = pytest.mark.virtual_time

WITHDRAWN = "This call was not run: the model withdrew it before it began."


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


class TakesBack:
    """A model that calls a tool, takes the call back when the test says so, and says something else, as Gemini does
    that was interrupted."""

    def __init__(self, tool: str, **arguments: Any) -> None:
        self.tool = tool
        self.arguments = arguments
        self.takes_back = asyncio.Event()
        self.responses: list[Any] = []

    async def __call__(self, session: LiveSession) -> None:
        await session.expect_text()
        made = await session.call(self.tool, **self.arguments)
        await self.takes_back.wait()
        await session.cancel(made.id or "")
        await session.interrupted()
        await session.turn_complete()
        await session.answer("As you like.")
        while (received := await session.expect()).kind != "close":
            self.responses += [response.response for response in received.final_responses]

    def model(self, family: str) -> ScriptedLiveModel:
        return ScriptedLiveModel(self.__call__, family=family)  # pyright: ignore[reportArgumentType]


async def unasked_turns(at: LivePage) -> tuple[list[Answer], list[str]]:
    """Until the model has said something else and the card says what became of it; and what it says."""
    turns: list[Answer] = []
    errors: list[str] = []
    while not errors or not any(turn.text for turn in turns):
        turns.append(await at.unasked_turn())
        errors += errors_in(turns[-1])
    return turns, errors


def errors_in(told: Answer) -> list[str]:
    return [chunk["errorText"] for chunk in told.chunks if chunk["type"] == "tool-output-error"]


TOOLS: dict[str, Callable[[Till], Any]] = {
    "in the conversation": lambda till: till.gated,
    "beside it": lambda till: beside(till.pay, require_confirmation=True),
}


@both_families
@pytest.mark.parametrize("kind", TOOLS)
async def test_a_call_that_waits_is_withdrawn_and_its_card_says_so(family: str, kind: str) -> None:
    till, server = Till(), TakesBack("pay", amount=5)
    async with live_page(model=server.model(family), tools=(TOOLS[kind](till),)) as at:
        asked = await at.say("Pay.")
        assert asked.types == segment(*step(*I, *A))
        server.takes_back.set()
        turns, errors = await unasked_turns(at)
        assert errors == [WITHDRAWN]
        assert {turn.message_id for turn in turns if errors_in(turn)} == {asked.message_id}
        assert "".join(turn.text for turn in turns) == "As you like."
        assert await at.world.states() == ["withdrawn"]
        assert [entry.state for entry in await at.world.store.audit(CHAT)] == ["pending", "withdrawn"]
        assert (server.responses, till.paid) == ([], [])  # the model expects none
        if (family, kind) != ("3", "beside it"):  # there a reload also shows that the model was interrupted meanwhile
            await at.is_what_a_reload_shows()


@both_families
async def test_an_answer_that_comes_after_a_withdrawal_is_told_so_and_runs_nothing(family: str) -> None:
    till, server = Till(), TakesBack("pay", amount=5)
    async with live_page(model=server.model(family), tools=(till.gated,)) as at:
        asked = await at.say("Pay.")
        card = next(part for part in at.messages[-1]["parts"] if part["type"] == "tool-pay")
        server.takes_back.set()
        await unasked_turns(at)
        for _ in range(2):
            late = await at.send_parts(asked.message_id or "", approved(card))
            assert late.status == 200
            assert [chunk["errorText"] for chunk in late.chunks if chunk["type"] == "tool-output-error"] == [WITHDRAWN]
        assert (till.paid, await at.world.states()) == ([], ["withdrawn"])


@both_families
async def test_a_call_that_is_taken_back_before_anybody_is_asked_is_withdrawn(family: str) -> None:
    till, server = Till(), TakesBack("pay", amount=5)
    server.takes_back.set()
    async with live_page(model=server.model(family), tools=(till.gated,)) as at:
        assert errors_in(await at.say("Pay.")) == [WITHDRAWN]
        assert (await at.unasked_turn()).text == "As you like."
        assert (till.paid, server.responses, await at.world.states()) == ([], [], ["withdrawn"])


@both_families
async def test_a_call_of_the_browsers_is_withdrawn_and_its_output_comes_too_late(family: str) -> None:
    server = TakesBack("where")
    async with live_page(model=server.model(family), tools=(client_tool(where),)) as at:
        asked = await at.say("Where am I?")
        part = next(part for part in at.messages[-1]["parts"] if part["type"] == "tool-where")
        server.takes_back.set()
        turns, _ = await unasked_turns(at)
        assert turns[-1].text == "As you like."
        late = await at.send_parts(
            asked.message_id or "", {**part, "state": "output-available", "output": {"city": "Tokyo"}}
        )
        assert late.status == 200
        assert [chunk["errorText"] for chunk in late.chunks if chunk["type"] == "tool-output-error"] == [WITHDRAWN]
        assert await at.world.states() == ["withdrawn"]
        assert server.responses == []


@both_families
async def test_a_call_that_has_begun_runs_on(family: str) -> None:
    till, server = Slow(), TakesBack("pay", amount=5)
    async with live_page(model=server.model(family), tools=(till.gated,)) as at:
        asked = await at.say("Pay.")
        at.decide("pay", approved=True)
        going_on = asyncio.create_task(at.answer())
        await till.started.wait()
        server.takes_back.set()
        await asyncio.sleep(5)
        till.go_on.set()
        told = await going_on
        assert (told.message_id, [chunk["output"] for chunk in told.of_type("tool-output-available")]) == (
            asked.message_id,
            [{"paid": 5}],
        )
        assert (await at.unasked_turn()).text == "As you like."
        assert (till.paid, await at.world.states()) == ([5], ["done"])
        assert server.responses == [{"paid": 5}]


@both_families
async def test_a_call_that_needs_nobody_runs_as_before(family: str) -> None:
    till, server = Till(), TakesBack("pay", amount=5)
    server.takes_back.set()
    async with live_page(model=server.model(family), tools=(FunctionTool(till.pay),)) as at:
        await at.say("Pay.")
        assert (await at.unasked_turn()).text == "As you like."
        assert (till.paid, server.responses) == ([5], [{"paid": 5}])


@both_families
async def test_a_call_that_adk_left_to_the_client_is_withdrawn_too_and_its_card_says_so(family: str) -> None:
    async def ask_the_boss() -> None:
        """Takes days."""

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        made = await session.call("ask_the_boss")
        if family == "3":
            await session.turn_complete()
        await takes_back.wait()
        await session.cancel(made.id or "")
        await session.expect_text()  # no response: nobody waits for one
        await session.answer("Hello.")
        await session.expect("close")

    takes_back = asyncio.Event()
    model = ScriptedLiveModel(server, family=family)
    async with live_world(model=model, tools=(LongRunningFunctionTool(ask_the_boss),)) as world, world.socket() as at:
        asked = await at.say("May I?")
        assert await world.states() == ["approved"]
        takes_back.set()
        told = await at.unasked_turn()
        assert told.message_id == asked.message_id
        assert [chunk["errorText"] for chunk in told.chunks if chunk["type"] == "tool-output-error"] == [WITHDRAWN]
        assert await world.states() == ["withdrawn"]
        await at.is_what_a_reload_shows()
        assert (await at.say("Hello")).text == "Hello."


@both_families
async def test_of_two_calls_one_is_taken_back_and_the_other_still_waits(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        first, _ = await session.calls(call("pay", amount=1), call("pay", amount=2))
        await takes_back.wait()
        await session.cancel(first.id or "", "of nobody")
        responses.extend(response.response for response in await session.expect_responses())
        await session.answer("Done.")
        await session.expect("close")

    responses: list[Any] = []
    takes_back, till = asyncio.Event(), Till()
    async with live_page(model=ScriptedLiveModel(server, family=family), tools=(till.gated,)) as at:
        await at.say("Pay.")
        takes_back.set()
        told = await at.unasked_turn()
        assert [chunk["errorText"] for chunk in told.chunks if chunk["type"] == "tool-output-error"] == [WITHDRAWN]
        assert await at.world.states() == ["withdrawn", "pending"]
        at.decide("pay", 1, approved=True)
        assert (await at.answer()).text == "Done."
        assert (till.paid, responses) == ([2], [{"paid": 2}])
        assert await at.world.states() == ["withdrawn", "done"]


@both_families
@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("ticks", [0, 2, 3, 6, 14])
@pytest.mark.parametrize("is_answered_first", [True, False])
async def test_an_answer_that_meets_the_withdrawal_has_one_outcome(
    family: str, kind: str, ticks: int, is_answered_first: bool
) -> None:
    till, server = Till(), TakesBack("pay", amount=5)
    async with live_page(model=server.model(family), tools=(TOOLS[kind](till),)) as at:
        await at.say("Pay.")
        at.decide("pay", approved=True)
        if not is_answered_first:
            server.takes_back.set()
            await breathe(ticks)
        answering = asyncio.create_task(at.answer())
        if is_answered_first:
            await breathe(ticks)
            server.takes_back.set()
        told = await answering
        await asyncio.sleep(5)
        (state,) = await at.world.states()
        assert (state, till.paid, server.responses) in [("done", [5], [{"paid": 5}]), ("withdrawn", [], [])]
        shown = "output-available" if state == "done" else "output-error"
        assert [chunk["type"] for chunk in told.chunks if chunk["type"].startswith("tool-output")] == [f"tool-{shown}"]
        parts = [part for message in await at.chat.messages() for part in message["parts"]]
        assert [part["state"] for part in parts if part["type"] == "tool-pay"] == [shown]


@both_families
@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("talks_on", [True, False])
async def test_an_answer_that_meets_the_withdrawal_ends_though_the_model_says_nothing_more(
    family: str, kind: str, talks_on: bool
) -> None:
    """Nobody told it of the call, so that it has nothing to say."""

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        made = await session.call("pay", amount=5)
        await takes_back.wait()
        await session.cancel(made.id or "")
        while (received := await session.expect()).kind != "close":
            if received.kind == "content":
                await session.answer("Hello.")

    takes_back, till, model = asyncio.Event(), Till(), ScriptedLiveModel(server, family=family)
    options = {"live_while_waiting": "continue" if talks_on else "refuse"}
    async with live_page(model=model, tools=(TOOLS[kind](till),), **options) as at:
        await at.say("Pay.")
        at.decide("pay", approved=True)
        takes_back.set()
        told = await at.answer()
        assert (errors_in(told), told.chunks[-1]["type"]) == ([WITHDRAWN], "finish")
        assert (await at.say("Hello?")).text == "Hello."
        assert (till.paid, await at.world.states(), len(model.sessions)) == ([], ["withdrawn"], 1)


async def breathe(ticks: int) -> None:
    for _ in range(ticks):
        await asyncio.sleep(0)
