"""What the gate tells a live run."""

from dataclasses import dataclass
from typing import Any, Protocol

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool

from ...protocol.call_record import CallKey


class LiveObserver(Protocol):
    """What the gate tells a live run, where calls wait for their answers inside ADK instead of ending the run."""

    is_ending: bool
    """Whether nothing may be begun in it any more."""

    def route(self, event: Event, session: Session) -> None:
        """An event is about to be stored and told."""
        ...

    def waits(self, call: CallKey, tool: BaseTool, nested_in: "NestedCall | None", *, blocks: bool) -> None:
        """A call waits for its answer. `blocks`: ADK does not listen to the model meanwhile."""
        ...

    def left(self, call: CallKey) -> None:
        """A call is the client's to answer, and ADK waits no more for it."""
        ...

    def goes_on(self, call: CallKey) -> None:
        """It has its answer, or needs none any more."""
        ...

    def settled(self, call: CallKey, response: Any) -> None:
        """A tool came to its end. ADK tells so when all calls of its message have."""
        ...

    async def news(self, timeout_s: float) -> None:
        """Return when somebody may have answered, or after a while."""
        ...


@dataclass(frozen=True)
class NestedCall:
    """A call of an agent that runs as a tool: no event of it reaches the outer run."""

    outer: CallKey
    agent: str
    arguments: dict[str, Any]
