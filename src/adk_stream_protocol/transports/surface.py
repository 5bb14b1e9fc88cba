"""What all transports of one bridge share."""

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from ..chat.service import ChatService
from ..limits import Limits
from .security import Access
from .unfinished import UnfinishedRequests


@dataclass(frozen=True)
class Surface:
    """The chats that the transports serve, who may reach them, and what has arrived of requests so far."""

    service: ChatService
    access: Access
    unfinished: UnfinishedRequests

    @property
    def limits(self) -> Limits:
        return self.service.limits

    async def identify(self, connection: HTTPConnection) -> str:
        """The id of the user who is asking. Refuses unknown hosts before the application is asked for the user."""
        self.access.refuse_unknown_host(connection.headers)
        return await self.service.identify(connection)
