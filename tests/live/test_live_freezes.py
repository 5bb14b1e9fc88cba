"""What a live session does between its scenarios: nothing freezes, and nobody is left in the dark."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools import FunctionTool
from google.adk.tools.agent_tool import AgentTool

from adk_stream_protocol import Limits
from adk_stream_protocol.adk.live.live_run import LiveRun
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel, ScriptedModel, call
from live.live_pages import World, beside, both_families, live_page, live_world, until
from support.asgi import exchange
from support.live_client import LiveClient
from support.pages import Till
from transports.live_apps import LiveApp, chunks, live_app, own, said, sound, texts

pytestmark = pytest.mark.virtual_time


async def until_closed(session: LiveSession) -> None:
    while (await session.expect()).kind != "close":
        pass


# -- interruptions -----------------------------------------------------------------------------------------------------


class Payment:
    """A model that is about to pay when it is interrupted."""

    def __init__(self, *, spoken: bool, by_model: bool = False) -> None:
        self.goes_on = asyncio.Event()
        self.results: list[Any] = []
        self._spoken = spoken
        self._by_model = by_model

    async def __call__(self, session: LiveSession) -> None:
        if self._spoken:
            await session.expect_audio()
            await session.input_transcript("Pay five", finished=True)
            await session.output_transcript("I am going to pay ")
        else:
            await session.expect_text()
            await session.say("I am going to pay ")
        await self.goes_on.wait()
        if self._by_model:
            await session.interrupted()
        await session.call("pay", amount=5)
        while (received := await session.expect()).kind != "close":
            if received.kind == "response":
                self.results.append(received.responses[0].response)
                await session.answer("Done.")
            elif received.kind == "content":
                await session.answer("Fine.")


async def begin_payment(client: LiveClient, *, spoken: bool) -> str:
    if spoken:
        client.send_frame(sound(20))
        await client.own("turn")
        request_id = client.new_request()
        client.send_frame({"type": "resume", "requestId": request_id, "id": "chat-1"})
    else:
        request_id = client.start_send(said("Pay five", "pay"))
    await client.until(lambda: len(chunks(client, request_id)) >= 3)
    return request_id


@both_families
@pytest.mark.parametrize("spoken", [True, False], ids=["spoken", "typed"])
@pytest.mark.parametrize("by_model", [True, False], ids=["the model notices", "the client says so"])
async def test_a_call_after_an_interruption_is_shown_with_its_approval(
    family: str, spoken: bool, by_model: bool
) -> None:
    till, server = Till(), Payment(spoken=spoken, by_model=by_model)
    tool = FunctionTool(till.pay, require_confirmation=True)
    async with live_app(server, speaks=spoken, family=family, tools=(tool,)) as live, live.attached() as client:
        request_id = await begin_payment(client, spoken=spoken)
        if not by_model:
            client.tell("interrupt")
            await client.answer(request_id)
        told = len(own(client, "turn"))
        server.goes_on.set()
        if by_model and not spoken:
            await client.answer(request_id)
        await client.own("turn", told + 1)
        asked = await client.resume()
        assert asked.types[-4:] == ["tool-approval-request", "data-adk-approval", "finish-step", "finish"]
        answer = await client.decide(asked, approved=True)
        assert answer.text.endswith("Done.")
        assert (till.paid, server.results) == ([5], [{"paid": 5}])


@both_families
async def test_a_call_after_an_interruption_is_refused_if_the_user_has_written_something_else(family: str) -> None:
    till, server = Till(), Payment(spoken=False)
    tool = FunctionTool(till.pay, require_confirmation=True)
    async with live_app(server, family=family, tools=(tool,)) as live, live.attached() as client:
        request_id = await begin_payment(client, spoken=False)
        client.tell("interrupt")
        await client.answer(request_id)
        other = client.start_send(said("Never mind", "other"))
        await client.until(lambda: chunks(client, other))
        server.goes_on.set()
        assert (await client.answer(other)).text
        assert till.paid == []
        assert "superseded" in str(server.results)


@both_families
async def test_a_tool_that_needs_nobody_is_shown_after_an_interruption(family: str) -> None:
    till, server = Till(), Payment(spoken=False)
    async with live_app(server, family=family, tools=(FunctionTool(till.pay),)) as live, live.attached() as client:
        request_id = await begin_payment(client, spoken=False)
        client.tell("interrupt")
        await client.answer(request_id)
        server.goes_on.set()
        await client.own("turn")
        shown = await client.resume()
        assert [chunk["output"] for chunk in shown.of_type("tool-output-available")] == [{"paid": 5}]


# -- turns -------------------------------------------------------------------------------------------------------------


@both_families
async def test_a_turn_without_a_word_ends_its_message_at_once(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.turn_complete()
        await session.expect_text()
        await session.answer("Here I am.")
        await until_closed(session)

    async with live_app(server, family=family) as live, live.attached() as client:
        begun = asyncio.get_running_loop().time()
        empty = await client.say("Hello")
        assert (empty.status, empty.text) == (200, "")
        assert asyncio.get_running_loop().time() - begun < 1
        assert (await client.say("Are you there?")).text == "Here I am."
        assert texts(await live.messages())[0] == ("user", "Hello")


@both_families
@pytest.mark.parametrize("ends_turn", [True, False], ids=["a turn ends between them", "nothing between them"])
async def test_two_utterances_before_an_answer_are_two_messages(family: str, ends_turn: bool) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.input_transcript("First.", finished=True)
        if ends_turn:
            await session.turn_complete()
        await session.expect_audio()
        await session.input_transcript("Second.", finished=True)
        await session.output_transcript("Answer.")
        await session.turn_complete()
        await until_closed(session)

    async with live_app(server, family=family, speaks=True) as live, live.attached() as client:
        for number in (1, 2):
            client.send_frame(sound(20))
            await client.until(
                lambda number=number: (
                    len({frame["messageId"] for frame in own(client, "transcript") if frame["role"] == "user"})
                    == number
                )
            )
        await client.own("turn")
        await client.resume()
        assert texts(await live.messages()) == [("user", "First."), ("user", "Second."), ("assistant", "Answer.")]
        assert len({message["id"] for message in await live.messages()}) == 3


@both_families
async def test_a_failure_after_speech_and_before_an_answer_is_told_once(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.input_transcript("Book a table", finished=True)
        session.fail(RuntimeError("1011 internal error"))
        await until_closed(session)

    async with live_app(server, family=family, speaks=True) as live, live.attached() as client:
        client.send_frame(sound(20))
        told = await client.own("error")
        assert told["id"] == "chat-1"
        assert "1011" not in told["message"]
        await asyncio.sleep(1)
        assert len(own(client, "error")) == 1
        assert live.runs == 0


@both_families
async def test_a_spoken_turn_is_shown_as_the_client_wants_that_wrote_before(family: str) -> None:
    async def server(session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.kind == "content":
                await session.answer("Hello.")
            elif received.kind == "audio":
                await session.call("pay", amount=5)

    tool = FunctionTool(Till().pay, require_confirmation=True)
    async with live_app(server, family=family, speaks=True, tools=(tool,)) as live, live.attached() as client:
        await client.say("Hello", body={"sdkVersion": 5})
        client.send_frame(sound(20))
        await client.own("turn")
        spoken = await client.resume()
        assert "adk_request_confirmation" in [chunk.get("toolName") for chunk in spoken.chunks]
        await live.bridge._service.stop("ann", "chat-1")  # pyright: ignore


@both_families
async def test_recorded_voice_stands_in_the_messages_that_it_was_spoken_in(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_audio()
        await session.input_transcript("Hello", finished=True)
        await session.audio(b"\1\0" * 2400)
        await session.output_transcript("Good morning.")
        await session.turn_complete()
        await until_closed(session)

    config = RunConfig(response_modalities=["AUDIO"], save_live_blob=True)  # pyright: ignore
    async with live_app(server, family=family, run_config=config) as live, live.attached() as client:
        client.send_frame(sound(40))
        await client.own("turn")
        await client.resume()
        await asyncio.sleep(1)
        shown = await live.messages()
        assert [message["role"] for message in shown] == ["user", "assistant"]
        kinds = [
            [part.get("mediaType", part["type"]).partition(";")[0] for part in message["parts"]] for message in shown
        ]
        assert [part for part in kinds[0] if part == "audio/pcm"] == ["audio/pcm"]
        assert [part for part in kinds[1] if part == "audio/pcm"] == ["audio/pcm"]
        assert len(own(client, "turn")) == 1


async def test_the_end_of_a_sub_agent_is_control_flow() -> None:
    async def first(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("First part. ")
        await session.call("task_completed")
        await until_closed(session)

    async def second(session: LiveSession) -> None:
        await session.expect()
        await session.answer("Second part.")
        await until_closed(session)

    models = [ScriptedLiveModel(script, family="3") for script in (first, second)]
    agents = [LlmAgent(name=name, model=model) for name, model in zip("ab", models, strict=True)]
    root: Any = SequentialAgent(name="helper", sub_agents=agents)
    async with live_world(agent=root, model=models[0]) as world, world.socket() as at:
        answer = await at.say("Go")
        assert answer.of_type("tool-input-start") == []
        assert answer.text == "First part. Second part."


# -- a microphone that stays open --------------------------------------------------------------------------------------


async def listens_for_ever(session: LiveSession) -> None:
    await until_closed(session)


async def microphone(client: LiveClient) -> None:
    while True:
        client.send_frame(sound(20))
        await asyncio.sleep(0.02)


async def end_chat(live: LiveApp, how: str) -> None:
    method, path = ("DELETE", "/api/chat/chat-1") if how == "deleted" else ("POST", "/api/chat/chat-1/stop")
    assert (await exchange(live.app, method=method, path=path, headers={"x-user": "ann"})).status == 204


@pytest.mark.parametrize("how", ["deleted", "stopped"])
async def test_an_open_microphone_does_not_bring_a_chat_back(how: str) -> None:
    async with live_app(listens_for_ever, speaks=True) as live, live.attached() as client:
        speaking = asyncio.create_task(microphone(client))
        await client.until(lambda: live.runs or client.tell("ping"))
        await asyncio.sleep(1)
        await end_chat(live, how)
        await asyncio.sleep(1)
        assert (live.runs, len(live.model.sessions)) == (0, 1)
        if how == "deleted":
            found = await exchange(live.app, method="GET", path="/api/chat/chat-1/messages", headers={"x-user": "ann"})
            assert found.status == 404
        client.tell("attach", id="chat-1")
        await asyncio.sleep(1)
        assert (live.runs, len(live.model.sessions)) == (1, 2)
        speaking.cancel()


# -- tools beside the conversation -------------------------------------------------------------------------------------


@both_families
async def test_a_pause_in_mid_text_while_a_tool_waits_begins_a_new_part(family: str) -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await session.say("One ")
        await asyncio.sleep(3)
        await session.say("two.")
        await session.turn_complete()
        await until_closed(session)

    tool = beside(Till().pay, require_confirmation=True)
    async with live_page(model=ScriptedLiveModel(server, family=family), tools=(tool,)) as at:
        await at.say("Pay.")  # the page's judge reads each segment by the grammar
        rest = await at.unasked_turn()
        assert rest.text.endswith("two.")
        assert at.states("pay") == ["approval-requested"]


class Slow:
    def __init__(self) -> None:
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()
        self.paid: list[int] = []

    async def pay(self, amount: int) -> dict[str, int]:
        """Pays, some time."""
        self.begun.set()
        await self.goes_on.wait()
        self.paid.append(amount)
        return {"paid": amount}


class Transfer:
    """Begins to pay, and hands over to another agent when it is told to."""

    def __init__(self, pay: FunctionTool, family: str) -> None:
        self.goes_on = asyncio.Event()
        self.model = ScriptedLiveModel(self._first, family=family)
        self.second = ScriptedLiveModel(self._second, family=family)
        other = LlmAgent(name="other", description="another one", model=self.second)
        self.agent = LlmAgent(name="helper", model=self.model, tools=[pay], sub_agents=[other])

    async def happens(self) -> None:
        self.goes_on.set()
        await asyncio.sleep(5)
        assert self.second.sessions

    async def _first(self, session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=5)
        await self.goes_on.wait()
        await session.call("transfer_to_agent", agent_name="other")
        await until_closed(session)

    async def _second(self, session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.asks_for_reply:
                await session.answer("Here is the other one.")


@both_families
async def test_a_call_that_waits_outlives_a_transfer(family: str) -> None:
    till = Till()
    transfer = Transfer(beside(till.pay, require_confirmation=True), family)
    async with live_world(agent=transfer.agent, model=transfer.model) as world, world.socket() as at:
        await at.say("Pay.")
        await transfer.happens()
        assert await world.states() == ["pending"]
        at.decide("pay")
        await at.answer(0)
        await until(lambda: till.paid == [5])
        assert await world.states() == ["done"]


@both_families
@pytest.mark.parametrize("gated", [True, False], ids=["gated", "free"])
async def test_a_tool_that_has_begun_outlives_a_transfer(family: str, gated: bool) -> None:
    slow = Slow()
    transfer = Transfer(beside(slow.pay, require_confirmation=gated), family)
    async with live_world(agent=transfer.agent, model=transfer.model) as world, world.socket() as at:
        asked = asyncio.create_task(at.say("Pay."))
        if gated:
            await asked
            at.decide("pay")
            asked = asyncio.create_task(at.answer(0))
        await slow.begun.wait()
        await transfer.happens()
        slow.goes_on.set()
        await until(lambda: slow.paid == [5])
        await asyncio.sleep(2)
        asked.cancel()
        assert await world.states() == (["done"] if gated else [])
        shown = await world.chat.messages()
        parts = [part for message in shown for part in message["parts"] if part["type"] == "tool-pay"]
        assert [part["state"] for part in parts] == ["output-available"]
        assert parts[0]["output"] == {"paid": 5}


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
        turn = await at.unasked_turn()
        assert turn.text.endswith("As you like.")
        assert (till.paid, await at.world.states()) == ([], ["withdrawn"])
