"""The page in the package: an HTML file and its assets, and the headers that limit what they may do in a browser."""

import json
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from ..adk.calls.client_tools import browser_tools_of

PAGE = Path(__file__).with_name("page")
"""Built by `make`; a fresh checkout has no page."""

NOTICES = "THIRD_PARTY_NOTICES.txt"

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "font-src": "'self'",
    "media-src": "'self' blob: data:",
    "worker-src": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
}
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "permissions-policy": "microphone=(self), geolocation=(self), camera=(), payment=(), usb=()",
    # The page itself is not cached: the names of its assets change with each build.
    "cache-control": "no-cache",
}
# What a host may look like: anything else could inject something into the header.
_HOST = re.compile(r"[\w.\-]+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?", re.ASCII)
_META = '<meta name="{}" content="{}"'


class PageAgent(NamedTuple):
    """What the page is told about an agent."""

    api: str
    """Where its chat API is, relative to the page."""
    browser_tools: list[dict[str, Any]] | None = None
    """None: the page is not told."""


def describe_browser_tools(root: Any) -> list[dict[str, Any]]:
    """The tools of the agents below the root that a page has to answer. Of those that it does not know, it makes a form
    for the output."""
    return [
        {"name": tool.name, "description": tool.description, "output": tool.output_schema}
        for tool in browser_tools_of(root).values()
    ]


def is_built(directory: Path) -> bool:
    return (directory / "index.html").is_file()


def add_page(
    app: FastAPI,
    directory: Path,
    agents: Mapping[str, PageAgent],
    welcome: Callable[[Request, Response], None],
    people: Mapping[str, str] | None = None,
) -> None:
    """Serve the page at `/` of the application, wherever that is mounted: all its addresses are relative.

    `agents`: by their names. `?agent=` chooses one of them, else it is the first. `welcome` may
    add something to the response, such as a cookie. `people`: whom the page lets one be, by their ids."""

    def index(request: Request) -> Response:  # not a coroutine, since it reads a file
        html = (directory / "index.html").read_text(encoding="utf-8")
        asked = request.query_params.get("agent", "")
        name = asked if asked in agents else next(iter(agents))
        api, browser_tools = agents[name]
        html = _with_meta(html, "adk-api", api, before="api/chat")
        html = _with_meta(html, "adk-agent", name)
        if browser_tools is not None:
            html = _with_meta(html, "adk-browser-tools", json.dumps(browser_tools))
        if len(agents) > 1:
            html = _with_meta(html, "adk-agents", json.dumps([*agents]))
        if people:
            html = _with_meta(html, "adk-people", json.dumps(people))
        policy = content_security_policy(request.headers.get("host", ""))
        response = HTMLResponse(html, headers={**_HEADERS, "content-security-policy": policy})
        welcome(request, response)
        return response

    def notices(_: Request) -> Response:
        return FileResponse(directory / NOTICES, media_type="text/plain", headers=_HEADERS)

    files = _Assets(directory=directory / "assets", check_dir=False)

    async def asset(request: Request) -> Response:
        return await files.get_response(request.path_params["path"], request.scope)

    app.add_route("/", index, methods=["GET"])  # this allows HEAD, too, which API routes would refuse
    if (directory / NOTICES).is_file():
        app.add_route(f"/{NOTICES}", notices, methods=["GET"])
    # A route, not a mount: behind a proxy that removes a path prefix, a mounted application does not find its files.
    app.add_route("/assets/{path:path}", asset, methods=["GET"])


def _with_meta(html: str, name: str, value: str, *, before: str = "") -> str:
    return html.replace(_META.format(name, before), _META.format(name, escape(value)), 1)


def content_security_policy(host: str) -> str:
    """Allows only our own host. WebSockets are named, since older browsers do not count them as the same origin."""
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    rules = {**_POLICY, "connect-src": f"'self'{sockets}"}
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


class _Assets(StaticFiles):
    """Files that never change: each build gives them new names."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        response.headers["x-content-type-options"] = "nosniff"
        return response
