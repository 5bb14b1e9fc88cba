"""Agents and workflow nodes below a root."""

from collections.abc import Iterator
from typing import Any

from google.adk.workflow import BaseNode

from .versions import static_children


def all_nodes(root: Any) -> Iterator[BaseNode]:
    """The root and everything below it that ADK would run with the root's plugins."""
    seen: set[int] = set()
    found = [root]
    while found:
        node = found.pop()
        if id(node) not in seen and isinstance(node, BaseNode):
            seen.add(id(node))
            yield node
            found += _children(node)


def nodes_with_tool_agents(root: Any) -> Iterator[BaseNode]:
    """All nodes of the tree, and those inside of agents that run as tools."""
    seen: set[int] = set()
    roots = [root]
    while roots:
        for node in all_nodes(roots.pop()):
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                roots += [tool.agent for tool in tools_of(node) if isinstance(getattr(tool, "agent", None), BaseNode)]


def tools_of(node: BaseNode) -> list[Any]:
    return getattr(node, "tools", None) or []


def _children(node: BaseNode) -> Iterator[Any]:
    yield from static_children(node)
    for name, value in node:  # the children of an application's own node, which ADK does not know
        if name != "parent_agent":
            yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else (value,)
