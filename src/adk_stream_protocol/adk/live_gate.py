"""How a call waits in live mode: inside ADK, which would otherwise refuse it and never come back to it."""

import logging
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from ..errors import StoreUnavailable
from ..protocol import approvals
from ..protocol.approvals import Approval, CallKey, ChatKey, State
from ..store.base import Lease, Store, advance

logger = logging.getLogger(__name__)


class LiveSession(Protocol):
    """What the gate tells a live run, where calls wait for their answers inside ADK instead of ending the run."""

    is_ending: bool
    """Whether nothing may be begun in it any more."""

    def route(self, event: Event, session: Session) -> None:
        """An event is about to be stored and told."""
        ...

    def note(self, approval: Approval) -> None:
        """What is recorded of a call by now."""
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


@dataclass
class GateRun:
    """What the gate knows of the run that holds a chat."""

    lease: Lease
    live: LiveSession | None = None
    started: set[CallKey] = field(default_factory=set[CallKey])
    arguments: dict[CallKey, dict[str, Any]] = field(default_factory=dict[CallKey, dict[str, Any]])
    """Of the calls that came to their tool: as the model gave them, and the person will see them. Callbacks that come
    after us may change them."""


live_run: ContextVar[GateRun | None] = ContextVar("live_run", default=None)
outer_call: ContextVar[CallKey | None] = ContextVar("outer_call", default=None)

_MOMENT_S = 0.01
_POLL_S = 1  # for answers that came in by other workers


async def wait_for_answer(store: Store, run: GateRun, tool: BaseTool, tool_context: ToolContext) -> Approval | None:
    """What is recorded of a call once it is answered, or its time is up. None if there is no such call any more."""
    live, chat, call = cast(LiveSession, run.live), run.lease.chat, call_keys(tool_context)[1]
    outer = None if is_own(run, tool_context) else outer_call.get()
    nested = NestedCall(outer, tool_context.agent_name, run.arguments[call]) if outer is not None else None
    is_told = False
    try:
        while True:
            patience_s: float = _POLL_S
            try:
                snapshot = await store.read(chat, call)
                found = snapshot.find(call)
                if found is None:
                    return None
                if approvals.expire(found, now=snapshot.now) is not found:
                    found = await advance(
                        store, chat, call, lambda now_found, now: approvals.expire(now_found, now=now)
                    )
                live.note(found)
                if found.is_answered and not live.is_ending:
                    return found
                deadline = found.deadline if found.state is State.PENDING else found.browser_deadline
                if deadline is not None:
                    patience_s = min(patience_s, max(_MOMENT_S, deadline - snapshot.now))
            except StoreUnavailable:
                logger.error("whether call %s is answered cannot be read", call.call_id)
            if not is_told:
                is_told = True
                live.waits(call, tool, nested, blocks=not _is_non_blocking(tool))
            await live.news(patience_s)
    finally:
        if is_told:
            live.goes_on(call)


def is_own(run: GateRun, tool_context: ToolContext) -> bool:
    """Whether the call is one of the run's own session."""
    return call_keys(tool_context)[0] == run.lease.chat


def _is_non_blocking(tool: BaseTool) -> bool:
    """Whether ADK runs the tool beside the conversation, in live mode."""
    if tool.behavior is not None:
        return tool.behavior is types.Behavior.NON_BLOCKING
    return tool.response_scheduling is not None


def call_keys(tool_context: ToolContext) -> tuple[ChatKey, CallKey]:
    session = tool_context.session
    chat = ChatKey(session.app_name, session.user_id, session.id)
    return chat, CallKey(tool_context.invocation_id, tool_context.function_call_id or "")
