"""Approvals and browser tools, seen through by stock clients: every scenario, on every release that has approvals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from adk_stream_protocol import ApprovalPolicy, ChatBridge
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from conformance.node import NodeDriver
from conformance.pages import RESUME, WITH_APPROVALS, Conversation
from conformance.scenarios import SCENARIOS, Scenario
from support.apps import app_of, user_of
from support.live_server import serving

every_release = pytest.mark.parametrize("release", WITH_APPROVALS)
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


class Origins(NamedTuple):
    patient: str
    impatient: str


@pytest.fixture(scope="module")
def origins() -> Iterator[Origins]:
    def demo(**options: Any) -> Any:
        return serving(app_of(ChatBridge(build_agent(OfflineModel()), user_id=user_of, **options)))

    no_time = ApprovalPolicy(deadline_s=0, browser_deadline_s=0)
    with demo() as patient, demo(approvals=no_time) as impatient:
        yield Origins(patient, impatient)


def conversation(node: NodeDriver, release: str, origins: Origins, scenario: Scenario, **options: Any) -> Conversation:
    return Conversation(node, release, origins.impatient if scenario.is_late else origins.patient, **options)


def went_as_written(scenario: Scenario, chat: Conversation) -> bool:
    assert chat.wire == scenario.wire
    assert chat.ends == scenario.ends
    assert chat.spoken.startswith(scenario.tells)
    assert len(chat.messages) == 2
    run_by_browser = [call["toolName"] for call in chat.tool_calls if call["toolName"] in scenario.browser_tools]
    assert sorted(run_by_browser) == sorted(scenario.run_when_told)
    return chat.came_to_its_end() and chat.is_what_the_server_kept()


@every_scenario
@every_release
def test_a_stock_page_sees_it_through(node: NodeDriver, origins: Origins, release: str, scenario: Scenario) -> None:
    chat = conversation(node, release, origins, scenario)
    chat.open_page(*scenario.steps_of_a_page_that_stays, resend=scenario.resend, browserTools=scenario.run_when_told)
    assert went_as_written(scenario, chat)


@every_scenario
@every_release
def test_a_page_that_is_loaded_anew_after_every_request_goes_on_where_the_last_one_was(
    node: NodeDriver, origins: Origins, release: str, scenario: Scenario
) -> None:
    chat = conversation(node, release, origins, scenario)
    for steps in scenario.visits:
        chat.open_page(RESUME, *steps, resend=scenario.resend)
        assert chat.is_what_the_server_kept()
    assert went_as_written(scenario, chat)


@every_scenario
def test_a_page_with_the_helper_of_our_client_sees_it_through_on_the_oldest_release(
    node: NodeDriver, origins: Origins, scenario: Scenario
) -> None:
    chat = conversation(node, "6.0.0", origins, scenario)
    steps = scenario.steps_of_a_page_that_stays
    resend = "ours" if scenario.resend == "both" else scenario.resend
    chat.open_page(*steps, resend=resend, browserTools=scenario.run_when_told)
    assert went_as_written(scenario, chat)


@every_scenario
@pytest.mark.parametrize("release", ["6.0.0", "7"])
def test_a_page_that_posts_only_the_message_that_goes_on_is_served_alike(
    node: NodeDriver, origins: Origins, release: str, scenario: Scenario
) -> None:
    chat = conversation(node, release, origins, scenario)
    steps, tools = scenario.steps_of_a_page_that_stays, scenario.run_when_told
    chat.open_page(*steps, resend=scenario.resend, browserTools=tools, onlyLast=True)
    assert all("messages" not in request["body"] for request in chat.requests)
    assert went_as_written(scenario, chat)


@every_scenario
def test_clients_that_say_they_are_of_version_7_are_told_more_and_see_it_through_alike(
    node: NodeDriver, origins: Origins, scenario: Scenario
) -> None:
    chat = conversation(node, "7", origins, scenario, headers={"x-ai-sdk-version": "7"})
    for steps in scenario.visits:
        chat.open_page(*steps, resend=scenario.resend)
        assert chat.is_what_the_server_kept()
    assert went_as_written(scenario, chat)
    for approval in (tool["approval"] for tool in chat.tools if "approval" in tool):
        assert "requestReason" not in approval  # nobody has said anything that is for people
        assert approval["descriptor"]["deadline"].endswith("Z")
