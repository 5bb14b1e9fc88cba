"""What is to be done in a live session: the effects of `live_turns.py`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .call_record import CallKey

QUIET_S = 1
"""A model that may go on talking while somebody is asked gets this long before the segment ends."""
SILENT_S = 30
"""A model that has a tool's result, and has ended only the turn in which it called the tool, gets this long."""


class End(StrEnum):
    """How a segment ends."""

    FINISH = "finish"
    """The answer is complete, or it waits for somebody."""
    INTERRUPTED = "interrupted"
    """The user wants to hear no more of it."""
    LOST = "lost"
    """The connection to the model was lost, and the model does not go on."""
    UNSENT = "unsent"
    """The user's words could not be given to the model."""
    RUN = "run"
    """The session is over: it ends as the session does."""


class Why(StrEnum):
    """Why a call is refused that nobody has refused."""

    SUPERSEDED = "superseded: the user wrote something else instead"
    STOPPED = "the user stopped the session"
    UNSEEN = "nobody could be shown this call"


@dataclass(frozen=True, slots=True)
class Timer:
    """Each start makes a new one, with a new serial. So a timer that fires late is known, and ignored."""

    name: str
    message: str
    serial: int


# -- segments -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Belongs:
    """Before the event is stored: it gets its place in our messages."""

    event_id: str
    message: str | None
    step: str
    is_over: bool = False
    """The message is complete with this event."""
    over_before: str | None = None
    """A message that was interrupted, and turns out to be over before this event."""


@dataclass(frozen=True, slots=True)
class Open:
    """A new segment of this message, the first or the next. `answered`: calls whose answers it goes on after. All
    others are shown as before, even if their records have changed meanwhile."""

    message: str
    answered: frozenset[CallKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Write:
    """Emit the event into the open segment."""

    message: str
    event_id: str
    plays: bool = True
    """Its voice is to be heard."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Show a call that ADK has no event of."""

    message: str
    call: CallKey
    outer: CallKey


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Show the result of a call before ADK has an event of it."""

    message: str
    call: CallKey
    response: Any = None


@dataclass(frozen=True, slots=True)
class Close:
    message: str
    end: End
    at_work: frozenset[CallKey] = frozenset()
    """Calls whose tools go on beside the conversation."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing more comes of this message."""

    message: str


# -- clients --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notify:
    """Notify the listeners that this message goes on or begins."""

    message: str


@dataclass(frozen=True, slots=True)
class Hear:
    """Send the listeners what the user has said, as this event has it."""

    message: str
    event_id: str


@dataclass(frozen=True, slots=True)
class ClearVoice:
    pass


# -- calls, the model, time -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """Give the user's words to the model."""

    message: str


@dataclass(frozen=True, slots=True)
class Refuse:
    call: CallKey
    why: Why


@dataclass(frozen=True, slots=True)
class TellPending:
    """Notify the model that this call waits for somebody. That is no result: it is neither stored nor shown."""

    call: CallKey


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Record that the model has taken this call back, unless its tool has begun."""

    call: CallKey


@dataclass(frozen=True, slots=True)
class Deliver:
    """Store the recorded outcome of a call that ADK waits for no more, emit it, and give it to the model."""

    message: str
    call: CallKey


@dataclass(frozen=True, slots=True)
class StoreResult:
    """Store and emit the result of a tool that ADK has given up, or what became of a call that the model took back from
    the client. The model does not get it."""

    message: str
    call: CallKey
    response: Any = None
    is_shown: bool = False
    """Clients have it: it is only stored."""


@dataclass(frozen=True, slots=True)
class Wake:
    """Calls that wait are to look for their answers."""


@dataclass(frozen=True, slots=True)
class StartTimer:
    timer: Timer
    seconds: float


Effect = (
    Belongs | Open | Write | Announce | WriteResult | Close | Forget
    | Notify | Hear | ClearVoice
    | Send | Refuse | TellPending | Withdraw | Deliver | StoreResult | Wake | StartTimer
)  # fmt: skip
WRITES = (Send, Refuse, TellPending, Withdraw, Deliver, StoreResult)
"""Effects that change the chat, its records or what the model knows. A session that has lost its lease has none."""
