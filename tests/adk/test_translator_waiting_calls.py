"""Calls that the client or a person has to answer: long-running ones, questions, approvals, credentials."""

from fastapi.openapi.models import OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.events import Event, EventActions
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.tools._request_input_tool import request_input
from google.genai import types

from adk.agent_runs import called, caller, lines, of_type, pay, read, run, step, translate, translate_events, weather
from support import releases


def ask_location() -> None:
    """Runs in the browser."""


def start_export() -> dict[str, str]:
    """Takes hours."""
    return {"status": "pending"}


def test_a_long_running_call_without_a_result_waits_for_the_client() -> None:
    assert read(caller([called("c1", "ask_location")], tools=[LongRunningFunctionTool(ask_location)])) == [
        *step("tool-input-start c1 ask_location", "tool-input-available c1 ask_location {}"),
        "finish tool-calls",
    ]


def test_the_first_word_of_a_long_running_call_is_not_its_result() -> None:
    told = read(caller([called("c1", "start_export")], "Started.", tools=[LongRunningFunctionTool(start_export)]))
    assert 'tool-output-available c1 {"status": "pending"} preliminary' in told
    assert told[-1].startswith("finish tool-calls")


def test_a_waiting_call_and_a_finished_one_in_one_step_leave_the_step_open_for_the_answer() -> None:
    calls = [called("c1", "ask_location"), called("c2", "weather", city="Oslo")]
    assert read(caller(calls, tools=[LongRunningFunctionTool(ask_location), weather])) == [
        *step(
            "tool-input-start c1 ask_location",
            "tool-input-start c2 weather",
            'tool-input-available c2 weather {"city": "Oslo"}',
            'tool-output-available c2 {"sky": "clear in Oslo"}',
            "tool-input-available c1 ask_location {}",
        ),
        "finish tool-calls",
    ]


def test_a_question_to_the_user_is_a_call_that_the_client_answers() -> None:
    asked = called("c1", "adk_request_input", message="Which city?")
    assert read(caller([asked], tools=[request_input])) == [
        *step(
            "tool-input-start c1 adk_request_input",
            'tool-input-available c1 adk_request_input {"message": "Which city?"}',
        ),
        "finish tool-calls",
    ]


GATED_PAY = FunctionTool(pay, require_confirmation=True)


def test_a_call_that_needs_approval_is_asked_for_and_its_placeholder_hidden() -> None:
    assert read(caller([called("c1", "pay", amount=5)], tools=[GATED_PAY])) == [
        *step(
            "tool-input-start c1 pay",
            'tool-input-available c1 pay {"amount": 5}',
            "tool-approval-request id1 c1",
            'data-adk-approval {"deadline": "1970-01-01T00:10:00.000Z"} id1',
        ),
        "finish tool-calls",
    ]


def test_the_hint_and_payload_of_a_tool_s_own_question_go_with_the_approval() -> None:
    def transfer_money(tool_context: ToolContext) -> dict[str, str]:
        """Asks for itself."""
        tool_context.request_confirmation(hint="All of it?", payload={"limit": 10})
        tool_context.actions.skip_summarization = True
        return {"status": "waiting"}

    told = read(caller([called("c1", "transfer_money")], tools=[transfer_money]))
    assert told[3:5] == [
        "tool-approval-request id1 c1",
        'data-adk-approval {"hint": "All of it?", "payload": {"limit": 10}, '
        '"deadline": "1970-01-01T00:10:00.000Z"} id1',
    ]
    assert [line for line in told if line.startswith("tool-output")] == []


def test_a_call_that_is_asked_about_twice_is_told_once() -> None:
    events = run(caller([called("c1", "pay", amount=5)], tools=[GATED_PAY])).events
    questions = [event for event in events if any(call.name != "pay" for call in event.get_function_calls())]
    again = questions[0].model_copy(deep=True)
    again.id = "another-event"
    told = translate_events(*events, again)
    assert len(of_type(told, "tool-approval-request")) == 1


@releases.sibling_results_first
def test_approvals_follow_the_result_of_a_sibling_that_needs_none() -> None:
    told = read(
        caller([called("c1", "pay", amount=5), called("c2", "weather", city="Oslo")], tools=[GATED_PAY, weather])
    )
    tool_lines = [line.split(" {")[0] for line in told if line.startswith("tool-")]
    assert tool_lines == [
        "tool-input-start c1 pay",
        "tool-input-available c1 pay",
        "tool-input-start c2 weather",
        "tool-input-available c2 weather",
        "tool-output-available c2",
        "tool-approval-request id1 c1",
    ]
    assert told[-1] == "finish tool-calls"


def test_two_approvals_are_asked_for_in_one_step() -> None:
    told = read(caller([called("c1", "pay", amount=5), called("c2", "pay", amount=6)], tools=[GATED_PAY]))
    assert [line for line in told if "approval-request" in line] == [
        "tool-approval-request id1 c1",
        "tool-approval-request id2 c2",
    ]
    assert told.count("start-step") == 1


def test_version_5_asks_with_a_tool_in_a_step_of_its_own() -> None:
    written = translate(run(caller([called("c1", "pay", amount=5)], tools=[GATED_PAY])), sdk_version=5)
    told = lines(written)
    assert told[:6] == [
        *step("tool-input-start c1 pay", 'tool-input-available c1 pay {"amount": 5}'),
        "start-step",
        "tool-input-start id1 adk_request_confirmation",
    ]
    assert told[-1] == "finish tool-calls"
    asked = of_type(written, "tool-input-available")[1]["input"]
    assert asked["originalFunctionCall"] == {"id": "c1", "name": "pay", "args": {"amount": 5}}


def test_the_tool_that_asks_can_be_chosen_for_newer_versions() -> None:
    agent_run = run(caller([called("c1", "pay", amount=5)], tools=[GATED_PAY]))
    kinds = [chunk["type"] for chunk in translate(agent_run, approval_style="confirmation-tool")]
    assert "tool-approval-request" not in kinds
    assert kinds.count("tool-input-available") == 2


def test_the_questions_of_the_confirmation_tool_share_one_step() -> None:
    """The stock tool helper looks at the last step only: it must find all of them there."""
    agent_run = run(caller([called("c1", "pay", amount=5), called("c2", "pay", amount=6)], tools=[GATED_PAY]))
    told = lines(translate(agent_run, sdk_version=5))
    last_step = told[len(told) - told[::-1].index("start-step") :]
    assert [line for line in last_step if line.startswith("tool-input-start")] == [
        "tool-input-start id1 adk_request_confirmation",
        "tool-input-start id2 adk_request_confirmation",
    ]


def test_an_approval_for_a_call_of_another_message_is_not_sent() -> None:
    asked = called("a1", "adk_request_confirmation", originalFunctionCall={"id": "old", "name": "pay", "args": {}})
    event = Event(author="root", content=types.Content(parts=[asked]), long_running_tool_ids={"a1"})
    assert lines(translate_events(event)) == ["finish stop"]


def test_results_of_calls_of_other_messages_are_not_sent() -> None:
    late = types.Part(function_response=types.FunctionResponse(id="old", name="pay", response={"paid": 5}))
    event = Event(author="root", content=types.Content(role="user", parts=[late]), actions=EventActions())
    assert lines(translate_events(event)) == ["finish stop"]


# -- credentials ------------------------------------------------------------------------------------------------------


def consent() -> AuthConfig:
    endpoints = {
        "authorizationUrl": "https://id.example/consent",
        "tokenUrl": "https://id.example/token",
        "scopes": {"read": ""},
    }
    return AuthConfig(
        auth_scheme=OAuth2(flows=OAuthFlows(authorizationCode=OAuthFlowAuthorizationCode.model_validate(endpoints))),
        raw_auth_credential=AuthCredential(
            auth_type=AuthCredentialTypes.OAUTH2,
            oauth2=OAuth2Auth(client_id="our-client", client_secret="our-secret", redirect_uri="https://app.example/"),
        ),
        credential_key="calendar",
    )


def test_a_request_for_credentials_is_told_without_the_secrets_of_its_configuration() -> None:
    def read_calendar(tool_context: ToolContext) -> dict[str, str]:
        """Needs consent."""
        tool_context.request_credential(consent())
        return {"status": "waits for consent"}

    written = translate(run(caller([called("c1", "read_calendar")], tools=[read_calendar])))
    (asked,) = of_type(written, "data-adk-auth-request")
    assert asked["id"]
    assert asked["data"].keys() == {"authUri", "credentialKey", "toolCallId"}
    assert asked["data"]["toolCallId"] == "c1"
    assert asked["data"]["authUri"].startswith("https://id.example/consent?")
    assert asked["data"]["credentialKey"] == "calendar"
    assert "our-secret" not in str(written)
    assert [chunk["toolName"] for chunk in of_type(written, "tool-input-start")] == ["read_calendar"]
    assert [chunk["output"] for chunk in of_type(written, "tool-output-available")] == [{"status": "waits for consent"}]
