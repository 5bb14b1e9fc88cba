"""Files, code and the tools of the model's service, artifacts."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event, EventActions
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import ToolContext
from google.genai import types

from adk.agent_runs import (
    STOP,
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
from adk_stream_protocol.adk.event_parts import ArtifactFile
from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.testing import ScriptedModel, text
from protocol.segment_checker import wire

IMAGE = b"\xfb\xef\xbe"  # "++++" in standard base64, "----" in the URL-safe one that ADK's JSON has
IMAGE_LINE = "file data:image/png;base64,++++ image/png"


def image(data: bytes = IMAGE, **fields: Any) -> types.Part:
    return types.Part(inline_data=types.Blob(data=data, mime_type="image/png"), **fields)


def gemini(*chunks: types.GenerateContentResponse) -> LlmAgent:
    return LlmAgent(name="root", model=GeminiStream(list(chunks)))


def speaker(*script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedModel(script), **fields)


# -- files of the model's ---------------------------------------------------------------------------------------------


def test_an_image_in_a_stream_is_sent_once_and_in_its_place() -> None:
    """It is in a partial event and again in the aggregate."""
    assert read(gemini(gemini_says("Here: "), gemini_says(image()), gemini_says("there.", finish_reason=STOP))) == [
        *step(
            "text-start t1",
            "text-delta t1 Here: ",
            "text-end t1",
            IMAGE_LINE,
            "text-start t2",
            "text-delta t2 there.",
            "text-end t2",
        ),
        "finish stop",
    ]


def test_the_same_image_twice_in_one_answer_is_two_files() -> None:
    assert read(gemini(gemini_says(image()), gemini_says(image(), finish_reason=STOP))).count(IMAGE_LINE) == 2


def test_an_image_that_only_the_whole_has_is_not_lost() -> None:
    assert IMAGE_LINE in read(speaker([model_says("Here.", partial=True), model_says("Here.", image())]))


def test_an_image_that_a_callback_takes_out_does_not_cost_the_next_one() -> None:
    def without_image(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        parts = (llm_response.content and llm_response.content.parts) or []
        if llm_response.partial or not any(part.function_call for part in parts):
            return None
        return model_says(*(part for part in parts if not part.inline_data), partial=False)

    def weather() -> dict[str, str]:
        """The weather."""
        return {"sky": "clear"}

    script = [[image(), called("c1", "weather")], [model_says(image(b"\x00"))]]
    written = translate(run(speaker(*script, tools=[weather], after_model_callback=without_image)))
    assert [chunk["url"] for chunk in of_type(written, "file")] == [
        "data:image/png;base64,++++",
        "data:image/png;base64,AA==",
    ]


def test_an_image_of_a_thought_is_a_file_of_the_reasoning_where_the_version_has_that() -> None:
    agent_run = run(speaker([image(thought=True)]))
    assert IMAGE_LINE in lines(translate(agent_run))
    assert IMAGE_LINE.replace("file", "reasoning-file", 1) in lines(translate(agent_run, sdk_version=7))


@pytest.mark.parametrize(
    ("uri", "line"),
    [
        ("https://files.example/map.pdf", "file https://files.example/map.pdf application/pdf"),
        ("gs://bucket/maps/map.pdf", "source-document source-1 application/pdf map.pdf"),
    ],
)
def test_a_linked_file_is_a_file_only_if_a_browser_can_fetch_it(uri: str, line: str) -> None:
    linked = types.Part(file_data=types.FileData(file_uri=uri, mime_type="application/pdf"))
    assert read(speaker([linked])) == [*step(line), "finish stop"]


# -- files of tools ---------------------------------------------------------------------------------------------------


def test_media_that_a_tool_returns_follow_its_result() -> None:
    def draw() -> dict[str, Any]:
        """Draws."""
        return {"title": "A map", "picture": image()}

    told = read(speaker([called("c1", "draw")], "Done.", tools=[draw]))
    result = next(index for index, line in enumerate(told) if line.startswith("tool-output-available c1"))
    assert "A map" in told[result]
    assert "++++" not in told[result]
    assert told[result + 1] == IMAGE_LINE


def test_a_file_that_a_tool_links_to_follows_its_result() -> None:
    linked = types.FunctionResponsePart(
        file_data=types.FunctionResponseFileData(file_uri="https://files.example/a.png", mime_type="image/png")
    )
    result = types.FunctionResponse(id="c1", name="draw", response={"ok": True}, parts=[linked])
    told = lines(
        translate_events(
            Event(author="root", content=types.Content(parts=[called("c1", "draw")])),
            Event(author="root", content=types.Content(parts=[types.Part(function_response=result)])),
        )
    )
    assert told[3:5] == ['tool-output-available c1 {"ok": true}', "file https://files.example/a.png image/png"]


async def save_report(tool_context: ToolContext) -> dict[str, bool]:
    """Saves a report."""
    await tool_context.save_artifact("report.txt", types.Part(text="words"))
    return {"saved": True}


def test_a_saved_artifact_is_named_with_its_version() -> None:
    told = read(speaker([called("c1", "save_report")], "Done.", tools=[save_report]))
    assert told[3:5] == [
        'tool-output-available c1 {"saved": true}',
        'data-adk-artifact {"filename": "report.txt", "version": 0}',
    ]


def test_an_artifact_whose_place_is_known_is_a_file_too() -> None:
    saved = Event(author="root", actions=EventActions(artifact_delta={"report.txt": 2}))
    translator = Translator(root_author="root")
    translator.start("m1")
    files = {"report.txt": ArtifactFile("/files/report.txt?version=2", "text/plain")}
    assert lines(wire(translator.feed(saved, files))) == [
        'data-adk-artifact {"filename": "report.txt", "version": 2}',
        "start-step",
        "file /files/report.txt?version=2 text/plain",
    ]


# -- code and tools at the model's service ----------------------------------------------------------------------------


def code(source: str, **fields: Any) -> types.Part:
    return types.Part(executable_code=types.ExecutableCode(code=source, language=types.Language.PYTHON, **fields))


def code_result(output: str, **fields: Any) -> types.Part:
    outcome = types.Outcome.OUTCOME_OK
    return types.Part(code_execution_result=types.CodeExecutionResult(outcome=outcome, output=output, **fields))


def code_lines(number: int, source: str, output: str) -> list[str]:
    call = f"code_execution-{number}"
    arguments = f'{{"language": "PYTHON", "code": "{source}"}}'
    return [
        f"tool-input-start {call} code_execution providerExecuted dynamic",
        f"tool-input-available {call} code_execution {arguments} providerExecuted dynamic",
        f'tool-output-available {call} {{"outcome": "OUTCOME_OK", "output": "{output}"}} providerExecuted dynamic',
    ]


def test_code_that_the_service_runs_is_a_call_of_the_service_s() -> None:
    chunks = [gemini_says("I compute."), gemini_says(code("6*7")), gemini_says(code_result("42")), gemini_says("42.")]
    assert read(gemini(*chunks, gemini_says(finish_reason=STOP))) == [
        *step(
            "text-start t1",
            "text-delta t1 I compute.",
            "text-end t1",
            *code_lines(1, "6*7", "42"),
            "text-start t2",
            "text-delta t2 42.",
            "text-end t2",
        ),
        "finish stop",
    ]


def test_code_without_ids_is_paired_with_its_results_in_order() -> None:
    told = read(speaker([code("1"), code_result("a"), code("2"), code_result("b"), text("Done.")]))
    assert told[1:7] == [*code_lines(1, "1", "a"), *code_lines(2, "2", "b")]


def test_code_with_ids_is_paired_by_them() -> None:
    parts = [code("1", id="x"), code("2", id="y"), code_result("of y", id="y"), code_result("of x", id="x")]
    results = of_type(translate(run(speaker(parts))), "tool-output-available")
    assert {chunk["toolCallId"]: chunk["output"]["output"] for chunk in results} == {"y": "of y", "x": "of x"}


def test_a_tool_of_the_service_is_a_call_of_the_service_s() -> None:
    searched = types.Part(
        tool_call=types.ToolCall(id="s1", tool_type=types.ToolType.GOOGLE_SEARCH_WEB, args={"queries": ["sky"]})
    )
    found = types.Part(
        tool_response=types.ToolResponse(id="s1", tool_type=types.ToolType.GOOGLE_SEARCH_WEB, response={"hits": 3})
    )
    assert read(gemini(gemini_says(searched), gemini_says(found), gemini_says("Blue.", finish_reason=STOP))) == [
        *step(
            "tool-input-start s1 google_search_web providerExecuted dynamic",
            'tool-input-available s1 google_search_web {"queries": ["sky"]} providerExecuted dynamic',
            'tool-output-available s1 {"hits": 3} providerExecuted dynamic',
            "text-start t1",
            "text-delta t1 Blue.",
            "text-end t1",
        ),
        "finish stop",
    ]


def test_a_result_of_the_service_without_a_call_is_not_sent() -> None:
    assert [line for line in read(speaker([code_result("42"), text("42.")])) if line.startswith("tool-")] == []


def test_code_without_a_result_is_closed_at_the_end() -> None:
    told = read(speaker([code("6*7")]))
    assert told[3].startswith("tool-output-error code_execution-1 ")
