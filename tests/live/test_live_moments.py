"""Things that meet in one moment: an answer and a stop, a second answer, a restart; two workers; a mute model."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, LiveSession, ScriptedLiveModel, ScriptedModel, call
from live.live_pages import CHAT, LivePage, World, approved, both_families, live_page, live_world, until, until_closed
from support.apps import app_of, runner_of, user_of
from support.conversations import Conversation
from support.pages import Slow, Till

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]
MOMENTS = 60  # turns of the event loop: a decision has taken effect by then
talks_on = pytest.mark.parametrize("talks_on", [True, False], ids=["talking on", "waiting"])


def options(talks_on: bool) -> dict[str, Any]:
    return {"live_while_waiting": "continue" if talks_on else "refuse"}


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# -- a stop ------------------------------------------------------------------------------------------------------------


@both_families
@talks_on
async def test_a_stop_in_whatever_moment_of_an_approval_leaves_one_truth(family: str, talks_on: bool) -> None:
    outcomes: set[str] = set()
    for moment in range(MOMENTS):
        till = Till()
        async with live_page(*(PAY, "Paid."), family=family, tools=(till.gated,), **options(talks_on)) as at:
            asked = await at.say("Pay.")
            deciding = asyncio.create_task(at.send_parts(asked.message_id or "", approved(at.part("pay"))))
            await turns_of_the_loop(moment)
            await at.world.bridge.stop("ann", "c1")
            answer = await deciding
            assert answer.status in (200, 400)
            await until(lambda: not at.world.is_live)
            (state,) = await at.world.states()
            assert len(till.paid) == (state in ("done", "unknown")), state
            shown = [part["state"] for message in await at.chat.messages() for part in message["parts"][1:2]]
            assert "approval-requested" not in shown
            outcomes.add(state)
    assert outcomes >= {"denied", "done"}


# -- answers -----------------------------------------------------------------------------------------------------------


@both_families
@talks_on
async def test_a_second_answer_while_the_tool_of_the_first_runs_changes_nothing(family: str, talks_on: bool) -> None:
    till = Slow()
    async with live_page(*(PAY, "Paid."), family=family, tools=(till.gated,), **options(talks_on)) as at:
        asked = await at.say("Pay.")
        card, name = at.part("pay"), asked.message_id or ""
        answers = [asyncio.create_task(at.send_parts(name, approved(card)))]
        await till.started.wait()
        answers.append(asyncio.create_task(at.send_parts(name, approved(card, yes=False))))
        answers.append(asyncio.create_task(at.send_parts(name, approved(card))))
        await turns_of_the_loop(MOMENTS)
        till.go_on.set()
        told = [await answer for answer in answers]
        assert [one.status for one in told] == [200, 200, 200]
        assert all(outputs_of(one) in ([{"paid": 5}], []) for one in told)
        assert outputs_of(told[0]) == [{"paid": 5}]
        assert (till.paid, await at.world.states()) == ([5], ["done"])


def outputs_of(answer: Answer) -> list[Any]:
    return [chunk["output"] for chunk in answer.of_type("tool-output-available")]


# -- two workers -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def two_workers(till: Till, family: str, talks_on: bool) -> AsyncGenerator[tuple[LivePage, Conversation]]:
    """The live session is on the first, and only there does the model speak."""
    given: dict[str, Any] = {"family": family, "tools": (till.gated,), **options(talks_on)}
    async with live_page(*(PAY, "Paid.", "Hello."), **given) as at:
        agent = LlmAgent(name="helper", model=ScriptedModel([]), tools=[till.gated])
        sessions = runner_of(at.world.bridge).session_service
        other = ChatBridge(agent, user_id=user_of, store=at.world.store, session_service=sessions)
        yield at, Conversation(app_of(other), other, chat_id="c1")
        await other.aclose()


def decision(at: LivePage, yes: bool) -> dict[str, Any]:
    answered = {**at.messages[-1], "parts": [approved(at.part("pay"), yes)]}
    return {"id": "c1", "messageId": answered["id"], "messages": [answered]}


@both_families
@talks_on
@pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])
async def test_an_answer_that_another_worker_gets_over_http_reaches_the_live_session(
    family: str, talks_on: bool, yes: bool
) -> None:
    till = Till()
    async with two_workers(till, family, talks_on) as (at, there):
        await at.say("Pay.")
        posted = asyncio.create_task(there.post(decision(at, yes)))
        told = await at.unasked_turn()
        assert told.text == "Paid."
        assert (till.paid, await at.world.states()) == ([5] if yes else [], ["done" if yes else "denied"])
        answer = await posted
        outcome = "tool-output-available" if yes else "tool-output-denied"
        assert (answer.status, answer.types) == (200, ["start", outcome, "start-step", "finish-step", "finish"])
        assert (await at.say("Hello?")).text == "Hello."
        assert len(at.model.sessions) == 1


@both_families
@talks_on
async def test_answers_by_two_workers_at_once_are_one_decision(family: str, talks_on: bool) -> None:
    for moment in range(0, MOMENTS, 5):
        till = Till()
        async with two_workers(till, family, talks_on) as (at, there):
            asked = await at.say("Pay.")
            card = at.part("pay")
            posted = asyncio.create_task(there.post(decision(at, yes=False)))
            await turns_of_the_loop(moment)
            await at.send_parts(asked.message_id or "", approved(card))
            assert (await posted).status == 200
            await asyncio.sleep(5)
            (state,) = await at.world.states()
            assert till.paid == ([5] if state == "done" else [])
            assert state in ("done", "denied")


@both_families
@talks_on
async def test_a_call_that_is_approved_when_the_lease_is_lost_is_run_by_whoever_has_it_next(
    family: str, talks_on: bool
) -> None:
    """The worker was paused, and takes the approval up before it learns of its loss."""
    for moment in (0, 5, 15, 30):
        till = Till()
        async with live_page(*(PAY, "Paid."), family=family, tools=(till.gated,), **options(talks_on)) as at:
            asked = await at.say("Pay.")
            deciding = asyncio.create_task(at.send_parts(asked.message_id or "", approved(at.part("pay"))))
            await turns_of_the_loop(moment)
            store = at.world.store
            stored = store._leases[CHAT]  # pyright: ignore
            stored.expires_at = stored.expires_at - 1_000
            other = (await store.acquire(CHAT, 10)).lease
            assert other is not None
            await asyncio.sleep(8)
            await store.release(other)
            assert (await deciding).status in (200, 400)
            await asyncio.sleep(2_000)  # until somebody looks for what was approved and not begun
            (state,) = await at.world.states()
            shown = [part["state"] for part in (await at.chat.messages())[-1]["parts"] if part["type"] == "tool-pay"]
            ends = {"done": (1, ["output-available"]), "outcome-unknown": (1, ["output-error"])}
            assert (len(till.paid), shown) == ends[state]


# -- a restart ---------------------------------------------------------------------------------------------------------


@both_families
@talks_on
async def test_a_restart_in_whatever_moment_of_an_approval_loses_nothing(family: str, talks_on: bool) -> None:
    states: set[str] = set()
    for moment in range(MOMENTS):
        till, sessions = Till(), InMemorySessionService()
        store = MemoryStore(clock=asyncio.get_running_loop().time)
        given = {"family": family, "tools": (till.gated,), "record": store, "sessions": sessions, **options(talks_on)}
        async with live_world(PAY, "Paid.", **given) as world:
            async with world.socket() as at:
                await at.say("Pay.")
                at.decide("pay")
                deciding = asyncio.create_task(at.answer())
                await turns_of_the_loop(moment)
                await world.bridge.drain()
                await asyncio.wait([deciding])
                states.add((await world.states())[0])
            async with live_world("Paid.", **given) as next_world:
                await go_on_there(next_world, at)
                assert (till.paid, await next_world.states()) == ([5], ["done"])
    assert states >= {"pending", "done"}


async def go_on_there(world: World, at: LivePage) -> None:
    """The same answer again, as a client sends it that has lost its server."""
    page = at.over_http()
    page.chat = world.chat
    if (await world.states())[0] != "done":
        assert (await page.answer()).status == 200
        await until(lambda: not world.is_live)


# -- a model that says nothing -----------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("begins", [True, False], ids=["in mid-answer", "before a word"])
async def test_a_model_that_falls_silent_is_given_up_and_the_user_is_told(family: str, begins: bool) -> None:
    async def server(session: LiveSession) -> None:
        words = await session.expect_text()
        if words == "Hello?":
            await session.answer("Here I am.")
        elif begins:
            await session.say("Well, ")
        await until_closed(session)

    model = ScriptedLiveModel(server, family=family)
    async with live_page(model=model, limits=Limits(live_silence_s=15)) as at:
        begun_at = asyncio.get_running_loop().time()
        silent = await at.say("Are you there?")
        assert silent.chunks[-1]["type"] == "error"
        assert asyncio.get_running_loop().time() - begun_at < 20
        assert (await at.say("Hello?")).text == "Here I am."
        assert len(model.sessions) == 2
