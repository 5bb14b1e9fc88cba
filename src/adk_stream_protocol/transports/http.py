"""HTTP: a request's bytes in, a UI message stream or a JSON refusal out."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from ..bridge import ChatBridge
from ..chat.turns import Opened
from ..chunk_log import Reading
from ..errors import BridgeError, LocalProtocolError, WrongMediaType
from ..limits import Limits
from ..protocol import sse
from ..protocol.replay import replayed
from ..protocol.turn import BodyMeter

logger = logging.getLogger(__name__)

NOT_KEPT = "private, no-store"
"""By caches: for all answers but streams and files."""

Endpoint = Callable[[Request], Awaitable[Response]]


async def respond(bridge: ChatBridge, request: Request) -> Response:
    """One turn, whatever comes of it: this never raises."""
    return await answering(bridge, request, _turn(bridge, request))


async def _turn(bridge: ChatBridge, request: Request) -> Response:
    user = await bridge.identify(request)
    body = await _read_body(request, bridge.limits)
    opened = await bridge.open_turn(request, user, body, request.url.path.rstrip("/"))
    return EventStreamResponse(opened, bridge.limits)


def resume(bridge: ChatBridge, request: Request, user: str, chat_id: str) -> Response:
    """The running turn, from its start or after the cursor that the client names; 204 when nothing runs."""
    log = bridge.running(user, chat_id, request.query_params.get("message"))
    if log is None:
        return Response(status_code=204)
    cursor = sse.decode_cursor(request.headers.get("last-event-id"), log.segment)
    cursor = cursor if cursor is None or cursor <= len(log) else None
    return EventStreamResponse(Reading(log, is_replay=True), bridge.limits, cursor=cursor)


async def answering(bridge: ChatBridge, request: Request, work: Awaitable[Response]) -> Response:
    """The work's answer, or the refusal that it raised; with the headers that every answer has."""
    try:
        response = await work
    except BridgeError as error:
        response = refusal(error)
    except ClientDisconnect:
        response = Response(status_code=400)  # nobody reads it
    except Exception as error:
        logger.error("request failed: %s", type(error).__qualname__)
        logger.debug("details", exc_info=error)
        response = refusal(BridgeError())
    response.headers.setdefault("cache-control", NOT_KEPT)  # chats are nobody else's, and change
    response.headers.update(bridge.access.cors_headers(request.headers))
    return response


def refusal(error: BridgeError) -> Response:
    headers = {"cache-control": NOT_KEPT}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    message = error.public_text if isinstance(error, LocalProtocolError) else str(error)
    return JSONResponse({"error": {"code": error.code, "message": message}}, error.status, headers)


async def _read_body(request: Request, limits: Limits) -> bytes:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # Nothing is decompressed: a small body that unpacks to gigabytes has no business here.
    if media_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise WrongMediaType
    meter = BodyMeter(limits)
    pieces: list[bytes] = []
    async for piece in request.stream():
        meter.feed(piece)
        pieces.append(piece)
    return b"".join(pieces)


class EventStreamResponse(Response):
    """Reads a log to its end. When the client leaves, only the reading ends."""

    def __init__(self, opened: Opened, limits: Limits, *, cursor: int | None = None) -> None:
        """`opened`: what is read, or what will be; until then there are pings. `cursor`: where a reader goes on."""
        # Not Response.__init__: it would announce a content length.
        self.status_code = 200
        self.background = None
        self.init_headers(sse.HEADERS)
        self._opened = opened
        self._limits = limits
        self._cursor = cursor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        waker = asyncio.Event()
        gone = asyncio.create_task(_until_disconnect(receive))
        gone.add_done_callback(lambda _: waker.set())
        timer = _ReaderTimer(self._limits, waker)
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
        except OSError:
            pass  # the connection broke while we wrote; the run does not care
        except asyncio.CancelledError:
            if not timer.has_cut_off:
                raise
        finally:
            if watched is not None:
                watched.unwatch(waker)
            timer.stop()
            gone.cancel()

    async def _reading(
        self, send: Send, waker: asyncio.Event, gone: asyncio.Task[None], timer: "_ReaderTimer"
    ) -> Reading | None:
        """What there is to read, when there is; None if the client has left before."""
        opened = self._opened
        if isinstance(opened, Reading):
            return opened
        opened.add_done_callback(lambda _: waker.set())
        timer.ping_is_due = True  # the client hears at once that it is heard
        while not opened.done():
            await self._wait(send, waker, timer)
            if gone.done():
                return None
        return opened.result()

    async def _wait(self, send: Send, waker: asyncio.Event, timer: "_ReaderTimer") -> None:
        if timer.ping_is_due:
            with timer.sending():
                await send(_body(sse.PING, more=True))
        else:
            waker.clear()
            await waker.wait()

    async def _send_all(
        self, reading: Reading, send: Send, waker: asyncio.Event, gone: asyncio.Task[None], timer: "_ReaderTimer"
    ) -> None:
        log = reading.log
        segment = log.segment.encode()
        cursor = self._cursor or 0
        if reading.is_replay and self._cursor is None:
            cursor = len(log)
            events = replayed(log.earlier, log.since(0, sys.maxsize))
            for batch in _batches(segment, events, self._limits.max_send_bytes):
                with timer.sending():
                    await send(_body(batch, more=True))
        while not gone.done():
            chunks = log.since(cursor, self._limits.max_send_bytes)
            ends = log.is_closed and cursor + len(chunks) == len(log)
            if chunks or ends:
                body = sse.encode_events(segment, cursor, chunks)
                cursor += len(chunks)
                with timer.sending():
                    await send(_body(body + sse.DONE if ends else body, more=not ends))
                if ends:
                    return
            else:
                await self._wait(send, waker, timer)


def _batches(segment: bytes, events: Iterator[tuple[int | None, bytes]], max_bytes: int) -> Iterator[bytes]:
    batch: list[bytes] = []
    size = 0
    for place, chunk in events:
        batch.append(sse.encode_event(segment, place, chunk))
        size += len(chunk)
        if size >= max_bytes:
            joined = b"".join(batch)
            batch, size = [], 0  # before the reader takes its time
            yield joined
    yield b"".join(batch)


def _body(data: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _ReaderTimer:
    """Wakes a reader after a silence, and cuts one off that does not take what it is sent. One timer, none a chunk."""

    def __init__(self, limits: Limits, waker: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._limits = limits
        self._waker = waker
        self._is_sending = False
        self._since = self._loop.time()
        self._timer = self._loop.call_later(self._interval_s, self._tick)
        self.ping_is_due = False
        self.has_cut_off = False

    @property
    def _interval_s(self) -> float:
        return min(self._limits.ping_interval_s, self._limits.send_timeout_s)

    @contextmanager
    def sending(self) -> Generator[None]:
        self._is_sending, self._since = True, self._loop.time()
        yield
        self._is_sending, self._since, self.ping_is_due = False, self._loop.time(), False

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        quiet_s = self._loop.time() - self._since
        if self._is_sending and quiet_s >= self._limits.send_timeout_s and self._task is not None:
            self.has_cut_off = True
            self._task.cancel()
            return
        if not self._is_sending and quiet_s >= self._limits.ping_interval_s:
            self.ping_is_due = True
            self._waker.set()
        self._timer = self._loop.call_later(self._interval_s, self._tick)


def endpoint(bridge: ChatBridge, work: Endpoint) -> Endpoint:
    """A route's function whose failures become answers."""

    @wraps(work)
    async def answered(request: Request) -> Response:
        return await answering(bridge, request, work(request))

    return answered
