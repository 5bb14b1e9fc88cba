"""How the gate gets answers in live mode, and to nested calls in both: the call waits inside ADK, and runs as soon as
it has its answer.

ADK would refuse a call that needs a confirmation, and never come back to it.
"""

import asyncio
from typing import Any, cast

from google.adk.tools import ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation

from ...errors import StoreUnavailable
from .consent_inside import asks_for_consent, run_after_consent
from .gate_steps import (
    record_failure,
    record_result,
    run_by_policy,
    take_up,
    text_of_failure,
    wait_if_run_is_ending,
)
from .gated_call import NOT_APPROVED, STORE_DOWN, GatedCall, new_approval_id
from .live_observer import WaitObserver
from .outcomes import as_response, ended_response
from .unanswerable import withdraw_question
from .waiting import begins, is_own, runs_beside, wait_for_answer


async def ask_if_needed(call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
    """Before a tool runs: ask the person if the tool or the policy requires it, and wait. None if the tool may run now,
    as if ADK had confirmed it, or the response that ADK gets instead."""
    try:
        is_required = await call.tool.check_require_confirmation(arguments, tool_context) is True
    except Exception:
        if call.verdict in (None, "nobody"):
            return None  # ADK asks the tool again, and treats its failure
        is_required = True
    if is_required and call.verdict == "nobody":
        return await run_by_policy(call, arguments, tool_context)
    if call.verdict == "nobody" or (call.verdict is None and not is_required):
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
    task = asyncio.current_task() if runs_beside(call.tool) else None
    if task is not None and is_own(call.leased, tool_context):
        context = tool_context._invocation_context  # pyright: ignore[reportPrivateUsage]
        (context._active_background_tools or {}).pop(call.key.call_id, None)  # pyright: ignore[reportPrivateUsage]
    observer.began(call.key, task)


async def run_again(call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
    """After a tool has asked for approval itself: wait for the person, unless the policy asks nobody, and run the tool
    again, since ADK will not."""
    payload = tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""].payload
    withdraw_question(tool_context)
    try:
        if call.verdict == "nobody":
            refusal = await run_by_policy(call, tool_args, tool_context, payload)
        else:
            refusal = await _take_up_when_approved(call, tool_context)
        if refusal is not None:
            return refusal
        notify_begun(call, tool_context)
        result = await call.tool.run_async(args=tool_args, tool_context=tool_context)
        if asks_for_consent(call, tool_context):
            result = await run_after_consent(call, tool_args, tool_context)
    except StoreUnavailable:
        return {"error": STORE_DOWN}
    except BaseException as error:  # recorded as if ADK had run the tool
        await record_failure(call, error)
        if not isinstance(error, Exception):
            raise
        return {"error": text_of_failure(call.tool)}
    return await record_result(call, tool_context, result) or as_response(result)


async def wait_for_output(call: GatedCall) -> dict[str, Any]:
    """Wait for what the browser gives for a call of its own."""
    answered = await wait_for_answer(call)
    return {"error": NOT_APPROVED} if answered is None else ended_response(answered)


async def _take_up_when_approved(call: GatedCall, tool_context: ToolContext) -> dict[str, Any] | None:
    """Wait for the person's decision. None if the tool may run now, or the response that ADK gets instead."""
    decided = await wait_for_answer(call)
    if decided is None:
        return {"error": NOT_APPROVED}
    try:
        await wait_if_run_is_ending(call.leased)
        refusal = await take_up(call, call.arguments, tool_context)
    except asyncio.CancelledError:  # the agent has handed over meanwhile: what is approved is for another run
        cast(WaitObserver, call.leased.observer).abandoned(call.key)
        raise
    if refusal is not None:
        return refusal
    tool_context.tool_confirmation = ToolConfirmation(confirmed=True, payload=decided.payload)
    begins(call, is_asked=True)
    return None
