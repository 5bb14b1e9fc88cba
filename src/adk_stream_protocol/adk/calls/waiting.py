"""How a call waits in live mode: inside ADK, which would otherwise refuse it and never come back to it."""

import logging
from contextvars import ContextVar
from typing import cast

from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from ...errors import StoreUnavailable
from ...protocol import call_record
from ...protocol.call_record import CallKey, CallRecord, State
from ...store.base import advance
from .gated_call import GatedCall
from .leased_chat import LeasedChat, call_keys
from .live_observer import LiveObserver, NestedCall

logger = logging.getLogger(__name__)


current_live_chat: ContextVar[LeasedChat | None] = ContextVar("current_live_chat", default=None)
"""The chat whose live run this task belongs to. Tasks of agents that run as tools inherit it."""
outer_call: ContextVar[CallKey | None] = ContextVar("outer_call", default=None)
"""The call of the chat's own session that this task runs. Calls of an agent that runs as a tool are nested in it."""

_SHORTEST_WAIT_S = 0.01
_POLL_S = 1  # for answers that another worker received


async def wait_for_answer(call: GatedCall, tool_context: ToolContext) -> CallRecord | None:
    """The call's record, once the call is answered or its deadline has passed. None if the record was deleted."""
    store, leased, key = call.store, call.leased, call.key
    observer = cast(LiveObserver, leased.live_observer)
    outer = None if is_own(leased, tool_context) else outer_call.get()
    nested = NestedCall(outer, tool_context.agent_name, call.arguments) if outer is not None else None
    is_notified = False
    try:
        while True:
            patience_s: float = _POLL_S
            try:
                snapshot = await store.read(leased.key, key)
                found = snapshot.find(key)
                if found is None:
                    if is_notified:
                        observer.goes_on(key)
                    return None
                found = await _end_if_over(call, found, snapshot.now, may_be_withdrawn=nested is None)
                leased.records[key] = found
                if found.is_answered and not observer.is_ending:
                    if is_notified:
                        observer.goes_on(key)
                    return found
                deadline = found.deadline if found.state is State.PENDING else found.browser_deadline
                if deadline is not None:
                    patience_s = min(patience_s, max(_SHORTEST_WAIT_S, deadline - snapshot.now))
            except StoreUnavailable:
                logger.error("whether call %s is answered cannot be read", key.call_id)
            if not is_notified:
                is_notified = True
                observer.waits(key, call.tool, nested, blocks=not runs_beside(call.tool))
            await observer.news(patience_s)
    except BaseException:
        if is_notified:
            observer.abandoned(key)
        raise


async def _end_if_over(call: GatedCall, found: CallRecord, now: float, *, may_be_withdrawn: bool) -> CallRecord:
    """The call's record, after its deadline or a withdrawal by the model has ended it. The calls of an agent that runs
    as a tool are of another model, whose ids may be the same."""
    is_withdrawn = may_be_withdrawn and call.key.call_id in call.leased.withdrawn

    def end(found: CallRecord, now: float) -> CallRecord:
        found = call_record.expire(found, now=now)
        return call_record.withdraw(found) if is_withdrawn else found

    if end(found, now) is found:
        return found
    return await advance(call.store, call.leased.key, call.key, end)


def is_own(leased: LeasedChat, tool_context: ToolContext) -> bool:
    """Whether the call belongs to the chat's own session, not to that of an agent that runs as a tool."""
    return call_keys(tool_context)[0] == leased.key


def runs_beside(tool: BaseTool) -> bool:
    """Whether ADK runs the tool beside the conversation, in live mode."""
    if tool.behavior is not None:
        return tool.behavior is types.Behavior.NON_BLOCKING
    return tool.response_scheduling is not None
