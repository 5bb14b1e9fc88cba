"""Clients that ask and never read, on real sockets: their descriptors and memory come back while they are still
there."""

import asyncio
import gc
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.chat.closed_logs import failed_log
from adk_stream_protocol.chunk_log import Reading
from adk_stream_protocol.protocol import sse
from adk_stream_protocol.testing import ScriptedModel
from adk_stream_protocol.transports import connection
from adk_stream_protocol.transports.connection import find_transport
from adk_stream_protocol.transports.event_stream import EventStreamResponse
from support.apps import app_of, user_of
from support.live_server import serving
from support.raw_sockets import (
    PATIENCE_S,
    connect,
    dead_readers,
    frame,
    get,
    open_descriptors,
    post,
    turn,
    until,
    upgrade,
)

DEAD = 5
LIMITS = Limits(send_timeout_s=0.3, ping_interval_s=0.3, max_send_bytes=64 * 1024)
STREAM = get("/api/chat/c1/stream")
LIVE = upgrade("/api/chat/live")
RESUME = frame({"type": "resume", "requestId": "r1", "id": "c1"})
LONG, SHORT = 1_000, 10
"""Pieces of 4 KiB: more than sockets hold, and less than a server wants to have taken before it goes on."""


class Talkative(ScriptedModel):
    """Says as much as the test wants, and then nothing for a long time, or the end."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Any:
        said = (llm_request.contents[-1].parts or [types.Part(text="")])[0].text or ""
        count, _, then = said.partition(" ")
        for _ in range(int(count)):
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="x" * 4096)]), partial=True)
        if then == "wait":
            await asyncio.sleep(3600)
        whole = types.Content(role="model", parts=[types.Part(text="x" * 4096 * int(count))])
        yield LlmResponse(content=whole, partial=False)


async def pass_on(request: Any, call_next: Any) -> Any:
    return await call_next(request)


def wrapped(app: FastAPI) -> FastAPI:
    """As deep inside middleware as applications are."""
    app.add_middleware(CORSMiddleware, allow_origins=["https://a.example"])
    app.add_middleware(GZipMiddleware)
    app.add_middleware(BaseHTTPMiddleware, dispatch=pass_on)
    return app


@contextmanager
def talking(
    said: str, *, is_wrapped: bool = False, limits: Limits = LIMITS, middleware: Any = None, **options: Any
) -> Generator[str]:
    """A server with such a chat, whose client has disconnected."""
    bridge = ChatBridge(LlmAgent(name="helper", model=Talkative()), user_id=user_of, limits=limits)
    app = wrapped(app_of(bridge)) if is_wrapped else app_of(bridge)
    if middleware is not None:
        app.add_middleware(middleware)
    size, waits = int(said.split()[0]) * 4096, said.endswith("wait")

    def has_said_all() -> bool:
        log = bridge._service.running("ann", "c1")
        return log is not None and log.size_bytes > size if waits else log is None

    gc.collect()  # bridges of other tests have descriptors, too
    with serving(app, **options) as origin:
        with connect(origin, post("/api/chat", turn("first", "0"), "connection: close")) as connection:
            while connection.recv(4096):  # a bridge opens some things once
                pass
        before = open_descriptors()
        with connect(origin, post("/api/chat", turn("c1", said))) as connection:
            assert connection.recv(12) == b"HTTP/1.1 200"
            until(has_said_all)
        until(lambda: open_descriptors() <= before)
        yield origin
        if waits:
            assert httpx.post(f"{origin}/api/chat/c1/stop", timeout=PATIENCE_S).status_code == 204


servers = pytest.mark.parametrize(("http", "loop"), [("httptools", "uvloop"), ("h11", "asyncio")])


@servers
@pytest.mark.parametrize(("count", "is_wrapped"), [(LONG, False), (LONG, True), (SHORT, False)])
def test_readers_of_a_stream_are_dropped(http: str, loop: str, count: int, is_wrapped: bool) -> None:
    """Those that the server waits for, and those for which it still has room."""
    with talking(f"{count} wait", http=http, loop=loop, is_wrapped=is_wrapped, send_buffer=4096) as origin:
        before = open_descriptors()
        with dead_readers(origin, DEAD, STREAM):
            until(lambda: open_descriptors() <= before + DEAD)  # the clients' own
            assert httpx.get(f"{origin}/api/chat/none/stream", timeout=PATIENCE_S).status_code == 204


@servers
def test_little_waits_in_the_server_for_a_reader_that_does_not_read(http: str, loop: str) -> None:
    """However long the answer is: what a reader takes at a time, twice."""
    waiting: list[int] = []
    max_send_bytes = 16 * 1024

    class Weighed:
        def __init__(self, app: Any) -> None:
            self._app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def weighed_send(message: Any) -> None:
                await send(message)
                if transport := find_transport(send):
                    waiting.append(transport.get_write_buffer_size())

            await self._app(scope, receive, weighed_send if "stream" in scope.get("path", "") else send)

    limits = Limits(send_timeout_s=0.3, ping_interval_s=0.3, max_send_bytes=max_send_bytes)
    with talking(f"{LONG} wait", http=http, loop=loop, limits=limits, middleware=Weighed, send_buffer=4096) as origin:
        before = open_descriptors()
        with dead_readers(origin, DEAD, STREAM):
            until(lambda: open_descriptors() <= before + DEAD)
    assert max_send_bytes < max(waiting) < 2 * max_send_bytes + 4096 + 1024  # a chunk, and frames


@servers
def test_readers_that_leave_the_last_of_a_stream_are_dropped(http: str, loop: str) -> None:
    """The server has taken all of it, and would wait for ever to be rid of it."""
    with talking("0", http=http, loop=loop, send_buffer=4096) as origin:
        before = open_descriptors()
        requests = (post("/api/chat", turn(f"other-{number}", str(SHORT))) for number in range(DEAD))
        with ExitStack() as stack:
            for request in requests:
                stack.enter_context(dead_readers(origin, 1, request))
            until(lambda: open_descriptors() <= before + DEAD)


@servers
def test_readers_of_a_history_are_dropped(http: str, loop: str) -> None:
    with talking(str(LONG), http=http, loop=loop, send_buffer=4096) as origin:
        before = open_descriptors()
        with (
            dead_readers(origin, DEAD, get("/api/chat/c1/messages")),
            dead_readers(origin, DEAD, *[get("/api/chat/c1/messages")] * 3),
        ):
            until(lambda: open_descriptors() <= before + 2 * DEAD)


@pytest.mark.filterwarnings("ignore:.*deprecated", "ignore::DeprecationWarning")  # one of the two is
@pytest.mark.parametrize("ws", ["websockets", "websockets-sansio"])
@pytest.mark.parametrize("count", [LONG, SHORT])
def test_readers_of_a_socket_are_dropped(ws: str, count: int) -> None:
    """Those that take too little, and those that give no sign of life."""
    with talking(f"{count} wait", ws=ws, ws_ping_interval=0.3, ws_ping_timeout=0.3, send_buffer=4096) as origin:
        before = open_descriptors()
        with dead_readers(origin, DEAD, LIVE, RESUME):
            until(lambda: open_descriptors() <= before + DEAD)


def test_a_slow_reader_that_reads_is_not_dropped() -> None:
    with (
        talking(str(LONG // 10), limits=Limits(send_timeout_s=1), send_buffer=4096) as origin,
        dead_readers(origin, 1, get("/api/chat/c1/messages", "connection: close")) as (reader,),
    ):
        got = 0
        while piece := reader.recv(4096):
            got += len(piece)
            time.sleep(0.03)  # three seconds in all
    assert got > LONG // 10 * 4096


def test_nothing_is_found_behind_servers_that_are_not_known() -> None:
    class Transport:
        def abort(self) -> None:
            raise AssertionError

    class Server:
        transport = Transport()

        async def send(self, _: Any) -> None:
            raise AssertionError

    async def closed_over(message: Any) -> None:
        await server.send(message)

    server = Server()
    for channel in (server.send, closed_over, print, len):
        assert find_transport(channel) is None


async def test_a_stream_looks_for_its_connection_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    monkeypatch.setattr(connection, "find_transport", lambda *channels: looks.append(channels))
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await EventStreamResponse(Reading(failed_log("m", "no")), LIMITS)({"type": "http"}, receive, send)
    assert sent[-1]["more_body"] is False
    assert looks == [(receive, send)]


async def test_headers_that_are_added_to_one_stream_are_not_in_the_next() -> None:
    reading = Reading(failed_log("m", "no"))
    first = EventStreamResponse(reading, LIMITS)
    first.headers["vary"] = "Origin"
    assert dict(EventStreamResponse(reading, LIMITS).headers) == sse.HEADERS
