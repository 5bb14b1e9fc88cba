"""Random walks over ChunkWriter: whatever it is asked in whatever order, over however many segments, the client reads a
balanced message, knows what is its own to answer, and is left with nothing that nobody answers."""

from collections.abc import Callable, Collection
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import AnyChunk, SdkVersion
from adk_stream_protocol.protocol.stream import ChunkWriter
from protocol.segment_checker import TERMINALS, ClientMessage, Terminal, wire

# Which calls a move is legal for, by what has been done to them so far.
WAITING = {"asked", "asked, then the client's", "with the client", "freed"}
UNDONE = {"streaming", "deferred", "whole", "at work"}  # the server's, and stopped with the segment
OPEN = {"whole", "deferred", "at work", "progress", *WAITING}
CALL_MOVES: dict[str, tuple[set[str], str]] = {
    "delta": ({"streaming"}, "streaming"),
    "available": ({"streaming"}, "whole"),
    "available for the client": ({"streaming"}, "with the client"),
    "input error": ({"streaming"}, "done"),
    "approval": ({"whole", "with the client"}, "asked"),
    "awaits": ({"whole", "with the client"}, "with the client"),
    "progress": (OPEN, "progress"),
    "output": (OPEN, "done"),
    "error": (OPEN, "done"),
    "denied": ({"at work", *WAITING}, "denied"),
}
FOR_THE_CLIENT = {"available for the client", "approval", "awaits", "defer"}  # not for tools of the model's service
DEFERRED_MOVES: dict[str, tuple[set[str], str]] = {
    "defer": ({"streaming"}, "deferred"),
    "hand over": ({"deferred"}, "with the client"),
    "take back": ({"deferred"}, "whole"),
    "approval first": ({"deferred"}, "asked, then the client's"),
}
OTHER_MOVES = ("text", "text", "end text", "end texts", "new step", "call", "part", "reasoning file", "data")
SEVERAL_MOVES = ("question", "question", "results together", "answers", "answers")
RESULTS = {"progress", "output", "error", "denied"}
QUESTIONS = (
    ("available for the client",),
    ("defer", "approval first"),
    ("available", "approval"),
    ("defer", "hand over"),
)
ANSWERS = ("yes", "output", "no", "later")

FLAGS = (None, True, False)
flag = st.sampled_from(FLAGS)
moves = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5), flag, flag), max_size=40)


class Walker:
    """Makes the moves that are legal, and knows what it left with whom. `chunks` are those of the last segment."""

    def __init__(self, version: SdkVersion, earlier: list[str]) -> None:
        """`earlier`: calls that a segment before has left with the client, who has answered them."""
        self.version = version
        self.writer = ChunkWriter(sdk_version=version)
        self.client = ClientMessage(version)
        self.calls: dict[str, str] = {}
        self.steps: dict[str, int] = {}  # of the calls
        self.executed: set[str] = set()  # by the model's service
        self.step = 0
        self.told_together: list[list[str]] = []  # whose results
        self.segments: list[list[AnyChunk]] = []
        self.chunks = self.writer.start("m1")
        for call_id in earlier:
            self.begin(call_id, None, None)
            self.move("available for the client", -1, None, None)
        if earlier:
            self.answers(0, None, None, always="output")

    def write(self, chunks: list[AnyChunk]) -> None:
        self.chunks += chunks
        new_steps = sum(isinstance(chunk, c.StartStep) for chunk in chunks)
        if new_steps:  # which ends inputs that still stream
            self.step += new_steps
            self.calls = {call: "done" if state == "streaming" else state for call, state in self.calls.items()}

    def any_move(self, number: int, pick: int, executed: bool | None, dynamic: bool | None) -> None:
        """One of those that lead somewhere."""
        on_calls = [name for name in (CALL_MOVES | DEFERRED_MOVES) if self.able(name)]
        names = [*on_calls, *SEVERAL_MOVES, *OTHER_MOVES]
        self.move(names[number % len(names)], pick, executed, dynamic)

    def able(self, name: str) -> list[str]:
        legal, _ = (CALL_MOVES | DEFERRED_MOVES)[name]
        if name.startswith("approval") and self.version == 5:
            return []
        if self.segments and name in RESULTS:  # what waited is answered between the segments
            legal = legal - WAITING
        able = [call_id for call_id, state in self.calls.items() if state in legal]
        if name in FOR_THE_CLIENT:  # which looks for it in its last step
            return [call_id for call_id in able if call_id not in self.executed and self.steps[call_id] == self.step]
        return able

    def move(self, name: str, pick: int, executed: bool | None, dynamic: bool | None) -> None:
        w = self.writer
        if name in CALL_MOVES or name in DEFERRED_MOVES:
            self.move_call(name, pick)
        elif name == "question":
            self.begin(f"c{len(self.calls)}", None, dynamic)
            for follows in QUESTIONS[pick % 4]:
                self.move_call(follows, -1)
        elif name == "results together":
            self.results_together(pick)
        elif name == "answers":
            self.answers(pick, executed, dynamic)
        elif name == "call":
            self.begin(f"c{len(self.calls)}", executed, dynamic)
        elif name == "text":
            self.write(w.text(pick % 2, "reasoning" if executed else "text", "x", {"adk": {}} if dynamic else None))
        elif name == "end text":
            self.write(w.end_text(pick % 2, citations=[{"url": "u"}] if dynamic else None))
        elif name == "end texts":
            self.write(w.end_texts())
        elif name == "new step" and {"deferred", *WAITING}.isdisjoint(self.calls.values()):
            self.write(w.new_step())  # what is to be answered stays in the last step, where the client looks for it
        elif name == "part":
            self.write(w.part(c.SourceUrl("s", "u")))
        elif name == "reasoning file":
            self.write(w.reasoning_file("u", "image/png"))
        elif name == "data":
            self.write(w.data("note", pick))

    def begin(self, call_id: str, executed: bool | None, dynamic: bool | None) -> None:
        self.write(self.writer.tool_input_start(call_id, "add", provider_executed=executed, dynamic=dynamic))
        self.calls[call_id], self.steps[call_id] = "streaming", self.step
        if executed:
            self.executed.add(call_id)

    def move_call(self, name: str, pick: int) -> None:
        able = self.able(name)
        if not able:
            return
        call_id = able[pick % len(able)]
        self.calls[call_id] = (CALL_MOVES | DEFERRED_MOVES)[name][1]
        w = self.writer
        writes: dict[str, Callable[[], list[AnyChunk]]] = {
            "delta": lambda: w.tools.input_delta(call_id, '{"n":'[pick:] or "{"),
            "available": lambda: w.tools.input_available(call_id, {"n": pick}),
            "available for the client": lambda: w.tools.input_available(call_id, None, awaits_client=True),
            "input error": lambda: w.tools.input_error(call_id, "x"),
            "approval": lambda: w.tools.approval_request(call_id, "ok", reason="Sure?", descriptor={"hint": "Sure?"}),
            "awaits": lambda: w.tools.asked_elsewhere(call_id),
            "progress": lambda: w.tools.output(call_id, pick, preliminary=True),
            "defer": lambda: w.tools.defer(call_id, {"n": pick}),
            "hand over": lambda: w.tools.to_client(call_id),
            "take back": lambda: w.tools.to_server(call_id),
            "approval first": lambda: w.tools.approval_request(call_id, "ok"),
        }
        if name in writes:
            self.write(writes[name]())
        else:
            self.result(name, call_id, ())

    def result(self, name: str, call_id: str, closing: Collection[str]) -> None:
        w = self.writer
        self.calls[call_id] = "denied" if name == "denied" and self.version != 5 else "done"
        writes: dict[str, Callable[[], list[AnyChunk]]] = {
            "output": lambda: w.tools.output(call_id, 1, closing=closing),
            "known": lambda: w.tools.output_known(call_id, closing=closing),
            "error": lambda: w.tools.error(call_id, "x", closing=closing),
            "denied": lambda: w.tools.deny(call_id, "x", closing=closing),
        }
        before = len(self.chunks)
        self.write(writes[name]())
        self.note_results(before)

    def results_together(self, pick: int) -> None:
        """As ADK tells them: of all calls that ran side by side, in one event."""
        able = [id for id, state in self.calls.items() if state in {"whole", "at work"} and self.steps[id] == self.step]
        before = len(self.chunks)
        for place, call_id in enumerate(able):
            self.result(("output", "denied", "error")[(pick + place) % 3], call_id, able)
        self.note_results(before)

    def note_results(self, since: int) -> None:
        results = [chunk for chunk in wire(self.chunks[since:]) if chunk["type"].startswith("tool-output-")]
        self.told_together.append([chunk["toolCallId"] for chunk in results])

    def answers(self, pick: int, executed: bool | None, dynamic: bool | None, always: str = "") -> None:
        """The segment ends, the client answers some of what is its own, and the next segment begins."""
        if WAITING.isdisjoint(self.calls.values()):
            return
        can_pause = dynamic and UNDONE.isdisjoint(self.calls.values())
        self.end("pause" if can_pause else {None: "finish", True: "abort", False: "error"}[executed])
        waiting = [call_id for call_id, state in self.calls.items() if state in WAITING]
        answers = {id: always or ANSWERS[(pick + place) % 4] for place, id in enumerate(waiting)}
        opening = [opened for id, answer in answers.items() if (opened := self.client_answers(id, answer))]
        at_work = [call_id for call_id, move in opening if move == "at work"]
        self.writer.new_segment(at_work)
        self.chunks = self.writer.start("m1")
        before = self.step
        for call_id, move in opening:
            if move == "hand over":
                self.calls[call_id] = "freed"
                self.write(self.writer.tools.to_client(call_id))
            elif move == "at work":
                self.calls[call_id] = "at work"
            else:
                self.result(move, call_id, ())
        assert self.step == before, "what the client asked for comes before the next step"

    def client_answers(self, call_id: str, answer: str) -> tuple[str, str] | None:
        """What the client does, and what the server makes of it. A person who is late finds the call in its step."""
        state, is_last = self.calls[call_id], self.steps[call_id] == self.step
        if answer == "later" or (state == "asked, then the client's" and not is_last):
            return None
        if state in {"with the client", "freed"}:
            if answer != "output" and state != "freed":  # told by other means: the confirmation tool
                return call_id, "at work"
            self.client.add_output(call_id)
            return call_id, "known"
        self.client.decide(call_id, answer != "no")
        if state == "asked":
            return call_id, "at work"
        if answer == "output":
            self.client.add_output(call_id)
            return call_id, "known"
        return call_id, "hand over" if answer == "yes" else "denied"

    def end(self, how: str) -> None:
        """Let the client read the segment, and see that it knows what it has to."""
        endings: dict[str, Callable[[], list[AnyChunk]]] = {
            "finish": lambda: self.writer.finish("stop"),
            "abort": self.writer.abort,
            "error": lambda: self.writer.error("It broke."),
            "pause": self.writer.pause,
        }
        self.write(endings[how]())
        self.client.read(wire(self.chunks), paused=how == "pause")
        self.calls = {call: "done" if state in UNDONE else state for call, state in self.calls.items()}
        left = {call_id for call_id, state in self.calls.items() if state in {*WAITING, "progress"}}
        untold = {call_id for call_id, state in self.calls.items() if state == "denied"} & self.client.unfinished
        # What is with the client or still running (progress of a long job) stays open, and nothing else.
        assert self.client.unfinished == left | untold
        for call_id in untold:
            siblings = [id for id in self.calls if self.steps[id] == self.steps[call_id]]
            assert WAITING.intersection(self.calls[id] for id in siblings), "a denial is forgotten"
        assert how == "pause" or not self.client.posts_again
        waiting = [self.steps[call_id] for call_id, state in self.calls.items() if state in WAITING]
        assert not waiting or self.client.step in waiting, "the client looks for it in vain"
        self.segments.append(self.chunks)


def assert_results_keep_the_order_of_the_calls(walker: Walker) -> None:
    for told in walker.told_together:
        assert told == [call_id for call_id in walker.calls if call_id in told]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([5, 6, 7]), st.sampled_from([[], ["e1", "e2"]]), moves, st.sampled_from(TERMINALS))
def test_any_walk_ended_anywhere_is_a_balanced_message(
    version: SdkVersion, earlier: list[str], walk: list[Any], how: Terminal
) -> None:
    walker = Walker(version, earlier)
    for move in walk:
        walker.any_move(*move)
    walker.end(how)
    assert_results_keep_the_order_of_the_calls(walker)


def test_long_walks_over_many_segments_are_balanced_messages() -> None:
    """Hypothesis likes its walks short; what goes wrong only after several answers needs long ones."""
    lengths: list[int] = []
    for seed in range(1000):
        random = Random(seed)
        walker = Walker(random.choice([5, 6, 7]), random.choice([[], ["e1", "e2"]]))
        for _ in range(random.randint(20, 80)):
            walker.any_move(random.randint(0, 60), random.randint(0, 5), random.choice(FLAGS), random.choice(FLAGS))
        walker.end(random.choice(TERMINALS))
        assert_results_keep_the_order_of_the_calls(walker)
        lengths.append(len(walker.segments))
    assert sum(length >= 4 for length in lengths) > 300, "hardly a walk went on after answers"
