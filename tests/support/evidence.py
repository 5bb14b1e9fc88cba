"""What is known of one chat and its calls, from everybody who has seen something of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions import BaseSessionService
from starlette.types import ASGIApp

from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey
from adk_stream_protocol.store.base import AuditEntry, Store
from support.asgi import exchange
from support.records import read_whole
from support.tool_log import ToolRun


@dataclass(frozen=True, kw_only=True)
class ClientStream:
    """What the server answered to one request of a client's."""

    request: str
    """In words, for whoever reads a failure."""
    status: int
    chunks: Sequence[Mapping[str, Any]] = ()
    was_left: bool = False
    """The client did not wait for the end."""
    is_done: bool = True
    """The body ended with `[DONE]`."""
    answered: frozenset[str] = frozenset()
    """The calls that the request decided about."""
    recorded_then: Mapping[CallKey, str] = field(default_factory=dict[CallKey, str])
    """The states of the calls when the stream had ended."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a person meant: pressed while these arguments were on the screen. A replay of the request says nothing."""

    tool: str
    arguments: Any
    approved: bool


@dataclass(frozen=True, kw_only=True)
class World:
    """The evidence of one chat, when nothing runs in it any more."""

    chat: ChatKey
    runs: Sequence[ToolRun] = ()
    records: Sequence[CallRecord] = ()
    audit: Sequence[AuditEntry] = ()
    events: Sequence[Event] = ()
    requests: Sequence[LlmRequest] = ()
    """What the model was asked in this chat, in order."""
    streams: Sequence[ClientStream] = ()
    history: Sequence[Mapping[str, Any]] | None = None
    """None: the chat does not exist any more."""
    said: Sequence[Said] | None = None
    """None: whatever was posted was meant."""
    was_stopped: bool = False
    """Somebody has pressed Stop, which may have been the answer to a question."""
    is_settled: bool = True
    """The chat has had one more turn after everything: whatever has ended must have been told by then."""
    record_was_unreadable: bool = False
    """The store failed in between, so that a stream may have said that an outcome is unknown."""
    browser_tools: frozenset[str] = frozenset()


async def look(app: ASGIApp, store: Store, sessions: BaseSessionService, chat: ChatKey, **seen: Any) -> World:
    """The world as it is now. `seen`: the evidence that only the test has."""
    path, headers = f"/api/chat/{chat.chat_id}/messages", {"x-user": chat.user_id}
    read = await exchange(app, method="GET", path=path, headers=headers)
    reload = ClientStream(request="GET messages", status=read.status)
    history = json.loads(read.body) if read.status == 200 else None
    seen["streams"] = [*seen.get("streams", ()), reload]
    return await look_into(store, sessions, chat, history=history, **seen)


async def look_into(store: Store, sessions: BaseSessionService, chat: ChatKey, **seen: Any) -> World:
    """The same, where the history was read elsewhere."""
    app_name, user_id, chat_id = chat
    session = await sessions.get_session(app_name=app_name, user_id=user_id, session_id=chat_id)
    return World(
        chat=chat,
        records=await read_whole(store, chat),
        audit=await store.audit(chat),
        events=session.events if session else (),
        **seen,
    )
