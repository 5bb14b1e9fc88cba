"""Calls that nobody can answer: in chats that this process does not run, and in nodes of workflows."""

import logging
from typing import Any

from google.adk.events import Event
from google.adk.tools import BaseTool, ToolContext

from .client_tools import ClientTool
from .gated_call import NOT_APPROVED
from .leased_chat import call_keys

logger = logging.getLogger(__name__)

_NO_CLIENT = "This call was not run: there is no client here that could answer it."
_IN_NODE = "This call was not run: a node of a workflow cannot ask for approval. Put its tool into an LlmAgent."
_NODE_ASKS = "WORKFLOW_NODE_ASKS"


def refuse_without_client(tool: BaseTool, tool_context: ToolContext) -> dict[str, Any] | None:
    """Before a call in a chat that this process does not run. None if the tool may run."""
    if tool_context.tool_confirmation is not None:
        return {"error": NOT_APPROVED}
    return {"error": _NO_CLIENT} if isinstance(tool, ClientTool) else None


def refuse_question_without_client(tool_context: ToolContext) -> dict[str, Any] | None:
    """After a call in a chat that this process does not run. None if the tool has not asked for approval."""
    if call_keys(tool_context)[1].call_id not in tool_context.actions.requested_tool_confirmations:
        return None
    withdraw_question(tool_context)
    return {"error": _NO_CLIENT}


async def refuse_in_node(tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
    """Before a call in a node of a workflow. None if the call needs no answer."""
    if tool_context.node is not None and await _needs_answer(tool, arguments, tool_context):
        return {"error": _IN_NODE}
    return None


async def _needs_answer(tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext) -> bool:
    if isinstance(tool, ClientTool) or tool.is_long_running:
        return True
    try:
        return bool(await tool.check_require_confirmation(arguments, tool_context))
    except Exception:
        return True  # the tool cannot say


def without_node_question(event: Event) -> Event:
    """A node that the workflow made while it ran has asked for approval. The event says so in place of the question."""
    logger.error("a workflow node asked for approval: put its tool into an LlmAgent")
    return event.model_copy(update={"content": None, "long_running_tool_ids": None, "error_code": _NODE_ASKS})


def withdraw_question(tool_context: ToolContext) -> None:
    """Remove ADK's question about this call: where ADK asks it, nobody can answer."""
    del tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""]
    tool_context.actions.skip_summarization = None
