"""Finds tools that yield their results. ADK fails their runs with a text that does not name the tool."""

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
                logger.warning(
                    "The tool %s is an async generator. It works in live sessions only: without one, its calls fail. "
                    "Return one result instead of yielding several.",
                    tool_name(tool),
                )
            elif inspect.isgeneratorfunction(function):
                logger.warning(
                    "The tool %s is a generator: its calls fail. Return one result, such as a list.", tool_name(tool)
                )
