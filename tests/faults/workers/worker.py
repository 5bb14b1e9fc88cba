"""The process that the workers come from. It has everything imported, so that a new worker costs a fork.

It gets a socket and a configuration for each worker. A worker reads one line of requests at a time, sends all of them
at once to its own application, and writes one line of answers.
"""

import asyncio
import json
import logging
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from faults.workers.forking import MAX_LINE_BYTES, fork_for_ever
from faults.workers.paying_app import Death, PayingApp
from support.asgi import exchange
from support.tool_log import ToolLog


async def work(connection: socket.socket, database: str, effects: str, death: list[Any], lease_s: float) -> None:
    paying = PayingApp(database, ToolLog(Path(effects)), death=Death(*death), lease_s=lease_s)
    reader, writer = await asyncio.open_connection(sock=connection, limit=MAX_LINE_BYTES)
    while line := await reader.readline():
        order = json.loads(line)
        if order == "recover":
            paying.look_for_lost_runs()
            answers: Any = None
        elif order == "pid":
            answers = os.getpid()
        else:
            answers = await asyncio.gather(*(_answer(paying, **request) for request in order))
        writer.write(json.dumps(answers).encode() + b"\n")
        await writer.drain()
    await paying.aclose()
    writer.close()


async def _answer(
    paying: PayingApp, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
) -> list[Any]:
    given = {} if headers is None else {"headers": {"content-type": "application/json", **headers}}
    answer = await exchange(paying.app, method=method, path=path, body=body.encode(), **given)
    return [answer.status, answer.body.decode()]


async def _warm_up() -> None:
    """ADK imports much of itself in its first run."""
    with tempfile.TemporaryDirectory() as folder:
        paying = PayingApp(f"sqlite+aiosqlite:///{folder}/warm.db", ToolLog())
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "1"}]}
        await _answer(paying, "POST", "/api/chat", json.dumps({"id": "warm", "messages": [message]}))
        await paying.aclose()


def child(connection: socket.socket, **configuration: Any) -> None:
    asyncio.run(work(connection, **configuration))


def main(control: socket.socket) -> None:
    logging.disable(logging.CRITICAL)  # what goes wrong here is meant to
    asyncio.run(_warm_up())
    fork_for_ever(control, child)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
