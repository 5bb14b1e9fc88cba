"""What the gate notifies a live run of."""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool

from ...protocol.call_record import CallKey


class LiveObserver(Protocol):
    """What the gate notifies a live run of. In live mode calls wait for their answers inside ADK, and do not end the
    run."""

    is_ending: bool
    """Whether no call may begin any more."""

    def route(self, event: Event, session: Session) -> None:
        """ADK is about to store and emit an event."""
        ...

    def began(self, call: CallKey, beside: "asyncio.Task[Any] | None") -> None:
        """A tool runs. `beside`: its task, if ADK reads from the model meanwhile."""
        ...

    def waits(self, call: CallKey, tool: BaseTool, nested_in: "NestedCall | None", *, blocks: bool) -> None:
        """A call waits for its answer. `blocks`: ADK does not read from the model meanwhile."""
        ...

    def left(self, call: CallKey) -> None:
        """A call is left to the client, and ADK does not wait for its answer."""
        ...

    def goes_on(self, call: CallKey) -> None:
        """A call that waited has its answer, or needs none any more."""
        ...

    def abandoned(self, call: CallKey) -> None:
        """ADK has given up a call that waited. It stays pending, for another run."""
        ...

    def settled(self, call: CallKey, response: Any) -> bool:
        """A tool has ended. ADK emits its response only when all calls of its message have ended. Returns whether ADK
        has given the tool up: then it must not get the response."""
        ...

    async def news(self, timeout_s: float) -> None:
        """Return when a client may have answered, or after `timeout_s`."""
        ...


@dataclass(frozen=True)
class NestedCall:
    """A call made by an agent that runs as a tool. The outer run gets no event of it."""

    outer: CallKey
    agent: str
    arguments: dict[str, Any]
