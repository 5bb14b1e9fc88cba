"""What request runs and live runs have in common, so that code outside `adk/` treats them alike."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..chunk_log import ChunkLog
from ..limits import Limits
from ..protocol.call_record import CallKey, CallRecord, ChatKey
from ..store.base import Store
from .calls.leased_chat import LeasedChat
from .live_listener import LiveListener
from .session import Chat, MessageIds

RESTARTING = "The server restarts. Resume this answer, or ask for it again."
LEASE_LOST = "The server lost this chat to another one. Resume this answer, or ask for it again."

STOP_GRACE_S = 1
"""How long ADK may take to end a run by itself. Some agents do not look at the abort signal while their model is
silent, and some tools never do."""


@dataclass(frozen=True, kw_only=True)
class AnsweredCalls:
    """Answers of a client to calls of one message, as they are recorded."""

    message_id: str
    start_id: str
    """What the client calls the message."""
    calls: frozenset[CallKey]
    """Those without a result in the session."""
    known_outputs: Collection[CallKey]
    """Those whose output the client has sent itself."""
    records: Mapping[CallKey, CallRecord]
    by: LiveListener | None = None
    """The socket that the answers came by."""


class Run(Protocol):
    """One execution of the agent in one chat, from its lease to its last chunk."""

    @property
    def leased(self) -> LeasedChat: ...

    @property
    def log(self) -> ChunkLog | None:
        """The open segment."""
        ...

    @property
    def message_id(self) -> str | None:
        """The assistant's message of the open segment."""
        ...

    @property
    def asked_by(self) -> MessageIds | None:
        """Of the one user message that the whole run answers. A live run answers many: None."""
        ...

    @property
    def answered(self) -> frozenset[CallKey]:
        """Calls whose answers it was started with."""
        ...

    def log_of(self, message_id: str) -> ChunkLog | None:
        """The last segment of one of its messages."""
        ...

    def accepts(self, calls: frozenset[CallKey]) -> bool:
        """Whether this run acts on answers to these calls."""
        ...

    def has_shown(self, calls: frozenset[CallKey]) -> bool:
        """Whether clients have the results of these calls, so that the run has no more to do for them."""
        ...

    async def continue_message(self, answered: AnsweredCalls) -> ChunkLog | None:
        """Act on the answers. Gives the segment that shows what comes of them; None if another run must."""
        ...

    async def take_work(self, record: CallRecord) -> bool:
        """The application has reported how far a long-running call is, or its end. True if the model has the end."""
        ...

    async def is_abandoned(self, within_s: float) -> bool:
        """Whether nobody reads the run any more, so that a new turn may end it."""
        ...

    async def end_when_idle(self) -> None:
        """Somebody waits for the chat: end as soon as the run does nothing but wait for its user."""
        ...

    async def stop(self) -> None:
        """End the run now. When this returns, the next turn may come."""
        ...

    async def stop_after_tools(self) -> None:
        """As `stop`, but started tools finish first."""
        ...

    async def drain(self) -> None:
        """The server shuts down. Started tools finish, nothing else starts, and the rest stays as it is."""
        ...

    async def lose_lease(self) -> None:
        """Another worker has the chat. This run writes nothing more into it."""
        ...


class RunOwner(Protocol):
    async def run_ended(self, run: Run) -> None:
        """Release the run's lease. A run calls this before its last chunk, since a client may send its next turn at
        once. May be called twice, and never raises."""
        ...

    def keep_log(self, chat: ChatKey, message_id: str, log: ChunkLog) -> None:
        """A live session is done with this message. Clients that were told of its last segment may be about to read
        it."""
        ...

    def segment_opened(self, run: Run) -> None:
        """Its message goes on in a new segment."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Where a run takes place."""

    chat: Chat
    leased: LeasedChat
    store: Store
    limits: Limits
    owner: RunOwner
