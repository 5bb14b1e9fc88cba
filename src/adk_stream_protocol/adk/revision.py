"""The revision of a session: it changes with every event, and can be read without the session's events.

ADK has no number for it. Its own services date a session with the event that they have stored last, and return the
newest events alone. If the event that was stored last is certainly among these, no earlier state of the session had
the same events there.
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
    return all(getattr(getattr(service, name), "__module__", None) in _KNOWN for name in _METHODS)


def revision_of(session: Session) -> Sequence[Any] | None:
    """The same for a whole session and for its `RECENT` events. None if a new event could be missed."""
    recent, stored_at = session.events[-RECENT:], session.last_update_time
    if not recent:
        return []
    # The session has the date of the event that was stored last. Databases sort events by their dates, and this one may
    # be dated before others. It is among these if all that are not older are among these.
    if len(recent) == RECENT and recent[0].timestamp > stored_at - 2 * _TICK_S:
        return None
    if not any(abs(event.timestamp - stored_at) <= _TICK_S for event in recent):
        return None
    return [(event.id, event.timestamp) for event in recent]
