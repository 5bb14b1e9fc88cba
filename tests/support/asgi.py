"""One HTTP exchange at the level of ASGI, where pieces, sends and disconnects can be seen."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message


@dataclass
class Exchange:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    sends: list[bytes] = field(default_factory=list)
    pieces_taken: int = 0

    @property
    def body(self) -> bytes:
        return b"".join(self.sends)


async def exchange(
    app: ASGIApp,
    *,
    method: str = "POST",
    path: str = "/api/chat",
    query: str = "",
    headers: dict[str, str] | None = None,
    body: bytes | Iterable[bytes] = b"",
    leave_after: Callable[[bytes], bool] = lambda _: False,
    on_send: Callable[[bytes], None] = lambda _: None,
) -> Exchange:
    """Send the request in the pieces given; leave once `leave_after` says so of a received piece."""
    result = Exchange()
    left = asyncio.Event()
    pieces: Iterator[bytes] = iter([body] if isinstance(body, bytes) else body)

    async def request() -> AsyncIterator[Message]:
        for piece in pieces:
            result.pieces_taken += 1
            yield {"type": "http.request", "body": piece, "more_body": True}
        yield {"type": "http.request", "body": b"", "more_body": False}
        await left.wait()
        yield {"type": "http.disconnect"}

    messages = request()

    async def receive() -> Message:
        return await anext(messages)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            result.status = message["status"]
            result.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        if message.get("body"):
            result.sends.append(message["body"])
            on_send(message["body"])
            if leave_after(message["body"]):
                left.set()

    given = {"content-type": "application/json", **(headers or {})}
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "state": {},
    }
    await app(scope, receive, send)
    return result
