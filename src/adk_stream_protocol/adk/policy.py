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
    """By the name of a tool: what the person reads, or a function of the call's arguments that says it. Otherwise
    ADK's own words, or those that the tool gives with `request_confirmation`."""

    def hint(self, tool: str, arguments: dict[str, Any]) -> str | None:
        hint = self.hints.get(tool)
        return hint(arguments) if callable(hint) else hint


def adk_hint(tool: str) -> str:
    """What ADK asks where nobody has said anything better."""
    return (
        f"Please approve or reject the tool call {tool}() by responding with a FunctionResponse with an expected "
        "ToolConfirmation payload."
    )
