"""What a session leaves behind that lost its lease, its process, its connection or a call."""

import asyncio

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool
from google.adk.tools.agent_tool import AgentTool

from adk_stream_protocol import Limits
from adk_stream_protocol.adk.live.live_run import LiveRun
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, ScriptedModel, call
from live.live_pages import World, both_families, live_page, live_world
from support.pages import Till
from transports.live_apps import LiveApp, chunks, live_app, said, texts

pytestmark = pytest.mark.virtual_time


# -- calls that wait when the session ends -----------------------------------------------------------------------------


async def lose_lease(world: World) -> None:
    """As a worker does that was paused for too long: another one has the chat by now."""
    (run,) = world.bridge._service._leases  # pyright: ignore
    app_name = world.chat.runner.app_name
    world.store._leases.pop(ChatKey(app_name, "ann", "c1"))  # pyright: ignore
    await run.lose_lease()


@both_families
async def test_a_lost_lease_leaves_what_waits_pending(family: str) -> None:
    till = Till()
    tool = FunctionTool(till.pay, require_confirmation=True)
    async with live_page([call("pay", amount=5)], "Done.", family=family, tools=(tool,)) as at:
        await at.say("Pay.")
        await lose_lease(at.world)
        assert await at.world.states() == ["pending"]
        at.decide("pay")
        await at.answer()
        assert (till.paid, await at.world.states()) == ([5], ["done"])


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # ADK's own use of it
@both_families
@pytest.mark.parametrize("how", ["killed", "ended"])
async def test_a_call_inside_an_agent_that_is_a_tool_is_refused_when_its_session_is_gone(family: str, how: str) -> None:
    till = Till()
    inner = LlmAgent(
        name="payer",
        model=ScriptedModel([[call("pay", amount=5)], "Paid."]),
        tools=[FunctionTool(till.pay, require_confirmation=True)],
    )
    model = ScriptedLiveModel(([call("payer", request="five")], "Done.", "Hello."), family=family)
    agent = LlmAgent(name="helper", model=model, tools=[AgentTool(inner)])
    async with live_world(agent=agent, model=model) as world:
        async with world.socket() as at:
            await at.say("Pay.")
            assert await world.states() == ["pending"]
            if how == "killed":
                await lose_lease(world)
                assert await world.states() == ["pending"]
        if how == "ended":
            await world.run_ended()
        page = world.page()
        await page.say("Hello?")
        assert (till.paid, await world.states()) == ([], ["denied"])


# -- the connection to the model ---------------------------------------------------------------------------------------


def run_of(live: LiveApp) -> LiveRun:
    (run,) = live.bridge._service._leases  # pyright: ignore
    assert isinstance(run, LiveRun)
    return run


class Begins:
    """Begins an answer, and goes on if it is told to."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def __call__(self, session: LiveSession) -> None:
        await session.expect_text()
        await session.say("Once upon ")
        go_on, heard = asyncio.create_task(self.goes_on.wait()), asyncio.create_task(session.expect())
        await asyncio.wait([go_on, heard], return_when=asyncio.FIRST_COMPLETED)
        if go_on.done():
            await session.say("a time.")
            await session.turn_complete()
        go_on.cancel()
        while (await heard).kind != "close":
            await session.answer("Fine.")
            heard = asyncio.create_task(session.expect())


@pytest.mark.parametrize("goes_on", [True, False], ids=["the service goes on", "it does not"])
async def test_an_answer_whose_connection_is_lost_ends_within_seconds(goes_on: bool) -> None:
    server = Begins()
    async with live_app(server) as live, live.attached() as client:
        request_id = client.start_send(said("Tell me a story", "story"))
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        lost_at = asyncio.get_running_loop().time()
        run_of(live).connection_lost()
        if goes_on:
            server.goes_on.set()
        story = await client.answer(request_id)
        assert story.chunks[-1]["type"] == ("finish" if goes_on else "error")
        assert asyncio.get_running_loop().time() - lost_at <= Limits().live_resume_s + 1
        assert (await client.say("Go on")).text.startswith("Fine.")
        history = texts(await live.messages())
        assert [role for role, _ in history] == ["user", "assistant"] * 2
        assert history[1][1] == ("Once upon a time." if goes_on else "Once upon ")


async def test_a_call_that_the_model_takes_back_does_not_run() -> None:
    till = Till()
    tool = FunctionTool(till.pay, require_confirmation=True)
    async with live_page([call("pay", amount=5)], "As you like.", tools=(tool,)) as at:
        await at.say("Pay.")
        (run,) = at.world.bridge._service._leases  # pyright: ignore
        (record,) = await at.world.records()
        run.withdrawn([record.call.call_id])  # pyright: ignore
        assert (await at.unasked_turn()).of_type("tool-output-error")
        assert (await at.say("Never mind.")).text == "As you like."
        assert (till.paid, await at.world.states()) == ([], ["withdrawn"])
