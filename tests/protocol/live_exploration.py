"""The walk through the worlds of the live table, breadth first, and the scenes that it begins in."""

import pickle
from dataclasses import dataclass, replace

from protocol.live_books import BookedTable, Scene
from protocol.live_worlds import World


@dataclass(frozen=True)
class Explored:
    worlds: int
    steps: int
    depth: int


def explore(scene: Scene, most_worlds: int) -> Explored:
    """Breadth first, so that the trail of what fails is the shortest one."""
    frontier: list[tuple[bytes, tuple[str, ...]]] = [(pickle.dumps(World(scene)), ())]
    seen: set[bytes] = set()
    steps = depth = 0
    while frontier and len(seen) < most_worlds:
        depth += 1
        reached: list[tuple[bytes, tuple[str, ...]]] = []
        for world, trail in frontier:
            for move in list(pickle.loads(world).moves()):
                after: World = pickle.loads(world)
                steps += 1
                try:
                    after.happen(move)
                except Exception as broken:
                    raise AssertionError(f"{broken}, after {[*trail, move]}") from broken
                print_of = fingerprint(after)
                if print_of not in seen:
                    seen.add(print_of)
                    reached.append((pickle.dumps(after), (*trail, move)))
        frontier = reached
    return Explored(len(seen), steps, depth)


def fingerprint(world: BookedTable) -> bytes:
    """Worlds that differ only in the numbers of their events and timers are the same."""
    turns, books = world.turns, world.books
    routes = turns.routes
    named = [getattr(routes, name) for name in ("current", "heard", "after", "unheard", "last")]
    state = (
        turns.phase.value,
        (routes.turn.value, routes._is_speaking, routes._is_saying),  # pyright: ignore[reportPrivateUsage]
        routes._speaks_of_result,  # pyright: ignore[reportPrivateUsage]
        [message.name if message else "" for message in named],
        [
            (
                message.name,
                message.phase.value,
                message.awaits_words,
                message.unwanted,
                message.timer.name if message.timer else "",
                message.is_over,
                [repr(replace(call, message="")) for call in message.calls.values()],
            )
            for message in routes.messages.values()
        ],
        turns._unsent,  # pyright: ignore[reportPrivateUsage]
        turns._unnotified,  # pyright: ignore[reportPrivateUsage]
        sorted(books.left.items()),
        sorted((name, repr(book)) for name, book in books.calls.items()),
        sorted(books.segments.items()),
        sorted(books.asked_for),
        sorted((name, timer.name) for name, timer in books.timers.items()),
        (sorted(books.sent.items()), sorted(books.unanswered), books.unheard_in),
        (books.utterances, books.unanswered_speech, books.order),
        (sorted(books.opened_late), sorted(books.taken_up)),
        repr(replace(books.in_flight, id="")) if books.in_flight else "",
        (books.owed, books.is_joined, books.is_talking, books.unheard, books.is_cut, books.is_attended),
        (books.is_lost, books.is_stopped, books.is_over),
    )
    return repr(state).encode()


ENDS = ("stop", "shutdown", "unlease", "over")
SCENES = [
    Scene("words and two calls"),
    Scene("words and two calls, Gemini 3", family="3"),
    Scene("speech", calls=("c1",), words=1, utterances=2, unasked=1, cuts=1),
    Scene("a tool beside the conversation, and a transfer", calls=("c2",), handovers=1),
    Scene("a lost connection", calls=("c1",), losses=1, cuts=1),
    Scene("an agent that runs as a tool", calls=("c1", "c3"), words=2),
    Scene("a call that is left to the client", calls=("c4",), words=2),
    Scene("the end", calls=("c1", "c2"), words=1, ends=ENDS),
    Scene("the end of a call that is left", calls=("c4",), words=1, ends=ENDS),
    Scene("nobody is there", calls=("c2",), words=2, absences=1),
    Scene("tools that need nobody", gated=False),
    Scene("words after an interrupt", family="3", calls=("c1",), interrupts=2, gated=False),
    Scene("talking on", calls=("c2",), unasked=1, talks_on=True),
    Scene("talking on, Gemini 3", family="3", calls=("c2",), unasked=1, talks_on=True),
    Scene("a result that comes late", calls=("c2",), unasked=2, utterances=1, interrupts=0, gated=False),
    Scene("talking on beside a call that blocks", words=1, talks_on=True),
    Scene("speech while a call waits", calls=("c2",), words=1, utterances=2, cuts=1, talks_on=True),
    Scene("speech while a call waits, Gemini 3", family="3", calls=("c2",), words=1, utterances=2, talks_on=True),
    Scene("calls that are taken back", words=1, withdrawals=1),
    Scene("a call beside the conversation that is taken back, Gemini 3", family="3", calls=("c2",), withdrawals=1),
    Scene("the end while the model talks on", calls=("c2",), talks_on=True, ends=ENDS),
]
