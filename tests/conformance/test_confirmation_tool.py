"""AI SDK 5 knows no approvals: a tool of its own asks the person, and its output is the answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from conformance.bank import PAYMENT_IS_SHOWN, PAYMENT_MAY_END, bank_chat, wait_for_payment
from conformance.node import NodeDriver
from conformance.pages import RESUME, SUBMIT, Conversation, Step, ran
from conformance.scenarios import LOCATED, PAY, PAY_AND_MUSIC, PAY_ONE_THEN_ANOTHER, PAY_TWO, PLAYS, WHERE
from support.apps import app_of, user_of
from support.live_server import serving

VERSION_5 = {"x-ai-sdk-version": "5"}
YES = ran("adk_request_confirmation", {"confirmed": True})
NO = ran("adk_request_confirmation", {"confirmed": False})


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with serving(app_of(ChatBridge(build_agent(OfflineModel()), user_id=user_of))) as demo:
        yield demo


# The letters are those of scenarios.py. The calls are first the tools' own, then the questions about them.
@pytest.mark.parametrize("loads_anew", [False, True], ids=["one page", "a new page for every request"])
@pytest.mark.parametrize(
    ("visits", "wire", "ends", "tells"),
    [
        (((PAY,), (YES,)), "start I1 I2 F || start O1 X F", "OO", "Paid 50 USD to Hanako."),
        (((PAY,), (NO,)), "start I1 I2 F || start E1 X F", "EO", "The payment of 50 USD to Hanako was denied."),
        (((PAY_TWO,), (YES, YES)), "start I1 I2 I3 I4 F || start O1 O2 X F", "OOOO", "Paid 30 USD to Alice."),
        (((PAY_TWO,), (YES, NO)), "start I1 I2 I3 I4 F || start O1 E2 X F", "OEOO", "Paid 30 USD to Alice."),
        (((PAY_AND_MUSIC,), (PLAYS, NO)), "start I1 I2 I3 F || start E1 X F", "EOO", "The payment of 30 USD"),
        (((WHERE,), (LOCATED, YES)), "start I1 I2 F || start X F", "OO", "You are at latitude 35.68"),
        (((WHERE,), (NO,)), "start I1 I2 F || start E1 X F", "EO", "The request for your location was denied."),
    ],
    ids=["yes", "no", "yes, yes", "yes, no", "no, with music", "location", "no location"],
)
def test_release_5_answers_by_the_confirmation_tool(
    node: NodeDriver,
    origin: str,
    visits: tuple[tuple[Step, ...], ...],
    wire: str,
    ends: str,
    tells: str,
    loads_anew: bool,
) -> None:
    chat = Conversation(node, "5", origin, headers=VERSION_5)
    pages = visits if loads_anew else [tuple(step for visit in visits for step in visit)]
    for steps in pages:
        chat.open_page(RESUME, *steps)
        assert chat.is_what_the_server_kept()
    assert (chat.wire, chat.ends) == (wire, ends)
    assert chat.spoken.startswith(tells)
    assert chat.came_to_its_end()


def test_release_5_is_asked_again_after_its_first_answer(node: NodeDriver, origin: str) -> None:
    chat = Conversation(node, "5", origin, headers=VERSION_5)
    chat.open_page(PAY_ONE_THEN_ANOTHER, YES, NO)
    assert chat.ends == "OOEO"
    assert chat.spoken == ("Paid 30 USD to Alice. The new balance is 970 USD. The payment of 40 USD to Bob was denied.")
    assert len(chat.requests) == 3
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()


def test_release_5_is_left_in_peace_between_its_approval_and_the_output(node: NodeDriver, origin: str) -> None:
    """Its helper looks at the last step alone. There is the answered question, and the open call is not."""
    chat = Conversation(node, "5", origin, headers=VERSION_5)
    chat.open_page(WHERE, YES)
    assert chat.wire == "start I1 I2 F || start F"
    chat.open_page(LOCATED, SUBMIT)
    assert chat.spoken.startswith("You are at latitude 35.68")
    assert len(chat.requests) == 3
    assert chat.came_to_its_end()


def test_release_5_that_opens_while_a_tool_runs_asks_nobody_again(node: NodeDriver, other_node: NodeDriver) -> None:
    with bank_chat(node, "5", waits=True) as (bank, chat), ThreadPoolExecutor() as threads:
        chat.headers = VERSION_5
        first = threads.submit(chat.open_page, PAY, YES)
        page = chat.another_page(other_node)
        wait_for_payment(page)
        page.open_page(RESUME, PAYMENT_IS_SHOWN, PAYMENT_MAY_END, paced=False)
        first.result()
        assert len(bank.payments) == 1
        assert [call["toolName"] for call in page.tool_calls] == ["process_payment"]
        for shown in (chat, page):
            assert shown.came_to_its_end()
            assert shown.is_what_the_server_kept()
