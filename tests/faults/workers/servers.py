"""Real servers, seen from outside: their processes, and what is said to them over the network."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import Receive, Scope, Send

from faults.workers import server
from faults.workers.forking import fork
from support.tool_log import ToolLog

PATIENCE_S = 60
USER = {"x-user": "ann", "x-demo-user": "ann"}


class Server:
    """One process at a time, always on the same port."""

    def __init__(self, configuration: dict[str, Any], script: str = server.__file__) -> None:
        self._script = script
        with socket.create_server(("127.0.0.1", 0)) as found:
            self._port: int = found.getsockname()[1]
        self._configuration = {**configuration, "port": self._port}
        self._life: socket.socket | None = None
        self._pid = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Returns when it answers."""
        self._life = fork(self._script, self._configuration)
        self._pid = int.from_bytes(self._life.recv(8), "big")
        self._life.setblocking(False)
        async with asyncio.timeout(PATIENCE_S), httpx.AsyncClient(trust_env=False) as http:
            while True:
                try:
                    await http.get(f"http://{self.address}/api/chat/nobody/stream", headers=USER)
                    return
                except httpx.TransportError:
                    await asyncio.sleep(0.02)

    def terminate(self) -> None:
        """As an orchestrator does. It then waits."""
        os.kill(self._pid, signal.SIGTERM)

    async def ended(self) -> None:
        assert self._life is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                assert await asyncio.get_running_loop().sock_recv(self._life, 1) == b""
        except TimeoutError as error:
            os.kill(self._pid, signal.SIGUSR1)
            await asyncio.sleep(1)  # while it prints what its tasks wait for
            error.add_note(self._output()[-20_000:])
            raise
        self._life.close()
        self._life = None

    def _output(self) -> str:
        return Path(self._configuration["output"]).read_text()

    async def kill(self) -> None:
        if self._life is not None:
            os.kill(self._pid, signal.SIGKILL)
            await self.ended()


class Deployment:
    """Servers of one kind on one database, and what their tool has done."""

    def __init__(self, kind: str, database: str, folder: Path, *, payment_s: float, servers: int = 1) -> None:
        self.log = ToolLog(folder / "tools")
        output = str(folder / "output")
        given = {"kind": kind, "database": database, "log": str(folder / "tools"), "output": output}
        self.servers = [Server({**given, "payment_s": payment_s}) for _ in range(servers)]
        self.app = Remote(self.servers)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        try:
            for each in self.servers:
                await each.start()
            yield
        finally:
            for each in self.servers:
                await each.kill()


class Remote:
    """An application that is elsewhere: requests go to its servers in turn, and to the next one if one is not there or
    about to end, as a balancer does. A stream that breaks ends here without its end."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = list(servers)
        self.http = httpx.AsyncClient(
            trust_env=False, timeout=PATIENCE_S, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while (piece := await receive()).get("more_body"):
            body += piece["body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]} | USER
        async with asyncio.timeout(PATIENCE_S):
            while not await self._pass_on(scope["method"], scope["path"], headers, body, send):
                await asyncio.sleep(0.02)

    async def _pass_on(self, method: str, path: str, headers: dict[str, str], body: bytes, send: Send) -> bool:
        """Whether somebody has answered."""
        self._servers.append(self._servers.pop(0))
        url, has_begun = f"http://{self._servers[0].address}{path}", False
        try:
            async with self.http.stream(method, url, content=body, headers=headers) as answer:
                if answer.status_code == 503:
                    return False
                has_begun = True
                given = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
                await send({"type": "http.response.start", "status": answer.status_code, "headers": given})
                async for data in answer.aiter_bytes():
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                return True
        except httpx.TransportError:
            return has_begun
