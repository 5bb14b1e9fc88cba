"""How a message goes on after answers: what its next segment begins with, and what ADK gets."""

import json
from collections.abc import Sequence
from typing import Any

from adk_stream_protocol.protocol.call_record import CallKey, State
from adk_stream_protocol.protocol.chunks import encode_chunks
from support.records import paid, record
from support.segments import Segment, asked_about, browsers, played, short, waiting
from support.session_events import answering, asking, calling, pay

FIRST, SECOND, THIRD = (CallKey("i1", id) for id in "123")


def responses(contents: Sequence[Any]) -> list[list[str | None]]:
    return [[part.function_response.id for part in content.parts] for content in contents]


async def test_an_approved_call_is_taken_up() -> None:
    at = Segment(asked_about("1", "2"), record("1", State.APPROVED, approved=True), record("2"))
    found = await at.next("1", approved=True)
    assert found is not None
    log, request = found.log, found
    assert (request.answered, request.outputs) == ({FIRST}, frozenset())
    assert responses(request.contents) == [["q1"]]
    assert request.appended == []
    assert short(encode_chunks(request.opening)) == [("start", "client-1")]
    assert not log.is_closed
    assert [kind for kind, id in short(log.earlier) if id == "1"] == [
        "tool-input-start",
        "tool-input-available",
        "tool-approval-request",
    ]


async def test_what_adk_has_been_told_is_not_told_again() -> None:
    at = Segment([*asked_about("1", "2"), answering("1")], paid("1"), record("2"))
    assert await at.next("1") is None
    assert await at.next() is None
    free = Segment(waiting("1"), browsers())
    assert await free.next() is None
    for found in (played(), record(state=State.APPROVED, approval_id="a1")):
        told = Segment([*waiting("1"), answering("1")], found)
        assert await told.next("1") is None


async def test_a_call_that_ended_before_anybody_was_asked_is_told_beside_the_others() -> None:
    """There is no question of it that ADK could be answered."""
    at = Segment(waiting("1", "2"), record("1", State.DENIED, approved=False), played("2"))
    found = await at.next("2", result={"output": {"plays": 1}})
    assert found is not None
    assert responses([event.content for event in found.appended]) == [["1"]]
    assert responses(found.contents) == [["2"]]


async def test_a_browsers_call_that_was_approved_is_handed_over() -> None:
    at = Segment(waiting("1"), browsers(approval_id="b1", approved=True))
    found = await at.next("1", approved=True)
    assert found is not None
    assert (found.answered, found.contents, found.outputs) == ({FIRST}, [], frozenset())
    assert short(encode_chunks(found.opening)) == [("start", "client-1"), ("tool-input-available", "1")]


async def test_an_output_is_told_to_adk_and_not_to_the_client_that_sent_it() -> None:
    at = Segment(waiting("1"), played())
    found = await at.next("1", result={"output": {"plays": 1}})
    assert found is not None
    log, request = found.log, found
    assert (request.answered, request.outputs) == ({FIRST}, {FIRST})
    assert responses(request.contents) == [["1"]]
    assert short(encode_chunks(request.opening)) == [("start", "client-1")]
    assert short(log.earlier)[-1] == ("tool-output-available", "1")
    assert ("tool-output-available", "1") in await at.opening("1", result={"output": {"plays": 2}})
    assert ("tool-output-available", "1") in await at.opening()


async def test_what_ended_by_itself_is_told_only_to_whoever_asks() -> None:
    for state in (State.DONE, State.FAILED, State.UNKNOWN):
        ended = record("1", state, approved=True, result={"response": {"error": "No."}, "state": {}})
        at = Segment(asked_about("1"), ended)
        found = await at.next()
        assert found is not None
        assert found.answered == {FIRST}
        assert short(found.log.earlier)[-1] == ("tool-output-error", "1")
        again = await at.next("1", approved=True)
        assert again is not None
        assert ("tool-output-error", "1") not in short(again.log.earlier)


async def test_an_output_is_told_as_it_was_sent() -> None:
    at = Segment(waiting("1"), browsers("1", State.DONE, result={"output": "This."}))
    found = await at.next()
    assert found is not None
    assert json.loads(encode_chunks(found.opening)[-1])["output"] == "This."


async def test_an_approval_that_nobody_asks_for_after_a_crash_has_no_end_yet() -> None:
    at = Segment(asked_about("1"), record("1", State.APPROVED, approved=True))
    found = await at.next()
    assert found is not None
    assert short(found.log.earlier)[-2] == ("data-adk-approval", None)


async def test_the_confirmation_tool_has_its_answer_once_in_what_is_read_again() -> None:
    at = Segment(asked_about("1"), record("1", State.APPROVED, approved=True))
    found = await at.next("1", style="confirmation-tool", approved=True)
    assert found is not None
    assert short(found.log.earlier).count(("tool-output-available", "q1")) == 1


async def test_calls_that_were_told_before_are_read_again_as_they_are_recorded() -> None:
    events = [*asked_about("1"), answering("1"), *asked_about("2")]
    at = Segment(events, record("1", State.DENIED, approved=False), record("2", State.APPROVED, approved=True))
    found = await at.next("2", approved=True)
    assert found is not None
    assert ("tool-output-denied", "1") in short(found.log.earlier)


async def test_an_output_waits_for_its_siblings_in_the_browser() -> None:
    for sibling in (browsers("2"), browsers("2", State.PENDING, approval_id="b2")):
        at = Segment(waiting("1", "2"), played("1"), sibling)
        found = await at.next("1", result={"output": {"plays": 1}})
        assert found is not None
        assert (found.contents, found.answered) == ([], {FIRST})
    elsewhere = Segment([*waiting("1"), *waiting("2")], played("1"), browsers("2"))
    gone = Segment([*waiting("1", "2"), answering("2")], played("1"), browsers("2"))
    ended = Segment(waiting("1", "2"), played("1"), played("2"))
    servers = Segment([*waiting("1", "2"), asking("q2", {"id": "2"})], played("1"), record("2"))
    live = Segment(waiting("1", "2"), played("1"), record("2", approval_id="a2"))
    for at, told in ((live, ["1"]), (elsewhere, ["1"]), (gone, ["1"]), (ended, ["1", "2"]), (servers, ["1"])):
        found = await at.next("1", result={"output": {"plays": 1}})
        assert found is not None
        assert responses(found.contents) == [told]


async def test_a_decision_does_not_wait_for_outputs() -> None:
    events = [*waiting("1", "2"), asking("q1", {"id": "1"})]
    events[-1].id = events[0].id
    at = Segment(events, record("1", State.APPROVED, approved=True), browsers("2"))
    found = await at.next("1", approved=True)
    assert found is not None
    assert responses(found.contents) == [["q1"]]


async def test_a_result_that_is_in_the_session_is_told_to_whoever_asks_beside() -> None:
    events = [*asked_about("1", "2"), answering("1")]
    at = Segment(events, paid("1"), record("2", State.APPROVED, approved=True))
    assert await at.opening("1", "2", approved=True) == [("start", "client-1"), ("tool-output-available", "1")]
    assert await at.opening("2", approved=True) == [("start", "client-1")]


async def test_what_a_live_session_has_asked_is_put_into_the_session_first() -> None:
    at = Segment([calling(pay("1"))], record("1", State.APPROVED, approved=True, approval_id="a1"))
    found = await at.next("1", approved=True)
    assert found is not None
    assert [call.id for event in found.appended for call in event.get_function_calls()] == ["a1"]
    assert responses(found.contents) == [["a1"]]


async def test_outputs_beside_a_decision_are_put_into_the_session() -> None:
    events = [*waiting("1", "2"), asking("q2", {"id": "2"})]
    at = Segment(events, played("1"), record("2", State.APPROVED, approved=True))
    found = await at.next("1", "2")
    assert found is not None
    assert responses([event.content for event in found.appended]) == [["1"]]
    assert responses(found.contents) == [["q2"]]
    assert found.outputs == {FIRST}
    assert found.answered == {FIRST, SECOND}
