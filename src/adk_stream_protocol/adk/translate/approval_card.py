"""What a person reads about a call that waits for a decision: in the chat, and in the inbox of an approver."""

from datetime import UTC, datetime
from typing import Any

from ...protocol.approval_chain import turn_of
from ...protocol.call_record import CallRecord, State
from ...protocol.digest import shown_arguments
from ..calls.policy import is_for_people

_STATUS = {
    State.PENDING: "pending",
    State.IN_CHAIN: "pending",
    State.DENIED: "denied",
    State.EXPIRED: "expired",
    State.WITHDRAWN: "withdrawn",
}


def status_of(record: CallRecord) -> str:
    """What was decided, whatever became of the call since then."""
    return _STATUS.get(record.state, "approved" if record.approved else "unknown")


def card_of(record: CallRecord, hint: str | None = None, payload: Any = None) -> dict[str, Any]:
    """The data of `data-adk-approval`. `hint`, `payload`: of ADK's own question, for records of older versions."""
    recorded_hint = record.hint if is_for_people(record.hint) else None
    about: dict[str, Any] = {
        "hint": recorded_hint or hint or None,
        "payload": shown_arguments(_asked_payload(record, payload)),
        "deadline": time_text(record.deadline),
        "card": shown_arguments(record.card),
        "edits": record.edits,
    }
    if record.chain is not None:
        about |= {"status": status_of(record), "chain": chain_of(record)}
    return {name: value for name, value in about.items() if value is not None}


def _asked_payload(record: CallRecord, payload: Any) -> Any:
    if record.chain is not None and record.payload is not None:
        return record.payload  # as an approver has changed it
    return payload if record.asked_payload is None else record.asked_payload


def chain_of(record: CallRecord) -> list[dict[str, Any]]:
    """Each link: whom it names, and how it has decided."""
    chain = record.chain or ()
    turn = turn_of(chain)
    links: list[dict[str, Any]] = []
    for place, link in enumerate(chain):
        if link.approved is not None:
            status = "approved" if link.approved else "denied"
        elif place == turn and record.state is State.IN_CHAIN:
            status = "waiting"
        else:
            status = "expired" if place == turn and record.state is State.EXPIRED else "pending"
        said = {"by": link.decided_by, "at": time_text(link.decided_at), "reason": link.reason}
        known = {name: value for name, value in said.items() if value is not None}
        links.append({"approvers": list(link.approvers), "status": status, **known})
    return links


def time_text(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
