"""One POST to an ASGI application in this process: no socket and no HTTP client in the figures."""

import asyncio
from collections.abc import Callable
from typing import Any


async def post(app: Any, path: str, body: bytes, write: Callable[[bytes], None]) -> None:
    """Post `body` as JSON and pass on each piece of the answer; any status but 200 is an error."""
    body_sent = False
    status = 0

    async def receive() -> dict[str, Any]:
        nonlocal body_sent
        if not body_sent:
            body_sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        # The client stays until the answer is complete, so a wait for its departure never ends.
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable")

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif piece := message.get("body"):
            write(piece)

    await app(_scope(path, len(body)), receive, send)
    if status != 200:
        raise AssertionError(f"POST {path} answered {status}")


def _scope(path: str, content_length: int) -> dict[str, Any]:
    return {
        "type": "http",
        # What uvicorn announces; it decides whether Starlette watches for a disconnect in a task of its own.
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"content-length", str(content_length).encode()),
            (b"accept", b"text/event-stream"),
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
