"""Calls of remote agents (A2A): the remote agent asks, and runs its tool when ADK hands it the answer.

ADK relays the events of the remote agent as those of its local agent, and an answer of the user to the remote one. Here
its questions get records, so that somebody can answer them, and what came of them is recorded.
"""

import copy
import logging
from collections.abc import Collection
from typing import Any, NamedTuple

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from ...errors import StoreUnavailable
from ...protocol import call_record
from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, CallRecord, NotAllowed, State
from ...store.base import Store, advance
from .. import versions
from ..event_parts import as_dict, is_frameworks_own, is_relayed
from .gated_call import GatedCall
from .leased_chat import LeasedChat
from .policy import ApprovalRequest

logger = logging.getLogger(__name__)

_REMOTE = "remote"


def is_remote(record: CallRecord) -> bool:
    return bool(as_dict(record.made_in).get(_REMOTE))


def made_in(event: Event) -> dict[str, Any]:
    """For the record of a call that a remote agent has made."""
    return {"agent": event.author, _REMOTE: True}


class RemoteQuestion(NamedTuple):
    call: CallKey
    """What it is about."""
    tool: str
    arguments: dict[str, Any]
    question: types.FunctionCall


def read_question(event: Event, question: types.FunctionCall) -> RemoteQuestion:
    original = as_dict(as_dict(question.args).get("originalFunctionCall"))
    call = CallKey(event.invocation_id, str(original.get("id") or ""))
    return RemoteQuestion(call, str(original.get("name")), as_dict(original.get("args")), question)


def questions_in(event: Event) -> list[RemoteQuestion]:
    """What a remote agent asks in this event."""
    calls = event.get_function_calls() if is_relayed(event) else ()
    asked = [
        read_question(event, call) for call in calls if call.name == CONFIRMATION and is_frameworks_own(event, call)
    ]
    return [question for question in asked if question.call.call_id]


def policy_request(event: Event, asked: RemoteQuestion, session: Session, user: str | None = None) -> ApprovalRequest:
    """What the policy is asked about. `user`: the owner of the chat, if the session is another one's."""
    return ApprovalRequest(
        user=user or session.user_id,
        tool=asked.tool,
        arguments=copy.deepcopy(asked.arguments),
        agent=event.author,
        state=dict(session.state),
    )


def unanswerable(*, is_below: bool = False) -> str | None:
    """Why nobody is asked what a remote agent asks. `is_below`: it is not the root, and ADK hands it the answer."""
    if not versions.ANSWERS_REACH_REMOTE_AGENTS:
        return "google-adk below 2.11 does not hand it the answer: install google-adk 2.11 or newer."
    if is_below and not versions.REMOTE_SUB_AGENTS_GO_ON:
        return "google-adk below 2.12 hands a sub-agent no answer: install google-adk 2.12 or newer."
    return None


def without_question(event: Event, call: types.FunctionCall) -> None:
    """Nobody can be asked."""
    parts = (event.content.parts if event.content else None) or []
    kept = [part for part in parts if part.function_call is not call]
    event.content = types.Content(role="model", parts=kept) if kept else None
    event.long_running_tool_ids = {*(event.long_running_tool_ids or ())} - {call.id or ""}


async def record_question(call: GatedCall, event: Event, asked: RemoteQuestion, ctx: InvocationContext) -> None:
    """A remote agent asks: record it before anybody sees it. The policy says who is asked; that somebody is, the remote
    agent has decided."""
    root = getattr(ctx.agent, "root_agent", None)
    refusal = unanswerable(is_below=root is None or root.name != event.author)
    if refusal is None:
        call.arguments = copy.deepcopy(asked.arguments)
        call.verdict = await call.policy.verdict(policy_request(event, asked, ctx.session))
        refusal = await call.ask_for_remote(asked.question, made_in(event))
    if refusal is not None:
        logger.error("a remote agent's question was not asked: %s", refusal)
        without_question(event, asked.question)


async def take_results(event: Event, store: Store, leased: LeasedChat) -> None:
    """What the remote agent has sent about calls that somebody was asked about."""
    for response in event.get_function_responses() if is_relayed(event) else ():
        key = CallKey(event.invocation_id, response.id or "")
        record = leased.records.get(key)
        if record is None or not is_remote(record):
            continue
        if not record.is_decided:  # a placeholder, which ADK marks only where the tool is
            event.actions.requested_tool_confirmations[key.call_id] = ToolConfirmation(hint=record.hint or "")
        elif record.state is State.STARTED:
            await _finish(key, response.response or {}, store, leased)


async def _finish(key: CallKey, response: dict[str, Any], store: Store, leased: LeasedChat) -> None:
    def finish(found: CallRecord, _: float) -> CallRecord:
        result = {"response": response, "state": {}}
        return call_record.finish(found, lease_token=leased.lease.token, result=result)

    try:
        leased.records[key] = await advance(store, leased.key, key, finish, known=leased.known())
    except (NotAllowed, StoreUnavailable):  # then its outcome is unknown
        logger.error("the end of a remote call was not recorded")
    leased.end(key)


async def start_remote(calls: Collection[CallKey], store: Store, leased: LeasedChat) -> None:
    """ADK is about to tell remote agents that these calls are approved: from now on they may have their effects."""
    for key in calls:
        record = leased.records.get(key)
        if record is None or not is_remote(record) or record.state is not State.APPROVED:
            continue
        leased.begin(key)
        leased.records[key] = await advance(
            store,
            leased.key,
            key,
            lambda found, _: call_record.claim(found, digest=found.digest, lease_token=leased.lease.token),
            lambda found, _: call_record.start(found, lease_token=leased.lease.token),
            lease=leased.lease,
            known=leased.known(),
        )
