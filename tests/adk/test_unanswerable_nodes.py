"""Questions of workflow nodes that no gate has seen are not asked: nobody could be shown what runs."""

import logging
from typing import Any

import pytest
from google.adk.events import RequestInput
from google.adk.workflow import Workflow

from adk_stream_protocol.testing import Answer
from support.pages import page


async def asked_by_a_node(interrupt_id: str) -> tuple[Answer, list[Any]]:
    """The answer of a workflow whose node asks under this id, and the session's events."""

    async def asks() -> Any:
        yield RequestInput(interrupt_id=interrupt_id, message="Sure?")

    async with page(agent=Workflow(name="flow", edges=[("START", asks)])) as at:
        answer = await at.say("Pay.")
        session = await at.chat.session()
        assert session is not None
        return answer, session.events


async def test_a_node_that_asks_for_approval_past_the_gate_ends_the_run_and_opens_no_question(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer, events = await asked_by_a_node("wf_tool_confirmation:flow/pay")
    assert answer.types == ["start", "error"]
    assert [call.name for event in events for call in event.get_function_calls()] == []
    assert [event.long_running_tool_ids for event in events if event.long_running_tool_ids] == []
    assert "WORKFLOW_NODE_ASKS" in [event.error_code for event in events]
    logged = [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.ERROR]
    assert logged == ["a workflow node asked for approval: put its tool into an LlmAgent"]


async def test_a_node_may_ask_for_other_things() -> None:
    answer, _ = await asked_by_a_node("who")
    assert [part["toolName"] for part in answer.of_type("tool-input-available")] == ["adk_request_input"]
