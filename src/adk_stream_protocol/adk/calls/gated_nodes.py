"""Workflow nodes with `require_confirmation`: ADK runs them without asking its plugins, so the gate is put before them.

ADK itself would end the run with a question of the node's own, take "yes" or 1 for an approval, and bind the arguments
anew when it comes back: other ones than the person saw might run. Here the node waits inside the run, and gets the
arguments that were shown.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from google.adk.agents.context import Context
from google.adk.events import Event
from google.adk.tools import BaseTool, ToolContext
from google.adk.workflow import FunctionNode
from pydantic import TypeAdapter

from ..versions import NODES_CAN_ASK, refuse_tool_nodes_of

if TYPE_CHECKING:
    from .gate import ApprovalGate

GATE = "adk_stream_approvals"
"""The name of the gate among the plugins."""

_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_REJECTED = {"error": "This tool call is rejected."}  # ADK's own: a node's output schema lets it pass
_CHANGED = "This call was not run: its arguments have changed since they were shown."
_ASKS_ITSELF = "This call was not completed: a node cannot ask for approval by itself."


class NodeTool(BaseTool):
    """A node, as the gate sees it."""

    def __init__(self, node: FunctionNode, node_input: Any, bound: dict[str, Any]) -> None:
        super().__init__(name=node.name, description=node.description or "")
        self._node = node
        self._node_input = node_input
        self._bound = bound

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return await self._node._check_require_confirmation(  # pyright: ignore[reportPrivateUsage]
            tool_context, node_input=self._node_input, bound_args=self._bound
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return {"error": _ASKS_ITSELF}


class _Changed(Exception):
    """What runs would not be what was shown."""


def put_gate_before_nodes() -> None:
    """Once in a process. Nodes of runners without a gate run as ADK runs them."""
    refuse_tool_nodes_of(GATE)
    if NODES_CAN_ASK and not isinstance(FunctionNode._run_impl, _GatedRun):  # pyright: ignore[reportPrivateUsage]
        FunctionNode._run_impl = _GatedRun(FunctionNode._run_impl)  # pyright: ignore


class _GatedRun:
    """Stands for the method that runs a node's function."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __get__(self, node: FunctionNode | None, _: type | None = None) -> Any:
        if node is None:
            return self

        def run(*, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
            plugins = ctx.get_invocation_context().plugin_manager
            gate = cast("ApprovalGate | None", plugins.get_plugin(GATE)) if node.require_confirmation else None
            if gate is None:
                return self._original(node, ctx=ctx, node_input=node_input)
            return self._run_gated(gate, node, ctx, node_input)

        return run

    async def _run_gated(
        self, gate: "ApprovalGate", node: FunctionNode, ctx: Context, node_input: Any
    ) -> AsyncGenerator[Any, None]:
        given = node._bind_parameters(ctx, node_input)  # pyright: ignore[reportPrivateUsage]
        bound = {name: value for name, value in given.items() if value is not ctx}
        shown = _shown(bound)
        ctx.function_call_id = str(uuid4())
        about: dict[str, Any] = {"tool": NodeTool(node, node_input, bound), "tool_args": shown, "tool_context": ctx}
        instead = await gate.before_tool_callback(**about)
        if instead is not None:
            instead = await gate.after_tool_callback(**about, result=instead) or instead
            yield _refusal(node, instead)
            return
        last: Any = None
        try:
            async with aclosing(
                self._original(_with(node, given, bound, shown), ctx=ctx, node_input=node_input)
            ) as items:
                async for item in items:
                    if last is not None:
                        yield last
                    last = item
        except _Changed:
            yield _refusal(node, await gate.fail(about["tool"], ctx, _CHANGED))
            return
        except BaseException as error:
            instead = await gate.on_tool_error_callback(**about, error=error)
            if instead is None:
                raise
            yield _refusal(node, instead)
            return
        # The result is recorded before anybody gets it.
        replaced = await gate.after_tool_callback(**about, result=_shown(getattr(last, "output", None)))
        if replaced is not None:
            last = _refusal(node, replaced)
        if last is not None:
            yield last


def _with(node: FunctionNode, given: dict[str, Any], bound: dict[str, Any], shown: Any) -> FunctionNode:
    """The node with the arguments that were shown, whatever the session's state is by now."""

    def bind(ctx: Context, node_input: Any) -> dict[str, Any]:
        if _shown(bound) != shown:  # something else has a hold of the same objects
            raise _Changed
        return given

    fixed = node.model_copy()
    object.__setattr__(fixed, "_bind_parameters", bind)
    return fixed


def _shown(value: Any) -> Any:
    return _ANY.dump_python(value, mode="json", by_alias=True, fallback=repr)


def _refusal(node: FunctionNode, response: dict[str, Any]) -> Event:
    try:
        node._validate_output_data(response)  # pyright: ignore[reportPrivateUsage]
    except Exception:
        response = _REJECTED
    return Event(output=response)
