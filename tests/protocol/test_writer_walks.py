"""Random walks over ChunkWriter: whatever it is asked in whatever order, the client reads a balanced segment."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.writer import ChunkWriter
from protocol.segment_checker import TERMINALS, Terminal, check_segment, stock_client_posts_again, wire

# Which calls a move is legal for, by what has been done to them so far.
OPEN = {"whole", "asked", "progress", "earlier"}
CALL_MOVES: dict[str, tuple[set[str], str]] = {
    "delta": ({"streaming"}, "streaming"),
    "available": ({"streaming"}, "whole"),
    "available for the client": ({"streaming"}, "asked"),
    "input error": ({"streaming"}, "done"),
    "approval": ({"whole", "asked"}, "asked"),
    "awaits": ({"whole", "asked"}, "asked"),
    "progress": (OPEN, "progress"),
    "output": (OPEN, "done"),
    "error": (OPEN, "done"),
    "denied": (OPEN, "done"),
}
OTHER_MOVES = ("text", "text", "end text", "end texts", "new step", "call", "part", "reasoning file", "data")

flag = st.sampled_from([None, True, False])
moves = st.lists(st.tuples(st.sampled_from([*CALL_MOVES, *OTHER_MOVES]), st.integers(0, 5), flag, flag), max_size=30)


class Walker:
    """Makes the moves that are legal, and knows what it left with whom."""

    def __init__(self, version: SdkVersion, earlier: list[str]) -> None:
        self.version = version
        self.writer = ChunkWriter(sdk_version=version, answered_calls=earlier)
        self.calls = dict.fromkeys(earlier, "earlier")
        self.chunks = self.writer.start("m1")

    def move(self, name: str, pick: int, executed: bool | None, dynamic: bool | None) -> None:
        w = self.writer
        if name in CALL_MOVES:
            self.move_call(name, pick)
        elif name == "call":
            call_id = f"c{len(self.calls)}"
            self.calls[call_id] = "streaming"
            self.chunks += w.tool_input_start(call_id, "add", provider_executed=executed, dynamic=dynamic)
        elif name == "text":
            self.chunks += w.text(pick % 2, "reasoning" if executed else "text", "x", {"adk": {}} if dynamic else None)
        elif name == "end text":
            self.chunks += w.end_text(pick % 2, citations=[{"url": "u"}] if dynamic else None)
        elif name == "end texts":
            self.chunks += w.end_texts()
        elif name == "new step":  # which ends inputs that still stream
            self.calls = {call: "done" if state == "streaming" else state for call, state in self.calls.items()}
            self.chunks += w.new_step()
        elif name == "part":
            self.chunks += w.part(c.SourceUrl("s", "u"))
        elif name == "reasoning file":
            self.chunks += w.reasoning_file("u", "image/png")
        elif name == "data":
            self.chunks += w.data("note", pick)

    def move_call(self, name: str, pick: int) -> None:
        legal, after = CALL_MOVES[name]
        able = [call_id for call_id, state in self.calls.items() if state in legal]
        if not able or (name == "approval" and self.version == 5):
            return
        call_id = able[pick % len(able)]
        self.calls[call_id] = after
        w = self.writer
        writes: dict[str, Callable[[], list[c.AnyChunk]]] = {
            "delta": lambda: w.tool_input_delta(call_id, "{"),
            "available": lambda: w.tool_input_available(call_id, {"n": pick}),
            "available for the client": lambda: w.tool_input_available(call_id, None, awaits_client=True),
            "input error": lambda: w.tool_input_error(call_id, "x"),
            "approval": lambda: w.tool_approval_request(call_id, "ok"),
            "awaits": lambda: w.tool_awaits_client(call_id),
            "progress": lambda: w.tool_output(call_id, pick, preliminary=True),
            "output": lambda: w.tool_output(call_id, pick),
            "error": lambda: w.tool_error(call_id, "x"),
            "denied": lambda: w.tool_denied(call_id, "x"),
        }
        self.chunks += writes[name]()


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([5, 6, 7]), st.sampled_from([[], ["e1", "e2"]]), moves, st.sampled_from(TERMINALS))
def test_any_walk_ended_anywhere_is_a_balanced_segment(
    version: SdkVersion, earlier: list[str], walk: list[Any], how: Terminal
) -> None:
    walker = Walker(version, earlier)
    for name, pick, executed, dynamic in walk:
        walker.move(name, pick, executed, dynamic)
    left = [call_id for call_id, state in walker.calls.items() if state in {"asked", "progress"}]
    awaits_client = "asked" in walker.calls.values()
    endings = {
        "finish": lambda w: w.finish("stop"),
        "abort": lambda w: w.abort(),
        "error": lambda w: w.error("It broke."),
    }
    written = wire([*walker.chunks, *endings[how](walker.writer)])
    # What is with the client or still running (progress of a long job) stays open, and nothing else.
    assert check_segment(written, version, frozenset(earlier)) == set(left) - set(earlier)
    if not awaits_client:
        assert not stock_client_posts_again(written, continues=bool(earlier))
