"""How the gate gets answers in live mode: the call waits inside ADK, and runs as soon as it has its answer.

ADK would refuse a call that needs a confirmation, and never come back to it.
"""

import asyncio
import inspect
from typing import Any

from google.adk.tools import ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation

from ...errors import StoreUnavailable
from .gate_steps import new_approval_id, record_failure, record_result, take_up, text_of_failure, wait_if_run_is_ending
from .gated_call import NOT_APPROVED, STORE_DOWN, GatedCall
from .outcomes import as_response, ended_response
from .unanswerable import withdraw_question
from .waiting import is_own, outer_call, runs_beside, wait_for_answer


async def ask_if_needed(call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
    """Before a tool runs: ask the person if the tool requires it, and wait. None if the tool may run now, as if ADK had
    confirmed it, or the response that ADK gets instead."""
    try:
        is_asked = await call.tool.check_require_confirmation(arguments, tool_context) is True
    except Exception:
        return None  # ADK asks the tool again, and treats its failure
    if not is_asked:
        if is_own(call.leased, tool_context):
            outer_call.set(call.key)
        return None
    refusal = await call.ask(hint=None, approval_id=new_approval_id())
    if refusal is not None:
        return {"error": refusal}
    return await _take_up_when_approved(call, tool_context)


def notify_begun(call: GatedCall, tool_context: ToolContext) -> None:
    """A tool that runs beside the conversation is taken out of ADK's list: ADK cancels what is there when the agent's
    run ends, and a tool that has begun may be paying."""
    observer = call.leased.live_observer
    if observer is None:
        return
    streams = inspect.isasyncgenfunction(getattr(call.tool, "func", None))
    task = asyncio.current_task() if runs_beside(call.tool) and not streams else None
    if task is not None and is_own(call.leased, tool_context):
        context = tool_context._invocation_context  # pyright: ignore[reportPrivateUsage]
        (context._active_background_tools or {}).pop(call.key.call_id, None)  # pyright: ignore[reportPrivateUsage]
    observer.began(call.key, task)


async def run_again(call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
    """After a tool has asked for approval itself: wait for the person, and run the tool again, since ADK will not."""
    withdraw_question(tool_context)
    try:
        refusal = await _take_up_when_approved(call, tool_context)
        if refusal is not None:
            return refusal
        notify_begun(call, tool_context)
        result = await call.tool.run_async(args=tool_args, tool_context=tool_context)
    except StoreUnavailable:
        return {"error": STORE_DOWN}
    except BaseException as error:  # recorded as if ADK had run the tool
        await record_failure(call, error)
        if not isinstance(error, Exception):
            raise
        return {"error": text_of_failure(call.tool)}
    return await record_result(call, tool_context, result) or as_response(result)


async def wait_for_output(call: GatedCall, tool_context: ToolContext) -> dict[str, Any]:
    """Wait for what the browser gives for a call of its own."""
    answered = await wait_for_answer(call, tool_context)
    return {"error": NOT_APPROVED} if answered is None else ended_response(answered)


async def _take_up_when_approved(call: GatedCall, tool_context: ToolContext) -> dict[str, Any] | None:
    """Wait for the person's decision. None if the tool may run now, or the response that ADK gets instead."""
    decided = await wait_for_answer(call, tool_context)
    if decided is None:
        return {"error": NOT_APPROVED}
    await wait_if_run_is_ending(call.leased)
    refusal = await take_up(call, call.arguments, tool_context)
    if refusal is not None:
        return refusal
    tool_context.tool_confirmation = ToolConfirmation(confirmed=True, payload=decided.payload)
    outer_call.set(call.key)
    return None
