"""The ADK plugin between every tool and its run: it records who is asked, and lets each approved call run once.

It is the first plugin of its runner, so that no other plugin can hide a result from it. If the store is down, no call
that needs a record runs.

- gate_steps.py: the steps that both modes share.
- live_gate.py: how calls wait for their answers inside ADK.
- unanswerable.py: calls that nobody can answer.
"""

import asyncio
import copy
import logging
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import Session
from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from ...protocol.call_record import CallKey, ChatKey
from ...store.base import Lease, Store
from ..control_flow import control_flow_of
from ..event_parts import ABORTED, asks_for_confirmation, is_all_voice, is_more_text
from . import live_gate
from .client_tools import ClientTool
from .consent_inside import asks_for_consent, run_after_consent
from .credentials import asks_for_credential, without_request
from .ends_of_agents import leave_out_mark
from .gate_steps import (
    divert_question,
    has_asked,
    record_failure,
    record_result,
    refuse_after,
    run_by_policy,
    take_up,
    text_of_failure,
    wait_if_run_is_ending,
)
from .gated_call import GatedCall, new_approval_id
from .gated_nodes import GATE
from .inner_calls import name_inner_calls
from .leased_chat import LeasedChat, call_keys
from .live_observer import LiveObserver, NestedCall
from .long_running import STILL_AT_WORK, has_ended, has_ref, open_work
from .named_tools import NamedTools
from .outcomes import as_response
from .policy import ApprovalPolicy, ApprovalRequest, Verdict
from .questions import REQUIRES_CONFIRMATION, name_questions
from .remote_calls import questions_in, record_question, take_results
from .seals import seal_as_recorded
from .unanswerable import (
    refuse_question_without_client,
    refuse_task,
    refuse_without_client,
    withdraw_question,
    without_node_question,
)
from .waiting import begins, current_chat, is_delegated, nested_in

logger = logging.getLogger(__name__)


class ApprovalGate(BasePlugin):
    def __init__(self, store: Store, policy: ApprovalPolicy, lease_s: float) -> None:
        super().__init__(name=GATE)
        self._store = store
        self._lease_s = lease_s
        self.policy = policy
        self.named_tools: NamedTools | None = None
        self._leased: dict[ChatKey, LeasedChat] = {}
        # By the object that ADK makes for each call: two calls may have the same id.
        self._calls: WeakKeyDictionary[ToolContext, GatedCall] = WeakKeyDictionary()

    def begin_run(self, leased: LeasedChat) -> None:
        """From now on tools may run in this chat: this process holds its lease."""
        self._leased[leased.key] = leased

    def go_live(self, lease: Lease, live_observer: LiveObserver) -> None:
        """The run of this chat is a live one. Call this in the task of the run: agents that run as tools inherit its
        context, and find the chat there."""
        leased = self._leased[lease.chat]
        leased.observer = leased.live_observer = live_observer
        current_chat.set(leased)

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
        if self.named_tools is not None:
            self.named_tools.on_listed(callback_context.agent_name, llm_request.tools_dict)
        leased = self._leased_chat_of(callback_context.session)
        if leased is not None:
            leased.call_ids.new_model_call(callback_context.agent_name, callback_context.branch)

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        parts = llm_response.content.parts if llm_response.content is not None else None
        if not any(part.function_call for part in parts or ()):  # one more word, nearly always
            return
        leased, session = self._leased_chat_of(callback_context.session), callback_context.session
        if leased is not None:
            speaker = callback_context.agent_name, callback_context.branch
            leased.call_ids.rename_repeated(llm_response, *speaker, session.events)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        leased = self._leased_chat_of(session := invocation_context.session)
        if leased is None:
            return None
        if leased.live_observer is not None and is_all_voice(event):
            leased.live_observer.route(event, session)
            return None
        if leased.live_observer is None:
            if is_more_text(event):
                return None
            leased.call_ids.rename_replaced(event, session.events)
        if asks_for_confirmation(event):
            return without_node_question(event)
        for asked in questions_in(event):
            if asked.call not in leased.records:  # ADK relays a question twice
                call = self.new_call(leased, asked.call, BaseTool(name=asked.tool, description=""))
                await record_question(call, event, asked, invocation_context)
        await take_results(event, self._store, leased)
        name_questions(event, leased.records)
        name_inner_calls(event, leased)
        if leased.live_observer is not None:
            if asks_for_credential(event):
                return without_request(event)
            leased.live_observer.route(event, session)
        elif event.error_code == ABORTED:
            seal_as_recorded(event, session.events, leased.records)
        else:
            leave_out_mark(event, invocation_context, leased)
        return None

    def _call_of(self, tool: BaseTool, tool_context: ToolContext) -> GatedCall | None:
        """None for a call in a chat that this process does not run: nobody could be asked there. Agents that run as
        tools have sessions of their own; their calls belong to the outer chat."""
        known = self._calls.get(tool_context)
        if known is not None:
            return known
        chat, key = call_keys(tool_context)
        leased = self._leased.get(chat)
        if leased is None and (outer := current_chat.get()) is not None and self._leased.get(outer.key) is outer:
            leased = outer
        if leased is None:
            return None
        call = self.new_call(leased, key, tool, nested_in(leased, tool_context))
        call.is_delegated = leased.live_observer is not None and is_delegated(tool_context)
        self._calls[tool_context] = call
        return call

    def new_call(
        self, leased: LeasedChat, key: CallKey, tool: BaseTool, nested_in: NestedCall | None = None
    ) -> GatedCall:
        return GatedCall(
            store=self._store,
            policy=self.policy,
            lease_s=self._lease_s,
            leased=leased,
            key=key,
            tool=tool,
            arguments={},
            nested_in=nested_in,
        )

    # -- before a tool ------------------------------------------------------------------------------------------------

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        call = self._call_of(tool, tool_context)
        if call is None:
            verdict = await self._verdict(tool, tool_args, tool_context)
            return refuse_without_client(tool, tool_context, is_asked=verdict not in (None, "nobody"))
        call.arguments = copy.deepcopy(tool_args)
        divert_question(call, tool_context)
        await wait_if_run_is_ending(call.leased)
        try:
            instead = await self._before(call, tool_args, tool_context)
        except Exception as error:
            return refuse_after(error, call)
        if instead is None:
            begins(call)
            call.leased.begin(call.key)
            live_gate.notify_begun(call, tool_context)
        return instead

    async def _before(
        self, call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if tool_context.tool_confirmation is not None and not isinstance(call.tool, ClientTool):
            return await take_up(call, tool_args, tool_context)
        call.verdict = await self._verdict(call.tool, call.arguments, tool_context)
        await wait_if_run_is_ending(call.leased)  # the application's function may have taken long
        if isinstance(call.tool, ClientTool):
            return await self._open_browser_call(call, call.tool, tool_context)
        if call.waits_inside:
            return await live_gate.ask_if_needed(call, tool_args, tool_context)
        if call.verdict is None:
            return None  # in request mode ADK asks if the tool requires it, or else runs it
        if call.verdict != "nobody":
            tool_context.request_confirmation()
            tool_context.actions.skip_summarization = True
            call.leased.begin(call.key)  # a run that is drained waits until ADK has asked, as for a tool
            return {"error": REQUIRES_CONFIRMATION}
        is_required = await call.tool.check_require_confirmation(tool_args, tool_context) is True
        return await run_by_policy(call, tool_args, tool_context) if is_required else None

    async def _verdict(self, tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext) -> Verdict | None:
        """What the policy says about a call; None if nobody asks it, as for ADK's own control flow."""
        agent = tool_context._invocation_context.agent  # pyright: ignore[reportPrivateUsage]
        is_control_flow = isinstance(agent, LlmAgent) and tool.name in control_flow_of(agent)
        if self.policy.decide is None or is_control_flow or type(tool) is BaseTool:
            return None
        return await self.policy.verdict(
            ApprovalRequest(
                user=tool_context.session.user_id,
                tool=tool.name,
                arguments=copy.deepcopy(arguments),
                agent=tool_context.agent_name,
                state=tool_context.state.to_dict(),
            )
        )

    async def _open_browser_call(
        self, call: GatedCall, tool: ClientTool, tool_context: ToolContext
    ) -> dict[str, Any] | None:
        try:
            needs_approval = await tool.needs_approval(call.arguments, tool_context)
        except Exception as error:
            if call.leased.live_observer is None:
                raise
            # In live mode the error would end the whole session, or leave the model without a response.
            logger.error("%s was not run, because its `approve` failed: %s", tool.name, type(error).__qualname__)
            return {"error": text_of_failure(tool)}
        needs_approval = needs_approval or call.verdict not in (None, "nobody")
        refusal = await call.open_for_browser(tool, approval_id=new_approval_id() if needs_approval else None)
        if refusal is not None:
            return {"error": refusal}
        if not call.waits_inside:
            return None
        return await live_gate.wait_for_output(call)

    # -- after a tool -------------------------------------------------------------------------------------------------

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        call = self._call_of(tool, tool_context)
        if call is None:
            return refuse_question_without_client(tool_context)
        try:
            replaced = await self._after(call, tool_args, tool_context, result)
        except BaseException:
            call.leased.end(call.key)
            raise
        response = result if replaced is None else replaced
        if tool.is_long_running and response and has_ref(tool_context):
            await open_work(call)
        is_left = tool.is_long_running and not response
        call.leased.end(call.key, has_result=not is_left)
        if call.nested_in is not None:
            call.leased.store_result(call.key)
        observer = call.leased.observer
        if observer is not None and not is_left and observer.settled(call.key, response):
            raise asyncio.CancelledError  # the model that called the tool is gone
        return replaced

    async def _after(
        self, call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        if not asks_for_consent(call, tool_context):
            return await self._after_run(call, tool_args, tool_context, result)
        result = await run_after_consent(call, tool_args, tool_context)
        return await self._after_run(call, tool_args, tool_context, result) or as_response(result)

    async def _after_run(
        self, call: GatedCall, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        if call.is_started:
            return await record_result(call, tool_context, result)
        observer = call.leased.live_observer
        if observer is not None and (refused := refuse_task(call.tool, result)) is not None:
            return refused
        if has_asked(call, tool_context):
            if call.verdict == "nobody":
                return await live_gate.run_again(call, tool_args, tool_context)
            refusal = await self._ask(call, tool_context)
            if refusal is not None:
                withdraw_question(tool_context)
                return {"error": refusal}
            return await live_gate.run_again(call, tool_args, tool_context) if call.waits_inside else None
        if call.tool.is_long_running and not result and not isinstance(call.tool, ClientTool):
            if has_ref(tool_context) and await has_ended(call):
                return dict(STILL_AT_WORK)  # the end of the work follows
            refusal = await call.leave_to_client()
            if refusal is not None:
                return {"error": refusal}
            if call.nested_in is not None:
                return await live_gate.wait_for_output(call)
            if observer is not None:
                observer.left(call.key)
        return None

    async def fail(self, tool: BaseTool, tool_context: ToolContext, text: str) -> dict[str, Any]:
        """A call that has begun turns out to be another one than was shown."""
        call = self._call_of(tool, tool_context)
        if call is None:
            return {"error": text}
        response = await call.fail(text, {}) or {"error": text}
        call.leased.end(call.key)
        call.leased.store_result(call.key)
        if call.leased.observer is not None:
            call.leased.observer.settled(call.key, response)
        return response

    async def _ask(self, call: GatedCall, tool_context: ToolContext) -> str | None:
        """ADK is about to ask for this call: record it first. Returns why nobody can be asked, or None."""
        requested = tool_context.actions.requested_tool_confirmations[call.key.call_id]
        requested.hint = self.policy.hint(call.tool.name, call.arguments) or requested.hint
        approval_id = new_approval_id() if call.waits_inside else None
        return await call.ask(hint=requested.hint, payload=requested.payload, approval_id=approval_id)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> dict[str, Any] | None:
        call = self._call_of(tool, tool_context)
        return None if call is None else await record_failure(call, error)
