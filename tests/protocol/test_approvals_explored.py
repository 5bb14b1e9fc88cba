"""Every world that waiting calls can get into, breadth first over the real functions, and what holds in all of them.

Two calls of one chat, one of the server's and one of the browser's. Two tabs of the owner and a stranger decide and
answer; two runs claim, start and finish, with the arguments that were shown and with others; runs are lost at any
moment, and go on all the same, as a worker does that was only slow; the clock ticks through the deadlines. The books
of what was said and what happened are the test's own: they are never read off the records.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from adk_stream_protocol.protocol import approvals
from adk_stream_protocol.protocol.approvals import TABLE, Approval, CallKey, ChatKey, Move, NotAllowed, State

OWNER, STRANGER = "ann", "eve"
TABS = ("tab 1", "tab 2")
RUNS = ("run 1", "run 2")
# In ticks: a word at 0 or 1 is in time, and leaves the browser until 2 or 3. The last tick is past everything.
DEADLINE, BROWSER_TIME, LAST_TICK = 2, 2, 4


def changed(approval: Approval, **changes: Any) -> Approval:
    return msgspec.structs.replace(approval, **changes)


SERVER_CALL = Approval(
    chat=ChatKey("shop", OWNER, "chat-1"),
    call=CallKey("e-1", "call-1"),
    tool="pay",
    arguments=("Bob", 5),  # not a dict, so that a world can be a member of a set
    runs="server",
    state=State.PENDING,
    asked_at=0,
    deadline=DEADLINE,
)
BROWSER_CALL = changed(
    SERVER_CALL, call=CallKey("e-1", "call-2"), tool="location", runs="browser", approval_id="approval-1"
)
UNGATED_CALL = changed(
    BROWSER_CALL, approval_id=None, state=State.APPROVED, deadline=None, browser_deadline=BROWSER_TIME
)
DIGESTS = {"as shown": SERVER_CALL.digest, "changed": "changed", "of the browser's call": BROWSER_CALL.digest}


def is_gated(record: Approval) -> bool:
    return record.runs == "server" or record.approval_id is not None


class Word(NamedTuple):
    approved: bool
    at: int
    tab: str


class Call(NamedTuple):
    """A record, and the test's own books about it."""

    record: Approval
    word: Word | None = None
    """The first thing that the owner said in time."""
    held: tuple[str, str] | None = None
    """Which run took the call last, with which arguments."""
    ran: tuple[tuple[str, str], ...] = ()
    """Every time that the tool was run: by whom, with which arguments."""
    ended: bool = False
    """Whether the run told how it went."""
    lost: bool = False
    """Whether it was lost before it could."""
    taken: tuple[tuple[str, int], ...] = ()
    """Every output of the browser that was accepted: whose, and when."""

    @property
    def may_run(self) -> bool:
        return not is_gated(self.record) or (self.word is not None and self.word.approved)


class World(NamedTuple):
    server: Call
    browser: Call
    now: int = 0


class Action(NamedTuple):
    name: str
    given: dict[str, Any]
    who: str = ""
    needs_now: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.given}"


def actions() -> Iterator[Action]:
    for approved in (True, False):
        for tab in TABS:
            given = {"by": OWNER, "approved": approved, "reason": tab, "browser_s": BROWSER_TIME}
            yield Action("decide", given, tab, needs_now=True)
        yield Action("decide", {"by": STRANGER, "approved": approved}, STRANGER, needs_now=True)
    yield Action("expire", {}, needs_now=True)
    for run in RUNS:
        for arguments in DIGESTS:
            yield Action("claim", {"digest": DIGESTS[arguments], "run": run}, run)
        yield Action("start", {"run": run}, run)
        yield Action("finish", {"run": run, "result": run}, run)
        yield Action("fail", {"run": run, "result": run}, run)
    for tab in TABS:
        yield Action("take_output", {"by": OWNER, "result": tab}, tab, needs_now=True)
    yield Action("take_output", {"by": STRANGER, "result": STRANGER}, STRANGER, needs_now=True)
    yield Action("give_up", {"result": GIVEN_UP})


GIVEN_UP = "given up"

LOSSES = [Action("lose_run", {"living_run": living}) for living in (None, *RUNS)]


def perform(call: Call, action: Action, now: int) -> Call:
    """One attempt, whether it is allowed or not, and what it leaves in the books."""
    before = call.record
    given = action.given | ({"now": now} if action.needs_now else {})
    try:
        after: Approval | None = getattr(approvals, action.name)(before, **given)
    except NotAllowed:
        after = None
    moved = after is not None and after is not before
    books = call._replace(record=after or before)
    is_first_word = action.name == "decide" and action.who in TABS and call.word is None
    if is_first_word and is_gated(before) and now < DEADLINE:
        books = books._replace(word=Word(given["approved"], now, action.who))
    if action.name == "claim" and moved:
        books = books._replace(held=(action.who, given["digest"]))
    if action.name == "start" and moved:
        books = books._replace(ran=(*call.ran, (action.who, call.held[1] if call.held else "nothing")))
    if action.name in {"finish", "fail"} and moved:
        books = books._replace(ended=True)
    if action.name == "lose_run" and call.ran and not call.ended and call.ran[-1][0] != given["living_run"]:
        books = books._replace(lost=True)
    if action.name == "take_output" and moved and after.state is State.DONE:  # pyright: ignore
        books = books._replace(taken=(*call.taken, (action.who, now)))
    check_call(books)
    check_step(call, action, now, after, books)
    # A call can be claimed and lost for ever; its version grows with that, and nothing else.
    return books._replace(record=changed(books.record, version=0)) if moved else books


def output_until(call: Call) -> int:
    return BROWSER_TIME + (call.word.at if call.word else 0)


def check_call(call: Call) -> None:
    """What holds in each world."""
    record, word = call.record, call.word
    assert len(call.ran) <= 1, "the tool ran twice"
    for run, digest in call.ran:
        assert record.runs == "server", "the server ran the browser's tool"
        assert call.may_run, "the tool ran without an approval in time"
        assert digest == DIGESTS["as shown"], "the tool ran with other arguments"
        assert call.held == (run, digest), "the tool was run by a run that did not hold it"
        if call.ended:
            assert record.result == run, "the result is not that of the run"
        if call.lost:
            assert record.state is State.UNKNOWN, "a lost start is not outcome-unknown"
    assert call.ran or not call.ended, "a result without a run"
    assert len(call.taken) <= 1, "two outputs were taken"
    for tab, at in call.taken:
        assert record.runs == "browser", "a browser answered for the server"
        assert call.may_run, "an output was taken without an approval"
        assert at < output_until(call), "an output was taken too late"
        assert record.result == tab, "the output is not the one that was taken"
    if word is not None:
        assert record.state is not State.PENDING, "a word in time did not count"
        assert (record.state is State.DENIED) == (not word.approved), "the first word does not stand"
        recorded = (record.approved, record.decided_at, record.decided_by, record.reason)
        assert recorded == (word.approved, word.at, OWNER, word.tab), "the first word is not the recorded one"


def check_step(call: Call, action: Action, now: int, after: Approval | None, books: Call) -> None:
    """What holds for each attempt. `after` is None if it was refused."""
    before, record = call.record, books.record
    if record is not before:
        assert record.version == before.version + 1, "a move without a new version lets two writers win"
        assert action.who != STRANGER, "a stranger moved a call"
        assert before.state not in {"denied", "expired", "done", "failed", "outcome-unknown"}, "a final state moved"
    if action.name == "decide" and action.who in TABS:
        assert after is not None, "a later decision was not told what is recorded"
        assert record is before or call.word is None, "a later decision changed something"
    if record.state is State.EXPIRED and before.state is not State.EXPIRED:
        assert now >= (DEADLINE if before.state is State.PENDING else output_until(call)), "expired before its time"
    if action.name == "give_up" and record is not before:
        assert not call.ran, "a call was given up that had begun"
        assert (record.state, record.result) == (State.FAILED, GIVEN_UP), "a call that was given up does not say so"
    if action.name == "lose_run" and record is not before:
        assert before.run != action.given["living_run"], "a run was lost that lives"
        assert before.state is not State.CLAIMED or record.state is State.APPROVED, "a lost claim was not given back"
    # What may be done can be done: a table that allows nothing would keep all promises above.
    is_approved = before.state is State.APPROVED
    if action.name == "claim" and is_approved and before.runs == "server":
        assert after or action.given["digest"] != DIGESTS["as shown"], "what was approved could not be claimed"
    if action.name in {"start", "finish", "fail"} and before.run == action.who:
        due = State.CLAIMED if action.name == "start" else State.STARTED
        assert after or before.state is not due, "the run that holds a call could not go on"
    if action.name == "take_output" and action.who in TABS and is_approved and before.runs == "browser":
        assert books.taken or now >= output_until(call), "an output in time was not taken"


class Explored(NamedTuple):
    worlds: int
    moves: set[tuple[State, State]]


class Explorer:
    def __init__(self, first: World) -> None:
        self.came_from: dict[World, tuple[World, str] | None] = {first: None}
        self._known: dict[tuple[Call, int], tuple[list[tuple[str, Call]], list[Call]]] = {}

    def run(self) -> Explored:
        """Breadth first, so that the trail of what fails is the shortest one."""
        moves: set[tuple[State, State]] = set()
        frontier = list(self.came_from)
        while frontier:
            reached: list[World] = []
            for world in frontier:
                for action, after in self.steps(world):
                    if after not in self.came_from:
                        self.came_from[after] = (world, action)
                        reached.append(after)
                        moves |= {(a.record.state, b.record.state) for a, b in zip(world[:2], after[:2], strict=True)}
            frontier = reached
        return Explored(len(self.came_from), {(before, after) for before, after in moves if before is not after})

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.now < LAST_TICK:
            yield "tick", world._replace(now=world.now + 1)
        try:
            server, server_losses = self.outcomes(world.server, world.now)
            browser, browser_losses = self.outcomes(world.browser, world.now)
        except AssertionError as broken:
            raise AssertionError(f"{broken}, after {self.trail(world)}") from broken
        for action, call in server:
            yield f"server: {action}", world._replace(server=call)
        for action, call in browser:
            yield f"browser: {action}", world._replace(browser=call)
        for loss, *calls in zip(LOSSES, server_losses, browser_losses, strict=True):
            yield str(loss), World(*calls, world.now)

    def outcomes(self, call: Call, now: int) -> tuple[list[tuple[str, Call]], list[Call]]:
        """What every action makes of a call: those that change it, and the losses, which meet both calls at once."""
        if (call, now) not in self._known:
            after = [(str(action), perform(call, action, now)) for action in ACTIONS]
            changes = [(action, changed) for action, changed in after if changed != call]
            self._known[call, now] = changes, [perform(call, loss, now) for loss in LOSSES]
        return self._known[call, now]

    def trail(self, world: World) -> list[str]:
        actions: list[str] = []
        while (step := self.came_from[world]) is not None:
            world, action = step
            actions.insert(0, action)
        return actions


ACTIONS = list(actions())
GATED = World(Call(SERVER_CALL), Call(BROWSER_CALL))
UNGATED = World(Call(SERVER_CALL), Call(UNGATED_CALL))


@pytest.mark.parametrize("first", [GATED, UNGATED], ids=["gated", "ungated"])
def test_no_world_breaks_a_promise_and_every_move_is_made_in_some(first: World) -> None:
    explored = Explorer(first).run()
    assert explored.worlds > 1_000
    assert explored.moves == {(state, after) for (state, _), after in TABLE.items()}


# --- would it notice? Each of these makes one mistake.

Plant = Callable[[pytest.MonkeyPatch], None]


def row(state: State, move: Move, after: State) -> Plant:
    return lambda patch: patch.setitem(TABLE, (state, move), after)


def function(name: str, mistaken: Callable[..., Any]) -> Plant:
    real = getattr(approvals, name)
    return lambda patch: patch.setattr(approvals, name, lambda *args, **given: mistaken(real, *args, **given))


def both(*plants: Plant) -> Plant:
    return lambda patch: [plant(patch) for plant in plants] and None


def never(name: str) -> Plant:
    return lambda patch: patch.setattr(Approval, name, property(lambda approval: False))


def as_if(**fields: Any) -> Callable[..., Approval]:
    """A move that takes the call for another one, and writes its own fields back."""

    def move(real: Callable[..., Approval], approval: Approval, **given: Any) -> Approval:
        own = {name: getattr(approval, name) for name in fields}
        return changed(real(changed(approval, **fields), **given), **own)

    return move


def without_row(state: State, move: Move) -> Plant:
    return lambda patch: patch.delitem(TABLE, (state, move))


def forgetting(**fields: Any) -> Callable[..., Approval]:
    return lambda real, approval, **given: changed(real(approval, **given), **fields)


PLANTED: dict[str, tuple[Plant, str]] = {
    "claimed without a decision": (row(State.PENDING, Move.CLAIM, State.CLAIMED), "is not the recorded one"),
    "claimed after a denial": (row(State.DENIED, Move.CLAIM, State.CLAIMED), "the first word does not stand"),
    "claimed again after the end": (row(State.DONE, Move.CLAIM, State.CLAIMED), "a final state moved"),
    "claimed again when unknown": (row(State.UNKNOWN, Move.CLAIM, State.CLAIMED), "a lost start is not"),
    "a denial approves": (row(State.PENDING, Move.DENY, State.APPROVED), "the first word does not stand"),
    "an expired call is approved": (row(State.PENDING, Move.EXPIRE, State.APPROVED), "taken without an approval"),
    "a lost start runs again": (row(State.STARTED, Move.LOSE_RUN, State.APPROVED), "a lost start is not"),
    "a lost claim is given up": (row(State.CLAIMED, Move.LOSE_RUN, State.UNKNOWN), "a lost claim was not given back"),
    "the start is not noted": (row(State.CLAIMED, Move.START, State.CLAIMED), "the tool ran twice"),
    "finished before the start": (row(State.CLAIMED, Move.FINISH, State.DONE), "a result without a run"),
    "output without approval": (row(State.PENDING, Move.TAKE_OUTPUT, State.DONE), "an output was taken without"),
    "nothing can be claimed": (without_row(State.APPROVED, Move.CLAIM), "could not be claimed"),
    "nothing can fail": (without_row(State.STARTED, Move.FAIL), "could not go on"),
    "no output can be taken": (without_row(State.APPROVED, Move.TAKE_OUTPUT), "an output in time was not taken"),
    "the deadline still counts as in time": (
        function("_is_late", lambda real, approval, now: real(approval, now - 1)),
        "taken without an approval",
    ),
    "the tick before the deadline is late": (
        function("_is_late", lambda real, approval, now: real(approval, now + 1)),
        "expired before its time",
    ),
    "the server's calls are never late": (
        function("_is_late", lambda real, approval, now: approval.runs == "browser" and real(approval, now)),
        "the tool ran without an approval in time",
    ),
    "an output is never late": (
        function("_is_late", lambda real, approval, now: approval.state is State.PENDING and real(approval, now)),
        "an output was taken too late",
    ),
    "anybody decides": (
        function("decide", lambda real, approval, **given: real(approval, **given | {"by": OWNER})),
        "a stranger moved a call",
    ),
    "anybody answers": (
        function("take_output", lambda real, approval, **given: real(approval, **given | {"by": OWNER})),
        "a stranger moved a call",
    ),
    "nobody is heard": (function("decide", lambda real, approval, **_: approval), "a word in time did not count"),
    "the same word is taken twice": (
        both(never("is_decided"), row(State.APPROVED, Move.APPROVE, State.APPROVED)),
        "a later decision changed something",
    ),
    "a second word is refused": (never("is_decided"), "a later decision was not told"),
    "a second word frees the call": (
        function("decide", lambda real, approval, **given: changed(real(approval, **given), run=None)),
        "a move without a new version",
    ),
    "the word is not written down": (function("decide", forgetting(decided_at=None)), "is not the recorded one"),
    "the result is not written down": (function("finish", forgetting(result=None)), "not that of the run"),
    "the output is not written down": (function("take_output", forgetting(result=None)), "not the one that was taken"),
    "the last output counts": (both(never("is_final"), row(State.DONE, Move.TAKE_OUTPUT, State.DONE)), "two outputs"),
    "any arguments will do": (
        function("claim", lambda real, approval, *, digest, run: real(approval, digest=approval.digest, run=run)),
        "the tool ran with other arguments",
    ),
    "the server runs the browser's tool": (function("claim", as_if(runs="server")), "the server ran the browser's"),
    "the browser answers for the server": (function("take_output", as_if(runs="browser")), "a browser answered for"),
    "any run may go on": (function("_require_holder", lambda *_: None), "a run that did not hold it"),
    "a living run is lost": (
        function("lose_run", lambda real, approval, living_run: real(approval, living_run="nobody")),
        "a run was lost that lives",
    ),
    "a move without a version": (
        function("_moved", lambda real, approval, move, **given: changed(real(approval, move, **given), version=0)),
        "a move without a new version",
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_exploration_finds_a_mistake(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, broken_promise = PLANTED[mistake]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=broken_promise):
        Explorer(GATED).run()
