"""ADK's own Gemini class behind a whole bridge, from the bytes that Google sends to the chunks that a client reads."""

import asyncio
import json
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.genai import types

from adk.agent_runs import lines, step
from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import Answer, ChatClient
from protocol.segment_checker import check_segment
from support import releases
from support.apps import app_of, user_of
from support.fake_gemini import (
    CUT,
    INTERNAL_ERROR,
    QUOTA_EXCEEDED,
    Chunk,
    FakeGemini,
    HttpError,
    Turn,
    call,
    chunk,
    finish,
    streamed_call,
    text,
    thought,
    together,
)

BUSY = "The model is busy. Try again in a moment."
FAILED = "The agent could not answer. Try again."
END = 'finish stop {"usage": {"inputTokens": 7, "outputTokens": 11, "totalTokens": 18}, "modelVersion": "gemini-fake"}'
END_OF_TWO = END.replace("7", "14").replace("11", "22").replace("18", "36")
TOLD = step("text-start t1", "text-delta t1 Sunny.", "text-end t1")
SUNNY: Turn = [text("Sunny."), finish()]
STREAM_ARGUMENTS = types.GenerateContentConfig.model_validate(
    {"tool_config": {"function_calling_config": {"stream_function_call_arguments": True}}}
)


def forecast(
    city: str, days: int = 1, hourly: bool = False, place: dict[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Stands for any tool; the answer shows which arguments arrived."""
    return {"of": {"city": city, "days": days, "hourly": hourly, "place": place}}


def conversation(model: Gemini, questions: int = 1, **options: Any) -> list[Answer]:
    """One chat with as many turns as there are questions. No answer may break a rule of the stream."""

    async def talk() -> list[Answer]:
        agent = LlmAgent(name="helper", model=model, tools=[forecast], **options)
        client = ChatClient(app_of(ChatBridge(agent, user_id=user_of)))
        return [await client.send(f"Question {number}") for number in range(1, questions + 1)]

    answers = asyncio.run(talk())
    for answer in answers:
        assert check_segment(answer.chunks, 6) == set(), "a call is left without a result"
        assert "any-key" not in answer.raw
    return answers


def ask(*turns: Turn) -> Answer:
    with FakeGemini(turns) as gemini:
        return conversation(gemini.model())[0]


def ask_for_streamed_arguments(*turns: Turn) -> Answer:
    with FakeGemini(turns) as gemini:
        return conversation(gemini.vertex_model(), generate_content_config=STREAM_ARGUMENTS)[0]


def outputs(answer: Answer) -> list[Any]:
    return [chunk["output"]["of"] for chunk in answer.of_type("tool-output-available")]


def previews(answer: Answer) -> list[tuple[list[str], str]]:
    """Of each call the pieces of its arguments, and the whole as a browser would write it down."""
    pieces = answer.of_type("tool-input-delta")
    return [
        (
            [piece["inputTextDelta"] for piece in pieces if piece["toolCallId"] == whole["toolCallId"]],
            json.dumps(_with_one_kind_of_number(whole["input"]), ensure_ascii=False, separators=(",", ":")),
        )
        for whole in answer.of_type("tool-input-available")
    ]


def _with_one_kind_of_number(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_one_kind_of_number(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_one_kind_of_number(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# -- answers ----------------------------------------------------------------------------------------------------------


def test_text_is_one_part_with_a_delta_for_each_of_geminis_chunks() -> None:
    answer = ask([text("Hel"), text("lo "), text("there."), finish()])
    assert [chunk["delta"] for chunk in answer.of_type("text-delta")] == ["Hel", "lo ", "there."]
    assert lines(answer.chunks) == [*step("text-start t1", "text-delta t1 Hello there.", "text-end t1"), END]


def test_thoughts_are_reasoning_that_ends_before_the_text_begins() -> None:
    answer = ask([thought("Let me "), thought("see."), text("Sun"), text("ny."), finish()])
    assert lines(answer.chunks) == [
        *step(
            "reasoning-start r1",
            "reasoning-delta r1 Let me see.",
            "reasoning-end r1",
            "text-start t2",
            "text-delta t2 Sunny.",
            "text-end t2",
        ),
        END,
    ]


def test_a_tool_call_its_result_and_the_answer_are_two_steps() -> None:
    answer = ask([call("forecast", {"city": "Oslo"}, call_id="c1"), finish()], SUNNY)
    assert lines(answer.chunks) == [
        *step(
            "tool-input-start c1 forecast",
            'tool-input-available c1 forecast {"city": "Oslo"}',
            'tool-output-available c1 {"of": {"city": "Oslo", "days": 1, "hourly": false, "place": null}}',
        ),
        *TOLD,
        END_OF_TWO,
    ]


def test_a_call_to_which_gemini_gave_no_id_has_one_for_the_client() -> None:
    answer = ask([text("Let me see."), call("forecast", {"city": "Oslo"}), finish()], SUNNY)
    ids = {chunk["toolCallId"] for chunk in answer.chunks if "toolCallId" in chunk}
    assert len(ids) == 1
    assert all(ids)
    assert answer.types == [
        "start",
        *step("text-start", "text-delta", "text-end", "tool-input-start", "tool-input-available",
              "tool-output-available"),
        *step("text-start", "text-delta", "text-end"),
        "finish",
    ]  # fmt: skip


@pytest.mark.parametrize("in_one_chunk", [True, False])
def test_parallel_calls_each_have_their_own_part_and_result(in_one_chunk: bool) -> None:
    calls = [call("forecast", {"city": city}) for city in ("Oslo", "Rome", "Rome")]
    answer = ask([together(*calls), finish()] if in_one_chunk else [*calls, finish()], SUNNY)
    ids = [chunk["toolCallId"] for chunk in answer.of_type("tool-input-available")]
    assert len(set(ids)) == 3
    assert [chunk["toolCallId"] for chunk in answer.of_type("tool-output-available")] == ids
    assert [output["city"] for output in outputs(answer)] == ["Oslo", "Rome", "Rome"]
    assert answer.text == "Sunny."


# -- arguments that stream --------------------------------------------------------------------------------------------

OF_TOKYO = streamed_call(
    "forecast",
    [
        ("$.city", "To", True),
        ("$.city", "kyo", True),
        ("$.city", "", False),
        ("$.days", 3, False),
        ("$.hourly", True, False),
        ("$.place.latitude", 35.5, False),
        ("$.place.names[0]", "東", True),
        ("$.place.names[0]", '"京"', True),
        ("$.place.names[0]", "", False),
        ("$.place.height", None, False),
    ],
)


@releases.streamed_arguments
def test_streamed_arguments_of_every_kind_are_shown_as_the_json_that_they_become() -> None:
    answer = ask_for_streamed_arguments([*OF_TOKYO, finish()], SUNNY)
    ((pieces, whole),) = previews(answer)
    assert len(pieces) >= 8
    assert "".join(pieces) == (
        '{"city":"Tokyo","days":3,"hourly":true,"place":{"latitude":35.5,"names":["東\\"京\\""],"height":null'
    )
    assert whole.startswith("".join(pieces))
    place = {"latitude": 35.5, "names": ['東"京"'], "height": None}
    assert outputs(answer) == [{"city": "Tokyo", "days": 3, "hourly": True, "place": place}]
    assert answer.types == [
        "start",
        *step("tool-input-start", "tool-input-delta", "tool-input-available", "tool-output-available"),
        *step("text-start", "text-delta", "text-end"),
        "finish",
    ]


@releases.streamed_arguments
@pytest.mark.parametrize("closed_by_last_fragment", [True, False])
def test_several_streamed_calls_keep_their_arguments_apart(closed_by_last_fragment: bool) -> None:
    calls = [
        one
        for city, days in (("Oslo", 2), ("Rome", 4))
        for one in streamed_call(
            "forecast",
            [("$.city", city, True), ("$.city", "", False), ("$.days", days, False)],
            closed_by_last_fragment=closed_by_last_fragment,
        )
    ]
    answer = ask_for_streamed_arguments([thought("Two."), *calls, finish()], SUNNY)
    assert ["".join(pieces) for pieces, _ in previews(answer)] == ['{"city":"Oslo","days":2', '{"city":"Rome","days":4']
    assert all(whole.startswith("".join(pieces)) for pieces, whole in previews(answer))
    assert [(output["city"], output["days"]) for output in outputs(answer)] == [("Oslo", 2), ("Rome", 4)]


@releases.streamed_arguments
def test_a_streamed_call_that_gemini_never_closes_runs_with_what_arrived() -> None:
    answer = ask_for_streamed_arguments([*streamed_call("forecast", [("$.city", "Oslo", True)])[:-1], finish()], SUNNY)
    assert previews(answer) == [(['{"city":"Oslo'], '{"city":"Oslo"}')]
    assert outputs(answer)[0]["city"] == "Oslo"


# -- what comes with an answer ----------------------------------------------------------------------------------------


def test_usage_is_the_sum_of_the_model_calls_with_thoughts_as_output() -> None:
    used = {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "totalTokenCount": 17}
    calling = [{**one, "usageMetadata": used} for one in (call("forecast", {"city": "Oslo"}), finish())]
    answer = ask(calling, SUNNY)
    assert answer.chunks[-1]["messageMetadata"] == {
        "usage": {"inputTokens": 17, "outputTokens": 18, "totalTokens": 35, "reasoningTokens": 5},
        "modelVersion": "gemini-fake",
    }


def test_grounding_is_told_as_one_source_for_each_page() -> None:
    pages = [{"web": {"uri": f"https://weather.example/{city}", "title": city}} for city in ("oslo", "rome", "oslo")]
    grounding = {
        "groundingChunks": pages,
        "groundingSupports": [{"segment": {"endIndex": 6, "text": "Sunny."}, "groundingChunkIndices": [0]}],
    }
    answer = ask([text("Sunny."), finish(groundingMetadata=grounding)])
    assert [(source["sourceId"], source["url"], source["title"]) for source in answer.of_type("source-url")] == [
        ("source-1", "https://weather.example/oslo", "oslo"),
        ("source-2", "https://weather.example/rome", "rome"),
    ]
    (end,) = answer.of_type("text-end")
    (citation,) = end["providerMetadata"]["adk"]["citations"]
    assert (citation["startIndex"], citation["endIndex"]) == (0, 6)
    assert citation["source"]["url"] == "https://weather.example/oslo"


@pytest.mark.parametrize(
    ("last_chunk", "reason"),
    [
        pytest.param(finish("MAX_TOKENS"), "length", id="MAX_TOKENS"),
        pytest.param(finish("SAFETY"), "content-filter", id="SAFETY"),
        pytest.param(chunk(finishReason="SAFETY"), "content-filter", id="SAFETY without content"),
    ],
)
def test_an_answer_that_ends_early_is_no_error_but_says_why_it_ended(last_chunk: Chunk, reason: str) -> None:
    answer = ask([text("Hel"), text("lo"), last_chunk])
    assert answer.of_type("error") == []
    assert answer.text == "Hello"
    assert answer.chunks[-1]["finishReason"] == reason


def test_a_prompt_that_gemini_blocks_is_answered_by_nothing_but_the_reason() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": "gemini-fake"}
    answer = ask([blocked])
    assert (answer.text, answer.of_type("error")) == ("", [])
    assert answer.chunks[-1]["finishReason"] == "content-filter"


# -- failures ---------------------------------------------------------------------------------------------------------

WORDS = [text("Half an "), text("answer")]
CALLING = [call("forecast", {"city": "Oslo"}, call_id="c1"), finish()]
HALF_SAID = ["start", *step("text-start", "text-delta", "text-end"), "error"]
ANSWERED_CALL = step("tool-input-start", "tool-input-available", "tool-output-available")


def in_mid_stream(refusal: HttpError) -> Turn:
    return [*WORDS, refusal.body]


@pytest.mark.parametrize(
    ("turns", "public_text", "kinds"),
    [
        pytest.param([QUOTA_EXCEEDED], BUSY, ["start", "error"], id="429"),
        pytest.param([in_mid_stream(QUOTA_EXCEEDED)], BUSY, HALF_SAID, id="429 in mid-stream"),
        pytest.param([CALLING, QUOTA_EXCEEDED], BUSY, ["start", *ANSWERED_CALL, "error"], id="429 after a tool"),
        pytest.param([INTERNAL_ERROR], FAILED, ["start", "error"], id="500"),
        pytest.param([in_mid_stream(INTERNAL_ERROR)], FAILED, HALF_SAID, id="500 in mid-stream"),
        pytest.param([CALLING, INTERNAL_ERROR], FAILED, ["start", *ANSWERED_CALL, "error"], id="500 after a tool"),
        pytest.param([[CUT]], FAILED, ["start", "error"], id="cut at once"),
        pytest.param([[*WORDS, CUT]], FAILED, HALF_SAID, id="cut in text"),
        pytest.param(
            [[thought("Hm"), CUT]],
            FAILED,
            ["start", *step("reasoning-start", "reasoning-delta", "reasoning-end"), "error"],
            id="cut in a thought",
        ),
        pytest.param(
            [[*OF_TOKYO[:5], CUT]],
            FAILED,
            ["start", *step("tool-input-start", "tool-input-delta", "tool-input-error"), "error"],
            id="cut in arguments",
            marks=releases.streamed_arguments,
        ),
        pytest.param([CALLING, [CUT]], FAILED, ["start", *ANSWERED_CALL, "error"], id="cut after a tool"),
    ],
)
def test_a_failure_closes_what_is_open_and_is_told_once_and_the_next_turn_works(
    turns: list[Turn], public_text: str, kinds: list[str]
) -> None:
    with FakeGemini([*turns, SUNNY]) as gemini:
        failed, next_answer = conversation(gemini.model(), questions=2)
    assert failed.types == kinds
    assert [chunk["errorText"] for chunk in failed.of_type("error")] == [public_text]
    for private in (
        "RESOURCE_EXHAUSTED", "INTERNAL", "quota", "internal error", "candid", "Exception",
        "RemoteProtocolError", "incomplete", "127.0.0.1",
    ):  # fmt: skip
        assert private not in failed.raw
    assert lines(next_answer.chunks) == [*TOLD, END]
    asked = [part["text"] for content in gemini.requests[-1]["contents"] for part in content["parts"] if "text" in part]
    assert asked[0] == "Question 1"
    assert asked[-1] == "Question 2"
