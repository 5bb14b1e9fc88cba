"""Which of a client's answers count, and what is written down of them."""

from collections.abc import Sequence
from typing import Any

import pytest
from google.adk.events import Event
from google.genai import types

from adk_stream_protocol import Limits
from adk_stream_protocol.chat.answers import AnswerDecoder, DecodedAnswers
from adk_stream_protocol.chat.segments import known_outputs
from adk_stream_protocol.errors import NotFound, OutputDoesNotFit, RequestTooLarge
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from adk_stream_protocol.protocol.turn import Turn
from adk_stream_protocol.store.memory import MemoryStore
from support.pages import Clock
from support.records import paid, record
from support.session_events import answering, asking, calling, chat_with, empty_chat, pay

NOW = Clock().now
PAY = {"amount": 5}
Part = dict[str, Any]


def decided(id: str = "1", *, approved: bool = True, approval_id: str | None = None, **fields: Any) -> Part:
    word = {"id": approval_id or f"q{id}", "approved": approved, **fields}
    return {"type": "tool-pay", "toolCallId": id, "state": "approval-responded", "input": PAY, "approval": word}


def output(id: str = "1", value: Any = "ok", **fields: Any) -> Part:
    part = {"type": "tool-pay", "toolCallId": id, "state": "output-available", "input": PAY, "output": value}
    return {**part, **fields}


def asked_in(message: str, *ids: str, invocation_id: str = "i1") -> list[Event]:
    made = calling(*(pay(id) for id in ids), in_message=message, invocation_id=invocation_id)
    return [made, *(asking(f"q{id}", {"id": id}, in_message=message, invocation_id=invocation_id) for id in ids)]


class Answers:
    """A chat with these events and records, and what is read of answers in it."""

    def __init__(self, events: Sequence[Event], *records: CallRecord) -> None:
        self.events, self.records = events, records
        self.store = MemoryStore(clock=Clock())

    async def read(
        self,
        *parts: Part,
        message: str | None = "m1",
        limits: Limits | None = None,
    ) -> DecodedAnswers:
        for found in self.records:
            await self.store.add(found)
        turn = Turn("c1", message, (), None, None, answers=parts)
        chat = await chat_with(*self.events)
        return await AnswerDecoder(self.store, limits or Limits(), 60).decode(chat, turn)

    async def states(self) -> list[State]:
        return [found.state for found in (await self.store.read(self.records[0].chat)).records]


def browsers(id: str = "1", state: State = State.APPROVED, **fields: Any) -> CallRecord:
    return record(id, state, executor="browser", **fields)


async def test_a_decision_is_to_be_written_down() -> None:
    at = Answers(asked_in("m1", "1"), record())
    taken = await at.read(decided(reason="So.", payload={"to": "Bob"}))
    ((old, new),) = taken.changes
    assert (old.state, old.call) == (State.PENDING, CallKey("i1", "1"))
    assert (new.state, new.approved, new.decided_by, new.decided_at) == (State.APPROVED, True, "ann", NOW)
    assert (new.reason, new.payload, new.browser_deadline) == ("So.", {"to": "Bob"}, None)
    assert (taken.message_id, taken.open_calls) == ("m1", {old.call})
    assert [answer.asked.key for answer in taken.answers] == [old.call]
    assert await at.states() == [State.PENDING]


async def test_a_decision_that_came_before_is_not_written_again() -> None:
    at = Answers([*asked_in("m1", "1"), answering("1")], paid())
    taken = await at.read(decided())
    assert (taken.changes, taken.open_calls, len(taken.answers)) == ([], frozenset(), 1)


async def test_an_approved_call_of_the_browsers_has_its_time_from_now_on() -> None:
    at = Answers(asked_in("m1", "1"), browsers(state=State.PENDING, approval_id="b1"))
    taken = await at.read(decided(approval_id="b1"))
    ((_, new),) = taken.changes
    assert (new.state, new.browser_deadline) == (State.APPROVED, NOW + 60)


async def test_an_output_is_to_be_written_down() -> None:
    at = Answers(asked_in("m1", "1"), browsers())
    ((old, new),) = (await at.read(output())).changes
    assert (old.state, new.state, new.result) == (State.APPROVED, State.DONE, {"output": "ok"})
    assert await at.states() == [State.APPROVED]


async def test_an_approval_with_its_output_is_to_be_written_step_by_step() -> None:
    at = Answers(asked_in("m1", "1"), browsers(state=State.PENDING, approval_id="b1"))
    taken = await at.read(output(approval={"id": "b1", "approved": True}))
    ((old, approved, done),) = taken.changes
    assert [old.state, approved.state, done.state] == [State.PENDING, State.APPROVED, State.DONE]
    assert taken.unrecorded == []
    assert await at.states() == [State.PENDING]


async def test_the_question_of_a_node_is_to_be_recorded_with_its_answer() -> None:
    call = types.FunctionCall(id="1", name="adk_request_input", args=PAY)
    at = Answers([calling(call, long_running_tool_ids={"1"})])
    taken = await at.read({**output(), "type": "tool-adk_request_input"})
    ((old, new),) = taken.changes
    assert (taken.unrecorded, old.tool) == ([old], "adk_request_input")
    assert (new.state, new.result) == (State.DONE, {"output": "ok"})
    at.records = (old,)
    assert (await at.read({**output(), "type": "tool-adk_request_input"})).unrecorded == []


async def test_calls_of_which_the_session_has_no_events_are_found_too() -> None:
    at = Answers(asked_in("m1", "9"), record(is_nested=True, message_id="m1", approval_id="q1"))
    taken = await at.read(decided())
    assert len(taken.changes) == 1


async def test_the_same_output_again_asks_what_became_of_it_and_another_is_none() -> None:
    done = browsers(state=State.DONE, result={"output": {"a": 1, "b": 2}})
    at = Answers([*asked_in("m1", "1"), answering("1")], done)
    taken = await at.read(output(value={"b": 2, "a": 1}))
    assert (len(taken.answers), taken.changes, taken.open_calls) == (1, [], frozenset())
    with pytest.raises(NotFound):
        await at.read(output(value={"a": 2, "b": 2}))
    at = Answers(asked_in("m1", "1"), done)
    assert len((await at.read(output(value=3))).answers) == 1
    at = Answers([*asked_in("m1", "1"), answering("1")], browsers(state=State.EXPIRED))
    assert len((await at.read(output(value=3))).answers) == 1


async def test_what_answers_nothing_is_not_found() -> None:
    at = Answers(asked_in("m1", "1"), record())
    for parts in ([], [decided("9")]):
        with pytest.raises(NotFound):
            await at.read(*parts)
    turn = Turn("c1", "m1", (), None, None)
    for chat in (empty_chat(), await chat_with(*at.events)):
        with pytest.raises(NotFound):
            await AnswerDecoder(at.store, Limits(), 60).decode(chat, turn)


async def test_answers_to_one_message_count_at_a_time() -> None:
    events = [*asked_in("m1", "1"), *asked_in("m2", "2", invocation_id="i2")]
    both = record("1"), record("2", invocation_id="i2")
    for message, continued in (("m1", "m1"), ("m2", "m2"), ("m9", "m2"), (None, "m2")):
        taken = await Answers(events, *both).read(decided("1"), decided("2"), message=message)
        assert (taken.message_id, len(taken.answers), len(taken.changes)) == (continued, 1, 1)
    alone = await Answers(events, *both).read(decided("1"), message="m9")
    assert (alone.message_id, len(alone.answers)) == ("m1", 1)


async def test_in_chats_of_older_versions_an_id_means_something_within_its_message() -> None:
    events = [*asked_in("m1", "0"), *asked_in("m2", "0", invocation_id="i2")]
    at = Answers(events, record("0"), record("0", invocation_id="i2"))
    taken = await at.read(decided("0"), message="m1")
    assert [answer.asked.key for answer in taken.answers] == [CallKey("i1", "0")]
    with pytest.raises(NotFound):
        await at.read(decided("0"), message="m9")


async def test_an_output_may_be_as_large_as_the_limit() -> None:
    size = len(b'[{"output":"ok"},null]')
    at = Answers(asked_in("m1", "1"), browsers())
    assert (await at.read(output(), limits=Limits(max_output_bytes=size))).changes
    with pytest.raises(RequestTooLarge, match=r"^The output of a tool is too large: .* KiB are allowed\.$"):
        await at.read(output(), limits=Limits(max_output_bytes=size - 1))
    filled = Answers(asked_in("m1", "1"), record())
    with pytest.raises(RequestTooLarge):
        await filled.read(decided(payload="x" * 100), limits=Limits(max_output_bytes=100))
    ended = Answers([*asked_in("m1", "1"), answering("1")], browsers(state=State.DONE, result={"output": "ok"}))
    assert (await ended.read(output(), limits=Limits(max_output_bytes=1))).changes == []


async def test_an_output_must_fit_its_schema_and_an_error_need_not() -> None:
    at = Answers(asked_in("m1", "1"), browsers(output_schema={"type": "string"}))
    assert (await at.read(output())).changes
    with pytest.raises(OutputDoesNotFit):
        await at.read(output(value=5))
    ((_, new),) = (await at.read(output(state="output-error", errorText="No."))).changes
    assert new.result == {"error": "No."}
    assert await at.states() == [State.APPROVED]


async def test_nothing_is_written_if_one_of_the_answers_is_refused() -> None:
    at = Answers(
        asked_in("m1", "1", "2"),
        browsers("1", State.PENDING, approval_id="b1"),
        browsers("2", output_schema={"type": "string"}),
    )
    with pytest.raises(OutputDoesNotFit):
        await at.read(output("1", approval={"id": "b1", "approved": True}), output("2", 5))
    assert await at.states() == [State.PENDING, State.APPROVED]


async def test_an_output_is_known_to_whoever_has_sent_what_is_recorded() -> None:
    at = Answers(asked_in("m1", "1", "2"), browsers("1"), record("2"))
    answers = (await at.read(output("1", {"a": 1, "b": 2}), decided("2"))).answers
    first, second = (answer.asked.key for answer in answers)
    done = browsers("1", State.DONE, result={"output": {"b": 2, "a": 1}})
    for found, known in (
        (done, {first}),
        (browsers("1", State.DONE, result={"output": 3}), set()),
        (browsers("1", State.EXPIRED, result={"output": {"b": 2, "a": 1}}), set()),
    ):
        assert known_outputs(answers, {first: found, second: paid("2")}) == known
    assert known_outputs(answers, {}) == set()
