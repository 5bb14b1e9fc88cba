"""What a process knows of a chat while it holds its lease."""

import asyncio
import copy
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import Session
from google.genai import types

from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.protocol.call_record import CallKey, State
from adk_stream_protocol.store.base import Lease, Snapshot
from support.records import CHAT, paid, record
from support.virtual_time import run

pytestmark = pytest.mark.virtual_time

FIRST, SECOND = CallKey("i1", "1"), CallKey("i1", "2")


def taken(*records: Any) -> LeasedChat:
    return LeasedChat.taken(Lease(CHAT, "run-1"), Snapshot(records, 5.0))


def test_it_begins_with_what_the_store_knew() -> None:
    first, second = record("1"), paid("2")
    leased = taken(first, second)
    assert leased.key == CHAT
    assert leased.records == {FIRST: first, SECOND: second}
    assert leased.known() == Snapshot([first, second], 5.0)
    assert (leased.prepared, leased.sdk_version, leased.message_id) == (None, None, None)
    assert (leased.observer, leased.live_observer, leased.sessions) == (None, None, None)
    assert not leased.delivered
    assert not leased.unasked
    assert not leased.at_work
    assert not leased.unstored
    assert not leased.begins_nothing
    assert not leased.is_lost
    assert not leased.leaves_calls
    assert asyncio.run(leased.on_user_message(None)) is None  # pyright: ignore


def test_two_of_one_chat_are_two() -> None:
    leased = taken()
    assert copy.copy(leased) != leased


def test_ids_of_recorded_calls_are_taken() -> None:
    for leased, id in ((taken(record("1")), "1-2"), (LeasedChat(Lease(CHAT, "run-1"), {}, 5.0), "1")):
        part = types.Part(function_call=types.FunctionCall(id="1", name="pay"))
        response = LlmResponse(content=types.Content(parts=[part]))
        leased.call_ids.rename_repeated(response, "a", None, ())
        assert response.content
        assert response.content.parts
        assert response.content.parts[0].function_call
        assert response.content.parts[0].function_call.id == id


def test_a_tool_is_at_work_and_then_its_result_is_to_be_stored() -> None:
    leased = taken(record("1"))
    leased.begin(FIRST)
    assert leased.at_work == leased.unstored == {FIRST}
    leased.end(FIRST)
    assert (leased.at_work, leased.unstored) == (set(), {FIRST})
    leased.store_result(FIRST)
    assert (leased.unstored, leased.delivered) == (set(), {FIRST})


def test_what_has_no_result_is_not_to_be_stored() -> None:
    leased = taken(record("1"))
    leased.begin(FIRST)
    leased.end(FIRST, has_result=False)
    assert leased.at_work == leased.unstored == set()
    leased.end(FIRST)


def test_the_result_of_a_call_without_a_record_is_no_delivery() -> None:
    leased = taken()
    leased.store_result(FIRST)
    assert leased.delivered == set()


def test_what_a_run_has_begun_and_not_ended_is_unknown() -> None:
    records = [
        record("1", State.STARTED, lease_token="run-1"),
        record("2", State.STARTED, lease_token="run-2"),
        record("3", State.CLAIMED, lease_token="run-1"),
    ]
    leased = taken(*records)
    leased.begin(FIRST)
    leased.lose_calls()
    assert not leased.at_work
    assert not leased.unstored
    assert [found.state for found in leased.records.values()] == [State.UNKNOWN, State.STARTED, State.CLAIMED]


async def waited(leased: LeasedChat, longest_s: float, *later: Any) -> float:
    """How long it waits, while this happens, a second after the other."""
    loop = asyncio.get_running_loop()
    for number, work in enumerate(later):
        loop.call_later(number + 1, work)
    began = loop.time()
    await leased.until_tools_end(longest_s)
    return loop.time() - began


def test_nothing_at_work_is_not_waited_for() -> None:
    assert run(waited(taken(), 10)) == 0


@pytest.mark.parametrize("end", ["end", "lose"])
async def test_tools_are_waited_for(end: str) -> None:
    leased = taken()
    leased.begin(FIRST)
    leased.begin(SECOND)
    if end == "lose":
        assert await waited(leased, 10, leased.lose_calls) == pytest.approx(1)
        return
    ends = [lambda: leased.end(FIRST, has_result=False), lambda: leased.end(SECOND, has_result=False)]
    assert await waited(leased, 10, *ends) == pytest.approx(2)


async def test_a_tool_that_waits_for_the_answer_to_a_call_inside_it_is_not_waited_for() -> None:
    leased = taken()
    leased.begin(FIRST)
    assert await waited(leased, 10, lambda: leased.waits(SECOND, frozenset({FIRST}))) == pytest.approx(1)


async def test_results_are_waited_for_only_a_moment() -> None:
    leased = taken()
    leased.begin(FIRST)
    assert await waited(leased, 10, lambda: leased.end(FIRST)) == pytest.approx(2)
    leased.begin(FIRST)
    asyncio.get_running_loop().call_later(1.5, lambda: leased.store_result(FIRST))
    assert await waited(leased, 10, lambda: leased.end(FIRST)) == pytest.approx(1.5)


async def test_patience_has_an_end() -> None:
    leased = taken()
    leased.begin(FIRST)
    assert await waited(leased, 3) == pytest.approx(4)
    assert await waited(leased, 0.5) == pytest.approx(1)


def test_what_was_answered_is_told_in_its_order() -> None:
    leased = taken(record("1"), record("2"))
    leased.note_answers([SECOND, FIRST])
    assert leased.unplaced == [("answer", SECOND), ("answer", FIRST)]


def test_each_call_is_recorded_with_what_the_run_was_prepared_with_and_the_client_that_it_is_for() -> None:
    leased = taken()
    leased.prepared, leased.sdk_version = {"model": "large"}, 6
    assert leased.turn == {"prepared": {"model": "large"}, "sdk_version": 6}


async def test_the_title_is_made_of_what_the_run_has_begun_with() -> None:
    leased = taken()
    assert await leased.title() is None
    said = Event(author="user", content=types.UserContent("Pay the rent."))
    leased.begun = Session(id="c1", app_name="helper", user_id="ann", events=[said])
    assert await leased.title() == "Pay the rent."


def test_what_came_of_calls_inside_is_delivered_with_the_outer_one() -> None:
    inside = paid("2", is_nested=True, made_in={"agent": "b", "outer": "1"})
    other = paid("3", is_nested=True, made_in={"agent": "b", "outer": "9"})
    leased = taken(record("1"), inside, other, paid("4", is_nested=True, made_in={"agent": "b", "outer": None}))
    leased.begin(SECOND)
    leased.store_result(SECOND)
    assert (leased.unstored, leased.delivered) == (set(), set())
    leased.store_result(CallKey("i1", "4"))
    assert leased.delivered == {CallKey("i1", "4")}
    leased.store_result(FIRST)
    assert leased.delivered == {FIRST, SECOND, CallKey("i1", "4")}
    leased.store_result(CallKey("i1", "9"))  # without a record of its own
    assert leased.delivered == {FIRST, SECOND, CallKey("i1", "3"), CallKey("i1", "4")}
