"""One contract for all stores: calls are kept as they were asked, moved by exactly one, and never moved untold."""

import asyncio
from random import Random
from typing import Any

import pytest

from adk_stream_protocol.protocol.call_record import CallKey, ChatKey, State, claim, decide, finish, start
from adk_stream_protocol.store.base import AuditEntry, Lease, Snapshot, advance
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, approve, asked, deny, held, lease_of, states, trail

# -- what is kept -----------------------------------------------------------------------------------------------------


async def test_a_new_chat_has_no_calls_but_a_time(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        assert await store.read(CHAT) == Snapshot([], 1000.0)
        clock.now = 1234.5
        assert await store.read(CHAT, CallKey("inv-1", "call-1")) == Snapshot([], 1234.5)
        assert await store.audit(CHAT) == []


async def test_a_call_is_read_as_it_was_asked_with_every_field(stores: Stores, clock: Clock) -> None:
    complete = asked(
        executor="browser",
        state=State.DONE,
        asked_at=1000.0625,
        approval_id="ask-1",
        hint="Pay 5 €?",
        deadline=1600.1,
        approved=True,
        decided_at=1001.7,
        decided_by="ann",
        reason="fine",
        payload={"limit": 10},
        lease_token="run-1",
        result={"ok": [1, 2.5, None, "x"]},
        version=3,
        message_id="message-1",
        prepared={"model": "large", "state": {"n": 1}},
        asked_payload={"limit": None},
    )

    async with stores.open(clock) as store:
        assert await store.add(complete)
        assert await store.add(asked("call-2"))
        assert (await store.read(CHAT)).records == [complete, asked("call-2")]


async def test_the_second_call_under_one_key_changes_nothing(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        assert await store.add(asked())
        assert not await store.add(asked(arguments={"amount": 5000}))
        assert (await store.read(CHAT)).records == [asked()]
        assert await trail(store) == ["pending"]


async def test_calls_keep_the_order_in_which_they_were_asked(stores: Stores, clock: Clock) -> None:
    asked_in_order = [asked(name) for name in ("m", "z", "a", "10", "9")]

    async with stores.open(clock) as store:
        for approval in asked_in_order:
            await store.add(approval)
        for approval in reversed(asked_in_order):  # what moves stays in its place
            await advance(store, CHAT, approval.call, approve)
        assert [each.call for each in (await store.read(CHAT)).records] == [each.call for each in asked_in_order]


async def test_one_call_is_read_without_the_others(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for name in ("call-1", "call-2", "call-3"):
            await store.add(asked(name))
        assert (await store.read(CHAT, CallKey("inv-1", "call-2"))).records == [asked("call-2")]
        assert (await store.read(CHAT, CallKey("inv-2", "call-2"))).records == []
        everything = await store.read(CHAT)
        assert everything.find(CallKey("inv-1", "call-3")) == asked("call-3")
        assert everything.find(CallKey("inv-2", "call-3")) is None


async def test_one_call_id_in_two_invocations_is_two_calls(stores: Stores, clock: Clock) -> None:
    first, second = (asked(call=CallKey(invocation, "0")) for invocation in ("inv-1", "inv-2"))

    async with stores.open(clock) as store:
        assert await store.add(first)
        assert await store.add(second)
        await advance(store, CHAT, second.call, deny)
        assert await states(store) == ["pending", "denied"]


LOOKALIKES = [
    ChatKey("app", "ann", "c1"),
    ChatKey("app", "Ann", "c1"),
    ChatKey("app", "ann", "c1 "),
    ChatKey('app","ann', "c1", ""),
    ChatKey("app", 'ann","c1', ""),
    ChatKey("app", "", "ann"),
    ChatKey("app", "é", "c1"),
    ChatKey("app", "e\u0301", "c1"),
    ChatKey("app", "ann", "%"),
    ChatKey("app", "ann", "' OR 1=1 --"),
    ChatKey("app", "".join(map(chr, range(0x4E00, 0x4E80))), "".join(map(chr, range(0x1F600, 0x1F680)))),
]


async def test_chats_that_look_alike_share_nothing(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for chat in LOOKALIKES:
            assert await store.add(asked(chat=chat))
            assert await lease_of(store, chat)
        for chat in LOOKALIKES:
            assert (await store.read(chat)).records == [asked(chat=chat)]
            assert [entry.chat for entry in await store.audit(chat)] == [chat]
        clock.now += 10
        assert sorted(await store.abandoned(0)) == sorted(LOOKALIKES)


async def test_a_call_id_may_carry_kilobytes(stores: Stores, clock: Clock) -> None:
    """Some gateways put a model's signature of its thoughts there, which no index compresses."""
    letters = [chr(code) for code in range(33, 127)]
    names = ["".join(Random(seed).choices(letters, k=8192)) for seed in (1, 2)]

    async with stores.open(clock) as store:
        for name in names:
            assert await store.add(asked(name))
            assert not await store.add(asked(name))
        assert [each.call.call_id for each in (await store.read(CHAT)).records] == names


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"text": "a\u0000b"}, id="NUL"),
        pytest.param({"text": "漢字 👩‍👩‍👧 e\u0301 \u2028 \\ ' \" %s :x ?"}, id="letters"),
        pytest.param({"text": "x" * 256 * 1024}, id="256 KiB"),
        pytest.param({"n": [2**63, 2**64 - 1, -(2**63), 0.1, 1e300, -0.0, 1.0]}, id="numbers"),
        pytest.param({"": {"deep": [[[{}]]], "none": None, "true": True}}, id="nested"),
        pytest.param(None, id="none"),
    ],
)
async def test_arguments_and_results_survive_whatever_is_in_them(stores: Stores, clock: Clock, arguments: Any) -> None:
    approval = asked(arguments=arguments, result=arguments, payload=arguments)

    async with stores.open(clock) as store:
        await store.add(approval)
        (found,) = (await store.read(CHAT)).records
        assert found == approval
        assert found.digest == approval.digest
        assert (await store.audit(CHAT))[0].arguments == arguments


@pytest.mark.parametrize(
    "arguments",
    [{"n": float("nan")}, {"n": 10**40}, {"n": 2**2000}, {"text": "\ud800"}, {"members": {1}}, {"pair": (1, 2)}],
    ids=str,
)
async def test_what_json_cannot_hold_keeps_the_digest_that_was_shown(
    stores: Stores, clock: Clock, arguments: Any
) -> None:
    approval = asked(arguments=arguments)

    async with stores.open(clock) as store:
        await store.add(approval)
        (found,) = (await store.read(CHAT)).records
        assert found.digest == approval.digest


# -- who moves a call -------------------------------------------------------------------------------------------------


async def test_of_fifty_who_decide_at_once_exactly_one_does(stores: Stores, clock: Clock) -> None:
    words = [decide(asked(), by="ann", approved=n % 2 == 0, now=1001.0, reason=f"word {n}") for n in range(50)]

    async with stores.open(clock) as store:
        await store.add(asked())
        won = await asyncio.gather(*(store.compare_and_set(asked(), word) for word in words))
        assert won.count(True) == 1
        assert (await store.read(CHAT)).records == [words[won.index(True)]]
        assert [entry.reason for entry in await store.audit(CHAT)] == [None, words[won.index(True)].reason]


async def test_of_fifty_who_ask_at_once_exactly_one_is_the_first(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        added = await asyncio.gather(*(store.add(asked(hint=str(n))) for n in range(50)))
        assert added.count(True) == 1
        assert [each.hint for each in (await store.read(CHAT)).records] == [str(added.index(True))]
        assert await trail(store) == ["pending"]


async def test_a_stale_copy_sets_nothing(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        approved = approve(asked(), 1001.0)
        assert await store.compare_and_set(asked(), approved)
        assert not await store.compare_and_set(asked(), deny(asked(), 1002.0))
        assert (await store.read(CHAT)).records == [approved]
        assert await trail(store) == ["pending", "approved"]


async def test_a_call_that_was_never_asked_cannot_be_set(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked("call-2"))
        await store.add(asked(chat=OTHER_CHAT))
        assert not await store.compare_and_set(asked(), approve(asked(), 1001.0))
        assert await states(store) == ["pending"]
        assert await states(store, OTHER_CHAT) == ["pending"]
        assert await trail(store) == ["pending"]


# -- what is remembered -----------------------------------------------------------------------------------------------


async def test_the_trail_says_what_was_asked_decided_and_done(stores: Stores, clock: Clock) -> None:
    approval = asked(arguments={"amount": 5, "to": "ゆき"})

    def entry(at: float, state: str, **known: Any) -> AuditEntry:
        return AuditEntry(
            at=at, chat=CHAT, call=approval.call, tool="pay", digest=approval.digest, state=state, **known
        )

    async with stores.open(clock) as store:
        await store.add(approval)
        lease = await held(store, lasts_s=100)
        for move in (
            lambda old, now: decide(old, by="ann", approved=True, now=now, reason="lunch"),
            lambda old, now: claim(old, digest=old.digest, lease_token=lease.token),
            lambda old, now: start(old, lease_token=lease.token),
            lambda old, now: finish(old, lease_token=lease.token, result={"secret": "not for the trail"}),
        ):
            clock.now += 1
            await advance(store, CHAT, approval.call, move, lease=lease)
        said: dict[str, Any] = {"approved": True, "reason": "lunch"}
        assert await store.audit(CHAT) == [
            entry(1000.0, "pending", arguments={"amount": 5, "to": "ゆき"}),
            entry(1001.0, "approved", by="ann", **said),
            entry(1002.0, "claimed", by=lease.token, **said),
            entry(1003.0, "started", by=lease.token, **said),
            entry(1004.0, "done", by=lease.token, **said),
        ]


async def test_the_trail_says_who_denied_and_why(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        await advance(store, CHAT, asked().call, deny)
        last = (await store.audit(CHAT))[-1]
        assert (last.state, last.by, last.approved, last.reason) == ("denied", "ann", False, "too much")
        assert (last.digest, last.arguments) == (asked().digest, None)


async def test_a_forgotten_chat_has_no_calls_but_its_trail_and_its_holder(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for chat in (CHAT, OTHER_CHAT):
            await store.add(asked(chat=chat))
            await store.add(asked("call-2", chat=chat))
        lease = await held(store)
        assert await store.forget(lease)
        assert (await store.read(CHAT)).records == []
        assert await trail(store) == ["pending", "pending"]
        assert await states(store, OTHER_CHAT) == ["pending", "pending"]
        assert await lease_of(store) is None  # nobody comes in between before all else is deleted
        assert await store.forget(lease)  # what failed halfway is done again
        await store.release(lease)
        assert await lease_of(store)
        assert await store.add(asked())  # and may be asked anew
        assert await trail(store) == ["pending", "pending", "pending"]


async def test_only_the_holder_makes_a_chat_forgotten(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        lost = await held(store)
        clock.now += 10
        assert not await store.forget(lost)
        other = await held(store)
        released = await held(store, OTHER_CHAT)
        await store.release(released)
        for wrong in (lost, Lease(CHAT, "invented"), Lease(CHAT, released.token), Lease(OTHER_CHAT, other.token)):
            assert not await store.forget(wrong)
        assert await states(store) == ["pending"]
        assert await store.forget(other)
        assert await states(store) == []
