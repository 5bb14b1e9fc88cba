"""One conversation over both doors: what was asked at one is answered at the other, and the model of either mode knows
all that was said in the other. And what ADK does by itself in live mode."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.genai import types

from adk_stream_protocol import ChatBridge, Limits, client_tool
from adk_stream_protocol.testing import ChatClient, LiveSession, ScriptedLiveModel, call
from live.live_pages import (
    DENIED,
    D,
    O,
    X,
    approved,
    both_families,
    live_page,
    live_world,
    segment,
    told_results,
    until,
)
from support.apps import app_of, user_of
from support.conversations import asked_parts, every_store
from support.live_client import live_socket
from support.live_runs import line, live_run
from support.pages import Till
from support.workers import answer_body, workers

decisions = pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])


# -- from door to door ------------------------------------------------------------------------------------------------


@both_families
@decisions
@pytest.mark.virtual_time
async def test_what_was_asked_in_request_mode_is_answered_over_the_socket(family: str, yes: bool) -> None:
    till = Till()
    script = [call("pay", amount=5)], "Done.", "Hello."
    async with live_page(*script, family=family, tools=(till.gated,)) as at:
        page = at.over_http()
        await page.say("Pay.")
        at.decide("pay", approved=yes)
        assert (await at.answer()).types == segment(*(O if yes else D), *X)
        assert told_results(at.model) == [{"paid": 5} if yes else DENIED]
        assert till.paid == ([5] if yes else [])
        assert (await at.say("Hello?")).text == "Hello."
        await at.is_what_a_reload_shows()


@both_families
@decisions
@pytest.mark.virtual_time
async def test_what_was_asked_in_request_mode_is_answered_while_a_live_session_is_open(family: str, yes: bool) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect("history")  # which ends with a question, so that the model begins to answer it
        assert await session.expect_text() == "What time is it?"
        await session.interrupted()
        await session.turn_complete()
        await session.answer("It is noon.")
        await session.expect("close")

    class BothModes(ScriptedLiveModel):
        """Follows its script in request mode only."""

        def __init__(self) -> None:
            super().__init__([[call("pay", amount=5)], "Done."], family=family)
            self._server = server

    till = Till()
    async with live_page(model=BothModes(), tools=(till.gated,)) as at:
        await at.over_http().say("Pay.")
        assert (await at.say("What time is it?")).text == "It is noon."
        at.decide("pay", approved=yes)
        late = await at.answer(0)
        assert (late.types, late.text) == (segment(*(O if yes else D), *X), "Done.")
        assert till.paid == ([5] if yes else [])
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.virtual_time
async def test_one_conversation_goes_from_mode_to_mode_and_its_models_know_it_all(family: str) -> None:
    till = Till()
    script = (
        [call("pay", amount=5)],
        "Paid five.",
        [call("pay", amount=6)],
        "Paid six.",
        [call("pay", amount=7)],
        "Paid seven.",
    )
    async with live_world(*script, family=family, tools=(till.gated,)) as world:
        page = world.page()
        await page.say("Pay five.")
        page.decide("pay", 0)
        await page.answer()
        async with world.socket() as at:
            at.take_over(page)
            await at.say("Pay six.")
            at.decide("pay", 1)
            assert (await at.answer()).text == "Paid six."
        await world.run_ended()
        await page.say("Pay seven.")
        page.decide("pay", 2)
        assert (await page.answer()).text == "Paid seven."
        assert asked_parts(world.model.requests[-1]) == [
            "Pay five.", {"call": "pay"}, {"result": {"paid": 5}}, "Paid five.",
            "Pay six.", {"call": "pay"}, {"result": {"paid": 6}}, "Paid six.",
            "Pay seven.", {"call": "pay"}, {"result": {"paid": 7}},
        ]  # fmt: skip
        roles = [content.role for content in world.model.requests[-1].contents]
        assert roles == ["user", "model", "user", "model"] * 2 + ["user", "model", "user"]
        await page.is_what_a_reload_shows()


@every_store
@both_families
async def test_every_session_service_keeps_one_conversation_of_both_modes(store: Any, family: str) -> None:
    """In real time, since databases have threads of their own."""
    till = Till()
    script = [call("pay", amount=5)], "Paid five.", [call("pay", amount=6)], "Paid six.", "Bye."
    model = ScriptedLiveModel(script, family=family)
    async with store() as sessions:
        bridge = ChatBridge(
            LlmAgent(name="helper", model=model, tools=[till.gated]),
            user_id=user_of,
            session_service=sessions,
            run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
        )
        app = app_of(bridge)
        client = ChatClient(app, chat_id="c1")
        asked = await client.send("Pay five.")
        await client.approve(asked)
        async with live_socket(app, chat_id="c1") as live:
            asked = await live.say("Pay six.")
            assert (await live.decide(asked, approved=True)).text == "Paid six."
        await bridge.stop("ann", "c1")
        assert (await client.send("Bye?")).text == "Bye."
        assert asked_parts(model.requests[-1]) == [
            "Pay five.", {"call": "pay"}, {"result": {"paid": 5}}, "Paid five.",
            "Pay six.", {"call": "pay"}, {"result": {"paid": 6}}, "Paid six.", "Bye?",
        ]  # fmt: skip
        assert till.paid == [5, 6]
        await bridge.aclose()


@every_store
@both_families
async def test_every_session_service_keeps_what_a_lost_socket_has_asked(store: Any, family: str) -> None:
    """In real time, since databases have threads of their own."""
    till = Till()
    model = ScriptedLiveModel([[call("pay", amount=5), call("pay", amount=6)], "One paid."], family=family)
    async with store() as sessions:
        bridge = ChatBridge(
            LlmAgent(name="helper", model=model, tools=[till.gated]),
            user_id=user_of,
            session_service=sessions,
            run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
            limits=Limits(live_grace_s=0.01),
        )
        app = app_of(bridge)
        async with live_socket(app, chat_id="c1") as live:
            asked = await live.say("Pay.")
        while list(bridge._service._leases):  # pyright: ignore
            await asyncio.sleep(0.01)
        client = ChatClient(app, chat_id="c1")
        first, second = asked.approvals
        parts = [approved(first), approved(second, False)]
        assert (await client.reply(asked, parts)).text == "One paid."
        assert told_results(model) == [{"paid": 5}, DENIED]
        assert till.paid == [5]
        await bridge.aclose()


@both_families
@pytest.mark.parametrize("said", ["yes", "no", "output"])
@pytest.mark.virtual_time
async def test_an_answer_to_another_worker_ends_with_what_the_live_session_made_of_it(family: str, said: str) -> None:
    def place() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
        """Runs in the browser."""

    till, text = Till(), RunConfig(response_modalities=[types.Modality.TEXT])
    script = [call("place") if said == "output" else call("pay", amount=5)], "Done."
    model, tools = ScriptedLiveModel(script, family=family), (till.gated, client_tool(place))
    async with workers(model=model, tools=tools, run_config=text) as staff:
        app = app_of(staff.bridge())
        async with live_socket(app, chat_id="c1") as live:
            elsewhere = staff.page()
            elsewhere.read(await live.say("Go on."))
            if said == "output":
                elsewhere.output("place", {"latitude": 1})
            else:
                elsewhere.decide("pay", approved=said == "yes")
            answer = await elsewhere.chat.post(answer_body(elsewhere))
            outcome = {"yes": O, "no": D, "output": O}[said]
            assert answer.types == ["start", *outcome, "start-step", "finish-step", "finish"]
            assert staff.bridges[0]._service.live_voice("ann", "c1") is not None  # pyright: ignore
            await until(lambda: len(model.requests) == 2)
            assert told_results(model) == [{"yes": {"paid": 5}, "no": DENIED, "output": {"latitude": 1}}[said]]
            assert till.paid == ([5] if said == "yes" else [])


@both_families
@pytest.mark.virtual_time
async def test_words_over_http_are_told_to_wait_while_live_mode_answers(family: str) -> None:
    going = asyncio.Event()

    async def work() -> dict[str, str]:
        """Works."""
        await going.wait()
        return {"ok": "yes"}

    async with live_page([call("work")], "Done.", family=family, tools=(work,)) as at:
        answering = asyncio.create_task(at.say("Work."))
        await asyncio.sleep(1)
        refused = await at.world.page().say("Hello?")
        assert (refused.status, (refused.error or {})["code"]) == (409, "run-active")
        going.set()
        assert (await answering).text == "Done."


@both_families
@pytest.mark.parametrize("asks", [False, True], ids=["while nothing is told", "while something waits"])
@pytest.mark.virtual_time
async def test_words_over_http_are_told_to_wait_while_a_live_session_is_open(family: str, asks: bool) -> None:
    till = Till()
    script = [call("pay", amount=5)] if asks else "Hi.", "Paid."
    async with live_page(*script, family=family, tools=(till.gated,)) as at:
        await at.say("Hello?")
        refused = await at.world.page().say("Hello, too?")
        assert (refused.status, (refused.error or {})["code"]) == (409, "run-active")
        assert len(at.model.requests) == 1
        if asks:
            at.decide("pay")
            assert (await at.answer()).text == "Paid."


@both_families
@pytest.mark.virtual_time
async def test_nothing_that_was_said_live_is_taken_back_over_http(family: str) -> None:
    async with live_world("One.", "Two.", "Three.", family=family) as world:
        async with world.socket() as at:
            await at.say("One?")
            await at.say("Two?")
        await world.run_ended()
        refused = await world.chat.regenerate(at.messages[2]["id"])
        assert (refused.status, (refused.error or {})["code"]) == (400, "malformed")
        assert (await at.over_http().say("Three?")).text == "Three."


# -- ADK itself -------------------------------------------------------------------------------------------------------


@both_families
async def test_adk_alone_still_refuses_gated_tools_in_live_mode_and_asks_nobody(family: str) -> None:
    """The day this fails, ADK asks by itself, and our gate must step aside: there would be two questions."""
    till = Till()
    model = ScriptedLiveModel([[call("pay", amount=5)], "Refused."], family=family)
    async with live_run(LlmAgent(name="helper", model=model, tools=[till.gated])) as plain:
        plain.write("Pay.")
        await plain.until("TEXT")
        await plain.rest()
        made = [found.name for event in plain.events for found in event.get_function_calls()]
        assert made == ["pay"]
        assert not any("adk_request_confirmation" in line(event) for event in plain.events)
        (result,) = told_results(model)
        assert "requires confirmation" in result["error"]
        assert till.paid == []


@both_families
@pytest.mark.virtual_time
async def test_events_of_a_named_live_session_are_stored_without_its_name(family: str) -> None:
    """ADK would tell the agent its own words as those of another agent, in the user's role."""
    till = Till()
    script = [call("pay", amount=5)], "Paid.", "Hello."
    model = ScriptedLiveModel(script, family=family, live_session_id="x")
    async with live_world(model=model, tools=(till.gated,)) as world:
        async with world.socket() as at:
            await at.say("Pay.")
            at.decide("pay")
            await at.answer()
        await world.run_ended()
        session = await world.chat.session()
        assert session is not None
        assert {event.live_session_id for event in session.events} == {None}
        assert (await at.over_http().say("Hello?")).text == "Hello."
        known = [(content.role, part.text) for content in model.requests[-1].contents for part in content.parts or ()]
        assert known == [("user", "Pay."), ("model", None), ("user", None), ("model", "Paid."), ("user", "Hello?")]


@both_families
@pytest.mark.virtual_time
async def test_a_model_does_not_speak_unasked_when_a_socket_comes_back_to_a_named_session(family: str) -> None:
    model = ScriptedLiveModel(["Hi.", "Bye."], family=family, live_session_id="x")
    async with live_world(model=model) as world:
        async with world.socket() as at:
            await at.say("Hello?")
        await world.run_ended()
        async with world.socket() as back:
            assert (await back.say("Bye?")).text == "Bye."
            assert asked_parts(model.requests[-1]) == ["Hello?", "Hi.", "Bye?"]
            assert back.turns_told == 0
