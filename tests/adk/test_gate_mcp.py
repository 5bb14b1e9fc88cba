"""A gated tool of a real MCP server, in both modes."""

import os
import sys
from pathlib import Path
from typing import Any

import mcp
import pytest
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams

from adk_stream_protocol.testing import call
from live.live_pages import live_page
from support.pages import page

SERVER = '''
import sys
try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    from mcp.server import MCPServer as Server

server = Server("till")

@server.tool()
def pay(amount: int) -> str:
    """Pays."""
    with open(sys.argv[1], "a") as paid:
        paid.write(f"{amount};")
    return f"paid {amount}"

server.run()
'''


@pytest.mark.parametrize("open_page", [page, live_page], ids=["request", "live"])
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_a_tool_of_an_mcp_server_runs_once_and_only_after_its_approval(
    approved: bool, open_page: Any, tmp_path: Path
) -> None:
    script, paid = tmp_path / "server.py", tmp_path / "paid"
    script.write_text(SERVER)
    paid.touch()
    command = mcp.StdioServerParameters(command=sys.executable, args=[str(script), str(paid)], env=dict(os.environ))

    connection = StdioConnectionParams(server_params=command, timeout=25)
    toolset = McpToolset(connection_params=connection, require_confirmation=True)
    try:
        async with open_page([call("pay", amount=5)], "Done.", tools=(toolset,)) as at:
            await at.say("Pay.")
            assert at.states("pay") == ["approval-requested"]
            assert paid.read_text() == ""
            at.decide("pay", approved=approved)
            assert (await at.answer()).text == "Done."
            assert paid.read_text() == ("5;" if approved else "")
            assert at.states("pay") == ["output-available" if approved else "output-denied"]
            await at.is_what_a_reload_shows()
    finally:
        await toolset.close()
