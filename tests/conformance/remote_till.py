"""A service elsewhere that pays, for tools of an MCP server's and of an OpenAPI document's."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcp.server import MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse

from support.live_server import serving


@dataclass
class RemoteTill:
    origin: str = ""
    paid: list[int] = field(default_factory=list[int])

    def pay(self, amount: int) -> dict[str, int]:
        """Pays."""
        self.paid.append(amount)
        return {"paid": amount}

    async def post(self, request: Request) -> JSONResponse:
        return JSONResponse(self.pay((await request.json())["amount"]))


@contextmanager
def remote_till() -> Generator[RemoteTill]:
    till = RemoteTill()
    server = MCPServer("till")
    server.add_tool(till.pay)
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    app.add_route("/pay", till.post, methods=["POST"])
    with serving(app) as till.origin:
        yield till
