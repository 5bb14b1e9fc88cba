"""Readers that are slow, sockets that go, and a server that goes: runs belong to their chats, and nothing is left."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message

from adk_stream_protocol import Limits
from adk_stream_protocol.adk.request.request_run import RESTARTING
from adk_stream_protocol.testing import LiveSession, call
from support.live_client import LiveClient
from transports.live_apps import (
    SMALL_GRACE,
    Reader,
    answers_for_ever,
    chunks,
    live_app,
    nothing_left,
    ping,
    said,
    talks_for_ever,
)

pytestmark = pytest.mark.virtual_time

# -- readers that are slow, and sockets that go -----------------------------------------------------------------------


async def test_a_reader_that_stops_reading_is_cut_off_and_the_run_goes_on_without_it() -> None:
    async with live_app([[call("work")], "All done."], tools=(work,), limits=Limits(send_timeout_s=10)) as live:
        client = Reader()
        async with live.socket(client=client):
            client.reads.clear()
            request_id = client.start_send(said("Work"))
            await client.until(lambda: client.close_code)
            assert client.close_code == 1001
            assert chunks(client, request_id) == []
        async with live.socket() as other:
            other.send_frame({"type": "resume", "requestId": request_id, "id": "chat-1"})
            answer = await other.answer(request_id)
            assert answer.text == "All done."
            assert answer.chunks[-1]["type"] == "finish"
        assert len(live.model.requests) == 2


async def work() -> dict[str, bool]:
    """Works."""
    return {"done": True}


async def test_a_slow_reader_delays_nobody_else() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as calm:
        slow = Reader()
        async with live.socket(client=slow):
            slow.reads.clear()
            request_id = slow.start_send(said("Hello"))
            await slow.is_stuck.wait()
            answer = await calm.say("Hello", id="chat-2")
            assert answer.text == "Yes."
            slow.reads.set()
            assert (await slow.answer(request_id)).text == "Yes."


async def test_what_waits_for_a_reader_that_hangs_is_bounded() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        for _ in range(400):
            await session.audio(bytes(64 * 1024))
            await session.taken()
        await session.turn_complete()
        spoken.set()
        await session.expect("close")

    spoken = asyncio.Event()
    async with live_app(server, speaks=True, limits=Limits(send_timeout_s=10)) as live:
        client = Reader()
        async with live.attached(client=client):
            client.reads.clear()
            client.start_send(said("Speak"))
            await spoken.wait()
            of_chats = live.bridge._service._live._listeners.values()  # pyright: ignore
            waiting = [one._client.outbox._waiting_bytes for listeners in of_chats for one in listeners]  # pyright: ignore
            assert sum(waiting) < 10 * 1024 * 1024
            await client.until(lambda: client.close_code)
            assert client.close_code == 1001
        history = await live.messages()
        assert history[0]["parts"][-1]["text"] == "Speak"


async def test_a_message_of_many_megabytes_can_be_resumed() -> None:
    page = "x" * 100_000 + " "

    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say(page * 120)
        await session.expect("close")

    async with live_app(server) as live, live.socket() as client:
        request_id = client.start_send(said("Write a book"))
        await client.until(lambda: len(chunks(client, request_id)) >= 123)
        async with live.socket() as other:
            resumed = "again"
            other.send_frame({"type": "resume", "requestId": resumed, "id": "chat-1"})
            await other.until(lambda: len(chunks(other, resumed)) >= 123)
            assert chunks(other, resumed) == chunks(client, request_id)


async def test_a_socket_that_goes_while_its_request_is_being_opened_keeps_no_session_alive() -> None:
    async def prepare(*_: Any) -> None:
        asked.set()
        await answered.wait()

    asked, answered = asyncio.Event(), asyncio.Event()
    async with live_app(talks_for_ever, prepare=prepare, limits=SMALL_GRACE) as live:
        async with live.socket() as client:
            client.start_send(said("Hello"))
            await asked.wait()
        answered.set()
        await asyncio.sleep(0)
        await asyncio.sleep(10)
        assert live.runs == 0
        assert not any(live.bridge._service._live._listeners.values())  # pyright: ignore


async def test_a_session_ends_when_its_last_socket_is_gone_for_longer_than_the_grace() -> None:
    async with live_app(answers_for_ever, limits=Limits(live_grace_s=30)) as live:
        async with live.socket() as client:
            await client.say("Hello")
        await asyncio.sleep(29)
        assert live.runs == 1
        async with live.attached():
            await asyncio.sleep(100)
            assert live.runs == 1
        await asyncio.sleep(31)
        assert live.runs == 0
        await nothing_left()


# -- the server goes --------------------------------------------------------------------------------------------------


async def test_clients_are_asked_to_reconnect_when_the_server_stops() -> None:
    async with live_app(talks_for_ever) as live:
        clients = [LiveClient(), LiveClient()]
        sockets = [live.socket(user, client=client) for user, client in zip(("ann", "bob"), clients, strict=True)]
        async with live.app.router.lifespan_context(live.app):
            for socket, client in zip(sockets, clients, strict=True):
                await socket.__aenter__()
                await ping(client)
            request_id = clients[0].start_send(said("Go on"))
            await clients[0].until(lambda: len(chunks(clients[0], request_id)) >= 3)
        for socket, client in zip(sockets, clients, strict=True):
            own = [frame for frame in client.everything if frame["requestId"] == "-"]
            assert own[-1] == {"type": "reconnect", "requestId": "-"}
            assert client.close_code == 1012
            await socket.__aexit__(None, None, None)
        first = clients[0].everything
        got = [frame["chunk"] for frame in first if frame["type"] == "chunk"][-1]
        assert (got["type"], got["errorText"]) == ("error", RESTARTING)
        assert [frame["type"] for frame in first].index("reconnect") < len(first) - 2  # before the stream's end
        assert live.runs == 0


async def test_a_drained_bridge_has_sent_its_request_to_reconnect_before_a_server_closes_the_sockets() -> None:
    async with live_app(answers_for_ever) as live:
        slow = Reader()
        async with live.socket(client=slow):
            await ping(slow)
            slow.reads.clear()
            asyncio.get_running_loop().call_later(0.5, slow.reads.set)
            await live.bridge.drain()
            assert slow.everything[-1] == {"type": "reconnect", "requestId": "-"}


async def test_a_reader_that_hangs_keeps_a_drain_for_a_second_only() -> None:
    async with live_app(answers_for_ever) as live:
        stuck, began = Reader(), asyncio.get_running_loop().time()
        async with live.socket(client=stuck):
            await ping(stuck)
            stuck.reads.clear()
            await live.bridge.drain()
            assert asyncio.get_running_loop().time() - began < 2
            stuck.reads.set()


class Deaf(Reader):
    """Does not even take the end of its socket."""

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.close":
            await self.reads.wait()
        await super().send(message)


@pytest.mark.parametrize("kind", [Reader, Deaf])
async def test_a_reader_that_hangs_keeps_a_bridge_from_closing_for_seconds_only(kind: type[Reader]) -> None:
    async with live_app(answers_for_ever) as live:
        stuck, began = kind(), asyncio.get_running_loop().time()
        async with live.socket(client=stuck):
            await ping(stuck)
            stuck.reads.clear()
            await live.bridge.aclose()
            assert asyncio.get_running_loop().time() - began < 4
            stuck.reads.set()


async def test_a_reader_that_reads_slowly_gets_all_before_a_bridge_closes() -> None:
    async with live_app(answers_for_ever) as live:
        slow = Reader()
        async with live.socket(client=slow):
            await ping(slow)
            slow.reads.clear()
            for _ in range(5):
                slow.tell("ping")
            closing = asyncio.create_task(live.bridge.aclose())
            while not closing.done():
                await asyncio.sleep(0.9)
                slow.reads.set()
                await asyncio.sleep(0)
                slow.reads.clear()
            assert [frame["type"] for frame in slow.frames["-"]][-7:] == ["pong"] * 6 + ["reconnect"]
            assert slow.close_code == 1012


async def test_a_reader_that_hangs_does_not_keep_the_server_from_closing() -> None:
    async with live_app(talks_for_ever) as live:
        stuck, calm = Reader(), LiveClient()
        sockets = [live.socket(client=stuck), live.socket("bob", client=calm)]
        async with live.app.router.lifespan_context(live.app):
            for socket, client in zip(sockets, (stuck, calm), strict=True):
                await socket.__aenter__()
                await ping(client)
            stuck.reads.clear()
            stuck.start_send(said("Go on"))
            await stuck.is_stuck.wait()
        assert calm.close_code == 1012
        assert live.runs == 0
        stuck.reads.set()
        for socket in sockets:
            await socket.__aexit__(None, None, None)
