"""Several agents in one run: who speaks, where, and that nobody's words or results get mixed up."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.events import Event
from google.adk.events.request_input import RequestInput
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.workflow import Workflow
from google.genai import types

from adk.agent_runs import (
    called,
    lines,
    model_says,
    of_type,
    read,
    run,
    step,
    streamed_call,
    translate,
    translate_events,
)
from adk_stream_protocol.testing import ScriptedModel, text
from protocol.segment_checker import Wire


def agent(name: str, *script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, description=f"The {name}.", model=ScriptedModel(script), **fields)


def refine() -> dict[str, int]:
    """Refines."""
    return {"drafts": 1}


def by(author: str, **more: str) -> str:
    about = "".join(f', "{name}": "{value}"' for name, value in more.items())
    return f'{{"adk": {{"author": "{author}"{about}}}}}'


def said_in(written: list[Wire]) -> dict[str, str]:
    """The words of each text part."""
    said: dict[str, str] = {}
    for chunk in of_type(written, "text-delta"):
        said[chunk["id"]] = said.get(chunk["id"], "") + chunk["delta"]
    return said


# -- one after the other ----------------------------------------------------------------------------------------------


def test_agents_in_sequence_speak_under_their_names_each_in_a_step() -> None:
    assert read(SequentialAgent(name="line", sub_agents=[agent("writer", "A draft."), agent("critic", "Good.")])) == [
        *step(f"text-start t1 {by('writer')}", "text-delta t1 A draft.", "text-end t1"),
        *step(f"text-start t2 {by('critic')}", "text-delta t2 Good.", "text-end t2"),
        "finish stop",
    ]


def test_a_call_names_its_agent_unless_that_is_the_root() -> None:
    script = ([called("c1", "refine")], "Done.")
    inner = read(SequentialAgent(name="line", sub_agents=[agent("writer", *script, tools=[refine])]))
    assert f"tool-input-available c1 refine {{}} {by('writer')}" in inner
    assert "tool-input-available c1 refine {}" in read(agent("root", *script, tools=[refine]))


def test_each_round_of_a_loop_says_its_words_even_if_they_are_the_same() -> None:
    worker = agent("worker", "Again.", "Again.", "Again.")
    written = translate(run(LoopAgent(name="loop", max_iterations=3, sub_agents=[worker])))
    assert [chunk["delta"] for chunk in of_type(written, "text-delta")] == ["Again."] * 3
    assert len(of_type(written, "start-step")) == 3


def test_leaving_a_loop_is_not_a_tool_of_the_client_s() -> None:
    worker = agent("worker", [text("Good."), called("c1", "exit_loop")], tools=[exit_loop])
    assert read(LoopAgent(name="loop", max_iterations=3, sub_agents=[worker])) == [
        *step(f"text-start t1 {by('worker')}", "text-delta t1 Good.", "text-end t1"),
        "finish stop",
    ]


def test_leaving_a_loop_after_a_tool_does_not_make_the_client_post_again() -> None:
    worker = agent("worker", [called("c1", "refine")], [called("c2", "exit_loop")], tools=[refine, exit_loop])
    written = translate(run(LoopAgent(name="loop", max_iterations=3, sub_agents=[worker])))  # which looks for that
    assert len(of_type(written, "tool-output-available")) == 1


def test_a_transfer_is_told_as_a_change_of_agent_and_not_as_a_call() -> None:
    expert = agent("expert", "I know.")
    root = agent(
        "root", [text("I pass you on."), called("c1", "transfer_to_agent", agent_name="expert")], sub_agents=[expert]
    )
    assert read(root) == [
        *step(
            "text-start t1",
            "text-delta t1 I pass you on.",
            "text-end t1",
            'data-adk-agent {"agent": "expert"}',
        ),
        *step(f"text-start t2 {by('expert')}", "text-delta t2 I know.", "text-end t2"),
        "finish stop",
    ]


# -- at the same time -------------------------------------------------------------------------------------------------


def test_agents_that_speak_at_the_same_time_have_parts_of_their_own() -> None:
    pair = ParallelAgent(name="pair", sub_agents=[agent("left", "One two three."), agent("right", "Four five six.")])
    agent_run = run(pair)
    speakers = [event.author for event in agent_run.events if event.partial]
    assert speakers != sorted(speakers), "they must interleave for this to be a test"
    written = translate(agent_run)
    said = said_in(written)
    authors = {chunk["id"]: chunk["providerMetadata"]["adk"]["author"] for chunk in of_type(written, "text-start")}
    assert {authors[part]: words for part, words in said.items()} == {
        "left": "One two three.",
        "right": "Four five six.",
    }
    assert len(of_type(written, "text-end")) == 2


def test_the_same_words_of_two_agents_are_both_said() -> None:
    written = translate(run(ParallelAgent(name="pair", sub_agents=[agent("left", "Yes."), agent("right", "Yes.")])))
    assert [chunk["delta"] for chunk in of_type(written, "text-delta")] == ["Yes.", "Yes."]


def test_a_step_does_not_begin_while_another_agent_s_text_is_open() -> None:
    left = agent("left", "One two three four five six seven eight nine ten.")
    right = agent("right", [called("c1", "refine")], "Done.", tools=[refine])
    written = translate(run(ParallelAgent(name="pair", sub_agents=[left, right])))
    left_part = next(chunk["id"] for chunk in of_type(written, "text-start") if "left" in str(chunk))
    inside = [chunk["type"] for chunk in written if chunk.get("id") == left_part or chunk["type"] == "start-step"]
    assert inside[inside.index("text-start") :].count("text-start") == 1
    assert "start-step" not in inside[inside.index("text-start") : inside.index("text-end")]


def named_tool(name: str) -> Any:
    def tool() -> dict[str, str]:
        """A tool."""
        return {"by": name}

    tool.__name__ = f"tool_of_{name}"
    return tool


def test_agents_whose_calls_have_the_same_id_get_their_own_results() -> None:
    """LiteLLM counts calls from 0, for each agent."""
    pair = [
        agent(name, [called("0", f"tool_of_{name}")], "Done.", tools=[named_tool(name)]) for name in ("left", "right")
    ]
    written = translate(run(ParallelAgent(name="pair", sub_agents=pair)))
    tools = {chunk["toolCallId"]: chunk["toolName"] for chunk in of_type(written, "tool-input-start")}
    results = {tools[chunk["toolCallId"]]: chunk["output"]["by"] for chunk in of_type(written, "tool-output-available")}
    assert results == {"tool_of_left": "left", "tool_of_right": "right"}


def test_arguments_that_two_agents_stream_under_the_same_id_stay_apart() -> None:
    def note(words: str) -> dict[str, str]:
        """Notes."""
        return {"noted": words}

    def streaming(name: str, *pieces: str) -> LlmAgent:
        partials = [model_says(streamed_call("0", "note", ("$.words", piece)), partial=True) for piece in pieces]
        return agent(name, [*partials, model_says(called("0", "note", words="".join(pieces)))], "Done.", tools=[note])

    pair = [streaming("left", "a", "b", "c", "d"), streaming("right", "1", "2", "3", "4")]
    written = translate(run(ParallelAgent(name="pair", sub_agents=pair)))
    previews: dict[str, str] = {}
    for chunk in of_type(written, "tool-input-delta"):
        previews[chunk["toolCallId"]] = previews.get(chunk["toolCallId"], "") + chunk["inputTextDelta"]
    assert sorted(previews.values()) == ['{"words":"1234', '{"words":"abcd']
    inputs = {chunk["toolCallId"]: chunk["input"]["words"] for chunk in of_type(written, "tool-input-available")}
    outputs = {chunk["toolCallId"]: chunk["output"]["noted"] for chunk in of_type(written, "tool-output-available")}
    assert inputs == outputs


def test_a_question_of_one_agent_does_not_break_the_arguments_that_another_streams() -> None:
    """With the confirmation tool a question opens a step, which those arguments cannot follow."""

    def note(words: str) -> dict[str, str]:
        """Notes."""
        return {"noted": words}

    partials = [model_says(streamed_call("c2", "note", ("$.words", "x")), partial=True) for _ in range(40)]
    asking = agent("asking", [called("c1", "refine")], tools=[FunctionTool(refine, require_confirmation=True)])
    writing = agent("writing", [*partials, model_says(called("c2", "note", words="x" * 40))], "Done.", tools=[note])
    agent_run = run(ParallelAgent(name="pair", sub_agents=[asking, writing]))
    asked = next(index for index, event in enumerate(agent_run.events) if event.long_running_tool_ids)
    assert any(event.partial and event.author == "writing" for event in agent_run.events[asked:])
    written = translate(agent_run, approval_style="confirmation-tool")
    assert {"noted": "x" * 40} in [chunk["output"] for chunk in of_type(written, "tool-output-available")]


# -- agents as tools --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated")  # ADK's own use of it
def test_an_agent_tool_shows_only_its_result() -> None:
    inner = agent("inner", "Deep words.")
    assert read(agent("root", [called("c1", "inner", request="go")], "Done.", tools=[AgentTool(inner)])) == [
        *step(
            "tool-input-start c1 inner",
            'tool-input-available c1 inner {"request": "go"}',
            'tool-output-available c1 {"result": "Deep words."}',
        ),
        *step("text-start t1", "text-delta t1 Done.", "text-end t1"),
        "finish stop",
    ]


def test_a_single_turn_agent_speaks_inside_its_call() -> None:
    inner = agent("inner", "Deep words.", mode="single_turn")
    assert read(agent("root", [called("c1", "inner", request="go")], "Done.", sub_agents=[inner])) == [
        *step(
            "tool-input-start c1 inner",
            'tool-input-available c1 inner {"request": "go"}',
            f"text-start t1 {by('inner', toolCallId='c1')}",
            "text-delta t1 Deep words.",
            "text-end t1",
            'tool-output-available c1 {"result": "Deep words."}',
        ),
        *step("text-start t2", "text-delta t2 Done.", "text-end t2"),
        "finish stop",
    ]


def test_a_task_agent_s_result_comes_from_the_user_and_closes_its_call() -> None:
    inner = agent("inner", [text("I work."), called("c2", "finish_task", result="42")], mode="task")
    assert read(agent("root", [called("c1", "inner", request="go")], "Done.", sub_agents=[inner])) == [
        *step(
            "tool-input-start c1 inner",
            'tool-input-available c1 inner {"request": "go"}',
            f"text-start t1 {by('inner', toolCallId='c1')}",
            "text-delta t1 I work.",
            "text-end t1",
            'tool-output-available c1 {"result": "42"}',
        ),
        *step("text-start t2", "text-delta t2 Done.", "text-end t2"),
        "finish stop",
    ]


def test_two_calls_of_one_agent_stay_apart_by_their_branches() -> None:
    inner = agent("inner", "One two three.", "One two three.", mode="single_turn")
    calls = [called("c1", "inner", request="a"), called("c2", "inner", request="b")]
    agent_run = run(agent("root", calls, "Done.", sub_agents=[inner]))
    branches = [event.branch for event in agent_run.events if event.partial and event.author == "inner"]
    assert branches != sorted(branches, key=str), "they must interleave for this to be a test"
    written = translate(agent_run)
    inside = {
        chunk["id"]: chunk["providerMetadata"]["adk"]["toolCallId"] for chunk in of_type(written, "text-start")[:2]
    }
    assert {call: said_in(written)[part] for part, call in inside.items()} == {
        "c1": "One two three.",
        "c2": "One two three.",
    }
    assert len(of_type(written, "text-start")) == 3


def test_agents_on_one_branch_stay_apart_by_their_names() -> None:
    def piece(author: str, words: str) -> Event:
        content = types.Content(parts=[text(words)])
        return Event(id=f"of-{author}", author=author, partial=True, content=content)

    written = translate_events(
        piece("left", "One "), piece("right", "Two "), piece("left", "one."), piece("right", "two.")
    )
    assert list(said_in(written).values()) == ["One one.", "Two two."]


def test_an_agent_called_twice_under_one_id_names_the_second_call() -> None:
    inner = agent("inner", "First.", "Second.", mode="single_turn")
    script = [[called("0", "inner", request="a")], [called("0", "inner", request="b")], "Done."]
    written = translate(run(agent("root", *script, sub_agents=[inner])))
    metadata = [chunk["providerMetadata"]["adk"]["toolCallId"] for chunk in of_type(written, "text-start")[:2]]
    assert metadata == ["0", "0-2"]


def test_a_task_agent_that_asks_back_is_still_at_work() -> None:
    inner = agent("inner", "Which one?", mode="task")
    told = read(agent("root", [called("c1", "inner", request="go")], sub_agents=[inner]))
    assert "text-delta t1 Which one?" in told
    assert 'tool-output-available c1 {"status": "pending"} preliminary' in told
    assert told[-1].startswith("finish ")


# -- workflows --------------------------------------------------------------------------------------------------------


def loud(node_input: Any) -> Event:
    return Event(message="LOUD", output={"said": "LOUD"}, route="onward")


def workflow() -> Workflow:
    return Workflow(name="flow", edges=[("START", agent("writer", "A draft."), loud)])


def test_nodes_of_a_workflow_speak_whatever_role_their_messages_have() -> None:
    agent_run = run(workflow())
    assert "user" in {event.content.role for event in agent_run.events if event.content}
    assert lines(translate(agent_run)) == [
        *step(f"text-start t1 {by('writer')}", "text-delta t1 A draft.", "text-end t1"),
        *step("text-start t2", "text-delta t2 LOUD", "text-end t2"),
        "finish stop",
    ]


def test_outputs_and_routes_of_nodes_are_sent_only_when_asked_for_and_never_as_a_second_text() -> None:
    assert [line for line in read(workflow(), send_nodes=True) if line.startswith("data-")] == [
        'data-adk-node {"path": "flow@1/loud@1", "output": {"said": "LOUD"}, "route": "onward"}'
    ]


def test_a_question_of_a_workflow_is_a_call_that_the_client_answers() -> None:
    async def ask(node_input: Any) -> Any:
        yield RequestInput(message="Who?", payload={"n": 1}, response_schema={"type": "string"})

    written = translate(run(Workflow(name="flow", edges=[("START", ask)])))
    (asked,) = of_type(written, "tool-input-available")
    assert asked["toolName"] == "adk_request_input"
    assert asked["input"] == {
        "interruptId": asked["toolCallId"],
        "message": "Who?",
        "payload": {"n": 1},
        "response_schema": {"type": "string"},
    }
    assert lines(written)[-1] == "finish tool-calls"


def test_the_user_s_own_words_are_not_repeated() -> None:
    said = Event(author="user", content=types.Content(role="user", parts=[text("hi")]))
    assert lines(translate_events(said)) == ["finish stop"]
