"""What a resume reads: the request that it names, or the whole message that is running; and for how long."""

import asyncio

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.testing import LiveSession, call
from support.live_client import LiveClient, decisions, outputs
from transports.live_apps import LiveApp, answers_for_ever, chunks, live_app, resume, said, sequences

pytestmark = pytest.mark.virtual_time

# -- requests that nobody knows ---------------------------------------------------------------------------------------


async def test_an_unknown_request_is_answered_by_no_active_when_nothing_runs() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        for fields in ({}, {"lastSequence": 3}):
            got = await resume(client, "unknown", **fields)
            assert got == [{"type": "no-active", "requestId": "unknown"}]
        await client.say("Hello")
        assert [frame["type"] for frame in await resume(client, "unknown")] == ["no-active"]


async def test_an_unknown_request_reads_the_whole_message_that_is_running() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("One ")
        await resumed.wait()
        await session.answer("two.")
        await session.expect("close")

    resumed = asyncio.Event()
    async with live_app(server) as live, live.socket() as client, live.socket() as other:
        request_id = client.start_send(said("Count"))
        await client.until(lambda: len(chunks(client, request_id)) == 4)
        got = await resume(other, "lost", lastSequence=2)  # an unknown request cannot go on
        assert got == [{"type": "no-active", "requestId": "lost"}]
        other.send_frame({"type": "resume", "requestId": "mine", "id": "chat-1"})
        await other.until(lambda: len(chunks(other, "mine")) == 4)
        resumed.set()
        await other.answer("mine")
        await client.answer(request_id)
        assert chunks(other, "mine") == chunks(client, request_id)
        assert sequences(other.frames["mine"])[0] == 0
        # It is a request like any other now, and goes on by its own numbers.
        got = await resume(client, "mine", lastSequence=4)
        assert [frame["type"] for frame in got][:2] == ["start", "chunk"]
        assert sequences(got)[0] == 5


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


def locate() -> None:
    """Where the user is."""


TOOLS = (FunctionTool(pay, require_confirmation=True), client_tool(locate))


async def until_paid(live: LiveApp, client: LiveClient) -> str:
    """A message of three segments, whose last one is running."""
    asked = await client.say("Pay 1 and find me")
    parts = decisions(asked, approved=True)
    located = await client.reply(asked.chunks[0]["messageId"], *parts)
    return client.start_reply(asked.chunks[0]["messageId"], *parts, *outputs(located, {"lat": 1}))


async def test_a_replay_has_the_whole_message_and_its_finished_calls_without_running_them_again() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.call("pay", amount=1)
        await session.expect_response()
        await session.call("locate")
        await session.expect_response()
        await session.say("Paid, ")
        await replayed.wait()
        await session.answer("here.")
        await session.expect("close")

    replayed = asyncio.Event()
    async with live_app(server, family="3", tools=TOOLS) as live, live.socket() as client:
        request_id = await until_paid(live, client)
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        async with live.socket() as other:
            other.send_frame({"type": "resume", "requestId": "mine", "id": "chat-1"})
            await other.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(other, "mine")))
            replayed.set()
            answer = await other.answer("mine")
            assert [kind for kind in answer.types if kind == "start"] == ["start"]
            assert answer.of_type("tool-input-available") == []
            texts = [chunk["inputTextDelta"] for chunk in answer.of_type("tool-input-delta")]
            assert texts == ['{"amount":1}', "{}"]
            assert [chunk["output"] for chunk in answer.of_type("tool-output-available")] == [
                {"paid": 1},
                {"lat": 1},
            ]
            assert answer.text == "Paid, here."
            assert answer.types[-1] == "finish"
    await live.model.finished()


async def test_voice_in_the_stream_is_not_played_again() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.audio(b"\1\0\2\0")
        await session.output_transcript("One ")
        await session.taken()
        await resumed.wait()
        await session.audio(b"\3\0")
        await session.output_transcript("two.")
        await session.turn_complete()
        await session.expect("close")

    resumed = asyncio.Event()
    wants_voice = {"pcmChunks": True}
    async with live_app(server, speaks=True) as live, live.socket() as client, live.socket() as other:
        request_id = client.start_send(said("Speak"), body=wants_voice)
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        other.send_frame({"type": "resume", "requestId": "mine", "id": "chat-1", "body": wants_voice})
        await other.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(other, "mine")))
        resumed.set()
        played = (await client.answer(request_id)).of_type("data-pcm")
        assert [chunk["data"]["data"] for chunk in played] == ["AQACAA==", "AwA="]
        played = (await other.answer("mine")).of_type("data-pcm")
        assert [chunk["data"]["data"] for chunk in played] == ["AwA="]


# -- how long they are known ------------------------------------------------------------------------------------------


async def test_a_request_is_known_for_the_whole_grace_after_its_end() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("One ")
        await asyncio.sleep(29.5)
        await session.answer("two.")
        await session.expect("close")

    async with live_app(server, limits=Limits(live_grace_s=30)) as live, live.socket() as client:
        request_id = client.start_send(said("Count"))
        await client.until(lambda: len(chunks(client, request_id)) == 4)
        await asyncio.sleep(29.6)
        await client.answer(request_id)
        async with live.socket() as other:
            await asyncio.sleep(28)
            got = await resume(other, request_id, lastSequence=3)
            assert [frame["type"] for frame in got][-1] == "end"
            await asyncio.sleep(100)
            assert [frame["type"] for frame in await resume(other, request_id)] == ["no-active"]


async def test_a_call_whose_result_is_there_is_answered_over_a_new_socket_under_a_new_id() -> None:
    async with live_app([[call("pay", amount=1)], "Paid."], tools=TOOLS) as live:
        async with live.socket() as client:
            asked = await client.say("Pay")
            parts = decisions(asked, approved=True)
            request_id = client.start_reply(asked.chunks[0]["messageId"], *parts)
            first = await client.answer(request_id)
        async with live.socket() as other:
            again = await other.reply(asked.chunks[0]["messageId"], *parts)
            assert [chunk["output"] for chunk in again.of_type("tool-output-available")] == [{"paid": 1}]
            got = await resume(other, request_id)
            assert [frame["chunk"] for frame in got if frame["type"] == "chunk"] == first.chunks
        assert len(live.model.requests) == 2
