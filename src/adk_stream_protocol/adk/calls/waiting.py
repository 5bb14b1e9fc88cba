"""How a call waits in live mode: inside ADK, which would otherwise refuse it and never come back to it."""

import logging
from contextvars import ContextVar
from typing import Any, cast

from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from ...errors import StoreUnavailable
from ...protocol import call_record
from ...protocol.call_record import CallKey, CallRecord, State
from ...store.base import Store, advance
from .leased_chat import LeasedChat, call_keys
from .live_observer import LiveObserver, NestedCall

logger = logging.getLogger(__name__)


current_live_chat: ContextVar[LeasedChat | None] = ContextVar("current_live_chat", default=None)
outer_call: ContextVar[CallKey | None] = ContextVar("outer_call", default=None)

_MOMENT_S = 0.01
_POLL_S = 1  # for answers that came in by other workers


async def wait_for_answer(
    store: Store, leased: LeasedChat, tool: BaseTool, tool_context: ToolContext, arguments: dict[str, Any]
) -> CallRecord | None:
    """What is recorded of a call once it is answered, or its time is up. None if there is no such call any more."""
    observer, chat, call = cast(LiveObserver, leased.live_observer), leased.lease.chat, call_keys(tool_context)[1]
    outer = None if is_own(leased, tool_context) else outer_call.get()
    nested = NestedCall(outer, tool_context.agent_name, arguments) if outer is not None else None
    is_told = False
    try:
        while True:
            patience_s: float = _POLL_S
            try:
                snapshot = await store.read(chat, call)
                found = snapshot.find(call)
                if found is None:
                    return None
                if call_record.expire(found, now=snapshot.now) is not found:
                    found = await advance(
                        store, chat, call, lambda now_found, now: call_record.expire(now_found, now=now)
                    )
                leased.records[call] = found
                if found.is_answered and not observer.is_ending:
                    return found
                deadline = found.deadline if found.state is State.PENDING else found.browser_deadline
                if deadline is not None:
                    patience_s = min(patience_s, max(_MOMENT_S, deadline - snapshot.now))
            except StoreUnavailable:
                logger.error("whether call %s is answered cannot be read", call.call_id)
            if not is_told:
                is_told = True
                observer.waits(call, tool, nested, blocks=not _is_non_blocking(tool))
            await observer.news(patience_s)
    finally:
        if is_told:
            observer.goes_on(call)


def is_own(leased: LeasedChat, tool_context: ToolContext) -> bool:
    """Whether the call is one of the run's own session."""
    return call_keys(tool_context)[0] == leased.lease.chat


def _is_non_blocking(tool: BaseTool) -> bool:
    """Whether ADK runs the tool beside the conversation, in live mode."""
    if tool.behavior is not None:
        return tool.behavior is types.Behavior.NON_BLOCKING
    return tool.response_scheduling is not None
