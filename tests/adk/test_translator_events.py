"""What is not content: errors, finish reasons, usage, sources, state, outputs, widgets."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event, EventActions
from google.adk.events.ui_widget import UiWidget
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import ToolContext
from google.genai import errors as genai_errors
from google.genai import types
from pydantic import BaseModel

from adk.agent_runs import (
    STOP,
    AgentRun,
    GeminiStream,
    called,
    gemini_says,
    lines,
    model_says,
    of_type,
    read,
    run,
    step,
    translate,
    translate_events,
)
from adk_stream_protocol.adk.failures import public_failure_text
from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.testing import ScriptedModel, text, thought
from protocol.segment_checker import wire
from support import releases

FAILED = public_failure_text("anything")


def speaker(*script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedModel(script), **fields)


def gemini(*chunks: types.GenerateContentResponse) -> LlmAgent:
    return LlmAgent(name="root", model=GeminiStream(list(chunks)))


# -- errors -----------------------------------------------------------------------------------------------------------


def test_a_model_that_raises_is_told_once_though_adk_tells_it_twice() -> None:
    failed = run(speaker(RuntimeError("prompt and key")))
    assert [event.error_code for event in failed.events] == ["RuntimeError"]
    assert lines(translate(failed)) == [f"error {FAILED}"]


def test_what_was_said_before_a_model_raised_stays() -> None:
    class Breaking(ScriptedModel):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            yield model_says("It is ", partial=True)
            raise ConnectionError("secret")

    failed = run(LlmAgent(name="root", model=Breaking()))
    assert isinstance(failed.failure, ConnectionError)
    assert lines(translate(failed)) == [
        *step("text-start t1", "text-delta t1 It is ", "text-end t1"),
        f"error {FAILED}",
    ]


def test_an_error_event_without_an_exception_is_an_error() -> None:
    told = read(speaker([model_says(error_code="RESOURCE_EXHAUSTED", error_message="quota of project 7")]))
    assert told == [f"error {public_failure_text('RESOURCE_EXHAUSTED')}"]


def test_an_error_that_a_later_answer_made_up_for_is_not_told() -> None:
    told = lines(
        translate_events(
            Event(author="root", error_code="JSON_PARSE_ERROR"),
            Event(author="root", content=types.Content(parts=[text("Fine.")])),
        )
    )
    assert told[-1] == "finish stop"


def test_an_error_on_a_partial_event_is_not_the_end() -> None:
    reply = [model_says(error_code="SAFETY", partial=True), model_says("Fine.", finish_reason=STOP)]
    assert read(speaker(reply))[-1] == "finish stop"


def test_an_aborted_run_closes_what_is_open() -> None:
    translator = Translator(root_author="root")
    chunks = translator.start("m1")
    chunks += translator.feed(Event(author="root", partial=True, content=types.Content(parts=[text("It is")])))
    assert lines(wire([*chunks, *translator.abort()])) == [
        *step("text-start t1", "text-delta t1 It is", "text-end t1"),
        "abort",
    ]


# -- finish reasons ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("BLOCKLIST", "content-filter"),
        ("PROHIBITED_CONTENT", "content-filter"),
        ("SPII", "content-filter"),
        ("RECITATION", "content-filter"),
        ("IMAGE_SAFETY", "content-filter"),
        ("IMAGE_PROHIBITED_CONTENT", "content-filter"),
        ("IMAGE_RECITATION", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("OTHER", "other"),
        ("LANGUAGE", "other"),
    ],
)
def test_the_model_s_reason_is_the_reason_of_the_finish_and_never_an_error(reason: str, told: str) -> None:
    """For all but STOP ADK sets an error code beside the content."""
    agent_run = run(gemini(gemini_says("It is "), gemini_says("so.", finish_reason=types.FinishReason(reason))))
    assert lines(translate(agent_run)) == [
        *step("text-start t1", "text-delta t1 It is so.", "text-end t1"),
        f"finish {told}",
    ]


def test_a_blocked_prompt_is_a_content_filter() -> None:
    feedback = types.GenerateContentResponsePromptFeedback(block_reason=types.BlockedReason.JAILBREAK)
    blocked = types.GenerateContentResponse(prompt_feedback=feedback)
    assert read(gemini(blocked)) == ["finish content-filter"]


@releases.empty_answers
def test_thoughts_without_an_answer_finish_for_another_reason() -> None:
    agent_run = run(gemini(gemini_says(thought("Hm.")), gemini_says(finish_reason=STOP)))
    assert "MODEL_RETURNED_NO_CONTENT" in {event.error_code for event in agent_run.events}
    assert lines(translate(agent_run))[-1] == "finish other"


def test_a_run_without_events_finishes() -> None:
    assert lines(translate(AgentRun("root", []))) == ["finish stop"]


def test_a_reason_that_adk_does_not_know_yet_is_another_reason() -> None:
    with pytest.warns(UserWarning, match="BRAND_NEW"):
        reason = types.FinishReason("BRAND_NEW")
    assert read(speaker([model_says("So.", finish_reason=reason)]))[-1] == "finish other"


# -- usage ------------------------------------------------------------------------------------------------------------


def used(prompt: int, answer: int) -> types.GenerateContentResponseUsageMetadata:
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=prompt, candidates_token_count=answer, total_token_count=prompt + answer
    )


def test_usage_is_the_sum_of_the_model_calls_and_counts_no_partial_event() -> None:
    def weather() -> dict[str, str]:
        """The weather."""
        return {"sky": "clear"}

    script = [
        [
            model_says("I ", partial=True, usage_metadata=used(10, 1)),
            model_says("I look.", called("c1", "weather"), usage_metadata=used(10, 5)),
        ],
        [model_says("Clear.", usage_metadata=used(20, 2), model_version="scripted-2", finish_reason=STOP)],
    ]
    finish = translate(run(speaker(*script, tools=[weather])))[-1]
    assert finish["messageMetadata"] == {
        "usage": {"inputTokens": 30, "outputTokens": 7, "totalTokens": 37},
        "modelVersion": "scripted-2",
    }


# -- sources ----------------------------------------------------------------------------------------------------------


def grounding() -> types.GroundingMetadata:
    page = types.GroundingChunkWeb(uri="https://sky.example", title="Sky")
    support = types.GroundingSupport(
        segment=types.Segment(start_index=0, end_index=4, text="Blue"), grounding_chunk_indices=[0]
    )
    return types.GroundingMetadata(grounding_chunks=[types.GroundingChunk(web=page)], grounding_supports=[support])


CITATION = {
    "source": {
        "type": "source",
        "sourceType": "url",
        "id": "source-1",
        "url": "https://sky.example",
        "title": "Sky",
    },
    "startIndex": 0,
    "endIndex": 4,
    "citedText": "Blue",
}


@pytest.mark.parametrize(
    ("version", "text_end"),
    [
        (6, {"providerMetadata": {"adk": {"citations": [CITATION]}}}),
        (7, {"citations": [CITATION]}),
    ],
)
def test_sources_follow_the_text_and_citations_end_it(version: Any, text_end: dict[str, Any]) -> None:
    agent_run = run(gemini(gemini_says("Blue."), gemini_says(finish_reason=STOP, grounding=grounding())))
    written = translate(agent_run, sdk_version=version)
    assert written[-4:-2] == [
        {"type": "text-end", "id": "t1", **text_end},
        {"type": "source-url", "sourceId": "source-1", "url": "https://sky.example", "title": "Sky"},
    ]


def test_a_source_of_two_model_calls_is_told_once() -> None:
    events = [
        Event(author="root", content=types.Content(parts=[text("Blue.")]), grounding_metadata=grounding())
        for _ in range(2)
    ]
    assert len(of_type(translate_events(*events), "source-url")) == 1


def test_citations_survive_a_call_after_the_text() -> None:
    def weather() -> dict[str, str]:
        """The weather."""
        return {"sky": "clear"}

    script = [[model_says("Blue.", called("c1", "weather"), grounding_metadata=grounding())], "Done."]
    written = translate(run(speaker(*script, tools=[weather])), sdk_version=7)
    assert of_type(written, "text-end")[0].get("citations") == [CITATION]


def test_citations_of_the_model_are_sources() -> None:
    cited = types.CitationMetadata(citations=[types.Citation(uri="https://book.example", title="Book")])
    told = read(gemini(gemini_says("Words.", finish_reason=STOP, citations=cited)))
    assert "source-url source-1 https://book.example Book" in told


# -- actions ----------------------------------------------------------------------------------------------------------


def remember(tool_context: ToolContext) -> dict[str, bool]:
    """Remembers."""
    tool_context.state.update({"cart": ["tea"], "card_number": "4111", "temp:draft": "x"})
    return {"ok": True}


def test_state_is_not_sent_unless_asked_for() -> None:
    told = read(speaker([called("c1", "remember")], "Done.", tools=[remember]))
    assert [line for line in told if line.startswith("data-")] == []


def test_only_the_named_keys_of_the_state_are_sent() -> None:
    told = read(speaker([called("c1", "remember")], "Done.", tools=[remember]), send_state=("cart", "name"))
    assert [line for line in told if line.startswith("data-")] == ['data-adk-state {"cart": ["tea"]}']


def test_state_of_other_keys_alone_sends_nothing() -> None:
    told = read(speaker([called("c1", "remember")], "Done.", tools=[remember]), send_state=("name",))
    assert [line for line in told if line.startswith("data-")] == []


def test_what_an_agent_writes_under_its_output_key_counts_as_state() -> None:
    told = read(speaker("Tea.", output_key="wish"), send_state=("wish",))
    assert [line for line in told if line.startswith("data-")] == ['data-adk-state {"wish": "Tea."}']


class Place(BaseModel):
    city: str


def test_a_structured_answer_is_sent_as_data_and_as_the_text_that_adk_makes_of_it() -> None:
    def weather() -> dict[str, str]:
        """The weather."""
        return {"sky": "clear"}

    agent = speaker([called("c1", "set_model_response", city="Oslo")], tools=[weather], output_schema=Place)
    told = read(agent)
    assert [line for line in told if line.startswith("tool-")] == []
    assert 'data-adk-output {"city": "Oslo"}' in told
    assert [line for line in told if line.startswith("text-delta")] == ['text-delta t1 {"city": "Oslo"}']


def test_a_widget_is_data_under_its_own_id() -> None:
    def show(tool_context: ToolContext) -> dict[str, bool]:
        """Shows a widget."""
        tool_context.render_ui_widget(UiWidget(id="w1", provider="mcp", payload={"uri": "ui://clock"}))
        return {"shown": True}

    told = read(speaker([called("c1", "show")], "Done.", tools=[show]))
    assert 'data-adk-widget {"id": "w1", "provider": "mcp", "payload": {"uri": "ui://clock"}} w1' in told


@pytest.mark.parametrize(
    "actions",
    [
        EventActions(end_of_agent=True),
        EventActions(agent_state={"current": "writer"}),
        EventActions(skip_summarization=True),
        EventActions(escalate=True),
    ],
)
def test_bookkeeping_of_adk_sends_nothing(actions: EventActions) -> None:
    assert lines(translate_events(Event(author="root", actions=actions))) == ["finish stop"]


def test_actions_of_partial_events_are_not_sent() -> None:
    """Partial events share one object of actions, which fills while they are under way."""
    early = Event(author="root", partial=True, actions=EventActions(state_delta={"cart": 1}, artifact_delta={"a": 0}))
    assert lines(translate_events(early, send_state=("cart",))) == ["finish stop"]


def test_an_api_error_of_the_model_s_service_says_no_more_than_that_it_is_busy() -> None:
    busy = genai_errors.ClientError(429, {"error": {"message": "quota of project 7", "status": "RESOURCE_EXHAUSTED"}})
    failed = run(speaker(busy))
    assert lines(translate(failed)) == [f"error {public_failure_text('429')}"]
    assert public_failure_text("429") != FAILED


def test_custom_metadata_and_ids_of_adk_are_not_sent() -> None:
    agent_run = run(speaker("Fine."), custom_metadata={"trace": "hidden"})
    assert agent_run.events[0].custom_metadata
    written = str(translate(agent_run))
    assert "hidden" not in written
    assert agent_run.events[0].invocation_id not in written


def test_a_response_that_is_only_an_llm_response_field_sends_nothing() -> None:
    told = read(speaker([LlmResponse(turn_complete=True), model_says("Fine.")]))
    assert told == [*step("text-start t1", "text-delta t1 Fine.", "text-end t1"), "finish stop"]
