"""Leases and recovery outlive whatever a store raises, and give up what was taken back."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from adk_stream_protocol import Limits
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.pages import Slow, Till
from support.workers import Workers, outputs, words_body, workers

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]
LEASE_S = 10
LIMITS = Limits(lease_s=LEASE_S)


class Redis(MemoryStore):
    """A store of somebody's own. It counts its calls, and raises what it likes, once, where it is told to."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked = Counter[str]()
        self.fails_at: str | None = None

    def _ask(self, name: str) -> None:
        self.asked[name] += 1
        if self.fails_at == name:
            self.fails_at = None
            raise ConnectionResetError("the store went away")

    async def read(self, *args: Any, **options: Any) -> Any:
        self._ask("read")
        return await super().read(*args, **options)

    async def acquire(self, *args: Any, **options: Any) -> Any:
        self._ask("acquire")
        return await super().acquire(*args, **options)

    async def renew(self, *args: Any, **options: Any) -> Any:
        self._ask("renew")
        return await super().renew(*args, **options)

    async def release(self, *args: Any, **options: Any) -> Any:
        self._ask("release")
        return await super().release(*args, **options)

    async def abandoned(self, *args: Any, **options: Any) -> Any:
        self._ask("abandoned")
        return await super().abandoned(*args, **options)


def redis(staff: Workers) -> Redis:
    assert isinstance(staff.store, Redis)
    return staff.store


# -- leases -----------------------------------------------------------------------------------------------------------


async def test_leases_are_renewed_after_a_failure_of_the_store() -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", tools=(slow.pay,), store=Redis, limits=LIMITS) as staff:
        at = staff.page()
        saying = asyncio.create_task(at.say("Pay."))
        await slow.started.wait()
        redis(staff).asked.clear()
        redis(staff).fails_at = "renew"
        await asyncio.sleep(10 * LEASE_S)
        assert redis(staff).asked["renew"] >= 29  # three a lease
        slow.go_on.set()
        assert (await saying).text == "Paid."


@pytest.mark.parametrize("method", ["renew", "release", "read", "acquire"])
@pytest.mark.parametrize("when", ["while a tool runs", "after its result"])
async def test_a_failure_of_the_store_leaves_no_chat_busy_for_ever(method: str, when: str) -> None:
    slow = Slow()
    async with workers(PAY, "Paid.", "Fine.", tools=(slow.gated,), store=Redis, limits=LIMITS) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        if when == "while a tool runs":
            redis(staff).fails_at = method
            await asyncio.sleep(1)
            slow.go_on.set()
        else:
            slow.go_on.set()
            await asyncio.sleep(0)
            redis(staff).fails_at = method
        async with asyncio.timeout(60):
            answer = await answering
        assert outputs(answer) == [{"paid": 5}]
        redis(staff).fails_at = None
        staff.clock.now += LEASE_S + 1
        assert (await at.chat.post(words_body("And?"))).text == "Fine."


async def test_a_lease_that_was_not_released_is_free_when_it_has_run_out() -> None:
    async with workers("One.", "Two.", store=Redis, limits=LIMITS) as staff:
        at = staff.page()
        redis(staff).fails_at = "release"
        assert (await at.say("Hello.")).text == "One."
        assert (await at.chat.post(words_body("And?"))).status == 409
        staff.clock.now += LEASE_S + 1
        assert (await at.chat.post(words_body("And?"))).text == "Two."


@pytest.mark.parametrize("method", ["read", "acquire"])
async def test_a_failure_of_the_store_at_the_begin_of_a_turn_is_one_refusal(method: str) -> None:
    till = Till()
    async with workers(PAY, "Paid.", tools=(till.gated,), store=Redis, limits=LIMITS) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        redis(staff).fails_at = method
        body = {"id": "c1", "messages": at.messages, "messageId": at.messages[-1]["id"]}
        assert (await at.chat.post(body)).status >= 500
        assert (await at.answer()).text == "Paid."
        assert till.paid == [5]


async def test_a_payment_that_the_store_kept_from_beginning_is_told_as_not_run() -> None:
    till = Till()
    async with workers(PAY, "Paid.", tools=(till.gated,), store=Redis, limits=LIMITS) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        redis(staff).fails_at = "renew"
        await at.answer()
        assert "was not run" in at.part("pay")["errorText"]
        assert (till.paid, await staff.states()) == ([], [State.FAILED])
        await at.is_what_a_reload_shows()


# -- recovery ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["abandoned", "acquire", "read", "release"])
async def test_recovery_goes_on_after_a_failure_of_the_store(method: str) -> None:
    till = Till()
    async with workers(PAY, "Paid.", tools=(till.gated,), store=Redis, limits=LIMITS) as staff:
        at = staff.page()
        await at.say("Pay.")
        await asyncio.sleep(1)
        await staff.approve_and_die()
        staff.clock.now += LEASE_S + 1
        redis(staff).fails_at = method
        for _ in range(4):
            await asyncio.sleep(LEASE_S)
            staff.clock.now += LEASE_S + 1
        assert till.paid == [5]
        assert await staff.states() == [State.DONE]


async def rewound(staff: Workers) -> None:
    """A payment that one tab approved while the other took it back. Their workers died then, and one of them between
    the rewind and the record."""
    at = staff.page()
    await at.say("Pay.")
    (asked,) = await staff.records()
    await at.chat.runner.rewind_async(
        user_id="ann", session_id="c1", rewind_before_invocation_id=asked.call.invocation_id
    )
    await at.chat.bridge.aclose()
    staff.bridges.remove(at.chat.bridge)
    await staff.approve_and_die()


async def test_an_approval_that_was_taken_back_is_given_up() -> None:
    till = Till()
    async with workers(PAY, "Anew.", tools=(till.gated,), store=Redis, limits=LIMITS) as staff:
        await rewound(staff)
        await staff.recover(staff.page())
        assert await staff.states() == [State.FAILED]
        assert till.paid == []


async def test_an_approval_that_was_taken_back_costs_no_lease_after_the_first_look() -> None:
    async with workers(PAY, "Anew.", tools=(Till().gated,), store=Redis, limits=LIMITS) as staff:
        await rewound(staff)
        at = staff.page()
        await staff.recover(at)
        redis(staff).asked.clear()
        for _ in range(10):
            await staff.recover(at)
        assert redis(staff).asked["acquire"] == 0


async def test_the_person_who_approved_what_was_taken_back_is_told_so() -> None:
    """The other tab takes it back between what this one reads and what it writes."""
    till = Till()
    held, goes_on = asyncio.Event(), asyncio.Event()

    class Held(Redis):
        async def acquire(self, chat: Any, lasts_s: float, changes: Any = ()) -> Any:
            if changes:
                held.set()
                await goes_on.wait()
            return await super().acquire(chat, lasts_s, changes)

    async with workers(PAY, "Anew.", tools=(till.gated,), store=Held, limits=LIMITS) as staff:
        at, other = staff.page(), staff.page()
        asked = await at.say("Pay.")
        at.decide("pay")
        body = {"id": "c1", "messages": at.messages, "messageId": asked.message_id}
        approving = asyncio.create_task(at.chat.post(body))
        await held.wait()
        assert (await other.chat.regenerate("u0")).text == "Anew."
        goes_on.set()
        answer = await approving
        assert answer.status == 200
        (told,) = answer.of_type("tool-output-error")
        assert "edited or regenerated" in told["errorText"]
        assert await staff.states() == [State.DENIED]
        assert till.paid == []
