"""Text and thoughts: every word once, none lost, in every form in which ADK brings them."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import StreamingMode
from google.adk.code_executors import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionResult
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.genai import types

from adk.agent_runs import (
    STOP,
    GeminiStream,
    called,
    gemini_says,
    lines,
    model_says,
    read,
    run,
    step,
    texts,
    translate,
)
from adk_stream_protocol.testing import ScriptedModel, text, thought

PNG = types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png"))
PNG_LINE = "file data:image/png;base64,iVBORw== image/png"


def speaker(*script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedModel(script), **fields)


def weather() -> dict[str, str]:
    """The weather."""
    return {"sky": "clear"}


# -- pieces, then the whole -------------------------------------------------------------------------------------------


def test_streamed_pieces_are_sent_as_they_come_and_not_again_with_the_whole() -> None:
    written = translate(run(speaker("It is sunny.")))
    assert [chunk.get("delta") for chunk in written if chunk["type"] == "text-delta"] == ["It ", "is ", "sunny."]
    assert lines(written) == [
        *step("text-start t1", "text-delta t1 It is sunny.", "text-end t1"),
        "finish stop",
    ]


def test_a_model_that_does_not_stream_is_sent_whole() -> None:
    only_whole = run(speaker("It is sunny."), streaming_mode=StreamingMode.NONE)
    assert [event.partial for event in only_whole.events if event.content] == [None]
    assert lines(translate(only_whole)) == [
        *step("text-start t1", "text-delta t1 It is sunny.", "text-end t1"),
        "finish stop",
    ]


def test_what_the_whole_has_beyond_the_pieces_follows_them() -> None:
    assert read(speaker([model_says("It is ", partial=True), model_says("It is sunny.", partial=False)])) == [
        *step("text-start t1", "text-delta t1 It is sunny.", "text-end t1"),
        "finish stop",
    ]


def test_a_whole_that_is_shorter_than_the_pieces_adds_nothing() -> None:
    assert read(speaker([model_says("It is sunny.  ", partial=True), model_says("It is sunny.")])) == [
        *step("text-start t1", "text-delta t1 It is sunny.  ", "text-end t1"),
        "finish stop",
    ]


def test_thoughts_become_reasoning() -> None:
    assert read(speaker([thought("Look outside."), text("It is sunny.")])) == [
        *step(
            "reasoning-start r1",
            "reasoning-delta r1 Look outside.",
            "reasoning-end r1",
            "text-start t2",
            "text-delta t2 It is sunny.",
            "text-end t2",
        ),
        "finish stop",
    ]


def test_thoughts_between_texts_keep_their_place() -> None:
    parts = [thought("First."), text("One. "), thought("Second."), text("Two.")]
    for mode in (StreamingMode.SSE, StreamingMode.NONE):
        assert lines(translate(run(speaker(parts), streaming_mode=mode))) == [
            *step(
                "reasoning-start r1",
                "reasoning-delta r1 First.",
                "reasoning-end r1",
                "text-start t2",
                "text-delta t2 One. ",
                "text-end t2",
                "reasoning-start r3",
                "reasoning-delta r3 Second.",
                "reasoning-end r3",
                "text-start t4",
                "text-delta t4 Two.",
                "text-end t4",
            ),
            "finish stop",
        ]


def test_a_thought_that_only_the_whole_has_is_not_lost() -> None:
    written = translate(run(speaker([model_says("Sunny.", partial=True), model_says(thought("Hm."), "Sunny.")])))
    assert (texts(written, "reasoning"), texts(written)) == ("Hm.", "Sunny.")


def test_a_part_that_holds_only_a_signature_sends_nothing() -> None:
    signature = types.Part(text="", thought_signature=b"opaque")
    assert read(speaker([model_says("Sunny.", partial=True), model_says("Sunny.", signature)])) == [
        *step("text-start t1", "text-delta t1 Sunny.", "text-end t1"),
        "finish stop",
    ]


def test_an_answer_without_any_text_is_an_empty_message() -> None:
    assert read(LlmAgent(name="root", model=GeminiStream([gemini_says(finish_reason=STOP)])))[-1] == "finish stop"


# -- steps: one for each model call -----------------------------------------------------------------------------------


def test_each_model_call_is_a_step_of_its_own() -> None:
    assert read(speaker([text("I look. "), called("c1", "weather")], "It is clear.", tools=[weather])) == [
        *step(
            "text-start t1",
            "text-delta t1 I look. ",
            "text-end t1",
            "tool-input-start c1 weather",
            "tool-input-available c1 weather {}",
            'tool-output-available c1 {"sky": "clear"}',
        ),
        *step("text-start t2", "text-delta t2 It is clear.", "text-end t2"),
        "finish stop",
    ]


def test_the_same_words_in_two_model_calls_are_said_twice() -> None:
    written = translate(run(speaker([text("One moment."), called("c1", "weather")], "One moment.", tools=[weather])))
    assert texts(written) == "One moment.One moment."


def test_texts_on_both_sides_of_a_call_do_not_run_together() -> None:
    reply = [text("Before."), called("c1", "weather"), text("After.")]
    for mode in (StreamingMode.NONE, StreamingMode.SSE):
        told = lines(translate(run(speaker(reply, "End.", tools=[weather]), streaming_mode=mode)))
        assert [line for line in told if line.startswith("text-delta")] == [
            "text-delta t1 Before.",
            "text-delta t2 After.",
            "text-delta t3 End.",
        ]


# -- streams of Gemini's, through ADK's aggregator --------------------------------------------------------------------


def gemini(*replies: list[types.GenerateContentResponse], **fields: Any) -> LlmAgent:
    return LlmAgent(name="root", model=GeminiStream(*replies), **fields)


def test_gemini_s_stream_is_told_once() -> None:
    chunks = [
        gemini_says(thought("Look ")),
        gemini_says(thought("outside.")),
        gemini_says("It is "),
        gemini_says("sunny.", finish_reason=STOP),
    ]
    assert read(gemini(chunks)) == [
        *step(
            "reasoning-start r1",
            "reasoning-delta r1 Look outside.",
            "reasoning-end r1",
            "text-start t2",
            "text-delta t2 It is sunny.",
            "text-end t2",
        ),
        "finish stop",
    ]


@pytest.fixture
def legacy_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """ADK's switch back to the older form of its streams."""
    monkeypatch.setenv("ADK_DISABLE_PROGRESSIVE_SSE_STREAMING", "1")


@pytest.mark.usefixtures("legacy_streams")
def test_legacy_streams_bring_text_and_call_under_two_ids_and_each_is_told_once() -> None:
    chunks = [
        gemini_says("I "),
        gemini_says("look."),
        gemini_says(called("c1", "weather"), finish_reason=STOP),
    ]
    assert read(gemini(chunks, [gemini_says("Clear.", finish_reason=STOP)], tools=[weather])) == [
        *step("text-start t1", "text-delta t1 I look.", "text-end t1"),
        *step(
            "tool-input-start c1 weather",
            "tool-input-available c1 weather {}",
            'tool-output-available c1 {"sky": "clear"}',
        ),
        *step("text-start t2", "text-delta t2 Clear.", "text-end t2"),
        "finish stop",
    ]


@pytest.mark.usefixtures("legacy_streams")
def test_legacy_streams_with_an_image_in_the_text_tell_all_of_it_once() -> None:
    chunks = [gemini_says("Here: "), gemini_says(PNG), gemini_says("there."), gemini_says(finish_reason=STOP)]
    told = read(gemini(chunks))
    assert told == [
        *step(
            "text-start t1",
            "text-delta t1 Here: ",
            "text-end t1",
            PNG_LINE,
            "text-start t2",
            "text-delta t2 there.",
            "text-end t2",
        ),
        "finish stop",
    ]


@pytest.mark.usefixtures("legacy_streams")
def test_legacy_thoughts_and_text_are_told_once() -> None:
    told = read(gemini([gemini_says(thought("Hm.")), gemini_says("Sunny."), gemini_says(finish_reason=STOP)]))
    assert [line for line in told if "-delta" in line] == ["reasoning-delta r1 Hm.", "text-delta t2 Sunny."]


# -- code executors of ADK's: the whole comes under another id, without the code --------------------------------------


class Answering(BaseCodeExecutor):
    """Runs nothing."""

    def execute_code(self, invocation_context: Any, code_execution_input: Any) -> CodeExecutionResult:
        return CodeExecutionResult(stdout="42\n")


CODE_AND_RESULT = [
    "tool-input-start code_execution-1 code_execution providerExecuted dynamic",
    "tool-input-available code_execution-1 code_execution "
    '{"language": "PYTHON", "code": "print(42)"} providerExecuted dynamic',
    'tool-output-available code_execution-1 {"outcome": "OUTCOME_OK", '
    '"output": "Code execution result:\\n42\\n\\n"} providerExecuted dynamic',
]


@pytest.mark.parametrize("before", ["I compute.\n", ""])
def test_code_in_the_text_of_a_model_becomes_a_call_and_nothing_is_said_twice(before: str) -> None:
    said = f"{before}```python\nprint(42)\n```"
    assert read(speaker(said, "It is 42.", code_executor=Answering())) == [
        *step("text-start t1", f"text-delta t1 {said}", "text-end t1", *CODE_AND_RESULT),
        *step("text-start t2", "text-delta t2 It is 42.", "text-end t2"),
        "finish stop",
    ]


# -- callbacks and plugins that change the whole ----------------------------------------------------------------------


def changed_to(*parts: types.Part | str) -> Any:
    """A callback that lets the pieces through and gives another whole."""

    def callback(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        return None if llm_response.partial else model_says(*parts, partial=False)

    return callback


def test_a_replaced_text_is_marked_and_the_new_one_follows() -> None:
    agent = speaker("The key is 1234.", after_model_callback=changed_to("[removed]"))
    assert read(agent) == [
        *step(
            "text-start t1",
            "text-delta t1 The key is 1234.",
            'text-end t1 {"adk": {"replaced": true}}',
            'text-start t2 {"adk": {"replaces": true}}',
            "text-delta t2 [removed]",
            "text-end t2",
        ),
        "finish stop",
    ]


def test_a_plugin_s_replacement_is_marked_too() -> None:
    class Guard(BasePlugin):
        async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> Any:
            return None if llm_response.partial else model_says("[removed]", partial=False)

    told = read(speaker("The key is 1234."), plugins=[Guard("guard")])
    assert told[2:5] == [
        "text-delta t1 The key is 1234.",
        'text-end t1 {"adk": {"replaced": true}}',
        'text-start t2 {"adk": {"replaces": true}}',
    ]


def test_only_the_replaced_kind_is_marked() -> None:
    told = read(speaker([thought("Hm."), text("1234")], after_model_callback=changed_to(thought("Hm."), "[removed]")))
    assert told == [
        *step(
            "reasoning-start r1",
            "reasoning-delta r1 Hm.",
            "reasoning-end r1",
            "text-start t2",
            "text-delta t2 1234",
            'text-end t2 {"adk": {"replaced": true}}',
            'text-start t3 {"adk": {"replaces": true}}',
            "text-delta t3 [removed]",
            "text-end t3",
        ),
        "finish stop",
    ]


def test_words_that_a_callback_adds_at_the_end_follow_the_streamed_ones() -> None:
    agent = speaker("Buy it.", after_model_callback=changed_to("Buy it.", " Not advice."))
    assert read(agent) == [
        *step("text-start t1", "text-delta t1 Buy it. Not advice.", "text-end t1"),
        "finish stop",
    ]


def test_a_text_that_a_callback_drops_does_not_disturb_the_next_one() -> None:
    def drop_first(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        first = llm_response.content and any(part.function_call for part in llm_response.content.parts or ())
        return model_says(called("c1", "weather"), partial=False) if first and not llm_response.partial else None

    agent = speaker(
        [text("Secret."), called("c1", "weather")], "It is clear.", tools=[weather], after_model_callback=drop_first
    )
    written = translate(run(agent))
    assert texts(written) == "Secret.It is clear."
    assert [line for line in lines(written) if "replace" in line] == []


def test_a_plugin_s_answer_in_place_of_the_run_is_sent_as_the_plugin_s() -> None:
    class Closed(BasePlugin):
        async def before_run_callback(self, *, invocation_context: Any) -> types.Content:
            return types.Content(role="model", parts=[text("We are closed.")])

    assert read(speaker(), plugins=[Closed("closed")]) == [
        *step('text-start t1 {"adk": {"author": "model"}}', "text-delta t1 We are closed.", "text-end t1"),
        "finish stop",
    ]
