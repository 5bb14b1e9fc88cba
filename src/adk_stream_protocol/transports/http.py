"""HTTP: the bytes of a request in, a UI message stream or a JSON refusal out."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from ..chat.caller import Caller
from ..chunk_log import Reading
from ..errors import BridgeError, LocalProtocolError, TooSlow, WrongMediaType
from ..limits import Limits
from ..protocol import sse
from ..protocol.body_meter import BodyMeter
from .event_stream import BoundedResponse, EventStreamResponse
from .surface import Surface

logger = logging.getLogger(__name__)

NO_STORE = "private, no-store"
"""Caches keep nothing: for all responses but streams, files, histories and lists."""

Endpoint = Callable[[Request], Awaitable[Response]]


async def respond(surface: Surface, request: Request) -> Response:
    """One turn. Never raises: a failure becomes a refusal."""
    return await respond_or_refuse(surface, request, _turn(surface, request))


async def _turn(surface: Surface, request: Request) -> Response:
    user = await surface.identify(request)
    with surface.unfinished.counting(user) as count:
        body = await read_body(request, surface.limits, count)
        opened = await surface.service.open_turn(Caller(request, user, request.url.path.rstrip("/")), body)
    if isinstance(opened, Reading):
        opened.log.require_room(surface.limits.max_readers_per_run)
    return EventStreamResponse(opened, surface.limits)


def resume(surface: Surface, request: Request, user: str, chat_id: str) -> Response:
    """The running turn, from its start or after the cursor that the client names; 204 when nothing runs."""
    log = surface.service.running(user, chat_id, request.query_params.get("message"))
    if log is None:
        return Response(status_code=204)
    log.require_room(surface.limits.max_readers_per_run)
    cursor = sse.decode_cursor(request.headers.get("last-event-id"), log.segment)
    cursor = cursor if cursor is None or cursor <= len(log) else None
    return EventStreamResponse(Reading(log, is_replay=True), surface.limits, cursor=cursor)


async def respond_or_refuse(surface: Surface, request: Request, work: Awaitable[Response]) -> Response:
    """The response of `work`, or the refusal that it raised, with the headers that every response has."""
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
    cors = surface.access.cors_headers(request.headers)
    if (vary := cors.pop("vary", None)) is not None:
        response.headers.add_vary_header(vary)
    if cors:
        response.headers.update(cors)
    if isinstance(response, EventStreamResponse):
        return response
    response.headers.setdefault("cache-control", NO_STORE)  # chats are private, and they change
    return BoundedResponse(response, surface.limits)


def refusal(error: BridgeError) -> Response:
    headers = {"cache-control": NO_STORE}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, TooSlow):
        headers["connection"] = "close"  # the server does not wait for the rest of the request
    message = error.public_text if isinstance(error, LocalProtocolError) else str(error)
    return JSONResponse({"error": {"code": error.code, "message": message}}, error.status, headers)


async def read_body(request: Request, limits: Limits, count: Callable[[int], None]) -> bytes:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # Compressed bodies are refused: a small one may unpack to gigabytes.
    if media_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise WrongMediaType
    meter = BodyMeter(limits)
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            async for piece in request.stream():
                meter.feed(piece)
                count(len(piece))
                pieces.append(piece)
    except TimeoutError:
        raise TooSlow from None
    return b"".join(pieces)


def endpoint(surface: Surface, work: Endpoint) -> Endpoint:
    """The function of a route, whose failures become refusals."""

    @wraps(work)
    async def respond_to(request: Request) -> Response:
        return await respond_or_refuse(surface, request, work(request))

    return respond_to
