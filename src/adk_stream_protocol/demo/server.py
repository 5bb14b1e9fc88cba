"""The applications behind the command: a bridge or a recording, and the page."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..bridge import ChatBridge, UserId
from ..errors import UnknownHost
from ..recording.recorder import Recorder, Recording
from ..recording.replayer import Replay, build_replay_router
from ..transports.http import refusal
from ..transports.security import POLICY_VIOLATION, Access
from .identity import COOKIE, LoopbackIdentity
from .web_page import PAGE, PageAgent, add_page, describe_browser_tools, is_built

PREFIX = "/api/chat"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


def build_server(
    bridge: ChatBridge,
    user_id: UserId,
    *,
    loopback_only: bool,
    recording: Recording | None = None,
    agent_name: str = "",
    root_agent: Any = None,
    page: Path = PAGE,
) -> FastAPI:
    """`root_agent`: the page is told which browser tools it has."""
    app = _new_app()
    app.include_router(bridge.router(PREFIX))
    _add_front(app, {agent_name: _on_page(PREFIX, root_agent)}, user_id, page)
    if recording is not None:
        app.add_middleware(Recorder, recording=recording, prefix=PREFIX)
    if loopback_only:
        app.add_middleware(OnlyLoopbackHosts)
    return app


def build_server_of_several(
    bridges: Mapping[str, ChatBridge],
    user_id: UserId,
    *,
    loopback_only: bool,
    root_agents: Mapping[str, Any] | None = None,
    page: Path = PAGE,
) -> FastAPI:
    """One chat API for each agent, and a page that lets people choose between them. `root_agents`: by the names of the
    bridges; the page is told which browser tools each has."""
    app = _new_app()
    roots = root_agents or {}
    for name, bridge in bridges.items():
        app.include_router(bridge.router(prefix_of(name)))
    _add_front(app, {name: _on_page(prefix_of(name), roots.get(name)) for name in bridges}, user_id, page)
    if loopback_only:
        app.add_middleware(OnlyLoopbackHosts)
    return app


def prefix_of(agent_name: str) -> str:
    """Where the chat API of one of several agents is."""
    return f"/api/{agent_name}/chat"


def _on_page(prefix: str, root_agent: Any = None) -> PageAgent:
    api = prefix.removeprefix("/")
    return PageAgent(api) if root_agent is None else PageAgent(api, describe_browser_tools(root_agent))


def _add_front(app: FastAPI, agents: Mapping[str, PageAgent], user_id: UserId, page: Path) -> None:
    """The page, or what to do without one."""

    def welcome(request: Request, response: Response) -> None:
        if isinstance(user_id, LoopbackIdentity) and not user_id.is_valid(request.cookies.get(COOKIE, "")):
            response.set_cookie(COOKIE, user_id.new_cookie(), httponly=True, samesite="strict")

    def instructions(request: Request) -> Response:
        html = _PAGE.replace("ORIGIN", escape(str(request.base_url).rstrip("/")))
        html = html.replace(PREFIX, f"/{next(iter(agents.values())).api}")
        response = HTMLResponse(html, headers={"content-security-policy": _CONTENT_SECURITY_POLICY})
        welcome(request, response)
        return response

    if is_built(page):
        people = user_id.people if isinstance(user_id, LoopbackIdentity) else None
        add_page(app, page, agents, welcome, people)
    else:
        app.add_route("/", instructions, methods=["GET"])


def build_replay_server(replay: Replay, *, agent_name: str = "", page: Path = PAGE) -> FastAPI:
    """Serves a recording to this machine only: it is as private as the chats in it."""
    app = _new_app()
    app.include_router(build_replay_router(replay, PREFIX))
    if is_built(page):
        add_page(app, page, {agent_name: _on_page(PREFIX)}, lambda request, response: None)
    app.add_middleware(OnlyLoopbackHosts)
    return app


def _new_app() -> FastAPI:
    return FastAPI(title="adk-stream", docs_url=None, redoc_url=None, openapi_url=None)


class OnlyLoopbackHosts:
    """Refuses other host names, for the page as well as for the chats, since the page sets cookies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._access = Access(hosts=LOOPBACK_HOSTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] != "lifespan":
                self._access.refuse_unknown_host(Headers(scope=scope))
        except UnknownHost:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            else:
                await refusal(UnknownHost(_ONLY_HERE))(scope, receive, send)
        else:
            await self._app(scope, receive, send)


_ONLY_HERE = (
    "adk-stream answers to 127.0.0.1 and localhost only. Let your proxy ask for one of these, or start adk-stream with "
    "--host and --user-header, behind a proxy that signs people in."
)
_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>adk-stream</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem }
  pre { padding: 1rem; overflow-x: auto; border: 1px solid; border-radius: .5rem }
</style>
<h1>The agent is listening</h1>
<p>Its chat API is at <code>/api/chat</code> and speaks the AI SDK's UI message stream. Look at the wire:</p>
<pre>curl -N ORIGIN/api/chat \\
  -H 'content-type: application/json' \\
  -d '{"id": "chat-1", "messages": [{"id": "m1", "role": "user",
       "parts": [{"type": "text", "text": "What is the weather in Tokyo?"}]}]}'</pre>
<p>Or in a page with the AI SDK 5, 6 or 7:</p>
<pre>const { messages, sendMessage } = useChat({
  transport: new DefaultChatTransport({ api: 'ORIGIN/api/chat' }),
})</pre>
</html>
"""
