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


def test_work_that_goes_on_gets_no_step_of_its_own_while_another_agent_streams_arguments() -> None:
    """A new step would end the arguments, and what still comes of them has no place."""

    def event(author: str, *parts: types.Part, **more: Any) -> Event:
        content = types.Content(role="model", parts=list(parts))
        return Event(author=author, invocation_id="i1", branch=f"par.{author}", content=content, **more)

    def piece(text: str) -> Event:
        arguments = [types.PartialArg(json_path="$.city", string_value=text)]
        call = types.FunctionCall(id="s1", name="weather", partial_args=arguments, will_continue=True)
        return event("b", types.Part(function_call=call), partial=True)

    asked = [called("c1", "pay", amount=1), called("c2", "browse")]
    placeholder = types.FunctionResponse(id="c1", name="pay", response={"error": "Wait."})
    written = lines(
        translate_events(
            event(
                "b",
                types.Part(function_call=types.FunctionCall(id="s1", name="weather", partial_args=[])),
                partial=True,
            ),
            piece("Os"),
            event("a", *asked, long_running_tool_ids={"c2"}),
            event("a", types.Part(function_response=placeholder)),
            piece("lo"),
            event("b", called("s1", "weather", city="Oslo")),
            event("b", types.Part(function_response=types.FunctionResponse(id="s1", name="weather", response={}))),
        )
    )
    assert not [line for line in written if line.startswith("tool-input-error")]
    assert 'tool-input-available s1 weather {"city": "Oslo"} {"adk": {"author": "b"}}' in written
