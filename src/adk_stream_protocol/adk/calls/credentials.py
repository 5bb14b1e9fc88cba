"""Credentials that ADK asks for: what is recorded of a request, and how ADK gets the answer.

A page opens the consent address, and the provider sends the user to the application, which has the answer from there.
No token and no code is in a record, a stream or a log: the answer goes from the application to ADK alone.
"""

import copy
import hmac
from typing import Any
from urllib.parse import parse_qs, urlsplit

from google.adk.auth import AuthConfig, OAuth2Auth
from google.adk.events import Event
from google.genai import types

from ...protocol.call_record import CallKey, CallRecord, ChatKey, State
from ..event_parts import CREDENTIAL, as_dict, is_frameworks_own

CONSENT_NEEDED = "CONSENT_NEEDED"
"""The error code of an event that would have asked in a live session."""

GRANTED = {"output": {"status": "granted"}}
"""What is recorded of an answer."""


def credential_request(chat: ChatKey, call: types.FunctionCall, event: Event) -> CallRecord:
    """The record of a request, without anything that is secret."""
    return CallRecord(
        chat=chat,
        call=CallKey(event.invocation_id, call.id or ""),
        tool=CREDENTIAL,
        arguments={"state": _oauth2(call.args).get("state")},
        executor="browser",
        state=State.APPROVED,
        asked_at=event.timestamp,
    )


def shown_request(call_id: str, config: AuthConfig) -> dict[str, Any]:
    """The arguments of a request that waits inside a run, as they are recorded: what the page needs."""
    credential = config.exchanged_auth_credential
    oauth2 = (credential.oauth2 if credential is not None else None) or OAuth2Auth()
    shown = {"exchangedAuthCredential": {"oauth2": {"authUri": oauth2.auth_uri}}}
    return {
        "state": oauth2.state,
        "functionCallId": call_id,
        "authConfig": {"credentialKey": config.credential_key, **shown},
    }


def asks_for_credential(event: Event) -> bool:
    calls = event.get_function_calls()
    return any(call.name == CREDENTIAL and is_frameworks_own(event, call) for call in calls)


def without_request(event: Event) -> Event:
    """The event with an error in place of the request: nobody could answer it, since the live session ends here."""
    return event.model_copy(update={"content": None, "long_running_tool_ids": None, "error_code": CONSENT_NEEDED})


def state_of(callback_url: str) -> str | None:
    """The OAuth state in the address to which the provider has sent the user."""
    try:
        parts = urlsplit(callback_url)
    except ValueError:
        return None
    values = parse_qs(parts.query).get("state") or parse_qs(parts.fragment).get("state") or []
    return values[0] if len(values) == 1 else None  # one without a value is left out


def is_asked_with(record: CallRecord, state: str) -> bool:
    asked = as_dict(record.arguments).get("state")
    return isinstance(asked, str) and hmac.compare_digest(asked.encode(), state.encode())


def answer_of_consent(arguments: Any, callback_url: str) -> dict[str, Any]:
    """The response that ADK waits for. `arguments`: those of its request."""
    config = copy.deepcopy(as_dict(as_dict(arguments).get("authConfig")))
    credential = {**as_dict(config.get("exchangedAuthCredential"))}
    credential["oauth2"] = {**as_dict(credential.get("oauth2")), "authResponseUri": callback_url}
    return {**config, "exchangedAuthCredential": credential}


def answer_of_key(arguments: Any, api_key: str) -> dict[str, Any]:
    config = copy.deepcopy(as_dict(as_dict(arguments).get("authConfig")))
    return {**config, "exchangedAuthCredential": {"authType": "apiKey", "apiKey": api_key}}


def _oauth2(arguments: Any) -> dict[str, Any]:
    credential = as_dict(as_dict(as_dict(arguments).get("authConfig")).get("exchangedAuthCredential"))
    return as_dict(credential.get("oauth2"))
