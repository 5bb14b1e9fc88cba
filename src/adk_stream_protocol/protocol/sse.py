"""Server-sent events: what one chunk looks like on the wire of HTTP."""

from collections.abc import Sequence

# What the AI SDK's own servers send, and `no-transform`. Clients check none of it; proxies do. Some proxies delay a
# stream unless a header forbids to transform it (Next.js) or to buffer it (nginx).
HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
_EVENT = b"id: %b-%d\ndata: %b\n\n"

_MAX_ID_LENGTH = 100  # ours are shorter


def encode_events(segment: bytes, events: Sequence[tuple[int | None, bytes]]) -> bytes:
    """Chunks, each with its place in the log."""
    if len(events) == 1:  # nearly always, and the rest would cost more than the encoding
        place, chunk = events[0]
        if place is not None:
            return _EVENT % (segment, place, chunk)
    return b"".join([encode_event(segment, place, chunk) for place, chunk in events])


def encode_event(segment: bytes, place: int | None, chunk: bytes) -> bytes:
    """The id is a cursor: `Last-Event-ID` continues after it. Clients of the AI SDK ignore it."""
    return b"data: " + chunk + b"\n\n" if place is None else _EVENT % (segment, place, chunk)


def decode_cursor(last_event_id: str | None, segment: str) -> int | None:
    """Where a reader continues that has read up to this id; None if the id is not of this segment."""
    if last_event_id is None or len(last_event_id) > _MAX_ID_LENGTH:
        return None
    named, _, place = last_event_id.rpartition("-")
    if named != segment or not (place.isascii() and place.isdigit() and len(place) < 10):
        return None
    return int(place) + 1
