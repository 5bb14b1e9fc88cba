"""The response that ADK, the model and the person get for a call that has ended."""

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any, cast

import msgspec
import pydantic_core

from ...protocol.call_record import CallRecord, Records, State
from ..event_parts import as_dict

_EXPIRED = "This call was not run: it expired, because it was not answered or not started in time."
_WITHDRAWN = "This call was not run: the model withdrew it before it began."
_UNRECOGNIZED = "This call was ended by a newer version of the server. This version does not know how."
OUTCOME_UNKNOWN = (
    "The server stopped while this call was running. Whether it took effect is unknown; it was not run again."
)


def ended_response(record: CallRecord) -> dict[str, Any]:
    """The response that ADK gets for a call that has ended."""
    if record.state in (State.DONE, State.FAILED):
        return recorded_response(record)
    return {"error": refusal_text(record)}


def recorded_response(record: CallRecord) -> dict[str, Any]:
    """The response that ADK gets for a call whose result is recorded."""
    if record.executor == "server":
        return as_response(record.result["response"])
    if "error" in record.result:
        return {"error": record.result["error"]}
    return as_response(record.result["output"])


def outer_of(record: CallRecord) -> str | None:
    """The id of the call that a nested one was made in. What came of it is told with the outer one."""
    return as_dict(record.made_in).get("outer")


def outcomes_inside(records: Records) -> dict[str, list[dict[str, Any]]]:
    """What came of nested calls, by the ids of those that they were made in, for the models that made these: if an
    outer call is ended early, it does not say so itself."""
    inside: dict[str, list[dict[str, Any]]] = {}
    for found in records.values():
        outer = outer_of(found)
        if found.state is State.STARTED:
            found = msgspec.structs.replace(found, state=State.UNKNOWN)
        if outer is not None and found.is_final and not found.lacks_result:
            told = {"name": found.tool, "args": found.arguments, "response": ended_response(found)}
            inside.setdefault(outer, []).append(told)
    return inside


def as_response(result: Any) -> dict[str, Any]:
    """What a tool returned, in the form in which ADK hands it to the model."""
    return cast(dict[str, Any], result) if isinstance(result, dict) else {"result": result}


_MAX_DEPTH = 200  # of lists and dictionaries in each other. With about 250, no later event of the session can be stored


def can_be_stored(result: Any, depth: int = 0) -> bool:
    """Whether ADK can store what a tool returned, and gives the model the same. An iterator would be read to its end,
    and whoever reads it next finds nothing."""
    if result is None or isinstance(result, str | int):
        return True
    if isinstance(result, float):
        return isfinite(result)
    if isinstance(result, dict):
        items = cast(dict[Any, Any], result).items()
        return depth < _MAX_DEPTH and all(isinstance(k, str) and can_be_stored(v, depth + 1) for k, v in items)
    if isinstance(result, list | tuple | set | frozenset):
        return depth < _MAX_DEPTH and all(can_be_stored(item, depth + 1) for item in cast(Iterable[Any], result))
    if isinstance(result, Iterator):
        return False
    try:
        pydantic_core.to_jsonable_python(result)
    except Exception:  # of a class that nobody knows
        return False
    return True


def refusal_text(record: CallRecord) -> str:
    """What the model and the person read about a call that ended without a result."""
    if record.state is State.UNKNOWN:
        return OUTCOME_UNKNOWN
    if record.state is State.EXPIRED:
        return _EXPIRED
    if record.state is State.WITHDRAWN:
        return _WITHDRAWN
    if record.state is State.UNRECOGNIZED:
        return _UNRECOGNIZED
    reason = f" Reason: {record.reason}" if record.reason else ""
    is_by_owner = record.chain is None or record.decided_by == record.chat.user_id
    return f"This call was not run: {'the user' if is_by_owner else 'an approver'} denied it.{reason}"
