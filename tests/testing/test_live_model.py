"""The scripted live model, in ADK's real `run_live`."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol.testing import LiveSession, Reply, ScriptedLiveModel, call, thought
from support.live_runs import live_run, stored_lines

PAY = 'call pay {"amount": 1}'
PAID = 'response pay {"paid": 1}'


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


def agent_on(model: ScriptedLiveModel, *tools: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=model, tools=list(tools) or [pay])


def texts_of(contents: list[types.Content]) -> list[str]:
    return [part.text or "" for content in contents for part in content.parts or [] if part.text]


# -- scripts ----------------------------------------------------------------------------------------------------------


async def test_text_comes_in_words_and_then_whole() -> None:
    async with live_run(agent_on(ScriptedLiveModel([[thought("Hm, well."), types.Part(text="Good day.")]]))) as run:
        run.write("Hello")
        assert await run.until("turn_complete") == [
            "thought Hm, ",
            "thought well.",
            "THOUGHT Hm, well.",
            "text Good ",
            "text day.",
            "TEXT Good day.",
            "turn_complete",
        ]
        assert await run.rest() == []


@pytest.mark.parametrize(
    ("family", "told"),
    [
        ("2.5", [PAY, PAID, "turn_complete", "text Paid.", "TEXT Paid.", "turn_complete"]),
        ("3", [PAY, PAID, "text Paid.", "TEXT Paid.", "turn_complete"]),
    ],
)
async def test_only_2_5_completes_a_turn_for_its_calls(family: str, told: list[str]) -> None:
    model = ScriptedLiveModel([[call("pay", amount=1)], "Paid."], family=family)
    async with live_run(agent_on(model)) as run:
        run.write("Pay 1")
        lines = await run.until("TEXT") + await run.until("turn_complete")
        assert lines == told
        assert await run.rest() == []


async def test_calls_of_one_message_are_answered_together() -> None:
    model = ScriptedLiveModel([[call("pay", amount=1), call("pay", amount=2)], "Paid both."])
    async with live_run(agent_on(model)) as run:
        run.write("Pay 1 and 2")
        assert await run.until("turn_complete") == [
            f'{PAY} + call pay {{"amount": 2}}',
            f'{PAID} + response pay {{"paid": 2}}',
            "turn_complete",
        ]
        await run.until("turn_complete")
        assert await run.rest() == []


async def test_model_speaks_only_when_every_call_is_answered() -> None:
    """The responses to a long-running call and to another call of one message come apart."""

    def ask() -> None:
        """Asks somebody."""

    model = ScriptedLiveModel([[call("ask"), call("pay", amount=1)], "All done."])
    async with live_run(agent_on(model, pay, LongRunningFunctionTool(ask))) as run:
        run.write("Ask and pay")
        assert await run.until("turn_complete") == [f"call ask {{}} + {PAY}", PAID, "turn_complete"]
        (asked, _) = run.events[0].get_function_calls()
        await _until_received(model.sessions[0], "response", 1)
        assert len(model.requests) == 1
        answer = types.FunctionResponse(id=asked.id, name="ask", response={"said": "yes"})
        run.queue.send_content(types.Content(role="user", parts=[types.Part(function_response=answer)]))
        assert (await run.until("turn_complete"))[-2] == "TEXT All done."
        assert await run.rest() == []


async def test_one_script_drives_both_modes() -> None:
    model = ScriptedLiveModel([[call("pay", amount=1)], "Paid.", [call("pay", amount=2)], "Paid again."])
    sessions = InMemorySessionService()
    runner = Runner(app_name="app", agent=agent_on(model), session_service=sessions, auto_create_session=True)
    async for _ in runner.run_async(user_id="ann", session_id="chat", new_message=types.UserContent("Pay 1")):
        pass
    async with live_run(agent_on(model), sessions=sessions) as run:
        run.write("Pay 2")
        await run.until("TEXT Paid again.")
        await run.until("turn_complete")
        assert await run.rest() == []
    assert texts_of(model.requests[-1].contents) == ["Pay 1", "Paid.", "Pay 2"]
    assert [received.kind for received in model.sessions[0].received] == ["history", "content", "response", "close"]
    assert await stored_lines(sessions) == [
        "TEXT Pay 1",
        PAY,
        PAID,
        "TEXT Paid.",
        "TEXT Pay 2",
        'call pay {"amount": 2}',
        'response pay {"paid": 2}',
        "turn_complete",
        "TEXT Paid again.",
        "turn_complete",
    ]


async def test_reply_may_depend_on_the_conversation() -> None:
    def total(request: LlmRequest) -> str:
        responses = [
            part.function_response.response["paid"]
            for content in request.contents
            for part in content.parts or []
            if part.function_response and part.function_response.response
        ]
        return f"{sum(responses)} in all."

    model = ScriptedLiveModel([[call("pay", amount=1), call("pay", amount=2)], total], family="3")
    async with live_run(agent_on(model)) as run:
        run.write("Pay 1 and 2")
        assert "TEXT 3 in all." in await run.until("turn_complete")
        assert await run.rest() == []


async def test_history_that_ends_with_the_user_is_answered() -> None:
    sessions = InMemorySessionService()
    async with live_run(agent_on(ScriptedLiveModel([ValueError("broken line")])), sessions=sessions) as run:
        run.write("Are you there?")
        with pytest.raises(ValueError, match="broken line"):
            await run.left()
    async with live_run(agent_on(ScriptedLiveModel(["Yes."])), sessions=sessions) as run:
        assert await run.until("turn_complete") == ["text Yes.", "TEXT Yes.", "turn_complete"]
        assert await run.rest() == []


async def test_speech_has_its_reply_when_it_ends() -> None:
    model = ScriptedLiveModel(["I hear you.", "Still here."])
    async with live_run(agent_on(model)) as run:
        run.queue.send_activity_start()
        run.speak(b"\1\0" * 160)
        run.queue.send_activity_end()
        assert "TEXT I hear you." in await run.until("turn_complete")
        run.speak(b"\1\0" * 160)
        run.queue.send_audio_stream_end()
        assert "TEXT Still here." in await run.until("turn_complete")
        assert await run.rest() == []
    kinds = ["activity_start", "audio", "activity_end", "audio", "audio_stream_end", "close"]
    assert [received.kind for received in model.sessions[0].received] == kinds


async def test_unfinished_content_gets_no_reply() -> None:
    model = ScriptedLiveModel(["Both noted."])
    async with live_run(agent_on(model)) as run:
        run.queue.send_content(types.UserContent("First. "), partial=True)
        run.write("Second.")
        await run.until("turn_complete")
        assert await run.rest() == []
    assert [texts_of(request.contents) for request in model.requests] == [["First. ", "Second."]]


@pytest.mark.parametrize(("family", "completed"), [("2.5", 2), ("3", 1)])
async def test_responses_are_given_as_they_are_and_the_turn_completed(family: str, completed: int) -> None:
    script: list[Reply] = [
        [LlmResponse(content=types.Content(role="model", parts=[call("pay", amount=1)]))],
        [LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Paid.")]), error_code="ODD")],
        [LlmResponse(turn_complete=True, turn_complete_reason=types.TurnCompleteReason.RESPONSE_REJECTED)],
    ]
    async with live_run(agent_on(ScriptedLiveModel(script, family=family))) as run:
        run.write("Pay 1")
        await run.until("TEXT Paid.")
        assert run.events[-1].error_code == "ODD"
        await run.until("turn_complete")
        assert len([event for event in run.events if event.turn_complete]) == completed
        run.write("Go on")
        assert await run.until("turn_complete") == ["turn_complete"]
        assert await run.rest() == []


async def test_turn_beyond_the_script_fails_the_run() -> None:
    model = ScriptedLiveModel(["Yes."])
    async with live_run(agent_on(model)) as run:
        run.write("Once")
        await run.until("turn_complete")
        run.write("Twice")
        with pytest.raises(AssertionError, match="The script has 1 replies; this is call 2"):
            await run.left()
    with pytest.raises(AssertionError, match="this is call 2"):
        await model.finished()


async def _until_received(session: LiveSession, kind: str, count: int) -> None:
    while len([received for received in session.received if received.kind == kind]) < count:
        await asyncio.sleep(0)
