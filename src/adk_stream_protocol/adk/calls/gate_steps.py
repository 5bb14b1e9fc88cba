"""The steps of the gate that both modes share: take a call up, record its result, record its failure."""

import asyncio
import logging
from typing import Any

from google.adk.sessions.state import State
from google.adk.tools import BaseTool, ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation

from ...errors import StoreUnavailable
from ...protocol.call_record import State as CallState
from .gated_call import ELSEWHERE, RETRIES_S, STORE_DOWN, GatedCall
from .leased_chat import LeasedChat
from .unanswerable import withdraw_question

logger = logging.getLogger(__name__)

_ASKS_AGAIN = "This call was not completed: a tool cannot ask for approval a second time."
_NO_RESULT = "This call was run, and gave no result."


def has_asked(call: GatedCall, tool_context: ToolContext) -> bool:
    """Whether the tool has asked for an approval of this call. What was diverted is put into ADK's list first."""
    requested = tool_context.actions.requested_tool_confirmations
    if call.diverted is not None:
        requested[call.key.call_id], call.diverted = call.diverted, None
    return call.key.call_id in requested


def divert_question(call: GatedCall, tool_context: ToolContext) -> None:
    """A tool in a workflow's node may ask by itself. ADK would ask the user at once, and not the gate first."""
    if tool_context.node is None:
        return

    def request_confirmation(*, hint: str | None = None, payload: Any = None) -> None:
        call.diverted = ToolConfirmation(hint=hint or "", payload=payload)

    tool_context.request_confirmation = request_confirmation


async def wait_if_run_is_ending(leased: LeasedChat) -> None:
    """A run that is about to end starts no tool: what is approved is for the next run. Then this waits until ADK's task
    is cancelled."""
    if leased.begins_nothing:
        await asyncio.get_running_loop().create_future()


async def take_up(call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
    """None if the call may run now, or the response that ADK gets instead."""
    try:
        instead = await (_take_up_inside(call, arguments) if call.waits_inside else call.take_up(arguments))
        if call.waits_inside and instead == {"error": ELSEWHERE}:
            await _wait_if_lease_is_lost(call)
    except Exception:
        call.leased.not_run.add(call.key)  # the store may have recorded its start all the same
        raise
    record = call.record
    if record is not None and record.state in (CallState.DONE, CallState.FAILED):
        tool_context.state.update(record.result["state"])
    return instead


async def _wait_if_lease_is_lost(call: GatedCall) -> None:
    """Whoever has the lease goes on with the call: it would not, if ADK told the session now that the call was not run.
    This run ends when its next renewal fails."""
    if not await call.store.renew(call.leased.lease, call.lease_s):
        call.leased.begins_nothing = True
        await wait_if_run_is_ending(call.leased)


async def _take_up_inside(call: GatedCall, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """A call that is approved waits a while for a store that is down."""
    for pause_s in RETRIES_S:
        try:
            return await call.take_up(arguments)
        except Exception as error:  # whatever a store raises
            logger.error("call %s is approved, and cannot begin: %s", call.key.call_id, type(error).__qualname__)
        await asyncio.sleep(pause_s)
        await wait_if_run_is_ending(call.leased)
    return await call.take_up(arguments)


def refuse_after(error: Exception, call: GatedCall) -> dict[str, Any]:
    """Before a tool has run, something has failed: the store, if it fails as it should."""
    is_down = isinstance(error, StoreUnavailable)
    if call.leased.live_observer is None and not is_down:
        raise error  # in live mode it would end the whole session, or leave the model without a response
    why = "the store is down" if is_down else type(error).__qualname__
    logger.error("%s: call %s was not run", why, call.key.call_id)
    return {"error": STORE_DOWN}


async def run_by_policy(
    call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext, payload: Any = None
) -> dict[str, Any] | None:
    """The policy asks nobody about a call that would have been asked about. None if it may run now, as if somebody had
    confirmed it, or the response that ADK gets instead."""
    refusal = await call.approve_by_policy()
    if refusal is not None:
        return {"error": refusal}
    instead = await take_up(call, arguments, tool_context)
    if instead is None:
        tool_context.tool_confirmation = ToolConfirmation(confirmed=True, payload=payload)
    return instead


async def record_result(call: GatedCall, tool_context: ToolContext, result: Any) -> dict[str, Any] | None:
    """Record what a tool returned that was taken up. None, or the response that ADK gets instead."""
    changed = tool_context.actions.state_delta.items()
    state = {name: value for name, value in changed if not name.startswith(State.TEMP_PREFIX)}  # tokens, say
    if has_asked(call, tool_context):
        withdraw_question(tool_context)
        return await call.fail(_ASKS_AGAIN, state) or {"error": _ASKS_AGAIN}
    if call.waits_inside and call.tool.is_long_running and not result:  # ADK would give the model no response
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
    observer = call.leased.live_observer
    if observer is None or is_cancelled:
        return instead
    if type(call.tool) is BaseTool:  # of a call that names no tool: ADK has no more callbacks for it
        response = {"error": _no_such_tool(call.tool, error)}
        observer.settled(call.key, response)
        return response
    # In live mode the error would end the whole session, or leave the model without a response.
    logger.error("tool %s failed in a live session: %s", call.tool.name, type(error).__qualname__)
    return instead or {"error": text_of_failure(call.tool)}


def _no_such_tool(tool: BaseTool, error: BaseException) -> str:
    """ADK's own text for developers names the tools that exist."""
    known = str(error).partition("Available tools: ")[2].partition("\n")[0]
    return f"There is no tool {tool.name}. The tools you can call are: {known or 'none'}."


def text_of_failure(tool: BaseTool) -> str:
    return f"The tool {tool.name} failed."
