"""How chats and calls are named."""

from typing import NamedTuple


class ChatKey(NamedTuple):
    """A chat and its owner."""

    app_name: str
    user_id: str
    chat_id: str


class CallKey(NamedTuple):
    """A call within its chat. Some models reuse call ids in every answer, so the invocation is part of the key."""

    invocation_id: str
    call_id: str


_WORK = "work:"  # ADK gives invocations their ids, so no model can make one that begins like this


def work_key(call: CallKey) -> CallKey:
    """The key under which the work of a long-running call is recorded, beside an approval of the call."""
    return CallKey(f"{_WORK}{call.invocation_id}", call.call_id)


def is_work_key(call: CallKey) -> bool:
    return call.invocation_id.startswith(_WORK)
