"""Responses over HTTP: a stream, or a complete response. A client that does not read is cut off."""

import asyncio

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ..chat.background import Opened
from ..chat.closed_logs import failed_log
from ..chunk_log import LogReader, Reading
from ..errors import TooMany
from ..limits import Limits
from ..protocol import sse
from .connection import Backlog, drop, drop_when_stuck

_HEADERS = [(name.encode(), value.encode()) for name, value in sse.HEADERS.items()]


class EventStreamResponse(Response):
    """Reads a log to its end. When the client disconnects, only the reading ends, not the run."""

    def __init__(self, opened: Opened, limits: Limits, *, cursor: int | None = None) -> None:
        """`opened`: what is read, or a task for it; until it is done, pings are sent. `cursor`: where to begin."""
        # Not Response.__init__: it would announce a content length.
        self.status_code = 200
        self.background = None
        self.raw_headers = list(_HEADERS)
        self._opened = opened
        self._limits = limits
        self._cursor = cursor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        waker = asyncio.Event()
        gone = asyncio.create_task(_until_disconnect(receive))
        gone.add_done_callback(lambda _: waker.set())
        backlog = Backlog(receive, send)
        backlog.limit(self._limits.max_send_bytes)
        timer = _ReaderTimer(self._limits, waker, backlog)
        watched = self._opened.log if isinstance(self._opened, Reading) else None
        if watched is not None:
            watched.watch(waker)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            reading = await self._reading(send, waker, gone, timer)
            if reading is None:
                return
            if watched is None:
                watched = reading.log
                watched.watch(waker)
            await self._send_all(reading, send, waker, gone, timer)
            backlog.drop_when_stuck(self._limits.send_timeout_s)
        except OSError:
            pass  # the connection broke; the run goes on
        except asyncio.CancelledError:
            if not timer.has_cut_off:
                raise
            await drop(receive, send)
        finally:
            if watched is not None:
                watched.unwatch(waker)
            timer.stop()
            gone.cancel()

    async def _reading(
        self, send: Send, waker: asyncio.Event, gone: asyncio.Task[None], timer: "_ReaderTimer"
    ) -> Reading | None:
        """Waits for what there is to read; None if the client has disconnected before."""
        opened = self._opened
        if isinstance(opened, Reading):
            return opened
        opened.add_done_callback(lambda _: waker.set())
        timer.ping_is_due = True  # at once, so that the client knows its request has arrived
        while not opened.done():
            await self._wait(send, waker, timer)
            if gone.done():
                return None
        reading = opened.result()
        try:
            reading.log.require_room(self._limits.max_readers_per_run)
        except TooMany as refusal:  # the status is sent already
            return Reading(failed_log(None, str(refusal)))
        return reading

    async def _wait(self, send: Send, waker: asyncio.Event, timer: "_ReaderTimer") -> None:
        if timer.ping_is_due:
            timer.sends(sse.PING)
            await send(_body(sse.PING, more=True))
            timer.has_sent()
        else:
            waker.clear()
            await waker.wait()

    async def _send_all(
        self, reading: Reading, send: Send, waker: asyncio.Event, gone: asyncio.Task[None], timer: "_ReaderTimer"
    ) -> None:
        log = reading.log
        segment = log.segment.encode()
        replays_until = len(log) if reading.is_replay and self._cursor is None else None
        max_bytes = self._limits.max_send_bytes
        reader = LogReader(log, max_bytes, cursor=self._cursor or 0, replays_until=replays_until)
        while not gone.done():
            events = reader.take()
            ends = reader.is_at_end
            if events or ends:
                body = sse.encode_events(segment, events) + (sse.DONE if ends else b"")
                del events  # `send` may wait for long
                timer.sends(body)
                await send(_body(body, more=not ends))
                timer.has_sent()
                if ends:
                    return
            if reader.has_more:
                await asyncio.sleep(0)  # if the server has room, `send` lets no other task run
            elif not reader.is_at_end and not gone.done():
                await self._wait(send, waker, timer)


def _body(data: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _ReaderTimer:
    """Wakes a reader after a silence, and cuts off a client that does not read. One timer for all chunks."""

    def __init__(self, limits: Limits, waker: asyncio.Event, backlog: Backlog) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._limits = limits
        self._waker = waker
        self._backlog = backlog
        self._is_sending = False
        self._since = self._loop.time()
        self._timer = self._loop.call_later(self._interval_s, self._tick)
        self.ping_is_due = False
        self.has_cut_off = False

    @property
    def _interval_s(self) -> float:
        return min(self._limits.ping_interval_s, self._limits.send_timeout_s)

    def sends(self, data: bytes) -> None:
        self._backlog.added += len(data)
        self._is_sending, self._since = True, self._loop.time()

    def has_sent(self) -> None:
        self._is_sending = self.ping_is_due = False

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        quiet_s = self._loop.time() - self._since
        stuck_s = max(quiet_s if self._is_sending else 0, self._backlog.stuck_s())
        if stuck_s >= self._limits.send_timeout_s and self._task is not None:
            self.has_cut_off = True
            self._task.cancel()
            return
        if not self._is_sending and quiet_s >= self._limits.ping_interval_s:
            self.ping_is_due = True
            self._waker.set()
        self._timer = self._loop.call_later(self._interval_s, self._tick)


class BoundedResponse(Response):
    """Any other response, for clients that may be slow."""

    def __init__(self, response: Response, limits: Limits) -> None:
        # Not Response.__init__: everything is taken from `response`.
        self.status_code = response.status_code
        self.raw_headers = response.raw_headers
        self.background = response.background
        self._response = response
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def bounded_send(message: Message) -> None:
            async with asyncio.timeout(self._limits.send_timeout_s):
                await send(message)

        self._response.background = None  # it runs below, also after a timeout
        if scope["method"] == "HEAD":
            self._response.body = b""  # its headers are those of a GET
        try:
            await self._response(scope, receive, bounded_send)
        except TimeoutError:
            await drop(receive, send)
        else:
            drop_when_stuck(self._limits.send_timeout_s, receive, send)
        if self.background is not None:
            await self.background()
