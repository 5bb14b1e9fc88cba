"""The connection under a request, for clients that have stopped reading.

ASGI cannot drop a connection. When an application returns, uvicorn closes the transport, which first waits until the
client has read the write buffer. If the client never reads, the socket and the buffer stay for ever. So we look for
uvicorn's own object behind `receive` and `send`, through any middleware around them, and abort its transport. On other
servers nothing is found, and nothing is done.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, cast

_MAX_OBJECTS = 200  # each middleware has a handful
_NOTICE_S = 0.1


def find_transport(*channels: Callable[..., Any]) -> asyncio.Transport | None:
    """`channels`: the `receive` and `send` that the application was given."""
    to_visit: deque[Any] = deque(channels)
    seen: set[int] = set()
    while to_visit and len(seen) < _MAX_OBJECTS:
        found = to_visit.popleft()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if _is_of_uvicorn(cast(type[Any], type(found))):
            transport = getattr(found, "transport", None)
            if transport is not None:
                return transport
        to_visit += _objects_behind(found)
    return None


@lru_cache
def _is_of_uvicorn(kind: type[Any]) -> bool:
    return any(base.__module__.startswith("uvicorn.") for base in kind.__mro__)


def _objects_behind(found: Any) -> Iterator[Any]:
    """What a callable may call: from its closure, its object and that object's attributes, or a `partial`."""
    if isinstance(found, partial):
        yield from (found.func, *found.args, *found.keywords.values())
        return
    for cell in getattr(found, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    owner = getattr(found, "__self__", None)
    if owner is not None and not isinstance(owner, type):
        yield owner
        yield from (value for value in getattr(owner, "__dict__", {}).values() if callable(value))


async def drop(*channels: Callable[..., Any]) -> None:
    """Abort the connection of a client that does not read."""
    transport = find_transport(*channels)
    if transport is not None:
        transport.abort()
        await asyncio.sleep(_NOTICE_S)  # uvicorn logs an error if the application returns before it has noticed


class Backlog:
    """The server's write buffer for one client, while `send` does not wait for it yet."""

    def __init__(self, *channels: Callable[..., Any]) -> None:
        self._transport = find_transport(*channels)
        self._left = 0
        self._taken_at = asyncio.get_running_loop().time()
        self.added = 0
        """Bytes that were sent since the last look at the buffer."""

    def limit(self, max_bytes: int) -> None:
        """`send` waits for the client while there is more in the buffer. The servers' own limit is 64 KiB."""
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=max_bytes)

    def stuck_s(self) -> float:
        """For how long the client has read nothing of it; to be called at intervals."""
        left = self._transport.get_write_buffer_size() if self._transport is not None else 0
        now = asyncio.get_running_loop().time()
        if not left or left < self._left + self.added:
            self._taken_at = now
        self._left, self.added = left, 0
        return now - self._taken_at

    def drop_when_stuck(self, within_s: float) -> None:
        """After the last `send`: abort the connection if the client reads nothing of the buffer for `within_s`."""
        if self._transport is not None:
            _abort_if_stuck(self._transport, within_s, None)


def drop_when_stuck(within_s: float, *channels: Callable[..., Any]) -> None:
    """As `Backlog.drop_when_stuck`, where nobody has watched the buffer."""
    Backlog(*channels).drop_when_stuck(within_s)


def _abort_if_stuck(transport: asyncio.Transport, within_s: float, before: int | None) -> None:
    left = transport.get_write_buffer_size()
    if left and before is not None and left >= before:
        transport.abort()
    elif left:
        asyncio.get_running_loop().call_later(within_s, _abort_if_stuck, transport, within_s, left)


async def until_closing(look_s: float, *channels: Callable[..., Any]) -> None:
    """Wait until the server itself closes the connection. It notifies the application only after the client has read
    everything."""
    transport = find_transport(*channels)
    if transport is None:
        await asyncio.Event().wait()
    while transport is not None and not transport.is_closing():  # noqa: ASYNC110 (a transport notifies nobody)
        await asyncio.sleep(look_s)
