"""An approval whose worker died is taken up while somebody expects it, and expires after that."""

import pytest

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.testing import call
from support.pages import Till, results_told
from support.workers import words_body, workers

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]
HOUR, DAY = 3600, 24 * 3600


@pytest.mark.parametrize("later_s", [11, HOUR - 1])
async def test_an_approval_whose_worker_died_is_taken_up_within_an_hour(later_s: float) -> None:
    till = Till()
    async with workers(PAY, "Paid.", tools=(till.gated,)) as staff:
        await staff.page().say("Pay.")
        await staff.approve_and_die()
        await staff.recover(staff.page(), later_s=later_s)
        assert till.paid == [5]
        assert await staff.states() == [State.DONE]


@pytest.mark.parametrize(("recover_s", "later_s"), [(HOUR, HOUR + 1), (HOUR, 90 * DAY), (60, 61)])
async def test_an_approval_whose_worker_died_expires_later(recover_s: float, later_s: float) -> None:
    till = Till()
    policy = ApprovalPolicy(recover_s=recover_s)
    async with workers(PAY, "It expired.", tools=(till.gated,), approvals=policy) as staff:
        await staff.page().say("Pay.")
        await staff.approve_and_die()
        await staff.recover(staff.page(), later_s=later_s)
        assert till.paid == []
        assert await staff.states() == [State.EXPIRED]


async def test_the_model_is_told_of_an_approval_that_expired_with_its_worker() -> None:
    till = Till()
    async with workers(PAY, "It expired.", "As I said.", tools=(till.gated,)) as staff:
        await staff.page().say("Pay.")
        await staff.approve_and_die()
        at = staff.page()
        await staff.recover(at, later_s=HOUR + 1)
        await at.chat.post(words_body("And?"))
        assert [told for told in results_told(staff.model) if "expired" in str(told)]
        assert till.paid == []


async def test_the_person_who_approved_what_expired_with_its_worker_is_told_so() -> None:
    till = Till()
    async with workers(PAY, "It expired.", tools=(till.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        await staff.approve_and_die()
        await staff.recover(at, later_s=HOUR + 1)
        tab = await at.second_tab()
        assert tab.part("pay")["state"] == "output-error"
        assert "expired" in tab.part("pay")["errorText"]


async def test_an_approval_that_waited_too_long_is_not_begun_by_the_users_next_words_either() -> None:
    till = Till()
    async with workers(PAY, "It expired.", tools=(till.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        await staff.approve_and_die()
        staff.clock.now += HOUR + 1
        await at.chat.post(words_body("And?"))
        assert await staff.states() == [State.EXPIRED]
        assert [told for told in results_told(staff.model) if "expired" in str(told)]
        assert till.paid == []
