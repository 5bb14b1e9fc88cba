"""Workers of one deployment, seen from outside."""

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any, Self

from faults.workers import worker
from faults.workers.forking import fork
from faults.workers.paying_app import Death
from support.tool_log import ToolLog

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
        configuration: dict[str, Any] = {"database": self._database, "effects": str(self._effects)}
        configuration |= {"death": death or Death(), "lease_s": lease_s}
        return Worker(fork(worker.__file__, configuration))

    def effects(self) -> Counter[str]:
        """How often each payment was made, by the ids of the calls."""
        return Counter(run.call.call_id for run in self.log.runs())
