"""The routes of a bridge, for FastAPI."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from ..errors import MalformedRequest, NotFound
from ..protocol import sse
from ..protocol.chunks import encode_json
from ..protocol.turn import decode_sdk_version
from .files import StoredFile, file_response
from .http import Endpoint, endpoint, read_body, respond, resume
from .revalidation import history_response, list_response
from .surface import Surface
from .websocket.live_sockets import LiveSockets

logger = logging.getLogger(__name__)


class _Lifespan:
    """Whether the application's lifespan runs. That of a mounted one does not, unless the outer one runs it."""

    def __init__(self) -> None:
        self._is_known = False

    def begin(self) -> None:
        self._is_known = True

    def look(self, connection: HTTPConnection) -> None:
        outer_path = connection.scope.get("root_path")
        if outer_path and not self._is_known:
            self._is_known = True
            logger.warning(
                "This application is mounted at %s, and its lifespan is not run. So the bridge is not closed when the "
                "server ends, and running tools are cut. Include bridge.router(...) in the outer application instead",
                outer_path,
            )


class _End(Convertor[str]):
    """An empty path, or a slash."""

    regex = "/?"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return ""


register_url_convertor("adk_end", _End())
# FastAPI refuses an empty path below an empty prefix, and "/" would miss `/api/chat` below `/api/chat`. This path works
# below either prefix.
_ROOT = "{end:adk_end}"


def build_router(surface: Surface, prefix: str) -> APIRouter:
    service = surface.service
    sockets = LiveSockets(surface)
    service.before_drain.append(sockets.announce_restart)
    service.before_close.append(sockets.aclose)
    started = _Lifespan()

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        started.begin()
        service.watch_for_lost_runs()
        try:
            yield
        finally:
            await service.aclose()

    async def live(websocket: WebSocket) -> None:
        """Live mode, in the AI SDK's own frames."""
        started.look(websocket)
        await sockets.serve(websocket)

    async def turn(request: Request) -> Response:
        """One turn: the AI SDK's request in, a UI message stream out."""
        started.look(request)
        return await respond(surface, request)

    async def stream(request: Request) -> Response:
        """Read the running turn again, from its start or after `Last-Event-ID`."""
        user = await surface.identify(request)
        chat_id = request.path_params["chat_id"]
        if request.method == "HEAD" and service.running(user, chat_id, request.query_params.get("message")) is not None:
            headers = Response(headers=sse.HEADERS)
            del headers.headers["content-length"]  # it is not known yet
            return headers
        return resume(surface, request, user, chat_id)

    async def stop(request: Request) -> Response:
        """End the running turn."""
        surface.access.refuse_cross_site(request.headers)
        user = await surface.identify(request)
        await service.stop(user, request.path_params["chat_id"])
        return Response(status_code=204)

    async def messages(request: Request) -> Response:
        """The conversation."""
        user = await surface.identify(request)
        chat_id = request.path_params["chat_id"]
        root = request.url.path.rsplit("/", 2)[0]
        version = decode_sdk_version(None, request.headers.get("x-ai-sdk-version"))
        history = service.history(user, chat_id, files_root=root, sdk_version=version)
        return await history_response(history, request, user, surface.limits)

    async def chats(request: Request) -> Response:
        """The caller's chats."""
        user = await surface.identify(request)
        return await list_response(encode_json(await service.chats(user)), request, user, surface.limits)

    async def delete(request: Request) -> Response:
        """Forget a chat."""
        surface.access.refuse_cross_site(request.headers)
        user = await surface.identify(request)
        await service.delete(user, request.path_params["chat_id"])
        return Response(status_code=204)

    async def audit(request: Request) -> Response:
        """What was asked, decided and run in the caller's chat. It outlives the chat."""
        user = await surface.identify(request)
        return _json(await service.audit(user, request.path_params["chat_id"]))

    async def approvals(request: Request) -> Response:
        """What waits for a decision of the caller, in whichever chat."""
        user = await surface.identify(request)
        limit, cursor = request.query_params.get("limit", "50"), request.query_params.get("cursor")
        if not (limit.isascii() and limit.isdigit() and 0 < len(limit) < 6 and int(limit) > 0):
            raise MalformedRequest("`limit` must be a whole number from 1 to 99999.")
        return _json(await service.waiting(request, user, int(limit), cursor))

    async def decide(request: Request) -> Response:
        """The decision of an approver."""
        surface.access.refuse_cross_site(request.headers)
        user = await surface.identify(request)
        with surface.unfinished.counting(user) as count:
            body = await read_body(request, surface.limits, count)
        return _json(await service.decide(request, user, request.path_params["approval_id"], body))

    async def file(request: Request) -> Response:
        """An artifact of the caller's chat."""
        user = await surface.identify(request)
        name, version = request.path_params["name"], request.query_params.get("version")
        if version is not None and not (version.isascii() and version.isdigit() and len(version) < 10):
            raise NotFound
        number = None if version is None else int(version)
        data, media_type = await service.load_file(user, request.path_params["chat_id"], name, number)
        file = StoredFile(data, media_type, name, has_version=number is not None)
        return await file_response(file, request.headers, surface.limits)

    async def preflight(request: Request) -> Response:
        return Response(status_code=204, headers=surface.access.preflight_headers(request.headers))

    root = "" if prefix else _ROOT
    routes: dict[tuple[str, str], Endpoint] = {
        ("GET", root): chats,
        ("GET", "/approvals"): approvals,
        ("POST", "/approvals/{approval_id}"): decide,
        ("GET", "/{chat_id}/audit"): audit,
        ("GET", "/{chat_id}/stream"): stream,
        ("POST", "/{chat_id}/stop"): stop,
        ("GET", "/{chat_id}/messages"): messages,
        ("DELETE", "/{chat_id}"): delete,
        ("GET", "/{chat_id}/files/{name:path}"): file,
    }
    # API routes rather than plain ones, so that the dependencies of `include_router` (a login, say) apply to them.
    router = APIRouter(prefix=prefix, lifespan=lifespan)
    router.add_api_route(root, turn, methods=["POST"], response_class=Response)
    router.add_api_websocket_route("/live", live)
    for (method, path), work in routes.items():
        served = endpoint(surface, work)
        router.add_api_route(path, served, methods=[method], response_class=Response)
        if method == "GET":
            router.add_api_route(path, served, methods=["HEAD"], response_class=Response, include_in_schema=False)
    for path in {path for _, path in routes}:
        router.add_api_route(path, preflight, methods=["OPTIONS"], include_in_schema=False)
    return router


def _json(value: Any) -> Response:
    return Response(encode_json(value), media_type="application/json")
