"""Spoken turns: empty ones, two before an answer, failures between them; and a microphone that stays open."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.adk.tools import FunctionTool
from google.genai import types

from adk_stream_protocol.adk.live.model_events import read_event
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from live.live_pages import both_families, live_world, until_closed
from support.asgi import exchange
from support.live_client import LiveClient
from support.pages import Till
from transports.live_apps import LiveApp, live_app, own, sound, texts

pytestmark = pytest.mark.virtual_time


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


@pytest.mark.parametrize("by", ["attach", "voice-start"])
@pytest.mark.parametrize("how", ["deleted", "stopped"])
async def test_an_open_microphone_does_not_bring_a_chat_back(how: str, by: str) -> None:
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
        await client.resume()  # as a page does that looks whether something runs
        await asyncio.sleep(1)
        assert (live.runs, len(live.model.sessions)) == (0, 1)
        client.tell(by, id="chat-1")
        await asyncio.sleep(1)
        assert (live.runs, len(live.model.sessions)) == (1, 2)
        speaking.cancel()


@pytest.mark.parametrize("name", ["task_completed", "transfer_to_agent", "pay"])
def test_control_flow_is_no_call_of_a_live_session(name: str) -> None:
    made = types.Part(function_call=types.FunctionCall(id="1", name=name, args={}))
    event = Event(author="helper", invocation_id="i1", content=types.Content(role="model", parts=[made]))
    assert read_event(event).calls == ((CallKey("i1", "1"),) if name == "pay" else ())
