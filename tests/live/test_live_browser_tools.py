"""Tools of the browser in a live session: with and without approval, with outputs, errors, wrong outputs and none."""

import asyncio
from itertools import permutations
from typing import Any

import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import call
from live.live_pages import (
    BROWSER_DEADLINE_S,
    DEADLINE_S,
    DENIED,
    EXPIRED,
    HELD,
    A,
    D,
    E,
    I,
    O,
    X,
    approved,
    both_families,
    live_page,
    segment,
    step,
    told_results,
)
from support.pages import Till

pytestmark = pytest.mark.virtual_time

PLACE = {"latitude": 1}
LONG_ANSWER = "That is that, " * 20  # enough of it to resume before its end


def where() -> dict[str, int]:  # pyright: ignore[reportReturnType]
    """Tells where the browser is."""


def play_track(track: int) -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Plays a track in the browser."""


FREE, GATED, PLAYER = client_tool(where), client_tool(where, approve=True), client_tool(play_track)

kinds = pytest.mark.parametrize("tool", [FREE, GATED], ids=["free", "gated"])


# -- outputs ----------------------------------------------------------------------------------------------------------


@both_families
@kinds
async def test_a_browser_that_fails_tells_the_model_its_error(family: str, tool: Any) -> None:
    async with live_page([call("where")], "Unknown.", family=family, tools=(tool,)) as at:
        await at.say("Where?")
        if tool is GATED:
            at.decide("where")
            assert (await at.answer()).types == segment("tool-input-available")
        at.fail("where", "No permission.")
        assert (await at.answer()).types == segment(*X)
        assert told_results(at.model) == [{"error": "No permission."}]
        await at.is_what_a_reload_shows()


@both_families
@kinds
async def test_an_output_that_does_not_fit_is_refused_and_the_call_stays_open(family: str, tool: Any) -> None:
    async with live_page([call("where")], "There.", family=family, tools=(tool,)) as at:
        await at.say("Where?")
        if tool is GATED:
            at.decide("where")
            await at.answer()
        wrong = {**at.part("where"), "state": "output-available", "output": {"latitude": "north"}}
        refused = await at.send_parts(at.messages[-1]["id"], wrong)
        assert (refused.error or {})["code"] == "output-does-not-fit"
        assert await at.world.states() == ["approved"]
        assert len(at.model.requests) == 1
        at.output("where", PLACE)
        assert (await at.answer()).types == segment(*X)
        assert told_results(at.model) == [PLACE]


@both_families
async def test_an_approval_beside_an_output_that_does_not_fit_counts_for_nothing(family: str) -> None:
    async with live_page([call("where")], "Unknown.", family=family, tools=(GATED,)) as at:
        await at.say("Where?")
        wrong = {**approved(at.part("where")), "state": "output-available", "output": {"latitude": "north"}}
        refused = await at.send_parts(at.messages[-1]["id"], wrong)
        assert (refused.error or {})["code"] == "output-does-not-fit"
        assert await at.world.states() == ["pending"]
        at.decide("where", approved=False)
        assert (await at.answer()).types == segment(*D, *X)


@both_families
async def test_an_output_sent_again_is_answered_without_a_second_turn_and_another_one_is_not_found(family: str) -> None:
    async with live_page([call("where")], "There.", family=family, tools=(FREE,)) as at:
        await at.say("Where?")
        at.output("where", PLACE)
        sent = dict(at.part("where"))
        await at.answer()
        again = await at.send_parts(at.messages[-1]["id"], sent)
        assert (again.status, again.text) == (200, "")
        another = await at.send_parts(at.messages[-1]["id"], {**sent, "output": {"latitude": 2}})
        assert (another.error or {})["code"] == "not-found"
        assert len(at.model.requests) == 2


# -- deadlines --------------------------------------------------------------------------------------------------------


@both_families
async def test_a_browser_that_does_not_answer_in_time_ends_its_call_in_a_turn_of_the_servers(family: str) -> None:
    async with live_page([call("where")], LONG_ANSWER, family=family, tools=(FREE,)) as at:
        await at.say("Where?")
        await asyncio.sleep(BROWSER_DEADLINE_S - 1)
        assert at.turns_told == 0
        await asyncio.sleep(1)
        late = await at.unasked_turn()
        assert late.types == segment(*step(*HELD), *E, *X)
        assert told_results(at.model) == [EXPIRED]
        assert await at.world.states() == ["expired"]
        await at.is_what_a_reload_shows()


@both_families
async def test_the_browsers_time_begins_when_the_person_has_agreed(family: str) -> None:
    async with live_page([call("where")], LONG_ANSWER, family=family, tools=(GATED,)) as at:
        await at.say("Where?")
        await asyncio.sleep(DEADLINE_S - 1)
        at.decide("where")
        await at.answer()
        await asyncio.sleep(BROWSER_DEADLINE_S - 1)
        assert (at.turns_told, await at.world.states()) == (0, ["approved"])
        await asyncio.sleep(1)
        assert (await at.unasked_turn()).text == LONG_ANSWER
        assert told_results(at.model) == [EXPIRED]
        await at.is_what_a_reload_shows_but_for_decisions()


@both_families
async def test_a_person_who_does_not_decide_in_time_ends_the_browsers_call(family: str) -> None:
    async with live_page([call("where")], LONG_ANSWER, family=family, tools=(GATED,)) as at:
        await at.say("Where?")
        await asyncio.sleep(DEADLINE_S)
        late = await at.unasked_turn()
        assert late.types == segment(*step(*HELD, *A), *E, *X)
        assert told_results(at.model) == [EXPIRED]
        assert late.of_type("tool-input-available") == []  # nobody may run it now
        await at.is_what_a_reload_shows()


@both_families
async def test_an_output_after_the_deadline_is_told_that_it_is_too_late(family: str) -> None:
    async with live_page([call("where")], "Too late.", family=family, tools=(FREE,)) as at:
        await at.say("Where?")
        await asyncio.sleep(BROWSER_DEADLINE_S + 1)
        filled = {**at.part("where"), "state": "output-available", "output": PLACE}
        late = await at.send_parts(at.messages[-1]["id"], filled)
        assert late.types == segment(*E, *step())
        assert told_results(at.model) == [EXPIRED]
        assert len(at.model.requests) == 2


# -- several calls ----------------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("order", ["together", (0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=str)
async def test_several_calls_of_the_browsers_keep_their_outputs_apart(family: str, order: Any) -> None:
    calls = [call("play_track", track=track) for track in (1, 2, 3)]
    async with live_page(calls, "They play.", family=family, tools=(PLAYER,)) as at:
        shown = segment(*step(*["tool-input-start"] * 3, *["tool-input-available"] * 3))
        assert (await at.say("Play.")).types == shown
        for number in (0, 1, 2) if order == "together" else order:
            at.output("play_track", {"plays": number}, number)
            if order != "together":
                answer = await at.answer()
        if order == "together":
            answer = await at.answer()
        assert answer.text == "They play."
        assert told_results(at.model) == [{"plays": 0}, {"plays": 1}, {"plays": 2}]
        assert len(at.model.requests) == 2
        await at.is_what_a_reload_shows()


@both_families
async def test_a_browsers_calls_come_one_after_the_other(family: str) -> None:
    script = [call("play_track", track=1)], [call("where")], "Played there."
    async with live_page(*script, family=family, tools=(PLAYER, GATED)) as at:
        await at.say("Play.")
        at.output("play_track", {"plays": 1})
        assert (await at.answer()).types == segment(*step(*HELD, *A))
        at.decide("where")
        await at.answer()
        at.output("where", PLACE)
        assert (await at.answer()).text == "Played there."
        assert told_results(at.model) == [{"plays": 1}, PLACE]
        assert len(at.messages) == 2
        await at.is_what_a_reload_shows()


MIXED = ["pay", "where"]


@both_families
@pytest.mark.parametrize("yes", [(True, True), (True, False), (False, True), (False, False)], ids=str)
@pytest.mark.parametrize("order", ["together", *permutations(MIXED)], ids=str)
async def test_a_payment_and_a_gated_browsers_call_are_answered_in_any_way(
    family: str, yes: tuple[bool, bool], order: Any
) -> None:
    till, says = Till(), dict(zip(MIXED, yes, strict=True))
    calls = [call("pay", amount=5), call("where")]
    async with live_page(calls, "Done.", family=family, tools=(till.gated, GATED)) as at:
        await at.say("Go.")
        for decided in [MIXED] if order == "together" else [[name] for name in order]:
            for name in decided:
                at.decide(name, approved=says[name])
            await at.answer()
        if says["where"]:
            assert len(at.model.requests) == 1
            assert at.states("where") == ["input-available"]
            at.output("where", PLACE)
            await at.answer()
        assert len(at.model.requests) == 2
        assert told_results(at.model) == [
            {"paid": 5} if says["pay"] else DENIED,
            PLACE if says["where"] else DENIED,
        ]
        assert till.paid == ([5] if says["pay"] else [])
        assert at.states() == ["output-available" if says[name] else "output-denied" for name in MIXED]
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
@pytest.mark.parametrize("order", ["together", "output first", "decision first"])
async def test_a_payment_and_a_free_browsers_call_are_answered_in_any_way(family: str, yes: bool, order: str) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("where")]
    async with live_page(calls, "Done.", family=family, tools=(till.gated, FREE)) as at:
        assert (await at.say("Go.")).types == segment(*step(*I, *HELD[:1], *A, "tool-input-available"))
        if order != "output first":
            at.decide("pay", approved=yes)
        if order != "decision first":
            at.output("where", PLACE)
        if order != "together":
            assert (await at.answer()).text == ""
            if order == "output first":
                at.decide("pay", approved=yes)
            else:
                at.output("where", PLACE)
        assert (await at.answer()).text == "Done."
        assert told_results(at.model) == [{"paid": 5} if yes else DENIED, PLACE]
        assert len(at.model.requests) == 2
        await at.is_what_a_reload_shows()


@both_families
async def test_of_a_payment_and_a_browsers_call_one_is_answered_and_the_other_runs_out_of_time(family: str) -> None:
    till = Till()
    calls = [call("pay", amount=5), call("where")]
    async with live_page(calls, LONG_ANSWER, family=family, tools=(till.gated, FREE)) as at:
        await at.say("Go.")
        at.decide("pay")
        assert (await at.answer()).types == segment(*O)
        await asyncio.sleep(BROWSER_DEADLINE_S)
        assert (await at.unasked_turn()).text == LONG_ANSWER
        assert told_results(at.model) == [{"paid": 5}, EXPIRED]
        assert at.states() == ["output-available", "output-error"]
        await at.is_what_a_reload_shows_but_for_decisions()
