"""What ADK makes of Gemini's wire format: the events that everything else in this project builds on."""

import asyncio
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from google.adk.agents.run_config import StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.genai import types
from google.genai.errors import ClientError

from support import releases
from support.fake_gemini import (
    USAGE,
    FakeGemini,
    call,
    chunk,
    finish,
    streamed_call,
    text,
    thought,
    together,
)
from support.gemini_runs import EMPTY_TEXT, STREAMED_FORECAST, part, parts, run

STREAM_ARGUMENTS = types.GenerateContentConfig.model_validate(
    {"tool_config": {"function_calling_config": {"stream_function_call_arguments": True}}}
)


def test_text_arrives_in_partials_and_then_whole():
    with FakeGemini([[text("Hel"), text("lo"), finish()]]) as gemini:
        result = run(gemini.model())

    assert result.error is None
    assert [part(event) for event in result.partials] == [{"text": "Hel"}, {"text": "lo"}, EMPTY_TEXT]
    (whole,) = result.wholes
    assert whole.partial is False
    # The empty text that closes Gemini's stream stays behind as a part of its own.
    assert parts(whole) == [{"text": "Hello"}, EMPTY_TEXT]
    assert {event.id for event in result.events} == {whole.id}
    assert [event.finish_reason for event in result.events] == [None, None, "STOP", "STOP"]
    for event in result.events:  # so whoever adds usage up must leave the partials out
        assert event.usage_metadata is not None
        assert event.usage_metadata.total_token_count == USAGE["totalTokenCount"]
    assert result.stored == [whole]


def test_thoughts_and_text_stay_apart_in_the_whole():
    with FakeGemini([[thought("Hm"), thought("m."), text("Hel"), text("lo"), finish()]]) as gemini:
        result = run(gemini.model())

    assert [part(event) for event in result.partials] == [
        {"text": "Hm", "thought": True},
        {"text": "m.", "thought": True},
        {"text": "Hel"},
        {"text": "lo"},
        EMPTY_TEXT,
    ]
    assert parts(result.wholes[0]) == [{"text": "Hmm.", "thought": True}, {"text": "Hello"}, EMPTY_TEXT]


def test_tool_call_its_result_and_the_answer_to_it():
    turns = [[text("Let me see."), call("forecast", {"city": "Oslo"}), finish()], [text("Sunny."), finish()]]
    with FakeGemini(turns) as gemini:
        result = run(gemini.model())

    asked, answered, told = result.wholes
    (call_id,) = [function_call.id for function_call in asked.get_function_calls()]
    assert call_id is not None
    assert call_id.startswith("adk-")
    the_call = {"function_call": {"id": call_id, "name": "forecast", "args": {"city": "Oslo"}}}
    # A call that came whole has its final id in the partial already.
    assert [part(event) for event in result.partials[:3]] == [{"text": "Let me see."}, the_call, EMPTY_TEXT]
    assert parts(asked) == [{"text": "Let me see."}, the_call, EMPTY_TEXT]
    response = {"result": "('Oslo', 1, False, None)"}
    assert part(answered) == {"function_response": {"id": call_id, "name": "forecast", "response": response}}
    assert answered.partial is None
    assert parts(told) == [{"text": "Sunny."}, EMPTY_TEXT]
    assert len({asked.id, answered.id, told.id}) == 3
    # Gemini gave no id, so it gets none back.
    assert gemini.requests[1]["contents"][2]["parts"] == [
        {"functionResponse": {"name": "forecast", "response": response}}
    ]


@pytest.mark.parametrize("in_one_chunk", [True, False])
def test_parallel_calls_are_answered_by_one_event_in_their_order(in_one_chunk: bool):
    calls = [call("forecast", {"city": city}) for city in ("Oslo", "Rome", "Rome")]
    turn = [together(*calls)] if in_one_chunk else calls
    with FakeGemini([[*turn, finish()], [text("Sunny."), finish()]]) as gemini:
        result = run(gemini.model())

    asked, answered, _ = result.wholes
    ids = [function_call.id for function_call in asked.get_function_calls()]
    assert len(set(ids)) == 3
    assert [response.id for response in answered.get_function_responses()] == ids
    from_partials = [found for event in result.partials for found in event.get_function_calls()]
    assert from_partials == asked.get_function_calls()
    assert [found.args for found in from_partials] == [{"city": "Oslo"}, {"city": "Rome"}, {"city": "Rome"}]


@releases.streamed_arguments
@pytest.mark.parametrize("asked_for", [True, False])
def test_streamed_arguments_keep_one_id_and_name_only_the_first_partial(asked_for: bool):
    with FakeGemini([[*STREAMED_FORECAST, finish()], [text("Sunny."), finish()]]) as gemini:
        result = run(gemini.vertex_model(), STREAM_ARGUMENTS) if asked_for else run(gemini.model())

    asked, answered, _ = result.wholes
    (whole_call,) = asked.get_function_calls()
    assert whole_call.id is not None
    assert whole_call.id.startswith("adk-")

    def fragment(**partial_arg: Any) -> dict[str, Any]:
        return {"function_call": {"id": whole_call.id, "partial_args": [partial_arg], "will_continue": True}}

    assert [part(event) for event in result.partials[:12]] == [
        {"function_call": {"id": whole_call.id, "name": "forecast", "will_continue": True}},
        fragment(json_path="$.city", string_value="To", will_continue=True),
        fragment(json_path="$.city", string_value="kyo", will_continue=True),
        fragment(json_path="$.city", string_value=""),
        fragment(json_path="$.days", number_value=3.0),
        fragment(json_path="$.hourly", bool_value=True),
        fragment(json_path="$.place.latitude", number_value=35.5),
        fragment(json_path="$.place.names[0]", string_value="東京", will_continue=True),
        fragment(json_path="$.place.names[0]", string_value=""),
        fragment(json_path="$.place.height", null_value="NULL_VALUE"),
        {"function_call": {"id": whole_call.id}},
        EMPTY_TEXT,
    ]
    place = {"latitude": 35.5, "names": ["東京"], "height": None}
    assert whole_call.model_dump(exclude_none=True) == {
        "id": whole_call.id,
        "name": "forecast",
        "args": {"city": "Tokyo", "days": 3.0, "hourly": True, "place": place},
    }
    # Gemini streams every number as a double; the tool gets what its signature says.
    assert isinstance((whole_call.args or {})["days"], float)
    assert answered.get_function_responses()[0].response == {"result": repr(("Tokyo", 3, True, place))}


@releases.streamed_arguments
@pytest.mark.parametrize("closed_by_last_fragment", [True, False])
def test_streamed_calls_one_after_the_other_have_ids_of_their_own(closed_by_last_fragment: bool):
    calls = [
        one
        for city, days in (("Oslo", 2), ("Rome", 4))
        for one in streamed_call(
            "forecast",
            [("$.city", city, True), ("$.city", "", False), ("$.days", days, False)],
            closed_by_last_fragment=closed_by_last_fragment,
        )
    ]
    with FakeGemini([[thought("Two."), *calls, finish()], [text("Sunny."), finish()]]) as gemini:
        result = run(gemini.vertex_model(), STREAM_ARGUMENTS)

    oslo, rome = result.wholes[0].get_function_calls()
    assert (oslo.args, rome.args) == ({"city": "Oslo", "days": 2.0}, {"city": "Rome", "days": 4.0})
    assert oslo.id != rome.id
    ids = [found.id for event in result.partials for found in event.get_function_calls()]
    chunks_per_call = 4 if closed_by_last_fragment else 5
    assert ids == [oslo.id] * chunks_per_call + [rome.id] * chunks_per_call


@releases.streamed_arguments
def test_streamed_call_that_gemini_never_closes_is_closed_by_the_end_of_the_stream():
    opened = streamed_call("forecast", [("$.city", "Oslo", True)])[:-1]
    # Gemini also announces more without saying anything.
    announcement = chunk({"functionCall": {"willContinue": True}})
    with FakeGemini([[*opened, announcement, finish()], [text("Sunny."), finish()]]) as gemini:
        result = run(gemini.vertex_model(), STREAM_ARGUMENTS)

    (whole_call,) = result.wholes[0].get_function_calls()
    assert whole_call.args == {"city": "Oslo"}
    assert part(result.partials[2]) == {"function_call": {"id": whole_call.id, "will_continue": True}}


def test_only_vertex_may_be_asked_for_streamed_arguments():
    with FakeGemini([[text("Sunny."), finish()]]) as gemini:
        refused = run(gemini.model(), STREAM_ARGUMENTS)
        assert gemini.requests == []
        run(gemini.vertex_model(), STREAM_ARGUMENTS)

    assert isinstance(refused.error, ValueError)
    assert [event.error_code for event in refused.events] == ["ValueError"]
    (request,) = gemini.requests
    assert request["toolConfig"]["functionCallingConfig"] == {"stream_function_call_arguments": True}


def test_grounding_is_on_the_partial_that_brought_it_and_on_the_whole():
    grounding = {
        "webSearchQueries": ["weather oslo"],
        "groundingChunks": [{"web": {"uri": "https://weather.example/oslo", "title": "Oslo"}}],
        "groundingSupports": [{"segment": {"endIndex": 6, "text": "Sunny."}, "groundingChunkIndices": [0]}],
    }
    with FakeGemini([[text("Sunny."), finish(groundingMetadata=grounding)]]) as gemini:
        result = run(gemini.model())

    before, brought_it, whole = result.events
    assert before.grounding_metadata is None
    assert brought_it.grounding_metadata == whole.grounding_metadata
    assert whole.grounding_metadata is not None
    assert whole.grounding_metadata.model_dump(by_alias=True, exclude_none=True) == grounding


def test_answers_that_were_not_streamed_are_one_event_each_without_a_partial_flag():
    turns = [
        [thought("Hm"), thought("m."), call("forecast", {"city": "Oslo"}, call_id="call-1"), finish()],
        [text("Sun"), text("ny."), finish()],
    ]
    with FakeGemini(turns) as gemini:
        result = run(gemini.model(), mode=StreamingMode.NONE)

    asked, answered, told = result.events
    the_call = {"id": "call-1", "name": "forecast", "args": {"city": "Oslo"}}
    assert parts(asked) == [{"text": "Hmm.", "thought": True}, {"function_call": the_call}]
    assert parts(told) == [{"text": "Sunny."}]
    for event in (asked, told):
        assert (event.partial, event.finish_reason) == (None, "STOP")
    # An id that Gemini gave is kept, and goes back to it.
    assert answered.get_function_responses()[0].id == "call-1"
    assert gemini.requests[1]["contents"][2]["parts"][0]["functionResponse"]["id"] == "call-1"


def test_request_beyond_the_script_is_refused():
    with FakeGemini([]) as gemini:
        result = run(gemini.model())

    assert isinstance(result.error, ClientError)
    assert "no turn for request 1" in str(result.error)


def test_client_that_trusts_only_the_public_authorities_is_not_served(capfd: pytest.CaptureFixture[str]):
    with FakeGemini([[text("Hello"), finish()]]) as gemini:
        model = gemini.model()
        assert model.client_kwargs is not None
        del model.client_kwargs["http_options"]
        result = run(model)

    assert isinstance(result.error, httpx.ConnectError)
    assert gemini.requests == []
    assert capfd.readouterr().err == ""


def test_client_that_leaves_in_the_middle_does_not_disturb_the_next_one(capfd: pytest.CaptureFixture[str]):
    async def leave_after_the_first_delta(model: Gemini) -> None:
        request = LlmRequest(model=model.model, contents=[types.UserContent("Hello")])
        async with aclosing(model.generate_content_async(request, stream=True)) as responses:
            async for response in responses:
                assert response.partial
                return

    more_than_any_socket_buffers = [text("word " * 2000)] * 2000
    with FakeGemini([more_than_any_socket_buffers, [text("Hello"), finish()]]) as gemini:
        asyncio.run(leave_after_the_first_delta(gemini.model()))
        result = run(gemini.model())

    assert parts(result.wholes[0]) == [{"text": "Hello"}, EMPTY_TEXT]
    assert capfd.readouterr().err == ""
