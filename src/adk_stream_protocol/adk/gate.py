"""The ADK plugin between every tool and its run: who waits is written down, and what waited runs once.

It is the first plugin of its runner, so that none of the others can hide a result from it. If the store cannot be
asked, nothing runs.
"""

import asyncio
import copy
import hashlib
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation

from ..errors import StoreUnavailable
from ..protocol import approvals
from ..protocol.approvals import Approval, CallKey, ChatKey, NotAllowed, State
from ..protocol.chunks import encode_json
from ..protocol.digest import canonical_json, digest_of_call
from ..store.base import Lease, Store, advance
from .client_tools import ClientTool
from .live_gate import GateRun, LiveSession, call_keys, is_own, live_run, outer_call, wait_for_answer
from .outcomes import OUTCOME_UNKNOWN, as_response, ended_response

logger = logging.getLogger(__name__)

Hint = str | Callable[[Mapping[str, Any]], str]

_NOT_APPROVED = "This call was not run: nobody has approved it."
_ELSEWHERE = "This call was not run: another run has taken it up."
_STORE_DOWN = "This call was not run: approvals cannot be recorded right now."
_NO_CLIENT = "This call was not run: there is no client here that could answer it."
_ID_USED_BEFORE = "This call was not run: an earlier call of this turn has its id."
_ASKS_AGAIN = "This call was not completed: a tool cannot ask for approval a second time."
_NO_RESULT = "This call was run, and gave no result."


@dataclass(frozen=True, kw_only=True)
class ApprovalPolicy:
    """How long people and browsers have, and what people are told."""

    deadline_s: float = 600
    """Within which a person decides. Later answers are told that the request expired."""
    browser_deadline_s: float = 60
    """Within which a browser answers, from when it could begin."""
    hints: Mapping[str, Hint] = field(default_factory=dict[str, Hint])
    """By the name of a tool: what the person reads, or a function of the call's arguments that says it. Otherwise
    ADK's own words, or those that the tool gives with `request_confirmation`."""


class ApprovalGate(BasePlugin):
    def __init__(self, store: Store, policy: ApprovalPolicy, lease_s: float) -> None:
        super().__init__(name="adk_stream_approvals")
        self._store = store
        self._lease_s = lease_s
        self._policy = policy
        self._runs: dict[ChatKey, GateRun] = {}

    def begin_run(self, lease: Lease) -> None:
        """Whoever holds the lease may run tools in this chat."""
        self._runs[lease.chat] = GateRun(lease)

    def go_live(self, lease: Lease, live: LiveSession) -> None:
        """The run of this chat is a live one. To be called in its own task: agents that run as tools find it there."""
        self._runs[lease.chat].live = live
        live_run.set(self._runs[lease.chat])

    def end_run(self, lease: Lease) -> None:
        run = self._runs.get(lease.chat)
        if run is not None and run.lease == lease:
            del self._runs[lease.chat]

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        session = invocation_context.session
        run = self._runs.get(ChatKey(session.app_name, session.user_id, session.id))
        if run is not None and run.live is not None:
            run.live.route(event, session)

    def _find_run(self, tool_context: ToolContext) -> tuple[GateRun | None, ChatKey, CallKey]:
        """Agents that run as tools have sessions of their own; in live mode their calls are those of the outer chat."""
        chat, call = call_keys(tool_context)
        run = self._runs.get(chat)
        if run is None and (outer := live_run.get()) is not None and self._runs.get(outer.lease.chat) is outer:
            return outer, outer.lease.chat, call
        return run, chat, call

    # -- before a tool ------------------------------------------------------------------------------------------------

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        run, chat, call = self._find_run(tool_context)
        if run is not None:
            run.arguments[call] = copy.deepcopy(tool_args)
        try:
            if isinstance(tool, ClientTool):
                return await self._open_browser_call(tool, tool_args, tool_context)
            if tool_context.tool_confirmation is not None:
                return await self._take_up(run, tool, tool_args, tool_context)
            if run is not None and run.live is not None:
                return await self._before_live(run, tool, tool_args, tool_context)
            return None  # free to run, or else ADK asks now
        except StoreUnavailable:
            logger.error("the approval store is down: %s of chat %s was not run", call.call_id, chat.chat_id)
            return {"error": _STORE_DOWN}

    async def _before_live(
        self, run: GateRun, tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """ADK would refuse a call that a person must confirm. It waits here instead, and then runs as if confirmed."""
        try:
            is_asked = await tool.check_require_confirmation(arguments, tool_context) is True
        except Exception:
            return None  # ADK asks the tool again, and knows what to do with its failure
        if not is_asked:
            if is_own(run, tool_context):
                outer_call.set(call_keys(tool_context)[1])
            return None
        refusal = await self._add_question(run, tool, tool_context, _adk_hint(tool.name), f"adk-{uuid.uuid4()}")
        if refusal is not None:
            return {"error": refusal}
        return await self._after_decision(run, tool, tool_context)

    async def _after_decision(self, run: GateRun, tool: BaseTool, tool_context: ToolContext) -> dict[str, Any] | None:
        """Wait for the person, then take the call up; or give the refusal."""
        call = call_keys(tool_context)[1]
        decided = await wait_for_answer(self._store, run, tool, tool_context)
        if decided is None:
            return {"error": _NOT_APPROVED}
        refusal = await self._take_up(run, tool, run.arguments[call], tool_context)
        if refusal is not None:
            return refusal
        tool_context.tool_confirmation = ToolConfirmation(confirmed=True, payload=decided.payload)
        outer_call.set(call)
        return None

    async def _take_up(
        self, run: GateRun | None, tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """A call comes back with somebody's confirmation. What counts is what is recorded."""
        _, chat, call = self._find_run(tool_context)
        approval = (await self._store.read(chat, call)).find(call)
        if run is None or approval is None or approval.digest != digest_of_call(tool.name, arguments):
            return {"error": _NOT_APPROVED}
        if approval.is_final:
            if approval.state in (State.DONE, State.FAILED):
                tool_context.state.update(approval.result["state"])
            return ended_response(approval)
        if approval.state is State.PENDING:
            return {"error": _NOT_APPROVED}
        token = run.lease.token
        try:
            # Something may have kept us from renewing it. If nobody else has the lease, it is still ours.
            await self._store.renew(run.lease, self._lease_s)
            await advance(
                self._store,
                chat,
                call,
                lambda found, _: approvals.claim(found, digest=digest_of_call(tool.name, arguments), run=token),
                run.lease,
            )
            await advance(self._store, chat, call, lambda found, _: approvals.start(found, run=token), run.lease)
        except NotAllowed:
            return await self._taken_elsewhere(chat, call)
        run.started.add(call)
        return None

    async def _taken_elsewhere(self, chat: ChatKey, call: CallKey) -> dict[str, Any]:
        """Another run holds the chat or the call. If it has begun the call, nobody here can say that nothing ran."""
        found = (await self._store.read(chat, call)).find(call)
        if found is not None and found.is_final:
            return ended_response(found)
        has_begun = found is not None and found.state is State.STARTED
        return {"error": OUTCOME_UNKNOWN if has_begun else _ELSEWHERE}

    async def _open_browser_call(
        self, tool: ClientTool, arguments: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        run, chat, call = self._find_run(tool_context)
        if run is None:
            return {"error": _NO_CLIENT}
        now = (await self._store.read(chat, call)).now
        needs_approval = await tool.needs_approval(arguments, tool_context)
        is_new = await self._store.add(
            Approval(
                chat=chat,
                call=call,
                tool=tool.name,
                arguments=run.arguments[call],
                runs="browser",
                state=State.PENDING if needs_approval else State.APPROVED,
                asked_at=now,
                deadline=now + self._policy.deadline_s if needs_approval else None,
                browser_deadline=None if needs_approval else now + self._policy.browser_deadline_s,
                approval_id=f"adk-{uuid.uuid4()}" if needs_approval else None,
                hint=self._hint(tool.name, arguments) or _adk_hint(tool.name) if needs_approval else None,
                output_schema=tool.output_schema,
            )
        )
        if not is_new:
            return {"error": _ID_USED_BEFORE}
        if run.live is None:
            return None
        answered = await wait_for_answer(self._store, run, tool, tool_context)
        return {"error": _NOT_APPROVED} if answered is None else ended_response(answered)

    # -- after a tool -------------------------------------------------------------------------------------------------

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        run, _, call = self._find_run(tool_context)
        replaced = await self._after_tool(run, tool, tool_args, tool_context, result)
        if run is not None and run.live is not None:
            response = result if replaced is None else replaced
            is_left = tool.is_long_running and not response
            if not is_left:
                run.live.settled(call, response)
        return replaced

    async def _after_tool(
        self, run: GateRun | None, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        call = call_keys(tool_context)[1]
        asks = call.call_id in tool_context.actions.requested_tool_confirmations
        if run is not None and call in run.started:
            run.started.discard(call)
            state = dict(tool_context.actions.state_delta)
            if asks:
                await self._record(run, call, approvals.fail, {"response": {"error": _ASKS_AGAIN}, "state": state})
                _take_back_question(tool_context)
                return {"error": _ASKS_AGAIN}
            if run.live is not None and tool.is_long_running and not result:  # ADK would tell the model nothing
                await self._record(run, call, approvals.fail, {"response": {"error": _NO_RESULT}, "state": state})
                return {"error": _NO_RESULT}
            await self._record(run, call, approvals.finish, {"response": result, "state": state})
        elif asks:
            refusal = await self._ask(run, tool, tool_context)
            if refusal is not None:
                _take_back_question(tool_context)
                return {"error": refusal}
            if run is not None and run.live is not None:
                return await self._run_again(run, tool, tool_args, tool_context)
        elif tool.is_long_running and not result and not isinstance(tool, ClientTool) and run is not None:
            # ADK's own way to leave a call to others. It may take them days, so there is no deadline.
            return await self._leave_to_client(run, tool, call)
        return None

    async def _ask(self, run: GateRun | None, tool: BaseTool, tool_context: ToolContext) -> str | None:
        """ADK is about to ask for this call: write it down first. Or tell why nobody can be asked."""
        if run is None:
            return _NO_CLIENT
        call = call_keys(tool_context)[1]
        requested = tool_context.actions.requested_tool_confirmations[call.call_id]
        requested.hint = self._hint(tool.name, run.arguments[call]) or requested.hint
        approval_id = f"adk-{uuid.uuid4()}" if run.live is not None else None
        try:
            return await self._add_question(run, tool, tool_context, requested.hint, approval_id)
        except StoreUnavailable:
            return _STORE_DOWN

    async def _add_question(
        self, run: GateRun, tool: BaseTool, tool_context: ToolContext, hint: str | None, approval_id: str | None
    ) -> str | None:
        """`approval_id`: where ADK itself does not ask."""
        chat, call = run.lease.chat, call_keys(tool_context)[1]
        arguments = run.arguments[call]
        now = (await self._store.read(chat, call)).now
        is_new = await self._store.add(
            Approval(
                chat=chat,
                call=call,
                tool=tool.name,
                arguments=arguments,
                runs="server",
                state=State.PENDING,
                asked_at=now,
                deadline=now + self._policy.deadline_s,
                approval_id=approval_id,
                hint=self._hint(tool.name, arguments) or hint,
            )
        )
        return None if is_new else _ID_USED_BEFORE

    async def _run_again(
        self, run: GateRun, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any]:
        """A tool has asked for itself. ADK would never come back to it in live mode, so we do."""
        _take_back_question(tool_context)
        try:
            refusal = await self._after_decision(run, tool, tool_context)
            if refusal is not None:
                return refusal
            result = await tool.run_async(args=tool_args, tool_context=tool_context)
        except StoreUnavailable:
            return {"error": _STORE_DOWN}
        except BaseException as error:  # as ADK would tell us, had it run the tool
            await self.on_tool_error_callback(tool=tool, tool_args=tool_args, tool_context=tool_context, error=error)
            if not isinstance(error, Exception):
                raise
            return {"error": _failed(tool)}
        return await self._after_tool(run, tool, tool_args, tool_context, result) or as_response(result)

    async def _leave_to_client(self, run: GateRun, tool: BaseTool, call: CallKey) -> dict[str, Any] | None:
        chat = run.lease.chat
        try:
            now = (await self._store.read(chat, call)).now
            approval = Approval(
                chat=chat,
                call=call,
                tool=tool.name,
                arguments=run.arguments[call],
                runs="browser",
                state=State.APPROVED,
                asked_at=now,
            )
            if not await self._store.add(approval):
                return {"error": _ID_USED_BEFORE}
        except StoreUnavailable:
            return {"error": _STORE_DOWN}
        if run.live is not None:
            run.live.note(approval)
            run.live.left(call)
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> dict[str, Any] | None:
        run, _, call = self._find_run(tool_context)
        if run is not None and call in run.started:
            run.started.discard(call)
            if isinstance(error, asyncio.CancelledError):  # stopped half-way: it may have had its effect
                await self._move(run, call, lambda found, _: approvals.lose_run(found, living_run=None))
            else:
                await self._record(run, call, approvals.fail, {"response": {"error": _failed(tool)}, "state": {}})
        is_unknown = type(tool) is BaseTool  # of a call that names no tool; ADK tells the model which there are
        if run is None or run.live is None or is_unknown or isinstance(error, asyncio.CancelledError):
            return None
        # It would end the whole session, or leave the model without an answer.
        logger.error("tool %s failed in a live session: %s", tool.name, type(error).__qualname__)
        return {"error": _failed(tool)}

    async def _record(self, run: GateRun, call: CallKey, move: Callable[..., Approval], result: Any) -> None:
        plain = msgspec.json.decode(encode_json(result))
        await self._move(run, call, lambda found, _: move(found, run=run.lease.token, result=plain))

    async def _move(self, run: GateRun, call: CallKey, move: Callable[[Approval, float], Approval]) -> None:
        """What has happened has happened. If it cannot be written down, the call's outcome will be called unknown."""
        try:
            await advance(self._store, run.lease.chat, call, move)
        except (StoreUnavailable, NotAllowed) as error:
            logger.error("the end of call %s was not recorded: %s", call.call_id, type(error).__qualname__)

    def _hint(self, tool: str, arguments: dict[str, Any]) -> str | None:
        hint = self._policy.hints.get(tool)
        return hint(arguments) if callable(hint) else hint


def _take_back_question(tool_context: ToolContext) -> None:
    """Nobody could answer it where ADK asks."""
    del tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""]
    tool_context.actions.skip_summarization = None


def _failed(tool: BaseTool) -> str:
    return f"The tool {tool.name} failed."


def idempotency_key(tool_context: ToolContext) -> str:
    """The same for every attempt at this call, and for no other call: for services that take such a key."""
    chat, call = call_keys(tool_context)
    for event in reversed(tool_context.session.events):
        for found in event.get_function_calls():
            if found.id == call.call_id and event.invocation_id == call.invocation_id:
                digest = digest_of_call(found.name or "", found.args or {})
                return hashlib.sha256(canonical_json([*chat, *call, digest])).hexdigest()
    raise ValueError("There is no such call in the session.")


def _adk_hint(tool: str) -> str:
    return (
        f"Please approve or reject the tool call {tool}() by responding with a FunctionResponse with an expected "
        "ToolConfirmation payload."
    )
