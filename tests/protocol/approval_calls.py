"""A call of the server's, one of the browser's, and every move as somebody makes it who may."""

from collections.abc import Callable
from typing import Any

import msgspec

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, Move, State

MS = 0.001
DEADLINE = 600.0
SERVER = CallRecord(
    chat=ChatKey("shop", "ann", "chat-1"),
    call=CallKey("e-1", "call-1"),
    tool="pay",
    arguments={"to": "Bob", "amount": 5},
    executor="server",
    state=State.PENDING,
    asked_at=1.0,
    deadline=DEADLINE,
)


def changed(approval: CallRecord, **changes: Any) -> CallRecord:
    return msgspec.structs.replace(approval, **changes)


BROWSER = changed(SERVER, tool="location", arguments={}, executor="browser", approval_id="approval-1", hint="Where?")

ONE_LINK = (ChainLink(approvers=("ann",), deadline_s=60.0),)
TWO_LINKS = (*ONE_LINK, ChainLink(approvers=("bob", "group:managers"), deadline_s=30.0))


def decide(approval: CallRecord, approved: bool = True, **given: Any) -> CallRecord:
    return call_record.decide(approval, **{"by": "ann", "approved": approved, "now": 2.0, **given})


def claim(approval: CallRecord, **given: Any) -> CallRecord:
    return call_record.claim(approval, **{"digest": approval.digest, "lease_token": "run-1", **given})


def take_output(approval: CallRecord, **given: Any) -> CallRecord:
    return call_record.take_output(approval, **{"by": "ann", "result": "Tokyo", "now": 2.0, **given})


# Each move as somebody makes it who may: only the table stands in the way.
MOVES: dict[Move, Callable[[CallRecord], CallRecord]] = {
    Move.APPROVE: decide,
    Move.APPROVE_LINK: decide,  # of a call with two links
    Move.DENY: lambda approval: decide(approval, approved=False),
    Move.EXPIRE: lambda approval: call_record.expire(approval, now=DEADLINE),
    Move.CLAIM: claim,
    Move.START: lambda approval: call_record.start(approval, lease_token="run-1"),
    Move.FINISH: lambda approval: call_record.finish(approval, lease_token="run-1", result="paid"),
    Move.FAIL: lambda approval: call_record.fail(approval, lease_token="run-1", result="no funds"),
    Move.TAKE_OUTPUT: take_output,
    Move.LOSE_RUN: lambda approval: call_record.lose_run(approval, living_run="run-2"),
    Move.GIVE_UP: lambda approval: call_record.give_up(approval, result="not run"),
    Move.WITHDRAW: call_record.withdraw,
}
