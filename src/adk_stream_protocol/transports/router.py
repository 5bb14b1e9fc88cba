"""The routes of a bridge, for FastAPI."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from ..bridge import ChatBridge
from ..errors import NotFound
from ..protocol.chunks import encode_json
from .http import endpoint, respond, resume
from .live_socket import LiveSockets
from .security import RUNNING, preflight_headers

# Shown in the page; everything else a browser may only save, since a page of our origin could act as the user.
_SHOWN_INLINE = ("image/png", "image/jpeg", "image/gif", "image/webp", "audio/", "video/", "text/plain")


def build_router(bridge: ChatBridge, prefix: str) -> APIRouter:
    sockets = LiveSockets(bridge)
    bridge.before_drain.append(sockets.announce_restart)
    bridge.before_close.append(sockets.aclose)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        bridge.watch_for_lost_runs()
        try:
            yield
        finally:
            await bridge.aclose()

    async def live(websocket: WebSocket) -> None:
        """Live mode, in the AI SDK's own frames."""
        await sockets.serve(websocket)

    async def turn(request: Request) -> Response:
        """One turn: the AI SDK's request in, a UI message stream out."""
        return await respond(bridge, request)

    async def stream(request: Request) -> Response:
        """Read the running turn again, from its start or after `Last-Event-ID`."""
        user = await bridge.identify(request)
        return resume(bridge, request, user, request.path_params["chat_id"])

    async def stop(request: Request) -> Response:
        """End the running turn."""
        user = await bridge.identify(request)
        await bridge.stop(user, request.path_params["chat_id"])
        return Response(status_code=204)

    async def messages(request: Request) -> Response:
        """The conversation."""
        user = await bridge.identify(request)
        chat_id = request.path_params["chat_id"]
        root = request.url.path.rsplit("/", 2)[0]
        told, running = await bridge.messages(request, user, chat_id, root)
        response = _json(told)
        if running is not None:
            response.headers[RUNNING] = running
        return response

    async def chats(request: Request) -> Response:
        """The caller's chats."""
        user = await bridge.identify(request)
        return _json(await bridge.chats(user))

    async def delete(request: Request) -> Response:
        """Forget a chat."""
        user = await bridge.identify(request)
        await bridge.delete(user, request.path_params["chat_id"])
        return Response(status_code=204)

    async def file(request: Request) -> Response:
        """An artifact of the caller's chat."""
        user = await bridge.identify(request)
        name, version = request.path_params["name"], request.query_params.get("version")
        if version is not None and not (version.isascii() and version.isdigit() and len(version) < 10):
            raise NotFound
        number = None if version is None else int(version)
        data, media_type = await bridge.load_file(user, request.path_params["chat_id"], name, number)
        return Response(data, media_type=media_type, headers=_file_headers(name, media_type))

    async def preflight(request: Request) -> Response:
        return Response(status_code=204, headers=preflight_headers(request.headers, bridge.allowed_origins))

    routes = {
        ("GET", ""): chats,
        ("GET", "/{chat_id}/stream"): stream,
        ("POST", "/{chat_id}/stop"): stop,
        ("GET", "/{chat_id}/messages"): messages,
        ("DELETE", "/{chat_id}"): delete,
        ("GET", "/{chat_id}/files/{name:path}"): file,
    }
    # API routes rather than plain ones, so that the dependencies of `include_router` (a login, say) hold for them.
    router = APIRouter(prefix=prefix, lifespan=lifespan)
    router.add_api_route("", turn, methods=["POST"], response_class=Response)
    router.add_api_websocket_route("/live", live)
    for (method, path), work in routes.items():
        router.add_api_route(path, endpoint(bridge, work), methods=[method], response_class=Response)
    for path in {path for _, path in routes}:
        router.add_api_route(path, preflight, methods=["OPTIONS"], include_in_schema=False)
    return router


def _json(value: Any) -> Response:
    return Response(encode_json(value), media_type="application/json")


def _file_headers(name: str, media_type: str) -> dict[str, str]:
    shown = "inline" if media_type.startswith(_SHOWN_INLINE) else "attachment"
    return {
        "content-disposition": f"{shown}; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        "cache-control": "private, max-age=3600",
    }
