"""All live sockets of one bridge: who may open one, how many, and their end when the server stops."""

import asyncio
from collections import Counter
from contextlib import suppress

from starlette.websockets import WebSocket

from ...errors import BridgeError
from ..security import POLICY_VIOLATION
from ..surface import Surface
from .live_requests import LiveRequests
from .live_socket import LiveSocket, SharedBySockets

RESTART = 1012


class LiveSockets:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._shared = SharedBySockets(LiveRequests(surface.limits.live_grace_s))
        self._counts: Counter[str] = Counter()
        self._open: set[LiveSocket] = set()

    async def serve(self, websocket: WebSocket) -> None:
        """One socket, from its handshake to its end."""
        surface = self._surface
        user: str | None = None
        if surface.access.may_open_socket(websocket.headers):
            with suppress(BridgeError):
                user = await surface.identify(websocket)
        if user is None or self._counts[user] >= surface.limits.max_sockets_per_user:
            await websocket.close(POLICY_VIOLATION)
            return
        self._counts[user] += 1
        socket = LiveSocket(surface, websocket, user, self._shared)
        self._open.add(socket)
        try:
            await socket.serve()
        finally:
            self._open.discard(socket)
            self._counts[user] -= 1
            if not self._counts[user]:
                del self._counts[user]

    def announce_restart(self) -> None:
        """The server stops soon. Clients should connect to another one."""
        for socket in self._open:
            socket.announce_restart()

    async def aclose(self) -> None:
        await asyncio.gather(*(socket.close(RESTART) for socket in list(self._open)), return_exceptions=True)
        await self._shared.requests.aclose()
