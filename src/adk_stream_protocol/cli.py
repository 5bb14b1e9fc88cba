"""The command `adk-stream`."""

import argparse
import asyncio
import errno
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from .adk.calls.policy import ApprovalPolicy
from .bridge import ChatBridge
from .cli_options import build_parser
from .demo.agent import build_app, demo_run_config
from .demo.identity import HeaderIdentity, LoopbackIdentity
from .demo.policy import PEOPLE, demo_groups, demo_policy
from .demo.server import (
    LOOPBACK_HOSTS,
    PREFIX,
    build_replay_server,
    build_server,
    build_server_of_several,
    prefix_of,
)
from .demo.web_page import PAGE, is_built
from .errors import ConfigurationError, StoreUnavailable
from .limits import Limits
from .protocol.chunks import encode_json
from .recording.reader import read_recording
from .recording.recorder import Recording
from .recording.replayer import Replay
from .reloading import run_again_on_changes
from .served_agents import FoundAgent, find_agents, model_without_key, root_of
from .store import open_store
from .store.base import AuditFilter
from .uvicorn_server import UvicornServer

if TYPE_CHECKING:
    from google.adk.sessions import BaseSessionService
    from sqlalchemy import URL

_CONNECTING_S = 10  # a database that takes longer will not be fast enough for a chat
_FORM_S = 600  # the page asks people for the output of browser tools that it does not know


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = build_parser().parse_args(arguments)
    try:
        if options.command == "audit":
            if options.database != "memory":
                _require_connection(options.database, create=False)
            asyncio.run(_print_audit(options))
            return
        if options.host not in LOOPBACK_HOSTS and not options.user_header:
            raise ConfigurationError(
                f"Other machines can reach {options.host}, and nobody signs in there. Put a proxy in front that signs "
                "users in, and name the header in which it passes the user: --user-header x-forwarded-user"
            )
        if options.command == "replay":
            _replay(options)
        elif options.reload:
            _serve_again_on_changes(arguments)
        else:
            _serve(_agents(options), options)
    except ConfigurationError as error:
        sys.exit(f"adk-stream: {error}")


async def _print_audit(options: argparse.Namespace) -> None:
    wanted = AuditFilter(options.app, options.user, options.chat, options.tool, options.since, options.until)
    store = open_store(options.database)
    try:
        for entry in await store.audit(wanted):
            print(encode_json(entry).decode())
    except StoreUnavailable:
        raise ConfigurationError("The database cannot be used.") from None
    finally:
        await store.aclose()


def _agents(options: argparse.Namespace) -> list[FoundAgent]:
    if options.agent is None:
        app = build_app(options.model)
        _say_which_key_is_missing(app, "in the environment")
        return [FoundAgent(app.root_agent.name if app.root_agent else "", app, None, Path.cwd())]
    if options.model is not None:
        raise ConfigurationError("--model is only for the demo. Your own agent has its model already.")
    found = find_agents(options.agent)
    if len(found) > 1 and options.file is not None:
        names = ", ".join(one.name for one in found)
        raise ConfigurationError(f"Only one agent can be recorded at a time. Name the folder of one: {names}")
    _refuse_equal_names(found)
    for one in found:
        _say_which_key_is_missing(one.agent, f"in the environment or in {one.folder / '.env'}")
    return found


def _say_which_key_is_missing(agent: Any, where: str) -> None:
    if (model := model_without_key(agent)) is not None:
        _say(f"{model} needs a key. Set GOOGLE_API_KEY {where}")


def _refuse_equal_names(found: Sequence[FoundAgent]) -> None:
    """Chats of agents with one name would be mixed."""
    counted = Counter(one.app_name or getattr(one.agent, "name", None) for one in found)
    for name, count in counted.items():
        if count > 1:
            raise ConfigurationError(f"{count} agents have the name {name!r}. Give each App a name of its own.")


def _serve_again_on_changes(arguments: Sequence[str]) -> None:
    code = f"from {__name__} import main; main()"
    command = [sys.executable, "-c", code, *(argument for argument in arguments if argument != "--reload")]
    run_again_on_changes(command, Path.cwd(), on_restart=lambda path: _say(f"{path} has changed: starting again"))


def _serve(agents: Sequence[FoundAgent], options: argparse.Namespace) -> None:
    database = None if options.database == "memory" else options.database
    people = PEOPLE if options.agent is None else None
    user_id = HeaderIdentity(options.user_header) if options.user_header else LoopbackIdentity(database, people)
    bridges = {one.name: _bridge(one, user_id, options) for one in agents}
    roots = {one.name: root_of(one.agent) for one in agents}
    is_local = options.host in LOOPBACK_HOSTS

    async def end_runs() -> None:
        await asyncio.gather(*(bridge.drain() for bridge in bridges.values()))

    with _recording(options.file) as recording:
        if len(bridges) > 1:
            app = build_server_of_several(bridges, user_id, loopback_only=is_local, root_agents=roots)
            _run(app, options, {name: prefix_of(name) for name in bridges}, end_runs)
        else:
            ((name, bridge),) = bridges.items()
            app = build_server(
                bridge,
                user_id,
                loopback_only=is_local,
                recording=recording,
                agent_name=name,
                root_agent=roots[name],
            )
            _run(app, options, {name: PREFIX}, end_runs)


def _replay(options: argparse.Namespace) -> None:
    replay = Replay(read_recording(options.file), speed=options.speed)
    app = build_replay_server(replay, agent_name=options.file.name)
    _run(app, options, {options.file.name: PREFIX}, replay.aclose)


def _run(
    app: Any, options: argparse.Namespace, prefixes: Mapping[str, str], end_runs: Callable[[], Awaitable[None]]
) -> None:
    port = _free_port(options.host, options.port)
    host = f"[{options.host}]" if ":" in options.host else options.host
    if is_built(PAGE):
        _say(f"page at http://{host}:{port}/")
    for name, prefix in prefixes.items():
        of_which = f" of {name}" if len(prefixes) > 1 else ""
        _say(f"chat API{of_which} at http://{host}:{port}{prefix}")
    server = UvicornServer(app, host=options.host, port=port, limits=Limits(), end_runs=end_runs)
    with suppress(KeyboardInterrupt):  # uvicorn raises it after everything is closed
        server.run()


def _free_port(host: str, port: int) -> int:
    """The port given, or any if that is 0. Fails if it is not free."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
            return server.getsockname()[1]
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(f"Port {port} is in use. Choose another one: --port {port + 1}") from None
        reason = str(error.strerror).partition(" (")[0]
        raise ConfigurationError(f"{host}:{port} cannot be used: {reason}") from None


def _say(line: str) -> None:
    print(f"adk-stream: {line}", file=sys.stderr)


def _bridge(found: FoundAgent, user_id: LoopbackIdentity | HeaderIdentity, options: argparse.Namespace) -> ChatBridge:
    agent, is_demo = found.agent, options.agent is None
    return ChatBridge(
        agent,
        user_id=user_id,
        app_name=found.app_name,
        allowed_origins=options.allow_origin,
        run_config=demo_run_config(agent) if is_demo else None,
        approvals=demo_policy() if is_demo else ApprovalPolicy(browser_deadline_s=_FORM_S),
        groups=demo_groups(user_id) if is_demo else None,
        prepare=(lambda connection, body: {"send_state": options.send_state}) if options.send_state else None,
        store=options.database,
        session_service=None if options.database == "memory" else _open_sessions(agent, options.database),
    )


def _open_sessions(agent: Any, url: str) -> "BaseSessionService | None":
    """A session service in the database of the approvals. A Runner has its own."""
    _require_connection(url)
    from google.adk.runners import Runner
    from google.adk.sessions import DatabaseSessionService

    return None if isinstance(agent, Runner) else DatabaseSessionService(url)


def _require_connection(url: str, *, create: bool = True) -> None:
    """Fail at the start, instead of with every request. `create`: a file of SQLite may be new."""
    from .store.sql import SqlStore  # only when it is needed: its packages are an extra

    SqlStore(url)  # raises a ConfigurationError for URLs that are not supported
    import sqlalchemy as sa

    parsed = sa.make_url(url)
    if not create and parsed.get_backend_name() == "sqlite" and not (file := _file_of(parsed)).is_file():
        raise ConfigurationError(f"There is no file {file}.")
    try:
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


def _file_of(url: "URL") -> Path:
    """SQLite's own URLs are inside those of SQLAlchemy."""
    name = url.database or ""
    return Path(unquote(urlsplit(name).path) if name.startswith("file:") and "uri" in url.query else name)


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
