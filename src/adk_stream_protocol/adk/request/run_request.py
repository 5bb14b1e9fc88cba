"""What a request run is started with, and what refuses it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.genai import types

from ...protocol.call_record import CallKey
from ...protocol.chunks import AnyChunk
from ..session import MessageIds


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What to run."""

    ids: MessageIds
    opening: Sequence[AnyChunk]
    """With which the segment begins."""
    contents: Sequence[types.Content]
    """One run of ADK's for each. None: there is nothing to tell ADK yet."""
    run_config: RunConfig
    state_delta: dict[str, Any] | None = None
    appended: Sequence[Event] = ()
    """What is put into the session first."""
    answered: frozenset[CallKey] = frozenset()
    """The calls whose answers this run takes up."""
    asked_by: MessageIds | None = None
    """Of the user's message, where the segment is not the first that answers it."""
    needs_reader: bool = True
    """Whether it ends when nobody reads it for a while."""
    outputs: frozenset[CallKey] = frozenset()
    """Those of them whose results are in `appended` or `contents`."""


class SaidBefore(BaseException):
    """The session has the user's message already. Not an `Exception`: ADK would take it for a failure of a plugin, and
    log it as one."""

    def __init__(self, message_id: str, *, is_same: bool) -> None:
        super().__init__()
        self.message_id = message_id
        """Of the answer to it."""
        self.is_same = is_same
