"""Who decides about the demo's payments: the user, and about large ones a manager and then an executive."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from starlette.requests import HTTPConnection

from ..adk.calls.policy import Answer, ApprovalPolicy, ApprovalRequest, Card, Chain, Link, Nobody, Owner
from ..chat.hooks import Groups
from .tools import WALLET_KEY, WALLET_START, price_of

LARGE = 500
"""From this amount on, others decide."""

PEOPLE = {"max": "a manager", "eva": "an executive"}
"""Whom the page lets one be, to try it."""

_GROUPS: Mapping[str, Collection[str]] = {"max": ["managers"]}
_ASKS = ("process_payment", "get_location")


def demo_policy() -> ApprovalPolicy:
    return ApprovalPolicy(decide=_decide, cards={"process_payment": _card})


def demo_groups(user_id: Callable[[HTTPConnection], str | None]) -> Groups:
    return lambda connection: _GROUPS.get(user_id(connection) or "", ())


def _decide(request: ApprovalRequest) -> Answer:
    if request.tool not in _ASKS:
        return Nobody
    stored = request.state.get(WALLET_KEY)
    balance: float = WALLET_START if stored is None else stored  # a rewind leaves None
    # Nobody else is bothered with a payment that the wallet cannot make.
    if request.tool == "process_payment" and LARGE <= price_of(request.arguments.get("amount")) <= balance:
        return Chain([Link(["group:managers"]), Link(["eva"])])
    return Owner


def _card(arguments: Mapping[str, Any]) -> Card | None:
    price, currency = price_of(arguments.get("amount")), arguments.get("currency", "USD")
    if not price >= LARGE:
        return None
    return {
        "title": "Large payment",
        "icon": "money",
        "severity": "high",
        "fields": [
            {"label": f"Amount in {currency}", "value": price, "format": "money"},
            {"label": "Recipient", "value": arguments.get("recipient"), "format": "text"},
        ],
    }
