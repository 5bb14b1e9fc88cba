"""Older releases of ADK: what they lack, and what stands in for it.

What depends on the release of ADK is decided here, and goes when the release is no longer supported.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from google.adk import version as adk_version
from google.adk.agents.context import Context
from google.adk.workflow import BaseNode
from google.adk.workflow._tool_node import _ToolNode  # pyright: ignore[reportPrivateUsage]

from ..errors import ConfigurationError

logger = logging.getLogger(__name__)

Release = tuple[int, ...]

ADK: Release = tuple(int(number) for number in adk_version.__version__.split(".")[:2])

LACKS: dict[Release, tuple[str, ...]] = {
    (2, 11): (
        "tools cannot be workflow nodes",
        "questions of remote agents cannot be answered",
        "the model is not told of a call that a stop has cut, unless the call needed an approval",
        "streamed arguments are shown when they are complete",
        "a message that goes on without its client is not continued by the next server after a drain",
        "a workflow that runs as a tool and asks may be shown in two parts",
        "an agent that runs as a tool and is stopped is shown as pending until the next message",
        "a question may be shown before the results of its step",
        "an answer of the model without content is no error",
    ),
    (2, 12): (
        "workflow nodes have no require_confirmation",
        "remote agents that are sub-agents do not go on after their question",
    ),
    (2, 13): (
        "a call that is cut is recorded when its run ends, not at once",
        "workflows need an input_schema to be tools",
        "text goes through ADK",
        "an agent does not go on after a question of a sub-agent that runs as its tool (single_turn)",
        "the model is not told that an AgentTool without plugins cannot ask",
    ),
}
"""By the release that has it."""

HAS_ABORT_SIGNAL = ADK >= (2, 11)
"""Whether a run can be told to stop. If not, it is cancelled."""

TOOL_NODES_ASK_PLUGINS = ADK >= (2, 11)

ANSWERS_REACH_REMOTE_AGENTS = ADK >= (2, 11)
"""Whether a decision reaches a remote agent as one. If not, it comes as words to its model: nobody is asked."""

REMOTE_SUB_AGENTS_GO_ON = ADK >= (2, 12)
"""Whether a remote agent below another one gets the decision at all. If not, nobody is asked."""

NODES_CAN_ASK = ADK >= (2, 12)

RUNS_IMPORT_PROVIDERS = ADK < (2, 12)
"""Whether the first run imports whatever SDKs of other models are installed."""

PLUGINS_SEE_CANCELLED_TOOLS = ADK >= (2, 13)


def lacks_of(release: Release) -> list[str]:
    return [lack for since, lacks in LACKS.items() if release < since for lack in lacks]


@cache
def log_lacks(release: Release = ADK) -> None:
    """Once in a process."""
    lacks = lacks_of(release)
    if lacks:
        older, newest = (".".join(map(str, number)) for number in (release, max(LACKS)))
        logger.warning("google-adk %s works, with limits that %s does not have: %s", older, newest, "; ".join(lacks))


# -- what stands in ---------------------------------------------------------------------------------------------------


def abort_option(signal: asyncio.Event) -> dict[str, Any]:
    """Of `Runner.run_async`."""
    return {"abort_signal": signal} if HAS_ABORT_SIGNAL else {}


def abort(signal: asyncio.Event, cancel: Callable[[], None]) -> None:
    signal.set()
    if not HAS_ABORT_SIGNAL:
        cancel()


def static_children(node: BaseNode) -> Iterator[Any]:
    """What ADK knows to stand below a node."""
    known = getattr(node, "_iter_static_children", None)  # from 2.13 on
    if known is not None:
        yield from known()
        return
    yield from getattr(getattr(node, "graph", None), "nodes", ())
    yield from (getattr(node, name, None) for name in ("_inner_node", "_node"))
    yield from (getattr(tool, "node", None) for tool in getattr(node, "tools", ()))


def refuse_tool_node(node: BaseNode) -> None:
    """ADK below 2.11 runs a tool that is a workflow node without asking its plugins, so nobody could be asked."""
    if isinstance(node, _ToolNode) and not TOOL_NODES_ASK_PLUGINS:
        raise ConfigurationError(
            f"The workflow node {node.name!r} is a tool, and google-adk {adk_version.__version__} runs such a node "
            "without asking anybody: install google-adk 2.11 or newer."
        )


@cache
def refuse_tool_nodes_of(gate: str) -> None:
    """Also those that are made while a workflow runs, in every run that has this plugin."""
    original: Any = _ToolNode._run_impl  # pyright: ignore[reportPrivateUsage]

    def run(node: _ToolNode, *, ctx: Context, node_input: Any) -> Any:
        if ctx.get_invocation_context().plugin_manager.get_plugin(gate) is not None:
            refuse_tool_node(node)
        return original(node, ctx=ctx, node_input=node_input)

    if not TOOL_NODES_ASK_PLUGINS:
        _ToolNode._run_impl = run  # pyright: ignore
