"""Questions of ADK's and what a model says in their words; addresses that a page may link to."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.openapi.models import OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.events import Event, RequestInput
from google.adk.tools import BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.tools._request_input_tool import request_input
from google.adk.workflow import BaseNode, Workflow
from google.genai import types

from adk.agent_runs import called, model_says, pay, run, weather
from adk_stream_protocol.adk.calls import gate
from adk_stream_protocol.adk.event_parts import asks_for_confirmation, auth_request, is_frameworks_own
from adk_stream_protocol.testing import ScriptedModel

QUESTIONS = ("adk_request_confirmation", "adk_request_credential", "adk_request_input")


def questions(root: BaseNode) -> list[tuple[str, bool]]:
    """The calls of a real run that have the name of a question, and whether they are ADK's."""
    return [
        (call.name, is_frameworks_own(event, call))
        for event in run(root).events
        for call in event.get_function_calls()
        if call.name in QUESTIONS
    ]


def agent(*script: Any, name: str = "helper", **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel([*script, "Done.", "Done."]), **fields)


# -- ADK's own --------------------------------------------------------------------------------------------------------


def with_credential(tool_context: ToolContext) -> dict[str, str] | None:
    """Needs a credential."""
    flow = OAuthFlowAuthorizationCode(authorizationUrl="https://id.example/auth", tokenUrl="https://id.example/token")
    secret = OAuth2Auth(client_id="id", client_secret="secret")
    tool_context.request_credential(
        AuthConfig(
            auth_scheme=OAuth2(flows=OAuthFlows(authorizationCode=flow)),
            raw_auth_credential=AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=secret),
            credential_key="calendar",
        )
    )
    return None


ASKING: dict[str, tuple[list[types.Part], Callable[[], BaseTool], str]] = {
    "confirmation": (
        [called("c1", "pay", amount=5)],
        lambda: FunctionTool(pay, require_confirmation=True),
        "adk_request_confirmation",
    ),
    "credential": ([called("c1", "with_credential")], lambda: FunctionTool(with_credential), "adk_request_credential"),
    "a model's own input": (
        [called("c1", "adk_request_input", message="Who?"), called("c2", "weather", city="Oslo")],
        lambda: request_input,
        "adk_request_input",
    ),
}
PLACES: dict[str, Callable[[LlmAgent], BaseNode]] = {
    "alone": lambda asking: asking,
    "in a sequence": lambda asking: SequentialAgent(name="line", sub_agents=[agent(name="first"), asking]),
    "in a loop": lambda asking: LoopAgent(name="loop", max_iterations=1, sub_agents=[asking]),
    "in parallel": lambda asking: ParallelAgent(name="both", sub_agents=[agent(name="first"), asking]),
    "in a workflow": lambda asking: Workflow(name="flow", edges=[("START", asking)]),
    "after a transfer": lambda asking: agent(
        [called("t", "transfer_to_agent", agent_name="helper")], name="root", sub_agents=[asking]
    ),
}


@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.parametrize("place", PLACES)
def test_a_question_of_adk_s_is_adk_s_wherever_its_agent_stands(kind: str, place: str) -> None:
    said, tool, name = ASKING[kind]
    assert questions(PLACES[place](agent(said, tools=[tool(), weather]))) == [
        *([(name, False)] if kind == "a model's own input" else []),  # its pieces
        (name, True),
    ]


@pytest.mark.parametrize("kind", ASKING)
def test_a_question_of_an_agent_for_a_task_is_adk_s(kind: str) -> None:
    said, tool, name = ASKING[kind]
    task = agent(said, tools=[tool(), weather], mode="task")
    assert (name, True) in questions(agent([called("t", "helper", request="Go.")], name="root", sub_agents=[task]))


def test_a_question_of_a_workflow_node_is_adk_s() -> None:
    def asks() -> RequestInput:
        return RequestInput(message="Who?")

    assert questions(Workflow(name="flow", edges=[("START", asks)])) == [("adk_request_input", True)]


# -- a model's ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_model_s_question_is_not_adk_s(name: str) -> None:
    assert questions(agent([called("q1", name, message="Your PIN?")])) == [(name, False)] * 2


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("order", [1, -1], ids=["after", "before"])
def test_a_model_s_question_is_not_adk_s_under_the_id_of_a_call_that_waits(name: str, order: int) -> None:
    said = [called("c1", "nothing"), called("c1", name, message="Your PIN?")][::order]

    def nothing() -> None:
        """Nothing."""

    assert questions(agent([model_says(*said)], tools=[LongRunningFunctionTool(nothing)])) == [(name, False)]


def test_other_calls_are_none_of_adk_s_questions() -> None:
    call = types.FunctionCall(id="c1", name="pay")
    content = types.Content(parts=[types.Part(function_call=call)])
    assert not is_frameworks_own(Event(author="a", content=content, long_running_tool_ids={"c1"}), call)


def test_a_question_without_an_id_is_nobody_s() -> None:
    call = types.FunctionCall(name="adk_request_input")
    assert not is_frameworks_own(Event(author="a", content=types.Content(parts=[types.Part(function_call=call)])), call)


# -- workflow nodes ---------------------------------------------------------------------------------------------------


def test_a_node_that_asks_for_approval_past_the_gate_is_recognised_and_not_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asks() -> RequestInput:
        return RequestInput(interrupt_id="wf_tool_confirmation:flow/pay", message="Sure?")

    def asking() -> list[Event]:
        events = run(Workflow(name="flow", edges=[("START", asks)])).events
        return [event for event in events if asks_for_confirmation(event)]

    assert asking() == []
    monkeypatch.setattr(gate, "asks_for_confirmation", lambda _: False)
    assert [[call.name for call in event.get_function_calls()] for event in asking()] == [["adk_request_input"]]


def test_other_questions_and_events_ask_for_no_approval() -> None:
    def asks() -> RequestInput:
        return RequestInput(message="Who?")

    events = run(Workflow(name="flow", edges=[("START", asks)])).events
    events += run(agent([called("c1", "pay", amount=5)], tools=[FunctionTool(pay, require_confirmation=True)])).events
    assert [event for event in events if asks_for_confirmation(event)] == []


# -- consent ----------------------------------------------------------------------------------------------------------


def consent(address: Any) -> dict[str, Any]:
    config = {"credentialKey": "bank", "exchangedAuthCredential": {"oauth2": {"authUri": address}}}
    return auth_request({"authConfig": config})


@pytest.mark.parametrize(
    "address",
    [
        "https://id.example/auth?client=bank&state=a%20b",
        "HTTPS://id.example",
        "https://id.example:8443/auth#top",
        "https://[2001:db8::1]/auth",
        "http://localhost/auth",
        "http://localhost:8080/auth",
        "http://127.0.0.1:8080/auth",
        "http://127.9.9.9/auth",
        "http://[::1]:8080/auth",
    ],
)
def test_addresses_for_consent_are_https_or_the_own_machine(address: str) -> None:
    assert consent(address) == {"authUri": address, "credentialKey": "bank"}


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        7,
        "javascript:alert(document.domain)",
        "data:text/html,<script>alert(1)</script>",
        "blob:https://id.example/1",
        "http://id.example/auth",
        "http://localhost.evil.example/auth",
        "http://127.0.0.1.evil.example/auth",
        "http://128.0.0.1/auth",
        "http://[::2]/auth",
        "ftp://localhost/auth",
        "//id.example/auth",
        "/auth",
        "https:id.example",
        "https:/id.example",
        "https:///id.example",
        "https://",
        "https://:443/auth",
        "https://bank.example@evil.example/auth",
        "https://user:word@id.example/auth",
        "https://id.example:port/auth",
        "https://id.example:99999/auth",
        "https://id.example\\@evil.example/auth",
        "https:\\\\id.example/auth",
        "https://[id.example/auth",
        " https://id.example/auth",
        "https://id.example/a b",
        "java\tscript:alert(1)",
        "https://id.example/\nauth",
        "https://id.example/\x00",
        "https://id.example/\x7f",
        "https://id.exam\u202eple/auth",
        "https://bаnk.example/auth",
    ],
)
def test_other_addresses_are_left_out(address: Any) -> None:
    assert consent(address) == {"credentialKey": "bank"}
