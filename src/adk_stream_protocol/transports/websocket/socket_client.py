"""The client at the other end of a live socket: its user, its login, and the way to send it something."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.websockets import WebSocket

from ...chat.caller import Caller
from ...chat.service import ChatService
from ...errors import BridgeError, LocalProtocolError, NoUser
from ...limits import Limits
from ...protocol import frames
from ..surface import Surface
from .outbox import Outbox

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SocketClient:
    surface: Surface
    websocket: WebSocket
    user: str
    outbox: Outbox
    has_signed_out: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def service(self) -> ChatService:
        return self.surface.service

    @property
    def limits(self) -> Limits:
        return self.surface.limits

    @property
    def takes_binary(self) -> bool:
        """Whether voice goes as binary frames, both ways."""
        return frames.SUBPROTOCOL in self.websocket.scope.get("subprotocols", ())

    @property
    def caller(self) -> Caller:
        return Caller(self.websocket, self.user, self.websocket.url.path.rsplit("/", 1)[0])

    def send(self, kind: str, **fields: Any) -> None:
        """One of our own frames."""
        self.outbox.put(frames.encode_own(kind, fields))

    @contextmanager
    def refusing(self, request_id: str) -> Generator[None]:
        """A failure becomes an `error` frame, and the socket stays open."""
        try:
            yield
        except BridgeError as error:
            self.refuse(request_id, error)
        except Exception as error:
            # Its text may quote what the user wrote, so only its class is logged.
            logger.error("a live frame failed: %s", type(error).__qualname__)
            self.refuse(request_id, LocalProtocolError())

    def refuse(self, request_id: str, error: BridgeError) -> None:
        self.outbox.put(frames.encode_error(request_id, error))

    # -- login --------------------------------------------------------------------------------------------------------

    async def require_login(self) -> None:
        """Refuse a user who has signed out, and let the socket close."""
        if not await self._is_signed_in():
            self.has_signed_out.set()
            raise NoUser

    async def until_signed_out(self) -> None:
        """Also waits until the refusal is sent."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.login_check_s):
                    await self.has_signed_out.wait()
            if self.has_signed_out.is_set() or not await self._is_signed_in():
                with suppress(TimeoutError):
                    await self.outbox.flush(self.limits.send_timeout_s)
                return

    async def _is_signed_in(self) -> bool:
        try:
            return await self.surface.identify(self.websocket) == self.user
        except BridgeError:
            return False
