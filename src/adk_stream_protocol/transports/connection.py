"""The connection under a request, for readers that take nothing any more.

ASGI cannot drop a connection. When an application returns, uvicorn closes the transport, and that waits for its buffer
to be taken: for a client that does not read, for ever, with its socket and all that was written to it. So we look for
uvicorn's own object behind `receive` and `send`, whatever middleware has put around them, and abort its transport.
On other servers nothing is found, and nothing is done.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

_MOST_LOOKED_AT = 200  # objects: a stack of middleware has a handful each
_NOTICED_S = 0.1


def find_transport(*channels: Callable[..., Any]) -> asyncio.Transport | None:
    """`channels`: what the application was given to receive and to send."""
    waiting: deque[Any] = deque(channels)
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_LOOKED_AT:
        found = waiting.popleft()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if any(base.__module__.startswith("uvicorn.") for base in type(found).__mro__):
            transport = getattr(found, "transport", None)
            if transport is not None:
                return transport
        waiting += _behind(found)
    return None


def _behind(found: Any) -> Iterator[Any]:
    """What a callable calls: in a closure, as a method, by a `partial`, or as an attribute of its object."""
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
    """Give up a client that takes nothing."""
    transport = find_transport(*channels)
    if transport is not None:
        transport.abort()
        await asyncio.sleep(_NOTICED_S)  # the server complains of an application that returns before it knows


class Backlog:
    """What the server still holds for a client, whom it does not wait for yet."""

    def __init__(self, *channels: Callable[..., Any]) -> None:
        self._channels = channels
        self._transport: asyncio.Transport | None = None
        self._left = 0
        self._taken_at = asyncio.get_running_loop().time()
        self.added = 0
        """Bytes that were sent since it was looked at."""

    def stuck_s(self) -> float:
        """For how long nothing of it has been taken; to be asked now and then."""
        self._transport = self._transport or find_transport(*self._channels)
        left = self._transport.get_write_buffer_size() if self._transport is not None else 0
        now = asyncio.get_running_loop().time()
        if not left or left < self._left + self.added:
            self._taken_at = now
        self._left, self.added = left, 0
        return now - self._taken_at


def drop_when_stuck(within_s: float, *channels: Callable[..., Any]) -> None:
    """All has been sent, and the server waits for its client to take it. Drop the connection if it takes nothing for a
    while."""
    transport = find_transport(*channels)
    if transport is not None:
        _look(transport, within_s, None)


def _look(transport: asyncio.Transport, within_s: float, before: int | None) -> None:
    left = transport.get_write_buffer_size()
    if left and before is not None and left >= before:
        transport.abort()
    elif left:
        asyncio.get_running_loop().call_later(within_s, _look, transport, within_s, left)


async def until_closing(look_s: float, *channels: Callable[..., Any]) -> None:
    """Until the server has given the connection up by itself: of that it tells the application only when its client
    has taken everything."""
    transport = find_transport(*channels)
    if transport is None:
        await asyncio.Event().wait()
    while transport is not None and not transport.is_closing():  # noqa: ASYNC110 (a transport tells nobody)
        await asyncio.sleep(look_s)
