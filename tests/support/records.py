"""Records of calls, for tests that need one and no bridge."""

from typing import Any

from adk_stream_protocol.protocol.approvals import Approval, CallKey, ChatKey, State

CHAT = ChatKey("helper", "ann", "c1")


def record(call_id: str = "1", state: State = State.PENDING, invocation_id: str = "i1", **fields: Any) -> Approval:
    """A payment that a person is asked about."""
    about: dict[str, Any] = {"tool": "pay", "arguments": {"amount": 5}, "runs": "server", "asked_at": 1.0, **fields}
    return Approval(chat=CHAT, call=CallKey(invocation_id, call_id), state=state, **about)


def paid(call_id: str = "1", **fields: Any) -> Approval:
    return record(call_id, State.DONE, approved=True, result={"response": {"paid": 5}, "state": {}}, **fields)
