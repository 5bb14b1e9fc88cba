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


def _children(node: BaseNode) -> Iterator[Any]:
    yield from static_children(node)
    for name, value in node:  # the children of an application's own node, which ADK does not know
        if name != "parent_agent":
            yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else (value,)
