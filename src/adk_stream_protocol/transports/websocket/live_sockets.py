"""All live sockets of one bridge: who may open one, how many, and their end when the server stops."""

import asyncio
import logging
from collections import Counter

from starlette.websockets import WebSocket

from ...errors import BridgeError, CrossSite, NoUser, RefusedByApplication, TooMany
from ..security import POLICY_VIOLATION
from ..surface import Surface
from .live_requests import LiveRequests
from .live_socket import LiveSocket, SharedBySockets
from .voice_owners import VoiceOwners

logger = logging.getLogger(__name__)

RESTART = 1012

_REASONS: dict[type[BridgeError], str] = {
    NoUser: "user_id found no user. Browsers send cookies with a WebSocket, but no headers of a page such as "
    "Authorization: let user_id look at a cookie or at a query parameter, too",
    TooMany: "its user has too many of them. If one user may have more: Limits(max_sockets_per_user=...)",
}


class LiveSockets:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._shared = SharedBySockets(
            LiveRequests(surface.limits.live_grace_s), VoiceOwners(surface.limits.voice_quiet_s)
        )
        self._counts: Counter[str] = Counter()
        self._open: set[LiveSocket] = set()
        self._logged: set[str] = set()

    async def serve(self, websocket: WebSocket) -> None:
        """One socket, from its handshake to its end."""
        try:
            user = await self._admit(websocket)
        except BridgeError as error:
            self._log_once(error)
            await websocket.close(POLICY_VIOLATION, error.code)
            return
        self._counts[user] += 1
        socket = LiveSocket(self._surface, websocket, user, self._shared)
        self._open.add(socket)
        try:
            await socket.serve()
        finally:
            self._open.discard(socket)
            self._counts[user] -= 1
            if not self._counts[user]:
                del self._counts[user]

    async def _admit(self, websocket: WebSocket) -> str:
        """The user of a new socket, or a refusal."""
        surface = self._surface
        if not surface.access.may_open_socket(websocket.headers):
            raise CrossSite
        user = await surface.identify(websocket)
        if self._counts[user] >= surface.limits.max_sockets_per_user:
            raise TooMany
        return user

    def _log_once(self, refusal: BridgeError) -> None:
        """A page cannot read why its handshake failed, so its developer finds it here. Refused origins and hosts are
        logged with their names where they are looked at."""
        if isinstance(refusal, RefusedByApplication):
            reason = f"user_id refused it with status {refusal.status}"
        else:
            reason = _REASONS.get(type(refusal))
        if reason is not None and reason not in self._logged:
            self._logged.add(reason)
            logger.warning("a live socket was refused: %s", reason)

    async def announce_restart(self) -> None:
        """The server stops soon. Clients should connect to another one."""
        await asyncio.gather(*(socket.announce_restart() for socket in self._open))

    async def aclose(self) -> None:
        await asyncio.gather(*(socket.close(RESTART) for socket in list(self._open)), return_exceptions=True)
        await self._shared.requests.aclose()
