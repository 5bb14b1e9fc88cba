"""The command `adk-stream`."""

import argparse
import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .bridge import ChatBridge, UserId
from .demo.agent import build_app, demo_run_config
from .demo.identity import HeaderIdentity, LoopbackIdentity
from .demo.server import LOOPBACK_HOSTS, PREFIX, build_replay_server, build_server
from .demo.web_page import PAGE, is_built
from .errors import ConfigurationError
from .limits import Limits
from .recording.reader import read_recording
from .recording.recorder import Recording
from .recording.replayer import Replay
from .uvicorn_server import UvicornServer

if TYPE_CHECKING:
    from google.adk.sessions import BaseSessionService
    from sqlalchemy import URL

_CONNECTING_S = 10  # a database that takes longer will not be fast enough for a chat


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        if options.host not in LOOPBACK_HOSTS and not options.user_header:
            raise ConfigurationError(
                f"Nobody is authenticated on {options.host}. Put a proxy in front that does, and name the header "
                "in which it passes the user: --user-header x-forwarded-user"
            )
        if options.command == "replay":
            _replay(options)
        else:
            _serve(_agent(options), options)
    except ConfigurationError as error:
        sys.exit(f"adk-stream: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="adk-stream", description="Google ADK agents for AI SDK clients.")
    parser.set_defaults(agent=None, model=None, file=None, host="127.0.0.1", user_header=None)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="a demo agent; works offline, or on Gemini with GOOGLE_API_KEY")
    serve = commands.add_parser("serve", help="an agent of yours")
    serve.add_argument("agent", metavar="package.module:attribute", help="an ADK agent, App or Runner")
    record = commands.add_parser(
        "record", help="the demo or an agent of yours, with all requests and responses written to a file"
    )
    record.add_argument("file", metavar="FILE", type=Path, help="a new file, for JSON lines")
    record.add_argument(
        "agent", metavar="package.module:attribute", nargs="?", help="an ADK agent, App or Runner; else the demo"
    )
    replay = commands.add_parser("replay", help="serve a recording as a stream, to this machine only")
    replay.add_argument(
        "file", metavar="FILE", type=Path, help="a file that `record` or the page's inspector has written"
    )
    replay.add_argument("--port", type=int, default=8000)
    replay.add_argument("--speed", type=_positive, default=1.0, help="2 is twice as fast; pauses are cut to 0.2 s")
    for command in (demo, record):
        command.add_argument("--model", help="for the demo: any model that ADK knows, such as gemini-flash-latest")
    for command in (demo, serve, record):
        command.add_argument("--host", default="127.0.0.1")
        command.add_argument("--port", type=int, default=8000)
        command.add_argument(
            "--user-header", metavar="NAME", help="the header in which an authenticating proxy passes the user"
        )
        command.add_argument(
            "--allow-origin",
            metavar="ORIGIN",
            action="append",
            default=[],
            help="the origin of a page on another host that may call",
        )
        command.add_argument(
            "--database",
            metavar="URL",
            default="memory",
            help="stores chats and approvals in a database: sqlite+aiosqlite:///chats.db or postgresql+asyncpg://",
        )
    return parser


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError
    return number


def _agent(options: argparse.Namespace) -> Any:
    if options.agent is None:
        return build_app(options.model)
    if options.model is not None:
        raise ConfigurationError("--model is for the demo: an agent of yours brings its own.")
    return _import_agent(options.agent)


def _import_agent(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute or module_name.startswith("."):
        raise ConfigurationError(f"{path!r} does not name an agent: write package.module:attribute")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # one of the agent's own imports failed: its author needs the traceback
        raise ConfigurationError(f"There is no module {module_name!r} here.") from None
    if not hasattr(module, attribute):
        raise ConfigurationError(f"The module {module_name!r} has no {attribute!r}.")
    return getattr(module, attribute)


def _serve(agent: Any, options: argparse.Namespace) -> None:
    database = None if options.database == "memory" else options.database
    user_id = HeaderIdentity(options.user_header) if options.user_header else LoopbackIdentity(database)
    bridge = _bridge(agent, user_id, options)
    with _recording(options.file) as recording:
        is_local = options.host in LOOPBACK_HOSTS
        name = _agent_name(agent)
        app = build_server(bridge, user_id, loopback_only=is_local, recording=recording, agent_name=name)
        _run(app, options, bridge.limits, bridge.drain)


def _replay(options: argparse.Namespace) -> None:
    replay = Replay(read_recording(options.file), speed=options.speed)
    _run(build_replay_server(replay, agent_name=options.file.name), options, Limits(), replay.aclose)


def _run(app: Any, options: argparse.Namespace, limits: Limits, end_runs: Callable[[], Awaitable[None]]) -> None:
    host = f"[{options.host}]" if ":" in options.host else options.host
    if is_built(PAGE):
        print(f"adk-stream: page at http://{host}:{options.port}/", file=sys.stderr)
    print(f"adk-stream: chat API at http://{host}:{options.port}{PREFIX}", file=sys.stderr)
    server = UvicornServer(app, host=options.host, port=options.port, limits=limits, end_runs=end_runs)
    with suppress(KeyboardInterrupt):  # uvicorn raises it after everything is closed
        server.run()


def _agent_name(agent: Any) -> str:
    """The name of an agent, or of the root agent of an App or a Runner."""
    root = getattr(agent, "root_agent", None) or getattr(agent, "agent", None) or agent
    return str(getattr(root, "name", ""))


def _bridge(agent: Any, user_id: UserId, options: argparse.Namespace) -> ChatBridge:
    return ChatBridge(
        agent,
        user_id=user_id,
        allowed_origins=options.allow_origin,
        run_config=demo_run_config(agent) if options.agent is None else None,
        store=options.database,
        session_service=None if options.database == "memory" else _open_sessions(agent, options.database),
    )


def _open_sessions(agent: Any, url: str) -> "BaseSessionService | None":
    """A session service in the database of the approvals. A Runner has its own."""
    from .store.sql import SqlStore  # only when it is needed: its packages are an extra

    SqlStore(url)  # raises a ConfigurationError for URLs that are not supported
    _require_connection(url)
    from google.adk.runners import Runner
    from google.adk.sessions import DatabaseSessionService

    return None if isinstance(agent, Runner) else DatabaseSessionService(url)


def _require_connection(url: str) -> None:
    """Fail at the start, instead of with every request."""
    import sqlalchemy as sa

    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "sqlite":
            # Not with aiosqlite: after a failure its thread still calls the event loop, which may be closed by then.
            engine = sa.create_engine(parsed.set(drivername="sqlite"))
            try:
                sa.inspect(engine).get_table_names()
            finally:
                engine.dispose()
        else:
            asyncio.run(_connect(parsed))
    except Exception as error:  # each driver raises its own
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise ConfigurationError(f"The database cannot be used: {reason or type(error).__name__}") from None


async def _connect(url: "URL") -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url)
    try:
        async with asyncio.timeout(_CONNECTING_S), engine.connect():
            pass
    finally:
        await engine.dispose()


def _recording(file: Path | None) -> AbstractContextManager[Recording | None]:
    if file is None:
        return nullcontext()
    try:
        return Recording(file)
    except FileExistsError:
        raise ConfigurationError(f"{file} exists already: record into a new file.") from None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be created: {error.strerror}") from None
