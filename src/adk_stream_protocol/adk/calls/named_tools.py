"""Finds names in an `ApprovalPolicy` that no tool has: a typo there would leave a person without the hint."""

import logging
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import BaseNode

from ...errors import ConfigurationError
from ..control_flow import tool_name
from ..node_tree import nodes_with_tool_agents, tools_of
from .policy import ApprovalPolicy

logger = logging.getLogger(__name__)

# Those of ADK that have no tools themselves, but for the agents and nodes below them.
_FRAMES = ("google.adk.workflow.", *(f"google.adk.agents.{kind}_agent" for kind in ("sequential", "parallel", "loop")))


class NamedTools:
    """The names are checked at the start. If a toolset may still bring them, they are checked when ADK has listed the
    tools of every agent that has one."""

    def __init__(self, policy: ApprovalPolicy, root: Any) -> None:
        self._missing: dict[str, str] = {}
        """With the option that names it."""
        self._known: set[str] = set()
        self._unlisted: set[str] = set()
        """The agents with toolsets that ADK has not listed yet."""
        named = {name: option for option in ("hints", "cards", "edits") for name in getattr(policy, option)}
        nodes = list(nodes_with_tool_agents(root)) if named else []
        if all(map(_has_no_other_tools, nodes)):
            self._missing = named
            self._unlisted = {node.name for node in nodes if any(map(_is_toolset, tools_of(node)))}
            self._learn(name for node in nodes for name in _static_names(node))
        if self._missing and not self._unlisted:
            raise ConfigurationError(self._text())

    def on_listed(self, agent: str, tools: Iterable[str]) -> None:
        """ADK has listed the tools of an agent for a call of its model."""
        if not self._missing or agent not in self._unlisted:
            return
        self._learn(tools)
        self._unlisted.discard(agent)
        if self._missing and not self._unlisted:
            logger.warning("%s", self._text())
            self._missing = {}

    def _learn(self, names: Iterable[str]) -> None:
        self._known.update(names)
        self._missing = {name: option for name, option in self._missing.items() if name not in self._known}

    def _text(self) -> str:
        told: list[str] = []
        for name, option in self._missing.items():
            close: list[str] = get_close_matches(name, self._known, n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            told.append(f"ApprovalPolicy({option}=...) names {name!r}, and no tool of the agent has that name.{meant}")
        return " ".join(told)


def _static_names(node: BaseNode) -> Iterator[str]:
    if not isinstance(node, LlmAgent):
        yield node.name  # workflow nodes are asked about under their own names
    for tool in tools_of(node):
        if not _is_toolset(tool):
            yield tool_name(tool)


def _is_toolset(tool: Any) -> bool:
    return isinstance(tool, BaseToolset)


def _has_no_other_tools(node: BaseNode) -> bool:
    """False for an agent that may have any tool: one of the application's own, or one whose callback may add tools."""
    if isinstance(node, LlmAgent):
        return not node.before_model_callback
    return type(node).__module__.startswith(_FRAMES)
