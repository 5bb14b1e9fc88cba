"""Arguments while they stream, as ADK's models bring them: a preview, which the whole call then replaces."""

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk.agent_runs import (
    STOP,
    GeminiStream,
    called,
    caller,
    gemini_says,
    lines,
    model_says,
    pay,
    read,
    run,
    step,
    streamed_call,
    translate,
    weather,
)
from adk_stream_protocol.adk.failures import public_failure_text
from adk_stream_protocol.testing import ScriptedModel, text
from support import releases

END = [*step("text-start t1", "text-delta t1 Done.", "text-end t1"), "finish stop"]


@releases.streamed_arguments
def test_streamed_arguments_of_gemini_are_a_preview_of_the_call() -> None:
    chunks = [
        gemini_says(streamed_call("c1", "weather")),
        gemini_says(streamed_call(None, None, ("$.city", "Os"))),
        gemini_says(streamed_call(None, None, ("$.city", "lo"))),
        gemini_says(streamed_call(None, None, goes_on=None), finish_reason=STOP),
    ]
    agent = LlmAgent(
        name="root", model=GeminiStream(chunks, [gemini_says("Done.", finish_reason=STOP)]), tools=[weather]
    )
    assert read(agent) == [
        *step(
            "tool-input-start c1 weather",
            'tool-input-delta c1 {"city":"Oslo',
            'tool-input-available c1 weather {"city": "Oslo"}',
            'tool-output-available c1 {"sky": "clear in Oslo"}',
        ),
        *END,
    ]


@releases.streamed_arguments
def test_streamed_arguments_of_gemini_are_shown_also_when_the_service_gives_no_ids() -> None:
    chunks = [
        gemini_says(streamed_call(None, "weather")),
        gemini_says(streamed_call(None, None, ("$.city", "Os"))),
        gemini_says(streamed_call(None, None, ("$.city", "lo"))),
        gemini_says(streamed_call(None, None, goes_on=None), finish_reason=STOP),
    ]
    agent = LlmAgent(
        name="root", model=GeminiStream(chunks, [gemini_says("Done.", finish_reason=STOP)]), tools=[weather]
    )
    assert read(agent) == [
        *step(
            "tool-input-start id1 weather",
            'tool-input-delta id1 {"city":"Oslo',
            'tool-input-available id1 weather {"city": "Oslo"}',
            'tool-output-available id1 {"sky": "clear in Oslo"}',
        ),
        *END,
    ]


def streaming_caller(*partials: types.Part, whole: list[types.Part]) -> LlmAgent:
    reply: list[LlmResponse] = [model_says(part, partial=True) for part in partials]
    return caller([*reply, model_says(*whole, partial=False)], "Done.", tools=[weather, pay])


def test_streamed_arguments_of_litellm_are_a_preview_of_the_call() -> None:
    partials = [
        streamed_call("c1", "weather"),
        streamed_call("c1", "weather", ("$.city", "Os")),
        streamed_call("c1", "weather", ("$.city", "lo")),
    ]
    told = read(
        streaming_caller(text("I look."), *partials, whole=[text("I look."), called("c1", "weather", city="Oslo")])
    )
    assert told[:8] == [
        "start-step",
        "text-start t1",
        "text-delta t1 I look.",
        "text-end t1",
        "tool-input-start c1 weather",
        'tool-input-delta c1 {"city":"Oslo',
        'tool-input-available c1 weather {"city": "Oslo"}',
        'tool-output-available c1 {"sky": "clear in Oslo"}',
    ]


def test_a_name_that_arrives_in_pieces_is_whole_when_it_is_shown() -> None:
    partials = [
        streamed_call("c1", "we"),
        streamed_call("c1", "weat"),
        streamed_call("c1", "weather"),
        streamed_call("c1", "weather", ("$.city", "Oslo")),
    ]
    told = read(streaming_caller(*partials, whole=[called("c1", "weather", city="Oslo")]))
    assert told[1:4] == [
        "tool-input-start c1 weather",
        'tool-input-delta c1 {"city":"Oslo',
        'tool-input-available c1 weather {"city": "Oslo"}',
    ]


def test_raw_fragments_under_fresh_ids_are_a_preview_of_the_named_call() -> None:
    """The Interactions API: only the first chunk has the call's id, ADK makes one up for each other."""
    first = types.Part(function_call=types.FunctionCall(id="c1", name="weather", partial_args=[]))
    fragments = [streamed_call(None, "weather", piece, goes_on=None) for piece in ('{"ci', 'ty":"Os', 'lo"}')]
    agent_run = run(streaming_caller(first, *fragments, whole=[called("c1", "weather", city="Oslo")]))
    partial_ids = [
        event.content.parts[0].function_call.id
        for event in agent_run.events
        if event.partial and event.content and event.content.parts and event.content.parts[0].function_call
    ]
    assert len(set(partial_ids)) == 4
    assert lines(translate(agent_run))[1:4] == [
        "tool-input-start c1 weather",
        'tool-input-delta c1 {"city":"Oslo"}',
        'tool-input-available c1 weather {"city": "Oslo"}',
    ]


def test_two_streamed_calls_stay_apart() -> None:
    partials = [
        streamed_call("c1", "weather", ("$.city", "Os")),
        streamed_call("c2", "pay", ("$.amount", 5.0)),
        streamed_call("c1", "weather", ("$.city", "lo")),
        streamed_call("c2", "pay"),
    ]
    whole = [called("c1", "weather", city="Oslo"), called("c2", "pay", amount=5)]
    told = read(streaming_caller(*partials, whole=whole))
    assert told[1:7] == [
        "tool-input-start c1 weather",
        'tool-input-delta c1 {"city":"Oslo',
        "tool-input-start c2 pay",
        'tool-input-delta c2 {"amount":5',
        'tool-input-available c1 weather {"city": "Oslo"}',
        'tool-input-available c2 pay {"amount": 5}',
    ]


def test_a_partial_call_under_an_id_that_never_returns_is_not_shown() -> None:
    phantom = types.Part(function_call=types.FunctionCall(name="weather", args={"city": "Oslo"}))
    told = read(streaming_caller(phantom, whole=[called("c1", "weather", city="Oslo")]))
    assert [line for line in told if line.startswith("tool-input-start")] == ["tool-input-start c1 weather"]


def test_a_streamed_call_that_the_whole_does_not_have_is_closed() -> None:
    partials = [streamed_call("c1", "weather", ("$.city", "Os")), streamed_call("c1", "weather", ("$.city", "lo"))]
    told = read(caller([*(model_says(part, partial=True) for part in partials), model_says("No.")], tools=[weather]))
    assert [line for line in told if line.startswith("tool-")] == [
        "tool-input-start c1 weather",
        'tool-input-delta c1 {"city":"Oslo',
        "tool-input-error c1 weather null The call was not completed.",
    ]
    assert "text-delta t1 No." in told


def test_half_streamed_arguments_are_closed_when_the_model_fails() -> None:
    class Breaking(ScriptedModel):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            yield model_says(streamed_call("c1", "weather", ("$.city", "Os")), partial=True)
            yield model_says(streamed_call("c1", "weather", ("$.city", "lo")), partial=True)
            raise ConnectionError("secret")

    failed = run(LlmAgent(name="root", model=Breaking(), tools=[weather]))
    assert isinstance(failed.failure, ConnectionError)
    assert lines(translate(failed)) == [
        *step(
            "tool-input-start c1 weather",
            'tool-input-delta c1 {"city":"Oslo',
            "tool-input-error c1 weather null The call was not completed.",
        ),
        f"error {public_failure_text(failed.failure)}",
    ]


def test_streamed_arguments_of_control_flow_are_not_shown() -> None:
    partials = [
        streamed_call("c1", "set_model_response", ("$.city", "Os")),
        streamed_call("c1", "set_model_response", ("$.city", "lo")),
    ]
    told = read(streaming_caller(*partials, whole=[text("Oslo")]))
    assert [line for line in told if line.startswith("tool-")] == []
