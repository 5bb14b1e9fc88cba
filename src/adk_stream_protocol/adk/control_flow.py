"""Which of an agent's calls are ADK's own control flow, and not tools that a client should see.

A name is not enough: an application may have a tool of that name, and a model may call a tool that it does not have.
"""

from typing import Any, cast

from google.adk.agents import LlmAgent
from google.adk.tools import exit_loop, transfer_to_agent  # pyright: ignore[reportUnknownVariableType]

from .node_tree import all_nodes

_SEQUENCES = "google.adk.agents.sequential_agent"  # deprecated, and still the only sequence in live mode
_DELEGATED = ("task", "single_turn")  # modes of agents that are called as tools and never transferred to


def control_flow_by_author(root: Any) -> dict[str, frozenset[str]]:
    """For each agent below the root, by the name that its events have."""
    found: dict[str, frozenset[str]] = {}
    for node in all_nodes(root):
        if isinstance(node, LlmAgent):
            names = control_flow_of(node)
            found[node.name] = names & found.get(node.name, names)
    return found


def control_flow_of(agent: LlmAgent) -> frozenset[str]:
    """The names of ADK's control-flow tools that it gives to this agent. An application's own tool of that
    name goes first."""
    tools = cast(list[Any], agent.tools)  # pyright: ignore[reportUnknownMemberType]
    functions = [getattr(tool, "func", tool) for tool in tools]
    given = {
        "transfer_to_agent": _can_transfer(agent) or transfer_to_agent in functions,
        "set_model_response": agent.output_schema is not None and bool(tools) and agent.mode != "task",
        "finish_task": agent.mode == "task",
        "exit_loop": exit_loop in functions,
        "task_completed": any(base.__module__ == _SEQUENCES for base in type(agent.parent_agent).__mro__),
    }
    own = {tool_name(tool) for tool in tools if not _is_adks(tool)}
    return frozenset(name for name, is_given in given.items() if is_given) - own


def _can_transfer(agent: LlmAgent) -> bool:
    parent = agent.parent_agent
    targets = list(agent.sub_agents)
    if isinstance(parent, LlmAgent):
        if not agent.disallow_transfer_to_parent:
            return True
        if not agent.disallow_transfer_to_peers:
            targets += [peer for peer in parent.sub_agents if peer.name != agent.name]
    return any(getattr(target, "mode", None) not in _DELEGATED for target in targets)


def _is_adks(tool: Any) -> bool:
    function = getattr(tool, "func", tool)
    is_sequences = getattr(function, "__module__", None) == _SEQUENCES  # added when a live run begins
    return function in (exit_loop, transfer_to_agent) or is_sequences or type(tool).__name__ == "FinishTaskTool"


def tool_name(tool: Any) -> str:
    """Agents take plain functions as tools, too."""
    return getattr(tool, "name", None) or getattr(tool, "__name__", "")
