"""Calls and their results, streamed arguments, calls that a person or the client has to answer."""

from typing import Any

import pytest
from google.adk.events import Event
from google.adk.tools import ToolContext
from google.genai import types

from adk.agent_runs import (
    called,
    caller,
    lines,
    of_type,
    read,
    run,
    step,
    translate,
    translate_events,
    weather,
)
from adk_stream_protocol.adk.failures import public_failure_text

END = [*step("text-start t1", "text-delta t1 Done.", "text-end t1"), "finish stop"]


# -- calls and results ------------------------------------------------------------------------------------------------


def test_parallel_calls_and_their_results_come_in_order() -> None:
    calls = [called("c1", "weather", city="Oslo"), called("c2", "weather", city="Bergen")]
    assert read(caller(calls, "Done.", tools=[weather])) == [
        *step(
            "tool-input-start c1 weather",
            'tool-input-available c1 weather {"city": "Oslo"}',
            "tool-input-start c2 weather",
            'tool-input-available c2 weather {"city": "Bergen"}',
            'tool-output-available c1 {"sky": "clear in Oslo"}',
            'tool-output-available c2 {"sky": "clear in Bergen"}',
        ),
        *END,
    ]


def test_a_call_without_arguments_has_an_empty_input() -> None:
    event = Event(author="root", content=types.Content(parts=[types.Part(function_call={"id": "c1", "name": "now"})]))
    assert "tool-input-available c1 now {}" in lines(translate_events(event))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (called("c1", "weather"), "mandatory input parameters are not present"),
        (called("c1", "wether", city="Oslo"), "no tool with that name is available"),
    ],
)
def test_a_call_that_adk_refuses_is_a_failed_call_and_the_run_goes_on(call: types.Part, told: str) -> None:
    written = translate(run(caller([call], "Done.", tools=[weather])))
    (failed,) = of_type(written, "tool-output-error")
    assert told in failed["errorText"]
    assert lines(written)[-len(END) :] == END


def test_a_result_that_has_more_than_an_error_is_a_result() -> None:
    def search() -> dict[str, Any]:
        """Searches."""
        return {"error": None, "hits": 3}

    told = read(caller([called("c1", "search")], "Done.", tools=[search]))
    assert 'tool-output-available c1 {"error": null, "hits": 3}' in told


def test_a_call_whose_tool_raises_is_closed_and_the_failure_told_once_without_its_words() -> None:
    def leak() -> None:
        """Fails."""
        raise RuntimeError("password 1234")

    failed = run(caller([called("c1", "leak")], tools=[leak]))
    assert isinstance(failed.failure, RuntimeError)
    assert any(event.error_code for event in failed.events)
    public = public_failure_text(failed.failure)
    assert lines(translate(failed)) == [
        *step("tool-input-start c1 leak", "tool-input-available c1 leak {}", f"tool-output-error c1 {public}"),
        f"error {public}",
    ]


def test_calls_that_all_have_the_id_0_stay_apart() -> None:
    """LiteLLM counts calls from 0 in every step, for services that give none."""
    script = [[called("0", "weather", city="Oslo")], [called("0", "weather", city="Bergen")], "Done."]
    assert read(caller(*script, tools=[weather])) == [
        *step(
            "tool-input-start 0 weather",
            'tool-input-available 0 weather {"city": "Oslo"}',
            'tool-output-available 0 {"sky": "clear in Oslo"}',
        ),
        *step(
            "tool-input-start 0-2 weather",
            'tool-input-available 0-2 weather {"city": "Bergen"}',
            'tool-output-available 0-2 {"sky": "clear in Bergen"}',
        ),
        *END,
    ]


def test_a_run_that_ends_on_a_result_does_not_make_the_client_post_again() -> None:
    def show_map(tool_context: ToolContext) -> dict[str, bool]:
        """Shows a map."""
        tool_context.actions.skip_summarization = True
        return {"shown": True}

    assert read(caller([called("c1", "show_map")], tools=[show_map])) == [
        *step(
            "tool-input-start c1 show_map",
            "tool-input-available c1 show_map {}",
            'tool-output-available c1 {"shown": true}',
        ),
        "start-step",
        "finish-step",
        "finish stop",
    ]
