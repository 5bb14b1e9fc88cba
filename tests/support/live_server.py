"""A real HTTP server for an application under test, in a thread of its own."""

import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def serving(app: ASGIApp, *, send_buffer: int | None = None, **options: Any) -> Generator[str]:
    """The origin of a server on loopback, which ends with the block. `send_buffer`: how much the kernel holds for a
    client, so that little is needed to be too much. `options` are uvicorn's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        if send_buffer is not None:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=2, **options))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
