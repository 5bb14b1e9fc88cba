"""HTTP: a request's bytes in, a UI message stream or a JSON refusal out."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from ..bridge import ChatBridge
from ..chunk_log import ChunkLog
from ..errors import BridgeError, RunActive, WrongMediaType
from ..limits import Limits
from ..protocol import sse
from ..protocol.turn import BodyMeter
from .security import cors_headers

logger = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


async def respond(bridge: ChatBridge, request: Request) -> Response:
    """One turn, whatever comes of it: this never raises."""
    return await answering(bridge, request, _turn(bridge, request))


async def _turn(bridge: ChatBridge, request: Request) -> Response:
    user = await bridge.identify(request)
    body = await _read_body(request, bridge.limits)
    log = await bridge.open_turn(request, user, body, request.url.path.rstrip("/"))
    return EventStreamResponse(log, bridge.limits)


async def answering(bridge: ChatBridge, request: Request, work: Awaitable[Response]) -> Response:
    """The work's answer, or the refusal that it raised; with the headers that every answer has."""
    try:
        response = await work
    except BridgeError as error:
        response = _refusal(error)
    except ClientDisconnect:
        response = Response(status_code=400)  # nobody reads it
    except Exception as error:
        logger.error("request failed: %s", type(error).__qualname__)
        logger.debug("details", exc_info=error)
        response = _refusal(BridgeError())
    response.headers.update(cors_headers(request.headers, bridge.allowed_origins))
    return response


def _refusal(error: BridgeError) -> Response:
    headers = {"retry-after": str(error.retry_after_s)} if isinstance(error, RunActive) else None
    return JSONResponse({"error": {"code": error.code, "message": str(error)}}, error.status, headers)


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

    def __init__(self, log: ChunkLog, limits: Limits, *, cursor: int = 0) -> None:
        # Not Response.__init__: it would announce a content length.
        self.status_code = 200
        self.background = None
        self.init_headers(sse.HEADERS)
        self._log = log
        self._ping_interval_s = limits.ping_interval_s
        self._cursor = cursor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        waker = asyncio.Event()
        gone = asyncio.create_task(_until_disconnect(receive))
        gone.add_done_callback(lambda _: waker.set())
        pinger = _Pinger(self._ping_interval_s, waker)
        self._log.watch(waker)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await self._send_all(send, waker, gone, pinger)
        except OSError:
            pass  # the connection broke while we wrote; the run does not care
        finally:
            self._log.unwatch(waker)
            pinger.stop()
            gone.cancel()

    async def _send_all(self, send: Send, waker: asyncio.Event, gone: asyncio.Task[None], pinger: "_Pinger") -> None:
        segment = self._log.segment.encode()
        while not gone.done():
            chunks = self._log.since(self._cursor)
            ends = self._log.is_closed
            if chunks or ends:
                body = sse.encode_events(segment, self._cursor, chunks)
                self._cursor += len(chunks)
                await send(_body(body + sse.DONE if ends else body, more=not ends))
                if ends:
                    return
                pinger.reset()
            elif pinger.is_due:
                await send(_body(sse.PING, more=True))
                pinger.reset()
            else:
                waker.clear()
                await waker.wait()


def _body(data: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Pinger:
    """Wakes the reader after a silence. One timer a silence, none a chunk."""

    def __init__(self, interval_s: float, waker: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._interval_s = interval_s
        self._waker = waker
        self._last = self._loop.time()
        self._timer = self._loop.call_later(interval_s, self._tick)
        self.is_due = False

    def reset(self) -> None:
        self._last = self._loop.time()
        self.is_due = False

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        left = self._last + self._interval_s - self._loop.time()
        if left <= 0:
            self.is_due = True
            self._waker.set()
            left = self._interval_s
        self._timer = self._loop.call_later(left, self._tick)


def endpoint(bridge: ChatBridge, work: Endpoint) -> Endpoint:
    """A route's function whose failures become answers."""

    @wraps(work)
    async def answered(request: Request) -> Response:
        return await answering(bridge, request, work(request))

    return answered
