"""What goes to a live model: ADK's own queue, with a bound on voice and an eye on who takes from it."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from google.adk.agents.live_request_queue import LiveRequest, LiveRequestQueue
from google.genai import types

INPUT_RATE = 16_000
_BYTES_PER_SECOND = INPUT_RATE * 2
_MOST_AT_ONCE_BYTES = _BYTES_PER_SECOND // 10  # a tenth of a second: models want voice in small pieces
_INPUT_TYPE = f"audio/pcm;rate={INPUT_RATE}"


class LiveInput(LiveRequestQueue):
    """If ADK is too slow, the oldest voice is dropped, and counted. Nothing else is ever dropped.

    ADK reads the queue in a task of its own, and in a new task after every reconnection. It does not report when such a
    task dies, but the queue notices it: see `untaken_s`.
    """

    def __init__(self, max_audio_s: float) -> None:
        super().__init__()
        self._waiting: deque[LiveRequest] = deque()
        self._ready = asyncio.Event()
        self._max_audio_bytes = int(max_audio_s * _BYTES_PER_SECOND)
        self._audio_bytes = 0
        self._closed_by_us = False
        self._takers = 0
        self._in_flight: tuple[LiveRequest, asyncio.Task[Any] | None] | None = None
        self._untaken_since: float | None = None
        self.dropped_audio_frames = 0
        self.on_response: Callable[[], object] = lambda: None
        """Called after each result of a tool."""

    # -- ADK's side ---------------------------------------------------------------------------------------------------

    async def get(self) -> LiveRequest:
        self._take_back()
        self._takers += 1
        try:
            while not self._waiting:
                self._ready.clear()
                await self._ready.wait()
        finally:
            self._takers -= 1
        taken = self._take()
        self._untaken_since = asyncio.get_running_loop().time() if self._waiting else None
        self._in_flight = taken, asyncio.current_task()
        return taken

    def _take(self) -> LiveRequest:
        """The next request. Frames of voice that have gathered go together: ADK's work is by the piece."""
        taken = self._waiting.popleft()
        if taken.blob is None:
            return taken
        blobs = [taken.blob]
        size = _audio_bytes(taken)
        while self._waiting and (more := self._waiting[0].blob) is not None:
            size += _audio_bytes(self._waiting[0])
            if size > _MOST_AT_ONCE_BYTES or more.mime_type != taken.blob.mime_type:
                break
            blobs.append(more)
            self._waiting.popleft()
        whole = b"".join(blob.data or b"" for blob in blobs)
        self._audio_bytes -= len(whole)
        if len(blobs) == 1:
            return taken
        return LiveRequest(blob=types.Blob(data=whole, mime_type=taken.blob.mime_type))

    def _take_back(self) -> None:
        """The task that took the last request has sent it before it comes back. If another task comes, the connection
        was lost, and the request perhaps with it. A tool's result is then sent again: the model waits for it."""
        in_flight, self._in_flight = self._in_flight, None
        if in_flight is not None and in_flight[1] is not asyncio.current_task() and _is_response(in_flight[0].content):
            self._waiting.appendleft(in_flight[0])

    @property
    def closed(self) -> bool:
        return self._closed_by_us

    def close(self) -> None:
        self._closed_by_us = True
        self._put(LiveRequest(close=True))

    def send_content(self, content: types.Content, partial: bool = False) -> None:
        self._put(LiveRequest(content=content, partial=partial))
        if _is_response(content):
            self.on_response()

    def send_realtime(self, blob: types.Blob) -> None:
        self._put(LiveRequest(blob=blob))

    def send_activity_start(self) -> None:
        self._put(LiveRequest(activity_start=types.ActivityStart()))

    def send_activity_end(self) -> None:
        self._put(LiveRequest(activity_end=types.ActivityEnd()))

    def send_audio_stream_end(self) -> None:
        self._put(LiveRequest(audio_stream_end=True))

    def send(self, req: LiveRequest) -> None:
        self._closed_by_us = self._closed_by_us or req.close
        self._put(req)

    # -- ours ---------------------------------------------------------------------------------------------------------

    def say(self, content: types.Content, state_delta: dict[str, Any] | None) -> None:
        self._put(LiveRequest(content=content, state_delta=state_delta))

    def tell_pending(self, content: types.Content) -> None:
        """Not a result: `on_response` is not called."""
        self._put(LiveRequest(content=content))

    def send_voice(self, samples: bytes) -> None:
        blob = types.Blob.model_construct(data=samples, mime_type=_INPUT_TYPE)  # validation takes twice as long
        self._put(LiveRequest(blob=blob))
        while self._audio_bytes > self._max_audio_bytes:
            oldest = next(request for request in self._waiting if request.blob is not None)
            self._waiting.remove(oldest)
            self._audio_bytes -= _audio_bytes(oldest)
            self.dropped_audio_frames += 1

    def untaken_s(self) -> float:
        """For how long something has been waiting here with nobody coming for it."""
        if self._untaken_since is None or self._takers:
            return 0
        return asyncio.get_running_loop().time() - self._untaken_since

    def _put(self, request: LiveRequest) -> None:
        self._waiting.append(request)
        self._audio_bytes += _audio_bytes(request)
        if self._untaken_since is None:
            self._untaken_since = asyncio.get_running_loop().time()
        self._ready.set()


def _is_response(content: types.Content | None) -> bool:
    return content is not None and any(part.function_response for part in content.parts or ())


def _audio_bytes(request: LiveRequest) -> int:
    return len(request.blob.data or b"") if request.blob is not None else 0
