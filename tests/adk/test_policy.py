"""Who is asked, and what people read when they are asked."""

import logging
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, ApprovalRequest, Chain, ConfigurationError, Link, Nobody, Owner
from adk_stream_protocol.adk.calls.policy import is_for_people
from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.testing import call
from live.live_pages import live_page
from support.pages import Till, page

SECRET = "to a numbered account"
REQUEST = ApprovalRequest(user="ann", tool="pay", arguments={"amount": 5}, agent="helper", state={})


async def verdict(answer: Any, **options: Any) -> Any:
    return await ApprovalPolicy(decide=lambda _: answer, **options).verdict(REQUEST)


async def test_a_policy_answers_with_nobody_the_owner_or_a_chain(caplog: pytest.LogCaptureFixture) -> None:
    assert await ApprovalPolicy().verdict(REQUEST) is None
    assert [await verdict(answer) for answer in (Nobody, Nobody(), Owner, Owner())] == ["nobody"] * 2 + ["owner"] * 2
    links = Chain([Link(["max", "group:managers"]), Link("eva", deadline_s=0), Link(("eva",), 7)])
    assert await verdict(links, deadline_s=30) == (
        ChainLink(approvers=("max", "group:managers"), deadline_s=30),
        ChainLink(approvers=("eva",), deadline_s=0),
        ChainLink(approvers=("eva",), deadline_s=7),
    )
    assert caplog.records == []


async def test_a_policy_may_take_its_time() -> None:
    async def decide(request: ApprovalRequest) -> Any:
        return Nobody if request is REQUEST else Owner

    assert await ApprovalPolicy(decide=decide).verdict(REQUEST) == "nobody"


NAMELESS: Any = Chain([Link([7])])  # pyright: ignore[reportArgumentType]
ENDLESS: Any = Chain([Link("max", "soon")])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (None, "TypeError"),
        (True, "TypeError"),
        ("nobody", "TypeError"),
        (Chain([]), "ValueError"),
        (Chain([Link([])]), "ValueError"),
        (Chain([Link("")]), "ValueError"),
        (Chain([Link(["max", ""])]), "ValueError"),
        (NAMELESS, "ValueError"),
        (ENDLESS, "ValueError"),
    ],
)
async def test_anything_else_asks_the_owner(wrong: Any, error: str, caplog: pytest.LogCaptureFixture) -> None:
    assert await verdict(wrong) == "owner"
    (entry,) = caplog.records
    assert entry.levelno == logging.ERROR
    assert entry.getMessage() == f"the policy failed, so the owner is asked about pay: {error}"


def test_how_long_people_browsers_and_lost_calls_have() -> None:
    policy = ApprovalPolicy()
    assert (policy.deadline_s, policy.browser_deadline_s, policy.recover_s) == (600, 60, 3600)
    assert (policy.hints, policy.cards, policy.edits) == ({}, {}, {})


@pytest.mark.parametrize("made", [REQUEST, Link("max"), Chain([]), ApprovalPolicy()])
def test_what_is_decided_on_is_not_changed_later(made: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        made.tool = made.approvers = made.links = made.decide = None


def test_a_card_is_given_or_made_from_the_arguments(caplog: pytest.LogCaptureFixture) -> None:
    policy = ApprovalPolicy(
        cards={
            "pay": lambda arguments: {"title": f"Pay {arguments['amount']}"},
            "locate": {"icon": "map"},
            "refund": lambda _: None,
        }
    )
    assert policy.card("refund", {}) is None
    assert caplog.records == []
    assert policy.card("pay", {"amount": 5}) == {"title": "Pay 5"}
    assert policy.card("locate", {}) == {"icon": "map"}
    assert policy.card("balance", {}) is None


def test_a_hint_is_a_text_or_made_from_the_arguments() -> None:
    policy = ApprovalPolicy(hints={"pay": lambda arguments: f"Pay {arguments['amount']}?", "locate": "Where?"})
    assert policy.hint("pay", {"amount": 5}) == "Pay 5?"
    assert policy.hint("locate", {}) == "Where?"
    assert policy.hint("balance", {}) is None


@pytest.mark.parametrize("made", [lambda arguments: arguments["sum"] * SECRET, lambda _: 5, lambda _: object()])
def test_a_hint_or_card_that_fails_is_left_out(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    policy = ApprovalPolicy(hints={"pay": made}, cards={"pay": made})
    assert policy.hint("pay", {"sum": {SECRET: 1}}) is None
    assert policy.card("pay", {"sum": {SECRET: 1}}) is None
    assert [record.getMessage() for record in caplog.records] == [
        "the question about pay has no hint or no card: TypeError"
    ] * 2
    assert SECRET not in caplog.text


def test_a_function_of_the_application_cannot_change_the_arguments() -> None:
    arguments = {"amount": [5]}
    policy = ApprovalPolicy(hints={"pay": lambda given: str(given["amount"].pop())})
    assert (policy.hint("pay", arguments), arguments) == ("5", {"amount": [5]})


@pytest.mark.parametrize("in_live", [False, True])
async def test_a_person_is_asked_without_the_hint_that_failed(in_live: bool) -> None:
    till, policy = Till(), ApprovalPolicy(hints={"pay": lambda arguments: arguments["sum"]})
    opened = live_page if in_live else page
    async with opened([call("pay", amount=5)], "Paid.", tools=(till.gated,), approvals=policy) as at:
        await at.say("Pay.")
        assert at.states("pay") == ["approval-requested"]
        at.decide("pay")
        assert ((await at.answer()).text, till.paid) == ("Paid.", [5])


def test_adks_own_hint_is_for_programs() -> None:
    asked = "Please approve or reject the tool call pay() "
    assert not is_for_people(asked + "by responding with a FunctionResponse with an expected ToolConfirmation payload.")
    assert is_for_people(asked)
    assert is_for_people(None)


# -- options ----------------------------------------------------------------------------------------------------------

HINTS, CARDS, EDITS = '{"pay": "Pay this?"}', '{"pay": {"title": "A payment"}}', '{"pay": {"type": "object"}}'


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"deadline_s": "10"}, "ApprovalPolicy(deadline_s=...) must be a number from 0 on, not '10'."),
        ({"hints": "pay"}, f"hints must be a dict by the names of tools, such as hints={HINTS}."),
        ({"cards": ["pay"]}, f"cards must be a dict by the names of tools, such as cards={CARDS}."),
        ({"edits": None}, f"edits must be a dict by the names of tools, such as edits={EDITS}."),
        ({"hints": {"pay": 3}}, f"The tool 'pay' has a wrong value in hints. It looks like {HINTS}."),
        ({"hints": {"pay": {}}}, f"The tool 'pay' has a wrong value in hints. It looks like {HINTS}."),
        ({"cards": {"pay": "x"}}, f"The tool 'pay' has a wrong value in cards. It looks like {CARDS}."),
        ({"edits": {"pay": "x"}}, f"The tool 'pay' has a wrong value in edits. It looks like {EDITS}."),
        ({"edits": {"pay": dict}}, f"The tool 'pay' has a wrong value in edits. It looks like {EDITS}."),
    ],
)
def test_a_policy_with_wrong_values_says_which(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ApprovalPolicy(**wrong)
    assert str(refused.value) == says


def test_what_people_read_is_given_or_made() -> None:
    ApprovalPolicy(hints={"pay": str}, cards={"pay": lambda _: None, "look": {"title": "Look"}}, edits={"pay": {}})
