"""The store for several workers: SQLite for workers on one machine, PostgreSQL for workers on many.

The names of its tables begin with `adk_stream_`, so that they can be in the database of ADK's sessions. Whatever
several workers could do at the same time is one conditional statement. The time is the database's, so that the clocks
of the workers do not matter. Transactions that write several rows write them in one order (the chat's lease, then its
calls by their key), so that no two of them wait for each other.
"""

import asyncio
import importlib
import logging
import sqlite3
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import msgspec

from ..errors import ConfigurationError, StoreUnavailable
from ..protocol.call_record import CallKey, CallRecord, ChatKey
from ..protocol.chunks import encode_json
from .base import (
    STORE_CONTRACT_VERSION,
    Acquired,
    AuditEntry,
    AuditFilter,
    Lease,
    Listed,
    Snapshot,
    Waiting,
    audit_entry,
    in_brief,
)

_INSTALL = "A store in a database needs more packages: pip install 'adk-stream-protocol[sql]'"

try:
    import greenlet as greenlet  # without it SQLAlchemy is installed, and fails at the first statement
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

    from .tables import approvals as _approvals
    from .tables import audit as _audit
    from .tables import (
        brief_of,
        call_text,
        chat_text,
        columns_of,
        create_tables,
        decode_record,
        decode_title,
        expired_chains,
        is_approved,
        is_of_owner,
        overview_query,
        title_text,
        unannounced_query,
        waiting_query,
        waiting_rows,
    )
    from .tables import chats as _chats
    from .tables import leases as _leases
    from .tables import waiting as _waiting
except ImportError:
    raise ConfigurationError(_INSTALL) from None

logger = logging.getLogger(__name__)

_PATIENCE_S = 30  # for a lock or an answer; nobody reads the response to a request that waits longer
_HOLDERS_TURN_S = 0.3  # for the holder of a lease to renew it; a writer that waits in SQLite tries every 0.1 s
_OTHER_LOOPS_POOL = {"pool_size": 2, "max_overflow": 0}  # the other loop renews leases, one short statement each


class _Database(NamedTuple):
    """Where the two databases differ."""

    url_form: str
    insert: Callable[[sa.Table], postgresql.Insert] | Callable[[sa.Table], sqlite.Insert]
    now: sa.ColumnElement[float]
    engine_options: dict[str, Any]
    single_statement_options: dict[str, Any]
    """For a statement without a transaction."""
    prepare: Callable[[AsyncEngine], None] | None = None
    """Called before the tables are created. It may block."""
    begin: str | None = None
    one_creates: str | None = None
    """Lets one worker at a time create tables: CREATE TABLE IF NOT EXISTS fails in PostgreSQL if two run it at once."""


def _prepare_sqlite(engine: AsyncEngine) -> None:
    """Without the engine: aiosqlite does not end the thread of a connection that could not be opened."""
    (file_name,), given = engine.dialect.create_connect_args(engine.url)
    options: dict[str, Any] = {**given, "timeout": _PATIENCE_S}
    give_up_at = time.monotonic() + _PATIENCE_S
    with closing(sqlite3.connect(file_name, **options)) as file:
        while True:
            try:
                file.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:  # SQLite does not wait here for another process
                if "locked" not in str(error) or time.monotonic() > give_up_at:
                    raise
                time.sleep(0.05)


_DATABASES = {
    "sqlite+aiosqlite": _Database(
        url_form="sqlite+aiosqlite:///file.db",
        insert=sqlite.insert,
        # Julian days: older releases of SQLite give the epoch without fractions of seconds.
        now=(sa.func.julianday("now", type_=sa.Double) - 2440587.5) * 86400.0,
        # Only transactions that we begin: one that begins with a read cannot wait for the right to write.
        engine_options={"connect_args": {"timeout": _PATIENCE_S, "isolation_level": None}},
        single_statement_options={},
        prepare=_prepare_sqlite,
        begin="BEGIN IMMEDIATE",
    ),
    "postgresql+asyncpg": _Database(
        url_form="postgresql+asyncpg://user:password@host/database",
        insert=postgresql.insert,
        now=sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double),
        engine_options={
            "connect_args": {"timeout": 10, "command_timeout": _PATIENCE_S},
            "pool_pre_ping": True,  # networks drop connections that were silent for minutes
        },
        single_statement_options={"isolation_level": "AUTOCOMMIT"},
        one_creates="SELECT pg_advisory_xact_lock(hashtext('adk_stream_approvals'))",
    ),
}


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _to_its_end(method: Callable[Concatenate["SqlStore", _P], Coroutine[Any, Any, _T]]):
    """A caller that is cancelled leaves at once, but the method goes on to its end. If a statement is interrupted,
    aiosqlite (0.22) may wait for ever to close the connection, and block the whole event loop."""

    async def shielded(self: "SqlStore", *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.shield(self._begun(method(self, *args, **kwargs)))  # pyright: ignore[reportPrivateUsage]

    return shielded


class SqlStore:
    """`clock` is for tests; without it, the database's clock counts. All use is in one event loop.

    | Attributes | |
    |---|---|
    | `_url`, `_database`, `_failures`, `_clock`, `_pool_options` | which database, and what is special about it |
    | `_engine`, `_is_prepared`, `_opening` | the connections, and whether the tables are there |
    | `_at_work`, `_writers` | what runs, and who may write |
    | `contract_version` | see `Store` |
    """

    contract_version: int = STORE_CONTRACT_VERSION

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None) -> None:
        self._url, self._database = _parse_url(url)
        self._failures = _failures_of(self._url.get_driver_name())
        self._clock = clock
        self._engine: AsyncEngine | None = None
        self._pool_options: dict[str, int] = {}
        self._is_prepared = False
        self._opening = asyncio.Lock()
        self._at_work: set[asyncio.Task[Any]] = set()
        # SQLite has one writer at a time. Writers of this process queue here: SQLite itself would sleep between tries.
        self._writers = asyncio.Lock() if self._database.begin else nullcontext()

    @_to_its_end
    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        async with self._one_statement() as connection:
            found = await self._snapshot(connection, chat, call)
        return found if call is not None else found._replace(records=[in_brief(each) for each in found.records])

    @_to_its_end
    async def results(self, chat: ChatKey, calls: Collection[CallKey]) -> Mapping[CallKey, Any]:
        wanted = (_approvals.c.chat == chat_text(chat)) & _approvals.c.call.in_(map(call_text, calls))
        async with self._one_statement() as connection:
            records = (await connection.execute(sa.select(_approvals.c.record).where(wanted))).scalars().all()
        return {found.call: found.result for found in map(decode_record, records)}

    @_to_its_end
    async def add(self, record: CallRecord) -> bool:
        row = {"chat": chat_text(record.chat), "call": call_text(record.call), "delivered": False}
        new = self._database.insert(_approvals).values(**row, **columns_of(record)).on_conflict_do_nothing()
        async with self._writing() as connection:
            if (await connection.execute(new.returning(_approvals.c.id))).first() is None:
                return False
            await self._set_waiting(connection, record)
            await self._note(connection, record, asked=True)
        return True

    @_to_its_end
    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        async with self._writing() as connection:
            return await self._set(connection, old, steps, lease)

    @_to_its_end
    async def acquire(
        self, chat: ChatKey, lasts_s: float, changes: Sequence[tuple[CallRecord, CallRecord]] = ()
    ) -> Acquired:
        async with self._writing() as connection:
            if not await self._may_be_renewed(connection, chat):
                return await self._acquire(connection, chat, lasts_s, changes)
        await asyncio.sleep(_HOLDERS_TURN_S)
        async with self._writing() as connection:
            return await self._acquire(connection, chat, lasts_s, changes)

    async def _may_be_renewed(self, connection: AsyncConnection, chat: ChatKey) -> bool:
        """Whether the lease has expired, and its holder may only have had no chance to renew it. SQLite has one writer
        at a time, and those who wait come in no order, so a slow writer may have kept the holder waiting. The holder
        gets some time before somebody else takes the lease."""
        if self._database.begin is None:
            return False
        is_of_chat = _leases.c.chat == chat_text(chat)
        run_out = sa.select(_leases.c.token).where(is_of_chat, _leases.c.expires_at <= self._now())
        return (await connection.execute(run_out)).first() is not None

    async def _acquire(
        self,
        connection: AsyncConnection,
        chat: ChatKey,
        lasts_s: float,
        changes: Sequence[tuple[CallRecord, CallRecord]],
    ) -> Acquired:
        lease = Lease(chat, uuid.uuid4().hex)
        expires_at = self._now() + lasts_s
        new = self._database.insert(_leases).values(chat=chat_text(chat), token=lease.token, expires_at=expires_at)
        taken = new.on_conflict_do_update(
            index_elements=[_leases.c.chat],
            set_={"token": lease.token, "expires_at": expires_at},
            where=_leases.c.expires_at <= self._now(),
        ).returning(_leases.c.token)
        is_ours = (await connection.execute(taken)).first() is not None
        for old, step in sorted(changes, key=lambda change: call_text(change[0].call)):
            await self._set(connection, old, [step])
        found = await self._snapshot(connection, chat)
        if not changes:  # rows are written in one order, and the changes have just been written in it
            await self._shorten(connection, found.records)
        return Acquired(lease if is_ours else None, found._replace(records=[in_brief(each) for each in found.records]))

    @_to_its_end
    async def renew(self, lease: Lease, lasts_s: float) -> bool:
        change = sa.update(_leases).where(_is_lease(lease)).values(expires_at=self._now() + lasts_s)
        async with self._writers, self._one_statement() as connection:
            return (await connection.execute(change)).rowcount > 0

    @_to_its_end
    async def release(self, lease: Lease, delivered: Collection[CallKey] = (), title: str | None = None) -> None:
        mark = sa.update(_approvals).where(
            _approvals.c.chat == chat_text(lease.chat), _approvals.c.call == sa.bindparam("marked")
        )
        async with self._writing() as connection:
            was_ours = (await connection.execute(sa.delete(_leases).where(_is_lease(lease)))).rowcount > 0
            if title is not None and was_ours:
                await self._set_title(connection, lease.chat, title)
            if marked := [{"marked": text} for text in sorted(map(call_text, delivered))]:
                await connection.execute(mark.values(delivered=True), marked)

    @_to_its_end
    async def keep_title(self, chat: ChatKey, title: str) -> bool:
        new = self._database.insert(_chats).values(chat=chat_text(chat), title=title_text(title))
        async with self._writing() as connection:
            kept = await connection.execute(new.on_conflict_do_nothing().returning(_chats.c.chat))
            return kept.first() is not None

    @_to_its_end
    async def overview(self, chats: Collection[ChatKey]) -> Mapping[ChatKey, Listed]:
        keys = {chat_text(chat): chat for chat in chats}
        listed = dict.fromkeys(keys, Listed())
        async with self._one_statement() as connection:
            rows = (await connection.execute(overview_query(keys, self._now()))).all()
        for row in rows:
            if not row.is_open:
                listed[row.chat] = listed[row.chat]._replace(title=decode_title(row.title))
            elif row.record is None or decode_record(row.record).waits(row.now):
                listed[row.chat] = listed[row.chat]._replace(is_waiting=True)
        return {keys[text]: found for text, found in listed.items()}

    @_to_its_end
    async def abandoned(self, after_s: float) -> Sequence[ChatKey]:
        expired = sa.select(_leases.c.chat).where(_leases.c.expires_at <= self._now())
        is_old = _approvals.c.decided_at.is_(None) | (_approvals.c.decided_at <= self._now() - after_s)
        is_free = ~sa.exists().where(_leases.c.chat == _approvals.c.chat)
        left = sa.select(_approvals.c.chat).where(is_approved, _approvals.c.runs == "server", is_old, is_free)
        chained = sa.select(_approvals.c.chat).where(expired_chains(self._now()), is_free)
        async with self._one_statement() as connection:
            found = (await connection.execute(sa.union(expired, left, chained))).scalars().all()
        return [msgspec.json.decode(chat, type=ChatKey) for chat in found]

    @_to_its_end
    async def waiting(
        self, app_name: str, approvers: Collection[str], limit: int, cursor: str | None = None
    ) -> Waiting:
        before = int(cursor) if cursor is not None and cursor.isdecimal() and len(cursor) < 19 else None
        page = waiting_query(app_name, approvers, before, self._now()).limit(limit + 1)
        rows, now = await self._rows_now(page)
        found = [_with_mark(row.record, row.delivered) for row in rows[:limit]]
        return Waiting(found, now, str(rows[limit - 1].id) if len(rows) > limit else None)

    @_to_its_end
    async def find_asked(self, app_name: str, approval_id: str) -> Snapshot:
        wanted = _approvals.c.asked_as == approval_id.replace("\0", "")
        rows, now = await self._rows_now(sa.select(_approvals.c.record, _approvals.c.delivered).where(wanted))
        found = [_with_mark(row.record, row.delivered) for row in rows]
        return Snapshot([record for record in found if record.chat.app_name == app_name], now)

    @_to_its_end
    async def unannounced(self, app_name: str, after_s: float) -> Sequence[CallRecord]:
        rows, _ = await self._rows_now(unannounced_query(app_name, self._now() - after_s, self._now()))
        return [_with_mark(row.record, row.delivered) for row in rows]

    @_to_its_end
    async def mark_announced(self, record: CallRecord) -> None:
        is_of_call = (_waiting.c.chat == chat_text(record.chat)) & (_waiting.c.call == call_text(record.call))
        mark = sa.update(_waiting).where(is_of_call, _waiting.c.version == record.version).values(announced=True)
        async with self._writers, self._one_statement() as connection:
            await connection.execute(mark)

    @_to_its_end
    async def audit(self, wanted: ChatKey | AuditFilter) -> Sequence[AuditEntry]:
        wanted = AuditFilter(*wanted) if isinstance(wanted, ChatKey) else wanted
        conditions = is_of_owner(wanted)
        if wanted.since is not None:
            conditions.append(_audit.c.at >= wanted.since)
        if wanted.until is not None:
            conditions.append(_audit.c.at < wanted.until)
        trail = sa.select(_audit.c.at, _audit.c.entry).where(*conditions).order_by(_audit.c.id)
        async with self._one_statement() as connection:
            rows = (await connection.execute(trail)).all()
        found = [msgspec.structs.replace(_decode_audit_entry(row.entry), at=row.at) for row in rows]
        return [entry for entry in found if wanted.wants(entry)]

    @_to_its_end
    async def forget(self, lease: Lease) -> bool:
        current = sa.select(_leases.c.token).where(self._is_current(lease)).with_for_update()
        calls = sa.select(_approvals.c.id).where(_approvals.c.chat == chat_text(lease.chat))
        in_order = calls.order_by(_approvals.c.call).with_for_update()
        async with self._writing() as connection:
            if (await connection.execute(current)).first() is None:
                return False
            # A row without a title, so that a list that is late stores no title.
            await self._set_title(connection, lease.chat, None)
            await connection.execute(sa.delete(_approvals).where(_approvals.c.id.in_(in_order)))
            await connection.execute(sa.delete(_waiting).where(_waiting.c.chat == chat_text(lease.chat)))
        return True

    def for_another_loop(self) -> "SqlStore":
        other = SqlStore(self._url.render_as_string(hide_password=False), clock=self._clock)
        other._pool_options, other._is_prepared = _OTHER_LOOPS_POOL, self._engine is not None
        return other

    async def aclose(self) -> None:
        if self._at_work:
            await asyncio.wait(set(self._at_work))
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()

    def _begun(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        return task

    def _now(self) -> sa.ColumnElement[float]:
        return self._database.now if self._clock is None else sa.literal(self._clock(), sa.Double)

    def _is_current(self, lease: Lease) -> sa.ColumnElement[bool]:
        return _is_lease(lease) & (_leases.c.expires_at > self._now())

    async def _snapshot(self, connection: AsyncConnection, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        is_leased = sa.exists().where(_leases.c.chat == chat_text(chat), _leases.c.expires_at > self._now())
        # So that both are read even if the chat has no calls.
        clock = sa.select(self._now().label("now"), is_leased.label("is_leased")).subquery()
        wanted = _approvals.c.chat == chat_text(chat)
        if call is not None:
            wanted &= _approvals.c.call == call_text(call)
        is_brief = _approvals.c.delivered & _approvals.c.brief.is_not(None)
        brief = sa.case((is_brief, _approvals.c.brief), else_=_approvals.c.record)
        record = (brief if call is None else _approvals.c.record).label("record")
        query = sa.select(clock.c.now, clock.c.is_leased, record, _approvals.c.delivered)
        query = query.select_from(clock.outerjoin(_approvals, wanted)).order_by(_approvals.c.id)
        rows = (await connection.execute(query)).all()
        found = [_with_mark(row.record, row.delivered) for row in rows if row.record is not None]
        return Snapshot(found, rows[0].now, bool(rows[0].is_leased))

    async def _shorten(self, connection: AsyncConnection, found: Sequence[CallRecord]) -> None:
        """Give calls that a worker of an older version has ended their short form, so that their results are not read
        again."""
        whole = [each for each in found if each.delivered and each.result is not None]
        for each in sorted(whole, key=lambda each: call_text(each.call)):
            change = sa.update(_approvals).where(_is_call(each)).values(brief=brief_of(each))
            await connection.execute(change)

    async def _set_title(self, connection: AsyncConnection, chat: ChatKey, title: str | None) -> None:
        row = {"chat": chat_text(chat), "title": title_text(title)}
        new = self._database.insert(_chats).values(**row)
        change = new.on_conflict_do_update(index_elements=[_chats.c.chat], set_={"title": row["title"]})
        await connection.execute(change)

    async def _set(
        self, connection: AsyncConnection, old: CallRecord, steps: Sequence[CallRecord], lease: Lease | None = None
    ) -> bool:
        change = sa.update(_approvals).where(_is_call(old), _approvals.c.version == old.version)
        if lease is not None:
            change = change.where(sa.exists().where(_leases.c.chat == _approvals.c.chat, self._is_current(lease)))
        if (await connection.execute(change.values(**columns_of(steps[-1])))).rowcount == 0:
            return False
        if not old.is_decided:
            is_of_call = (_waiting.c.chat == chat_text(old.chat)) & (_waiting.c.call == call_text(old.call))
            await connection.execute(sa.delete(_waiting).where(is_of_call))
            await self._set_waiting(connection, steps[-1])
        await self._note(connection, *steps)
        return True

    async def _set_waiting(self, connection: AsyncConnection, record: CallRecord) -> None:
        if rows := waiting_rows(record, self._now()):
            await connection.execute(sa.insert(_waiting).values(rows))

    async def _rows_now(self, query: sa.Select[*tuple[Any, ...]]) -> tuple[Sequence[Any], float]:
        """The rows of a query, and the time, in one statement."""
        found = query.subquery()
        clock = sa.select(self._now().label("now")).subquery()
        joined = sa.select(clock.c.now, *found.c).select_from(clock.outerjoin(found, sa.true()))
        if "id" in found.c:
            joined = joined.order_by(found.c.id.desc())
        async with self._one_statement() as connection:
            rows = (await connection.execute(joined)).all()
        return [row for row in rows if row.record is not None], rows[0].now

    async def _note(self, connection: AsyncConnection, *steps: CallRecord, asked: bool = False) -> None:
        # The time in the entry does not count: the column has the database's time.
        entries = [encode_json(audit_entry(step, 0, asked=asked)).decode() for step in steps]
        chat = chat_text(steps[0].chat)
        new = sa.insert(_audit).values([{"chat": chat, "at": self._now(), "entry": entry} for entry in entries])
        await connection.execute(new)

    @asynccontextmanager
    async def _one_statement(self) -> AsyncGenerator[AsyncConnection]:
        """Without a transaction, so that nothing stays locked if the event loop is busy afterwards."""
        with self._failing_closed():
            engine = await self._opened()
            async with engine.execution_options(**self._database.single_statement_options).connect() as connection:
                yield connection

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[AsyncConnection]:
        with self._failing_closed():
            engine = await self._opened()
            async with self._writers, engine.begin() as connection:
                if self._database.begin:
                    await connection.exec_driver_sql(self._database.begin)
                yield connection

    @contextmanager
    def _failing_closed(self) -> Generator[None]:
        try:
            yield
        except self._failures as error:
            # A database's message may quote what people wrote: neither the message nor the exception is passed on.
            logger.warning("The store's database failed: %s", type(error).__name__)
            raise StoreUnavailable from None

    async def _opened(self) -> AsyncEngine:
        if self._engine is not None:
            return self._engine
        async with asyncio.timeout(_PATIENCE_S), self._opening:
            if self._engine is None:
                options = {**self._database.engine_options, **self._pool_options}
                engine = create_async_engine(self._url, hide_parameters=True, **options)
                try:
                    if not self._is_prepared:
                        await self._prepare(engine)
                except BaseException:
                    await engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    async def _prepare(self, engine: AsyncEngine) -> None:
        if self._database.prepare:
            await asyncio.to_thread(self._database.prepare, engine)
        async with engine.begin() as connection:
            if first := self._database.begin or self._database.one_creates:
                await connection.exec_driver_sql(first)
            await connection.run_sync(create_tables)


def _parse_url(url: str) -> tuple[sa.URL, _Database]:
    """No message quotes the URL, since it may contain a password."""
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is not None and parsed.drivername in _DATABASES:
        if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
            raise ConfigurationError(
                "A SQLite database in memory belongs to a single connection: use 'memory' for a store in memory."
            )
        return parsed, _DATABASES[parsed.drivername]
    forms = [database.url_form for database in _DATABASES.values()]
    if parsed is None:
        raise ConfigurationError(f"A store is 'memory', {' or '.join(forms)}.")
    backend = "postgresql" if parsed.drivername.startswith("postgres") else parsed.get_backend_name()
    fitting = [form for form in forms if form.startswith(f"{backend}+")] or forms
    raise ConfigurationError(f"A store at {parsed.drivername}:// is not supported. Use {' or '.join(fitting)}.")


def _failures_of(driver: str) -> tuple[type[Exception], ...]:
    try:
        module = importlib.import_module(driver)
    except ImportError:
        raise ConfigurationError(_INSTALL) from None
    # The drivers' own errors, too: while a driver connects, SQLAlchemy does not wrap all of them.
    own = [getattr(module, name) for name in ("Error", "PostgresError", "InterfaceError") if hasattr(module, name)]
    return (SQLAlchemyError, OSError, *own)


def _is_lease(lease: Lease) -> sa.ColumnElement[bool]:
    return (_leases.c.chat == chat_text(lease.chat)) & (_leases.c.token == lease.token)


_decode_audit_entry = msgspec.json.Decoder(AuditEntry).decode


def _is_call(record: CallRecord) -> sa.ColumnElement[bool]:
    return (_approvals.c.chat == chat_text(record.chat)) & (_approvals.c.call == call_text(record.call))


def _with_mark(record: str, delivered: bool | None) -> CallRecord:
    return msgspec.structs.replace(decode_record(record), delivered=delivered)
