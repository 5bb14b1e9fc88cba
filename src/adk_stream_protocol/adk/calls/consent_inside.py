"""Credentials that a tool asks for where ADK asks nobody: in a live session, inside an agent that runs as a tool, and
after an approval. The call waits inside the run until the application has the answer, and then runs again.

The record of the request has what the page needs, and nothing secret. The answer may come to another worker: it is
handed over in ADK's session database, which holds such answers anyway, and is deleted when it is taken.
"""

import logging
from typing import Any

from google.adk.auth import AuthConfig, AuthCredential, AuthHandler
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.sessions import BaseSessionService
from google.adk.tools import BaseTool, ToolContext

from ...errors import NotFound
from ...protocol.call_record import CallKey, ChatKey
from ..event_parts import CREDENTIAL
from .credentials import GRANTED, answer_of_consent, answer_of_key, shown_request
from .gate_steps import has_asked, record_failure, text_of_failure
from .gated_call import GatedCall, new_approval_id
from .live_observer import NestedCall
from .outcomes import ended_response
from .unanswerable import withdraw_question
from .waiting import calls_above, outer_call, wait_for_answer

logger = logging.getLogger(__name__)

Given = dict[str, str]
"""What the application gives: a `callback_url` or an `api_key`."""

_NO_CONSENT = "This call was not completed: the user has not given consent."
_LOST = "This call was not completed: the credential that the user gave was lost."


def asks_for_consent(call: GatedCall, tool_context: ToolContext) -> bool:
    """Whether the tool has asked for a credential, and ADK will not ask the user."""
    has_asked = call.key.call_id in tool_context.actions.requested_auth_configs
    return has_asked and (call.is_started or call.waits_inside)


async def run_after_consent(call: GatedCall, arguments: dict[str, Any], tool_context: ToolContext) -> Any:
    """Ask the user for consent, wait, and run the tool again. It may ask for more."""
    result: Any = None
    while asks_for_consent(call, tool_context):
        config = tool_context.actions.requested_auth_configs.pop(call.key.call_id)
        if has_asked(call, tool_context):
            withdraw_question(tool_context)  # it asks again when it runs again
        given = await _wait(call, config, tool_context.agent_name)
        if "error" in given:
            return given
        try:
            await AuthHandler(_answered(config, given)).parse_and_store_auth_response(
                state=tool_context.session.state  # pyright: ignore[reportArgumentType] -- as ADK does
            )
            result = await call.tool.run_async(args=arguments, tool_context=tool_context)
        except BaseException as error:  # recorded as if ADK had run the tool
            await record_failure(call, error)
            if not isinstance(error, Exception):
                raise
            return {"error": text_of_failure(call.tool)}
    return result


async def _wait(call: GatedCall, config: AuthConfig, agent: str) -> Given:
    try:
        return await _ask(call, config, agent)
    except BaseException:
        if call.is_started:  # it has returned, and was not run again
            await call.fail(_NO_CONSENT, {})
        raise


async def _ask(call: GatedCall, config: AuthConfig, agent: str) -> Given:
    """What the application gives; or an `error`."""
    leased = call.leased
    shown = outer_call.get() or call.key if call.nested_in is not None else call.key
    request = GatedCall(
        store=call.store,
        policy=call.policy,
        lease_s=call.lease_s,
        leased=leased,
        key=CallKey(call.key.invocation_id, new_approval_id()),
        tool=BaseTool(name=CREDENTIAL, description="", is_long_running=True),
        arguments=shown_request(shown.call_id, config),
        nested_in=NestedCall(shown, agent, calls_above.get() | {call.key}),
    )
    refusal = await request.ask_for_consent()
    answered = await wait_for_answer(request) if refusal is None else None
    if answered is None:
        return {"error": refusal or _NO_CONSENT}
    leased.store_result(request.key)
    if leased.observer is not None:
        leased.observer.settled(request.key, ended_response(answered))
    if answered.result != GRANTED:
        return {"error": _NO_CONSENT}
    given = leased.given.pop(request.key, None)
    if given is None and leased.sessions is not None:
        given = await _take_over(leased.sessions, leased.key, request.key)
    return given or {"error": _LOST}


def _answered(config: AuthConfig, given: Given) -> AuthConfig:
    """The request with what was given. Scheme, client and key are those of the request."""
    arguments = {"authConfig": config.model_dump(mode="json", exclude_none=True, by_alias=True)}
    if "api_key" in given:
        answer = answer_of_key(arguments, given["api_key"])
    else:
        answer = answer_of_consent(arguments, given["callback_url"])
    credential = AuthCredential.model_validate(answer["exchangedAuthCredential"])
    return config.model_copy(update={"exchanged_auth_credential": credential}, deep=True)


# -- to another worker ------------------------------------------------------------------------------------------------


def _place(chat: ChatKey, request: CallKey) -> dict[str, Any]:
    """Where the answer lies. The id is no chat's: nobody lists or opens it."""
    return {"app_name": chat.app_name, "user_id": chat.user_id, "session_id": f"consent {request.call_id}"}


async def hand_over(sessions: BaseSessionService, chat: ChatKey, request: CallKey, given: Given) -> None:
    try:
        await sessions.create_session(**_place(chat, request), state=dict(given))
    except AlreadyExistsError:
        raise NotFound from None  # the same answer has come twice


async def take_back(sessions: BaseSessionService, chat: ChatKey, request: CallKey) -> None:
    await sessions.delete_session(**_place(chat, request))


async def _take_over(sessions: BaseSessionService, chat: ChatKey, request: CallKey) -> Given | None:
    try:
        found = await sessions.get_session(**_place(chat, request))
        if found is not None:
            await take_back(sessions, chat, request)
    except Exception as error:  # whatever a service raises; its text may quote what was given
        logger.error("the credential that the user gave was not found: %s", type(error).__qualname__)
        return None
    return {name: str(value) for name, value in found.state.items()} if found is not None else None
