"""The tables of the SQL store, how its rows are written and read, and how tables of older versions get new columns.

Workers of older versions may use the same rows at the same time. They write the column `record` in the form that they
know. So `record` always has everything they need, and what only newer versions need is in other columns.
"""

import hashlib
from collections.abc import Collection
from itertools import takewhile
from typing import Any

import msgspec
import sqlalchemy as sa

from ..protocol.call_record import CallKey, CallRecord, ChatKey, State
from ..protocol.chunks import encode_json
from .base import AuditFilter

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
    sa.Column("asked_as", sa.Text),  # the id under which people are asked
    sa.Column("brief", sa.Text),  # the record without its result, once it has one
    sa.Column("record", sa.Text, nullable=False),
    sa.UniqueConstraint("chat", "call"),
)
is_approved = approvals.c.state == sa.literal_column(f"'{State.APPROVED}'")
_is_open = approvals.c.state.in_([sa.literal_column(f"'{state}'") for state in (State.PENDING, State.APPROVED)])
_is_in_chain = approvals.c.state == sa.literal_column(f"'{State.IN_CHAIN}'")
# Every worker looks for abandoned calls every few seconds, among all calls there ever were.
sa.Index("adk_stream_approved", approvals.c.decided_at, sqlite_where=is_approved, postgresql_where=is_approved)
# A list of chats asks for the few calls that wait, among all that the chats ever made.
sa.Index("adk_stream_open", approvals.c.chat, sqlite_where=_is_open, postgresql_where=_is_open)
sa.Index("adk_stream_chained", approvals.c.due_at, sqlite_where=_is_in_chain, postgresql_where=_is_in_chain)
_is_asked = approvals.c.asked_as.is_not(None)
sa.Index("adk_stream_asked", approvals.c.asked_as, sqlite_where=_is_asked, postgresql_where=_is_asked)

# Whose decision a call waits for. A worker of an older version that moves the call leaves its rows, so they count only
# for the version of the call that they were written with.
waiting = sa.Table(
    "adk_stream_waiting",
    _tables,
    sa.Column("id", _id, primary_key=True),
    sa.Column("chat", sa.Text, nullable=False),
    sa.Column("call", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("app", sa.Text, nullable=False),
    sa.Column("approver", sa.Text, nullable=False),  # as JSON, like titles
    sa.Column("since", sa.Double, nullable=False),
    sa.Column("announced", sa.Boolean, nullable=False),
    sa.Index("adk_stream_waiting_of", "chat", "call"),
    sa.Index("adk_stream_waiting_for", "app", "approver"),
)

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
    open_calls = sa.select(approvals.c.chat, nothing, sa.true(), record, now_column)
    open_calls = open_calls.where(approvals.c.chat.in_(chat_texts), _is_open, is_asked, is_in_time)
    chained = sa.select(approvals.c.chat, nothing, sa.true(), nothing, now_column)
    in_time = approvals.c.due_at.is_(None) | (approvals.c.due_at > now)
    chained = chained.where(approvals.c.chat.in_(chat_texts), _is_in_chain, in_time)
    return sa.union_all(titles.where(chats.c.chat.in_(chat_texts)), open_calls, chained)


def waiting_query(
    app_name: str, approvers: Collection[str], before: int | None, now: sa.ColumnElement[float]
) -> sa.Select[*tuple[Any, ...]]:
    """The calls that wait for one of these approvers, newest first."""
    names = [text_of(approver) for approver in approvers]
    waits = sa.exists().where(_is_of_call, waiting.c.app == app_name, waiting.c.approver.in_(names))
    found = _undecided(now).where(waits).order_by(approvals.c.id.desc())
    return found if before is None else found.where(approvals.c.id < before)


def unannounced_query(
    app_name: str, before: sa.ColumnElement[float], now: sa.ColumnElement[float]
) -> sa.Select[*tuple[Any, ...]]:
    is_left = (waiting.c.app == app_name) & ~waiting.c.announced & (waiting.c.since <= before)
    return _undecided(now).where(sa.exists().where(_is_of_call, is_left)).order_by(approvals.c.id)


def _undecided(now: sa.ColumnElement[float]) -> sa.Select[*tuple[Any, ...]]:
    is_in_time = approvals.c.due_at.is_(None) | (approvals.c.due_at > now)
    asked = approvals.c.state.in_((State.PENDING, State.IN_CHAIN))
    return sa.select(approvals.c.id, approvals.c.record, approvals.c.delivered).where(asked, is_in_time)


_is_of_call = (
    (waiting.c.chat == approvals.c.chat)
    & (waiting.c.call == approvals.c.call)
    & (waiting.c.version == approvals.c.version)
)


def waiting_rows(record: CallRecord, since: sa.ColumnElement[float]) -> list[dict[str, Any]]:
    about = {"chat": chat_text(record.chat), "call": call_text(record.call), "version": record.version}
    about |= {"app": record.chat.app_name, "since": since, "announced": False}
    return [{**about, "approver": text_of(approver)} for approver in dict.fromkeys(record.waits_for)]


def expired_chains(now: sa.ColumnElement[float]) -> sa.ColumnElement[bool]:
    return _is_in_chain & (approvals.c.due_at <= now)


def is_of_owner(wanted: AuditFilter) -> list[sa.ColumnElement[bool]]:
    """Which chats' lines of the audit trail are wanted, as far as the beginning of the key says."""
    names = (wanted.app_name, wanted.user_id, wanted.chat_id)
    if None not in names:
        return [audit.c.chat == chat_text(ChatKey(*map(str, names)))]
    known = list(takewhile(lambda name: name is not None, names))
    beginning = encode_json(known).decode()[:-1] + ("," if known else "")
    return [sa.func.substr(audit.c.chat, 1, len(beginning)) == beginning]


def columns_of(record: CallRecord) -> dict[str, Any]:
    """All columns that a move changes."""
    return {
        "state": record.state.value,
        "runs": record.executor,
        "decided_at": record.decided_at,
        "version": record.version,
        "due_at": record.due_at,
        "due_version": record.version,
        "asked_as": record.asked_as,
        "brief": brief_of(record),
        "record": _text_of(record),
    }


def brief_of(record: CallRecord) -> str | None:
    return None if record.result is None else _text_of(msgspec.structs.replace(record, result=None))


def _text_of(record: CallRecord) -> str:
    return encode_json(msgspec.structs.replace(record, delivered=None)).decode()


decode_record = msgspec.json.Decoder(CallRecord).decode


def text_of(value: str) -> str:
    return encode_json(value).decode()


def title_text(title: str | None) -> str | None:
    return None if title is None else text_of(title)


def decode_title(text: str | None) -> str | None:
    return None if text is None else msgspec.json.decode(text, type=str)
