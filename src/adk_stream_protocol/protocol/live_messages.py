"""The messages of a live session and their calls: where the session is with each of them."""

from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any

from ..errors import LocalProtocolError
from .call_record import CallKey
from .live_effects import Timer


class Phase(StrEnum):
    """Of a message. A segment is open in `asked` and `open`, and in no other phase."""

    HEARD = auto()
    """The user has spoken, and nobody has answered."""
    ASKED = auto()
    """The user has written, and the model has said nothing to it."""
    OPEN = auto()
    """The model may write, or a tool works."""
    WAITING = auto()
    """Somebody must answer a call."""
    ENDED = auto()


PHASES: dict[Phase, frozenset[Phase]] = {
    Phase.HEARD: frozenset({Phase.OPEN, Phase.ENDED}),
    Phase.ASKED: frozenset({Phase.OPEN, Phase.WAITING, Phase.ENDED}),
    Phase.OPEN: frozenset({Phase.WAITING, Phase.ENDED}),
    Phase.WAITING: frozenset({Phase.OPEN, Phase.ENDED}),
    Phase.ENDED: frozenset({Phase.OPEN, Phase.WAITING}),  # for a call that still comes, or a result
}


class Unwanted(StrEnum):
    """Why nobody waits for the model's words of a message."""

    INTERRUPTED = auto()
    """The user has heard enough. The model does not know, and may even call a tool."""
    SUPERSEDED = auto()
    """The user has written something else instead of an answer."""


class CallPhase(StrEnum):
    """Where a live session is with a call. What becomes of the call, its record says."""

    MADE = auto()
    RUNNING = auto()
    WAITING = auto()
    LEFT = auto()
    """The client's to answer: ADK does not wait for it."""
    SETTLED = auto()
    """The tool has ended, and ADK has not stored the result."""
    SHOWN = auto()
    """The tool has ended, and clients have its result; ADK has not stored it."""
    ORPHANED = auto()
    """The tool runs, but the run of its agent is over."""


@dataclass(eq=False, slots=True)
class Call:
    key: CallKey
    message: "Message"
    phase: CallPhase = CallPhase.MADE
    blocks: bool = True
    """ADK does not read from the model meanwhile."""
    outer: CallKey | None = None
    """The call that runs the agent that made this one: ADK has no event of it."""
    inside: CallKey | None = None
    """The same, where ADK has events of both."""
    is_shown: bool = False
    """A segment has the call."""
    has_begun: bool = False
    """Its tool runs: the gate does not ask anybody any more."""
    tells_model: bool = False
    """The model is to know that the call waits, and does not yet."""
    response: Any = None


@dataclass(eq=False, slots=True)
class Message:
    name: str
    phase: Phase
    awaits_words: bool = True
    """What the user has said is not known yet, or not all of it."""
    unwanted: Unwanted | None = None
    timer: Timer | None = None
    is_over: bool = False
    """The model's turn is over, and the segment is open for a call that is undecided."""
    calls: dict[CallKey, Call] = field(default_factory=dict[CallKey, Call])
    """Those without a result."""

    @property
    def is_open(self) -> bool:
        return self.phase in (Phase.ASKED, Phase.OPEN)

    def move(self, phase: Phase) -> None:
        if phase is not self.phase:
            if phase not in PHASES[self.phase]:
                raise LocalProtocolError(f"a message cannot go from {self.phase} to {phase}")
            self.phase = phase

    # -- its calls ----------------------------------------------------------------------------------------------------

    def waits(self, call: Call) -> bool:
        """An agent that runs as a tool waits as long as one of its calls does."""
        if call.phase in (CallPhase.WAITING, CallPhase.LEFT):
            return True
        return any(call.key in (inner.outer, inner.inside) and self.waits(inner) for inner in self.calls.values())

    @property
    def waiting(self) -> list[Call]:
        return [call for call in self.calls.values() if self.waits(call)]

    @property
    def not_waiting(self) -> frozenset[CallKey]:
        """Calls that wait for nobody, and whose results clients do not have."""
        others = (CallPhase.WAITING, CallPhase.LEFT, CallPhase.SHOWN)
        return frozenset(call.key for call in self.calls.values() if call.phase not in others)

    @property
    def is_blocked(self) -> bool:
        """ADK does not go on before somebody has answered."""
        return any(call.blocks for call in self.calls.values() if call.phase is CallPhase.WAITING)

    @property
    def is_busy(self) -> bool:
        """ADK is at one of its calls, and nobody needs to answer first."""
        return any(not self.waits(call) for call in self.calls.values())

    @property
    def is_undecided(self) -> bool:
        """The gate has not said of one of its calls whether it runs or waits, or ADK is about to store the result."""
        return any(
            call.phase is CallPhase.SETTLED
            or (call.phase in (CallPhase.MADE, CallPhase.RUNNING) and not call.has_begun and not self.waits(call))
            for call in self.calls.values()
        )

    @property
    def at_work(self) -> list[Call]:
        """Those whose tools run."""
        running = (CallPhase.RUNNING, CallPhase.ORPHANED)
        return [call for call in self.calls.values() if call.phase in running and not self.waits(call)]
