"""What can happen in a live session: the facts of `live_turns.py`.

Messages are named by strings. The user's own message brings its name; those that the table begins are called
`begun-1`, `begun-2` and so on. Events are named by their ids, calls by their keys; everything else is opaque.
"""

from dataclasses import dataclass
from typing import Any

from .call_record import CallKey
from .live_effects import Timer


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """What an event of the model means for turns and segments.

    | About | Fields |
    |---|---|
    | the event | `id`, `is_partial`, `is_said`, `is_transcript`, `is_recording` |
    | calls | `calls`, `inside`, `results`, `is_untold` |
    | the user's voice | `heard`, `is_interrupted` |
    | the model's turn | `is_turn_complete`, `goes_on`, `has_reason`, `hands_over` |
    """

    id: str
    is_said: bool = False
    """It has something for the user: text, voice, calls, results, an error."""
    is_partial: bool = False
    calls: tuple[CallKey, ...] = ()
    """Those that clients see."""
    inside: CallKey | None = None
    """The call that runs the agent which this event is of: not the model that ADK listens to."""
    results: tuple[CallKey, ...] = ()
    is_untold: bool = False
    """The model does not get these results: it took the calls back."""
    is_transcript: bool = False
    """It is what the model says aloud, in writing, which may come late."""
    heard: bool | None = None
    """It says what the user has said: a piece of it (False), or all of it (True)."""
    is_interrupted: bool = False
    is_turn_complete: bool = False
    goes_on: bool | None = None
    """What the model says about that: whether more turns follow. None: it does not say."""
    has_reason: bool = False
    """The turn ended early, for a reason."""
    hands_over: bool = False
    """ADK ends the run of this agent after it, and gives up the tools that the agent runs beside the conversation."""
    is_recording: bool = False
    """It stores what was recorded of somebody's voice, after it was spoken."""


# -- from the user ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wrote:
    message: str
    """The name of the answer."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """What the user wrote could not be given to the model: a call that it should replace could not be refused."""

    message: str


@dataclass(frozen=True, slots=True)
class Answered:
    """Clients have answered calls of one message, and that is recorded."""

    calls: frozenset[CallKey]
    done: frozenset[CallKey]
    """Those that wait for nothing more. An approved call of a browser waits for its output."""


@dataclass(frozen=True, slots=True)
class InterruptedByUser:
    pass


@dataclass(frozen=True, slots=True)
class Attached:
    """Somebody listens."""


@dataclass(frozen=True, slots=True)
class Left:
    """Nobody listens any more."""


# -- from the model ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Came:
    """ADK has an event, and is about to store it."""

    event: ModelEvent


@dataclass(frozen=True, slots=True)
class Emitted:
    """The event comes out of ADK."""

    event_id: str


@dataclass(frozen=True, slots=True)
class ResultSent:
    """A tool's result is on its way to the model."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """ADK's run of the agent is over."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The model has taken calls back."""

    calls: tuple[CallKey, ...]


@dataclass(frozen=True, slots=True)
class WithdrawalRecorded:
    """And `response` says so. Where ADK waits for the call, it gets that; but it may have left it to the client."""

    call: CallKey
    response: Any = None


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection to the model, also by a GoAway, and the model was not at the end of what it has to say."""


@dataclass(frozen=True, slots=True)
class SaidAgain:
    """The connection is back, and the user's last words went to the model again."""


# -- from the gate ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Began:
    """A tool runs. `beside`: ADK reads from the model meanwhile."""

    call: CallKey
    beside: bool


@dataclass(frozen=True, slots=True)
class Waits:
    """A call waits for its answer. `blocks`: ADK does not read from the model meanwhile. `outer`: the call that runs
    the agent that made this one; ADK has no event of it. `is_asked`: the last segment of the message has its card.
    `tells_model`: the model is to know that the answer takes its time."""

    call: CallKey
    blocks: bool
    outer: CallKey | None = None
    is_asked: bool = False
    tells_model: bool = False


@dataclass(frozen=True, slots=True)
class LeftToClient:
    """ADK does not wait for the answer to this call."""

    call: CallKey


@dataclass(frozen=True, slots=True)
class GoesOn:
    """A call that waited has its answer, or needs none any more."""

    call: CallKey


@dataclass(frozen=True, slots=True)
class Abandoned:
    """ADK has given up a call that waited. Its record is as it was: another run can continue it."""

    call: CallKey


@dataclass(frozen=True, slots=True)
class Settled:
    """A tool has ended. ADK stores results of one message together."""

    call: CallKey
    response: Any = None


# -- from outside -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stopped:
    """The user stops the session, or deletes the chat."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    pass


@dataclass(frozen=True, slots=True)
class LeaseLost:
    pass


@dataclass(frozen=True, slots=True)
class Over:
    """The run is over."""


@dataclass(frozen=True, slots=True)
class TimerFired:
    timer: Timer


Fact = (
    Wrote | NotSent | Answered | InterruptedByUser | Attached | Left
    | Came | Emitted | ResultSent | HandedOver | Withdrawn | WithdrawalRecorded | ConnectionLost | SaidAgain
    | Began | Waits | LeftToClient | GoesOn | Abandoned | Settled
    | Stopped | Shutdown | LeaseLost | Over | TimerFired
)  # fmt: skip
