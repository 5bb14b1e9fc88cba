"""The revision of a session: it changes with every event, and can be read without the session's events.

ADK has no number for it. Its own services date a session with the event that they have stored last, and return the
newest events alone. Together these show each new event, if they are read with care: a clock may go back, and two
events may have the same time.
"""

from collections.abc import Sequence
from typing import Any

from google.adk.sessions import BaseSessionService, Session

RECENT = 8
"""How many events are looked at."""

_TICK_S = 2e-6  # databases keep microseconds
_KNOWN = frozenset(f"google.adk.sessions.{name}_session_service" for name in ("in_memory", "sqlite", "database"))
_METHODS = ("get_session", "append_event")


def has_revisions(service: BaseSessionService) -> bool:
    """Whether it stores and loads sessions as ADK's own services do. Others may do it in any way."""
    return all(getattr(type(service), name).__module__ in _KNOWN for name in _METHODS)


def revision_of(session: Session) -> Sequence[Any] | None:
    """The same for a whole session and for its `RECENT` events. None if a new event could be missed."""
    recent = session.events[-RECENT:]
    if not recent:
        return []
    newest = recent[-1].timestamp
    # Databases sort events by their time. If one that is dated back was stored last, it is further up.
    if abs(session.last_update_time - newest) > _TICK_S:
        return None
    # Of events with the same time, the one that was stored last may be further up, too.
    if len(recent) == RECENT and recent[0].timestamp >= newest - 2 * _TICK_S:
        return None
    return [(event.id, event.timestamp) for event in recent]
