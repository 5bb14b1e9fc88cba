"""What is recorded of a request for credentials, and what ADK gets for an answer."""

from typing import Any

import msgspec
import pytest
from fastapi.openapi.models import OAuth2, OAuthFlows
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.events import Event
from google.genai import types

from adk_stream_protocol.adk.calls.credentials import (
    GRANTED,
    answer_of_consent,
    answer_of_key,
    asks_for_credential,
    credential_request,
    is_asked_with,
    shown_request,
    state_of,
    without_request,
)
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State

OAUTH2 = {"authUri": "https://id.example/?state=s1", "state": "s1", "clientId": "us"}
ARGUMENTS: dict[str, Any] = {
    "functionCallId": "c1",
    "authConfig": {"exchangedAuthCredential": {"authType": "oauth2", "oauth2": OAUTH2}, "credentialKey": "k"},
}
CHAT = ChatKey("shop", "ann", "c1")


def request(arguments: dict[str, Any]) -> Any:
    call = types.FunctionCall(id="a1", name="adk_request_credential", args=arguments)
    return credential_request(CHAT, call, Event(author="helper", invocation_id="e-1"))


def test_a_request_is_recorded_by_its_state_alone() -> None:
    call = types.FunctionCall(id="a1", name="adk_request_credential", args=ARGUMENTS)
    event = Event(author="helper", invocation_id="e-1")
    assert credential_request(CHAT, call, event) == CallRecord(
        chat=CHAT,
        call=CallKey("e-1", "a1"),
        tool="adk_request_credential",
        arguments={"state": "s1"},
        executor="browser",
        state=State.APPROVED,
        asked_at=event.timestamp,
    )
    assert request({}).arguments == {"state": None}
    assert credential_request(CHAT, types.FunctionCall(), event).call == CallKey("e-1", "")


def asking(name: str = "adk_request_credential", long_running: set[str] | None = None) -> Event:
    call = types.Part(function_call=types.FunctionCall(id="a1", name=name, args=ARGUMENTS))
    said = types.Part(function_call=types.FunctionCall(id="a2", name="pay", args={}))
    content = types.Content(role="model", parts=[said, call])
    return Event(author="helper", invocation_id="e-1", content=content, long_running_tool_ids=long_running)


def test_only_adk_itself_asks_for_a_credential() -> None:
    assert asks_for_credential(asking(long_running={"a1"}))
    assert not asks_for_credential(asking(long_running={"a2"}))  # a model has made up the call
    assert not asks_for_credential(asking("pay", {"a1"}))
    assert not asks_for_credential(asking("adk_request_confirmation", {"a1"}))
    assert not asks_for_credential(Event(author="helper"))


def test_what_a_live_session_cannot_ask_is_left_out_of_its_event() -> None:
    event = asking(long_running={"a1"})
    left = without_request(event)
    assert (left.content, left.long_running_tool_ids, left.error_code) == (None, None, "CONSENT_NEEDED")
    assert (left.id, left.author) == (event.id, event.author)
    assert event.content is not None


def test_a_request_is_found_by_its_state() -> None:
    assert is_asked_with(request(ARGUMENTS), "s1")
    assert not is_asked_with(request(ARGUMENTS), "s2")
    assert not is_asked_with(request({}), "None")
    assert not is_asked_with(msgspec.structs.replace(request({}), arguments=None), "None")


@pytest.mark.parametrize(
    ("address", "state"),
    [
        ("https://app.example/cb?state=s1&code=x", "s1"),
        ("https://app.example/cb#state=s1", "s1"),
        ("https://app.example/cb?state=s1&state=s2", None),
        ("https://app.example/cb?state=", None),
        ("https://app.example/cb?state=s1#state=s2", "s1"),
        ("https://app.example/cb#state=s1&state=s2", None),
        ("https://app.example/cb", None),
        ("https://[", None),
        ("", None),
    ],
)
def test_the_state_is_read_from_the_callback(address: str, state: str | None) -> None:
    assert state_of(address) == state


def test_adk_gets_the_callback_in_its_own_configuration() -> None:
    answer = answer_of_consent(ARGUMENTS, "https://app.example/cb?state=s1&code=x")
    oauth2 = answer["exchangedAuthCredential"]["oauth2"]
    assert oauth2 == {**OAUTH2, "authResponseUri": "https://app.example/cb?state=s1&code=x"}
    assert "authResponseUri" not in OAUTH2
    assert answer["credentialKey"] == "k"
    assert answer["exchangedAuthCredential"]["authType"] == "oauth2"
    bare = answer_of_consent(None, "https://app.example/cb")
    assert bare == {"exchangedAuthCredential": {"oauth2": {"authResponseUri": "https://app.example/cb"}}}


def test_adk_gets_a_key() -> None:
    answer = answer_of_key(ARGUMENTS, "k1")
    assert answer == {
        "exchangedAuthCredential": {"authType": "apiKey", "apiKey": "k1"},
        "credentialKey": "k",
    }
    assert ARGUMENTS["authConfig"]["exchangedAuthCredential"]["authType"] == "oauth2"
    assert answer_of_key(None, "k1") == {"exchangedAuthCredential": {"authType": "apiKey", "apiKey": "k1"}}


@pytest.mark.parametrize("encode", [answer_of_consent, answer_of_key])
def test_adks_request_stays_as_it_is(encode: Any) -> None:
    scheme = {"scopes": ["read"]}
    answer = encode({"authConfig": {"authScheme": scheme}}, "x")
    answer["authScheme"]["scopes"].append("write")
    assert scheme == {"scopes": ["read"]}


def test_what_is_granted_is_recorded_without_what_was_given() -> None:
    assert GRANTED == {"output": {"status": "granted"}}


def test_what_waits_inside_a_run_is_recorded_with_what_the_page_needs() -> None:
    oauth2 = OAuth2Auth(auth_uri="https://id.example/?state=s1", state="s1", code_verifier="secret", client_id="us")
    credential = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=oauth2)
    config = AuthConfig(
        auth_scheme=OAuth2(flows=OAuthFlows()), exchanged_auth_credential=credential, credential_key="k"
    )
    assert shown_request("c1", config) == {
        "state": "s1",
        "functionCallId": "c1",
        "authConfig": {
            "credentialKey": "k",
            "exchangedAuthCredential": {"oauth2": {"authUri": "https://id.example/?state=s1"}},
        },
    }
    for given in (None, AuthCredential(auth_type=AuthCredentialTypes.API_KEY)):
        key = AuthConfig(auth_scheme=OAuth2(flows=OAuthFlows()), exchanged_auth_credential=given, credential_key="k")
        assert shown_request("c1", key) | {"authConfig": None} == {
            "state": None,
            "functionCallId": "c1",
            "authConfig": None,
        }
