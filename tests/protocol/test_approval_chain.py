"""A chain of approvers, decision by decision: whose turn it is, what is recorded, and what an edit makes lapse."""

from typing import Any

import msgspec
import pytest

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.approval_chain import BY_POLICY, ChainLink, has_decided, names, seat_of, turn_of
from adk_stream_protocol.protocol.call_record import CallRecord, DigestMismatch, NotAllowed, State
from protocol.approval_calls import BROWSER, SERVER, changed

LINKS = (
    ChainLink(approvers=("group:managers",), deadline_s=60.0),
    ChainLink(approvers=("eva", "group:managers"), deadline_s=30.0),
)
CHAINED = changed(SERVER, state=State.IN_CHAIN, chain=LINKS, deadline=61.0, approval_id="ask-1")
MANAGERS = ("managers",)


def said(record: CallRecord, by: str, approved: bool = True, **given: Any) -> CallRecord:
    return call_record.decide(record, **{"by": by, "approved": approved, "now": 2.0, **given})


def test_a_chain_stands_in_stores_as_it_does() -> None:
    assert msgspec.json.encode(LINKS[0]) == b'{"approvers":["group:managers"],"deadline_s":60.0}'
    assert BY_POLICY == "by policy"


def test_approvers_name_users_by_their_ids_and_groups_by_their_names() -> None:
    assert names(("eva",), "eva")
    assert names(("group:managers",), "max", ["staff", "managers"])
    assert not names(("eva",), "Eva")
    assert not names(("group:managers",), "max", ["staff"])
    assert not names(("managers",), "max", ["managers"])


def test_a_users_id_that_looks_like_a_group_names_nobody() -> None:
    assert not names(("group:managers",), "group:managers")
    assert names(("group:managers",), "group:managers", ["managers"])


def test_one_link_after_the_other_decides_and_the_last_approval_counts() -> None:
    first = said(CHAINED, "max", groups=MANAGERS, reason="fine")
    assert (first.state, first.approved, first.decided_by, first.version) == (State.IN_CHAIN, None, "max", 1)
    assert first.chain is not None
    assert first.chain[0] == msgspec.structs.replace(
        LINKS[0], approved=True, decided_by="max", decided_at=2.0, reason="fine", digest=CHAINED.digest
    )
    assert first.chain[1] == LINKS[1]
    assert first.deadline == 32.0  # the time of the second link begins when it is asked
    assert (first.waits_for, first.due_at) == (("eva", "group:managers"), 32.0)
    second = said(first, "eva", now=3.0)
    assert (second.state, second.approved, second.decided_by, second.decided_at) == (State.APPROVED, True, "eva", 3.0)
    assert second.waits_for == ()


def test_nobody_decides_before_his_turn_and_nobody_twice() -> None:
    with pytest.raises(NotAllowed, match=r"^decided by somebody else$"):
        said(CHAINED, "eva")
    first = said(CHAINED, "max", groups=MANAGERS)
    assert said(first, "max", groups=MANAGERS) is first
    assert said(first, "max", False, groups=MANAGERS) is first
    assert said(first, "meg", groups=MANAGERS).state is State.APPROVED  # another manager, for the second link
    assert has_decided(first.chain or (), "max")


def test_a_colleague_of_somebody_who_has_decided_is_told_what_is_recorded() -> None:
    only_eva = changed(CHAINED, chain=(LINKS[0], ChainLink(approvers=("eva",))))
    first = said(only_eva, "max", groups=MANAGERS)
    assert said(first, "meg", groups=MANAGERS) is first
    assert first.deadline is None  # the second link has no deadline


def test_the_owner_decides_only_if_he_is_named_and_never_as_one_of_a_group() -> None:
    for groups in ((), MANAGERS):
        with pytest.raises(NotAllowed, match=r"^decided by somebody else$"):
            said(CHAINED, "ann", groups=groups)
    named = changed(CHAINED, chain=(ChainLink(approvers=("ann",)), LINKS[1]))
    assert not CHAINED.asks_owner
    assert named.asks_owner
    assert SERVER.asks_owner
    later = changed(CHAINED, chain=(LINKS[0], ChainLink(approvers=("ann",))))
    assert not later.asks_owner
    assert said(later, "max", groups=MANAGERS).asks_owner
    assert not said(later, "max", groups=MANAGERS, payload={"amount": 3}).asks_owner


def test_a_denial_anywhere_ends_it_and_those_who_were_not_asked_learn_nothing() -> None:
    denied = said(CHAINED, "max", False, groups=MANAGERS, reason="no", payload={"amount": 1})
    assert (denied.state, denied.approved, denied.decided_by, denied.payload) == (State.DENIED, False, "max", None)
    assert denied.chain is not None
    assert (denied.chain[0].approved, denied.chain[0].reason) == (False, "no")
    assert said(denied, "meg", groups=MANAGERS) is denied
    with pytest.raises(NotAllowed):
        said(denied, "eva")


@pytest.mark.parametrize("approved", [True, False])
def test_each_link_has_a_deadline_of_its_own(approved: bool) -> None:
    late = said(CHAINED, "max", approved, groups=MANAGERS, now=61.0)
    assert (late.state, late.approved, late.chain) == (State.EXPIRED, approved, LINKS)
    first = said(CHAINED, "max", groups=MANAGERS, now=60.0)
    assert call_record.expire(first, now=89.0) is first
    assert call_record.expire(first, now=90.0).state is State.EXPIRED
    assert said(call_record.expire(first, now=90.0), "eva").state is State.EXPIRED


def test_a_decision_about_something_else_is_refused_as_such() -> None:
    assert said(CHAINED, "max", groups=MANAGERS, digest=CHAINED.shown_digest).state is State.IN_CHAIN
    with pytest.raises(DigestMismatch):
        said(CHAINED, "max", groups=MANAGERS, digest="another")
    with pytest.raises(NotAllowed) as refused:
        said(CHAINED, "eva", digest="another")
    assert not isinstance(refused.value, DigestMismatch)  # whoever is not asked learns nothing


def test_an_edit_makes_earlier_approvals_lapse_and_names_both_digests() -> None:
    first = said(CHAINED, "max", groups=MANAGERS)
    edited = said(first, "eva", payload={"amount": 3}, now=4.0)
    assert (edited.state, edited.payload, edited.arguments) == (State.IN_CHAIN, {"amount": 3}, SERVER.arguments)
    assert edited.replaces == first.shown_digest != edited.shown_digest
    assert edited.chain is not None
    assert edited.chain[0] == LINKS[0]
    assert (edited.chain[1].decided_by, edited.chain[1].digest) == ("eva", edited.shown_digest)
    assert (turn_of(edited.chain), edited.deadline) == (0, 64.0)
    with pytest.raises(DigestMismatch):
        said(edited, "max", groups=MANAGERS, digest=first.shown_digest)
    agreed = said(edited, "max", groups=MANAGERS, digest=edited.shown_digest, now=5.0)
    assert (agreed.state, agreed.payload, agreed.replaces) == (State.APPROVED, {"amount": 3}, None)


def test_an_edit_of_an_edit_takes_back_the_approval_of_the_editor() -> None:
    edited = said(said(CHAINED, "max", groups=MANAGERS), "eva", payload={"amount": 3})
    again = said(edited, "max", groups=MANAGERS, payload={"amount": 2})
    assert again.chain is not None
    assert [link.decided_by for link in again.chain] == ["max", None]
    assert seat_of(again.chain, "eva") == "now"
    assert said(again, "eva", payload={"amount": 2}).state is State.APPROVED  # the same again changes nothing


def test_an_edit_by_the_first_link_lapses_nothing() -> None:
    edited = said(CHAINED, "max", groups=MANAGERS, payload={"amount": 3})
    assert edited.replaces == CHAINED.digest
    assert said(edited, "eva").payload == {"amount": 3}


def test_a_browsers_call_begins_its_time_with_the_last_approval() -> None:
    call = changed(BROWSER, state=State.IN_CHAIN, chain=LINKS)
    approved = said(said(call, "max", groups=MANAGERS, browser_s=60.0), "eva", now=9.0, browser_s=60.0)
    assert (approved.state, approved.browser_deadline) == (State.APPROVED, 69.0)


def test_a_chain_can_be_refused_by_nobody_of_it() -> None:
    refused = call_record.refuse(CHAINED, reason="superseded", now=3.0)
    assert (refused.state, refused.decided_by, refused.reason) == (State.DENIED, "ann", "superseded")
    assert refused.chain == LINKS


def test_a_plain_question_waits_for_its_owner_under_the_id_that_it_has() -> None:
    assert SERVER.waits_for == ("ann",)
    assert changed(SERVER, approval_id=None, question_id="ask-2").asked_as == "ask-2"
    assert CHAINED.asked_as == "ask-1"


def test_a_chain_is_read_back_as_it_was() -> None:
    edited = said(said(CHAINED, "max", groups=MANAGERS), "eva", payload={"amount": 3})
    assert msgspec.json.decode(msgspec.json.encode(edited), type=CallRecord) == edited


def test_what_the_owner_said_is_his_own_word_only() -> None:
    assert SERVER.owner_said is None
    assert changed(SERVER, approved=True).owner_said is True
    named = changed(CHAINED, chain=(ChainLink(approvers=("ann",)), LINKS[1]))
    assert named.owner_said is None
    first = said(named, "ann")
    assert (first.owner_said, first.approved) == (True, None)
    assert said(first, "eva", False).owner_said is True


def test_a_fresh_link_has_decided_nothing() -> None:
    fresh = ChainLink(approvers=("eva",))
    assert set(msgspec.structs.asdict(fresh).values()) == {("eva",), None}


def test_who_has_decided_or_could_have_is_told_and_nobody_else() -> None:
    edited = said(said(CHAINED, "max", groups=MANAGERS), "eva", payload={"amount": 3})
    assert edited.chain is not None
    assert seat_of(edited.chain, "eva") == "past"  # her link comes after the one that is asked again
    denied = said(CHAINED, "max", False, groups=MANAGERS)
    assert denied.chain is not None
    assert seat_of(denied.chain, "meg", MANAGERS) == "past"
    assert seat_of(denied.chain, "eva") == "none"


def test_a_chain_that_nobody_will_answer_is_denied_in_the_owners_name() -> None:
    refused = call_record.refuse(CHAINED, reason="the run ended", now=5.0)
    said = {"approved": False, "decided_at": 5.0, "decided_by": SERVER.chat.user_id, "reason": "the run ended"}
    assert refused == changed(CHAINED, state=State.DENIED, version=CHAINED.version + 1, **said)


def test_what_the_owner_said_is_what_his_link_has() -> None:
    owner = SERVER.chat.user_id
    others = ChainLink(approvers=("eva",), approved=True, decided_by="eva")
    for approved in (True, False):
        own = ChainLink(approvers=(owner,), approved=approved, decided_by=owner)
        assert changed(CHAINED, chain=(others, own)).owner_said is approved
    assert changed(CHAINED, chain=(others, ChainLink(approvers=(owner,)))).owner_said is None


def test_a_decision_about_something_else_says_so() -> None:
    with pytest.raises(DigestMismatch, match=r"^another digest$"):
        said(CHAINED, "max", groups=MANAGERS, digest="of something else")
