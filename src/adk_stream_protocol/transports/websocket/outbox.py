"""What waits to be sent on a socket, and how much may come in on it."""

import asyncio
from collections import deque

from starlette.websockets import WebSocket

from ...errors import TooManyFrames
from ...limits import Limits

_MAX_WAITING_BYTES = 8 * 1024 * 1024  # of one client: a minute of voice, and more text than anybody reads

_MOST_VOICE_AT_ONCE_BYTES = 9600  # 200 ms at 24 kHz: an interruption still comes in time


class Outbox:
    """Frames in order. Whoever puts them in never waits; whoever could wait, asks for room first."""

    def __init__(self, websocket: WebSocket, limits: Limits) -> None:
        self._websocket = websocket
        self._limits = limits
        self._waiting: deque[str | bytes] = deque()
        self._waiting_bytes = 0
        self._ready = asyncio.Event()
        self._sent = asyncio.Event()
        self.is_full = asyncio.Event()
        """Its reader is too slow to be waited for."""

    def put(self, frame: str | bytes) -> None:
        if self.is_full.is_set():
            return
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)
        self._ready.set()
        if self._waiting_bytes > _MAX_WAITING_BYTES:
            self.is_full.set()

    def drop_audio(self) -> None:
        """Voice that was not sent yet is not wanted any more."""
        kept = [frame for frame in self._waiting if isinstance(frame, str)]
        self._waiting = deque(kept)
        self._waiting_bytes = sum(len(frame) for frame in kept)

    async def has_room(self) -> None:
        while self._waiting_bytes > self._limits.max_send_bytes:
            self._sent.clear()
            await self._sent.wait()

    async def flush(self) -> None:
        while self._waiting:
            self._sent.clear()
            await asyncio.wait_for(self._sent.wait(), self._limits.send_timeout_s)

    async def send_all(self) -> None:
        """Until the client is gone, or too slow."""
        while True:
            while not self._waiting:
                self._ready.clear()
                await self._ready.wait()
            frame = self._take()
            self._waiting_bytes -= len(frame)
            async with asyncio.timeout(self._limits.send_timeout_s):
                if isinstance(frame, str):
                    await self._websocket.send_text(frame)
                else:
                    await self._websocket.send_bytes(frame)
            self._sent.set()

    def _take(self) -> str | bytes:
        """The next frame. Voice that has gathered goes together: a socket's work is by the frame."""
        frame = self._waiting.popleft()
        if isinstance(frame, str) or not self._waiting:
            return frame
        pieces, size = [frame], len(frame)
        while self._waiting and isinstance(more := self._waiting[0], bytes):
            size += len(more)
            if size > _MOST_VOICE_AT_ONCE_BYTES:
                break
            pieces.append(more)
            self._waiting.popleft()
        return b"".join(pieces)


class FrameRate:
    """Two allowances: one for voice, one for everything else. Each fills up for ten seconds at most. Whoever has been
    refused as often as that has no ear for it."""

    _WINDOW_S = 10

    def __init__(self, limits: Limits) -> None:
        self._per_s = {"audio": limits.max_audio_frames_per_s, "other": limits.max_frames_per_s}
        self._left = {kind: float(per_s * self._WINDOW_S) for kind, per_s in self._per_s.items()}
        self._at = dict.fromkeys(self._per_s, asyncio.get_running_loop().time())
        self._refused = dict.fromkeys(self._per_s, 0)
        self.is_flood = False

    def count(self) -> None:
        self._take("other")

    def count_audio(self) -> None:
        self._take("audio")

    def _take(self, kind: str) -> None:
        now, per_s = asyncio.get_running_loop().time(), self._per_s[kind]
        self._left[kind] = min(per_s * self._WINDOW_S, self._left[kind] + (now - self._at[kind]) * per_s)
        self._at[kind] = now
        if self._left[kind] < 1:
            self._refused[kind] += 1
            self.is_flood = self._refused[kind] >= per_s * self._WINDOW_S
            raise TooManyFrames
        self._left[kind] -= 1
