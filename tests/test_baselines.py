"""Every scenario of the demo in request mode, against a recording that people have looked at.

`python tests/test_baselines.py --rewrite` records them anew; the diff then shows what has changed on the wire.
"""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_app
from adk_stream_protocol.demo.identity import LoopbackIdentity
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.server import build_server
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ChatClient
from adk_stream_protocol.transports.recorder import Recording

BASELINES = Path(__file__).with_name("baselines")
HERE = {"latitude": 35.68, "longitude": 139.77, "accuracy": 12, "timestamp": 1_700_000_000_000}
AFTER_ANY_DEADLINE_S = 1_000_000

Line = dict[str, Any]


@dataclass
class Person:
    """Somebody at a client, and the clock that their approvals run by."""

    client: ChatClient
    clock: list[float]

    async def approves(self, asked: Answer) -> Answer:
        return await self.client.approve(asked)

    async def answers(self, asked: Answer, *approved: bool, output: Any = None) -> Answer:
        """All calls of a message in one request; with the browser's output where there is one."""
        parts: list[dict[str, Any]] = []
        for part, agreed in zip(asked.approvals, approved, strict=True):
            decided = {**part, "state": "approval-responded", "approval": {**part["approval"], "approved": agreed}}
            parts.append(decided if output is None else {**decided, "state": "output-available", "output": output})
        return await self.client.reply(asked, parts)

    def waits_too_long(self) -> None:
        self.clock[0] += AFTER_ANY_DEADLINE_S


async def weather(person: Person) -> None:
    await person.client.send("What is the weather in Tokyo?")


async def music(person: Person) -> None:
    asked = await person.client.send("Change BGM to track 1")
    await person.client.output(asked, {"success": True, "track": 1, "message": "Now playing track 1."})


async def payment_approved(person: Person) -> None:
    await person.approves(await person.client.send("Send 50 dollars to Hanako"))


async def payment_denied(person: Person) -> None:
    await person.client.deny(await person.client.send("Send 50 dollars to Hanako"), "Too much.")


async def payment_expired(person: Person) -> None:
    asked = await person.client.send("Send 50 dollars to Hanako")
    person.waits_too_long()
    await person.approves(asked)


async def two_payments_approved(person: Person) -> None:
    await person.approves(await person.client.send("Pay Alice 30 dollars and Bob 40 dollars"))


async def two_payments_mixed(person: Person) -> None:
    asked = await person.client.send("Pay Alice 30 dollars and Bob 40 dollars")
    await person.answers(asked, True, False)


async def one_payment_then_another(person: Person) -> None:
    first = await person.client.send("Pay Alice 30 dollars, then Bob 40 dollars")
    await person.approves(await person.approves(first))


async def location_approved(person: Person) -> None:
    freed = await person.approves(await person.client.send("Where am I?"))
    await person.client.output(freed, HERE)


async def location_approved_with_output(person: Person) -> None:
    await person.answers(await person.client.send("Where am I?"), True, output=HERE)


async def location_denied(person: Person) -> None:
    await person.client.deny(await person.client.send("Where am I?"))


@dataclass(frozen=True)
class Scenario:
    play: Callable[[Person], Awaitable[None]]
    sequence: str
    """I: tool-input-start and -available; i: -start and -delta; A: tool-approval-request; O, D, E:
    tool-output-available, -denied, -error; X: a text part; F: finish and [DONE]; ||: the client answers, and the same
    message goes on."""


SCENARIOS = {
    "get_weather": Scenario(weather, "start I O X F"),
    "change_bgm": Scenario(music, "start I F || start X F"),
    "process_payment-approved": Scenario(payment_approved, "start I A F || start O X F"),
    "process_payment-denied": Scenario(payment_denied, "start I A F || start D X F"),
    "process_payment-expired": Scenario(payment_expired, "start I A F || start E X F"),
    "process_payment-two-approved": Scenario(two_payments_approved, "start I1 I2 A1 A2 F || start O1 O2 X F"),
    "process_payment-two-mixed": Scenario(two_payments_mixed, "start I1 I2 A1 A2 F || start O1 D2 X F"),
    "process_payment-then-approved": Scenario(
        one_payment_then_another, "start I1 A1 F || start O1 I2 A2 F || start O2 X F"
    ),
    "get_location-approved": Scenario(location_approved, "start i A F || start I F || start X F"),
    "get_location-pattern-a-approved": Scenario(location_approved_with_output, "start i A F || start X F"),
    "get_location-denied": Scenario(location_denied, "start i A F || start D X F"),
}


def baseline_of(name: str) -> Path:
    return BASELINES / f"{name}-sse-baseline.jsonl"


def record(play: Callable[[Person], Awaitable[None]]) -> str:
    """The lines of a scenario, masked."""
    clock = [1_700_000_000.0]
    identity = LoopbackIdentity()
    bridge = ChatBridge(build_app(OfflineModel()), user_id=identity, store=MemoryStore(clock=lambda: clock[0]))

    async def played(recording: Recording) -> None:
        app = build_server(bridge, identity, loopback_only=True, recording=recording)
        await play(Person(ChatClient(app), clock))
        await bridge.aclose()

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recording.jsonl"
        with Recording(file) as recording:
            asyncio.run(played(recording))
        return masked(file.read_text())


def lines_of(recording: str) -> list[Line]:
    return [json.loads(line) for line in recording.split("\n")[:-1]]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_on_the_wire_what_its_baseline_says(name: str) -> None:
    assert lines_of(record(SCENARIOS[name].play)) == lines_of(baseline_of(name).read_text())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_baseline_has_the_sequence_of_its_scenario(name: str) -> None:
    lines = lines_of(baseline_of(name).read_text())
    assert sequence_of(lines) == SCENARIOS[name].sequence


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_segments_of_a_baseline_belong_to_one_message(name: str) -> None:
    lines = lines_of(baseline_of(name).read_text())
    starts = [line["chunk"] for line in lines if line["direction"] == "chunk" and line["chunk"] != "[DONE]"]
    assert {chunk["messageId"] for chunk in starts if chunk["type"] == "start"} == {"msg-2"}
    assert [line["status"] for line in lines if line["direction"] == "response"] == [200] * lines[-1]["exchange"]


def test_each_scenario_has_a_baseline_and_no_baseline_is_left_over() -> None:
    assert sorted(BASELINES.iterdir()) == sorted(baseline_of(name) for name in SCENARIOS)


# -- the sequence, in one letter a part -------------------------------------------------------------------------------

_LETTERS = {
    "start": "start",
    "tool-input-start": "s",
    "tool-input-delta": "d",
    "tool-input-available": "a",
    "tool-approval-request": "A",
    "tool-output-available": "O",
    "tool-output-denied": "D",
    "tool-output-error": "E",
    "text-start": "t",
    "text-delta": "u",
    "text-end": "v",
    "finish": "f",
}
_NOT_SHOWN = ("start-step", "finish-step", "data-adk-approval")
_PARTS = {
    r"\bs(\d)(?: d\1)* a\1\b": r"I\1",
    r"\bs(\d)(?: d\1)+\b": r"i\1",
    r"\ba(\d)\b": r"I\1",  # of a call that was only announced before
    r"\bt(?: u)+ v\b": "X",
    r"\bf \[DONE\]": "F",
}


def sequence_of(lines: list[Line]) -> str:
    calls: dict[str, int] = {}
    segments: dict[int, list[str]] = {}
    for line in lines:
        if line["direction"] == "chunk":
            letters = segments.setdefault(line["exchange"], [])
            chunk = line["chunk"]
            if chunk == "[DONE]":
                letters.append(chunk)
            elif chunk["type"] not in _NOT_SHOWN:
                call_id = chunk.get("toolCallId")
                number = calls.setdefault(call_id, len(calls) + 1) if call_id else ""
                letters.append(f"{_LETTERS.get(chunk['type'], chunk['type'])}{number}")
    sequence = " || ".join(" ".join(letters) for letters in segments.values())
    for pattern, part in _PARTS.items():
        sequence = re.sub(pattern, part, sequence)
    return sequence if len(calls) > 1 else re.sub(r"\b([IiAODE])1\b", r"\1", sequence)


# -- masks ------------------------------------------------------------------------------------------------------------


@dataclass
class Masks:
    """A name for each id, of those that are new in every recording; the same id always gets the same name."""

    names: dict[str, str] = field(default_factory=dict)

    def give(self, kind: str, value: str) -> None:
        number = 1 + sum(name.startswith(f"{kind}-") for name in self.names.values())
        self.names.setdefault(value, f"{kind}-{number}")

    def find(self, line: Line) -> None:
        body = line.get("body") or {}
        if line["direction"] == "request":
            self.give("chat", body["id"])
            for message in body["messages"]:
                self.give("msg", message["id"])
        for value in _mappings(line):
            if "toolCallId" in value:
                self.give("call", value["toolCallId"])
            if "approvalId" in value:
                self.give("approval", value["approvalId"])
            if "messageId" in value:
                self.give("msg", value["messageId"])

    def apply(self, text: str) -> str:
        longest_first = sorted(self.names, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), lambda found: self.names[found[0]], text)


def masked(recording: str) -> str:
    """Ids also inside of longer words: a transaction's is made from the call's."""
    masks = Masks()
    lines: list[str] = []
    for text in recording.split("\n")[:-1]:
        line: Line = json.loads(text)
        masks.find(line)
        line["at"] = 0
        lines.append(masks.apply(json.dumps(line, ensure_ascii=False)) + "\n")
    return "".join(lines)


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _mappings(inner)


def test_masks_hide_which_ids_there_are_and_not_what_they_refer_to() -> None:
    def recording(*ids: str) -> str:
        chunks = [
            {"type": "start", "messageId": ids[0]},
            {"type": "tool-input-start", "toolCallId": ids[1]},
            {"type": "tool-input-start", "toolCallId": ids[2]},
            {"type": "tool-approval-request", "approvalId": ids[3], "toolCallId": ids[4]},
            {"type": "data-adk-approval", "id": ids[5]},
            {"type": "tool-output-available", "toolCallId": ids[1], "output": f"txn-{ids[6]}"},
        ]
        lines = [{"at": at, "exchange": 1, "direction": "chunk", "chunk": chunk} for at, chunk in enumerate(chunks)]
        return "".join(json.dumps(line) + "\n" for line in lines)

    right = masked(recording("id-m", "id-a", "id-b", "id-yes", "id-a", "id-yes", "id-a"))
    assert masked(recording("id-n", "id-c", "id-d", "id-no", "id-c", "id-no", "id-c")) == right
    assert "txn-call-1" in right
    for wrong in (
        recording("id-m", "id-a", "id-b", "id-yes", "id-b", "id-yes", "id-a"),
        recording("id-m", "id-a", "id-b", "id-yes", "id-a", "id-other", "id-a"),
        recording("id-m", "id-a", "id-b", "id-yes", "id-a", "id-yes", "id-b"),
        recording("id-m", "id-a", "id-a", "id-yes", "id-a", "id-yes", "id-a"),
    ):
        assert masked(wrong) != right


def rewrite() -> None:
    BASELINES.mkdir(exist_ok=True)
    for left_over in set(BASELINES.iterdir()) - {baseline_of(name) for name in SCENARIOS}:
        left_over.unlink()
    for name, scenario in SCENARIOS.items():
        baseline_of(name).write_text(record(scenario.play))


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/test_baselines.py --rewrite")
    rewrite()
