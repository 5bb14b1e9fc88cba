"""The process that servers come from: real ones of uvicorn's, each on a port of its own."""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvicorn
from google.adk.sessions import DatabaseSessionService

from adk_stream_protocol import ChatBridge, cli
from faults.workers import slow_bank
from faults.workers.forking import fork_for_ever
from support.apps import app_of, user_of
from support.asgi import exchange
from support.tool_log import ToolLog


def child(life: socket.socket, *, kind: str, database: str, port: int, log: str, payment_s: float, output: str) -> None:
    """`kind`: the command, or an application of one's own under plain uvicorn, which waits for its connections as long
    as it takes or for so many seconds, and whose live sessions may talk on while somebody decides. The end of `life`
    tells the test that this process has ended."""
    life.sendall(os.getpid().to_bytes(8, "big"))
    file = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.signal(signal.SIGUSR1, lambda *_: _print_tasks())
    agent = slow_bank.build_agent(ToolLog(Path(log)), payment_s)
    if kind == "command":
        slow_bank.agent = agent
        cli.main(["serve", "faults.workers.slow_bank:agent", "--database", database, "--port", str(port)])
        return
    server, _, talking_on = kind.partition(", ")
    waits_s = None if server == "uvicorn" else int(server.removeprefix("uvicorn "))
    bridge = ChatBridge(
        agent,
        user_id=user_of,
        store=database,
        session_service=DatabaseSessionService(database),
        live_while_waiting="continue" if talking_on else None,
    )
    uvicorn.run(app_of(bridge), port=port, timeout_graceful_shutdown=waits_s)


def _print_tasks() -> None:
    for task in asyncio.all_tasks():
        task.print_stack()


async def _warm_up() -> None:
    """ADK imports much of itself in its first run."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite+aiosqlite:///{folder}/warm.db"
        agent = slow_bank.build_agent(ToolLog(), 0)
        async with DatabaseSessionService(url) as sessions:
            bridge = ChatBridge(agent, user_id=user_of, store=url, session_service=sessions)
            message: dict[str, Any] = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "1"}]}
            await exchange(app_of(bridge), body=json.dumps({"id": "warm", "messages": [message]}).encode())
            await bridge.aclose()


if __name__ == "__main__":
    asyncio.run(_warm_up())
    fork_for_ever(socket.socket(fileno=int(sys.argv[1])), child)
