"""Every world that a call with three links can get into, breadth first over the real functions.

Managers, executives and the owner decide, edit, repeat and come too late; somebody is in two links; a stranger and a
user who is called like a group try as well; the model withdraws the call; the clock ticks through the deadlines. The
books are the test's own: who was entitled to what, what each approval was about, and until when.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from adk_stream_protocol.protocol import approval_chain, call_record
from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_record import CallRecord, DigestMismatch, NotAllowed, State
from protocol.approval_worlds import SERVER_CALL, changed

GROUPS = {"max": ("managers",), "zoe": ("managers", "executives"), "ann": ("managers",)}
ENTITLED = ({"max", "zoe"}, {"eva", "zoe"}, {"ann"})
"""The owner is a manager, too, but he is named by the last link alone."""
PEOPLE = ("max", "zoe", "eva", "ann", "eve", "group:managers")
LASTS, LAST_TICK = 1, 3
LINKS = (
    ChainLink(approvers=("group:managers",), deadline_s=LASTS),
    ChainLink(approvers=("eva", "group:executives"), deadline_s=LASTS),
    ChainLink(approvers=("ann",), deadline_s=LASTS),
)
FIRST = changed(SERVER_CALL, state=State.IN_CHAIN, chain=LINKS, deadline=LASTS)


class World(NamedTuple):
    record: CallRecord
    now: int = 0
    votes: tuple[tuple[str, Any] | None, ...] = (None, None, None)
    """Of each link: who has approved what."""
    proposed: Any = None
    until: int = LASTS
    denied: bool = False

    @property
    def turn(self) -> int:
        return next((place for place, vote in enumerate(self.votes) if vote is None), 3)


class Word(NamedTuple):
    by: str
    approved: bool
    payload: Any = None
    digest: str = "as shown"


def words() -> Iterator[Word]:
    for by in PEOPLE:
        yield Word(by, False)
        yield Word(by, True, digest="another")
        for payload in (None, "edit"):
            yield Word(by, True, payload)


WORDS = list(words())


def say(world: World, word: Word) -> World:
    before, is_open = world.record, world.record.state is State.IN_CHAIN
    is_entitled = (
        is_open and word.by in ENTITLED[world.turn] and word.by not in {vote[0] for vote in world.votes if vote}
    )
    digest = before.shown_digest if word.digest == "as shown" else "another"
    given = {"by": word.by, "groups": GROUPS.get(word.by, ()), "approved": word.approved, "payload": word.payload}
    try:
        after = call_record.decide(before, **given, digest=digest, now=world.now)
    except DigestMismatch:
        assert word.digest == "another", "what is shown could not be decided"
        assert any(word.by in link for link in ENTITLED), "a stranger was told of a digest"
        return world
    except NotAllowed:
        assert not is_entitled, "somebody was refused whose turn it is"
        return world
    assert any(word.by in link for link in ENTITLED), "a stranger was told the outcome"
    if after is before:
        assert not is_entitled, "a decision did not count"
        return world
    assert word.digest == "as shown", "a decision about something else counted"
    assert is_entitled, "somebody decided whose turn it was not"
    assert after.version == before.version + 1, "a move without a new version"
    if world.now >= world.until:
        assert after.state is State.EXPIRED, "a decision counted that came too late"
        return world._replace(record=after)
    assert after.state is not State.EXPIRED, "a decision in time did not count"
    assert (after.decided_by, after.decided_at) == (word.by, world.now), "who decided is not recorded"
    if not word.approved:
        return world._replace(record=after, denied=True)
    proposed = word.payload if word.payload is not None else world.proposed
    votes = [vote if vote is None or vote[1] == proposed else None for vote in world.votes]
    votes[world.turn] = (word.by, proposed)
    return world._replace(record=after, votes=tuple(votes), proposed=proposed, until=world.now + LASTS)


def check(world: World) -> None:
    record = world.record
    if record.state is State.APPROVED:
        assert world.turn == 3, "approved without everybody"
        assert len({vote[0] for vote in world.votes if vote}) == 3, "somebody approved twice"
        assert {vote[1] for vote in world.votes if vote} == {record.payload}, "not all approved the same"
    if record.state is State.IN_CHAIN:
        assert world.turn < 3, "all have approved, and it waits"
        assert record.waits_for == LINKS[world.turn].approvers, "it waits for somebody else"
        assert record.due_at == world.until, "another deadline than that of the link"
        assert record.asks_owner == (world.turn == 2 and world.proposed is None), "the owner is asked out of turn"
        assert record.approved is None, "it says that it is approved"
    assert (record.state is State.DENIED) == world.denied, "a denial does not stand"
    assert record.payload == world.proposed, "something else is proposed than was said"


def steps(world: World) -> Iterator[World]:
    if world.now < LAST_TICK:
        yield world._replace(now=world.now + 1)
    for word in WORDS:
        yield say(world, word)
    expired = call_record.expire(world.record, now=world.now)
    if expired is not world.record:
        assert world.now >= world.until, "expired before its time"
        yield world._replace(record=expired)
    yield world._replace(record=call_record.withdraw(world.record))


def explore() -> tuple[int, set[State]]:
    known, frontier = {World(FIRST)}, [World(FIRST)]
    while frontier:
        world = frontier.pop()
        for after in steps(world):
            check(after)
            if after not in known:
                known.add(after)
                frontier.append(after)
    return len(known), {world.record.state for world in known}


def test_in_every_world_the_call_is_approved_by_everybody_of_the_chain_or_not_at_all() -> None:
    worlds, states = explore()
    assert worlds > 300
    assert states == {State.IN_CHAIN, State.APPROVED, State.DENIED, State.EXPIRED, State.WITHDRAWN}


Plant = Callable[[pytest.MonkeyPatch], None]


def instead(name: str, mistaken: Callable[..., Any], *places: Any) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        for place in places or (call_record, approval_chain):
            if hasattr(place, name):
                patch.setattr(place, name, mistaken)

    return plant


real_seat, real_names, real_turn, real_decision = (
    approval_chain.seat_of,
    approval_chain.names,
    approval_chain.turn_of,
    approval_chain.with_decision,
)


def without_lapse(chain: Any, decision: Any) -> Any:
    new = real_decision(chain, decision)
    return tuple(was if was.approved else now for was, now in zip(chain, new, strict=True))


PLANTED: dict[str, tuple[Plant, str]] = {
    "anybody decides": (instead("seat_of", lambda *_: "now"), "told|refused|turn it was not"),
    "whoever is named decides at any time": (
        instead("seat_of", lambda chain, *who: "now" if real_seat(chain, *who) == "past" else real_seat(chain, *who)),
        "turn it was not|another",
    ),
    "somebody approves twice": (instead("has_decided", lambda *_: False), "turn it was not"),
    "groups count for nobody": (instead("names", lambda approvers, user, *_: user in approvers), "refused|told"),
    "an id counts as a group": (
        instead("names", lambda approvers, user, groups=(): user in approvers or real_names(approvers, user, groups)),
        "told|turn it was not",
    ),
    "the owner counts as one of his group": (
        lambda patch: patch.setattr(
            call_record, "seat_of", lambda chain, by, _: real_seat(chain, by, GROUPS.get(by, ()))
        ),
        "turn it was not",
    ),
    "an edit lapses nothing": (instead("with_decision", without_lapse), "somebody else|not all approved|deadline"),
    "the last link is not asked": (
        instead("turn_of", lambda chain: 3 if real_turn(chain) == 2 else real_turn(chain)),
        ".",
    ),
    "any digest will do": (
        lambda patch: patch.setattr(CallRecord, "shown_digest", property(lambda _: "another")),
        "another|something else",
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_exploration_finds_a_mistake(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, broken = PLANTED[mistake]
    plant(monkeypatch)
    with pytest.raises((AssertionError, IndexError), match=broken):
        explore()
