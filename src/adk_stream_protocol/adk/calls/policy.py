"""How long people and browsers have to answer, and what people read when they are asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Hint = str | Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, kw_only=True)
class ApprovalPolicy:
    """How long people and browsers have to answer, and what people read when they are asked."""

    deadline_s: float = 600
    """How long a person has to decide. Answers after the deadline do not count: the call has expired."""
    browser_deadline_s: float = 60
    """How long a browser has to answer, from the moment it may begin."""
    recover_s: float = 3600
    """How long after its approval a call may still begin, if the worker that should have run it was lost. Later it
    expires: nobody expects it any more."""
    hints: Mapping[str, Hint] = field(default_factory=dict[str, Hint])
    """By the name of the tool: the text that the person reads, or a function of the call's arguments that returns it.
    Without one, it is the hint that the tool gives to `request_confirmation`, or none."""

    def hint(self, tool: str, arguments: dict[str, Any]) -> str | None:
        hint = self.hints.get(tool)
        return hint(arguments) if callable(hint) else hint


_TO_PROGRAMS = "by responding with a FunctionResponse with an expected ToolConfirmation payload."


def is_for_people(hint: str | None) -> bool:
    """Whether a hint is written for people. ADK's own default hint tells a program what to send."""
    return hint is None or not hint.endswith(_TO_PROGRAMS)
