"""One run per chat: a lease is held by one, lost in time, and what was lost is found."""

import asyncio
from typing import Any

import pytest

from adk_stream_protocol.protocol.call_record import NotAllowed, State, claim, decide
from adk_stream_protocol.store.base import Lease, Store, advance
from store.stores import CHAT, OTHER_CHAT, Clock, Stores, asked, held, lease_of


async def sets(store: Store, lease: Lease | None) -> bool:
    """Whether a call of the first chat can be moved under this lease, where it has not moved before."""
    await store.add(asked())
    approved = decide(asked(), by="ann", approved=True, now=1000.0)
    was_set = await store.compare_and_set(asked(), approved, lease=lease)
    assert (await store.read(CHAT)).records == [approved if was_set else asked()]
    assert len(await store.audit(CHAT)) == (2 if was_set else 1)
    return was_set


# -- who holds it -----------------------------------------------------------------------------------------------------


async def test_a_chat_has_one_holder_and_other_chats_their_own(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        assert (await held(store)).chat == CHAT
        assert await lease_of(store) is None
        assert await lease_of(store, OTHER_CHAT)


async def test_of_fifty_who_want_a_chat_at_once_exactly_one_gets_it(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for _ in range(3):  # free, expired, and expired again
            leases = await asyncio.gather(*(lease_of(store) for _ in range(50)))
            assert sum(lease is not None for lease in leases) == 1
            clock.now += 10


@pytest.mark.parametrize(("after_s", "is_free"), [(9.999, False), (10, True), (10.001, True)])
async def test_a_lease_is_free_for_others_from_its_end_on(
    stores: Stores, clock: Clock, after_s: float, is_free: bool
) -> None:
    async with stores.open(clock) as store:
        await held(store)
        clock.now += after_s
        assert (await lease_of(store) is not None) is is_free


@pytest.mark.parametrize("calls", [0, 2])
async def test_whoever_reads_a_chat_learns_whether_somebody_has_its_lease(
    stores: Stores, clock: Clock, calls: int
) -> None:
    async with stores.open(clock) as store:
        for number in range(calls):
            await store.add(asked(f"call-{number}"))
        assert not (await store.read(CHAT)).is_leased
        lease = await held(store)
        assert (await store.read(CHAT)).is_leased
        assert not (await store.read(OTHER_CHAT)).is_leased
        clock.now += 10
        assert not (await store.read(CHAT)).is_leased
        await store.renew(lease, 10)
        assert (await store.read(CHAT)).is_leased
        await store.release(lease)
        assert not (await store.read(CHAT)).is_leased


async def test_a_renewed_lease_lasts_from_then_on(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        clock.now += 9
        assert await store.renew(lease, 10)
        clock.now += 9
        assert await lease_of(store) is None
        clock.now += 1
        assert await lease_of(store)


async def test_a_late_renewal_counts_if_nobody_else_came(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        clock.now += 60
        assert await store.renew(lease, 10)
        assert await lease_of(store) is None
        assert await sets(store, lease)


async def test_a_lease_that_was_taken_over_can_neither_be_renewed_nor_released(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lost = await held(store)
        clock.now += 10
        await held(store)
        assert not await store.renew(lost, 1000)
        await store.release(lost)
        assert await lease_of(store) is None
        clock.now += 10  # and the renewal that failed has not lengthened the new one
        assert await lease_of(store)


async def test_a_released_lease_is_free_at_once_and_cannot_be_renewed(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        await store.release(lease)
        await store.release(lease)
        assert not await store.renew(lease, 10)
        assert await lease_of(store)


async def test_a_lease_of_another_chat_is_not_this_chats(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        assert await lease_of(store, OTHER_CHAT)
        assert not await store.renew(Lease(OTHER_CHAT, lease.token), 10)
        await store.release(Lease(OTHER_CHAT, lease.token))
        assert await lease_of(store, OTHER_CHAT) is None


async def test_no_token_is_given_twice(stores: Stores, clock: Clock) -> None:
    tokens: list[str] = []
    async with stores.open(clock) as store:
        for n in range(20):
            lease = await held(store)
            tokens.append(lease.token)
            if n % 2 == 0:
                await store.release(lease)
            else:
                clock.now += 10
    assert len(set(tokens)) == 20


# -- what it allows ---------------------------------------------------------------------------------------------------


async def test_the_holder_moves_calls(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        clock.now += 9.999
        assert await sets(store, lease)


async def test_without_a_lease_nobodys_lease_counts(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await held(store)
        assert await sets(store, None)


async def test_an_expired_lease_moves_nothing(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        clock.now += 10
        assert not await sets(store, lease)


async def test_a_released_lease_moves_nothing(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await held(store)
        await store.release(lease)
        assert not await sets(store, lease)


async def test_a_lease_that_was_taken_over_moves_nothing(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lost = await held(store)
        clock.now += 10
        await held(store)
        assert not await sets(store, lost)


async def test_an_invented_lease_moves_nothing(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        assert not await sets(store, Lease(CHAT, "invented"))
        await held(store)
        assert not await sets(store, Lease(CHAT, "invented"))


async def test_a_lease_of_another_chat_moves_nothing_here(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        lease = await lease_of(store, OTHER_CHAT)
        assert lease
        assert not await sets(store, lease)
        assert not await sets(store, Lease(CHAT, lease.token))


async def test_who_lost_the_lease_is_told_instead_of_trying_for_ever(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        lease = await held(store)
        clock.now += 10
        with pytest.raises(NotAllowed, match="the lease is gone"):
            await advance(
                store,
                CHAT,
                asked().call,
                lambda old, now: decide(old, by="ann", approved=True, now=now),
                lease=lease,
            )
        assert (await store.read(CHAT)).records == [asked()]


# -- what is found ----------------------------------------------------------------------------------------------------

APPROVED: dict[str, Any] = {"state": State.APPROVED, "approved": True, "decided_at": 1000.0, "decided_by": "ann"}


async def test_a_chat_whose_lease_ran_out_is_found_until_somebody_takes_it(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await held(store)
        clock.now += 9.999
        assert await store.abandoned(0) == []
        clock.now = 1010.0
        assert await store.abandoned(1000) == [CHAT]  # at once, however long calls may lie
        lease = await held(store)
        assert await store.abandoned(0) == []
        await store.release(lease)
        assert await store.abandoned(0) == []


async def test_an_approved_call_that_nobody_took_up_is_found_after_a_while(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked(**APPROVED))
        clock.now += 4.999
        assert await store.abandoned(5) == []
        clock.now = 1005.0
        assert await store.abandoned(5) == [CHAT]
        await held(store)
        assert await store.abandoned(5) == []  # not while somebody is at it
        clock.now += 10
        assert await store.abandoned(5) == [CHAT]  # twice left, and found once


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ({"state": State.APPROVED}, True),  # decided by nobody: nothing is waited for
        ({**APPROVED, "executor": "browser"}, False),
        ({"state": State.PENDING}, False),
        ({**APPROVED, "state": State.DENIED}, False),
        ({**APPROVED, "state": State.EXPIRED}, False),
        ({**APPROVED, "state": State.CLAIMED, "lease_token": "r"}, False),
        ({**APPROVED, "state": State.STARTED, "lease_token": "r"}, False),
        ({**APPROVED, "state": State.DONE, "lease_token": "r"}, False),
        ({**APPROVED, "state": State.FAILED, "lease_token": "r"}, False),
        ({**APPROVED, "state": State.UNKNOWN}, False),
        ({**APPROVED, "state": State.WITHDRAWN}, False),
    ],
    ids=lambda value: f"{value['state']}-{value.get('executor', 'server')}" if isinstance(value, dict) else str(value),
)
async def test_only_approved_calls_of_the_server_are_left_behind(
    stores: Stores, clock: Clock, fields: dict[str, Any], is_found: bool
) -> None:
    async with stores.open(clock) as store:
        await store.add(asked(**fields))
        clock.now += 5
        assert await store.abandoned(5) == ([CHAT] if is_found else [])


async def test_a_call_is_left_behind_by_where_it_is_now(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        await store.add(asked())
        clock.now = 1010.0
        await advance(store, CHAT, asked().call, lambda old, now: decide(old, by="ann", approved=True, now=now))
        clock.now = 1014.0
        assert await store.abandoned(5) == []
        clock.now = 1015.0
        assert await store.abandoned(5) == [CHAT]
        lease = await held(store)
        await advance(
            store,
            CHAT,
            asked().call,
            lambda old, now: claim(old, digest=old.digest, lease_token=lease.token),
            lease=lease,
        )
        await store.release(lease)
        assert await store.abandoned(5) == []


async def test_several_chats_are_found_each_once(stores: Stores, clock: Clock) -> None:
    async with stores.open(clock) as store:
        for name in ("call-1", "call-2", "call-3"):
            await store.add(asked(name, **APPROVED))
        assert await lease_of(store, OTHER_CHAT, 5)
        clock.now += 5
        assert sorted(await store.abandoned(5)) == [CHAT, OTHER_CHAT]
        lease = await held(store)
        await store.forget(lease)
        await store.release(lease)
        assert await store.abandoned(5) == [OTHER_CHAT]
