"""How a call waits inside ADK, which would otherwise refuse it and never come back to it: each call of a live run, and
the nested ones of a request run."""

import inspect
import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import cast

from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from ...errors import StoreUnavailable
from ...protocol import call_record
from ...protocol.call_record import CallKey, CallRecord
from ...store.base import advance
from .gated_call import GatedCall, to_its_end
from .leased_chat import LeasedChat, call_keys
from .live_observer import NestedCall, WaitObserver

logger = logging.getLogger(__name__)


current_chat: ContextVar[LeasedChat | None] = ContextVar("current_chat", default=None)
"""The chat whose run this task belongs to. Tasks of agents that run as tools inherit it."""
outer_call: ContextVar[CallKey | None] = ContextVar("outer_call", default=None)
"""The call of the chat's own session that this task runs, or a nested one that a person was asked about. Calls of an
agent that runs as a tool are nested in it."""
calls_above: ContextVar[frozenset[CallKey]] = ContextVar("calls_above", default=frozenset())
"""All calls that this task runs, each in the one before."""

GIVEN_UP = "the run that it waited in is over"

_SHORTEST_WAIT_S = 0.01
_POLL_S = 1  # for answers that another worker received


async def wait_for_answer(call: GatedCall) -> CallRecord | None:
    """The call's record, once the call is answered or its deadline has passed. None if the record was deleted."""
    store, leased, key = call.store, call.leased, call.key
    observer, nested = cast(WaitObserver, leased.observer), call.nested_in
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
                if found.due_at is not None:
                    patience_s = min(patience_s, max(_SHORTEST_WAIT_S, found.due_at - snapshot.now))
            except Exception as error:  # whatever a store raises
                logger.error("whether call %s is answered cannot be read: %s", key.call_id, type(error).__qualname__)
            if not is_notified:
                is_notified = True
                leased.waits(key, nested.above if nested is not None else frozenset())
                observer.waits(key, call.tool, nested, blocks=not runs_beside(call.tool))
            await observer.news(patience_s)
    except BaseException:
        if is_notified:
            observer.abandoned(key)
        if (nested is not None or call.is_delegated) and not leased.is_lost:
            await to_its_end(_end_nested(call))
        raise
    finally:
        leased.waiting.pop(key, None)


async def _end_nested(call: GatedCall) -> None:
    """ADK has given the call up, and nobody could continue it. If that cannot be recorded now, it is when the lease is
    given back or taken again."""
    with suppress(StoreUnavailable, call_record.NotAllowed):
        await advance(
            call.store,
            call.leased.key,
            call.key,
            lambda found, now: call_record.end_nested(found, reason=GIVEN_UP, now=now),
        )


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


def nested_in(leased: LeasedChat, tool_context: ToolContext) -> NestedCall | None:
    """Where a call is made that the chat's own session has no event of; None for all others."""
    if is_own(leased, tool_context) and tool_context.node is None:
        return None
    return NestedCall(outer_call.get(), tool_context.agent_name, calls_above.get())


def is_delegated(tool_context: ToolContext) -> bool:
    """Whether an agent makes the call that works on another call of the same session."""
    return "@" in (tool_context.branch or "").rpartition(".")[2]


def begins(call: GatedCall, *, is_asked: bool = False) -> None:
    """The call is about to run in this task. `is_asked`: a person or the policy has approved it."""
    if call.nested_in is None or is_asked:
        outer_call.set(call.key)
    calls_above.set(calls_above.get() | {call.key} if call.nested_in is not None else frozenset({call.key}))


def runs_beside(tool: BaseTool) -> bool:
    """Whether ADK runs the tool beside the conversation, in live mode."""
    if inspect.isasyncgenfunction(getattr(tool, "func", None)):
        return False  # a tool that streams: ADK asks first, and goes on when it has started it
    if tool.behavior is not None:
        return tool.behavior is types.Behavior.NON_BLOCKING
    return tool.response_scheduling is not None
