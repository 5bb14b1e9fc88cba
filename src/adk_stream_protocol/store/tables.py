"""The tables of the SQL store, how its rows are written and read, and how tables of older versions get new columns.

Workers of older versions may use the same rows at the same time. They write the column `record` in the form that they
know. So `record` always has everything they need, and what only newer versions need is in other columns.
"""

import hashlib
from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa

from ..protocol.call_record import CallKey, CallRecord, ChatKey, State
from ..protocol.chunks import encode_json

_tables = sa.MetaData()
_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite numbers only INTEGER keys by itself

approvals = sa.Table(
    "adk_stream_approvals",
    _tables,
    sa.Column("id", _id, primary_key=True),
    sa.Column("chat", sa.Text, nullable=False),
    sa.Column("call", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("runs", sa.Text, nullable=False),
    sa.Column("decided_at", sa.Double),
    sa.Column("version", sa.Integer, nullable=False),
    # Before the record: to reach a column behind a long one, SQLite reads through the long one.
    sa.Column("delivered", sa.Boolean),
    sa.Column("due_at", sa.Double),
    sa.Column("due_version", sa.Integer),  # the version that `due_at` is of: older workers do not write `due_at`
    sa.Column("brief", sa.Text),  # the record without its result, once it has one
    sa.Column("record", sa.Text, nullable=False),
    sa.UniqueConstraint("chat", "call"),
)
is_approved = approvals.c.state == sa.literal_column(f"'{State.APPROVED}'")
_is_open = approvals.c.state.in_([sa.literal_column(f"'{state}'") for state in (State.PENDING, State.APPROVED)])
# Every worker looks for abandoned calls every few seconds, among all calls there ever were.
sa.Index("adk_stream_approved", approvals.c.decided_at, sqlite_where=is_approved, postgresql_where=is_approved)
# A list of chats asks for the few calls that wait, among all that the chats ever made.
sa.Index("adk_stream_open", approvals.c.chat, sqlite_where=_is_open, postgresql_where=_is_open)

chats = sa.Table(
    "adk_stream_chats",
    _tables,
    sa.Column("chat", sa.Text, primary_key=True),
    sa.Column("title", sa.Text),  # as JSON: PostgreSQL takes no text with a NUL in it. None: the chat was forgotten
)

leases = sa.Table(
    "adk_stream_leases",
    _tables,
    sa.Column("chat", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
)

audit = sa.Table(
    "adk_stream_audit",
    _tables,
    sa.Column("id", _id, primary_key=True),
    sa.Column("chat", sa.Text, nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("entry", sa.Text, nullable=False),
)


def create_tables(connection: sa.Connection) -> None:
    _tables.create_all(connection)
    there = {column["name"] for column in sa.inspect(connection).get_columns(approvals.name)}
    for column in approvals.columns:
        if column.name not in there:  # the table of an older version, whose workers may be running
            kind = column.type.compile(connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {approvals.name} ADD COLUMN {column.name} {kind}")
    for index in approvals.indexes:
        index.create(connection, checkfirst=True)


def chat_text(chat: ChatKey) -> str:
    return msgspec.json.encode(chat).decode()


def call_text(call: CallKey) -> str:
    """A digest: the call ids of some models have kilobytes, more than PostgreSQL accepts in an index."""
    return hashlib.sha256(msgspec.json.encode(call)).hexdigest()


def overview_query(chat_texts: Collection[str], now: sa.ColumnElement[float]) -> sa.Executable:
    """Titles, and the calls that wait. A call that a worker of an older version has changed comes with its record,
    since only the record says until when it waits."""
    nothing, now_column = sa.cast(sa.null(), sa.Text), now.label("now")
    titles = sa.select(chats.c.chat, chats.c.title, sa.false().label("is_open"), nothing.label("record"), now_column)
    is_asked = (approvals.c.state == State.PENDING) | (approvals.c.runs == "browser")
    has_due_at = sa.func.coalesce(approvals.c.due_version, -1) == approvals.c.version
    is_in_time = ~has_due_at | approvals.c.due_at.is_(None) | (approvals.c.due_at > now)
    record = sa.case((has_due_at, nothing), else_=approvals.c.record)
    waiting = sa.select(approvals.c.chat, nothing, sa.true(), record, now_column)
    waiting = waiting.where(approvals.c.chat.in_(chat_texts), _is_open, is_asked, is_in_time)
    return sa.union_all(titles.where(chats.c.chat.in_(chat_texts)), waiting)


def columns_of(record: CallRecord) -> dict[str, Any]:
    """All columns that a move changes."""
    return {
        "state": record.state.value,
        "runs": record.executor,
        "decided_at": record.decided_at,
        "version": record.version,
        "due_at": record.due_at,
        "due_version": record.version,
        "brief": brief_of(record),
        "record": _text_of(record),
    }


def brief_of(record: CallRecord) -> str | None:
    return None if record.result is None else _text_of(msgspec.structs.replace(record, result=None))


def _text_of(record: CallRecord) -> str:
    return encode_json(msgspec.structs.replace(record, delivered=None)).decode()


decode_record = msgspec.json.Decoder(CallRecord).decode


def title_text(title: str | None) -> str | None:
    return None if title is None else encode_json(title).decode()


def decode_title(text: str | None) -> str | None:
    return None if text is None else msgspec.json.decode(text, type=str)
