"""Answers that did not come to a plain end: waiting, failed, stopped or cut off. A reload shows what the client saw."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import ScriptedModel, call, text, thought
from support.conversations import (
    Endless,
    HangingModel,
    Store,
    asked_parts,
    conversation,
    every_store,
    folded,
    reloaded,
)


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


def ask_location() -> None:
    """Runs in the browser."""


def start_export() -> dict[str, str]:
    """Takes hours."""
    return {"status": "pending"}


GATED_PAY = FunctionTool(pay, require_confirmation=True)


def shown(parts: list[dict[str, Any]]) -> list[str]:
    return [part["text"] for part in parts if part["type"] == "text"]


# -- waiting ----------------------------------------------------------------------------------------------------------


@every_store
async def test_an_approval_that_nobody_gave_is_still_asked_for(store: Store) -> None:
    async with conversation([text("Sure."), call("pay", amount=5)], store=store, tools=(GATED_PAY,)) as chat:
        answer = await chat.say("Pay 5.")
        parts = await reloaded(chat, answer)
        asked = answer.of_type("tool-approval-request")[0]
        assert parts[1] == {
            "type": "tool-pay",
            "toolCallId": asked["toolCallId"],
            "state": "approval-requested",
            "input": {"amount": 5},
            "approval": {"id": asked["approvalId"]},
        }
        assert (parts[2]["type"], parts[2]["id"]) == ("data-adk-approval", asked["approvalId"])


@every_store
async def test_an_approval_beside_a_finished_call_is_still_asked_for(store: Store) -> None:
    """ADK tells of the result first and asks then; the stores bring the two in another order again."""

    def weather() -> dict[str, str]:
        """The weather."""
        return {"sky": "clear"}

    calls = [call("pay", amount=5), call("weather"), call("pay", amount=6)]
    async with conversation(calls, store=store, tools=(GATED_PAY, weather)) as chat:
        answer = await chat.say("Pay and look.")
        message = (await chat.messages())[-1]
        states = [part["state"] for part in message["parts"] if part["type"].startswith("tool-")]
        assert states == ["approval-requested", "output-available", "approval-requested"]
        tools = [part for part in message["parts"] if "toolCallId" in part]
        assert tools == [part for part in folded(answer)["parts"] if "toolCallId" in part]


@every_store
async def test_an_approval_stays_open_when_the_talk_goes_on(store: Store) -> None:
    script = [[call("pay", amount=5)], "We can talk meanwhile."]
    async with conversation(*script, store=store, tools=(GATED_PAY,)) as chat:
        asked = folded(await chat.say("Pay 5."))
        await chat.say("Something else.")
        messages = await chat.messages()
        assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
        assert messages[1] == asked
        assert shown(messages[3]["parts"]) == ["We can talk meanwhile."]


@every_store
async def test_version_5_finds_the_question_as_a_call(store: Store) -> None:
    async with conversation([call("pay", amount=5)], store=store, tools=(GATED_PAY,), sdk_version=5) as chat:
        parts = await reloaded(chat, await chat.say("Pay 5."))
        assert [(part["type"], part["state"]) for part in parts] == [
            ("tool-pay", "input-available"),
            ("tool-adk_request_confirmation", "input-available"),
        ]


@every_store
async def test_a_call_that_the_browser_has_not_answered_is_still_open(store: Store) -> None:
    tools = (LongRunningFunctionTool(ask_location),)
    async with conversation([call("ask_location")], store=store, tools=tools) as chat:
        (part,) = await reloaded(chat, await chat.say("Where am I?"))
        assert (part["type"], part["state"], part["input"]) == ("tool-ask_location", "input-available", {})


@every_store
async def test_work_that_goes_on_elsewhere_has_its_last_word_so_far(store: Store) -> None:
    tools = (LongRunningFunctionTool(start_export),)
    async with conversation([call("start_export")], "Started.", store=store, tools=tools) as chat:
        part = (await reloaded(chat, await chat.say("Export.")))[0]
        assert (part["state"], part["preliminary"]) == ("output-available", True)
        assert part["output"] == {"status": "pending"}


# -- failed -----------------------------------------------------------------------------------------------------------


@every_store
async def test_a_model_that_failed_at_once_leaves_the_question_alone(store: Store) -> None:
    async with conversation(RuntimeError("SECRET"), "Better.", store=store) as chat:
        await chat.say("hi")
        assert [message["id"] for message in await chat.messages()] == ["u1"]
        await chat.say("again")
        messages = await chat.messages()
        assert [message["role"] for message in messages] == ["user", "user", "assistant"]
        assert "SECRET" not in str(messages)


class BreakingModel(ScriptedModel):
    """Says half of its first answer and breaks."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        async for response in super().generate_content_async(llm_request, stream):
            if len(self.requests) == 1 and not response.partial:
                raise RuntimeError("SECRET")
            yield response


@every_store
async def test_what_a_model_said_before_it_failed_is_kept_and_the_model_knows_it(store: Store) -> None:
    model = BreakingModel(["Half an answer", "Where was I?"])
    async with conversation(agent=LlmAgent(name="helper", model=model), store=store) as chat:
        parts = await reloaded(chat, await chat.say("hi"))
        assert parts == [{"type": "text", "text": "Half an answer", "state": "done"}]
        await chat.say("Go on.")
        assert asked_parts(model.requests[1]) == ["hi", "Half an answer", "Go on."]


def in_sequence(agent: LlmAgent) -> SequentialAgent:
    return SequentialAgent(name="root", sub_agents=[agent])


every_root = pytest.mark.parametrize("root", [lambda agent: agent, in_sequence], ids=["alone", "in sequence"])


@every_store
@every_root
async def test_a_tool_that_raised_has_the_error_that_the_client_was_told(store: Store, root: Any) -> None:
    def broken() -> None:
        """Broken."""
        raise RuntimeError("SECRET")

    agent = LlmAgent(name="helper", model=ScriptedModel([[call("broken")]]), tools=[broken])
    async with conversation(agent=root(agent), store=store) as chat:
        answer = await chat.say("hi")
        (part,) = await reloaded(chat, answer)
        assert part["state"] == "output-error"
        assert part["errorText"] == answer.chunks[-1]["errorText"]


@every_store
async def test_a_tool_that_raised_while_another_agent_spoke_has_the_error_that_the_client_was_told(
    store: Store,
) -> None:
    speaking = HangingModel("Meanwhile I")

    async def broken() -> None:
        """Broken."""
        await speaking.hangs.wait()
        raise RuntimeError("SECRET")

    agents = [
        LlmAgent(name="left", model=speaking),
        LlmAgent(name="right", model=ScriptedModel([[call("broken")]]), tools=[broken]),
    ]
    async with conversation(agent=ParallelAgent(name="both", sub_agents=agents), store=store) as chat:
        answer = await chat.say("hi")
        parts = (await chat.messages())[-1]["parts"]
        assert shown(parts) == ["Meanwhile I"]
        assert [part["errorText"] for part in parts if "toolCallId" in part] == [answer.chunks[-1]["errorText"]]


@every_store
async def test_a_refusal_of_the_model_keeps_what_was_said(store: Store) -> None:
    cut = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text="And then the")]),
        finish_reason=types.FinishReason.MAX_TOKENS,
        error_code="MAX_TOKENS",
    )
    async with conversation([cut], store=store) as chat:
        assert shown(await reloaded(chat, await chat.say("A story."))) == ["And then the"]


# -- stopped ----------------------------------------------------------------------------------------------------------


@every_store
async def test_words_before_a_stop_are_kept_and_the_model_knows_them(store: Store) -> None:
    model = HangingModel("Once upon ", "a time", script=("There was a king.",))
    async with conversation(agent=LlmAgent(name="helper", model=model), store=store) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        await chat.stop()
        parts = await reloaded(chat, await answer)
        assert parts == [{"type": "text", "text": "Once upon a time", "state": "done"}]
        await chat.say("Go on.")
        assert asked_parts(model.requests[1]) == ["A story.", "Once upon a time", "Go on."]
        assert [message["id"] for message in await chat.messages()][::2] == ["u1", "u2"]


@every_store
async def test_thoughts_before_a_stop_stay_thoughts(store: Store) -> None:
    spoke = asyncio.Event()

    class ThinkingModel(ScriptedModel):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            for part in (thought("Let me "), thought("see. "), text("It ")):
                yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
            spoke.set()
            await asyncio.Event().wait()

    async with conversation(agent=LlmAgent(name="helper", model=ThinkingModel()), store=store) as chat:
        answer = asyncio.create_task(chat.say("Why?"))
        await spoke.wait()
        await chat.stop()
        assert await reloaded(chat, await answer) == [
            {"type": "reasoning", "text": "Let me see. ", "state": "done"},
            {"type": "text", "text": "It ", "state": "done"},
        ]


@every_store
async def test_each_of_several_agents_keeps_its_words_before_a_stop(store: Store) -> None:
    models = [HangingModel("Left says"), HangingModel("Right says")]
    agents = [LlmAgent(name=name, model=model) for name, model in zip(("left", "right"), models, strict=True)]
    async with conversation(agent=ParallelAgent(name="both", sub_agents=agents), store=store) as chat:
        answer = asyncio.create_task(chat.say("Speak."))
        for model in models:
            await model.hangs.wait()
        await chat.stop()
        await answer
        spoken = [part for part in (await chat.messages())[-1]["parts"] if part["type"] == "text"]
        assert {part["providerMetadata"]["adk"]["author"]: part["text"] for part in spoken} == {
            "left": "Left says",
            "right": "Right says",
        }


@every_store
@every_root
async def test_a_call_that_was_stopped_is_a_closed_call(store: Store, root: Any) -> None:
    tool = Endless()
    model = ScriptedModel([[text("Working."), call("endless")]])
    agent = LlmAgent(name="helper", model=model, tools=[tool.endless])
    async with conversation(agent=root(agent), store=store) as chat:
        answer = asyncio.create_task(chat.say("Work."))
        await tool.started.wait()
        await chat.stop()
        spoken, stopped = await reloaded(chat, await answer)
        assert spoken["text"] == "Working."
        assert stopped["state"] == "output-error"


# -- cut off by a limit -----------------------------------------------------------------------------------------------


@every_store
async def test_an_answer_that_grew_too_long_says_so(store: Store) -> None:
    agent = LlmAgent(name="helper", model=HangingModel("Once upon ", "a" * 900, "b" * 900))
    async with conversation(agent=agent, store=store, limits=Limits(max_log_bytes=1000)) as chat:
        (spoken,) = shown(await reloaded(chat, await chat.say("A story.")))
        assert spoken.startswith("Once upon aaa")
        assert (await chat.messages())[-1]["metadata"] == {"limit": "size"}


@every_store
async def test_a_tool_that_was_at_work_when_a_limit_was_reached_is_closed(store: Store) -> None:
    async def endless(what: str) -> None:
        """Endless."""
        await asyncio.Event().wait()

    limits = Limits(max_log_bytes=1000)
    async with conversation([call("endless", what="x" * 999)], store=store, tools=(endless,), limits=limits) as chat:
        (tool,) = await reloaded(chat, await chat.say("Work."))
        assert tool["state"] == "output-error"
        assert (await chat.messages())[-1]["metadata"] == {"limit": "size"}


@every_store
async def test_an_agent_that_asked_its_model_too_often_says_so(store: Store) -> None:
    def look() -> dict[str, str]:
        """Looks."""
        return {"seen": "nothing"}

    config = RunConfig(max_llm_calls=1)
    async with conversation([call("look")], store=store, tools=(look,), run_config=config) as chat:
        (tool,) = await reloaded(chat, await chat.say("Look."))
        assert tool["state"] == "output-available"
        assert (await chat.messages())[-1]["metadata"] == {"limit": "model-calls"}
