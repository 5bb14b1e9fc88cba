"""A server with nothing behind it: the n-th request gets the n-th response. For tests of the harness itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Chunk = dict[str, Any]


@dataclass
class Response:
    chunks: list[Chunk] = field(default_factory=list)
    status: int = 200
    refusal: str = ""
    stays_open: bool = False
    """Send the chunks and then nothing, until the client goes away."""


@dataclass
class CannedServer:
    respond: Callable[[int], Response]
    api: str = ""
    requests: int = 0
    client_went_away: Event = field(default_factory=Event)


def encode_sse(chunks: list[Chunk]) -> str:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)


@contextmanager
def serve(*responses: Response, respond: Callable[[int], Response] | None = None) -> Generator[CannedServer]:
    """Serve `responses` in turn, or what `respond` makes of the number of the request, from 0."""
    canned = CannedServer(respond or responses.__getitem__)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            number, canned.requests = canned.requests, canned.requests + 1
            response = canned.respond(number)
            self.send_response(response.status)
            self.send_header("content-type", "text/plain" if response.refusal else "text/event-stream")
            self.end_headers()
            self.wfile.write((response.refusal or encode_sse(response.chunks)).encode())
            if response.stays_open:
                self.rfile.read(1)
                canned.client_went_away.set()
            elif response.status == 200:
                self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: Any) -> None:
            """Silence: a request is no news."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = False
        canned.api = f"http://127.0.0.1:{server.server_port}/api/chat"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield canned
        finally:
            server.shutdown()
            thread.join()
