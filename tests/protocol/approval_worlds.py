"""Every world that waiting calls can get into, breadth first over the real functions, and what holds in all of them.

Two calls of one chat, one of the server's and one of the browser's. Two tabs of the owner and a stranger decide and
answer; the model takes calls back; two runs claim, start and finish, with the arguments that were shown and with
others; runs are lost at any moment, and go on all the same, as a worker does that was only slow; the clock ticks
through the deadlines. The books of what was said and what happened are the test's own: they are never read off the
records.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed, State

OWNER, STRANGER = "ann", "eve"
TABS = ("tab 1", "tab 2")
RUNS = ("run 1", "run 2")
# In ticks: a word at 0 or 1 is in time, leaves the browser until 2 or 3, and lapses for the server at 3 or 4. The last
# tick is past everything.
DEADLINE, BROWSER_TIME, RECOVERY_TIME, LAST_TICK = 2, 2, 3, 4


def changed(approval: CallRecord, **changes: Any) -> CallRecord:
    return msgspec.structs.replace(approval, **changes)


SERVER_CALL = CallRecord(
    chat=ChatKey("shop", OWNER, "chat-1"),
    call=CallKey("e-1", "call-1"),
    tool="pay",
    arguments=("Bob", 5),  # not a dict, so that a world can be a member of a set
    executor="server",
    state=State.PENDING,
    asked_at=0,
    deadline=DEADLINE,
)
BROWSER_CALL = changed(
    SERVER_CALL, call=CallKey("e-1", "call-2"), tool="location", executor="browser", approval_id="approval-1"
)
UNGATED_CALL = changed(
    BROWSER_CALL, approval_id=None, state=State.APPROVED, deadline=None, browser_deadline=BROWSER_TIME
)
DIGESTS = {"as shown": SERVER_CALL.digest, "changed": "changed", "of the browser's call": BROWSER_CALL.digest}


def is_gated(record: CallRecord) -> bool:
    return record.executor == "server" or record.approval_id is not None


class Word(NamedTuple):
    approved: bool
    at: int
    tab: str


class Call(NamedTuple):
    """A record, and the test's own books about it."""

    record: CallRecord
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
    withdrawn: bool = False
    """Whether the model took it back, and was heard."""

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
    yield Action("expire_unclaimed", {"recover_s": RECOVERY_TIME}, needs_now=True)
    for run in RUNS:
        for arguments in DIGESTS:
            yield Action("claim", {"digest": DIGESTS[arguments], "lease_token": run}, run)
        yield Action("start", {"lease_token": run}, run)
        yield Action("finish", {"lease_token": run, "result": run}, run)
        yield Action("fail", {"lease_token": run, "result": run}, run)
    for tab in TABS:
        yield Action("take_output", {"by": OWNER, "result": tab}, tab, needs_now=True)
    yield Action("take_output", {"by": STRANGER, "result": STRANGER}, STRANGER, needs_now=True)
    yield Action("give_up", {"result": GIVEN_UP})
    yield Action("withdraw", {})


GIVEN_UP = "given up"
ENDS = {"denied", "expired", "done", "failed", "outcome-unknown", "withdrawn"}

LOSSES = [Action("lose_run", {"living_run": living}) for living in (None, *RUNS)]


def perform(call: Call, action: Action, now: int) -> Call:
    """One attempt, whether it is allowed or not, and what it leaves in the books."""
    before = call.record
    given = action.given | ({"now": now} if action.needs_now else {})
    try:
        after: CallRecord | None = getattr(call_record, action.name)(before, **given)
    except NotAllowed:
        after = None
    moved = after is not None and after is not before
    books = call._replace(record=after or before)
    is_first_word = action.name == "decide" and action.who in TABS and call.word is None and not call.withdrawn
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
    if action.name == "withdraw" and moved:
        books = books._replace(withdrawn=True)
    check_call(books)
    check_step(call, action, now, after, books)
    # A call can be claimed and lost for ever; its version grows with that, and nothing else.
    return books._replace(record=changed(books.record, version=0)) if moved else books


def output_until(call: Call) -> int:
    return BROWSER_TIME + (call.word.at if call.word else 0)


def expires_at(call: Call) -> int:
    if call.record.state is State.PENDING:
        return DEADLINE
    if call.record.executor == "browser":
        return output_until(call)
    return call.word.at + RECOVERY_TIME if call.word else LAST_TICK + 1


def check_call(call: Call) -> None:
    """What holds in each world."""
    record, word = call.record, call.word
    assert len(call.ran) <= 1, "the tool ran twice"
    for run, digest in call.ran:
        assert record.executor == "server", "the server ran the browser's tool"
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
        assert record.executor == "browser", "a browser answered for the server"
        assert call.may_run, "an output was taken without an approval"
        assert at < output_until(call), "an output was taken too late"
        assert record.result == tab, "the output is not the one that was taken"
    if call.withdrawn:
        assert record.state is State.WITHDRAWN, "a withdrawal does not stand"
        assert (call.ran, call.taken) == ((), ()), "a call ran that was withdrawn"
    if word is not None:
        assert record.state is not State.PENDING, "a word in time did not count"
        assert (record.state is State.DENIED) == (not word.approved), "the first word does not stand"
        recorded = (record.approved, record.decided_at, record.decided_by, record.reason)
        assert recorded == (word.approved, word.at, OWNER, word.tab), "the first word is not the recorded one"


def check_step(call: Call, action: Action, now: int, after: CallRecord | None, books: Call) -> None:
    """What holds for each attempt. `after` is None if it was refused."""
    before, record = call.record, books.record
    if record is not before:
        assert record.version == before.version + 1, "a move without a new version lets two writers win"
        assert action.who != STRANGER, "a stranger moved a call"
        assert before.state not in ENDS, "a final state moved"
    if action.name == "decide" and action.who in TABS:
        assert after is not None, "a later decision was not told what is recorded"
        assert record is before or call.word is None, "a later decision changed something"
    if record.state is State.EXPIRED and before.state is not State.EXPIRED:
        assert now >= expires_at(call), "expired before its time"
    if action.name == "expire_unclaimed":
        assert record is before or before.executor == "server", "an approval of the browser's call lapsed"
        lapses = before.executor == "server" and before.state is State.APPROVED and now >= expires_at(call)
        assert record is not before or not lapses, "an old approval still counts"
    if action.name == "give_up" and record is not before:
        assert not call.ran, "a call was given up that had begun"
        assert (record.state, record.result) == (State.FAILED, GIVEN_UP), "a call that was given up does not say so"
    if action.name == "withdraw":
        assert record is before or not call.ran, "a call was withdrawn that had begun"
        is_open = before.state in (State.PENDING, State.APPROVED)
        assert (record is not before) == is_open, "what nobody has taken could not be withdrawn, or what a run has"
    if action.name == "lose_run" and record is not before:
        assert before.lease_token != action.given["living_run"], "a run was lost that lives"
        assert before.state is not State.CLAIMED or record.state is State.APPROVED, "a lost claim was not given back"
    # What may be done can be done: a table that allows nothing would keep all promises above.
    is_approved = before.state is State.APPROVED
    if action.name == "claim" and is_approved and before.executor == "server":
        assert after or action.given["digest"] != DIGESTS["as shown"], "what was approved could not be claimed"
    if action.name in {"start", "finish", "fail"} and before.lease_token == action.who:
        due = State.CLAIMED if action.name == "start" else State.STARTED
        assert after or before.state is not due, "the run that holds a call could not go on"
    if action.name == "take_output" and action.who in TABS and is_approved and before.executor == "browser":
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
