"""A worker of the version before the `delivered` column: its tables and its statements, frozen as they were."""

import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

TABLES = """
CREATE TABLE IF NOT EXISTS adk_stream_approvals (
    id {id} NOT NULL, chat TEXT NOT NULL, call TEXT NOT NULL, state TEXT NOT NULL, runs TEXT NOT NULL,
    decided_at {double}, version INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (id), UNIQUE (chat, call)
);
CREATE INDEX IF NOT EXISTS adk_stream_approved ON adk_stream_approvals (decided_at) WHERE state = 'approved';
CREATE TABLE IF NOT EXISTS adk_stream_leases (
    chat TEXT NOT NULL, token TEXT NOT NULL, expires_at {double} NOT NULL, PRIMARY KEY (chat)
);
CREATE TABLE IF NOT EXISTS adk_stream_audit (
    id {id} NOT NULL, chat TEXT NOT NULL, at {double} NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS ix_adk_stream_audit_chat ON adk_stream_audit (chat)
"""
TYPES = {
    "sqlite": {"id": "INTEGER", "double": "DOUBLE"},
    "postgresql": {"id": "BIGSERIAL", "double": "DOUBLE PRECISION"},
}
ADD = text(
    "INSERT INTO adk_stream_approvals (chat, call, state, runs, decided_at, version, record)"
    " VALUES (:chat, :call, :state, :runs, :decided_at, :version, :record) ON CONFLICT DO NOTHING"
    " RETURNING adk_stream_approvals.id"
)
MOVE = text(
    "UPDATE adk_stream_approvals SET state = :state, runs = :runs, decided_at = :decided_at, version = :version,"
    " record = :record WHERE chat = :chat AND call = :call AND version = :old_version"
)
READ = text("SELECT record FROM adk_stream_approvals WHERE chat = :chat AND call = :call")
NOTE = text("INSERT INTO adk_stream_audit (chat, at, entry) VALUES (:chat, :at, :entry)")
FORGET = [text(f"DELETE FROM adk_stream_{table} WHERE chat = :chat") for table in ("approvals", "leases")]

FIELDS = [
    "chat",
    "call",
    "tool",
    "arguments",
    "runs",
    "state",
    "asked_at",
    "approval_id",
    "hint",
    "output_schema",
    "deadline",
    "browser_deadline",
    "approved",
    "decided_at",
    "decided_by",
    "reason",
    "payload",
    "run",
    "result",
    "version",
]
"""Of its record. It reads over others, and so it drops them when it writes."""

CHAT = ["app", "ann", "c1"]


class OldWorker:
    """Keeps one connection, whose statements the server has prepared before anybody changes the table."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, call_id: str) -> None:
        record = {"chat": CHAT, "call": ["inv-1", call_id], "tool": "pay", "arguments": {"amount": 5}}
        record |= {"runs": "server", "state": "pending", "asked_at": 1000.0}
        added = await self._connection.execute(ADD, _key(call_id) | _columns(record))
        assert added.first() is not None
        await self._note(record)
        await self._connection.commit()

    async def read(self, call_id: str) -> dict[str, Any]:
        row = (await self._connection.execute(READ, _key(call_id))).one()
        await self._connection.rollback()
        return {name: value for name, value in json.loads(row.record).items() if name in FIELDS}

    async def move(self, call_id: str, **changes: Any) -> None:
        old = await self.read(call_id)
        new = old | changes | {"version": old.get("version", 0) + 1}
        where = _key(call_id) | {"old_version": old.get("version", 0)}
        assert (await self._connection.execute(MOVE, where | _columns(new))).rowcount == 1
        await self._note(new)
        await self._connection.commit()

    async def approve(self, call_id: str) -> None:
        await self.move(call_id, state="approved", approved=True, decided_at=1001.0, decided_by="ann")

    async def forget(self) -> None:
        for statement in FORGET:
            await self._connection.execute(statement, {"chat": _compact(CHAT)})
        await self._connection.commit()

    async def _note(self, record: dict[str, Any]) -> None:
        entry = {"at": 0.0, "digest": "d", **{name: record[name] for name in ("chat", "call", "tool", "state")}}
        values = {"chat": _compact(CHAT), "at": 1000.0, "entry": _compact(entry)}
        await self._connection.execute(NOTE, values)


@asynccontextmanager
async def old_worker(url: str) -> AsyncGenerator[OldWorker]:
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            for statement in TABLES.format(**TYPES[engine.dialect.name]).split(";"):
                await connection.exec_driver_sql(statement)
            await connection.commit()
            yield OldWorker(connection)
    finally:
        await engine.dispose()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _key(call_id: str) -> dict[str, Any]:
    call = hashlib.sha256(_compact(["inv-1", call_id]).encode()).hexdigest()
    return {"chat": _compact(CHAT), "call": call}


def _columns(record: dict[str, Any]) -> dict[str, Any]:
    known = {"state": record["state"], "runs": record["runs"], "decided_at": record.get("decided_at")}
    return known | {"version": record.get("version", 0), "record": _compact(record)}
