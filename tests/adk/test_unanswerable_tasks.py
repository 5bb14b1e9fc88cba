"""Agents with a task, which ADK calls as tools: in a live session it begins no tasks, and would respond nothing."""

from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol.adk.calls.unanswerable import refuse_task
from support.gated_calls import pay


class Task(FunctionTool):
    def __init__(self) -> None:
        super().__init__(pay)
        self._defers_response = True


@pytest.mark.parametrize("result", [{"paid": 5}, {}, 0])
def test_a_tool_with_a_result_is_no_task_that_was_never_begun(result: Any) -> None:
    assert refuse_task(Task(), result) is None


def test_a_task_is_refused_and_a_tool_that_returns_nothing_is_not() -> None:
    text = "This call was not run: an agent with a task cannot work in a live session. The user may write without one."
    assert refuse_task(Task(), None) == {"error": text}
    assert refuse_task(FunctionTool(pay), None) is None


def test_a_tool_of_an_adk_that_knows_no_tasks_is_none() -> None:
    tool: Any = object()
    assert refuse_task(tool, None) is None
