"""The server behind the command: uvicorn, with limits that an application cannot set."""

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .limits import Limits

_MAX_HEAD_BYTES = 64 * 1024  # of a request before its body: twice what most proxies accept
_HEAD_S = 20  # for a request's head to arrive, and for the rest of a body after the response
_UNREAD_S = 60  # how long a client may read nothing of a response that waits for it
_MAX_CONNECTIONS = 1000  # further ones get a 503; operating systems give a process 1024 descriptors
_PING_S = 20  # of a WebSocket: silence before a ping is sent, and then before the connection is closed
_LOOK_S = 0.1  # between checks for a second signal

_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BoundedHttp(HttpToolsProtocol):
    """Adds limits to uvicorn's own protocol, which takes headers of any size and waits for slow clients for ever."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_in_head = True
        self._head_bytes = 0
        self._until_arrived: asyncio.TimerHandle | None = None
        self._until_taken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._wait_for_client()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_arrived()
        self._is_taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was_in_head = self._is_in_head
        super().data_received(data)
        if was_in_head and self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()

    # -- what arrives -------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        self._wait_for_client()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._has_arrived()
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > _MAX_HEAD_BYTES:
            raise ValueError("too large")  # uvicorn answers with 400
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._has_arrived()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body:
            self._wait_for_client()

    def _wait_for_client(self) -> None:
        if self._until_arrived is None:
            self._until_arrived = self.loop.call_later(_HEAD_S, self.transport.abort)

    def _has_arrived(self) -> None:
        if self._until_arrived is not None:
            self._until_arrived.cancel()
            self._until_arrived = None

    # -- what leaves --------------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._until_taken = self.loop.call_later(_UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_taken()
        super().resume_writing()

    def _is_taken(self) -> None:
        if self._until_taken is not None:
            self._until_taken.cancel()
            self._until_taken = None


class UvicornServer(uvicorn.Server):
    """Ends the runs before it waits for connections to close, so that their streams end properly."""

    def __init__(
        self, app: Any, *, host: str, port: int, limits: Limits, end_runs: Callable[[], Awaitable[None]]
    ) -> None:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            timeout_graceful_shutdown=math.ceil(limits.drain_s) + 5,
            http=BoundedHttp,
            limit_concurrency=_MAX_CONNECTIONS,
            ws="websockets-sansio",
            ws_max_size=limits.max_body_bytes,
            ws_per_message_deflate=False,  # a small frame could unpack to megabytes
            ws_ping_interval=_PING_S,
            ws_ping_timeout=_PING_S,
        )
        super().__init__(config)
        self._end_runs = end_runs

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.ensure_future(self._end_runs())
        while not ending.done() and not self.force_exit:  # a second signal sets it
            await asyncio.wait([ending], timeout=_LOOK_S)
        await super().shutdown(sockets)
