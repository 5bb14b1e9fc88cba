"""What one speaker has already said, so that nothing is said twice and nothing is lost.

ADK gives the text of a model call in pieces (partial events) and then again as a whole. The whole may come under
another event id than the pieces (code executors, legacy streaming), may lack what was streamed (a code fence that
became a code part), may go on after it, or may be another text altogether (a callback or plugin replaced it).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ...protocol.stream import TextKind


@dataclass(slots=True)
class _Run:
    """Pieces that came under one event id."""

    event_id: str
    pieces: list[str] = field(default_factory=list[str])


class SpokenText:
    def __init__(self) -> None:
        self._runs: dict[TextKind, list[_Run]] = {"text": [], "reasoning": []}
        self._newest: dict[TextKind, _Run] = {}

    def add(self, kind: TextKind, event_id: str, piece: str) -> Callable[[str], None]:
        """Note what was said. Gives a shorter way to note what follows under the same event id."""
        newest = self._newest.get(kind)
        if newest is None or newest.event_id != event_id:
            newest = self._newest[kind] = _Run(event_id)
            self._runs[kind].append(newest)
        newest.pieces.append(piece)
        return newest.pieces.append

    @property
    def is_unconfirmed(self) -> bool:
        """Pieces were said whose whole has not come yet."""
        return bool(self._runs["text"] or self._runs["reasoning"])

    def settle(self, kind: TextKind, whole: str) -> int | None:
        """How many characters of the whole have been said; None if something else was. Forgets the pieces."""
        runs = self._runs[kind]
        self._runs[kind] = []
        self._newest.pop(kind, None)
        if not runs:
            return 0
        # A whole stands for all pieces since the last one, or only for the newest when an earlier call's never came.
        for oldest in range(len(runs)):
            said = "".join(piece for run in runs[oldest:] for piece in run.pieces)
            if whole.startswith(said) or said.startswith(whole):
                return len(said)
        return None

    def unconfirmed(self) -> list[tuple[TextKind, str]]:
        """All that was said since the last whole; thoughts come first."""
        kinds: tuple[TextKind, ...] = ("reasoning", "text")
        said: list[tuple[TextKind, str]] = [
            (kind, "".join(piece for run in self._runs[kind] for piece in run.pieces)) for kind in kinds
        ]
        return [(kind, text) for kind, text in said if text]

    def forget(self) -> None:
        self._runs = {"text": [], "reasoning": []}
        self._newest.clear()
