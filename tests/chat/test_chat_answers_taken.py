"""What becomes of answers that count: who goes on with them, what their client reads, and what is refused."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from adk_stream_protocol import Limits
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.run import AnsweredCalls
from adk_stream_protocol.adk.session import MessageIds
from adk_stream_protocol.adk.translate.translators import Translators
from adk_stream_protocol.chat.answers import AnswerDecoder, AnswerRequest, ChatAnswers
from adk_stream_protocol.chat.background import BackgroundWork, Opened
from adk_stream_protocol.chat.leases import Change, ChatLeases
from adk_stream_protocol.chat.segments import Continuation, RunDefaults, Segments
from adk_stream_protocol.chunk_log import ChunkLog, Reading
from adk_stream_protocol.errors import NotFound, StoreUnavailable, TooMany
from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.protocol.turn import Turn
from adk_stream_protocol.store.base import Acquired, Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from support.leases import Running, begun, worker
from support.pages import Clock
from support.records import CHAT, paid, record
from support.session_events import answering, asking, calling, chat_with, pay

pytestmark = pytest.mark.virtual_time

KEY = CallKey("i1", "1")
ASKED = [calling(pay()), asking("q1", {"id": "1"})]
KEPT = "Your answer is recorded, but the server cannot continue now. It will continue later."
APPROVED = record(state=State.APPROVED, approved=True, decided_by="ann", decided_at=Clock().now)


class Shaken(MemoryStore):
    """What happens to it while a lease is asked for."""

    def __init__(self) -> None:
        super().__init__(clock=Clock())
        self.fails = ""
        self.forgets = self.is_gone = False
        self.acquired = 0

    async def acquire(self, chat: ChatKey, lasts_s: float, changes: Sequence[Change] = ()) -> Acquired:
        self.acquired += 1
        if self.forgets:
            lease = (await super().acquire(chat, 1)).lease
            assert lease is not None
            await self.forget(lease)
            await self.release(lease)
        self.is_gone = self.fails == "and is gone"
        if self.fails == "before":
            raise StoreUnavailable
        acquired = await super().acquire(chat, lasts_s, changes)
        if self.fails:
            raise StoreUnavailable
        return acquired

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        if self.is_gone:
            raise StoreUnavailable
        return await super().read(chat, call)


class Noted(Segments):
    """Notes which messages go on, and starts no agent."""

    def __init__(self, store: MemoryStore, leases: ChatLeases) -> None:
        defaults = RunDefaults(
            run_config=None, translators=Translators(sdk_version=6, approval_style=None), live_while_waiting=None
        )
        super().__init__(store, leases, Limits(), defaults)
        self.leases = leases
        self.continued: list[Continuation] = []
        self.shown: list[tuple[MessageIds, Any]] = []
        self.next: ChunkLog | None = ChunkLog("next")
        self.meanwhile: Run | None = None

    async def continue_message(
        self, chat: Any, leased: LeasedChat, continuation: Continuation, events: Any, calls: Any
    ) -> ChunkLog | None:
        self.continued.append(continuation)
        await self.leases.end(leased)
        if self.meanwhile is not None:
            self.meanwhile.begin(await begun(self.leases))
        return self.next

    def new_translator(self, chat: Any, ids: MessageIds, sdk_version: Any = None) -> Any:
        self.shown.append((ids, sdk_version))
        return super().new_translator(chat, ids, sdk_version)


class Run(Running):
    """A run of this process that takes answers as it is told to."""

    def __init__(self, leases: ChatLeases, message_id: str = "m2") -> None:
        self._chats = leases
        self.message_id = message_id
        self.log: ChunkLog | None = None
        self.is_accepting = self.is_shown = False
        self.gives: ChunkLog | None = None
        self.taken: list[AnsweredCalls] = []

    def begin(self, leased: LeasedChat) -> None:
        log = self.log
        super().__init__(self._chats, leased)
        self.log = log

    def accepts(self, calls: frozenset[CallKey]) -> bool:
        return self.is_accepting and KEY in calls

    def has_shown(self, calls: frozenset[CallKey]) -> bool:
        return self.is_shown and KEY in calls

    async def continue_message(self, answered: AnsweredCalls) -> ChunkLog | None:
        self.taken.append(answered)
        return self.gives


class Desk:
    """Where answers to one chat come in."""

    def __init__(self, *records: CallRecord, events: Any = (), limits: Limits | None = None) -> None:
        self.store, limits = Shaken(), limits or Limits()
        self.leases = worker(self.store)
        self.segments = Noted(self.store, self.leases)
        decoder = AnswerDecoder(self.store, limits, 60)
        self.answers = ChatAnswers(decoder, self.leases, self.segments, BackgroundWork(), limits)
        self._records, self._events = records, [*ASKED, *events]

    async def busy(self, message_id: str = "m2") -> Run:
        """Something runs in the chat."""
        run = Run(self.leases, message_id)
        run.begin(await begun(self.leases))
        return run

    async def answer(self, message_id: str | None = "m1", *, approved: bool = True) -> Opened:
        for found in self._records:
            await self.store.add(found)
        word = {"id": "q1", "approved": approved}
        part = {"type": "tool-pay", "toolCallId": "1", "state": "approval-responded", "input": {"amount": 5}}
        parts = ({**part, "approval": word},)
        turn = Turn("c1", message_id, (), 7, "confirmation-tool", answers=parts)
        return await self.answers.answer(AnswerRequest(await chat_with(*self._events), turn, {"send_nodes": True}))

    async def read(self, message_id: str | None = "m1") -> ChunkLog:
        opened = await self.answer(message_id)
        return (opened if isinstance(opened, Reading) else await opened).log

    @property
    def under_way(self) -> dict[str, int]:
        return dict(self.answers._under_way)  # pyright: ignore[reportPrivateUsage]


def chunks(log: ChunkLog) -> list[dict[str, Any]]:
    assert log.is_closed
    return [json.loads(chunk) for chunk in log.since(0, 10_000)]


def is_outcome(log: ChunkLog) -> bool:
    return "tool-output-available" in [chunk["type"] for chunk in chunks(log)]


# -- nothing runs -----------------------------------------------------------------------------------------------------


async def test_a_message_goes_on_as_its_client_asks_for_it() -> None:
    at = Desk(record())
    assert await at.read("mine") is at.segments.next
    (continued,) = at.segments.continued
    assert (continued.message_id, continued.start_id) == ("m1", "mine")
    assert (continued.sdk_version, continued.approval_style) == (7, "confirmation-tool")
    assert (continued.prepared, [answer.asked.key for answer in continued.answers]) == ({"send_nodes": True}, [KEY])


async def test_a_client_that_knows_no_message_gets_the_message_of_the_call() -> None:
    at = Desk(record())
    await at.read(None)
    assert [continued.start_id for continued in at.segments.continued] == ["m1"]


async def test_what_has_ended_is_told_without_a_lease_as_the_client_asks_for_it() -> None:
    at = Desk(paid(), events=[answering("1")])
    log = await at.read("mine")
    assert is_outcome(log)
    assert chunks(log)[0]["messageId"] == "mine"
    assert (at.store.acquired, at.segments.continued) == (0, [])
    shown = MessageIds(user_message_id=None, message_id="m1", approval_style="confirmation-tool")
    assert at.segments.shown == [(shown, 7)]


async def test_one_link_of_a_chain_is_recorded_and_nothing_goes_on() -> None:
    chain = (ChainLink(approvers=("ann",)), ChainLink(approvers=("bob",)))
    at = Desk(record(state=State.IN_CHAIN, chain=chain))
    await at.read()
    (found,) = (await at.store.read(CHAT)).records
    assert found.chain is not None
    assert (found.chain[0].decided_by, found.state) == ("ann", State.IN_CHAIN)


async def test_what_is_to_go_on_needs_room_like_anything_new() -> None:
    at = Desk(APPROVED, limits=Limits(max_runs_per_user=1))
    other = await begun(at.leases, ChatKey("helper", "ann", "c2"))
    with pytest.raises(TooMany):
        await at.answer()
    assert at.under_way == {}
    await at.leases.end(other)
    at = Desk(paid(), events=[answering("1")], limits=Limits(max_runs_per_user=0))
    assert is_outcome(await at.read())


@pytest.mark.parametrize("message_id", ["mine", None])
async def test_a_failure_is_told_in_the_message_that_the_client_asked_for(message_id: str | None) -> None:
    at = Desk(record())

    async def fails(chat: Any, leased: LeasedChat) -> Any:
        raise ZeroDivisionError

    at.segments.read_session = fails
    start, error = chunks(await at.read(message_id))
    assert (start["messageId"], error["errorText"]) == (message_id or "m1", KEPT)
    assert CHAT not in at.leases


# -- how many wait ----------------------------------------------------------------------------------------------------


async def test_each_answer_takes_a_place_until_it_is_read() -> None:
    at = Desk(record(), limits=Limits(max_waiting_answers_per_user=2))
    run = await at.busy()
    first, second = await at.answer(), await at.answer()
    assert at.under_way == {"ann": 2}
    with pytest.raises(TooMany) as refused:
        await at.answer()
    text = "Too many of your answers wait for their chats. Wait for one of them, then send this one again."
    assert str(refused.value) == text
    assert isinstance(second, asyncio.Task)
    assert isinstance(first, asyncio.Task)
    await asyncio.sleep(0.1)
    second.cancel()
    await asyncio.sleep(0.1)
    assert at.under_way == {"ann": 1}
    await run.stop_after_tools()
    await first
    await asyncio.sleep(0)
    assert at.under_way == {}


# -- the store fails --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message_id", ["mine", None])
async def test_an_answer_that_is_written_though_the_store_failed_is_not_denied(message_id: str | None) -> None:
    at = Desk(record())
    at.store.fails = "after"
    opened = await at.answer(message_id)
    assert isinstance(opened, Reading)
    start, error = chunks(opened.log)
    assert (start["messageId"], error["errorText"]) == (message_id or "m1", KEPT)
    assert at.under_way == {}


@pytest.mark.parametrize(
    ("fails", "text"),
    [
        ("before", StoreUnavailable.public_text),
        ("and is gone", "Whether your answer was recorded is not known right now. Send it again."),
    ],
)
async def test_an_answer_that_may_not_be_written_is_refused(fails: str, text: str) -> None:
    at = Desk(record())
    at.store.fails = fails
    with pytest.raises(StoreUnavailable) as refused:
        await at.answer()
    assert (str(refused.value), refused.value.__cause__) == (text, None)
    assert at.under_way == {}


async def test_a_chat_that_is_deleted_meanwhile_has_no_call_to_answer() -> None:
    at = Desk(record())
    at.store.forgets = True
    with pytest.raises(NotFound):
        await at.answer()
    assert CHAT not in at.leases
    at = Desk(record())
    at.store.forgets, at.store.fails = True, "after"
    with pytest.raises(StoreUnavailable):
        await at.answer()


# -- something runs ---------------------------------------------------------------------------------------------------


async def test_a_run_that_waits_for_the_call_goes_on_with_it() -> None:
    at = Desk(record())
    run = await at.busy("m1")
    run.is_accepting, run.gives, run.log = True, ChunkLog("given"), ChunkLog("open")
    assert await at.read("mine") is run.gives
    (taken,) = run.taken
    assert (taken.message_id, taken.start_id, taken.calls, taken.by) == ("m1", "mine", {KEY}, None)
    assert taken.records[KEY].state is State.APPROVED
    assert run.told == []
    await run.stop_after_tools()


async def test_a_run_that_has_shown_the_outcome_has_no_more_to_do() -> None:
    at = Desk(paid())
    run = await at.busy()
    run.is_shown = run.is_accepting = True
    assert is_outcome(await at.read())
    assert (run.taken, run.told, at.segments.continued) == ([], [], [])
    await run.stop_after_tools()


@pytest.mark.parametrize("is_accepting", [False, True])
async def test_an_answer_that_the_run_does_not_act_on_waits_for_its_end(is_accepting: bool) -> None:
    at = Desk(record())
    run = await at.busy()
    run.is_accepting = is_accepting
    opened = await at.answer()
    assert isinstance(opened, asyncio.Task)
    await asyncio.sleep(0.01)
    assert run.told[0] == "end when idle"
    assert (len(run.taken), opened.done()) == (int(is_accepting), False)
    await run.stop_after_tools()
    assert (await opened).log is at.segments.next


async def test_who_waits_for_a_chat_asks_its_run_to_make_room() -> None:
    """Before it queues behind others who wait."""
    at = Desk(record())
    run = await at.busy()
    async with at.leases.queue(CHAT):
        opened = await at.answer()
        await asyncio.sleep(1)
        assert run.told == ["end when idle"]
    await run.stop_after_tools()
    assert isinstance(opened, asyncio.Task)
    await opened


async def test_a_run_that_waits_for_another_call_of_the_message_takes_the_answer_up_after_it() -> None:
    at = Desk(APPROVED)
    run = await at.busy("m1")
    assert chunks(await at.read())[0]["type"] == "start"
    assert (run.told, at.segments.continued) == ([], [])
    await run.stop_after_tools()


# -- somebody else was faster -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message_id", "has_log", "is_read"), [("m1", True, True), ("m2", True, False), ("m1", False, False)]
)
async def test_the_segment_of_whoever_was_faster_is_read(message_id: str, has_log: bool, is_read: bool) -> None:
    at = Desk(APPROVED)
    at.segments.next = None
    run = at.segments.meanwhile = Run(at.leases, message_id)
    run.log = ChunkLog("faster") if has_log else None
    log = await at.read()
    assert (log is run.log) is is_read
    await run.stop_after_tools()


async def test_a_segment_behind_the_one_that_shows_the_outcome_is_not_read_for_it() -> None:
    at = Desk(APPROVED)
    at.segments.next = None
    run = at.segments.meanwhile = Run(at.leases, "m1")
    run.log = ChunkLog("faster", [b'{"type":"tool-output-available","toolCallId":"1","output":5}'])
    assert await at.read() is not run.log
    await run.stop_after_tools()
