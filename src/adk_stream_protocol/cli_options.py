"""The commands of `adk-stream` and their options."""

import argparse
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import __version__

_WHERE = (
    "a folder with one agent or several, a package or package.module (with root_agent or app), or "
    "package.module:attribute"
)
_EXAMPLES = """examples:
  adk-stream serve my_agent                the folder that `adk create my_agent` made
  adk-stream serve agents                  a folder of such folders; the page lets you choose
  adk-stream serve my_package.agent:helper an agent, App or Runner under another name
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="adk-stream", description="Serves Google ADK agents to AI SDK clients, with a web page."
    )
    versions = f"adk-stream {__version__} (google-adk {version('google-adk')})"
    parser.add_argument("--version", action="version", version=versions)
    parser.set_defaults(
        agent=None, model=None, file=None, host="127.0.0.1", user_header=None, reload=False, send_state=[]
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command_of(name: str, what: str, **more: Any) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.", **more)

    demo = command_of("demo", "serve a demo agent, which works offline, or on Gemini with GOOGLE_API_KEY")
    serve = command_of(
        "serve",
        "serve your agent, or a folder of several",
        allow_abbrev=False,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("agent", metavar="AGENT", help=_WHERE)
    serve.add_argument(
        "--reload",
        action="store_true",
        help="restart when a Python, .yaml or .env file below the current folder changes",
    )
    record = command_of("record", "serve the demo or your agent, and write all requests and responses to a file")
    record.add_argument("file", metavar="FILE", type=Path, help="the file to create; it gets JSON lines")
    record.add_argument("agent", metavar="AGENT", nargs="?", help=f"{_WHERE} (default: the demo)")
    replay = command_of("replay", "play a recording back to the page, on this machine only")
    replay.add_argument(
        "file", metavar="FILE", type=Path, help="a file that `record` or the page's inspector has written"
    )
    replay.add_argument(
        "--speed",
        type=_positive,
        default=1.0,
        help="2 is twice as fast; no pause is longer than 0.2 s (default: %(default)s)",
    )
    audit = command_of("audit", "print what was asked, decided and run, as JSON lines")
    audit.add_argument(
        "--database", metavar="URL", required=True, help="the database that `--database` or ChatBridge(store=...) names"
    )
    for name, what in (("app", "application"), ("user", "owner of the chat"), ("chat", "chat"), ("tool", "tool")):
        audit.add_argument(f"--{name}", metavar="NAME", help=f"only entries of this {what}")
    for name, what in (("since", "from this time on"), ("until", "before this time")):
        audit.add_argument(
            f"--{name}", metavar="TIME", type=_time, help=f"only entries {what}, such as 2026-01-31T12:00 (UTC)"
        )
    for command in (serve, record):
        command.add_argument(
            "--send-state",
            metavar="KEY",
            action="append",
            default=[],
            help="a key of the session's state that pages may see; may be repeated (default: none)",
        )
    for command in (demo, record):
        command.add_argument("--model", help="the demo's model: any that ADK knows, such as gemini-flash-latest")
    for command in (demo, serve, record, replay):
        command.add_argument("--port", type=_port, default=8000, help="the port to listen on (default: %(default)s)")
    for command in (demo, serve, record):
        command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
        command.add_argument(
            "--user-header",
            metavar="NAME",
            help="the header in which your signing-in proxy passes the user's name (default: each browser is a user)",
        )
        command.add_argument(
            "--allow-origin",
            metavar="ORIGIN",
            action="append",
            default=[],
            help="another origin whose pages may use the API, such as http://localhost:5173; may be repeated "
            "(default: none)",
        )
        command.add_argument(
            "--database",
            metavar="URL",
            default="memory",
            help="where chats and approvals are stored: sqlite+aiosqlite:///chats.db or postgresql+asyncpg://... "
            "(default: %(default)s; they are lost when the server ends)",
        )
    return parser


# Not ValueErrors: for these argparse prints the name of the function.


def _positive(text: str) -> float:
    with suppress(ValueError):
        if 0 < (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"a speed is a number above 0, not {text!r}")


def _time(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a time is written like 2026-01-31T12:00, not {text!r}") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


def _port(text: str) -> int:
    with suppress(ValueError):
        if 0 <= (number := int(text)) < 65536:  # 0 means any that is free
            return number
    raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
