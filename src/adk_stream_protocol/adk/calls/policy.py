"""Who is asked about a call, how long people and browsers have to answer, and what people read when they are asked."""

import copy
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, cast

from ...errors import ConfigurationError
from ...limits import require_numbers
from ...protocol.approval_chain import Chain as RecordedChain
from ...protocol.approval_chain import ChainLink

logger = logging.getLogger(__name__)

Hint = str | Callable[[Mapping[str, Any]], str]


class Nobody:
    """Nobody is asked: the call runs, also if its tool requires confirmation."""


class Owner:
    """The chat's owner is asked."""


@dataclass(frozen=True)
class Link:
    """One of these approvers decides: user ids, and groups as `group:name`."""

    approvers: Collection[str]
    deadline_s: float | None = None
    """How long they have, from when they are asked. None: as long as `ApprovalPolicy.deadline_s`."""


@dataclass(frozen=True)
class Chain:
    """All links decide, one after the other. The owner of the chat is asked only where a link names the owner."""

    links: Sequence[Link]


@dataclass(frozen=True, kw_only=True)
class ApprovalRequest:
    """A call that is about to run, for `ApprovalPolicy.decide`."""

    user: str
    """The owner of the chat."""
    tool: str
    """The name of the tool."""
    arguments: Mapping[str, Any]
    """What the model calls the tool with."""
    agent: str
    """The name of the agent that makes the call."""
    state: Mapping[str, Any]
    """The state of the session."""


Answer = Nobody | Owner | Chain | type[Nobody] | type[Owner]
Decide = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]

Verdict = Literal["nobody", "owner"] | RecordedChain
"""What the policy has decided, as it is recorded."""


class CardField(TypedDict, total=False):
    label: str
    value: Any
    format: str
    """For the page: "text", "money", "date" or "code", for example."""


class Card(TypedDict, total=False):
    """How a question looks. The page draws it; nothing here depends on it."""

    title: str
    icon: str
    colour: str
    severity: str
    fields: list[CardField]
    link: str


CardOf = Card | Callable[[Mapping[str, Any]], Card | None]


_LOOKS = {
    "hints": '{"pay": "Pay this?"}',
    "cards": '{"pay": {"title": "A payment"}}',
    "edits": '{"pay": {"type": "object"}}',
}


@dataclass(frozen=True, kw_only=True)
class ApprovalPolicy:
    """Who is asked about a call, how long people and browsers have to answer, and what people read."""

    decide: Decide | None = None
    """Called before each call of a tool. Without it, the chat's owner is asked where the tool requires confirmation. If
    it fails, or does not return `Nobody`, `Owner` or a `Chain`, the owner is asked."""
    deadline_s: float = 600
    """How long a person has to decide. Answers after the deadline do not count: the call has expired."""
    browser_deadline_s: float = 60
    """How long a browser has to answer, from the moment it may begin."""
    recover_s: float = 3600
    """How long after its approval a call may still begin, if the worker that should have run it was lost. Later it
    expires: nobody expects it any more."""
    hints: Mapping[str, Hint] = field(default_factory=dict[str, Hint])
    """By the name of the tool: the text that the person reads, or a function of the call's arguments that returns it.
    Without one, or if the function fails, the person reads the hint that the tool gives to `request_confirmation`, or
    none. A name that no tool has is a `ConfigurationError`, here and in `cards` and `edits`. If the agent has toolsets,
    it is a warning in the log, after their tools were listed for the first time."""
    cards: Mapping[str, CardOf] = field(default_factory=dict[str, CardOf])
    """By the name of the tool: how the question looks, or a function of the call's arguments that returns it. It may
    return None."""
    edits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By the name of a tool that takes changes from its approvers: the JSON Schema of what they may send. The tool
    finds it in `tool_context.tool_confirmation.payload`."""

    def __post_init__(self) -> None:
        require_numbers(self)
        for option, looks in _LOOKS.items():
            given: Any = getattr(self, option)
            if not isinstance(given, Mapping):
                raise ConfigurationError(f"{option} must be a dict by the names of tools, such as {option}={looks}.")
            for tool, value in cast(Mapping[str, Any], given).items():
                is_made = callable(value) and option != "edits"
                if not is_made and not isinstance(value, str if option == "hints" else Mapping):
                    raise ConfigurationError(f"The tool {tool!r} has a wrong value in {option}. It looks like {looks}.")

    def hint(self, tool: str, arguments: dict[str, Any]) -> str | None:
        return _for_call(self.hints.get(tool), tool, arguments, str)

    def card(self, tool: str, arguments: dict[str, Any]) -> Card | None:
        return _for_call(self.cards.get(tool), tool, arguments, dict)

    async def verdict(self, request: ApprovalRequest) -> Verdict | None:
        """None if there is no `decide`."""
        if self.decide is None:
            return None
        try:
            answer: Any = self.decide(request)
            if inspect.isawaitable(answer):
                answer = await answer
            return _verdict(answer, self.deadline_s)
        except Exception as error:
            logger.error(
                "the policy failed, so the owner is asked about %s: %s", request.tool, type(error).__qualname__
            )
            return "owner"


def _for_call(made: Any, tool: str, arguments: dict[str, Any], kind: type) -> Any:
    """A hint or a card. A model may call a tool with arguments that its function does not expect. The person is asked
    all the same, and reads the arguments."""
    if not callable(made):
        return made
    try:
        text = made(copy.deepcopy(arguments))
        if text is not None and not isinstance(text, kind):
            raise TypeError(f"not a {kind.__name__}")
    except Exception as error:  # its text may quote the arguments
        logger.error("the question about %s has no hint or no card: %s", tool, type(error).__qualname__)
        return None
    return text


def _verdict(answer: Any, deadline_s: float) -> Verdict:
    if answer is Nobody or isinstance(answer, Nobody):
        return "nobody"
    if answer is Owner or isinstance(answer, Owner):
        return "owner"
    if not isinstance(answer, Chain):
        raise TypeError("a policy returns Nobody, Owner or a Chain")
    chain = tuple(_recorded_link(link, deadline_s) for link in answer.links)
    if not chain:
        raise ValueError("a chain without links")
    return chain


def _recorded_link(link: Link, deadline_s: float) -> ChainLink:
    approvers = (link.approvers,) if isinstance(link.approvers, str) else tuple(link.approvers)
    if not approvers or not all(isinstance(approver, str) and approver for approver in approvers):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError("a link without approvers")
    patience_s = deadline_s if link.deadline_s is None else float(link.deadline_s)
    return ChainLink(approvers=approvers, deadline_s=patience_s)


_TO_PROGRAMS = "by responding with a FunctionResponse with an expected ToolConfirmation payload."


def is_for_people(hint: str | None) -> bool:
    """Whether a hint is written for people. ADK's default hint says what a program has to send."""
    return hint is None or not hint.endswith(_TO_PROGRAMS)
