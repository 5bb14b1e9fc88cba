"""The frames that wait to be sent on a socket."""

import asyncio
from collections import deque

from starlette.websockets import WebSocket

from ...limits import Limits

_MAX_WAITING_BYTES = 8 * 1024 * 1024  # for one client: a minute of voice, and more text than anybody reads

_MAX_JOINED_VOICE_BYTES = 9600  # 200 ms at 24 kHz: an interruption still comes in time


class Outbox:
    """Frames in order. `put` never waits; a writer that can wait calls `wait_for_room` first."""

    def __init__(self, websocket: WebSocket, limits: Limits) -> None:
        self._websocket = websocket
        self._limits = limits
        self._waiting: deque[str | bytes] = deque()
        self._waiting_bytes = 0
        self._sending_since: float | None = None
        self._ready = asyncio.Event()
        self._sent = asyncio.Event()
        self.is_stuck = asyncio.Event()
        """The client reads too slowly: its socket is to be closed."""

    def put(self, frame: str | bytes) -> None:
        if self.is_stuck.is_set():
            return
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)
        self._ready.set()
        if self._waiting_bytes > _MAX_WAITING_BYTES:
            self.is_stuck.set()

    def drop_audio(self) -> None:
        """Voice that is not sent yet is not wanted any more."""
        kept = [frame for frame in self._waiting if isinstance(frame, str)]
        self._waiting = deque(kept)
        self._waiting_bytes = sum(len(frame) for frame in kept)

    async def wait_for_room(self) -> None:
        while self._waiting_bytes > self._limits.max_send_bytes:
            self._sent.clear()
            await self._sent.wait()

    async def flush(self, patience_s: float) -> None:
        """Raises a TimeoutError if the client takes nothing for so long."""
        while self._waiting or self._sending_since is not None:
            self._sent.clear()
            async with asyncio.timeout(patience_s):
                await self._sent.wait()

    async def send_all(self) -> None:
        """Until the client has disconnected."""
        loop, socket = asyncio.get_running_loop(), self._websocket
        self._watch()
        try:
            while True:
                while not self._waiting:
                    self._ready.clear()
                    await self._ready.wait()
                frame = self._take()
                self._waiting_bytes -= len(frame)
                self._sending_since = loop.time()
                await (socket.send_text(frame) if isinstance(frame, str) else socket.send_bytes(frame))
                self._sending_since = None
                self._sent.set()
        finally:
            self._watcher.cancel()

    def _watch(self) -> None:
        """One timer for all frames: one for each would cost more than sending it."""
        loop, timeout_s = asyncio.get_running_loop(), self._limits.send_timeout_s
        since = loop.time() if self._sending_since is None else self._sending_since
        if loop.time() >= since + timeout_s:
            self.is_stuck.set()
        else:
            self._watcher = loop.call_at(since + timeout_s, self._watch)

    def _take(self) -> str | bytes:
        """The next frame. Voice that waits is joined: a socket's cost is per frame, not per byte."""
        frame = self._waiting.popleft()
        if isinstance(frame, str) or not self._waiting:
            return frame
        pieces, size = [frame], len(frame)
        while self._waiting and isinstance(more := self._waiting[0], bytes):
            size += len(more)
            if size > _MAX_JOINED_VOICE_BYTES:
                break
            pieces.append(more)
            self._waiting.popleft()
        return b"".join(pieces)
