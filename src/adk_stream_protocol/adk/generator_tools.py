"""Finds tools that yield their results. When they are called, ADK fails with a text that does not name the tool."""

import inspect
import logging
from typing import Any

from .control_flow import tool_name
from .node_tree import nodes_with_tool_agents, tools_of

logger = logging.getLogger(__name__)


def warn_of_generator_tools(root: Any) -> None:
    for node in nodes_with_tool_agents(root):
        for tool in tools_of(node):
            function = getattr(tool, "func", tool)
            if inspect.isasyncgenfunction(function):
                _warn(tool, "an async generator, which ADK runs in live sessions only. Return one result instead.")
            elif inspect.isgeneratorfunction(function):
                _warn(tool, "a generator, which ADK does not run. Return one result, such as a list.")


def _warn(tool: Any, text: str) -> None:
    logger.warning("The tool %s is %s", tool_name(tool), text)
