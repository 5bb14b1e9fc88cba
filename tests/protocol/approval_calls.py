"""A call of the server's, one of the browser's, and every move as somebody makes it who may."""

from collections.abc import Callable
from typing import Any

import msgspec

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import Approval, CallKey, ChatKey, Move, State

MS = 0.001
DEADLINE = 600.0
SERVER = Approval(
    chat=ChatKey("shop", "ann", "chat-1"),
    call=CallKey("e-1", "call-1"),
    tool="pay",
    arguments={"to": "Bob", "amount": 5},
    runs="server",
    state=State.PENDING,
    asked_at=1.0,
    deadline=DEADLINE,
)


def changed(approval: Approval, **changes: Any) -> Approval:
    return msgspec.structs.replace(approval, **changes)


BROWSER = changed(SERVER, tool="location", arguments={}, runs="browser", approval_id="approval-1", hint="Where?")


def decide(approval: Approval, approved: bool = True, **given: Any) -> Approval:
    return call_record.decide(approval, **{"by": "ann", "approved": approved, "now": 2.0, **given})


def claim(approval: Approval, **given: Any) -> Approval:
    return call_record.claim(approval, **{"digest": approval.digest, "run": "run-1", **given})


def take_output(approval: Approval, **given: Any) -> Approval:
    return call_record.take_output(approval, **{"by": "ann", "result": "Tokyo", "now": 2.0, **given})


# Each move as somebody makes it who may: only the table stands in the way.
MOVES: dict[Move, Callable[[Approval], Approval]] = {
    Move.APPROVE: decide,
    Move.DENY: lambda approval: decide(approval, approved=False),
    Move.EXPIRE: lambda approval: call_record.expire(approval, now=DEADLINE),
    Move.CLAIM: claim,
    Move.START: lambda approval: call_record.start(approval, run="run-1"),
    Move.FINISH: lambda approval: call_record.finish(approval, run="run-1", result="paid"),
    Move.FAIL: lambda approval: call_record.fail(approval, run="run-1", result="no funds"),
    Move.TAKE_OUTPUT: take_output,
    Move.LOSE_RUN: lambda approval: call_record.lose_run(approval, living_run="run-2"),
    Move.GIVE_UP: lambda approval: call_record.give_up(approval, result="not run"),
}
