"""The ADK plugin between every tool and its run: who waits is written down, and what waited runs once.

It is the first plugin of its runner, so that none of the others can hide a result from it. If the store cannot be
asked, nothing runs.
"""

import asyncio
import copy
import hashlib
import logging
import uuid
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import Session
from google.adk.tools import BaseTool, ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from ...errors import StoreUnavailable
from ...protocol.call_record import ChatKey, State
from ...protocol.digest import canonical_json, digest_of_call
from ...store.base import Lease, Store
from ..event_parts import ABORTED, asks_for_confirmation
from .client_tools import ClientTool
from .gated_call import NOT_APPROVED, STORE_DOWN, GatedCall
from .leased_chat import LeasedChat, call_keys
from .live_observer import LiveObserver
from .outcomes import as_response, ended_response
from .policy import ApprovalPolicy
from .seals import seal_as_recorded
from .waiting import current_live_chat, is_own, outer_call, wait_for_answer

logger = logging.getLogger(__name__)

_NO_CLIENT = "This call was not run: there is no client here that could answer it."
_IN_NODE = "This call was not run: a node of a workflow cannot ask for approval. Put its tool into an LlmAgent."
_NODE_ASKS = "WORKFLOW_NODE_ASKS"
_ASKS_AGAIN = "This call was not completed: a tool cannot ask for approval a second time."
_NO_RESULT = "This call was run, and gave no result."


class ApprovalGate(BasePlugin):
    def __init__(self, store: Store, policy: ApprovalPolicy, lease_s: float) -> None:
        super().__init__(name="adk_stream_approvals")
        self._store = store
        self._lease_s = lease_s
        self._policy = policy
        self._leased: dict[ChatKey, LeasedChat] = {}
        # By the object that ADK makes for each call: a call's id may be that of another one.
        self._calls: WeakKeyDictionary[ToolContext, GatedCall] = WeakKeyDictionary()

    def begin_run(self, leased: LeasedChat) -> None:
        """Whoever holds the lease may run tools in this chat."""
        self._leased[leased.key] = leased

    def go_live(self, lease: Lease, live_observer: LiveObserver) -> None:
        """The run of this chat is a live one. To be called in its own task: agents that run as tools find it there."""
        self._leased[lease.chat].live_observer = live_observer
        current_live_chat.set(self._leased[lease.chat])

    def end_run(self, lease: Lease) -> None:
        leased = self._leased.get(lease.chat)
        if leased is not None and leased.lease == lease:
            del self._leased[lease.chat]

    # -- a run --------------------------------------------------------------------------------------------------------

    def _leased_chat_of(self, session: Session) -> LeasedChat | None:
        return self._leased.get(ChatKey(session.app_name, session.user_id, session.id))

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        leased = self._leased_chat_of(invocation_context.session)
        if leased is not None:
            await leased.on_user_message(invocation_context.session)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        leased = self._leased_chat_of(callback_context.session)
        if leased is not None:
            leased.call_ids.new_model_call(callback_context.agent_name, callback_context.branch)

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        content = llm_response.content
        if content is None or not any(part.function_call is not None for part in content.parts or ()):
            return
        leased, session = self._leased_chat_of(callback_context.session), callback_context.session
        if leased is not None:
            speaker = callback_context.agent_name, callback_context.branch
            leased.call_ids.rename_repeated(llm_response, *speaker, session.events)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        session = invocation_context.session
        leased = self._leased_chat_of(session)
        if leased is None:
            return None
        if asks_for_confirmation(event):  # of a node that was made while the workflow ran
            logger.error("a workflow node asked for approval: put its tool into an LlmAgent")
            return event.model_copy(update={"content": None, "long_running_tool_ids": None, "error_code": _NODE_ASKS})
        if leased.live_observer is not None:
            leased.live_observer.route(event, session)
        elif event.error_code == ABORTED:
            seal_as_recorded(event, session.events, leased.records)
        return None

    # -- before a tool ------------------------------------------------------------------------------------------------

    def _call_of(self, tool: BaseTool, tool_context: ToolContext) -> GatedCall | None:
        """None for a call in a chat that this process does not run: nobody could be asked there. Agents that run as
        tools have sessions of their own; in live mode their calls are those of the outer chat."""
        known = self._calls.get(tool_context)
        if known is not None:
            return known
        chat, key = call_keys(tool_context)
        leased = self._leased.get(chat)
        if leased is None and (outer := current_live_chat.get()) is not None and self._leased.get(outer.key) is outer:
            leased = outer
        if leased is None:
            return None
        call = GatedCall(
            store=self._store,
            policy=self._policy,
            lease_s=self._lease_s,
            leased=leased,
            key=key,
            tool=tool,
            arguments={},
        )
        self._calls[tool_context] = call
        return call

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        call = self._call_of(tool, tool_context)
        if call is None:
            if tool_context.tool_confirmation is not None:
                return {"error": NOT_APPROVED}
            return {"error": _NO_CLIENT} if isinstance(tool, ClientTool) else None
        if tool_context.node is not None and await _waits(tool, tool_args, tool_context):
            return {"error": _IN_NODE}
        call.arguments = copy.deepcopy(tool_args)
        await _begin_nothing_at_the_end(call.leased)
        try:
            instead = await self._before(call, tool_args, tool_context)
        except StoreUnavailable:
            logger.error("the store is down: call %s was not run", call.key.call_id)
            return {"error": STORE_DOWN}
        if instead is None:
            call.leased.begin(call.key)
        return instead

    async def _before(
        self, call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if isinstance(call.tool, ClientTool):
            return await self._open_browser_call(call, call.tool, tool_context)
        if tool_context.tool_confirmation is not None:
            return await self._take_up(call, tool_args, tool_context)
        if call.leased.live_observer is not None:
            return await self._before_live(call, tool_args, tool_context)
        return None  # free to run, or else ADK asks now

    async def _take_up(
        self, call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        instead = await call.take_up(arguments)
        record = call.record
        if instead is not None and record is not None and record.state in (State.DONE, State.FAILED):
            tool_context.state.update(record.result["state"])
        return instead

    async def _before_live(
        self, call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """ADK would refuse a call that a person must confirm. It waits here instead, and then runs as if confirmed."""
        try:
            is_asked = await call.tool.check_require_confirmation(arguments, tool_context) is True
        except Exception:
            return None  # ADK asks the tool again, and knows what to do with its failure
        if not is_asked:
            if is_own(call.leased, tool_context):
                outer_call.set(call.key)
            return None
        refusal = await call.ask(hint=None, approval_id=_new_id())
        if refusal is not None:
            return {"error": refusal}
        return await self._after_decision(call, tool_context)

    async def _after_decision(self, call: GatedCall, tool_context: ToolContext) -> dict[str, Any] | None:
        """Wait for the person, then take the call up; or give the refusal."""
        decided = await wait_for_answer(self._store, call.leased, call.tool, tool_context, call.arguments)
        if decided is None:
            return {"error": NOT_APPROVED}
        await _begin_nothing_at_the_end(call.leased)
        refusal = await self._take_up(call, call.arguments, tool_context)
        if refusal is not None:
            return refusal
        tool_context.tool_confirmation = ToolConfirmation(confirmed=True, payload=decided.payload)
        outer_call.set(call.key)
        return None

    async def _open_browser_call(
        self, call: GatedCall, tool: ClientTool, tool_context: ToolContext
    ) -> dict[str, Any] | None:
        needs_approval = await tool.needs_approval(call.arguments, tool_context)
        refusal = await call.open_for_browser(tool, approval_id=_new_id() if needs_approval else None)
        if refusal is not None:
            return {"error": refusal}
        if call.leased.live_observer is None:
            return None
        answered = await wait_for_answer(self._store, call.leased, tool, tool_context, call.arguments)
        return {"error": NOT_APPROVED} if answered is None else ended_response(answered)

    # -- after a tool -------------------------------------------------------------------------------------------------

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        call = self._call_of(tool, tool_context)
        if call is None:
            if call_keys(tool_context)[1].call_id not in tool_context.actions.requested_tool_confirmations:
                return None
            _take_back_question(tool_context)
            return {"error": _NO_CLIENT}
        try:
            replaced = await self._after(call, tool_args, tool_context, result)
        except BaseException:
            call.leased.end(call.key)
            raise
        response = result if replaced is None else replaced
        is_left = tool.is_long_running and not response
        call.leased.end(call.key, has_result=not is_left)
        if call.leased.live_observer is not None and not is_left:
            call.leased.live_observer.settled(call.key, response)
        return replaced

    async def _after(
        self, call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        asks = call.key.call_id in tool_context.actions.requested_tool_confirmations
        if call.is_started:
            return await self._record(call, tool_context, result, asks=asks)
        is_live = call.leased.live_observer is not None
        if asks:
            refusal = await self._ask(call, tool_context)
            if refusal is not None:
                _take_back_question(tool_context)
                return {"error": refusal}
            return await self._run_again(call, tool_args, tool_context) if is_live else None
        if call.tool.is_long_running and not result and not isinstance(call.tool, ClientTool):
            refusal = await call.leave_to_client()
            if refusal is not None:
                return {"error": refusal}
            if call.leased.live_observer is not None:
                call.leased.live_observer.left(call.key)
        return None

    async def _record(
        self, call: GatedCall, tool_context: ToolContext, result: Any, *, asks: bool
    ) -> dict[str, Any] | None:
        state = dict(tool_context.actions.state_delta)
        if asks:
            _take_back_question(tool_context)
            return await call.fail(_ASKS_AGAIN, state) or {"error": _ASKS_AGAIN}
        if (
            call.leased.live_observer is not None and call.tool.is_long_running and not result
        ):  # ADK would tell the model nothing
            return await call.fail(_NO_RESULT, state) or {"error": _NO_RESULT}
        return await call.finish(result, state)

    async def _ask(self, call: GatedCall, tool_context: ToolContext) -> str | None:
        """ADK is about to ask for this call: write it down first. Or tell why nobody can be asked."""
        requested = tool_context.actions.requested_tool_confirmations[call.key.call_id]
        requested.hint = self._policy.hint(call.tool.name, call.arguments) or requested.hint
        approval_id = _new_id() if call.leased.live_observer is not None else None
        return await call.ask(hint=requested.hint, payload=requested.payload, approval_id=approval_id)

    async def _run_again(self, call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """A tool has asked for itself. ADK would never come back to it in live mode, so we do."""
        _take_back_question(tool_context)
        try:
            refusal = await self._after_decision(call, tool_context)
            if refusal is not None:
                return refusal
            result = await call.tool.run_async(args=tool_args, tool_context=tool_context)
        except StoreUnavailable:
            return {"error": STORE_DOWN}
        except BaseException as error:  # as ADK would tell us, had it run the tool
            await self.on_tool_error_callback(
                tool=call.tool, tool_args=tool_args, tool_context=tool_context, error=error
            )
            if not isinstance(error, Exception):
                raise
            return {"error": _failed(call.tool)}
        return await self._after(call, tool_args, tool_context, result) or as_response(result)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> dict[str, Any] | None:
        call = self._call_of(tool, tool_context)
        if call is None:
            return None
        is_cancelled = isinstance(error, asyncio.CancelledError)
        instead: dict[str, Any] | None = None
        try:
            if call.is_started:
                if is_cancelled:  # stopped half-way: it may have had its effect
                    await call.lose()
                else:
                    instead = await call.fail(_failed(tool), {})
        finally:
            call.leased.end(call.key)
        is_unknown = type(tool) is BaseTool  # of a call that names no tool; ADK tells the model which there are
        if call.leased.live_observer is None or is_unknown or is_cancelled:
            return instead
        # It would end the whole session, or leave the model without an answer.
        logger.error("tool %s failed in a live session: %s", tool.name, type(error).__qualname__)
        return instead or {"error": _failed(tool)}


async def _begin_nothing_at_the_end(leased: LeasedChat) -> None:
    """A run that is about to end begins no tool: what is approved is for the next one. This waits to be cancelled."""
    if leased.begins_nothing:
        await asyncio.get_running_loop().create_future()


async def _waits(tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext) -> bool:
    if isinstance(tool, ClientTool) or tool.is_long_running:
        return True
    try:
        return bool(await tool.check_require_confirmation(arguments, tool_context))
    except Exception:
        return True  # nobody knows


def _take_back_question(tool_context: ToolContext) -> None:
    """Nobody could answer it where ADK asks."""
    del tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""]
    tool_context.actions.skip_summarization = None


def _failed(tool: BaseTool) -> str:
    return f"The tool {tool.name} failed."


def _new_id() -> str:
    return f"adk-{uuid.uuid4()}"


def idempotency_key(tool_context: ToolContext) -> str:
    """The same for every attempt at this call, and for no other call: for services that take such a key."""
    chat, call = call_keys(tool_context)
    for event in reversed(tool_context.session.events):
        for found in event.get_function_calls():
            if found.id == call.call_id and event.invocation_id == call.invocation_id:
                digest = digest_of_call(found.name or "", found.args or {})
                return hashlib.sha256(canonical_json([*chat, *call, digest])).hexdigest()
    raise ValueError("There is no such call in the session.")
