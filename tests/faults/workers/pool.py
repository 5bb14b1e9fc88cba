"""Workers of one deployment, seen from outside."""

import atexit
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Self

from faults.workers import worker
from faults.workers.paying_app import Death
from support.tool_log import ToolLog

TESTS = Path(__file__).parents[2]
PATIENCE_S = 120


class WorkerDied(Exception):
    pass


class Worker:
    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        self._connection = connection
        self._lines = connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """It ends by itself when nobody talks to it any more; this waits until it has, unless it is dead already."""
        with self._connection, self._lines:
            self._connection.shutdown(socket.SHUT_WR)
            while self._lines.readline():
                pass

    def send(self, order: Any) -> None:
        """Requests to be served all at once; or "recover", or "pid"."""
        self._connection.sendall(json.dumps(order).encode() + b"\n")

    def answers(self) -> Any:
        """To requests: their statuses and bodies."""
        line = self._lines.readline()
        if not line:
            raise WorkerDied
        return json.loads(line)

    def serve(self, order: Any) -> Any:
        self.send(order)
        return self.answers()


class WorkerPool:
    """The workers of one database, which share nothing else but the file of their effects."""

    def __init__(self, database: str, folder: Path) -> None:
        self._database = database
        self._effects = folder / "effects"
        self.log = ToolLog(self._effects)

    def worker(self, *, death: Death | None = None, lease_s: float = 10) -> Worker:
        ours, theirs = socket.socketpair()
        configuration: dict[str, Any] = {"database": self._database, "effects": str(self._effects)}
        configuration |= {"death": death or Death(), "lease_s": lease_s}
        with theirs:
            socket.send_fds(_parent(), [json.dumps(configuration).encode()], [theirs.fileno()])
        return Worker(ours)

    def effects(self) -> Counter[str]:
        """How often each payment was made, by the ids of the calls."""
        return Counter(run.call.call_id for run in self.log.runs())


@cache
def _parent() -> socket.socket:
    """The process that all workers of a test run come from. It ends when its socket is closed, with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, worker.__file__, str(theirs.fileno())]
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        parent = subprocess.Popen(command, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONPATH": path})
    assert ours.recv(100) == b"ready", "the workers' parent did not start"
    atexit.register(parent.wait)
    atexit.register(ours.close)
    return ours
