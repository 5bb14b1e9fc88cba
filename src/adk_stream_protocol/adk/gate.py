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
from typing import Any, cast

import msgspec
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, ToolContext

from ..errors import StoreUnavailable
from ..protocol import approvals
from ..protocol.approvals import Approval, CallKey, ChatKey, NotAllowed, State
from ..protocol.chunks import encode_json
from ..protocol.digest import canonical_json, digest_of_call
from ..store.base import Lease, Store, advance
from .client_tools import ClientTool

logger = logging.getLogger(__name__)

Hint = str | Callable[[Mapping[str, Any]], str]

_NOT_APPROVED = "This call was not run: nobody has approved it."
_ELSEWHERE = "This call was not run: another run has taken it up."
_STORE_DOWN = "This call was not run: approvals cannot be recorded right now."
_NO_CLIENT = "This call was not run: there is no client here that could answer it."
_EXPIRED = "This call was not run: it expired, no answer came in time."
_ID_USED_BEFORE = "This call was not run: an earlier call of this turn has its id."
_ASKS_AGAIN = "This call was not completed: a tool cannot ask for approval a second time."
_UNKNOWN = "The server stopped while this call was running. Whether it took effect is unknown; it was not run again."


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


@dataclass
class _Run:
    lease: Lease
    started: set[CallKey] = field(default_factory=set[CallKey])
    arguments: dict[CallKey, dict[str, Any]] = field(default_factory=dict[CallKey, dict[str, Any]])
    """Of the calls that came to their tool: as the model gave them, and the person will see them. Callbacks that come
    after us may change them."""


class ApprovalGate(BasePlugin):
    def __init__(self, store: Store, policy: ApprovalPolicy, lease_s: float) -> None:
        super().__init__(name="adk_stream_approvals")
        self._store = store
        self._lease_s = lease_s
        self._policy = policy
        self._runs: dict[ChatKey, _Run] = {}

    def begin_run(self, lease: Lease) -> None:
        """Whoever holds the lease may run tools in this chat."""
        self._runs[lease.chat] = _Run(lease)

    def end_run(self, lease: Lease) -> None:
        run = self._runs.get(lease.chat)
        if run is not None and run.lease == lease:
            del self._runs[lease.chat]

    # -- before a tool ------------------------------------------------------------------------------------------------

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        chat, call = _keys(tool_context)
        if chat in self._runs:
            self._runs[chat].arguments[call] = copy.deepcopy(tool_args)
        try:
            if isinstance(tool, ClientTool):
                return await self._open_browser_call(tool, tool_args, tool_context)
            if tool_context.tool_confirmation is None:
                return None  # free to run, or else ADK asks now
            return await self._take_up(tool, tool_args, tool_context)
        except StoreUnavailable:
            logger.error("the approval store is down: %s of chat %s was not run", call.call_id, chat.chat_id)
            return {"error": _STORE_DOWN}

    async def _take_up(
        self, tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """A call comes back with somebody's confirmation. What counts is what is recorded."""
        chat, call = _keys(tool_context)
        run = self._runs.get(chat)
        approval = (await self._store.read(chat, call)).find(call)
        if run is None or approval is None or approval.digest != digest_of_call(tool.name, arguments):
            return {"error": _NOT_APPROVED}
        if approval.is_final:
            return self._recorded(approval, tool_context)
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
            return {"error": _ELSEWHERE}
        run.started.add(call)
        return None

    def _recorded(self, approval: Approval, tool_context: ToolContext) -> dict[str, Any]:
        if approval.state in (State.DONE, State.FAILED):
            tool_context.state.update(approval.result["state"])
            return recorded_response(approval)
        return {"error": refusal_text(approval)}

    async def _open_browser_call(
        self, tool: ClientTool, arguments: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        chat, call = _keys(tool_context)
        run = self._runs.get(chat)
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
        return None if is_new else {"error": _ID_USED_BEFORE}

    # -- after a tool -------------------------------------------------------------------------------------------------

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        chat, call = _keys(tool_context)
        run = self._runs.get(chat)
        asks = call.call_id in tool_context.actions.requested_tool_confirmations
        if run is not None and call in run.started:
            run.started.discard(call)
            state = dict(tool_context.actions.state_delta)
            if asks:
                await self._record(run, call, approvals.fail, {"response": {"error": _ASKS_AGAIN}, "state": state})
                return _unasked(tool_context, _ASKS_AGAIN)
            await self._record(run, call, approvals.finish, {"response": result, "state": state})
        elif asks:
            refusal = await self._ask(run, tool, tool_context)
            return None if refusal is None else _unasked(tool_context, refusal)
        elif tool.is_long_running and not result and not isinstance(tool, ClientTool) and run is not None:
            # ADK's own way to leave a call to others. It may take them days, so there is no deadline.
            return await self._leave_to_client(run, tool, call)
        return None

    async def _ask(self, run: _Run | None, tool: BaseTool, tool_context: ToolContext) -> str | None:
        """ADK is about to ask for this call: write it down first. Or tell why nobody can be asked."""
        if run is None:
            return _NO_CLIENT
        chat, call = _keys(tool_context)
        arguments, requested = run.arguments[call], tool_context.actions.requested_tool_confirmations[call.call_id]
        requested.hint = self._hint(tool.name, arguments) or requested.hint
        try:
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
                    hint=requested.hint,
                )
            )
        except StoreUnavailable:
            return _STORE_DOWN
        return None if is_new else _ID_USED_BEFORE

    async def _leave_to_client(self, run: _Run, tool: BaseTool, call: CallKey) -> dict[str, Any] | None:
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
            return None if await self._store.add(approval) else {"error": _ID_USED_BEFORE}
        except StoreUnavailable:
            return {"error": _STORE_DOWN}

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> None:
        chat, call = _keys(tool_context)
        run = self._runs.get(chat)
        if run is None or call not in run.started:
            return
        run.started.discard(call)
        if isinstance(error, asyncio.CancelledError):  # stopped half-way: it may have had its effect
            await self._move(run, call, lambda found, _: approvals.lose_run(found, living_run=None))
        else:
            result = {"response": {"error": f"The tool {tool.name} failed."}, "state": {}}
            await self._record(run, call, approvals.fail, result)

    async def _record(self, run: _Run, call: CallKey, move: Callable[..., Approval], result: Any) -> None:
        plain = msgspec.json.decode(encode_json(result))
        await self._move(run, call, lambda found, _: move(found, run=run.lease.token, result=plain))

    async def _move(self, run: _Run, call: CallKey, move: Callable[[Approval, float], Approval]) -> None:
        """What has happened has happened. If it cannot be written down, the call's outcome will be called unknown."""
        try:
            await advance(self._store, run.lease.chat, call, move)
        except (StoreUnavailable, NotAllowed) as error:
            logger.error("the end of call %s was not recorded: %s", call.call_id, type(error).__qualname__)

    def _hint(self, tool: str, arguments: dict[str, Any]) -> str | None:
        hint = self._policy.hints.get(tool)
        return hint(arguments) if callable(hint) else hint


def _unasked(tool_context: ToolContext, refusal: str) -> dict[str, Any]:
    """Take back a question that nobody could answer."""
    del tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""]
    tool_context.actions.skip_summarization = None
    return {"error": refusal}


def recorded_response(approval: Approval) -> dict[str, Any]:
    """What ADK is given for a call that has its result already."""
    if approval.runs == "browser":
        if "error" in approval.result:
            return {"error": approval.result["error"]}
        response = approval.result["output"]
    else:
        response = approval.result["response"]
    return cast(dict[str, Any], response) if isinstance(response, dict) else {"result": response}


def refusal_text(approval: Approval) -> str:
    """What the model and the person are told of a call that came to nothing."""
    if approval.state is State.UNKNOWN:
        return _UNKNOWN
    if approval.state is State.EXPIRED:
        return _EXPIRED
    reason = f" Reason: {approval.reason}" if approval.reason else ""
    return f"This call was not run: the user denied it.{reason}"


def idempotency_key(tool_context: ToolContext) -> str:
    """The same for every attempt at this call, and for no other call: for services that take such a key."""
    chat, call = _keys(tool_context)
    for event in reversed(tool_context.session.events):
        for found in event.get_function_calls():
            if found.id == call.call_id and event.invocation_id == call.invocation_id:
                digest = digest_of_call(found.name or "", found.args or {})
                return hashlib.sha256(canonical_json([*chat, *call, digest])).hexdigest()
    raise ValueError("There is no such call in the session.")


def _keys(tool_context: ToolContext) -> tuple[ChatKey, CallKey]:
    session = tool_context.session
    chat = ChatKey(session.app_name, session.user_id, session.id)
    return chat, CallKey(tool_context.invocation_id, tool_context.function_call_id or "")


def _adk_hint(tool: str) -> str:
    return (
        f"Please approve or reject the tool call {tool}() by responding with a FunctionResponse with an expected "
        "ToolConfirmation payload."
    )
