"""What a call's record says, as its client reads it: the question, the decision, the outcome."""

from typing import Any

from ...protocol.call_keys import work_key
from ...protocol.call_record import CallKey, CallRecord, Records, State
from ...protocol.chunks import ToolOutputAvailable, ToolOutputError
from ..calls.outcomes import recorded_response, refusal_text


def recorded_chunk(wire_id: str, record: CallRecord) -> ToolOutputAvailable | ToolOutputError:
    """The recorded outcome of a call."""
    if record.state not in (State.DONE, State.FAILED):
        return ToolOutputError(wire_id, refusal_text(record))
    if record.executor == "browser" and "output" in record.result:
        return ToolOutputAvailable(wire_id, record.result["output"])
    response = recorded_response(record)
    if response.keys() == {"error"}:
        return ToolOutputError(wire_id, str(response["error"]))
    return ToolOutputAvailable(wire_id, response)


def work_of(call: CallKey, records: Records) -> CallRecord | None:
    """The work of a long-running call that goes on, or has ended, since its tool has returned."""
    record = records.get(call)  # of its approval, if it had to be approved
    return records.get(work_key(call)) if record is None or record.is_final else None


def is_denied(record: CallRecord) -> bool:
    return record.state is State.DENIED or (record.state is State.EXPIRED and record.approved is False)


def question_of(record: CallRecord) -> dict[str, Any]:
    confirmation = {"hint": record.hint or "", "confirmed": False, "payload": record.asked_payload}
    return {
        "originalFunctionCall": {"id": record.call.call_id, "name": record.tool, "args": record.arguments},
        "toolConfirmation": {name: value for name, value in confirmation.items() if value is not None},
    }


def decision_of(record: CallRecord) -> dict[str, Any]:
    said = {"confirmed": record.owner_said, "reason": record.reason, "payload": record.payload}
    return {name: value for name, value in said.items() if value is not None}
