"""What one speaker has already said, so that no text is emitted twice and none is lost.

ADK gives the text of a model call in pieces (partial events) and then again as a whole. The whole may come under
another event id than the pieces (code executors, legacy streaming), may lack what was streamed (a code fence that
became a code part), may go on after it, or may be another text altogether (a callback or plugin replaced it).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO

from ...protocol.stream import TextKind


@dataclass(slots=True)
class _Pieces:
    """Pieces that came under one event id."""

    event_id: str
    text: StringIO = field(default_factory=StringIO)  # a list would keep an object for each word


class SpokenText:
    def __init__(self) -> None:
        self._pieces: dict[TextKind, list[_Pieces]] = {"text": [], "reasoning": []}
        self._newest: dict[TextKind, _Pieces] = {}

    def add(self, kind: TextKind, event_id: str, piece: str) -> Callable[[str], object]:
        """Remember a piece. Returns a shorter way to remember the pieces that follow under the same event id."""
        newest = self._newest.get(kind)
        if newest is None or newest.event_id != event_id:
            newest = self._newest[kind] = _Pieces(event_id)
            self._pieces[kind].append(newest)
        newest.text.write(piece)
        return newest.text.write

    @property
    def is_unconfirmed(self) -> bool:
        """Whether there are pieces whose whole has not come yet."""
        return bool(self._pieces["text"] or self._pieces["reasoning"])

    def settle(self, kind: TextKind, whole: str) -> int | None:
        """How many characters of the whole were already said; None if the pieces were another text. Forgets them."""
        said_so_far = self._pieces[kind]
        self._pieces[kind] = []
        self._newest.pop(kind, None)
        if not said_so_far:
            return 0
        # A whole covers all pieces since the last whole, or only the newest if the whole of an earlier call never came.
        for oldest in range(len(said_so_far)):
            said = "".join(pieces.text.getvalue() for pieces in said_so_far[oldest:])
            if whole.startswith(said) or said.startswith(whole):
                return len(said)
        return None

    def unconfirmed(self) -> list[tuple[TextKind, str]]:
        """The pieces since the last whole; thoughts come first."""
        kinds: tuple[TextKind, ...] = ("reasoning", "text")
        said: list[tuple[TextKind, str]] = [
            (kind, "".join(pieces.text.getvalue() for pieces in self._pieces[kind])) for kind in kinds
        ]
        return [(kind, text) for kind, text in said if text]

    def forget(self) -> None:
        self._pieces = {"text": [], "reasoning": []}
        self._newest.clear()
