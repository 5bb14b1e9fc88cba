"""Where a gated tool can be called from: an agent for each place, whose models answer by what they read. So a server
that was killed goes on where it was."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.adk.tools.openapi_tool import OpenAPIToolset
from google.adk.workflow import BaseNode, Workflow, node
from google.genai import types
from pydantic import PrivateAttr

from adk_stream_protocol.testing import ScriptedLiveModel, call
from support.tool_log import ToolLog, append_line

Mode = Literal["request", "live"]
WORKER = "worker"
"""The agent that calls the gated tool."""
SETTLE = "And now?"
PAID = "Paid."


class Actor(ScriptedLiveModel):
    """Calls one tool, and says that it knows the result. What it was asked is written down."""

    _wish: types.Part | None = PrivateAttr()
    _name: str = PrivateAttr()
    _file: Path = PrivateAttr()
    _writes_code: bool = PrivateAttr()

    def __init__(self, kit: Kit, name: str, wish: types.Part | None, *, writes_code: bool = False) -> None:
        super().__init__(family=kit.family)
        self._wish, self._name, self._file, self._writes_code = wish, name, kit.folder / "asked", writes_code

    def next_reply(self, llm_request: LlmRequest) -> Any:
        contents = [content.model_dump(mode="json", exclude_none=True) for content in llm_request.contents]
        append_line(self._file, json.dumps({"agent": self._name, "contents": contents}))
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        results = {part.function_response.name for part in parts if part.function_response}
        texts = " ".join(part.text for part in parts if part.text)
        wished = self._wish.function_call if self._wish else None
        if wished is None:
            return "Beside."
        if wished.name in results:
            return PAID
        if SETTLE in texts:
            return "Nothing is known of it."
        if self._writes_code and "print(" not in texts and not any(part.executable_code for part in parts):
            return "```python\nprint(2 + 3)\n```"
        return [call(wished.name or "", **(wished.args or {}))]


@dataclass(frozen=True)
class Kit:
    """What the agents of one server are made of."""

    folder: Path
    amount: int
    """No other call has the same: by it the remote services tell whose run it was."""
    remote: str
    """The address of services that tools can be elsewhere."""
    mode: Mode
    family: Literal["2.5", "3"]

    @property
    def wish(self) -> types.Part:
        return types.Part(function_call=types.FunctionCall(name="pay", args={"amount": self.amount}))

    def worker(self, *tools: Any, writes_code: bool = False, **fields: Any) -> LlmAgent:
        model = Actor(self, WORKER, self.wish, writes_code=writes_code)
        return LlmAgent(name=WORKER, description="Pays.", model=model, tools=list(tools or [self.pay]), **fields)

    def caller(self, name: str, tool: str, arguments: dict[str, Any], **fields: Any) -> LlmAgent:
        """An agent that has another one pay."""
        wish = types.Part(function_call=types.FunctionCall(name=tool, args=arguments))
        return LlmAgent(name=name, description="Has it paid.", model=Actor(self, name, wish), **fields)

    def bystander(self) -> LlmAgent:
        return LlmAgent(name="bystander", description="Watches.", model=Actor(self, "bystander", None))

    @property
    def log(self) -> ToolLog:
        return ToolLog(self.folder / "tools")

    @property
    def pay(self) -> FunctionTool:
        async def pay(amount: int, tool_context: ToolContext) -> dict[str, int]:
            """Pays."""
            with self.log.running("pay", tool_context, amount=amount):
                return {"paid": amount}

        return FunctionTool(pay, require_confirmation=True)

    @property
    def streaming_pay(self) -> FunctionTool:
        async def pay(amount: int, tool_context: ToolContext) -> AsyncGenerator[dict[str, int], None]:
            """Pays, and tells how it goes."""
            with self.log.running("pay", tool_context, amount=amount):
                yield {"paid": amount}

        return FunctionTool(pay, require_confirmation=True)

    @property
    def long_running_pay(self) -> LongRunningFunctionTool:
        tool = LongRunningFunctionTool(self.pay.func)
        tool._require_confirmation = True  # pyright: ignore[reportPrivateUsage] -- ADK takes no such argument
        return tool


# -- the places -------------------------------------------------------------------------------------------------------


def _root(kit: Kit) -> BaseNode:
    return kit.worker()


def _sub_agent(kit: Kit) -> BaseNode:
    return kit.caller("root", WORKER, {"request": "Pay."}, sub_agents=[kit.worker(mode="single_turn")])


def _transferred(kit: Kit) -> BaseNode:
    return kit.caller("root", "transfer_to_agent", {"agent_name": WORKER}, sub_agents=[kit.worker()])


def _sequential(kit: Kit) -> BaseNode:
    return SequentialAgent(name="root", sub_agents=[kit.worker(), kit.bystander()])


def _parallel(kit: Kit) -> BaseNode:
    return ParallelAgent(name="root", sub_agents=[kit.worker(), kit.bystander()])


def _loop(kit: Kit) -> BaseNode:
    return LoopAgent(name="root", max_iterations=2, sub_agents=[kit.worker()])


def _agent_tool(kit: Kit) -> BaseNode:
    return kit.caller("root", WORKER, {"request": "Pay."}, tools=[AgentTool(kit.worker())])


def _nested_agent_tool(kit: Kit) -> BaseNode:
    clerk = kit.caller("clerk", WORKER, {"request": "Pay."}, tools=[AgentTool(kit.worker())])
    return kit.caller("root", "clerk", {"request": "Pay."}, tools=[AgentTool(clerk)])


def _workflow_node(kit: Kit) -> BaseNode:
    @node
    def prepare() -> dict[str, int]:
        return {"amount": kit.amount}

    checkout = Workflow(name="checkout", description="Pays.", edges=[("START", prepare, node(kit.pay))])
    return kit.caller(WORKER, "checkout", {}, tools=[checkout])


def _mcp(kit: Kit) -> BaseNode:
    connection = StreamableHTTPConnectionParams(url=f"{kit.remote}/mcp")
    return kit.worker(McpToolset(connection_params=connection, require_confirmation=True))


def _open_api(kit: Kit) -> BaseNode:
    amount = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    operation = {
        "operationId": "pay",
        "description": "Pays.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": amount}}},
        "responses": {"200": {"description": "Paid."}},
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Till", "version": "1"},
        "servers": [{"url": kit.remote}],
        "paths": {"/pay": {"post": operation}},
    }
    return kit.worker(OpenAPIToolset(spec_dict=document, allow_private_network_access=True))


def _streaming(kit: Kit) -> BaseNode:
    return kit.worker(kit.streaming_pay)


def _long_running(kit: Kit) -> BaseNode:
    return kit.worker(kit.long_running_pay)


def _code_executor(kit: Kit) -> BaseNode:
    return kit.worker(writes_code=kit.mode == "request", code_executor=UnsafeLocalCodeExecutor())


PLACES: dict[str, Callable[[Kit], BaseNode]] = {
    "root": _root,
    "sub-agent": _sub_agent,
    "transferred": _transferred,
    "sequential": _sequential,
    "parallel": _parallel,
    "loop": _loop,
    "AgentTool": _agent_tool,
    "nested AgentTool": _nested_agent_tool,
    "workflow node": _workflow_node,
    "MCP": _mcp,
    "OpenAPI": _open_api,
    "streaming": _streaming,
    "long-running": _long_running,
    "code executor": _code_executor,
}
