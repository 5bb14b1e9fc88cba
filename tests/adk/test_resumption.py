"""The events and messages in which ADK is told what became of calls."""

from typing import Any

import pytest
from google.adk.events import Event
from google.genai import types

from adk_stream_protocol.adk.calls.outcomes import OUTCOME_UNKNOWN, outcomes_inside
from adk_stream_protocol.adk.calls.resumption import (
    lost_call_events,
    outcome_events,
    plan_resumption,
    question_events,
    response_part,
    stopped_call_events,
)
from adk_stream_protocol.adk.calls.session_calls import SessionCall
from adk_stream_protocol.adk.session import MessageIds
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from adk_stream_protocol.protocol.tool_parts import STOPPED
from support.records import paid, record

IDS = MessageIds(user_message_id="u1", message_id="m1")
EXPIRED = "This call was not run: it expired, because it was not answered or not started in time."


def asked(approval: CallRecord, **fields: Any) -> SessionCall:
    event = Event(author=fields.pop("author", "a"), invocation_id=approval.call.invocation_id)
    event.branch, event.isolation_scope = fields.pop("branch", "x"), "alone"
    about: dict[str, Any] = {"message_id": "m1", "has_result": False, "approval_id": f"q{approval.call.call_id}"}
    return SessionCall(wire_id=approval.call.call_id, record=approval, asked_by=event, **{**about, **fields})


def played(call_id: str = "1", **fields: Any) -> CallRecord:
    return record(call_id, State.DONE, executor="browser", tool="play", result={"output": {"plays": 1}}, **fields)


def told(content: types.Content | None) -> list[tuple[str | None, str | None, Any]]:
    assert content
    assert content.role == "user"
    responses = [part.function_response for part in content.parts or []]
    return [(response.id, response.name, response.response) for response in responses if response]


@pytest.mark.parametrize("state", list(State))
def test_a_persons_word_is_told_as_adk_asks_for_it(state: State) -> None:
    plan = plan_resumption([asked(record(state=state))], IDS)
    is_confirmed = state not in (State.DENIED, State.EXPIRED, State.WITHDRAWN)
    assert [told(content) for content in plan.messages] == [
        [("q1", "adk_request_confirmation", {"confirmed": is_confirmed})]
    ]
    assert (plan.appended, plan.browser_answers, plan.outputs) == ([], [], frozenset())


def test_what_the_person_filled_in_goes_with_the_word() -> None:
    plan = plan_resumption([asked(record(state=State.APPROVED, payload={"to": "Bob"}))], IDS)
    assert told(plan.messages[0])[0][2] == {"confirmed": True, "payload": {"to": "Bob"}}
    plan = plan_resumption([asked(record(state=State.APPROVED, payload=0))], IDS)
    assert told(plan.messages[0])[0][2] == {"confirmed": True, "payload": 0}


def test_a_browsers_output_is_told_as_it_will_stand_in_the_session() -> None:
    plan = plan_resumption([asked(played())], IDS)
    assert told(plan.messages[0]) == [("1", "play", {"plays": 1})]
    (event,) = plan.browser_answers
    assert told(event.content) == [("1", "play", {"plays": 1})]
    assert (event.author, event.invocation_id, event.branch, event.isolation_scope) == ("user", "i1", "x", "alone")
    assert event.custom_metadata == IDS.metadata()
    assert (plan.appended, plan.outputs) == ([], {CallKey("i1", "1")})


def test_confirmations_travel_alone() -> None:
    plan = plan_resumption([asked(played("1")), asked(record("2", State.APPROVED)), asked(played("3"))], IDS)
    assert [told(content) for content in plan.messages] == [[("q2", "adk_request_confirmation", {"confirmed": True})]]
    (event,) = plan.appended
    assert [response[0] for response in told(event.content)] == ["1", "3"]
    assert plan.browser_answers == [event]
    assert plan.outputs == {CallKey("i1", "1"), CallKey("i1", "3")}


def test_each_agent_branch_and_run_has_a_message_of_its_own() -> None:
    calls = [
        asked(played("1")),
        asked(played("2"), author="b"),
        asked(played("3"), branch="y"),
        asked(played("4", invocation_id="i2")),
        asked(played("5")),
    ]
    plan = plan_resumption(calls, IDS)
    assert [[response[0] for response in told(content)] for content in plan.messages] == [
        ["1", "5"],
        ["2"],
        ["3"],
        ["4"],
    ]
    assert [event.branch for event in plan.browser_answers] == ["x", "x", "y", "x"]


@pytest.mark.parametrize("hint", [None, "Pay?"])
def test_what_a_live_session_asked_is_left_as_request_mode_would_have_left_it(hint: str | None) -> None:
    call = asked(record(hint=hint), is_known_to_adk=False)
    question, holder = question_events([call])
    for event in (question, holder):
        assert (event.author, event.invocation_id, event.branch) == ("a", "i1", "x")
        ids = MessageIds(user_message_id=None, message_id="m1")
        assert event.custom_metadata == ids.metadata()
    assert question.content
    assert question.content.role == "model"
    assert question.long_running_tool_ids == {"q1"}
    (made,) = question.get_function_calls()
    assert (made.id, made.name) == ("q1", "adk_request_confirmation")
    assert made.args == {
        "originalFunctionCall": {"id": "1", "name": "pay", "args": {"amount": 5}},
        "toolConfirmation": {"hint": hint or "", "confirmed": False},
    }
    refusal = "This tool call requires confirmation, please approve or reject."
    assert told(holder.content) == [("1", "pay", {"error": refusal})]
    assert holder.actions.skip_summarization is True
    assert holder.actions.requested_tool_confirmations["1"].hint == (hint or "")


def test_what_adk_knows_or_has_a_result_is_not_left_behind() -> None:
    assert question_events([asked(record())]) == []
    assert question_events([asked(record(), is_known_to_adk=False, approval_id=None)]) == []
    assert question_events([asked(record(), is_known_to_adk=False, has_result=True)]) == []
    left = question_events([asked(record("1")), asked(record("2"), is_known_to_adk=False)])
    assert [call.id for event in left for call in event.get_function_calls()] == ["q2"]


def test_outcomes_are_told_by_who_would_have_told_them() -> None:
    server, browser = outcome_events([asked(paid("1")), asked(played("2"))])
    assert told(server.content) == [("1", "pay", {"paid": 5})]
    assert told(browser.content) == [("2", "play", {"plays": 1})]
    assert (server.author, browser.author) == ("a", "user")
    for event in (server, browser):
        assert (event.invocation_id, event.branch, event.isolation_scope) == ("i1", "x", "alone")
        assert event.custom_metadata == MessageIds(user_message_id=None, message_id="m1").metadata()


@pytest.mark.parametrize(
    ("output", "response"),
    [("This.", {"result": "This."}), ({"result": 1}, {"result": 1}), ({"colour": 1}, {"result": {"colour": 1}})],
)
def test_an_answer_to_a_node_is_one_result(output: Any, response: Any) -> None:
    approval = record(state=State.DONE, executor="browser", tool="adk_request_input", result={"output": output})
    part = response_part(approval).function_response
    assert part
    assert (part.id, part.name, part.response) == ("1", "adk_request_input", response)


def test_a_call_that_came_to_nothing_says_why() -> None:
    part = response_part(record(state=State.EXPIRED)).function_response
    assert part
    assert part.response == {"error": EXPIRED}


# -- calls that a lost live session was about to begin ----------------------------------------------------------------


def made(call_id: str, message_id: str = "m2", **fields: Any) -> Event:
    call = types.FunctionCall(id=call_id, name="pay", args={})
    ids = MessageIds(user_message_id=None, message_id=message_id)
    content = types.Content(role="model", parts=[types.Part(function_call=call)])
    about: dict[str, Any] = {"author": "a", "invocation_id": "i1", "content": content}
    return Event(**{**about, "custom_metadata": ids.metadata(), **fields})


def test_calls_of_other_messages_that_nothing_is_known_of_are_ended_before_adk_resumes_their_session() -> None:
    (ended,) = stopped_call_events([made("9")], [asked(record(state=State.APPROVED))], {})
    assert told(ended.content) == [("9", "pay", {"error": STOPPED})]
    assert (ended.author, ended.invocation_id) == ("a", "i1")
    assert ended.custom_metadata == MessageIds(user_message_id=None, message_id="m2").metadata()


@pytest.mark.parametrize(
    "event",
    [
        made("9", message_id="m1"),
        made("9", invocation_id="i2"),
        made("9", partial=True),
        made("9", long_running_tool_ids={"9"}),
        made("1"),
    ],
    ids=["of the message", "of another run", "not whole", "left to somebody", "recorded"],
)
def test_other_calls_are_left_alone(event: Event) -> None:
    known = record(state=State.APPROVED)
    assert stopped_call_events([event], [asked(known)], {known.call: known}) == []


def test_a_call_with_a_result_has_ended() -> None:
    response = types.FunctionResponse(id="9", name="pay", response={})
    result = made("x", content=types.Content(role="user", parts=[types.Part(function_response=response)]))
    assert stopped_call_events([made("9"), result], [asked(record(state=State.APPROVED))], {}) == []


# -- calls that were made in others -----------------------------------------------------------------------------------

PAID_INSIDE = {"name": "pay", "args": {"amount": 5}, "response": {"paid": 5}}


def inside(outer: str | None, call_id: str = "5", **fields: Any) -> CallRecord:
    return paid(call_id, invocation_id="i9", is_nested=True, made_in={"agent": "b", "outer": outer}, **fields)


def answered(call_id: str, invocation_id: str = "i1") -> Event:
    response = types.FunctionResponse(id=call_id, name="pay", response={})
    content = types.Content(role="user", parts=[types.Part(function_response=response)])
    return Event(author="a", invocation_id=invocation_id, content=content)


def test_a_call_that_was_lost_is_told_with_what_was_done_in_it() -> None:
    records = {found.call: found for found in (inside("9"), inside(None, "6"))}
    (ended,) = lost_call_events([made("9"), made("8"), answered("9", "i2")], records)
    assert told(ended.content) == [("9", "pay", {"error": STOPPED, "calls": [PAID_INSIDE]})]
    assert (ended.author, ended.invocation_id) == ("a", "i1")
    assert ended.custom_metadata == MessageIds(user_message_id=None, message_id="m2").metadata()


def test_a_call_that_has_its_result_or_a_record_was_not_lost() -> None:
    records = {found.call: found for found in (inside("9"),)}
    assert lost_call_events([made("9"), answered("9")], records) == []
    own = record("9", State.UNKNOWN)
    assert lost_call_events([made("9")], {**records, own.call: own}) == []


def test_a_call_that_a_live_session_had_not_ended_is_told_with_what_was_done_in_it() -> None:
    records = {found.call: found for found in (inside("9"),)}
    (ended,) = stopped_call_events([made("9")], [asked(record(state=State.APPROVED))], records)
    assert told(ended.content) == [("9", "pay", {"error": STOPPED, "calls": [PAID_INSIDE]})]


@pytest.mark.parametrize(
    ("found", "response"),
    [
        (inside("9", delivered=True), {"paid": 5}),
        (record("5", State.STARTED, made_in={"outer": "9"}), {"error": OUTCOME_UNKNOWN}),
        (record("5", State.DENIED, made_in={"outer": "9"}), {"error": "This call was not run: the user denied it."}),
    ],
)
def test_what_may_have_been_done_is_told(found: CallRecord, response: dict[str, Any]) -> None:
    assert outcomes_inside({found.call: found}) == {"9": [{**PAID_INSIDE, "response": response}]}


@pytest.mark.parametrize(
    "found",
    [
        inside(None),
        paid("5"),
        paid("5", made_in={"agent": "b", "remote": True}),
        record("5", State.PENDING, made_in={"outer": "9"}),
        record("5", State.APPROVED, made_in={"outer": "9"}),
        record("5", State.DONE, made_in={"outer": "9"}),
    ],
    ids=["in a node", "in the session", "remote", "pending", "approved", "its result is not read"],
)
def test_what_was_not_done_or_not_inside_is_not_told(found: CallRecord) -> None:
    assert outcomes_inside({found.call: found}) == {}
