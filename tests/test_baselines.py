"""Every scenario of the demo in both modes, against recordings that people have looked at.

`python tests/test_baselines.py --rewrite` records them anew; the diff then shows what has changed on the wire.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_app, demo_run_config
from adk_stream_protocol.demo.identity import LoopbackIdentity
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.policy import demo_groups, demo_policy
from adk_stream_protocol.demo.server import build_server
from adk_stream_protocol.recording.recorder import Recording
from adk_stream_protocol.store.memory import MemoryStore
from support import virtual_time
from support.baseline_scenarios import SCENARIOS, Mode, Person, client_of
from support.masks import Line, masked

BASELINES = Path(__file__).with_name("baselines")

both_modes = pytest.mark.parametrize("mode", ["sse", "bidi"])


def baseline_of(name: str, mode: Mode) -> Path:
    return BASELINES / f"{name}-{mode}-baseline.jsonl"


def record(name: str, mode: Mode) -> str:
    """The lines of a scenario, masked."""
    clock = [1_700_000_000.0]
    identity = LoopbackIdentity()
    demo = build_app(OfflineModel())
    store = MemoryStore(clock=lambda: clock[0])
    options: Any = {"approvals": demo_policy(), "groups": demo_groups(identity)}
    bridge = ChatBridge(demo, user_id=identity, store=store, run_config=demo_run_config(demo), **options)

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
