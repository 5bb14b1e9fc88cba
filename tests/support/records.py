"""Records of calls, for tests that need one and no bridge."""

from typing import Any

from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State
from adk_stream_protocol.store.base import Store, load_results

CHAT = ChatKey("helper", "ann", "c1")


def record(call_id: str = "1", state: State = State.PENDING, invocation_id: str = "i1", **fields: Any) -> CallRecord:
    """A payment that a person is asked about."""
    about: dict[str, Any] = {"tool": "pay", "arguments": {"amount": 5}, "executor": "server", "asked_at": 1.0, **fields}
    return CallRecord(chat=CHAT, call=CallKey(invocation_id, call_id), state=state, **about)


def paid(call_id: str = "1", **fields: Any) -> CallRecord:
    return record(call_id, State.DONE, approved=True, result={"response": {"paid": 5}, "state": {}}, **fields)


async def read_whole(store: Store, chat: ChatKey = CHAT) -> list[CallRecord]:
    """Also the results that are delivered."""
    records = {found.call: found for found in (await store.read(chat)).records}
    await load_results(store, chat, records, list(records))
    return list(records.values())
