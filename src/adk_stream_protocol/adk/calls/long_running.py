"""Long-running calls: the work that goes on after the tool has returned, and the name that the application gives it.

The work has a record of its own, under `work_key`: the call may have one of its approval.
"""

import base64
import binascii
import logging
from typing import Any
from weakref import WeakSet

import msgspec
from google.adk.tools import ToolContext

from ...errors import StoreUnavailable
from ...loop_share import LoopShare
from ...protocol.call_keys import work_key
from ...protocol.call_record import CallKey, CallRecord, ChatKey, State
from ..event_parts import QUESTIONS
from ..session import Chat, kept_events, message_id_of
from .gated_call import GatedCall, to_its_end
from .leased_chat import call_keys

logger = logging.getLogger(__name__)

STILL_AT_WORK = {"status": "pending"}
_VERSION = "1"
_named: WeakSet[ToolContext] = WeakSet()


def call_ref(tool_context: ToolContext) -> str:
    """A name of this call for `ChatBridge.complete_call`, from anywhere and at any time later.

    It is opaque. It is not a secret, but whoever has it names a call: never take it from a browser."""
    chat, call = call_keys(tool_context)
    _named.add(tool_context)
    named = msgspec.json.encode([_VERSION, *chat, *call])
    return base64.urlsafe_b64encode(named).rstrip(b"=").decode()


def decode_call_ref(ref: str) -> tuple[ChatKey, CallKey] | None:
    try:
        named = base64.b64decode(ref + "=" * (-len(ref) % 4), altchars=b"-_", validate=True)
        version, app_name, user_id, chat_id, *call = msgspec.json.decode(named, type=list[str])
        invocation_id, call_id = call
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        return None
    if version != _VERSION:
        return None
    return ChatKey(app_name, user_id, chat_id), CallKey(invocation_id, call_id)


def has_ref(tool_context: ToolContext) -> bool:
    """Whether the application can report the end of this call."""
    return tool_context in _named


async def open_work(call: GatedCall) -> None:
    """A long-running tool has returned, and its work goes on: record that, with what was chosen for its turn."""
    if call.nested_in is not None:
        return  # the session has no place for its end
    try:
        now = (await call.store.read(call.leased.key, work_key(call.key))).now
        record = work_record(call.leased.key, call.key, call.tool.name, call.arguments)
        record = msgspec.structs.replace(record, asked_at=now, message_id=call.leased.message_id, **call.leased.turn)
        if await to_its_end(call.store.add(record)):
            call.leased.records[record.call] = record
    except StoreUnavailable:
        logger.error("the store is down: the work of call %s is recorded with its end", call.key.call_id)


async def has_ended(call: GatedCall) -> bool:
    """Whether the application has reported the end already."""
    found = (await call.store.read(call.leased.key, work_key(call.key))).find(work_key(call.key))
    return found is not None and found.is_final


async def find_work(chat: Chat, call: CallKey) -> CallRecord | None:
    """A record for the work of a long-running call in the session: the end may come before the tool has returned."""
    session = await chat.load()
    for event in await kept_events(session.events if session is not None else [], LoopShare()):
        if event.invocation_id != call.invocation_id or call.call_id not in (event.long_running_tool_ids or ()):
            continue
        for made in event.get_function_calls():
            if made.id == call.call_id and made.name not in QUESTIONS:
                record = work_record(chat.key, call, made.name or "", made.args or {})
                return msgspec.structs.replace(record, asked_at=event.timestamp, message_id=message_id_of(event))
    return None


def work_record(chat: ChatKey, call: CallKey, tool: str, arguments: Any) -> CallRecord:
    return CallRecord(
        chat=chat,
        call=work_key(call),
        tool=tool,
        arguments=arguments,
        executor="browser",
        state=State.APPROVED,
        asked_at=0,
        delivered=False,
    )
