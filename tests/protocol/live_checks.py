"""What holds in each world of the live table, after each fact."""

from adk_stream_protocol.protocol import live_facts as facts
from protocol.live_books import BookedTable, CallBook


def check(world: BookedTable) -> None:
    books = world.books
    for timer in books.stale:
        assert world.turns.receive(facts.TimerFired(timer)) == [], "a late timer changes something"
    for name, book in books.calls.items():
        assert book.has_result <= 1, "a result comes twice"
        if book.state in ("waiting", "left") and not book.needs_nobody and not books.is_over:
            check_waiting(world, name, book)
    if books.is_over:
        return
    for name, is_open in books.segments.items():
        if is_open:
            check_open(world, name)
    unsent = [name for name in "AB" if name in books.segments and name not in books.sent]
    if unsent and not books.is_lost:
        blocked = [book for book in books.calls.values() if world.blocks(book)]
        assert blocked, "the user's words never reach the model"


def check_waiting(world: BookedTable, name: str, book: CallBook) -> None:
    """Somebody sees its card, or something that comes will show it."""
    books = world.books
    if world.scene.talks_on and book.beside and book.state == "waiting" and book.is_shown and not books.is_lost:
        assert book.is_told, "the model does not know that a call waits"
    if not book.beside:
        asked = {other for other in books.unanswered if books.segments[other]} - {book.message}
        assert not asked or not book.is_shown, "the user's words wait for a call"
    if book.is_shown and not books.segments.get(book.message):
        assert book.is_seen or book.message in books.asked_for or not books.is_attended, (
            "a call waits that nobody is told of"
        )
        return
    is_ending = books.is_lost  # nothing is decided any more, and the end closes everything
    moves = books.in_flight is not None or is_moving(world, book.message)
    assert moves or is_ending, "a call waits behind an open segment"


def check_open(world: BookedTable, name: str) -> None:
    """The model owes something, a tool works, or a timer runs."""
    books = world.books
    assert books.owed or books.in_flight is not None or is_moving(world, name), "a segment is open for ever"
    assert name in books.asked_for or not books.is_attended or name in superseded(world), "nobody is told of a segment"


def is_moving(world: BookedTable, name: str) -> bool:
    books = world.books
    at_work = ("made", "running", "free", "settled")
    asking = {book.outer for book in books.calls.values() if book.state == "waiting" and not book.needs_nobody}
    working = [call for call, book in books.calls.items() if book.state in at_work and call not in asking]
    ending = [book for book in books.calls.values() if book.needs_nobody and book.state not in ("left", "over")]
    return bool(working or ending) or name in books.timers


def superseded(world: BookedTable) -> set[str]:
    return {book.message for book in world.books.calls.values() if book.is_refused}
