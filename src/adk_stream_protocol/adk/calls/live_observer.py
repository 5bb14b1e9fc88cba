"""What the gate notifies a run of, where calls wait for their answers inside ADK."""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool

from ...protocol.call_record import CallKey


class WaitObserver(Protocol):
    """A run in which calls wait for their answers inside ADK, and do not end it: all calls of a live run, and those of
    a request run that ADK could not come back to."""

    is_ending: bool
    """Whether no call may begin any more."""

    def message_id_of(self, outer: CallKey | None) -> str | None:
        """The assistant's message that shows a call made inside this one."""
        ...

    def waits(self, call: CallKey, tool: BaseTool, nested_in: "NestedCall | None", *, blocks: bool) -> None:
        """A call waits for its answer. `blocks`: ADK does not read from the model meanwhile."""
        ...

    def goes_on(self, call: CallKey) -> None:
        """A call that waited has its answer, or needs none any more."""
        ...

    def abandoned(self, call: CallKey) -> None:
        """ADK has given up a call that waited. It stays pending, for another run; a nested one is refused."""
        ...

    def settled(self, call: CallKey, response: Any) -> bool:
        """A tool has ended. ADK emits its response only when all calls of its message have ended. Returns whether ADK
        has given the tool up: then it must not get the response."""
        ...

    def wake(self) -> None:
        """A client may have answered."""
        ...

    async def news(self, timeout_s: float) -> None:
        """Return when a client may have answered, or after `timeout_s`."""
        ...


class LiveObserver(WaitObserver, Protocol):
    """What the gate notifies a live run of besides."""

    def route(self, event: Event, session: Session) -> None:
        """ADK is about to store and emit an event."""
        ...

    def began(self, call: CallKey, beside: "asyncio.Task[Any] | None") -> None:
        """A tool runs. `beside`: its task, if ADK reads from the model meanwhile."""
        ...

    def left(self, call: CallKey) -> None:
        """A call is left to the client, and ADK does not wait for its answer."""
        ...


@dataclass(frozen=True)
class NestedCall:
    """Where a call is made that the run gets no event of: by an agent that runs as a tool, or in a workflow's node."""

    outer: CallKey | None
    """The call of the chat's own session that it is made in, or one that a person was asked about."""
    agent: str
    above: frozenset[CallKey]
    """All calls that cannot end before this one."""
