"""Which models talk on while a call waits, and which tools they run beside the conversation."""

from typing import Any

import pytest
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types

from adk_stream_protocol import client_tool
from adk_stream_protocol.adk.live.talking_on import TalkingOn, is_pending_answer, takes_late_answers
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.testing import ScriptedLiveModel
from live.talking_on_pages import look, where
from support.pages import Till

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("gemini-2.5-flash-native-audio-latest", True),
        ("models/gemini-live-2.5-flash-preview", True),
        ("gemini-3.1-flash-live-preview", False),
        ("gemini-3.8-live", True),
        ("gemini-4.0-live", False),
        ("gemini-live", False),
    ],
)
def test_the_models_name_says_whether_it_takes_late_answers(
    name: str, takes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "fake")
    assert takes_late_answers(Gemini(model=name)) is takes


def test_models_of_others_and_those_on_vertex_count_as_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "1")
    monkeypatch.setenv("GOOGLE_API_KEY", "fake")
    vertex = Gemini(model="gemini-2.5-flash-native-audio-latest")
    assert not takes_late_answers(vertex)
    assert not takes_late_answers(ScriptedLiveModel())
    talking_on = TalkingOn("continue")
    talking_on.prepare(vertex, LlmRequest())
    made_by = till_event()
    (part,) = talking_on.pending_answer(CallKey("inv", "call-1"), made_by).parts or []
    assert part.function_response is not None
    assert part.function_response.will_continue is None


def till_event() -> Any:
    from google.adk.events import Event

    made = types.FunctionCall(id="call-1", name="pay", args={})
    return Event(author="helper", content=types.Content(parts=[types.Part(function_call=made)]))


@pytest.mark.parametrize(
    ("wanted", "is_on"), [("continue", True), ("refuse", False), (None, False)], ids=["continue", "refuse", "default"]
)
async def test_only_a_connection_that_talks_on_gets_copies_of_tools_that_may_wait(wanted: Any, is_on: bool) -> None:
    async def stream() -> Any:
        """Streams."""
        yield "x"

    blocking = FunctionTool(Till().pay, require_confirmation=True)
    blocking.name, blocking.behavior = "blocking", types.Behavior.BLOCKING
    gated, browser = FunctionTool(Till().pay, require_confirmation=lambda amount: amount > 1), client_tool(where)
    streaming = FunctionTool(stream, require_confirmation=True)
    free, left = FunctionTool(look), LongRunningFunctionTool(look)
    left.name = "left"
    tools = [gated, browser, streaming, blocking, free, left]
    request = LlmRequest()
    request.append_tools(tools)
    talking_on = TalkingOn(wanted)
    for _ in range(2):  # as for a connection that is resumed
        talking_on.prepare(ScriptedLiveModel(), request)
        beside = {name for name, tool in request.tools_dict.items() if tool.behavior is types.Behavior.NON_BLOCKING}
        assert beside == ({"pay", "where"} if is_on else set())
        declared = [found for tool in request.config.tools or [] for found in tool.function_declarations or []]  # pyright: ignore
        told_beside = {found.name for found in declared if found.behavior is types.Behavior.NON_BLOCKING}
        assert told_beside == beside
        assert len(declared) == len(tools)
    assert [tool.behavior for tool in tools] == [None, None, None, types.Behavior.BLOCKING, None, None]
    assert browser._get_declaration().behavior is None  # pyright: ignore[reportPrivateUsage]


def test_a_pending_answer_is_told_from_a_result() -> None:
    pending = TalkingOn("continue").pending_answer(CallKey("inv", "call-1"), till_event())
    assert is_pending_answer(pending)
    result = types.Part(function_response=types.FunctionResponse(id="call-1", name="pay", response={"paid": 5}))
    assert not is_pending_answer(types.Content(parts=[result]))
    assert not is_pending_answer(types.Content(parts=[types.Part(text="Hello")]))
