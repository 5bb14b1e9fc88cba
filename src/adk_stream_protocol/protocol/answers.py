"""Decode what a client posts about calls into answers.

Clients say the same thing in many ways: a tool's part with an approval, an answered confirmation tool, results in a
user's message. All of them become one `CallAnswer`. Whatever does not fit a call that the client was asked about is
ignored: an invented id, a call of the server's own, other arguments than were shown, an `approved` that is not a
boolean.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from .call_record import CallKey, CallRecord
from .digest import is_what_was_shown, shown_arguments

CONFIRMATION = "adk_request_confirmation"

Part = Mapping[str, Any]

MAX_REASON = 2000
"""Characters of a decision's reason: the model reads it with every call that follows."""


@dataclass(frozen=True, kw_only=True)
class AskedCall:
    """A call that the client was asked about, under the ids that the client knows."""

    wire_id: str
    approval_id: str | None
    record: CallRecord

    @property
    def key(self) -> CallKey:
        return self.record.call


_Asked = TypeVar("_Asked", bound=AskedCall)


@dataclass(frozen=True, kw_only=True)
class CallAnswer(Generic[_Asked]):
    """What a client says about one call: a decision, the output of its browser, or both."""

    asked: _Asked
    approved: bool | None = None
    reason: str | None = None
    payload: Any = None
    result: dict[str, Any] | None = None
    """`{"output": ...}` or `{"error": text}`."""

    @property
    def counts(self) -> bool:
        """An output without an approval does not count for a call that needs one."""
        return self.approved is not None or self.asked.record.is_decided


def decode_answers(parts: Iterable[Part], asked: Sequence[_Asked]) -> list[CallAnswer[_Asked]]:
    """The answers in the order in which the calls were asked; at most one for each."""
    parts = list(parts)
    by_call = _by_id((call.wire_id, call) for call in asked)
    by_approval = _by_id((call.approval_id, call) for call in asked if call.approval_id is not None)
    answers: dict[CallKey, CallAnswer[_Asked]] = {}
    ended = {_text(part.get("toolCallId")) for part in parts if part.get("state") in _ENDED}
    for part in parts:
        decision = _decision(part, by_call, by_approval)
        # A part with a result is about the past; the client's message keeps an answered question beside it. Only a
        # browser's result may come together with its approval.
        if decision is not None and not (
            decision.asked.record.executor == "server" and decision.asked.wire_id in ended
        ):
            answers[decision.asked.key] = decision
    for part in parts:
        call = by_call.get(_text(part.get("toolCallId")))
        if call is None or call.record.executor != "browser" or not _shows_what_was_asked(part.get("input"), call):
            continue
        decided = answers.get(call.key, CallAnswer(asked=call))
        result = _result(part, call)
        if result is not None and decided.approved is not False:
            answers[call.key] = replace(decided, result=result)
    return [answers[call.key] for call in asked if call.key in answers and answers[call.key].counts]


def _by_id(named: Iterable[tuple[str, _Asked]]) -> dict[str, _Asked]:
    """Without the ids that two calls share: it is not clear which of them an answer means."""
    found: dict[str, _Asked] = {}
    ambiguous: set[str] = set()
    for id, call in named:
        if id in found:
            ambiguous.add(id)
        found[id] = call
    return {id: call for id, call in found.items() if id not in ambiguous}


def _decision(
    part: Part, by_call: Mapping[str, _Asked], by_approval: Mapping[str, _Asked]
) -> CallAnswer[_Asked] | None:
    call_id, kind, state = _text(part.get("toolCallId")), _tool_name(part), part.get("state")
    if part.get("type") == "tool-result":
        return _decision_in_result(call_id, _value(part), by_call, by_approval)
    if kind == CONFIRMATION:
        call = by_approval.get(call_id)
        original = _dict(_dict(part.get("input")).get("originalFunctionCall"))
        if call is None or original.get("name", call.record.tool) != call.record.tool:
            return None
        if not _shows_what_was_asked(original.get("args"), call):
            return None
        said = part.get("output") if state == "output-available" else part.get("approval")
        return _said(call, _dict(said), "confirmed" if state == "output-available" else "approved")
    approval = _dict(part.get("approval"))
    call = by_approval.get(_text(approval.get("id")))
    if call is None or call.wire_id != call_id or kind != call.record.tool:
        return None
    if state not in _ANSWERED or not _shows_what_was_asked(part.get("input"), call):
        return None
    return _said(call, approval, "approved")


_ENDED = ("output-available", "output-error", "output-denied")
_ANSWERED = ("approval-responded", "output-available", "output-error")


def _decision_in_result(
    call_id: str, value: Any, by_call: Mapping[str, _Asked], by_approval: Mapping[str, _Asked]
) -> CallAnswer[_Asked] | None:
    """A decision as a result in a user's message, under the confirmation's id or under the call's own."""
    said = _dict(value)
    if call_id in by_approval:
        word = said.get("approval")
        if word in ("approved", "denied"):
            return CallAnswer(asked=by_approval[call_id], approved=word == "approved")
        return _said(by_approval[call_id], said, "confirmed")
    call = by_call.get(call_id)
    if call is None or call.approval_id is None:
        return None
    may_be_output = call.record.executor == "browser" and call.record.is_decided
    return None if may_be_output and said.keys() - _WORDS_OF_A_DECISION else _said(call, said, "approved")


_WORDS_OF_A_DECISION = {"approved", "user_message", "reason"}


def _said(call: _Asked, said: Mapping[str, Any], name: str) -> CallAnswer[_Asked] | None:
    approved = said.get(name)
    if not isinstance(approved, bool):
        return None
    reason = said.get("reason", said.get("user_message"))
    return CallAnswer(
        asked=call,
        approved=approved,
        reason=reason[:MAX_REASON] if isinstance(reason, str) and reason else None,
        payload=said.get("payload"),
    )


def _result(part: Part, call: AskedCall) -> dict[str, Any] | None:
    if part.get("type") == "tool-result":
        value = _value(part)
        is_decision = _decision_in_result(call.wire_id, value, {call.wire_id: call}, {}) is not None
        return None if is_decision else {"output": value}
    if _tool_name(part) != call.record.tool or part.get("preliminary"):
        return None
    match part.get("state"):
        case "output-available" if "output" in part:
            return {"output": part["output"]}
        case "output-error" if isinstance(part.get("errorText"), str):
            return {"error": part["errorText"]}
        case _:
            return None


def _tool_name(part: Part) -> str | None:
    kind = _text(part.get("type"))
    if kind == "dynamic-tool":
        return _text(part.get("toolName"))
    return kind.removeprefix("tool-") if kind.startswith("tool-") else None


def _shows_what_was_asked(claimed: Any, call: AskedCall) -> bool:
    return claimed is None or is_what_was_shown(shown_arguments(call.record.arguments), claimed)


def _value(part: Part) -> Any:
    """Of a `tool-result`: plain, or wrapped as the AI SDK 5 does."""
    value = part.get("output", part.get("result"))
    wrapped = _dict(value)
    return wrapped["value"] if wrapped.keys() == {"type", "value"} and wrapped["type"] in ("json", "text") else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
