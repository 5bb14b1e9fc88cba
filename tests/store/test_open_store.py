"""A store as one names it, and what is said to those who name it wrongly."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adk_stream_protocol.errors import ConfigurationError
from adk_stream_protocol.store import open_store
from adk_stream_protocol.store.base import STORE_CONTRACT_VERSION, Store
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.store.sql import SqlStore
from store.stores import CHAT, asked

SQLITE = "sqlite+aiosqlite:///file.db"
POSTGRES = "postgresql+asyncpg://user:password@host/database"
IN_MEMORY = "A SQLite database in memory belongs to a single connection: use 'memory' for a store in memory."
WHAT_TO_INSTALL = r"pip install 'adk-stream-protocol\[sql\]'"


def test_memory_is_a_new_store_each_time() -> None:
    one, other = open_store("memory"), open_store("memory")
    assert isinstance(one, MemoryStore)
    assert one is not other


async def test_a_url_is_a_store_in_that_database(tmp_path: Path) -> None:
    store = open_store(f"sqlite+aiosqlite:///{tmp_path}/chats.db")
    assert await store.add(asked())
    assert (await store.read(CHAT)).records == [asked()]
    await store.aclose()
    assert (tmp_path / "chats.db").exists()


def test_a_store_of_ones_own_is_used_as_it_is() -> None:
    class Mine(MemoryStore):
        pass

    mine = Mine()
    assert open_store(mine) is mine


class WithoutVersion(MemoryStore):
    contract_version = None  # pyright: ignore[reportAssignmentType]


class OfAnotherVersion(MemoryStore):
    contract_version = 1


class Delegating:
    """Has every method of a store, and never says which version of the contract it keeps."""

    def __getattr__(self, name: str) -> Any:
        if name == "contract_version":
            raise AttributeError(name)
        return getattr(MemoryStore(), name)


@pytest.mark.parametrize(
    ("given", "version"), [(WithoutVersion(), None), (OfAnotherVersion(), 1), (Delegating(), None)], ids=repr
)
def test_a_store_of_another_version_of_the_contract_is_refused(given: Any, version: int | None) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_store(given)
    assert str(raised.value) == (
        f"The contract_version of {type(given).__name__} is {version}, and this release needs a store with version 2."
    )


@pytest.mark.parametrize("store", [MemoryStore(), SqlStore(SQLITE)], ids=["memory", "sql"])
def test_the_stores_of_the_package_keep_the_contract_of_their_release(store: Store) -> None:
    assert store.contract_version == STORE_CONTRACT_VERSION == 2
    assert open_store(store) is store


@pytest.mark.parametrize(
    "given", [None, 1, object(), MemoryStore, SqlStore, {"url": SQLITE}, Path("chats.db")], ids=str
)
def test_whatever_else_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="A store is 'memory', a database's URL or a Store, not "):
        open_store(given)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:///chats.db", f"A store at sqlite:// is not supported. Use {SQLITE}."),
        ("sqlite+pysqlite:///chats.db", f"A store at sqlite+pysqlite:// is not supported. Use {SQLITE}."),
        ("postgresql://ann:hunter2@db/chats", f"A store at postgresql:// is not supported. Use {POSTGRES}."),
        ("postgres://ann:hunter2@db/chats", f"A store at postgres:// is not supported. Use {POSTGRES}."),
        (
            "postgresql+psycopg://ann:hunter2@db/chats",
            f"A store at postgresql+psycopg:// is not supported. Use {POSTGRES}.",
        ),
        (
            "mysql+aiomysql://ann:hunter2@db/chats",
            f"A store at mysql+aiomysql:// is not supported. Use {SQLITE} or {POSTGRES}.",
        ),
        ("nosuch://ann:hunter2@db/chats", f"A store at nosuch:// is not supported. Use {SQLITE} or {POSTGRES}."),
        ("hunter2", f"A store is 'memory', {SQLITE} or {POSTGRES}."),
        ("ann:hunter2@db/chats", f"A store is 'memory', {SQLITE} or {POSTGRES}."),
        ("postgresql+asyncpg://ann:hunter2@db:port/chats", f"A store is 'memory', {SQLITE} or {POSTGRES}."),
        ("", f"A store is 'memory', {SQLITE} or {POSTGRES}."),
        ("sqlite+aiosqlite://", IN_MEMORY),
        (
            "sqlite+aiosqlite:///:memory:",
            IN_MEMORY,
        ),
    ],
)
def test_a_wrong_url_is_answered_with_the_right_form_and_without_its_password(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_store(url)
    assert str(raised.value) == says
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize("missing", ["sqlalchemy", "greenlet"])
def test_without_sqlalchemy_one_is_told_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "adk_stream_protocol.store.sql")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigurationError, match=WHAT_TO_INSTALL):
        open_store(SQLITE)


@pytest.mark.parametrize(("missing", "url"), [("aiosqlite", SQLITE), ("asyncpg", POSTGRES)])
def test_without_a_driver_one_is_told_what_to_install(missing: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigurationError, match=WHAT_TO_INSTALL):
        open_store(url)


def test_the_packages_of_databases_are_not_imported_before_they_are_used() -> None:
    """Whoever stays in memory need not install them, nor wait for them."""
    code = "import sys; from adk_stream_protocol.store import open_store; open_store('memory'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "adk_stream_protocol.store.memory" in done.stdout.split()
    assert not {"sqlalchemy", "asyncpg", "adk_stream_protocol.store.sql"} & set(done.stdout.split())
