"""Answers that come from another page, a second time, late, or while the stream is lost: judged by the real clients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol.testing import Reply, call
from conformance.bank import (
    ANSWERED_ONCE,
    ANSWERED_TWICE,
    PAYMENT_BEGINS,
    PAYMENT_IS_SHOWN,
    PAYMENT_MAY_END,
    STOP,
    bank_chat,
    wait_for_payment,
)
from conformance.node import NodeDriver
from conformance.pages import IDLE, RESUME, SUBMIT, WITH_APPROVALS, Conversation, Step, approve, deny, ran, say
from conformance.scenarios import (
    CHANGED,
    LOCATED,
    PAY,
    PAY_AND_MUSIC,
    PAY_AND_WHERE,
    PAY_TWO,
    PLACE,
    WHERE,
    WHERE_THEN_PAY,
)
from support.apps import app_of, bridge_with
from support.live_server import serving

every_release = pytest.mark.parametrize("release", WITH_APPROVALS)

# Older clients can answer nothing but their last message.
answers_late = pytest.mark.parametrize("release", ["6", "7"])

MUSIC_THEN_PAY = say("Change BGM to track 1, then pay Alice 30 dollars")


# -- a second page ----------------------------------------------------------------------------------------------------


@every_release
@pytest.mark.parametrize(
    ("first", "second", "wire", "paid"),
    [
        (approve(), approve(), "start O F", 1),
        (approve(), deny(), "start O F", 1),
        (deny(), approve(), "start D F", 0),
    ],
    ids=["yes, yes", "yes, no", "no, yes"],
)
def test_a_page_that_decides_after_another_learns_what_was_decided(
    node: NodeDriver, release: str, first: Step, second: Step, wire: str, paid: int
) -> None:
    with bank_chat(node, release) as (bank, chat):
        chat.open_page(PAY)
        before = chat.kept()
        chat.open_page(first)
        stale = chat.another_page()
        stale.open_page(second, initialMessages=before)
        assert stale.wire == wire
        assert stale.ends == wire.split()[1]
        assert stale.came_to_its_end()
        assert len(bank.payments) == paid
        assert chat.is_what_the_server_kept()


@every_release
@pytest.mark.parametrize("second", [approve(), deny()], ids=["yes", "no"])
def test_a_page_that_decides_while_the_tool_runs_reads_the_run_of_the_other(
    node: NodeDriver, other_node: NodeDriver, release: str, second: Step
) -> None:
    with bank_chat(node, release, waits=True) as (bank, chat), ThreadPoolExecutor() as threads:
        chat.open_page(PAY)
        before = chat.kept()
        first_page, second_page = chat.another_page(), chat.another_page(other_node)
        first = threads.submit(first_page.open_page, approve(), initialMessages=before)
        steps = (PAYMENT_BEGINS, second, ANSWERED_ONCE, PAYMENT_MAY_END)
        second_page.open_page(*steps, initialMessages=before, paced=False)
        first.result()
        assert len(bank.payments) == 1
        for page in (first_page, second_page):
            assert (page.wire, page.ends) == ("start O X F", "O")
            assert page.spoken == "Paid 50 USD to Hanako. The new balance is 950 USD."
            assert page.is_what_the_server_kept(after_replay=page is second_page)


@every_release
def test_of_two_pages_that_decide_at_once_one_wins_and_both_come_to_an_end(
    node: NodeDriver, other_node: NodeDriver, release: str
) -> None:
    with bank_chat(node, release) as (bank, chat), ThreadPoolExecutor() as threads:
        chat.open_page(PAY)
        before = chat.kept()
        pages = [chat.another_page(), chat.another_page(other_node)]
        options: dict[str, Any] = {"initialMessages": before}
        ended = [
            threads.submit(page.open_page, step, **options)
            for page, step in zip(pages, (approve(), deny()), strict=True)
        ]
        for page in ended:
            page.result()
        outcome = chat.another_page()
        outcome.open_page()
        assert outcome.ends == ("O" if bank.payments else "D")
        assert {page.ends for page in pages} == {outcome.ends}
        assert len(bank.payments) <= 1


@every_release
def test_a_page_that_decides_on_more_than_is_running_waits_and_goes_on_from_there(
    node: NodeDriver, other_node: NodeDriver, release: str
) -> None:
    with bank_chat(node, release, waits=True) as (bank, chat), ThreadPoolExecutor() as threads:
        chat.open_page(PAY_TWO)
        before = chat.kept()
        first_page, second_page = chat.another_page(), chat.another_page(other_node)
        first = threads.submit(first_page.open_page, approve(), SUBMIT, initialMessages=before)
        steps = (PAYMENT_BEGINS, approve(), deny(), PAYMENT_MAY_END)
        second_page.open_page(*steps, initialMessages=before, paced=False)
        first.result()
        assert bank.payments == ["30 USD to Alice"]
        assert first_page.wire == "start O F"
        assert second_page.wire == "start O1 D2 X F"
        assert second_page.is_what_the_server_kept()


_OTHER_OUTPUT_IS_REFUSED = "a call that has its output is answered for nobody who sends another one"


@every_release
@pytest.mark.parametrize(
    "output",
    [
        PLACE,
        pytest.param({**PLACE, "timestamp": 2}, marks=pytest.mark.xfail(strict=True, reason=_OTHER_OUTPUT_IS_REFUSED)),
    ],
    ids=["the same output", "another output"],
)
def test_a_browser_tool_that_two_pages_ran_counts_once(node: NodeDriver, release: str, output: Any) -> None:
    with bank_chat(node, release) as (_, chat):
        chat.open_page(WHERE)
        before = chat.kept()
        chat.open_page(approve())
        waiting = chat.messages
        quick, slow = chat.another_page(), chat.another_page()
        quick.open_page(approve(), initialMessages=before, browserTools={"get_location": {"output": PLACE}})
        assert quick.wire == "start I F || start X F"
        slow.open_page(ran("get_location", output), initialMessages=waiting)
        assert (slow.wire, slow.ends) == ("start O F", "O")
        assert slow.tools[0]["output"] == PLACE
        assert quick.is_what_the_server_kept()


# -- the stream is lost while the tool runs ---------------------------------------------------------------------------


@every_release
@pytest.mark.parametrize(
    ("steps", "wire", "replayed"),
    [
        (
            (MUSIC_THEN_PAY, approve()),
            "start I1 F || start I2 A2 F || start O2 X F",
            "start i1 O1 I2 A2 O2 X F",
        ),
        (
            (PAY_AND_MUSIC, approve()),
            "start I1 A1 I2 F || start O1 X F",
            "start I1 i2 A1 O2 O1 X F",
        ),
        (
            (PAY_AND_WHERE, approve(1), SUBMIT, approve()),
            "start I1 i2 A1 A2 F || start I2 F || start O1 X F",
            "start I1 i2 A1 A2 O2 O1 X F",
        ),
        (
            (WHERE_THEN_PAY, deny(), approve()),
            "start i1 A1 F || start D1 I2 A2 F || start O2 X F",
            "start i1 A1 D1 I2 A2 O2 X F",
        ),
    ],
    ids=["music, then payment", "payment with music", "payment with location", "no location, then payment"],
)
def test_a_page_that_opens_while_a_tool_runs_sees_the_whole_message_and_runs_nothing_again(
    node: NodeDriver, other_node: NodeDriver, release: str, steps: tuple[Step, ...], wire: str, replayed: str
) -> None:
    with bank_chat(node, release, waits=True) as (bank, chat), ThreadPoolExecutor() as threads:
        tools = {"change_bgm": {"output": CHANGED}, "get_location": {"output": PLACE}}
        first = threads.submit(chat.open_page, *steps, browserTools=tools)
        page = chat.another_page(other_node)
        wait_for_payment(page)
        assert [message["role"] for message in page.kept()] == ["user"]
        page.open_page(RESUME, PAYMENT_IS_SHOWN, PAYMENT_MAY_END, paced=False, browserTools=tools)
        first.result()
        assert len(bank.payments) == 1
        assert chat.wire == wire
        assert chat.is_what_the_server_kept()
        assert page.wire == replayed
        assert [call["toolName"] for call in page.tool_calls] == ["process_payment"]
        assert page.came_to_its_end()
        assert page.is_what_the_server_kept(after_replay=True)


@pytest.mark.parametrize("release", ["6", "7"])  # older ones add what is replayed to what they have
def test_a_page_that_loses_the_stream_while_the_tool_runs_takes_it_up_again(node: NodeDriver, release: str) -> None:
    with bank_chat(node, release, waits=True) as (bank, chat):
        chat.open_page(PAY)
        page = chat.another_page()
        lost = (approve(), PAYMENT_BEGINS, ANSWERED_ONCE, STOP)
        page.open_page(*lost, RESUME, ANSWERED_TWICE, PAYMENT_MAY_END, paced=False, drops=1)
        assert len(bank.payments) == 1
        assert page.wire == "start || start I A O X F"
        assert page.came_to_its_end()
        assert page.is_what_the_server_kept(after_replay=True)


@every_release
def test_a_page_that_posts_its_answer_again_reads_the_run_that_it_began(node: NodeDriver, release: str) -> None:
    with bank_chat(node, release, waits=True) as (bank, chat):
        chat.open_page(PAY)
        page = chat.another_page()
        lost = (approve(), PAYMENT_BEGINS, ANSWERED_ONCE, STOP)
        page.open_page(*lost, SUBMIT, ANSWERED_TWICE, PAYMENT_MAY_END, paced=False, drops=1)
        assert len(bank.payments) == 1
        assert page.wire == "start || start O X F"
        assert page.came_to_its_end()
        assert page.is_what_the_server_kept()


# -- something fails --------------------------------------------------------------------------------------------------


@every_release
@pytest.mark.parametrize("raises", ["tool", "model"])
def test_what_raises_after_an_approval_is_an_error_once_and_nothing_stays_open(
    node: NodeDriver, release: str, raises: str
) -> None:
    payments: list[int] = []

    def pay(amount: int) -> dict[str, bool]:
        """Pays."""
        payments.append(amount)
        if raises == "tool":
            raise RuntimeError("SECRET")
        return {"paid": True}

    script: list[Reply] = [[call("pay", amount=50)], RuntimeError("SECRET"), "Better."]
    if raises == "tool":
        del script[1]
    bridge = bridge_with(*script, tools=(FunctionTool(pay, require_confirmation=True),))
    with serving(app_of(bridge)) as origin:
        chat = Conversation(node, release, origin)
        chat.open_page(say("Pay 50."))
        failing = (approve(), say("And now?"))
        answer = chat.open_page(*failing, errors=["The agent could not answer. Try again."])
        assert "SECRET" not in str(answer)
        assert payments == [50]
        assert (chat.ends, chat.spoken) == ("E" if raises == "tool" else "O", "Better.")
        assert chat.came_to_its_end()
        assert chat.is_what_the_server_kept()


@every_release
def test_a_payment_that_was_stopped_half_way_waits_for_nobody(node: NodeDriver, release: str) -> None:
    with bank_chat(node, release, waits=True) as (bank, chat):
        chat.open_page(PAY)
        page = chat.another_page()
        stop: Step = {"request": {"method": "POST", "path": "/stop"}}
        page.open_page(approve(), PAYMENT_BEGINS, ANSWERED_ONCE, stop, IDLE, say("Hello."), paced=False, drops=1)
        assert len(bank.payments) == 1
        assert page.wire == "start E message-metadata abort || start X F"
        for messages in (page.messages, page.kept()):
            page.messages = messages
            assert page.ends == "E"
            assert page.came_to_its_end()


# -- the user has said something else first ---------------------------------------------------------------------------


@answers_late
@pytest.mark.parametrize("page", ["the same page", "a new page", "posts the message only"])
@pytest.mark.parametrize(
    ("asks", "answers", "wire", "tells"),
    [
        (PAY, (approve(), SUBMIT), "start I A F || start X F || start O X F", "Paid 50 USD to Hanako."),
        (PAY, (deny(), SUBMIT), "start I A F || start X F || start D X F", "The payment of 50 USD to Hanako was"),
        (WHERE, (deny(), SUBMIT), "start i A F || start X F || start D X F", "The request for your location was"),
        (WHERE, (approve(), LOCATED, SUBMIT), "start i A F || start X F || start X F", "You are at latitude 35.68"),
    ],
    ids=["payment approved", "payment denied", "location denied", "location approved with output"],
)
def test_an_answer_after_other_words_goes_on_with_the_message_that_asked(
    node: NodeDriver, release: str, page: str, asks: Step, answers: tuple[Step, ...], wire: str, tells: str
) -> None:
    with bank_chat(node, release) as (_, chat):
        resend = "tool-calls" if LOCATED in answers else "both"
        visits = [(asks, say("Hello.")), answers] if page == "a new page" else [(asks, say("Hello."), *answers)]
        for steps in visits:
            chat.open_page(*steps, resend=resend, onlyLast=page == "posts the message only")
        assert chat.wire == wire
        asked, other = chat.messages[1], chat.messages[3]
        assert asked["parts"][-1]["text"].startswith(tells)
        assert other["parts"][-1]["text"].startswith("I am a small offline model.")
        assert chat.came_to_its_end()
        assert chat.is_what_the_server_kept()


@answers_late
def test_two_messages_that_ask_are_answered_one_after_the_other(node: NodeDriver, release: str) -> None:
    with bank_chat(node, release) as (bank, chat):
        chat.open_page(PAY, say("Send 20 dollars to Taro"), approve(), SUBMIT, approve())
        assert chat.wire == "start I1 A1 F || start I2 A2 F || start O1 X F || start O2 X F"
        assert bank.payments == ["50 USD to Hanako", "20 USD to Taro"]
        assert chat.came_to_its_end()
        assert chat.is_what_the_server_kept()
