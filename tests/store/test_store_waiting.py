"""One contract for all stores: whose decision is waited for, under which id, who was told of it, and what was noted."""

from typing import Any

import pytest

from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State, decide
from adk_stream_protocol.store.base import AuditFilter, Store, advance
from store.old_worker import old_worker
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, approve, asked, held

LINKS = (
    ChainLink(approvers=("max", "group:managers"), deadline_s=60.0),
    ChainLink(approvers=("eva",), deadline_s=60.0),
)
OF_BOB = ChatKey("app", "bob", "c9")
ELSEWHERE = ChatKey("another app", "ann", "c1")


def chained(call_id: str = "call-1", **fields: Any) -> CallRecord:
    known = {"state": State.IN_CHAIN, "chain": LINKS, "deadline": 1060.0, "approval_id": f"ask-{call_id}"}
    return asked(call_id, **(known | fields))


async def waiting(store: Store, *approvers: str) -> list[str]:
    return [found.call.call_id for found in (await store.waiting("app", approvers, 100)).records]


async def approved_by(store: Store, record: CallRecord, by: str, **given: Any) -> CallRecord:
    return await advance(
        store, record.chat, record.call, lambda found, now: decide(found, by=by, approved=True, now=now, **given)
    )


async def test_what_waits_for_somebody_is_found_across_chats_newest_first(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for place, chat in enumerate((CHAT, OTHER_CHAT, OF_BOB, ELSEWHERE)):
            await store.add(chained(f"call-{place}", chat=chat))
        await store.add(asked("of ann"))
        await store.add(asked("of bob", chat=OF_BOB))
        assert await waiting(store, "max") == ["call-2", "call-1", "call-0"]
        assert await waiting(store, "zoe", "group:managers") == ["call-2", "call-1", "call-0"]
        assert await waiting(store, "max", "group:managers", "bob") == ["of bob", "call-2", "call-1", "call-0"]
        assert await waiting(store, "ann") == ["of ann"]
        for nobody in ((), ("eva",), ("managers",), ("Max",), ('"max"',), ("",)):
            assert await waiting(store, *nobody) == []
        assert (await store.waiting("another app", ["max"], 100)).records == [chained("call-3", chat=ELSEWHERE)]


async def test_a_list_comes_in_pages(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for place in range(7):
            await store.add(chained(f"call-{place}"))
        found: list[str] = []
        cursor, pages = None, 0
        while pages == 0 or cursor is not None:
            page = await store.waiting("app", ["max", "group:managers"], 3, cursor)
            found += [record.call.call_id for record in page.records]
            cursor, pages = page.cursor, pages + 1
        assert found == [f"call-{place}" for place in (6, 5, 4, 3, 2, 1, 0)]
        assert pages == 3
        for strange in ("", "x", "-1", "9" * 40, "١"):
            assert (await store.waiting("app", ["max"], 3, strange)).now == 1000.0


async def test_a_decision_moves_a_call_from_one_list_to_the_next(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(chained())
        first = await approved_by(store, chained(), "max")
        assert (await waiting(store, "max"), await waiting(store, "eva")) == ([], ["call-1"])
        edited = await approved_by(store, first, "eva", payload={"amount": 3})
        assert (await waiting(store, "max"), await waiting(store, "eva")) == (["call-1"], [])
        assert (await store.read(CHAT)).records == [edited]
        await approved_by(store, edited, "max")
        assert await waiting(store, "max", "eva", "ann") == []


async def test_what_is_late_decided_or_forgotten_waits_for_nobody(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(chained("late"))
        await store.add(asked("for ever", approval_id="ask-1"))
        await store.add(asked("decided", approval_id="ask-2"))
        await advance(store, CHAT, CallKey("inv-1", "decided"), approve)
        clock.now = 1060.0
        assert await waiting(store, "ann", "max") == ["for ever"]
        assert await store.forget(await held(store))
        assert await waiting(store, "ann", "max") == []
        assert (await store.find_asked("app", "ask-1")).records == []
        assert await store.unannounced("app", 0) == []


async def test_a_call_is_found_by_the_id_that_people_are_asked_under_also_when_it_is_over(
    stores: Stores, clock: Clock
) -> None:
    async with stores.open(clock) as store:
        await store.add(chained())
        await store.add(asked("call-2", question_id="ask-2"))
        (found,) = (await store.find_asked("app", "ask-call-1")).records
        assert found == chained()
        await advance(store, CHAT, CallKey("inv-1", "call-2"), approve)
        snapshot = await store.find_asked("app", "ask-2")
        assert (snapshot.records[0].state, snapshot.now) == (State.APPROVED, 1000.0)
        for app_name, name in (("another app", "ask-2"), ("app", "ask-3"), ("app", ""), ("app", "a\0b")):
            assert (await store.find_asked(app_name, name)).records == []


async def test_each_link_is_announced_until_somebody_marks_it(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(chained())
        await store.add(chained("call-2", chat=ELSEWHERE))
        assert await store.unannounced("app", 5) == []
        clock.now = 1005.0
        assert await store.unannounced("app", 5) == [chained()]
        await store.mark_announced(chained())
        assert await store.unannounced("app", 5) == []
        second = await approved_by(store, chained(), "max")
        clock.now = 1010.0
        await store.mark_announced(chained())  # late: of the link before
        assert await store.unannounced("app", 5) == [second]
        clock.now = 1065.0
        assert await store.unannounced("app", 5) == []  # too late to tell anybody


async def test_a_chain_whose_deadline_has_passed_is_abandoned(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(chained())
        await store.add(chained(chat=OTHER_CHAT, deadline=None))
        assert await store.abandoned(5) == []
        clock.now = 1060.0
        assert await store.abandoned(5) == [CHAT]
        lease = await held(store)
        assert await store.abandoned(5) == []
        await store.release(lease)
        assert await store.abandoned(5) == [CHAT]


# -- the trail --------------------------------------------------------------------------------------------------------


async def test_the_trail_holds_what_was_shown_and_each_decision_of_a_chain(stores: Stores, clock: Clock) -> None:
    card = {"title": "Payment"}
    record = chained(hint="Pay?", card=card, asked_payload={"amount": None})

    async with stores.open(clock) as store:
        await store.add(record)
        first = await approved_by(store, record, "max", reason="fine")
        edited = await approved_by(store, first, "eva", payload={"amount": 3})
        last = await approved_by(store, edited, "max")
        shown, one, edit, end = await store.audit(CHAT)
        assert (shown.approval_id, shown.hint, shown.card) == ("ask-call-1", "Pay?", card)
        assert (shown.digest, shown.arguments, shown.payload) == (record.digest, {"amount": 5}, {"amount": None})
        assert shown.approvers == [["max", "group:managers"], ["eva"]]
        assert (one.state, one.by, one.approved, one.reason, one.link) == ("in-chain", "max", True, "fine", 0)
        assert (one.shown_digest, one.replaces, one.payload) == (None, None, None)
        assert (edit.by, edit.approved, edit.link, edit.payload) == ("eva", True, 1, {"amount": 3})
        assert (edit.replaces, edit.shown_digest) == (record.digest, last.shown_digest)
        assert (end.state, end.by, end.approved, end.link, end.replaces) == ("approved", "max", True, 0, None)


async def test_the_trail_is_asked_by_chat_user_tool_and_time(stores: Stores, clock: Clock) -> None:
    prefix = ChatKey("app", "an", "c1")
    odd = ChatKey("app", 'ann","', "c%_")

    async with stores.open(clock) as store:
        for place, chat in enumerate((CHAT, OTHER_CHAT, OF_BOB, ELSEWHERE, prefix, odd)):
            clock.now = 1000.0 + place
            await store.add(asked(f"call-{place}", chat=chat, tool="pay" if place % 2 else "ship"))

        async def lines(**wanted: Any) -> list[str]:
            return [entry.call.call_id[-1] for entry in await store.audit(AuditFilter(**wanted))]

        assert await lines() == ["0", "1", "2", "3", "4", "5"]
        assert await lines(app_name="app") == ["0", "1", "2", "4", "5"]
        assert await lines(app_name="app", user_id="ann") == ["0", "1"]
        assert await lines(user_id="ann") == ["0", "1", "3"]
        assert await lines(app_name="app", user_id=odd.user_id) == ["5"]
        assert await lines(app_name="app", user_id="ann", chat_id="c2") == ["1"]
        assert await lines(chat_id="c1") == ["0", "3", "4"]
        assert await lines(tool="pay") == ["1", "3", "5"]
        assert await lines(since=1001.0, until=1003.0) == ["1", "2"]
        assert await lines(app_name="app", user_id="ann", tool="pay", since=1001.0) == ["1"]
        assert await lines(user_id="nobody") == []


# -- beside older workers ---------------------------------------------------------------------------------------------


async def test_an_older_worker_knows_no_state_that_it_could_decide_a_chain_in(databases: Stores, clock: Clock) -> None:
    """Its versions decide what is pending, and leave alone what they do not know."""
    async with databases.open(clock) as store, old_worker(databases.url) as old:
        await store.add(chained())
        assert (await old.read("call-1"))["state"] == "in-chain"
        assert (await old.read("call-1"))["state"] not in ("pending", "approved")


async def test_what_an_older_worker_has_decided_waits_for_nobody_here(databases: Stores, clock: Clock) -> None:
    async with databases.open(clock) as store, old_worker(databases.url) as old:
        await store.add(asked())
        await old.add("call-2")
        assert await waiting(store, "ann") == ["call-1"]  # the other one is answered in its chat
        await old.approve("call-1")
        assert await waiting(store, "ann") == []
        assert await store.unannounced("app", 0) == []


@pytest.mark.parametrize("approver", ["a\0b", "x" * 2000, "ゆき", 'quo"te', "%"])
async def test_whatever_an_approver_is_called(stores: Stores, clock: Clock, approver: str) -> None:
    async with stores.open(clock) as store:
        await store.add(chained(chain=(ChainLink(approvers=(approver, approver)),)))
        assert await waiting(store, approver) == ["call-1"]
