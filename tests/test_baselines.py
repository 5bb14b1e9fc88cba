"""Every scenario of the demo in both modes, against recordings that people have looked at.

`python tests/test_baselines.py --rewrite` records them anew; the diff then shows what has changed on the wire.
"""

import json
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pytest
from starlette.types import ASGIApp

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_app, demo_run_config
from adk_stream_protocol.demo.identity import LoopbackIdentity
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.server import build_server
from adk_stream_protocol.recording.recorder import Recording
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ChatClient
from support import virtual_time
from support.live_client import LiveClient, live_socket

BASELINES = Path(__file__).with_name("baselines")
HERE = {"latitude": 35.68, "longitude": 139.77, "accuracy": 12, "timestamp": 1_700_000_000_000}
AFTER_ANY_DEADLINE_S = 1_000_000

Line = dict[str, Any]
Mode = Literal["sse", "bidi"]
both_modes = pytest.mark.parametrize("mode", ["sse", "bidi"])


class LiveChatClient(ChatClient):
    """Sends over a socket what others post."""

    def __init__(self, app: ASGIApp, socket: LiveClient) -> None:
        super().__init__(app, chat_id=socket.chat_id)
        self._socket = socket

    async def post(self, body: Mapping[str, Any] | bytes) -> Answer:
        assert not isinstance(body, bytes)
        request_id = _new_id("request")
        self._socket.send_frame({"type": "send", "requestId": request_id, **body})
        return await self._socket.answer(request_id)

    async def hear(self) -> Answer:
        """What the server tells without being asked."""
        await self._socket.own("turn")
        return await self._socket.resume(requestId=_new_id("request"))


def _new_id(kind: str) -> str:
    """Nothing else in a recording may look like one."""
    return f"{kind}-{uuid4().hex}"


@asynccontextmanager
async def client_of(app: ASGIApp, mode: Mode) -> AsyncGenerator[ChatClient]:
    if mode == "sse":
        yield ChatClient(app)
        return
    async with live_socket(app, headers={"host": "localhost"}, chat_id=_new_id("chat")) as socket:
        yield LiveChatClient(app, socket)


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

    async def waits_too_long(self, asked: Answer) -> Answer:
        """A live session goes on by itself, request mode with the late answer."""
        self.clock[0] += AFTER_ANY_DEADLINE_S
        return await (self.client.hear() if isinstance(self.client, LiveChatClient) else self.approves(asked))


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
    await person.waits_too_long(await person.client.send("Send 50 dollars to Hanako"))


async def two_payments_approved(person: Person) -> None:
    await person.approves(await person.client.send("Pay Alice 30 dollars and Bob 40 dollars"))


async def two_payments_mixed(person: Person) -> None:
    asked = await person.client.send("Pay Alice 30 dollars and Bob 40 dollars")
    await person.answers(asked, True, False)


async def two_payments_approved_one_by_one(person: Person) -> None:
    asked = await person.client.send("Pay Alice 30 dollars and Bob 40 dollars")
    await person.approves(await person.approves(asked))


async def two_payments_mixed_one_by_one(person: Person) -> None:
    asked = await person.client.send("Pay Alice 30 dollars and Bob 40 dollars")
    await person.client.deny(await person.approves(asked))


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
    live_play: Callable[[Person], Awaitable[None]] | None = None
    """For live mode, where that is not the same: its model makes one call at a time."""
    live_sequence: str | None = None

    def player(self, mode: Mode) -> Callable[[Person], Awaitable[None]]:
        return self.play if mode == "sse" else self.live_play or self.play

    def sequence_in(self, mode: Mode) -> str:
        return self.sequence if mode == "sse" else self.live_sequence or self.sequence


ONE_BY_ONE = "start I1 A1 F || start O1 I2 A2 F || start {}2 X F"

SCENARIOS = {
    "get_weather": Scenario(weather, "start I O X F"),
    "change_bgm": Scenario(music, "start I F || start X F"),
    "process_payment-approved": Scenario(payment_approved, "start I A F || start O X F"),
    "process_payment-denied": Scenario(payment_denied, "start I A F || start D X F"),
    "process_payment-expired": Scenario(
        payment_expired,
        "start I A F || start E X F",
        # A turn that nobody has asked for is read from the beginning of its message.
        live_sequence="start I A F || start i A E X F",
    ),
    "process_payment-two-approved": Scenario(
        two_payments_approved,
        "start I1 I2 A1 A2 F || start O1 O2 X F",
        live_play=two_payments_approved_one_by_one,
        live_sequence=ONE_BY_ONE.format("O"),
    ),
    "process_payment-two-mixed": Scenario(
        two_payments_mixed,
        "start I1 I2 A1 A2 F || start O1 D2 X F",
        live_play=two_payments_mixed_one_by_one,
        live_sequence=ONE_BY_ONE.format("D"),
    ),
    "process_payment-then-approved": Scenario(one_payment_then_another, ONE_BY_ONE.format("O")),
    "get_location-approved": Scenario(location_approved, "start i A F || start I F || start X F"),
    "get_location-pattern-a-approved": Scenario(location_approved_with_output, "start i A F || start X F"),
    "get_location-denied": Scenario(location_denied, "start i A F || start D X F"),
}


def baseline_of(name: str, mode: Mode) -> Path:
    return BASELINES / f"{name}-{mode}-baseline.jsonl"


def record(name: str, mode: Mode) -> str:
    """The lines of a scenario, masked."""
    clock = [1_700_000_000.0]
    identity = LoopbackIdentity()
    demo = build_app(OfflineModel())
    store = MemoryStore(clock=lambda: clock[0])
    bridge = ChatBridge(demo, user_id=identity, store=store, run_config=demo_run_config(demo))

    async def played(recording: Recording) -> None:
        app = build_server(bridge, identity, loopback_only=True, recording=recording)
        async with client_of(app, mode) as client:
            await SCENARIOS[name].player(mode)(Person(client, clock))
        await bridge.aclose()

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recording.jsonl"
        with Recording(file) as recording:
            # Where a live session looks after its deadlines, nobody waits for that.
            virtual_time.run(played(recording))
        return masked(file.read_text())


def lines_of(recording: str) -> list[Line]:
    return [json.loads(line) for line in recording.split("\n")[:-1]]


def lines_of_baseline(name: str, mode: Mode) -> list[Line]:
    return lines_of(baseline_of(name, mode).read_text())


@both_modes
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_on_the_wire_what_its_baseline_says(name: str, mode: Mode) -> None:
    assert lines_of(record(name, mode)) == lines_of_baseline(name, mode)


@both_modes
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_baseline_has_the_sequence_of_its_scenario(name: str, mode: Mode) -> None:
    assert sequence_of(lines_of_baseline(name, mode)) == SCENARIOS[name].sequence_in(mode)


@both_modes
@pytest.mark.parametrize("name", SCENARIOS)
def test_all_segments_of_a_baseline_belong_to_one_message(name: str, mode: Mode) -> None:
    starts = [chunk for _, chunk in chunks_of(lines_of_baseline(name, mode)) if chunk != "[DONE]"]
    assert {chunk["messageId"] for chunk in starts if chunk["type"] == "start"} == {"msg-2"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_request_of_a_baseline_is_refused(name: str) -> None:
    lines = lines_of_baseline(name, "sse")
    assert [line["status"] for line in lines if line["direction"] == "response"] == [200] * lines[-1]["exchange"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_live_baseline_is_one_socket_whose_requests_are_numbered_chunks_to_their_ends(name: str) -> None:
    lines = lines_of_baseline(name, "bidi")
    assert [line["direction"] for line in lines] == ["open", *["frame"] * (len(lines) - 2), "close"]
    asked = [line["frame"] for line in lines[1:-1] if line["by"] == "client"]
    told = [line["frame"] for line in lines[1:-1] if line["by"] == "server"]
    for frame in asked:
        answer = [told_frame for told_frame in told if told_frame["requestId"] == frame["requestId"]]
        begin = ["start"] if frame["type"] == "resume" else []
        chunks = answer[len(begin) : -1]
        assert [told_frame["type"] for told_frame in answer] == [*begin, *["chunk"] * len(chunks), "end"]
        assert [told_frame["sequence"] for told_frame in chunks] == list(range(len(chunks)))
    unasked = [frame["type"] for frame in told if frame["requestId"] == "-"]
    assert unasked == ["turn"] * len([frame for frame in asked if frame["type"] == "resume"])


def all_baselines() -> dict[Path, tuple[str, Mode]]:
    modes: tuple[Mode, ...] = ("sse", "bidi")
    return {baseline_of(name, mode): (name, mode) for name in SCENARIOS for mode in modes}


def test_each_scenario_has_its_baselines_and_no_baseline_is_left_over() -> None:
    assert sorted(BASELINES.iterdir()) == sorted(all_baselines())


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


def chunks_of(lines: list[Line]) -> Iterator[tuple[Any, Any]]:
    """The chunks of both modes and `[DONE]` at their ends, each with its request."""
    for line in lines:
        frame = line.get("frame", {})
        if line["direction"] == "chunk":
            yield line["exchange"], line["chunk"]
        elif frame.get("type") == "chunk":
            yield frame["requestId"], frame["chunk"]
        elif frame.get("type") == "end":
            yield frame["requestId"], "[DONE]"


def sequence_of(lines: list[Line]) -> str:
    calls: dict[str, int] = {}
    segments: dict[Any, list[str]] = {}
    for request, chunk in chunks_of(lines):
        letters = segments.setdefault(request, [])
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
        asked = line.get("body") or line.get("frame") or {}
        if "messages" in asked:
            self.give("chat", asked["id"])
            for message in asked["messages"]:
                self.give("msg", message["id"])
        if asked.get("requestId", "-") != "-":
            self.give("request", asked["requestId"])
        for value in _mappings(line):
            if "toolCallId" in value:
                self.give("call", value["toolCallId"])
            if "approvalId" in value:
                self.give("approval", value["approvalId"])
            if "messageId" in value:
                self.give("msg", value["messageId"])

    def apply(self, text: str) -> str:
        if not self.names:
            return text
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
    baselines = all_baselines()
    for left_over in set(BASELINES.iterdir()) - baselines.keys():
        left_over.unlink()
    for file, (name, mode) in baselines.items():
        file.write_text(record(name, mode))


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/test_baselines.py --rewrite")
    rewrite()
