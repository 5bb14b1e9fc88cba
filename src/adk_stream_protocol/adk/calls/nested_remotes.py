"""Remote agents (A2A) inside agents that run as tools: they wait for answers inside the run, in both modes.

ADK hands an answer of the user to a remote agent when its run begins anew. Behind an `AgentTool` it never does: the
inner session is thrown away when the run ends. Here the run of the remote agent goes on until nothing of it waits any
more: what it asks is recorded, shown and answered like any nested call, and the answer is put into the inner session.
"""

import asyncio
import copy
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from google.adk.agents import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.tools import BaseTool
from google.genai import types

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, ChatKey, State
from ..event_parts import CREDENTIAL, as_dict, is_relayed
from .gated_call import NOT_APPROVED, GatedCall, new_approval_id
from .gated_nodes import GATE
from .live_observer import NestedCall
from .outcomes import OUTCOME_UNKNOWN, ended_response
from .remote_calls import policy_request, read_question, unanswerable
from .resumption import response_part
from .waiting import begins, calls_above, current_chat, outer_call, wait_for_answer

if TYPE_CHECKING:
    from .gate import ApprovalGate
    from .leased_chat import LeasedChat

_MODULE = "google.adk.agents.remote_a2a_agent"

Run = Callable[[BaseAgent, InvocationContext], AsyncGenerator[Event, None]]


def let_remote_agents_wait() -> None:
    """Once in a process, if it has remote agents. Where ADK itself hands answers to them, they run as ADK runs them."""
    remote: Any = getattr(sys.modules.get(_MODULE), "RemoteA2aAgent", None)
    if remote is not None and not hasattr(remote._run_async_impl, "waits_inside"):
        remote._run_async_impl = _waiting(remote._run_async_impl)


def _waiting(original: Run) -> Run:
    async def run(agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        inside = _inside(agent, ctx)
        is_over = False
        try:
            while not is_over:
                async with aclosing(original(agent, ctx)) as events:
                    async for event in events:
                        if inside is None or not await inside.keep(event):
                            yield event
                is_over = inside is None or not await inside.answer()
        finally:
            if inside is not None:
                await inside.lose_started()

    run.waits_inside = True  # pyright: ignore[reportFunctionMemberAccess]
    return run


def _inside(agent: BaseAgent, ctx: InvocationContext) -> "_RemoteRun | None":
    """None if ADK itself can hand an answer to the agent, or if nobody could give one."""
    gate = cast("ApprovalGate | None", ctx.plugin_manager.get_plugin(GATE))
    leased, session = current_chat.get(), ctx.session
    if gate is None or leased is None or leased.key == ChatKey(session.app_name, session.user_id, session.id):
        return None
    return _RemoteRun(gate, leased, agent.name, ctx)


class _RemoteRun:
    """One run of a remote agent, as long as it asks."""

    def __init__(self, gate: "ApprovalGate", leased: "LeasedChat", agent: str, ctx: InvocationContext) -> None:
        self._gate = gate
        self._leased = leased
        self._agent = agent
        self._ctx = ctx
        self._open: dict[str, tuple[types.FunctionCall, Event]] = {}
        self._started: dict[str, GatedCall] = {}

    async def keep(self, event: Event) -> bool:
        """Whether the event asks for an answer. Then it is only for the inner session, where the remote agent finds
        what is answered: an `AgentTool` gives up when it sees it."""
        if event.partial or not is_relayed(event):
            return False
        for response in event.get_function_responses():
            self._open.pop(response.id or "", None)
            if (call := self._started.pop(response.id or "", None)) is not None:
                await self._finish(call, response.response or {})
        asked = [call for call in event.get_function_calls() if call.id in (event.long_running_tool_ids or ())]
        if not asked or any(call.name == CREDENTIAL for call in asked):
            return False
        self._open |= {call.id or "": (call, event) for call in asked}
        await self._ctx.session_service.append_event(self._ctx.session, event)
        return True

    async def answer(self) -> bool:
        """Wait for the answers, and put them where the remote agent finds them. False if nothing waits. Approvals go
        alone: the agent on the other side would not see anything else that comes with them."""
        questions = {name: each for name, each in self._open.items() if each[0].name == CONFIRMATION}
        asked = questions or self._open
        if not asked:
            return False
        self._open = {name: each for name, each in self._open.items() if name not in asked}
        wait = self._decision if questions else self._output
        parts = await asyncio.gather(*(wait(call, event) for call, event in asked.values()))
        content = types.Content(role="user", parts=list(parts))
        event = Event(author="user", invocation_id=self._ctx.invocation_id, branch=self._ctx.branch, content=content)
        await self._ctx.session_service.append_event(self._ctx.session, event)
        return True

    async def _decision(self, question: types.FunctionCall, event: Event) -> types.Part:
        remote = read_question(event, question)
        asked = as_dict(as_dict(question.args).get("toolConfirmation"))
        call = self._call(event, remote.call.call_id, BaseTool(name=remote.tool, description=""))
        call.arguments = copy.deepcopy(remote.arguments)
        wanted = policy_request(event, remote, self._ctx.session, user=self._leased.key.user_id)
        call.verdict = await self._gate.policy.verdict(wanted)
        about = {"hint": asked.get("hint"), "payload": asked.get("payload"), "approval_id": new_approval_id()}
        refusal = unanswerable() or await call.ask(**about)
        confirmation: dict[str, Any] = {"confirmed": False}
        if refusal is None and (decided := await wait_for_answer(call)) is not None:
            if decided.state is State.APPROVED and await call.take_up(call.arguments) is None:
                begins(call, is_asked=True)
                self._started[call.key.call_id] = call
                confirmation = {"confirmed": True, "payload": decided.payload}
            else:
                self._settle(call)
        return _response(question, confirmation)

    async def _output(self, asked: types.FunctionCall, event: Event) -> types.Part:
        tool = BaseTool(name=asked.name or "", description="", is_long_running=True)
        call = self._call(event, asked.id or "", tool)
        call.arguments = copy.deepcopy(asked.args or {})
        refusal = await call.leave_to_client()
        answered = await wait_for_answer(call) if refusal is None else None
        if answered is None:
            return _response(asked, {"error": refusal or NOT_APPROVED})
        self._settle(call)
        return response_part(answered)

    def _call(self, event: Event, call_id: str, tool: BaseTool) -> GatedCall:
        nested_in = NestedCall(outer_call.get(), self._agent, calls_above.get())
        return self._gate.new_call(self._leased, CallKey(event.invocation_id, call_id), tool, nested_in)

    # -- what came of it ----------------------------------------------------------------------------------------------

    async def _finish(self, call: GatedCall, response: dict[str, Any]) -> None:
        await call.finish(response, {})
        self._settle(call)

    async def lose_started(self) -> None:
        """The remote agent has not said what came of these: they may have had their effects."""
        while self._started:
            _, call = self._started.popitem()
            await call.lose()
            self._settle(call)

    def _settle(self, call: GatedCall) -> None:
        self._leased.end(call.key)
        self._leased.store_result(call.key)
        record, observer = call.record, self._leased.observer
        if observer is not None:
            response = ended_response(record) if record is not None and record.is_final else {"error": OUTCOME_UNKNOWN}
            observer.settled(call.key, response)


def _response(asked: types.FunctionCall, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=asked.id, name=asked.name, response=response))
