"""What a session is told of calls that came to their end while nobody was listening."""

from collections.abc import Sequence
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from adk_stream_protocol.adk.calls.delivery import (
    deliver_again,
    deliver_outcomes,
    leave_calls_pending,
    refuse_call,
    stop_call,
    withdraw_call,
)
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.session import Chat
from adk_stream_protocol.protocol.call_keys import work_key
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.store.base import Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from support.pages import Clock
from support.records import CHAT, paid, record
from support.session_events import ASKS, answering, asking, calling, chat_with, empty_chat, pay

FIRST, SECOND, THIRD = (CallKey("i1", id) for id in "123")
EXPIRED = {"error": "This call was not run: it expired, because it was not answered or not started in time."}


def browsers(id: str = "1", state: State = State.APPROVED, **fields: Any) -> CallRecord:
    return record(id, state, executor="browser", **fields)


class Counting(MemoryStore):
    reads = 0

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        self.reads += 1
        return await super().read(chat, call)


class Worker:
    """Holds a chat with these events and records."""

    def __init__(self, events: Sequence[Event], *records: CallRecord) -> None:
        self.events, self.records = events, records
        self.clock = Clock()
        self.store = Counting(clock=self.clock)
        self.chat: Chat = empty_chat()

    async def hold(self) -> LeasedChat:
        for found in self.records:
            await self.store.add(found)
        self.chat = await chat_with(*self.events)
        lease, snapshot = await self.store.acquire(CHAT, 30)
        assert lease is not None
        return LeasedChat.taken(lease, snapshot)

    async def deliver(self) -> LeasedChat:
        leased = await self.hold()
        await deliver_outcomes(self.store, self.chat, leased)
        return leased

    async def park(self) -> LeasedChat:
        leased = await self.hold()
        await leave_calls_pending(self.store, self.chat, leased)
        return leased

    async def told(self) -> list[tuple[str | None, Any]]:
        """What has been put into the session."""
        session = await self.chat.load()
        assert session is not None
        new = session.events[len(self.events) :]
        return [(part.id, part.response) for event in new for part in event.get_function_responses()]

    async def asked(self) -> list[str | None]:
        session = await self.chat.load()
        assert session is not None
        return [call.id for event in session.events[len(self.events) :] for call in event.get_function_calls()]

    async def states(self) -> list[State]:
        return [found.state for found in (await self.store.read(CHAT)).records]


def gated(*ids: str) -> list[Event]:
    return [calling(*(pay(id) for id in ids)), *(asking(f"q{id}", {"id": id}) for id in ids)]


def live(*ids: str) -> list[Event]:
    return [calling(*(pay(id) for id in ids))]


# -- before the user's next words -------------------------------------------------------------------------------------


async def test_what_has_ended_and_was_not_told_is_told() -> None:
    at = Worker([*gated("1", "2", "3"), answering("2")], paid("1"), paid("2"), record("3"))
    leased = await at.deliver()
    assert await at.told() == [("1", {"paid": 5})]
    assert leased.delivered == {FIRST, SECOND}


async def test_a_call_that_ended_before_anybody_was_asked_is_told() -> None:
    at = Worker(live("1"), record("1", State.DENIED, approved=False, reason="the run ended"))
    assert (await at.deliver()).delivered == {FIRST}
    assert await at.told() == [("1", {"error": "This call was not run: the user denied it. Reason: the run ended"})]
    parked = Worker(live("1"), record("1", State.DENIED, approved=False))
    await parked.park()
    assert await parked.asked() == []


async def test_the_session_is_looked_at_only_if_it_is_owed_something() -> None:
    at = Worker(gated("1", "2"), paid("1"), record("2"))
    leased = await at.hold()
    await at.store.release(leased.lease, {FIRST})
    lease, snapshot = await at.store.acquire(CHAT, 30)
    assert lease is not None
    leased = LeasedChat.taken(lease, snapshot)
    await deliver_outcomes(at.store, at.chat, leased)
    assert await at.told() == []
    assert leased.delivered == set()


async def test_a_chat_without_a_session_is_told_nothing() -> None:
    at = Worker(gated("1"), paid("1", approval_id="a1"))
    leased = await at.hold()
    await deliver_outcomes(at.store, empty_chat(), leased)
    await leave_calls_pending(at.store, empty_chat(), leased)
    assert leased.delivered == set()


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_browser_that_has_not_answered_in_time_will_not_answer(is_late: bool) -> None:
    deadline = Clock().now + (0 if is_late else 1)
    at = Worker(live("1"), browsers(browser_deadline=deadline))
    leased = await at.deliver()
    assert at.store.reads == 1
    assert await at.states() == [leased.records[FIRST].state] == [State.EXPIRED if is_late else State.APPROVED]
    assert await at.told() == ([("1", EXPIRED)] if is_late else [])


async def test_a_person_may_still_learn_that_the_time_is_up() -> None:
    at = Worker(gated("1"), record(deadline=Clock().now - 1))
    await at.deliver()
    assert await at.states() == [State.PENDING]


async def test_an_output_that_came_in_meanwhile_counts() -> None:
    at = Worker(live("1"), browsers(browser_deadline=Clock().now))
    leased = await at.hold()
    (old,) = (await at.store.read(CHAT)).records
    done = browsers(state=State.DONE, result={"output": {"plays": 1}}, version=1)
    assert await at.store.compare_and_set(old, done)
    await deliver_outcomes(at.store, at.chat, leased)
    assert await at.told() == [("1", {"plays": 1})]
    assert leased.records[FIRST].state is State.DONE


async def test_a_call_that_is_gone_is_told_as_nothing() -> None:
    at = Worker(live("1"), browsers(browser_deadline=Clock().now))
    leased = await at.hold()
    await at.store.forget(leased.lease)
    await deliver_outcomes(at.store, at.chat, leased)
    assert await at.told() == []


async def test_of_several_browsers_that_are_late_each_is_told() -> None:
    at = Worker(live("1", "2"), *(browsers(id, browser_deadline=Clock().now) for id in "12"))
    leased = await at.deliver()
    assert await at.told() == [("1", EXPIRED), ("2", EXPIRED)]
    assert leased.delivered == {FIRST, SECOND}


async def delivered_before(at: Worker) -> LeasedChat:
    """The worker's chat in the hands of a later run: the store reads no results that have been delivered."""
    before = await at.hold()
    await at.store.release(before.lease, {found.call for found in at.records if found.is_final})
    lease, snapshot = await at.store.acquire(CHAT, 30)
    assert lease is not None
    leased = LeasedChat.taken(lease, snapshot)
    assert leased.records[FIRST].lacks_result
    return leased


async def test_a_result_that_a_rewind_took_back_is_told_again_with_the_next_outcome() -> None:
    at = Worker(live("1", "2"), paid("1"), browsers("2", browser_deadline=Clock().now))
    leased = await delivered_before(at)
    await deliver_outcomes(at.store, at.chat, leased)
    assert await at.told() == [("1", {"paid": 5}), ("2", EXPIRED)]


# -- after a rewind ---------------------------------------------------------------------------------------------------


async def test_after_a_rewind_what_the_kept_calls_gave_is_told_again() -> None:
    kept = [*gated("1", "2", "3", "4"), answering("2")]
    approved = record("3", State.APPROVED, approved=True)
    at = Worker(kept, paid("1"), paid("2"), approved, record("4"))
    leased = await delivered_before(at)
    await deliver_again(at.store, at.chat, leased, kept)
    assert await at.told() == [("1", {"paid": 5})]


async def test_after_a_rewind_calls_that_it_took_back_are_not_told() -> None:
    at = Worker(gated("1", "2"), paid("1"), paid("2"))
    leased = await delivered_before(at)
    await deliver_again(at.store, at.chat, leased, gated("2"))
    assert await at.told() == [("2", {"paid": 5})]


# -- calls that nobody will answer ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (record(), State.DENIED),
        (browsers(state=State.PENDING, approval_id="a1"), State.DENIED),
        (browsers(), State.DONE),
        (record(state=State.APPROVED, approved=True), State.APPROVED),
        (record(state=State.STARTED, approved=True), State.STARTED),
        (paid(), State.DONE),
    ],
)
async def test_what_waits_is_refused_and_what_runs_is_not(found: CallRecord, state: State) -> None:
    store = MemoryStore(clock=Clock())
    await store.add(found)
    await refuse_call(store, CHAT, FIRST, "the user has left")
    (refused,) = (await store.read(CHAT)).records
    assert refused.state is state
    if state is State.DENIED:
        assert (refused.reason, refused.approved, refused.decided_by) == ("the user has left", False, "ann")
        assert refused.decided_at == Clock().now
    if found.executor == "browser" and state is State.DONE:
        assert refused.result == {"error": "Not run: the user has left."}
    await refuse_call(store, CHAT, SECOND, "there is no such call")


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (record(), State.WITHDRAWN),
        (record(state=State.APPROVED, approved=True), State.WITHDRAWN),
        (browsers(), State.WITHDRAWN),
        (record(state=State.STARTED, approved=True), State.STARTED),
        (paid(), State.DONE),
    ],
)
async def test_what_the_model_takes_back_is_withdrawn_unless_it_has_begun(found: CallRecord, state: State) -> None:
    at = Worker(live("1"), found)
    leased = await at.hold()
    await withdraw_call(at.store, leased, FIRST)
    assert await at.states() == [leased.records[FIRST].state] == [state]
    await withdraw_call(at.store, leased, SECOND)
    assert SECOND not in leased.records


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (record(), State.DENIED),
        (record(state=State.APPROVED, approved=True), State.FAILED),
        (browsers(), State.DONE),
        (record(state=State.STARTED, approved=True), State.STARTED),
        (paid(), State.DONE),
    ],
)
async def test_what_waits_at_a_stop_is_refused_and_what_is_approved_does_not_begin(
    found: CallRecord, state: State
) -> None:
    at = Worker(live("1"), found)
    leased = await at.hold()
    await stop_call(at.store, leased, FIRST)
    assert await at.states() == [leased.records[FIRST].state] == [state]
    if state is State.DENIED:
        assert leased.records[FIRST].reason == "the user stopped the session"
        assert leased.records[FIRST].decided_at == leased.now
    if state is State.FAILED:
        told = {"error": "This call was not run: it was stopped before it began."}
        assert leased.records[FIRST].result == {"response": told, "state": {}}
    await stop_call(at.store, leased, SECOND)
    assert SECOND not in leased.records


# -- the end of a live session ----------------------------------------------------------------------------------------


async def test_what_a_live_session_has_asked_is_left_as_request_mode_would() -> None:
    at = Worker(live("1"), record(approval_id="a1"))
    leased = await at.park()
    assert await at.asked() == ["a1"]
    assert [id for id, _ in await at.told()] == ["1"]
    assert leased.delivered == set()


async def test_results_that_were_held_back_are_told_while_a_sibling_waits() -> None:
    at = Worker(live("1", "2"), paid("1", approval_id="a1"), record("2", approval_id="a2"))
    leased = await at.park()
    assert await at.asked() == ["a2"]
    assert sorted(id or "" for id, _ in await at.told()) == ["1", "2"]
    assert ("1", {"paid": 5}) in await at.told()
    assert leased.delivered == {FIRST}


async def test_a_result_that_was_held_back_is_told_also_if_it_was_told_before_a_rewind() -> None:
    at = Worker(live("1", "2"), paid("1", approval_id="a1"), record("2", approval_id="a2"))
    leased = await delivered_before(at)
    await leave_calls_pending(at.store, at.chat, leased)
    assert ("1", {"paid": 5}) in await at.told()


async def test_results_without_a_sibling_that_waits_are_left_to_whoever_goes_on() -> None:
    at = Worker([*live("1", "2"), answering("2")], paid("1", approval_id="a1"), record("2", approval_id="a2"))
    leased = await at.park()
    assert await at.asked() == ["a1"]
    assert ("1", {"paid": 5}) not in await at.told()
    assert leased.delivered == set()


async def test_work_that_goes_on_holds_no_result_back() -> None:
    at = Worker(
        live("1", "2"), paid("1", approval_id="a1"), browsers("2", invocation_id=work_key(SECOND).invocation_id)
    )
    leased = await at.park()
    assert ("1", {"paid": 5}) not in await at.told()
    assert leased.delivered == set()


async def test_what_was_told_is_not_told_again_and_what_is_approved_has_not_ended() -> None:
    at = Worker([*live("1", "2"), answering("1")], paid("1", approval_id="a1"), record("2", approval_id="a2"))
    leased = await at.park()
    assert ([id for id, _ in await at.told()], leased.delivered) == (["2"], set())
    at = Worker(live("1"), record(state=State.APPROVED, approval_id="a1"))
    leased = await at.park()
    assert (await at.asked(), leased.delivered) == (["a1"], set())


async def test_a_chat_in_which_no_live_session_has_asked_is_left_alone() -> None:
    questions = [types.FunctionCall(id=f"q{id}", name=ASKS, args={"originalFunctionCall": {"id": id}}) for id in "12"]
    together = calling(*questions, long_running_tool_ids={"q1", "q2"})
    at = Worker([*live("1", "2"), together], paid("1"), record("2"))
    leased = await at.park()
    assert (await at.asked(), await at.told(), leased.delivered) == ([], [], set())


# -- calls that were made in others -----------------------------------------------------------------------------------


def inside(id: str, outer: str | None, state: State = State.DONE, **fields: Any) -> CallRecord:
    about = {"is_nested": True, "made_in": {"agent": "b", "outer": outer}, **fields}
    result = {"response": {"paid": 5}, "state": {}} if state is State.DONE else None
    return record(id, state, "i9", result=result, **about)


async def test_what_was_done_inside_of_a_call_that_was_lost_is_told_once() -> None:
    at = Worker([calling(pay())], inside("5", "1"), inside("6", "1", State.PENDING))
    leased = await at.deliver()
    ((id, told),) = await at.told()
    assert (id, [call["name"] for call in told["calls"]]) == ("1", ["pay"])
    assert leased.delivered == {CallKey("i9", "5")}
    await deliver_outcomes(at.store, at.chat, leased)
    assert len(await at.told()) == 1


async def test_what_was_done_inside_is_not_told_where_the_outer_call_has_its_result_or_is_gone() -> None:
    back = Event(author="user", invocation_id="i2", actions=EventActions(rewind_before_invocation_id="i1"))
    for events in ([calling(pay()), answering("1")], [calling(pay()), back], []):
        at = Worker(events, inside("5", "1"))
        leased = await at.deliver()
        assert [id for id, told in await at.told() if "calls" in told] == []
        assert leased.delivered == {CallKey("i9", "5")}


async def test_a_call_that_the_session_does_not_have_is_neither_told_nor_delivered() -> None:
    at = Worker([calling(pay())], paid("2", delivered=False))
    leased = await at.deliver()
    assert (await at.told(), leased.delivered) == ([], set())
