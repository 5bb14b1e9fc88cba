"""The whole that follows the pieces, where something of ADK's stands between them or changes it."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.planners import PlanReActPlanner
from google.genai import types

from adk.agent_runs import called, lines, model_says, of_type, read, run, step, streamed_call, translate, weather
from adk_stream_protocol.testing import ScriptedModel, text, thought
from support.conversations import Store, conversation, every_store, reloaded

CODE = types.Part(executable_code=types.ExecutableCode(code="6*7", language=types.Language.PYTHON))
RESULT = types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="42"))


def speaker(*script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedModel(script, model="gemini-2.5-flash"), **fields)


# -- the event without content that comes with code at the model's service --------------------------------------------


def test_code_at_the_model_s_service_is_told_once() -> None:
    agent_run = run(speaker([text("I compute."), CODE, RESULT, text("42.")], code_executor=BuiltInCodeExecutor()))
    assert next(event for event in agent_run.events if not event.partial).content is None  # what this is about
    assert lines(translate(agent_run)) == [
        *step(
            "text-start t1",
            "text-delta t1 I compute.",
            "text-end t1",
            "tool-input-start code_execution-1 code_execution providerExecuted dynamic",
            "tool-input-available code_execution-1 code_execution "
            '{"language": "PYTHON", "code": "6*7"} providerExecuted dynamic',
            'tool-output-available code_execution-1 {"outcome": "OUTCOME_OK", "output": "42"} providerExecuted dynamic',
            "text-start t2",
            "text-delta t2 42.",
            "text-end t2",
        ),
        "finish stop",
    ]


@every_store
async def test_code_at_the_model_s_service_is_the_same_after_a_reload(store: Store) -> None:
    agent = speaker([text("I compute."), CODE, RESULT, text("42.")], code_executor=BuiltInCodeExecutor())
    async with conversation(store=store, agent=agent) as chat:
        parts = await reloaded(chat, await chat.say("6*7?"))
        assert [part["type"] for part in parts] == ["text", "dynamic-tool", "text"]


def test_arguments_that_were_streamed_before_it_are_those_of_one_call() -> None:
    pieces = [streamed_call("c1", "weather", ("$.city", "Oslo")), streamed_call("c1", None, goes_on=False)]
    reply = [*(model_says(piece, partial=True) for piece in pieces), model_says(called("c1", "weather", city="Oslo"))]
    written = translate(run(speaker(reply, "Clear.", tools=[weather], code_executor=BuiltInCodeExecutor())))
    assert [chunk["toolCallId"] for chunk in of_type(written, "tool-input-start")] == ["c1"]
    assert of_type(written, "tool-input-error") == []


def test_words_that_only_the_whole_has_go_on_in_the_same_part() -> None:
    reply = [model_says("It is ", partial=True), model_says("It is sunny.", partial=False)]
    assert read(speaker(reply, code_executor=BuiltInCodeExecutor())) == [
        *step("text-start t1", "text-delta t1 It is sunny.", "text-end t1"),
        "finish stop",
    ]


def test_an_agent_that_ends_without_a_whole_leaves_no_text_open_for_the_next_one() -> None:
    def drop(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        return None if llm_response.partial else LlmResponse()

    first = LlmAgent(name="first", model=ScriptedModel(["One."]), after_model_callback=drop)
    second = LlmAgent(name="second", model=ScriptedModel(["Two."]))
    told = [line.split(" ")[0] for line in read(SequentialAgent(name="line", sub_agents=[first, second]))]
    assert told == [
        *step("text-start", "text-delta", "text-end"),
        *step("text-start", "text-delta", "text-end"),
        "finish",
    ]


# -- a whole that is another one --------------------------------------------------------------------------------------


def test_a_replaced_text_is_marked_where_the_whole_begins_with_thoughts() -> None:
    reply = "/*REASONING*/ The die says so. /*FINAL_ANSWER*/ You rolled it."
    told = read(LlmAgent(name="root", model=ScriptedModel([reply]), planner=PlanReActPlanner()))
    assert [line for line in told if line.startswith("text-")] == [
        "text-start t2",
        "text-delta t2 The die says so.  You rolled it.",
        'text-end t2 {"adk": {"replaced": true}}',
        'text-start t4 {"adk": {"replaces": true}}',
        "text-delta t4  You rolled it.",
        "text-end t4",
    ]


@pytest.mark.parametrize(
    "first", [thought("Hm."), CODE, called("c1", "weather", city="Oslo")], ids=["thought", "code", "call"]
)
def test_a_replaced_text_is_marked_whatever_the_whole_begins_with(first: types.Part) -> None:
    reply = [model_says("The key is 1234.", partial=True), model_says(first, "[removed]", partial=False)]
    told = read(speaker(reply, "Done.", tools=[weather]))
    assert told[:4] == [
        "start-step",
        "text-start t1",
        "text-delta t1 The key is 1234.",
        'text-end t1 {"adk": {"replaced": true}}',
    ]
    assert sum("replace" in line for line in told) == 2


def test_replaced_thoughts_are_marked_where_the_whole_begins_with_text() -> None:
    reply = [model_says(thought("1234"), partial=True), model_says("Sunny.", thought("[removed]"), partial=False)]
    assert [line for line in read(speaker(reply)) if "replace" in line] == [
        'reasoning-end r1 {"adk": {"replaced": true}}',
        'reasoning-start r3 {"adk": {"replaces": true}}',
    ]


# -- Google's search suggestions --------------------------------------------------------------------------------------


def suggesting(html: str | None) -> types.GroundingMetadata:
    return types.GroundingMetadata(search_entry_point=types.SearchEntryPoint(rendered_content=html))


def answer(html: str | None) -> LlmResponse:
    return model_says("Bees.", grounding_metadata=suggesting(html))


def test_search_suggestions_are_sent_as_they_are() -> None:
    told = read(speaker([answer("<div>bees</div>")]))
    assert told[-3:-1] == [
        'data-adk-search-suggestions {"html": "<div>bees</div>"} search-suggestions-1',
        "finish-step",
    ]


def test_search_suggestions_are_sent_once_and_each_has_its_id() -> None:
    def grounded(html: str) -> Event:
        content = types.Content(parts=[text("Bees.")])
        return Event(author="root", content=content, grounding_metadata=suggesting(html))

    agent_run = run(speaker("Hello."))
    agent_run.events[:] = [grounded("<b>1</b>"), grounded("<b>1</b>"), grounded("<b>2</b>")]
    sent = of_type(translate(agent_run), "data-adk-search-suggestions")
    assert [(chunk["id"], chunk["data"]["html"]) for chunk in sent] == [
        ("search-suggestions-1", "<b>1</b>"),
        ("search-suggestions-2", "<b>2</b>"),
    ]


@pytest.mark.parametrize("html", [None, ""])
def test_a_search_without_suggestions_sends_none(html: str | None) -> None:
    assert [line for line in read(speaker([answer(html)])) if line.startswith("data-")] == []


@every_store
async def test_search_suggestions_come_back(store: Store) -> None:
    async with conversation([answer("<div>bees</div>")], store=store) as chat:
        parts = await reloaded(chat, await chat.say("Bees?"))
        assert parts[1] == {
            "type": "data-adk-search-suggestions",
            "id": "search-suggestions-1",
            "data": {"html": "<div>bees</div>"},
        }
