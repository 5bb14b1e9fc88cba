"""The steps of the gate that both modes share: take a call up, record its result, record its failure."""

import asyncio
import logging
import uuid
from typing import Any

from google.adk.tools import BaseTool, ToolContext

from ...protocol.call_record import State
from .gated_call import GatedCall
from .leased_chat import LeasedChat
from .unanswerable import withdraw_question

logger = logging.getLogger(__name__)

_ASKS_AGAIN = "This call was not completed: a tool cannot ask for approval a second time."
_NO_RESULT = "This call was run, and gave no result."


def new_approval_id() -> str:
    return f"adk-{uuid.uuid4()}"


def has_asked(call: GatedCall, tool_context: ToolContext) -> bool:
    """Whether the tool has asked ADK for an approval of this call."""
    return call.key.call_id in tool_context.actions.requested_tool_confirmations


async def wait_if_run_is_ending(leased: LeasedChat) -> None:
    """A run that is about to end starts no tool: what is approved is for the next run. Then this waits until ADK's task
    is cancelled."""
    if leased.begins_nothing:
        await asyncio.get_running_loop().create_future()


async def take_up(call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
    """None if the call may run now, or the response that ADK gets instead."""
    instead = await call.take_up(arguments)
    record = call.record
    if instead is not None and record is not None and record.state in (State.DONE, State.FAILED):
        tool_context.state.update(record.result["state"])
    return instead


async def record_result(call: GatedCall, tool_context: ToolContext, result: Any) -> dict[str, Any] | None:
    """Record what a tool returned that was taken up. None, or the response that ADK gets instead."""
    state = dict(tool_context.actions.state_delta)
    if has_asked(call, tool_context):
        withdraw_question(tool_context)
        return await call.fail(_ASKS_AGAIN, state) or {"error": _ASKS_AGAIN}
    is_live = call.leased.live_observer is not None
    if is_live and call.tool.is_long_running and not result:  # ADK would give the model no response
        return await call.fail(_NO_RESULT, state) or {"error": _NO_RESULT}
    return await call.finish(result, state)


async def record_failure(call: GatedCall, error: BaseException) -> dict[str, Any] | None:
    """Record that a tool raised. None if ADK is to treat the error, or the response that ADK gets instead."""
    is_cancelled = isinstance(error, asyncio.CancelledError)
    instead: dict[str, Any] | None = None
    try:
        if call.is_started:
            if is_cancelled:  # stopped half-way: it may have had its effect
                await call.lose()
            else:
                instead = await call.fail(text_of_failure(call.tool), {})
    finally:
        call.leased.end(call.key)
    is_unknown = type(call.tool) is BaseTool  # of a call that names no tool; ADK tells the model which tools exist
    if call.leased.live_observer is None or is_unknown or is_cancelled:
        return instead
    # In live mode the error would end the whole session, or leave the model without a response.
    logger.error("tool %s failed in a live session: %s", call.tool.name, type(error).__qualname__)
    return instead or {"error": text_of_failure(call.tool)}


def text_of_failure(tool: BaseTool) -> str:
    return f"The tool {tool.name} failed."
