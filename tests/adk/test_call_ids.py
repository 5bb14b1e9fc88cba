"""Which ids calls get: their own, or one with a number behind it where another call of the chat has it."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol.adk.calls.call_ids import CallIds


def called(*ids: str | None) -> list[types.Part]:
    return [types.Part(function_call=types.FunctionCall(id=id, name="pay")) for id in ids]


def renamed(call_ids: CallIds, *parts: types.Part, agent: str = "a", branch: str | None = None) -> list[str | None]:
    response = LlmResponse(content=types.Content(role="model", parts=list(parts)))
    call_ids.rename_repeated(response, agent, branch, ())
    assert response.content
    assert response.content.parts
    assert response.content.role == "model"
    return [part.function_call.id if part.function_call else part.text for part in response.content.parts]


def test_a_recorded_id_is_given_to_no_other_call() -> None:
    call_ids = CallIds(["0", "0-2"])
    assert renamed(call_ids, *called("0", "1")) == ["0-3", "1"]


def test_ids_of_one_response_differ() -> None:
    assert renamed(CallIds(()), *called("0", "0", "0")) == ["0", "0-2", "0-3"]


def test_what_was_streamed_keeps_its_id_in_the_whole() -> None:
    call_ids = CallIds(["0"])
    assert renamed(call_ids, *called("0")) == ["0-2"]
    assert renamed(call_ids, *called("0", "0")) == ["0-2", "0-3"]
    assert renamed(call_ids, *called("0")) == ["0-2"]
    call_ids.new_model_call("a", None)
    assert renamed(call_ids, *called("0")) == ["0-4"]


def test_agents_and_branches_are_told_apart() -> None:
    call_ids = CallIds(())
    assert renamed(call_ids, *called("0")) == ["0"]
    assert renamed(call_ids, *called("0"), agent="b") == ["0-2"]
    assert renamed(call_ids, *called("0"), branch="x") == ["0-3"]
    call_ids.new_model_call("b", None)
    assert renamed(call_ids, *called("0")) == ["0"]


def test_other_parts_and_calls_without_ids_stay_as_they_are() -> None:
    parts = [types.Part(text="Hm."), *called(None, "0", None)]
    assert renamed(CallIds(()), *parts) == ["Hm.", None, "0", None]


def test_the_models_own_parts_are_not_changed() -> None:
    kept, repeated = called("1", "0")
    content = types.Content(role="model", parts=[kept, repeated])
    response = LlmResponse(content=content)
    CallIds(["0"]).rename_repeated(response, "a", None, ())
    assert repeated.function_call
    assert repeated.function_call.id == "0"
    assert content.parts == [kept, repeated]
    assert response.content
    assert response.content.parts
    assert response.content.parts[0] is kept


def test_a_response_without_ids_is_left_alone() -> None:
    silent = LlmResponse()
    CallIds(()).rename_repeated(silent, "a", None, ())
    assert silent.content is None
    for parts in (None, [types.Part(text="Hm.")], called(None)):
        content = types.Content(role="model", parts=parts)
        response = LlmResponse(content=content)
        CallIds(()).rename_repeated(response, "a", None, ())
        assert response.content is content


class Events:
    """Of a session with one call; counts how often they are gone through."""

    passes = 0

    def __iter__(self) -> Iterator[Event]:
        self.passes += 1
        return iter([Event(author="a", content=types.Content(role="model", parts=called("0", None)))])


def test_the_session_is_looked_through_once_and_only_if_there_is_a_call_with_an_id() -> None:
    call_ids, events = CallIds(()), Events()
    for parts in ([types.Part(text="Hm.")], called(None)):
        call_ids.rename_repeated(LlmResponse(content=types.Content(parts=parts)), "a", None, events)
    assert events.passes == 0
    response = LlmResponse(content=types.Content(parts=called("0")))
    call_ids.rename_repeated(response, "a", None, events)
    call_ids.rename_repeated(LlmResponse(content=types.Content(parts=called("1"))), "a", None, events)
    assert events.passes == 1
    assert response.content
    assert response.content.parts
    assert response.content.parts[0].function_call
    assert response.content.parts[0].function_call.id == "0-2"


# -- calls that come from callbacks -----------------------------------------------------------------------------------


def event_with(*ids: str | None, long_running: set[str] | None = None, **fields: Any) -> Event:
    about = {"author": "a", "long_running_tool_ids": long_running, **fields}
    return Event(content=types.Content(role="model", parts=called(*ids)), **about)


def ids_of(event: Event) -> list[str | None]:
    return [call.id for call in event.get_function_calls()]


def test_a_call_that_did_not_come_from_the_model_is_renamed_where_it_runs() -> None:
    call_ids = CallIds(["0"])
    call_ids.new_model_call("a", None)
    event = event_with("0", "0", "1", None, long_running={"0", "other"})
    call_ids.rename_replaced(event, ())
    assert ids_of(event) == ["0-2", "0-3", "1", None]
    assert event.long_running_tool_ids == {"0-2", "0-3"}


def test_a_call_that_the_model_made_is_not_renamed_again() -> None:
    call_ids = CallIds(["0"])
    call_ids.new_model_call("a", None)
    assert renamed(call_ids, *called("0", "1")) == ["0-2", "1"]
    event = event_with("0-2", "1", long_running={"1"})
    content = event.content
    call_ids.rename_replaced(event, ())
    assert (event.content is content, event.long_running_tool_ids) == (True, {"1"})


@pytest.mark.parametrize("event", [
    event_with("0", author="b"), event_with("0", branch="b"), event_with("0", partial=True), event_with(),
])  # fmt: skip
def test_what_no_agent_of_the_chat_has_just_said_keeps_its_ids(event: Event) -> None:
    call_ids, before = CallIds(["0"]), ids_of(event)
    call_ids.new_model_call("a", None)
    call_ids.rename_replaced(event, ())
    assert (ids_of(event), event.long_running_tool_ids) == (before, None)


def test_each_model_call_begins_anew() -> None:
    call_ids = CallIds(())
    for expected in ("0", "0-2"):
        call_ids.new_model_call("a", None)
        event = event_with("0")
        call_ids.rename_replaced(event, ())
        assert ids_of(event) == [expected]
