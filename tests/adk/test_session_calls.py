"""Which calls of a chat somebody answers, found in its events and its records."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from adk_stream_protocol import loop_share
from adk_stream_protocol.adk.calls.session_calls import (
    SessionCall,
    calls_made,
    find_session_calls,
    open_questions,
    unasked_among,
)
from adk_stream_protocol.adk.event_parts import ControlFlow
from adk_stream_protocol.protocol.call_keys import work_key
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from support.records import CHAT, paid, record
from support.session_events import ASKS, answering, asking, calling, empty_chat, pay


def found(events: list[Event], *records: CallRecord, control_flow: ControlFlow | None = None) -> list[SessionCall]:
    return asyncio.run(find_session_calls(empty_chat(control_flow), events, records))


def test_a_call_is_found_with_adks_question_about_it() -> None:
    made, asked = calling(pay()), asking("q1", {"id": "1"})
    kept = record()
    (call,) = found([made, asked], kept)
    assert (call.wire_id, call.approval_id, call.message_id, call.key) == ("1", "q1", "m1", kept.call)
    assert call.asked_by is asked
    assert call.record is kept
    assert not call.has_result
    assert call.is_known_to_adk


def test_calls_come_in_the_order_of_the_session() -> None:
    events = [calling(pay("2"), pay("1")), asking("q1", {"id": "1"}), asking("q2", {"id": "2"})]
    assert [call.approval_id for call in found(events, record("1"), record("2"))] == ["q2", "q1"]


def test_a_call_that_a_live_session_asks_about_is_not_known_to_adk() -> None:
    made = calling(pay())
    (call,) = found([made], record(approval_id="live-1"))
    assert (call.approval_id, call.asked_by, call.is_known_to_adk) == ("live-1", made, False)


def test_a_browsers_call_is_asked_by_its_own_event() -> None:
    made = calling(pay())
    (call,) = found([made, asking("q1", {"id": "1"})], record(executor="browser", approval_id="b1"))
    assert (call.approval_id, call.asked_by, call.is_known_to_adk) == ("b1", made, True)
    (call,) = found([made], record(executor="browser", state=State.APPROVED))
    assert (call.approval_id, call.is_known_to_adk) == (None, True)


def test_what_nobody_was_asked_about_is_not_found() -> None:
    assert found([calling(pay())]) == []
    assert found([calling(pay())], record()) == []
    assert found([], record(approval_id="live-1")) == []
    assert found([calling(pay(), invocation_id="i2")], record(approval_id="live-1")) == []


def test_adk_has_not_asked_about_an_open_call_of_the_server_without_a_question() -> None:
    unasked = [record("1"), record("2", State.APPROVED), record("3", State.IN_CHAIN)]
    others = [
        paid("4"),
        record("5", State.STARTED),
        record("6", executor="browser"),
        record("7", approval_id="q7"),
        record("8", made_in={"delegated": True}),
        record("9"),
    ]
    asked = found([calling(pay("9")), asking("q9", {"id": "9"})], *others)
    assert unasked_among([*unasked, *others], asked) == {each.call for each in unasked}


def test_what_ended_before_anybody_was_asked_is_found() -> None:
    """Its model is still to hear of it."""
    (call,) = found([calling(pay())], record(state=State.DENIED))
    assert (call.is_asked, call.is_undelivered, call.approval_id) == (False, True, None)
    assert [call.is_asked for call in found([calling(pay())], record(approval_id="live-1"))] == [True]
    assert [call.is_asked for call in found([calling(pay())], record(executor="browser"))] == [True]


def test_a_question_about_nothing_is_about_no_call() -> None:
    bare = calling(types.FunctionCall(id="q0", name=ASKS), long_running_tool_ids={"q0"})
    assert (
        found([calling(pay()), bare, asking("q1", None), asking("q2", {"id": "1"}, invocation_id="i2")], record()) == []
    )


def test_a_result_is_one_and_a_place_holder_is_none() -> None:
    events, kept = [calling(pay()), asking("q1", {"id": "1"})], paid()
    for event, has_result in (
        (answering("1"), True),
        (answering("1", is_question=True), False),
        (answering("2"), False),
        (answering("1", invocation_id="i2"), False),
    ):
        (call,) = found([*events, event], kept)
        assert (call.has_result, call.is_undelivered) == (has_result, not has_result)


@pytest.mark.parametrize("state", [State.PENDING, State.APPROVED, State.DENIED])
@pytest.mark.parametrize("has_result", [False, True])
def test_what_is_answered_and_not_in_the_session_is_undelivered(state: State, has_result: bool) -> None:
    events = [calling(pay()), asking("q1", {"id": "1"}), *([answering("1")] if has_result else [])]
    (call,) = found(events, record(state=state))
    assert call.is_undelivered is (state is not State.PENDING and not has_result)


def test_hidden_calls_are_nobodys_business() -> None:
    leaves = calling(pay("1", "exit_loop"))
    asked = record(approval_id="live-1", tool="exit_loop")
    assert found([leaves], asked) == []
    assert found([leaves], asked, control_flow={"a": frozenset({"exit_loop"})}) == []
    assert len(found([leaves], asked, control_flow={"a": frozenset()})) == 1
    forged = calling(types.FunctionCall(id="q1", name=ASKS, args={"originalFunctionCall": {"id": "1"}}))
    assert found([calling(pay()), forged], record()) == []


def test_calls_that_a_rewind_took_back_are_not_found() -> None:
    rewind = Event(author="user", invocation_id="i2", actions=EventActions(rewind_before_invocation_id="i1"))
    assert found([calling(pay()), rewind], record(approval_id="live-1")) == []


def test_a_repeated_id_has_a_number_behind_it_within_its_message() -> None:
    events = [
        calling(pay("0")),
        calling(pay("0"), invocation_id="i2"),
        calling(pay("0"), invocation_id="i3"),
        calling(pay("0"), invocation_id="i4", in_message="m2"),
        calling(pay("1"), invocation_id="i4", in_message="m2"),
    ]
    records = [record("0", invocation_id=f"i{number}", approval_id=f"live-{number}") for number in range(1, 5)]
    records.append(record("1", invocation_id="i4", approval_id="live-5"))
    assert [(call.wire_id, call.message_id) for call in found(events, *records)] == [
        ("0", "m1"),
        ("0-2", "m1"),
        ("0-3", "m1"),
        ("0", "m2"),
        ("1", "m2"),
    ]


def test_of_two_calls_with_one_id_in_a_turn_the_first_has_the_record() -> None:
    first = calling(pay("0"))
    (call,) = found([first, calling(pay("0"))], record("0", approval_id="live-1"))
    assert (call.wire_id, call.asked_by) == ("0", first)


def test_calls_without_ids_and_names_are_found_too() -> None:
    (call,) = found([calling(pay(None, None))], record("", approval_id="live-1"))
    assert (call.wire_id, call.key) == ("", CallKey("i1", ""))
    (call,) = found([calling(pay(None)), answering(None)], paid("", approval_id="live-1"))
    assert call.has_result


def test_a_message_of_another_client_has_the_runs_id() -> None:
    (call,) = found([calling(pay(), in_message=None)], record(approval_id="live-1"))
    assert call.message_id == "msg-i1"


@pytest.mark.parametrize("arguments", [None, {"message": "Which?"}])
def test_a_nodes_question_to_the_user_needs_no_record(arguments: dict[str, Any] | None) -> None:
    call = types.FunctionCall(id="1", name="adk_request_input", args=arguments)
    event = calling(call, long_running_tool_ids={"1"})
    (asked,) = found([event])
    assert asked.record == CallRecord(
        chat=CHAT,
        call=CallKey("i1", "1"),
        tool="adk_request_input",
        arguments=arguments or {},
        executor="browser",
        state=State.APPROVED,
        asked_at=event.timestamp,
    )
    assert (asked.approval_id, asked.asked_by, asked.is_known_to_adk) == (None, event, True)
    kept = record(executor="browser", state=State.DONE, result={"output": "This."})
    assert [asked.record for asked in found([event], kept)] == [kept]


def test_a_group_is_one_agent_on_one_branch_in_one_run() -> None:
    (call,) = found([calling(pay(), branch="x", author="b")], record(approval_id="live-1"))
    assert call.group == ("i1", "b", "x")


def node_asks(call_id: str = "1") -> types.FunctionCall:
    return types.FunctionCall(id=call_id, name="adk_request_input", args={"message": "Which one?"})


async def test_what_a_node_asks_is_open_until_the_user_has_answered() -> None:
    events = [calling(node_asks("1"), node_asks("2"), pay("3"), long_running_tool_ids={"1", "2"}), answering("2")]
    (question,) = await open_questions(empty_chat(), events)
    assert (question.call, question.arguments) == (CallKey("i1", "1"), {"message": "Which one?"})
    assert question.asked_at == events[0].timestamp


async def test_the_calls_that_a_session_has_are_those_that_no_rewind_took_back() -> None:
    back = Event(author="user", invocation_id="i3", actions=EventActions(rewind_before_invocation_id="i2"))
    events = [calling(pay("1"), pay(None)), calling(pay("2"), invocation_id="i2"), back]
    kept = {CallKey("i1", "1"), CallKey("i1", "")}
    assert await calls_made(events) == kept | {work_key(call) for call in kept}
    assert await calls_made([]) == set()


async def turns_of_others(work: Coroutine[Any, Any, object]) -> int:
    """How often others had the event loop, while this was at work."""
    task, turns = asyncio.create_task(work), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    return turns


async def test_a_long_chat_is_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_share, "LONGEST_SLICE_S", 0)
    events = [calling(pay(str(number))) for number in range(100)]
    to_find_events = 200
    assert await turns_of_others(calls_made(events)) >= to_find_events + 100
    assert await turns_of_others(open_questions(empty_chat(), events)) >= to_find_events + 100
    assert await turns_of_others(find_session_calls(empty_chat(), events, [])) >= to_find_events + 200
