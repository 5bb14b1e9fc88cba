"""How long people and browsers have, and what people are told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Hint = str | Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, kw_only=True)
class ApprovalPolicy:
    """How long people and browsers have, and what people are told."""

    deadline_s: float = 600
    """Within which a person decides. Later answers are told that the request expired."""
    browser_deadline_s: float = 60
    """Within which a browser answers, from when it could begin."""
    recover_s: float = 3600
    """How long after its approval a call may still be begun, if the worker that should have run it was lost. Later it
    expires: nobody expects it any more."""
    hints: Mapping[str, Hint] = field(default_factory=dict[str, Hint])
    """By the name of a tool: what the person reads, or a function of the call's arguments that says it. Otherwise the
    words that the tool gives with `request_confirmation`, or none."""

    def hint(self, tool: str, arguments: dict[str, Any]) -> str | None:
        hint = self.hints.get(tool)
        return hint(arguments) if callable(hint) else hint


_TO_PROGRAMS = "by responding with a FunctionResponse with an expected ToolConfirmation payload."


def is_for_people(hint: str | None) -> bool:
    """Where nobody has said anything better, ADK asks in words that tell a program what to send."""
    return hint is None or not hint.endswith(_TO_PROGRAMS)
