"""Thousands of answers, each of them a true one with something changed: those that are no longer true do nothing.

What is true is said here once more, from the description of the wire alone, as a judge of its own.
"""

import asyncio
import copy
import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from adk_stream_protocol.testing import call
from security.bank import Asked, Bank, Part, approval_of, confirmation_of, output_of
from support.apps import figure

BODIES = 10_000
TRUE_ONES = 30
ENDED = ("output-available", "output-error", "output-denied")


class Open(NamedTuple):
    """A call that waits, and for whom."""

    user: str
    chat_id: str
    tool: str
    call_id: str
    approval_id: str | None
    arguments: Any
    in_browser: bool


class Town:
    """Three open chats of two people's, and one that is done."""

    def __init__(self, bank: Bank, asked: dict[str, Asked]) -> None:
        self.bank, self.asked = bank, asked
        self.open = [found for owner, each in asked.items() for found in _open_calls(owner.split()[0], each)]

    @classmethod
    async def built(cls) -> "Town":
        step = [call("pay", amount=1, to="Hanako"), call("locate"), call("play", track=1)]
        bank = Bank(step, [call("pay", amount=2, to="Taro")], [call("pay", amount=3, to="Bob")], "Paid.", step, "Fine.")
        town = {"ann 2": await bank.asks(), "bob": await bank.asks("bob")}
        done = await bank.asks()
        await done.is_approved_after_all({"paid": 3})
        return cls(bank, {"ann": await bank.asks(), **town, "ann done": done})

    def true_body(self, random: Random) -> dict[str, Any]:
        asked = self.asked[random.choice(["ann", "ann", "ann", "ann 2"])]
        part = random.choice(asked.answer.approvals)
        forms = [
            asked.body(approval_of(part, approved=random.random() < 0.7)),
            asked.body(*(approval_of(each) for each in asked.answer.approvals)),
            asked.body(confirmation_of(part, {"confirmed": True})),
            asked.body({**confirmation_of(part, None), "state": "approval-responded", "approval": {"approved": True}}),
            asked.results_body({"toolCallId": part["toolCallId"], "output": {"approved": True}}),
            asked.results_body({"toolCallId": part["approval"]["id"], "output": {"confirmed": True}}),
            asked.results_body({"toolCallId": part["approval"]["id"], "result": {"approval": "approved"}}),
        ]
        for browser in asked.answer.browser_calls:
            forms.append(asked.body(output_of(browser, {"plays": 1})))
            forms.append(asked.results_body({"toolCallId": browser["toolCallId"], "output": {"plays": 1}}))
        if part["type"] == "tool-locate":
            forms.append(asked.body(output_of(approval_of(part), {"latitude": 60})))
        return copy.deepcopy(random.choice(forms))

    def values(self, random: Random) -> Any:
        """What a forger has at hand: true values of other places, near misses, and odds."""
        calls = self.open
        near = [found.call_id for found in calls] + [found.approval_id for found in calls if found.approval_id]
        parts = [part for asked in self.asked.values() for part in asked.answer.approvals]
        plain = ["yes", "true", 1, 0, 1.5, None, "", True, False, {}, [], "approved", "denied", -1, 10**30]
        words = ["approval-responded", "output-available", "output-error", "tool-pay", "tool-locate", "dynamic-tool"]
        words += ["tool-play", "tool-result", "tool-adk_request_confirmation", "pay", "assistant", "system", "user"]
        chats = [asked.chat_id for asked in self.asked.values()] + [a.message_id for a in self.asked.values()]
        made = [{"id": random.choice(near), "approved": True}, {"confirmed": True}, {"approved": True}, {"paid": 10**6}]
        changed = [{**random.choice(parts)["input"], "amount": random.choice([True, "1", 10**6])}]
        return copy.deepcopy(
            random.choice([random.choice(group) for group in (near, plain, words, chats, made, changed, parts)])
        )


def _open_calls(user: str, asked: Asked) -> Iterator[Open]:
    for part in [*asked.answer.approvals, *asked.answer.browser_calls]:
        tool, approval = part["type"].removeprefix("tool-"), part.get("approval", {})
        yield Open(
            user, asked.chat_id, tool, part["toolCallId"], approval.get("id"), part["input"], tool in ("locate", "play")
        )


# -- forging ----------------------------------------------------------------------------------------------------------


def forge(body: Any, town: Town, random: Random) -> None:
    parts = random.random() < 0.9 and list(_places(body, below="parts"))
    places = parts or list(_places(body))
    if not places:
        return
    holder, key = random.choice(places)
    match random.randrange(6):
        case 0 | 1 | 2:
            holder[key] = town.values(random)
        case 3:
            del holder[key]
        case 4:
            other, other_key = random.choice(places)
            holder[key], other[other_key] = copy.deepcopy(other[other_key]), copy.deepcopy(holder[key])
        case _:
            if isinstance(holder, list):
                holder.append(town.values(random))
            else:
                name = random.choice(["approval", "output", "toolCallId", "state", "input", "confirmed", "approved"])
                holder[name] = town.values(random)


def _places(value: Any, below: str | None = None) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            if below is None:
                yield value, key
            yield from _places(value[key], None if key == below else below)


# -- judging ----------------------------------------------------------------------------------------------------------


def is_true(body: Any, user: str, town: Town) -> bool:
    """Whether a body says anything about an open call in the words that count."""
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        return False
    message = body.get("message") or body["messages"][-1]
    if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
        return False
    parts = [part for part in message["parts"] if isinstance(part, dict)]
    if message.get("role") == "user":
        parts = [part for part in parts if part.get("type") == "tool-result"]
    elif message.get("role") != "assistant":
        return False
    mine = [found for found in town.open if (found.user, found.chat_id) == (user, body.get("id"))]
    return any(_is_answered(found, parts) for found in mine)


def _is_answered(found: Open, parts: list[Part]) -> bool:
    # What a message shows as finished is not decided in it.
    ended = any(part.get("toolCallId") == found.call_id and part.get("state") in ENDED for part in parts)
    decided = any(_decides(part, found) for part in parts) and (found.in_browser or not ended)
    return decided or (found.approval_id is None and any(_is_output(part, found) for part in parts))


def _decides(part: Part, found: Open) -> bool:
    if found.approval_id is None:
        return False
    said = part.get("approval") if isinstance(part.get("approval"), dict) else {}
    state, call_id = part.get("state"), part.get("toolCallId")
    if part.get("type") == "tool-result":
        value = _value(part)
        if call_id == found.approval_id:
            return value.get("approval") in ("approved", "denied") or isinstance(value.get("confirmed"), bool)
        return call_id == found.call_id and isinstance(value.get("approved"), bool)
    if _name(part) == "adk_request_confirmation":
        original = _dict(_dict(part.get("input")).get("originalFunctionCall"))
        if call_id != found.approval_id or not _shows(original.get("name"), original.get("args"), found):
            return False
        output = _dict(part.get("output"))
        return isinstance(output.get("confirmed") if state == "output-available" else said.get("approved"), bool)
    states = ["approval-responded"] + ["output-available", "output-error"] * found.in_browser
    is_it = call_id == found.call_id and said.get("id") == found.approval_id and state in states
    return is_it and isinstance(said.get("approved"), bool) and _name(part) == found.tool and _shows_input(part, found)


def _is_output(part: Part, found: Open) -> bool:
    if not found.in_browser or part.get("toolCallId") != found.call_id or not _shows_input(part, found):
        return False
    if part.get("type") == "tool-result":
        return True
    has_output = part.get("state") == "output-available" and "output" in part
    return _name(part) == found.tool and not part.get("preliminary") and has_output


def _name(part: Part) -> Any:
    kind = part.get("type")
    if kind == "dynamic-tool":
        return part.get("toolName")
    return kind.removeprefix("tool-") if isinstance(kind, str) and kind.startswith("tool-") else None


def _shows(name: Any, arguments: Any, found: Open) -> bool:
    return name in (None, found.tool) and (arguments is None or _plain(arguments) == _plain(found.arguments))


def _shows_input(part: Part, found: Open) -> bool:
    return part.get("input") is None or _plain(part["input"]) == _plain(found.arguments)


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _value(part: Part) -> dict[str, Any]:
    return _dict(part.get("output", part.get("result")))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@pytest.mark.figures
def test_no_forged_answer_runs_a_tool_or_changes_anything(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> Counter[str]:
        random, told, true_ones = Random(17), Counter[str](), 0
        town = await Town.built()
        before = await town.bank.facts()
        while told.total() < figure(BODIES):
            body = town.true_body(random)
            user = "bob" if random.random() < 0.1 else "ann"
            for _ in range(random.randint(1, 4) if user == "ann" else 0):
                forge(body, town, random)
            if not is_true(body, user, town):
                answer = await town.bank.post(body, user)
                assert answer.status in (400, 404), (answer.status, answer.body, body)
                assert await town.bank.facts() == before, body
                told[f"{answer.status}"] += 1
            elif true_ones < TRUE_ONES:  # the judge itself is judged by some: what it calls true is taken
                true_ones += 1
                assert (await town.bank.post(body, user)).status in (200, 400, 422), body
                town = await Town.built()
                before = await town.bank.facts()
        return told

    told = asyncio.run(scenario())
    with capsys.disabled():
        print(f"\n{told.total()} answers with something changed: refused with {dict(told)}")
    assert told["404"] > figure(BODIES) // 2
