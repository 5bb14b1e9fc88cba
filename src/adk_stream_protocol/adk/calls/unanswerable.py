"""Calls that nobody can answer: in chats that this process does not run, and where ADK cannot wait."""

import logging
from typing import Any

from google.adk.events import Event
from google.adk.tools import BaseTool, ToolContext

from .client_tools import ClientTool
from .gated_call import NOT_APPROVED
from .leased_chat import call_keys

logger = logging.getLogger(__name__)

_NO_CLIENT = "This call was not run: there is no client here that could answer it."
_NODE_ASKS = "WORKFLOW_NODE_ASKS"
_NO_TASKS = "This call was not run: an agent with a task cannot work in a live session. The user may write without one."


def refuse_without_client(tool: BaseTool, tool_context: ToolContext, *, is_asked: bool) -> dict[str, Any] | None:
    """Before a call in a chat that this process does not run. None if the tool may run. `is_asked`: by the policy."""
    if tool_context.tool_confirmation is not None:
        return {"error": NOT_APPROVED}
    return {"error": _NO_CLIENT} if isinstance(tool, ClientTool) or is_asked else None


def refuse_question_without_client(tool_context: ToolContext) -> dict[str, Any] | None:
    """After a call in a chat that this process does not run. None if the tool has not asked for approval."""
    if call_keys(tool_context)[1].call_id not in tool_context.actions.requested_tool_confirmations:
        return None
    withdraw_question(tool_context)
    return {"error": _NO_CLIENT}


def refuse_task(tool: BaseTool, result: Any) -> dict[str, Any] | None:
    """After a call in a live session, where ADK begins no tasks: it would leave the model without a response."""
    is_task = getattr(tool, "_defers_response", False) and result is None
    return {"error": _NO_TASKS} if is_task else None


def without_node_question(event: Event) -> Event:
    """A node that the workflow made while it ran has asked for approval. The event says so in place of the question."""
    logger.error("a workflow node asked for approval: put its tool into an LlmAgent")
    return event.model_copy(update={"content": None, "long_running_tool_ids": None, "error_code": _NODE_ASKS})


def withdraw_question(tool_context: ToolContext) -> None:
    """Remove ADK's question about this call: where ADK asks it, nobody can answer."""
    del tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""]
    tool_context.actions.skip_summarization = None
