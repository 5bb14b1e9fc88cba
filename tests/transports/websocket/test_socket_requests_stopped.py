"""How the requests of a live socket are aborted, and the session of its chat stopped."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest

from adk_stream_protocol import Limits
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from support.live_client import LiveClient
from transports.live_apps import (
    LiveApp,
    answers_after,
    answers_for_ever,
    chunks,
    live_app,
    ping,
    said,
    talks_for_ever,
    texts,
)

pytestmark = pytest.mark.virtual_time


async def test_an_abort_stops_the_run() -> None:
    async with live_app(talks_for_ever) as live, live.socket() as client:
        request_id = client.start_send(said("Go on"))
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        client.send_frame({"type": "abort", "requestId": request_id})
        answer = await client.answer(request_id)
        assert answer.text == "Well, "
        assert answer.types[-3:] == ["text-end", "finish-step", "abort"]
        await nothing_runs(live)
        await live.model.finished()  # the connection to the model was closed


async def nothing_runs(live: LiveApp) -> None:
    while live.runs:
        await asyncio.sleep(0.1)


async def test_an_abort_right_behind_its_send_is_not_lost() -> None:
    async with live_app(talks_for_ever) as live, live.socket() as client:
        request_id = client.start_send(said("Go on"))
        client.send_frame({"type": "abort", "requestId": request_id})
        await client.answer(request_id)
        await nothing_runs(live)


async def test_an_abort_only_ends_the_reading_where_runs_are_to_survive_it() -> None:
    go_on = asyncio.Event()
    async with live_app(answers_after(go_on), limits=Limits(abort_stops_run=False)) as live, live.socket() as client:
        request_id = client.start_send(said("Go on"))
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        client.send_frame({"type": "abort", "requestId": request_id})
        await ping(client)
        seen = len(client.frames[request_id])
        go_on.set()
        again = await client.resume()
        assert again.text == "Well, fine."
        assert len(client.frames[request_id]) == seen
        history = await live.messages()
        assert history[-1]["parts"][-1]["text"] == "Well, fine."


async def read_twice(first: LiveClient, second: LiveClient) -> tuple[str, str]:
    """Two requests that read one message."""
    asked, read = first.start_send(said("Go on")), "also-read"
    await first.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(first, asked)))
    second.send_frame({"type": "resume", "requestId": read, "id": "chat-1"})
    await second.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(second, read)))
    return asked, read


@pytest.mark.parametrize("who", ["who asked", "who only reads"])
async def test_the_abort_of_one_reader_leaves_the_others_their_message(who: str) -> None:
    go_on = asyncio.Event()
    async with live_app(answers_after(go_on)) as live, live.socket() as asking, live.socket() as reading:
        asked, read = await read_twice(asking, reading)
        leaving, left, staying, stays = (asking, asked, reading, read)
        if who == "who only reads":
            leaving, left, staying, stays = (reading, read, asking, asked)
        leaving.send_frame({"type": "abort", "requestId": left})
        await ping(leaving)
        seen = len(leaving.frames[left])
        go_on.set()
        assert (await staying.answer(stays)).text == "Well, fine."
        assert len(leaving.frames[left]) == seen
        assert live.runs == 1


async def test_the_abort_of_the_last_reader_stops_the_run() -> None:
    async with live_app(talks_for_ever) as live, live.socket() as first, live.socket() as second:
        asked, read = await read_twice(first, second)
        for client, request_id in ((first, asked), (second, read)):  # at the same time
            client.send_frame({"type": "abort", "requestId": request_id})
        await nothing_runs(live)
        assert {chunks(first, asked)[-1]["type"], chunks(second, read)[-1]["type"]} == {"text-delta", "abort"}


async def test_two_requests_of_one_socket_are_two_readers() -> None:
    async with live_app(talks_for_ever) as live, live.socket() as client:
        asked, read = await read_twice(client, client)
        client.send_frame({"type": "abort", "requestId": asked})
        await ping(client)
        await asyncio.sleep(10)
        assert live.runs == 1
        client.send_frame({"type": "abort", "requestId": read})
        await nothing_runs(live)


async def test_an_abort_of_what_has_ended_or_never_was_does_nothing() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        request_id = client.start_send(said("Hello"))
        await client.answer(request_id)
        client.send_frame({"type": "abort", "requestId": request_id})
        client.send_frame({"type": "abort", "requestId": "never-was"})
        await ping(client)
        assert client.frames[request_id][-1]["type"] == "end"
        assert "never-was" not in client.frames
        assert live.runs == 1
        assert (await client.say("Still there?")).text == "Yes."
        assert len(live.model.sessions) == 1


async def test_an_abort_of_an_old_request_does_not_stop_what_another_has_started() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.answer("Yes.")
        await talks_for_ever(session)

    async with live_app(server) as live, live.socket() as client:
        old = client.start_send(said("One"))
        await client.answer(old)
        new = client.start_send(said("Two", "u2"))
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, new)))
        client.send_frame({"type": "abort", "requestId": old})
        await ping(client)
        assert live.bridge._service.running("ann", "chat-1") is not None


async def test_stop_ends_the_session_of_the_attached_chat_and_no_other() -> None:
    async with live_app(talks_for_ever) as live, live.attached(chat_id="chat-1") as client:
        requests = [
            client.start_send(said("Go on", f"u{number}"), id=f"chat-{number}", messages=[said("Go on")])
            for number in (1, 2)
        ]
        for request_id in requests:
            await client.until(lambda id=request_id: len(chunks(client, id)) >= 3)
        client.tell("stop")
        assert (await client.answer(requests[0])).chunks[-1]["type"] == "abort"
        while live.runs > 1:
            await asyncio.sleep(0.1)
        assert live.bridge._service.running("ann", "chat-2") is not None
        assert client.frames[requests[1]][-1]["type"] == "chunk"


class Slow(MemoryStore):
    async def acquire(self, *about: Any, **more: Any) -> Any:
        await asyncio.sleep(1)
        return await super().acquire(*about, **more)


async def test_a_stop_while_the_session_is_being_opened_is_not_lost() -> None:
    store = Slow(clock=asyncio.get_running_loop().time)
    async with live_app(talks_for_ever, store=store) as live, live.attached() as client:
        request_id = client.start_send(said("Go on"))
        await asyncio.sleep(0.5)
        client.tell("stop")
        assert (await client.answer(request_id)).chunks[-1]["type"] == "abort"
        assert live.runs == 0


async def test_what_was_sent_is_kept_also_when_the_connection_to_the_model_takes_long_to_end() -> None:
    class Slow(ScriptedLiveModel):
        @asynccontextmanager
        async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection]:
            try:
                async with super().connect(llm_request) as connection:
                    yield connection
            finally:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(10)
                await asyncio.sleep(10)

    async with live_app(model=Slow(talks_for_ever)) as live, live.attached() as client:
        request_id = client.start_send(said("A story"))
        await client.until(lambda: len(chunks(client, request_id)) >= 3)
        client.tell("stop")
        answer = await client.answer(request_id)
        assert answer.chunks[-1]["type"] == "abort"
        assert texts(await live.messages()) == [("user", "A story"), ("assistant", answer.text)]
        await asyncio.sleep(11)
