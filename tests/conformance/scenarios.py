"""What people and browsers are asked in the demo, how they answer, and what this looks like on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conformance.pages import SUBMIT, Resend, Step, approve, deny, failed, ran, say

PLACE = {"latitude": 35.68, "longitude": 139.69, "accuracy": 10, "timestamp": 1}
CHANGED = {"success": True, "track": 1, "message": "Track 1 plays."}

LOCATED = ran("get_location", PLACE)
PLAYS = ran("change_bgm", CHANGED)

PAY = say("Send 50 dollars to Hanako")
PAY_TWO = say("Pay Alice 30 dollars and Bob 40 dollars")
PAY_ONE_THEN_ANOTHER = say("Pay Alice 30 dollars, then Bob 40 dollars")
WHERE = say("Where am I?")
MUSIC = say("Change BGM to track 1")
PAY_AND_WHERE = say("Pay Alice 30 dollars and tell me my location")
WHERE_AND_PAY = say("Tell me my location and pay Alice 30 dollars")
PAY_AND_MUSIC = say("Pay Alice 30 dollars and change BGM to track 1")
WHERE_THEN_PAY = say("Tell me my location, then pay Alice 30 dollars")
MUSIC_AND_WHERE = say("Change BGM to track 1 and tell me my location")
PAY_AND_WEATHER = say("Pay Alice 30 dollars and tell me the weather in Oslo")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    name: str
    visits: tuple[tuple[Step, ...], ...]
    """What the user does, up to each request: between two of them the page may be another one."""
    wire: str
    ends: str
    """Of each call: O, D or E, as on the wire."""
    tells: str
    """What the assistant says in the end, or how it begins."""
    is_late: bool = False
    """Whether all deadlines have passed before anybody can answer."""
    resend: Resend = "both"
    one_by_one: Step | None = None
    """Words with which request mode, too, makes these calls one by one."""

    @property
    def browser_tools(self) -> dict[str, Any]:
        outputs = [dict(step["output"]) for visit in self.visits for step in visit if "output" in step]
        return {output.pop("tool"): output for output in outputs}

    @property
    def run_when_told(self) -> dict[str, Any]:
        """By a page in its `onToolCall`; but with an approval and its output in one request, nobody is told."""
        return self.browser_tools if self.resend == "both" else {}

    @property
    def steps_of_a_page_that_stays(self) -> list[Step]:
        steps = [step for visit in self.visits for step in visit]
        return [step for step in steps if "output" not in step or step["output"]["tool"] not in self.run_when_told]


def _scenario(name: str, *visits: tuple[Step, ...] | Step, **expected: Any) -> Scenario:
    return Scenario(name=name, visits=tuple(v if isinstance(v, tuple) else (v,) for v in visits), **expected)


_PAID = "Paid 50 USD to Hanako. The new balance is 950 USD."
_LATE_PAYMENT = "The payment of 50 USD to Hanako has expired"
_BOTH_PAID = "Paid 30 USD to Alice. The new balance is 970 USD. Paid 40 USD to Bob. The new balance is 930 USD."
_ONLY_ALICE = "Paid 30 USD to Alice. The new balance is 970 USD. The payment of 40 USD to Bob was denied."
_ONLY_BOB = "The payment of 30 USD to Alice was denied. Paid 40 USD to Bob. The new balance is 960 USD."
_LOCATION = "You are at latitude 35.68 and longitude 139.69."
_NO_LOCATION = "The request for your location was denied."
_ALICE = "Paid 30 USD to Alice. The new balance is 970 USD."
_NOT_ALICE = "The payment of 30 USD to Alice was denied."
_MUSIC = "The background music is now track 1."

ONE_CALL = [
    _scenario("weather", say("What is the weather in Tokyo?"), wire="start I O X F", ends="O", tells="The weather in"),
    _scenario("music", MUSIC, PLAYS, wire="start I F || start X F", ends="O", tells=_MUSIC),
    _scenario("music, late", MUSIC, PLAYS,
              wire="start I F || start E X F", ends="E", tells="The change to track 1 has expired", is_late=True),
    _scenario("payment approved", PAY, approve(), wire="start I A F || start O X F", ends="O", tells=_PAID),
    _scenario("payment denied", PAY, deny(reason="too much"),
              wire="start I A F || start D X F", ends="D", tells="The payment of 50 USD to Hanako was denied."),
    _scenario("payment approved, late", PAY, approve(),
              wire="start I A F || start E X F", ends="E", tells=_LATE_PAYMENT, is_late=True),
    _scenario("payment denied, late", PAY, deny(),
              wire="start I A F || start D X F", ends="D", tells=_LATE_PAYMENT, is_late=True),
    _scenario("payment fails", say("Send 5000 dollars to Hanako"), approve(),
              wire="start I A F || start E X F", ends="E", tells="The payment of 5000 USD to Hanako failed"),
    _scenario("location approved", WHERE, approve(), LOCATED,
              wire="start i A F || start I F || start X F", ends="O", tells=_LOCATION),
    _scenario("location approved, browser fails", WHERE, approve(), failed("get_location", "No signal."),
              wire="start i A F || start I F || start X F", ends="E", tells="The request for your location failed"),
    _scenario("location approved with output", WHERE, (approve(), LOCATED),
              wire="start i A F || start X F", ends="O", tells=_LOCATION, resend="tool-calls"),
    _scenario("location denied", WHERE, deny(), wire="start i A F || start D X F", ends="D", tells=_NO_LOCATION),
    _scenario("location approved, late", WHERE, approve(),
              wire="start i A F || start E X F", ends="E", tells="The request for your location has", is_late=True),
]  # fmt: skip

_TWO = "start I1 I2 A1 A2 F || "

TWO_PAYMENTS = [
    _scenario("together", PAY_TWO, (approve(), approve()), wire=_TWO + "start O1 O2 X F", ends="OO", tells=_BOTH_PAID),
    _scenario("one, then the other", PAY_ONE_THEN_ANOTHER, approve(), approve(),
              wire="start I1 A1 F || start O1 I2 A2 F || start O2 X F", ends="OO", tells=_BOTH_PAID),
    _scenario("yes and no", PAY_TWO, (approve(), deny()), wire=_TWO + "start O1 D2 X F", ends="OD", tells=_ONLY_ALICE),
    _scenario("no and yes", PAY_TWO, (deny(), approve()), wire=_TWO + "start D1 O2 X F", ends="DO", tells=_ONLY_BOB),
    _scenario("yes and no, the second first", PAY_TWO, (deny(1), approve()),
              wire=_TWO + "start O1 D2 X F", ends="OD", tells=_ONLY_ALICE),
    _scenario("no and yes, the second first", PAY_TWO, (approve(1), deny()),
              wire=_TWO + "start D1 O2 X F", ends="DO", tells=_ONLY_BOB),
    _scenario("yes, later no", PAY_TWO, (approve(), SUBMIT), deny(),
              wire=_TWO + "start O1 F || start D2 X F", ends="OD", tells=_ONLY_ALICE),
    _scenario("no, later yes", PAY_TWO, (deny(), SUBMIT), approve(),
              wire=_TWO + "start F || start D1 O2 X F", ends="DO", tells=_ONLY_BOB),
    _scenario("second no, later yes", PAY_TWO, (deny(1), SUBMIT), approve(),
              wire=_TWO + "start F || start O1 D2 X F", ends="OD", tells=_ONLY_ALICE),
    _scenario("second yes, later no", PAY_TWO, (approve(1), SUBMIT), deny(),
              wire=_TWO + "start O2 F || start D1 X F", ends="DO", tells=_ONLY_BOB),
]  # fmt: skip

_MIXED = "start I1 i2 A1 A2 F || "

SERVER_AND_BROWSER = [
    _scenario("both approved", PAY_AND_WHERE, (approve(), approve()), LOCATED,
              wire=_MIXED + "start I2 O1 F || start X F", ends="OO", tells=f"{_ALICE} {_LOCATION}"),
    _scenario("payment denied, location approved", PAY_AND_WHERE, (deny(), approve()), LOCATED,
              wire=_MIXED + "start I2 F || start D1 X F", ends="DO", tells=f"{_NOT_ALICE} {_LOCATION}"),
    _scenario("payment approved, location denied", PAY_AND_WHERE, (approve(), deny()),
              wire=_MIXED + "start O1 D2 X F", ends="OD", tells=f"{_ALICE} {_NO_LOCATION}"),
    _scenario("location approved, payment denied", WHERE_AND_PAY, (approve(), deny()), LOCATED,
              wire="start i1 I2 A2 A1 F || start I1 F || start D2 X F", ends="OD", tells=f"{_LOCATION} {_NOT_ALICE}"),
    _scenario("location approved, payment later denied", PAY_AND_WHERE, (approve(1), SUBMIT), (LOCATED, deny()),
              wire=_MIXED + "start I2 F || start D1 X F", ends="DO", tells=f"{_NOT_ALICE} {_LOCATION}"),
    _scenario("payment denied, location later approved", PAY_AND_WHERE, (deny(), SUBMIT), approve(), LOCATED,
              wire=_MIXED + "start F || start I2 F || start D1 X F", ends="DO", tells=f"{_NOT_ALICE} {_LOCATION}"),
    _scenario("payment approved, location later denied", PAY_AND_WHERE, (approve(), SUBMIT), deny(),
              wire=_MIXED + "start O1 F || start D2 X F", ends="OD", tells=f"{_ALICE} {_NO_LOCATION}"),
    _scenario("payment approved, music", PAY_AND_MUSIC, (PLAYS, approve()),
              wire="start I1 A1 I2 F || start O1 X F", ends="OO", tells=f"{_ALICE} {_MUSIC}"),
    _scenario("payment denied, music", PAY_AND_MUSIC, (PLAYS, deny()),
              wire="start I1 A1 I2 F || start D1 X F", ends="DO", tells=f"{_NOT_ALICE} {_MUSIC}"),
    _scenario("music, payment later denied", PAY_AND_MUSIC, (PLAYS, SUBMIT), deny(),
              wire="start I1 A1 I2 F || start F || start D1 X F", ends="DO", tells=f"{_NOT_ALICE} {_MUSIC}"),
    _scenario("music, location approved", MUSIC_AND_WHERE, (PLAYS, approve()), LOCATED,
              wire="start i2 I1 A2 F || start I2 F || start X F", ends="OO", tells=f"{_MUSIC} {_LOCATION}"),
    _scenario("music, location denied", MUSIC_AND_WHERE, (PLAYS, deny()),
              wire="start i2 I1 A2 F || start D2 X F", ends="OD", tells=f"{_MUSIC} {_NO_LOCATION}"),
    _scenario("payment denied, weather", PAY_AND_WEATHER, deny(),
              wire="start I1 I2 O2 A1 F || start D1 X F", ends="DO", tells=f"{_NOT_ALICE} The weather in Oslo"),
    _scenario("music, then payment approved", say("Change BGM to track 1, then pay Alice 30 dollars"), PLAYS, approve(),
              wire="start I1 F || start I2 A2 F || start O2 X F", ends="OO", tells=f"{_MUSIC} {_ALICE}"),
    _scenario("location denied, then payment approved", WHERE_THEN_PAY, deny(), approve(),
              wire="start i1 A1 F || start D1 I2 A2 F || start O2 X F", ends="DO", tells=f"{_NO_LOCATION} {_ALICE}"),
]  # fmt: skip

SCENARIOS = [*ONE_CALL, *TWO_PAYMENTS, *SERVER_AND_BROWSER]

# -- live mode ---------------------------------------------------------------------------------------------------------

_NEXT_PAYMENT = "start I1 A1 F || start O1 I2 A2 F || "

ONE_CALL_AT_A_TIME = [
    _scenario("both approved, one by one", PAY_TWO, approve(), approve(), one_by_one=PAY_ONE_THEN_ANOTHER,
              wire=_NEXT_PAYMENT + "start O2 X F", ends="OO", tells=_BOTH_PAID),
    _scenario("yes, then no", PAY_TWO, approve(), deny(), one_by_one=PAY_ONE_THEN_ANOTHER,
              wire=_NEXT_PAYMENT + "start D2 X F", ends="OD", tells=_ONLY_ALICE),
    _scenario("no, then yes", PAY_TWO, deny(), approve(), one_by_one=PAY_ONE_THEN_ANOTHER,
              wire="start I1 A1 F || start D1 I2 A2 F || start O2 X F", ends="DO", tells=_ONLY_BOB),
    _scenario("location, then payment denied", WHERE_AND_PAY, approve(), LOCATED, deny(), one_by_one=WHERE_THEN_PAY,
              wire="start i1 A1 F || start I1 F || start I2 A2 F || start D2 X F", ends="OD",
              tells=f"{_LOCATION} {_NOT_ALICE}"),
]  # fmt: skip
"""What a live model makes of two wishes in one sentence that never makes two calls at once, as Gemini 2.5."""

_IN_TIME = [scenario for scenario in SCENARIOS if not scenario.is_late]
_AND = (PAY_TWO, PAY_AND_WHERE, WHERE_AND_PAY, PAY_AND_MUSIC, MUSIC_AND_WHERE, PAY_AND_WEATHER)

LIVE_SCENARIOS = {
    "2.5": [*(scenario for scenario in _IN_TIME if scenario.visits[0][0] not in _AND), *ONE_CALL_AT_A_TIME],
    "3": _IN_TIME,
}
"""By the family of the live model."""
