"""Our streams, judged by the real clients: first and newest release of each line, stock helpers, stock transport."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.testing import Reply, ScriptedModel, call, text, thought
from conformance.node import RELEASES, NodeDriver
from support.apps import app_of, user_of
from support.live_server import serving

WITH_APPROVALS = tuple(release for release in RELEASES if release != "5")

every_release = pytest.mark.parametrize("release", RELEASES)


def get_weather(location: str) -> dict[str, Any]:
    """The weather somewhere."""
    return {"location": location, "temperature_c": 21}


def agent_saying(*replies: Reply, **options: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedModel(replies), **options)


@contextmanager
def chat_api(agent: Any) -> Generator[str]:
    with serving(app_of(ChatBridge(agent, user_id=user_of))) as origin:
        yield f"{origin}/api/chat"


def chat(node: NodeDriver, release: str, agent: Any, *steps: Any, in_parallel: bool = False, **options: Any) -> Any:
    """Talk to the agent with all stock helpers on; whatever the scenario, these hold."""
    options["body"] = {**({"sdkVersion": 5} if release == "5" else {}), **options.get("body", {})}
    said = [step if isinstance(step, dict) else {"send": step} for step in steps]
    paced = [paced for step in said for paced in (step, {"waitIdle": True})]
    resend = "tool-calls" if release == "5" else "both"
    with chat_api(agent) as api:
        result = node.chat(release=release, api=api, steps=paced, resend=resend, chatId="c1", **options)
        version = {"x-ai-sdk-version": str(options["body"].get("sdkVersion", 6))}
        kept = httpx.get(f"{api}/c1/messages", headers=version)
    for request in result["requests"]:
        assert request["response"]["schemaErrors"] == []
        assert request["response"]["complete"]
    assert not result["resendLoop"]
    assert len(result["requests"]) == len(steps)
    for message in result["messages"]:
        assert [part for part in message["parts"] if part.get("state") in ("streaming", "input-streaming")] == []
    ids = [message["id"] for message in result["messages"]]
    assert len(ids) == len(set(ids))
    if result["requests"][-1]["response"]["status"] == 200:
        had = [comparable(message, in_parallel) for message in result["messages"] if message["parts"]]
        assert [comparable(message, in_parallel) for message in kept.json()] == had
    return result


def comparable(message: Any, in_parallel: bool) -> Any:
    """A client's message as far as a session can know it."""
    parts: list[Any] = []
    for part in message["parts"]:
        known = {name: value for name, value in part.items() if name != "providerMetadata" and name != "id"}
        about = part.get("providerMetadata", {}).get("adk", {})
        if about.get("replaced"):  # text that a callback took back after it had been streamed
            continue
        if about and not about.get("replaces"):
            known["providerMetadata"] = part["providerMetadata"]
        if "id" in part and part["type"] != "reasoning":  # the newest releases keep the part's id there
            known["id"] = part["id"]
        parts.append(known)
    if in_parallel:  # who spoke first among agents that speak at the same time, and so the steps
        parts = sorted((part for part in parts if part["type"] != "step-start"), key=str)
    return {**message, "parts": parts}


def parts_of(result: Any, *kinds: str) -> list[Any]:
    """Parts of the last message, without the step marks."""
    parts = result["messages"][-1]["parts"]
    return [part for part in parts if part["type"] != "step-start" and (not kinds or part["type"] in kinds)]


def spoken(result: Any) -> str:
    return "".join(part["text"] for part in parts_of(result, "text"))


def is_ready(result: Any) -> bool:
    return result["status"] == "ready" and result["error"] is None


@every_release
def test_text_arrives_word_by_word_as_one_part(node: NodeDriver, release: str) -> None:
    result = chat(node, release, agent_saying("Hello there, how are you?"), "hi")
    assert is_ready(result)
    assert [part["type"] for part in parts_of(result)] == ["text"]
    assert spoken(result) == "Hello there, how are you?"
    assert parts_of(result)[0]["state"] == "done"
    chunks = result["requests"][0]["response"]["chunks"]
    assert len([chunk for chunk in chunks if chunk["type"] == "text-delta"]) == 5


@every_release
def test_a_conversation_of_three_turns_has_six_messages(node: NodeDriver, release: str) -> None:
    result = chat(node, release, agent_saying("One.", "Two.", "Three."), "a", "b", "c")
    assert is_ready(result)
    assert [message["role"] for message in result["messages"]] == ["user", "assistant"] * 3


@every_release
@pytest.mark.parametrize("only_last", [False, True])
def test_a_server_tool_is_shown_with_its_result_and_then_told(node: NodeDriver, release: str, only_last: bool) -> None:
    agent = build_agent(OfflineModel())
    result = chat(node, release, agent, "What is the weather in Tokyo?", onlyLast=only_last)
    assert is_ready(result)
    tool, told = parts_of(result)
    assert (tool["type"], tool["state"], tool["input"]) == (
        "tool-get_weather",
        "output-available",
        {"location": "Tokyo"},
    )
    assert tool["output"]["location"] == "Tokyo"
    assert "Tokyo" in told["text"]


@every_release
def test_reasoning_comes_before_the_answer(node: NodeDriver, release: str) -> None:
    result = chat(node, release, agent_saying([thought("Let me see."), text("Yes.")]), "hm?")
    assert is_ready(result)
    assert [(part["type"], part["text"]) for part in parts_of(result)] == [
        ("reasoning", "Let me see."),
        ("text", "Yes."),
    ]


@every_release
def test_parallel_calls_and_text_around_them_keep_their_order(node: NodeDriver, release: str) -> None:
    calls = [text("Looking."), call("get_weather", location="Oslo"), call("get_weather", location="Rome")]
    result = chat(node, release, agent_saying(calls, "Both fine.", tools=[get_weather]), "weather?")
    assert is_ready(result)
    assert [part["type"] for part in parts_of(result)] == ["text", "tool-get_weather", "tool-get_weather", "text"]
    assert [part["output"]["location"] for part in parts_of(result, "tool-get_weather")] == ["Oslo", "Rome"]


@every_release
def test_call_ids_that_repeat_in_every_step_are_told_apart(node: NodeDriver, release: str) -> None:
    def numbered(location: str) -> list[types.Part]:
        arguments = {"location": location}
        return [types.Part(function_call=types.FunctionCall(id="0", name="get_weather", args=arguments))]

    agent = agent_saying(numbered("Oslo"), numbered("Rome"), "Fine.", tools=[get_weather])
    result = chat(node, release, agent, "weather?")
    assert is_ready(result)
    assert [part["output"]["location"] for part in parts_of(result, "tool-get_weather")] == ["Oslo", "Rome"]


@every_release
def test_a_turn_that_ends_on_a_tool_result_is_not_sent_again(node: NodeDriver, release: str) -> None:
    def quiet(tool_context: ToolContext) -> dict[str, str]:
        """Says all there is to say."""
        tool_context.actions.skip_summarization = True
        return {"ok": "yes"}

    result = chat(node, release, agent_saying([call("quiet")], tools=[quiet]), "go")
    assert is_ready(result)
    assert parts_of(result)[0]["state"] == "output-available"


@every_release
def test_a_tool_that_fails_is_an_error_on_its_part_and_the_model_goes_on(node: NodeDriver, release: str) -> None:
    def failing() -> dict[str, str]:
        """Fails."""
        return {"error": "no such city"}

    result = chat(node, release, agent_saying([call("failing")], "Sorry.", tools=[failing]), "go")
    assert is_ready(result)
    assert (parts_of(result)[0]["state"], parts_of(result)[0]["errorText"]) == ("output-error", "no such city")
    assert spoken(result) == "Sorry."


@every_release
def test_a_tool_that_raises_ends_the_turn_with_an_error_and_the_next_turn_works(node: NodeDriver, release: str) -> None:
    def raising() -> None:
        """Raises."""
        raise RuntimeError("SECRET")

    agent = agent_saying([call("raising")], "Better.", tools=[raising])
    result = chat(node, release, agent, "go", "again")
    assert is_ready(result)
    assert result["onError"] == ["The agent could not answer. Try again."]
    assert "SECRET" not in str(result)
    assert spoken(result) == "Better."


@every_release
def test_a_model_that_fails_in_mid_sentence_leaves_what_it_said(node: NodeDriver, release: str) -> None:
    partial = LlmResponse(content=types.Content(role="model", parts=[text("Half an ")]), partial=True)
    broken = agent_saying([partial, LlmResponse(error_code="SOME_CODE", error_message="SECRET")], "Whole.")
    result = chat(node, release, broken, "go", "again")
    assert is_ready(result)
    assert result["onError"] == ["The agent could not answer. Try again."]
    assert "SECRET" not in str(result)
    assert [part["text"] for message in result["messages"] for part in message["parts"] if part["type"] == "text"] == [
        "go", "Half an ", "again", "Whole.",
    ]  # fmt: skip


@every_release
def test_agents_in_sequence_each_speak_under_their_own_name(node: NodeDriver, release: str) -> None:
    agents = [LlmAgent(name=name, model=ScriptedModel([f"I am {name}."])) for name in ("first", "second")]
    result = chat(node, release, SequentialAgent(name="both", sub_agents=agents), "who?")
    assert is_ready(result)
    assert [(part["text"], part["providerMetadata"]["adk"]["author"]) for part in parts_of(result, "text")] == [
        ("I am first.", "first"),
        ("I am second.", "second"),
    ]


@every_release
def test_agents_in_parallel_do_not_mix_their_words(node: NodeDriver, release: str) -> None:
    agents = [
        LlmAgent(
            name=name,
            model=ScriptedModel([[call("get_weather", location=name)], f"{name} speaks many words here."]),
            tools=[get_weather],
        )
        for name in ("left", "right")
    ]
    result = chat(node, release, ParallelAgent(name="both", sub_agents=agents), "go", in_parallel=True)
    assert is_ready(result)
    said = {part["providerMetadata"]["adk"]["author"]: part["text"] for part in parts_of(result, "text")}
    assert said == {"left": "left speaks many words here.", "right": "right speaks many words here."}
    assert {part["state"] for part in parts_of(result, "tool-get_weather")} == {"output-available"}


@every_release
def test_arguments_that_stream_are_shown_while_they_do(node: NodeDriver, release: str) -> None:
    def partial(**fields: Any) -> LlmResponse:
        streamed = types.FunctionCall(id="c1", will_continue=True, **fields)
        return LlmResponse(
            content=types.Content(role="model", parts=[types.Part(function_call=streamed)]), partial=True
        )

    whole = types.FunctionCall(id="c1", name="get_weather", args={"location": "New York"})
    script = [
        partial(name="get_weather"),
        partial(partial_args=[types.PartialArg(json_path="$.location", string_value="New ", will_continue=True)]),
        partial(partial_args=[types.PartialArg(json_path="$.location", string_value="York")]),
        LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=whole)]), partial=False),
    ]
    result = chat(node, release, agent_saying(script, "Fine.", tools=[get_weather]), "go")
    assert is_ready(result)
    kinds = [chunk["type"] for chunk in result["requests"][0]["response"]["chunks"] if "tool" in chunk["type"]]
    assert kinds == [
        "tool-input-start", "tool-input-delta", "tool-input-delta", "tool-input-available", "tool-output-available",
    ]  # fmt: skip
    assert parts_of(result)[0]["input"] == {"location": "New York"}


@every_release
def test_sources_files_and_code_are_parts_of_the_message(node: NodeDriver, release: str) -> None:
    web = types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://example.org/a", title="A"))
    support = types.GroundingSupport(
        grounding_chunk_indices=[0], segment=types.Segment(start_index=0, end_index=5, text="Water")
    )
    parts = [
        types.Part(executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON)),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")),
        types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png")),
        text("Water is wet."),
    ]
    whole = LlmResponse(
        content=types.Content(role="model", parts=parts),
        grounding_metadata=types.GroundingMetadata(grounding_chunks=[web], grounding_supports=[support]),
    )
    body = {"sdkVersion": 7} if release == "7" else {}
    result = chat(node, release, agent_saying([whole]), "go", body=body)
    assert is_ready(result)
    code, file, said, source = parts_of(result)
    assert (code["type"], code["toolName"], code["output"]["output"]) == ("dynamic-tool", "code_execution", "2")
    assert (file["type"], file["url"]) == ("file", "data:image/png;base64,iVBORw==")
    citations = said["citations"] if release == "7" else said["providerMetadata"]["adk"]["citations"]
    assert (citations[0]["endIndex"], citations[0]["source"]["url"]) == (5, "https://example.org/a")
    assert (source["type"], source["url"], source["title"]) == ("source-url", "https://example.org/a", "A")


@every_release
def test_text_that_a_callback_replaced_is_marked_and_the_replacement_shown(node: NodeDriver, release: str) -> None:
    def redact(callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse | None:
        if llm_response.partial:
            return None
        return LlmResponse(content=types.Content(role="model", parts=[text("REDACTED")]))

    result = chat(node, release, agent_saying("the secret", after_model_callback=redact), "go")
    assert is_ready(result)
    assert [(part["text"], part["providerMetadata"]["adk"]) for part in parts_of(result)] == [
        ("the secret", {"replaced": True}),
        ("REDACTED", {"replaces": True}),
    ]


@every_release
def test_an_image_of_the_users_reaches_the_model(node: NodeDriver, release: str) -> None:
    agent = agent_saying("A cat.")
    file = {"mediaType": "image/png", "filename": "cat.png", "url": "data:image/png;base64,iVBORw=="}
    result = chat(node, release, agent, {"send": "what is it?", "files": [file]})
    assert is_ready(result)
    seen = agent.model.requests[0].contents[-1].parts  # pyright: ignore
    assert [part.inline_data.data if part.inline_data else part.text for part in seen] == [b"\x89PNG", "what is it?"]


@pytest.mark.parametrize("release", WITH_APPROVALS)
def test_a_call_that_needs_approval_ends_the_turn_and_waits(node: NodeDriver, release: str) -> None:
    result = chat(node, release, build_agent(OfflineModel()), "Send 50 dollars to Hanako")
    assert is_ready(result)
    payment = parts_of(result, "tool-process_payment")[0]
    assert payment["state"] == "approval-requested"
    assert payment["input"] == {"amount": 50, "recipient": "Hanako", "currency": "USD"}
    assert result["onFinish"][0].get("finishReason") == "tool-calls"


def test_release_5_is_asked_by_the_confirmation_tool(node: NodeDriver) -> None:
    result = chat(node, "5", build_agent(OfflineModel()), "Send 50 dollars to Hanako")
    assert is_ready(result)
    payment, confirmation = parts_of(result, "tool-process_payment", "tool-adk_request_confirmation")
    assert (payment["state"], confirmation["state"]) == ("input-available", "input-available")
    assert confirmation["input"]["originalFunctionCall"]["id"] == payment["toolCallId"]
    assert confirmation["input"]["toolConfirmation"]["confirmed"] is False


@every_release
def test_a_browser_tool_ends_the_turn_with_its_call_open(node: NodeDriver, release: str) -> None:
    result = chat(node, release, build_agent(OfflineModel()), "Change BGM to track 1")
    assert is_ready(result)
    assert [(part["type"], part["state"]) for part in parts_of(result)] == [("tool-change_bgm", "input-available")]
    assert [called["toolName"] for called in result["onToolCall"]] == ["change_bgm"]


@every_release
def test_work_of_the_servers_that_is_not_done_yet_is_not_sent_again(node: NodeDriver, release: str) -> None:
    def start_job() -> dict[str, str]:
        """Starts a job."""
        return {"status": "pending"}

    agent = agent_saying([call("start_job")], "Started.", tools=[LongRunningFunctionTool(start_job)])
    result = chat(node, release, agent, "go")
    assert is_ready(result)
    assert (parts_of(result)[0]["output"], parts_of(result)[0]["preliminary"]) == ({"status": "pending"}, True)
    assert spoken(result) == "Started."


@every_release
def test_a_refusal_is_an_error_of_the_chat_that_says_why(node: NodeDriver, release: str) -> None:
    file = {"mediaType": "image/png", "filename": "cat.png", "url": "https://example.org/cat.png"}
    result = chat(node, release, agent_saying(), {"send": "look", "files": [file]})
    assert result["status"] == "error"
    assert "Files must be sent as data: URLs." in result["error"]
    assert result["requests"][0]["response"]["status"] == 400


@every_release
def test_usage_and_model_are_metadata_of_the_message(node: NodeDriver, release: str) -> None:
    result = chat(node, release, build_agent(OfflineModel()), "hello")
    metadata = result["messages"][-1]["metadata"]
    assert metadata["modelVersion"]
    assert metadata["usage"]["totalTokens"] == metadata["usage"]["inputTokens"] + metadata["usage"]["outputTokens"]


@every_release
def test_an_artifact_is_a_file_of_the_message(node: NodeDriver, release: str) -> None:
    async def draw(tool_context: ToolContext) -> dict[str, str]:
        """Draws."""
        await tool_context.save_artifact("cat.png", types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png"))
        return {"drawn": "yes"}

    result = chat(node, release, agent_saying([call("draw")], "Here.", tools=[FunctionTool(draw)]), "draw")
    assert is_ready(result)
    assert parts_of(result, "file")[0]["url"].endswith("/files/cat.png?version=0")
