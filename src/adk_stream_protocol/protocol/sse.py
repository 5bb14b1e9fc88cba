"""Server-sent events: what one chunk looks like on the wire of HTTP."""

from collections.abc import Sequence

# What the AI SDK's own servers send; clients check none of it, proxies care for the last.
HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"


def encode_events(segment: bytes, first: int, chunks: Sequence[bytes]) -> bytes:
    """Frame encoded chunks, numbered from `first`. The id is a cursor for `Last-Event-ID`; clients ignore it."""
    if len(chunks) == 1:  # as in encode_chunks
        return b"".join((b"id: ", segment, b"-%d\ndata: " % first, chunks[0], b"\n\n"))
    return b"".join([b"id: %b-%d\ndata: %b\n\n" % (segment, first + n, chunk) for n, chunk in enumerate(chunks)])
