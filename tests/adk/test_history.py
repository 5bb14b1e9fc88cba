"""After a reload the conversation is what the client had: the same messages, part by part, whatever keeps them."""

import base64
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import ToolContext
from google.genai import types

from adk_stream_protocol.testing import ScriptedModel, call, text, thought
from support.conversations import Store, conversation, database, every_store, folded, reloaded, sqlite_file


def weather(city: str) -> dict[str, str]:
    """The weather of a city."""
    return {"sky": f"clear in {city}"} if city != "Atlantis" else {"error": "No such city."}


def said(*parts: types.Part | str, **fields: Any) -> list[LlmResponse]:
    """One whole response of a model, without streaming."""
    spoken = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    return [LlmResponse(content=types.Content(role="model", parts=spoken), **fields)]


@every_store
async def test_both_messages_of_a_turn_have_the_ids_that_the_client_saw(store: Store) -> None:
    async with conversation("Hello there.", "Fine, thanks.", store=store) as chat:
        first = await chat.say("Good morning")
        second = await chat.say("How are you?")
        assert await chat.messages() == [
            {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Good morning"}]},
            {
                "id": first.chunks[0]["messageId"],
                "role": "assistant",
                "parts": [{"type": "step-start"}, {"type": "text", "text": "Hello there.", "state": "done"}],
            },
            {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "How are you?"}]},
            {
                "id": second.chunks[0]["messageId"],
                "role": "assistant",
                "parts": [{"type": "step-start"}, {"type": "text", "text": "Fine, thanks.", "state": "done"}],
            },
        ]


@every_store
async def test_reasoning_words_and_parallel_calls_with_results_and_errors_come_back(store: Store) -> None:
    calls = [call("weather", city="Oslo"), call("weather", city="Atlantis")]
    script = [[thought("I should look."), text("One moment."), *calls], "Oslo is clear."]
    async with conversation(*script, store=store, tools=(weather,)) as chat:
        answer = await chat.say("Weather in Oslo and Atlantis?")
        ids = [part.function_call.id for part in calls if part.function_call]
        assert await reloaded(chat, answer) == [
            {"type": "reasoning", "text": "I should look.", "state": "done"},
            {"type": "text", "text": "One moment.", "state": "done"},
            {
                "type": "tool-weather",
                "toolCallId": ids[0],
                "state": "output-available",
                "input": {"city": "Oslo"},
                "output": {"sky": "clear in Oslo"},
            },
            {
                "type": "tool-weather",
                "toolCallId": ids[1],
                "state": "output-error",
                "input": {"city": "Atlantis"},
                "errorText": "No such city.",
            },
            {"type": "text", "text": "Oslo is clear.", "state": "done"},
        ]


@every_store
async def test_the_same_call_id_in_two_steps_stays_two_calls(store: Store) -> None:
    def zero(city: str) -> types.Part:
        return types.Part(function_call=types.FunctionCall(id="0", name="weather", args={"city": city}))

    async with conversation([zero("Oslo")], [zero("Rome")], "Both.", store=store, tools=(weather,)) as chat:
        parts = await reloaded(chat, await chat.say("Weather?"))
        assert [(part["toolCallId"], part["output"]["sky"]) for part in parts if "output" in part] == [
            ("0", "clear in Oslo"),
            ("0-2", "clear in Rome"),
        ]


@every_store
async def test_sources_come_back(store: Store) -> None:
    page = types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://sky.example/", title="Sky"))
    document = types.GroundingChunk(
        retrieved_context=types.GroundingChunkRetrievedContext(uri="gs://books/sky.pdf", title="On the sky")
    )
    found = types.GroundingMetadata(grounding_chunks=[page, document])

    async with conversation(said("It is blue.", grounding_metadata=found), store=store) as chat:
        parts = await reloaded(chat, await chat.say("Why?"))
        assert [part["type"] for part in parts] == ["text", "source-url", "source-document"]
        assert (parts[1]["url"], parts[1]["title"]) == ("https://sky.example/", "Sky")
        assert parts[2]["title"] == "On the sky"


IMAGE = b"\xfb\xef\xbe"  # "++++" in standard base64, "----" in the URL-safe one that ADK's JSON has
IMAGE_URL = f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}"


@every_store
async def test_files_of_the_user_and_of_the_model_come_back_with_their_bytes(store: Store) -> None:
    picture = types.Part(inline_data=types.Blob(data=IMAGE, mime_type="image/png"))
    file = {"url": IMAGE_URL, "mediaType": "image/png", "filename": "cat.png"}
    async with conversation([text("Here: "), picture], store=store) as chat:
        answer = await chat.say("Turn it round.", files=(file,))
        assert (await reloaded(chat, answer))[1] == {"type": "file", "url": IMAGE_URL, "mediaType": "image/png"}
        assert (await chat.messages())[0]["parts"] == [
            {"type": "file", **file},
            {"type": "text", "text": "Turn it round."},
        ]


async def draw(tool_context: ToolContext) -> dict[str, Any]:
    """Draws."""
    await tool_context.save_artifact("a map.png", types.Part.from_bytes(data=IMAGE, mime_type="image/png"))
    return {"drawn": True}


@every_store
async def test_an_artifact_comes_back_as_a_file_that_can_be_fetched(store: Store) -> None:
    async with conversation([call("draw")], "Done.", store=store, tools=(draw,)) as chat:
        parts = await reloaded(chat, await chat.say("Draw."))
        artifact, file = parts[1:3]
        assert artifact == {"type": "data-adk-artifact", "data": {"filename": "a map.png", "version": 0}}
        assert file["url"] == "/api/chat/c1/files/a%20map.png?version=0"
        fetched = await chat.fetch("GET", file["url"])
        assert (fetched.content, fetched.headers["content-type"]) == (IMAGE, file["mediaType"])


@every_store
async def test_code_that_the_service_ran_comes_back(store: Store) -> None:
    code = types.Part(executable_code=types.ExecutableCode(code="6*7", language=types.Language.PYTHON))
    result = types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="42"))

    async with conversation([text("I compute."), code, result, text("42.")], store=store) as chat:
        parts = await reloaded(chat, await chat.say("6*7?"))
        assert parts[1] == {
            "type": "dynamic-tool",
            "toolName": "code_execution",
            "toolCallId": "code_execution-1",
            "providerExecuted": True,
            "state": "output-available",
            "input": {"language": "PYTHON", "code": "6*7"},
            "output": {"outcome": "OUTCOME_OK", "output": "42"},
        }


def speaker(name: str, *script: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(script))


def authors(parts: list[dict[str, Any]]) -> dict[str, str]:
    return {part["providerMetadata"]["adk"]["author"]: part["text"] for part in parts if part["type"] == "text"}


@every_store
async def test_agents_in_sequence_keep_their_names(store: Store) -> None:
    agent = SequentialAgent(name="both", sub_agents=[speaker("writer", "A draft."), speaker("critic", "Too long.")])
    async with conversation(agent=agent, store=store) as chat:
        parts = await reloaded(chat, await chat.say("Write."))
        assert authors(parts) == {"writer": "A draft.", "critic": "Too long."}


@every_store
async def test_agents_in_parallel_keep_their_names_and_words(store: Store) -> None:
    """Their order may be another than in the stream, where they spoke at the same time."""
    agent = ParallelAgent(
        name="both", sub_agents=[speaker("left", "I say this and that."), speaker("right", "And I this.")]
    )
    async with conversation(agent=agent, store=store) as chat:
        answer = await chat.say("Speak.")
        message = (await chat.messages())[-1]
        assert message["id"] == folded(answer)["id"]
        spoken = [part for part in message["parts"] if part["type"] == "text"]
        assert authors(spoken) == authors(folded(answer)["parts"])
        assert authors(spoken) == {"left": "I say this and that.", "right": "And I this."}


@every_store
async def test_a_transfer_to_another_agent_comes_back(store: Store) -> None:
    script = [[call("transfer_to_agent", agent_name="expert")]]
    agent = LlmAgent(name="front", model=ScriptedModel(script), sub_agents=[speaker("expert", "I know.", "Still.")])
    async with conversation(agent=agent, store=store) as chat:
        parts = await reloaded(chat, await chat.say("Who knows?"))
        assert parts[0] == {"type": "data-adk-agent", "data": {"agent": "expert"}}
        assert authors(parts) == {"expert": "I know."}
        assert authors(await reloaded(chat, await chat.say("Sure?"))) == {"expert": "Still."}


@every_store
async def test_what_a_turn_used_comes_back(store: Store) -> None:
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=10, candidates_token_count=5, total_token_count=15
    )

    script = [
        said(call("weather", city="Oslo"), usage_metadata=used, model_version="m-1"),
        said("Clear.", usage_metadata=used, model_version="m-1"),
    ]
    async with conversation(*script, store=store, tools=(weather,)) as chat:
        answer = await chat.say("Weather?")
        await reloaded(chat, answer)
        assert (await chat.messages())[-1]["metadata"] == {
            "usage": {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30},
            "modelVersion": "m-1",
        }


@every_store
async def test_the_client_s_version_is_minded(store: Store) -> None:
    page = types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://sky.example/", title="Sky"))
    segment = types.Segment(start_index=0, end_index=6, text="It is ")
    found = types.GroundingMetadata(
        grounding_chunks=[page],
        grounding_supports=[types.GroundingSupport(segment=segment, grounding_chunk_indices=[0])],
    )

    async with conversation(said("It is blue.", grounding_metadata=found), store=store) as chat:
        answer = await chat.say("Why?", sdkVersion=7)
        (spoken,) = [p for p in (await chat.messages(x_ai_sdk_version="7"))[-1]["parts"] if p["type"] == "text"]
        assert spoken == next(part for part in folded(answer)["parts"] if part["type"] == "text")
        assert spoken["citations"]
        (older,) = [p for p in (await chat.messages())[-1]["parts"] if p["type"] == "text"]
        assert "citations" not in older
        assert older["providerMetadata"]["adk"]["citations"]


# -- other writers of the same session --------------------------------------------------------------------------------


def foreign(author: str, words: str, invocation_id: str) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=words)])
    return Event(author=author, invocation_id=invocation_id, content=content)


@every_store
async def test_messages_of_other_clients_have_ids_that_stay(store: Store) -> None:
    async with conversation("Yes.", store=store) as chat:
        asked = foreign("user", "By telephone?", "i1")
        await chat.append(asked, foreign("helper", "Ring ring.", "i1"), foreign("helper", "Hello?", "i1"))
        answer = await chat.say("Are you there?")
        messages = await chat.messages()
        assert [message["id"] for message in messages] == [
            asked.id,
            "msg-i1",
            "u1",
            answer.chunks[0]["messageId"],
        ]
        assert [part["text"] for part in messages[1]["parts"] if part["type"] == "text"] == ["Ring ring.", "Hello?"]
        assert await chat.messages() == messages


@every_store
async def test_a_message_without_an_id_gets_one_that_stays(store: Store) -> None:
    async with conversation("Hello.", store=store) as chat:
        await chat.post({"id": "c1", "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]})
        messages = await chat.messages()
        assert messages[0]["id"]
        assert messages[0]["parts"] == [{"type": "text", "text": "hi"}]
        assert await chat.messages() == messages


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # ADK leaves it open; Python 3.13 says so
@pytest.mark.parametrize("kept", [sqlite_file, database])
async def test_a_server_that_starts_anew_tells_the_same(kept: Any, tmp_path: Path) -> None:
    def store() -> Any:
        return kept(tmp_path / "chats.db")

    script = [[thought("Look."), call("weather", city="Oslo"), call("weather", city="Atlantis")], "Clear."]
    async with conversation(*script, store=store, tools=(weather,)) as before:
        await before.say("Weather?")
        told, listed = await before.messages(), await before.chats()
    async with conversation("And on.", store=store, tools=(weather,)) as after:
        assert await after.messages() == told
        assert await after.chats() == listed
        after._said = 1  # pyright: ignore -- the client's ids of its messages are new ones
        assert (await after.say("Go on.")).text == "And on."
        assert (await after.messages())[:2] == told
