"""The command `adk-stream`."""

import argparse
import importlib
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from .bridge import ChatBridge
from .demo.agent import build_app
from .demo.identity import HeaderIdentity, LoopbackIdentity
from .demo.server import LOOPBACK_HOSTS, PREFIX, build_server
from .errors import ConfigurationError


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        if options.host not in LOOPBACK_HOSTS and not options.user_header:
            raise ConfigurationError(
                f"Nobody is authenticated on {options.host}. Put a proxy in front that does, and name the header "
                "in which it passes the user: --user-header x-forwarded-user"
            )
        _serve(build_app(options.model) if options.command == "demo" else _import_agent(options.agent), options)
    except ConfigurationError as error:
        sys.exit(f"adk-stream: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="adk-stream", description="Google ADK agents for AI SDK clients.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="a demo agent; works offline, or on Gemini with GOOGLE_API_KEY")
    demo.add_argument("--model", help="any model that ADK knows, such as gemini-flash-latest")
    serve = commands.add_parser("serve", help="an agent of yours")
    serve.add_argument("agent", metavar="package.module:attribute", help="an ADK agent, App or Runner")
    for command in (demo, serve):
        command.add_argument("--host", default="127.0.0.1")
        command.add_argument("--port", type=int, default=8000)
        command.add_argument("--user-header", metavar="NAME", help="where an authenticating proxy puts the user")
        command.add_argument(
            "--allow-origin", metavar="ORIGIN", action="append", default=[], help="a page elsewhere that may call"
        )
    return parser


def _import_agent(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute or module_name.startswith("."):
        raise ConfigurationError(f"{path!r} does not name an agent: write package.module:attribute")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # one of the agent's own imports: its author wants to see where
        raise ConfigurationError(f"There is no module {module_name!r} here.") from None
    if not hasattr(module, attribute):
        raise ConfigurationError(f"The module {module_name!r} has no {attribute!r}.")
    return getattr(module, attribute)


def _serve(agent: Any, options: argparse.Namespace) -> None:
    user_id = HeaderIdentity(options.user_header) if options.user_header else LoopbackIdentity()
    bridge = ChatBridge(agent, user_id=user_id, allowed_origins=options.allow_origin)
    app = build_server(bridge, user_id, loopback_only=options.host in LOOPBACK_HOSTS)
    host = f"[{options.host}]" if ":" in options.host else options.host
    print(f"adk-stream: chat API at http://{host}:{options.port}{PREFIX}", file=sys.stderr)
    config = uvicorn.Config(app, host=options.host, port=options.port, timeout_graceful_shutdown=5)
    with suppress(KeyboardInterrupt):  # which uvicorn passes on when all is closed
        _Server(bridge, config).run()


class _Server(uvicorn.Server):
    """Ends what runs before it waits for connections: their streams then come to a proper end."""

    def __init__(self, bridge: ChatBridge, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._bridge = bridge

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._bridge.aclose()
        await super().shutdown(sockets)
