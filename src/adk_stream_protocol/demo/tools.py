"""The four tools of the demo: two run here, two run in the user's browser."""

import math
import zlib
from typing import Any, Literal

from google.adk.tools import BaseTool, FunctionTool, ToolContext

from ..adk.calls.client_tools import client_tool

WALLET_KEY = "wallet_balance"
WALLET_START = 1000

_CONDITIONS = ("sunny", "cloudy", "rainy", "windy", "snowy")


def get_weather(location: str) -> dict[str, Any]:
    """Tell the current weather of a place.

    Args:
        location: The name of the place, such as "Tokyo".
    """
    # From a hash: the same place always has the same weather, on every machine.
    seed = zlib.crc32(location.strip().casefold().encode())
    condition = _CONDITIONS[seed % len(_CONDITIONS)]
    warmth = seed // len(_CONDITIONS) % 25
    return {
        "location": location,
        "temperature_c": warmth - 20 if condition == "snowy" else warmth + 8,
        "condition": condition,
    }


def process_payment(
    amount: float, recipient: str, currency: str = "USD", *, tool_context: ToolContext
) -> dict[str, Any]:
    """Send money from the user's wallet to someone. The user has to approve each payment.

    Args:
        amount: How much to send.
        recipient: Who gets the money.
        currency: The currency of the amount.
    """
    # The demo knows no exchange rates: the wallet counts units of whatever currency the call names.
    stored = tool_context.state.get(WALLET_KEY)
    balance: float = WALLET_START if stored is None else stored  # a rewind leaves None
    price = price_of(amount)
    if not math.isfinite(price) or price <= 0:
        return {"error": f"The amount must be a positive number, not {amount}."}
    if round(price, 2) != price:
        return {"error": f"The amount must be in whole cents, not {amount}."}
    if price > balance:
        return {
            "error": f"Insufficient funds: {_plain(price)} {currency} is more than "
            f"the balance of {_plain(balance)} {currency}."
        }
    new_balance = _plain(round(balance - price, 2))
    tool_context.state[WALLET_KEY] = new_balance
    return {
        "success": True,
        "transaction_id": f"txn-{tool_context.function_call_id}",
        "amount": _plain(price),
        "recipient": recipient,
        "currency": currency,
        "balance": new_balance,
        "message": f"Sent {_plain(price)} {currency} to {recipient}.",
    }


def price_of(amount: Any) -> float:
    """NaN for what is no number."""
    try:
        return float(amount)  # models sometimes send a number as text
    except (TypeError, ValueError, OverflowError):
        return math.nan


def change_bgm(track: Literal[1, 2]) -> dict[str, Any]:  # pyright: ignore[reportReturnType] -- runs in the browser
    """Change the background music of the page the user is looking at.

    Args:
        track: The number of the track, 1 or 2.
    """


def get_location() -> dict[str, Any]:  # pyright: ignore[reportReturnType] -- runs in the browser
    """Ask the user's browser where the user is."""


def demo_tools() -> list[BaseTool]:
    """A new set of the tools, for an agent."""
    return [
        FunctionTool(get_weather),
        FunctionTool(process_payment, require_confirmation=True),
        client_tool(change_bgm),
        client_tool(get_location, approve=True),
    ]


def _plain(number: float) -> float:
    """50 instead of 50.0, for people who read it."""
    return int(number) if number == int(number) else number
