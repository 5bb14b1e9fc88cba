"""ChunkWriter: the grammar of a segment, its texts, and what it forbids. Tools have files of their own."""

from typing import Any, Literal

import pytest

from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.stream import ChunkWriter
from protocol.segment_checker import TERMINALS, Terminal, Wire, check_segment, kinds, wire
from protocol.stream_steps import (
    ADK,
    Step,
    ask,
    call,
    deferred,
    deny,
    end,
    error,
    known,
    new_step,
    open_input,
    output,
    play,
    say,
    to_client,
)

# -- the segment ------------------------------------------------------------------------------------------------------


def test_start_names_the_message_only_when_it_is_asked_to() -> None:
    assert wire(ChunkWriter().start()) == [{"type": "start"}]
    assert wire(ChunkWriter().start("m1", {"model": "x"})) == [
        {"type": "start", "messageId": "m1", "messageMetadata": {"model": "x"}}
    ]


@pytest.mark.parametrize(
    ("how", "last"),
    [
        ("finish", {"type": "finish", "finishReason": "stop"}),
        ("abort", {"type": "abort"}),
        ("error", {"type": "error", "errorText": "It broke."}),
    ],
)
def test_an_answer_of_one_text_is_one_step(how: Terminal, last: Wire) -> None:
    assert play(ChunkWriter(), say(text="he"), say(text="llo"), end(how)) == [
        {"type": "start", "messageId": "m1"},
        {"type": "start-step"},
        {"type": "text-start", "id": "t1"},
        {"type": "text-delta", "id": "t1", "delta": "he"},
        {"type": "text-delta", "id": "t1", "delta": "llo"},
        {"type": "text-end", "id": "t1"},
        {"type": "finish-step"},
        last,
    ]


@pytest.mark.parametrize("how", TERMINALS)
def test_a_segment_that_says_nothing_has_no_step(how: Terminal) -> None:
    assert kinds(play(ChunkWriter(), end(how))) == ["start", how]


def test_finish_carries_the_metadata_it_is_given() -> None:
    written = play(ChunkWriter(), call("a"), output("a"), lambda w: w.finish("stop", {"tokens": 3}))
    assert written[-1] == {"type": "finish", "finishReason": "stop", "messageMetadata": {"tokens": 3}}


# -- texts ------------------------------------------------------------------------------------------------------------

A_TEXT = ["text-start", "text-delta"]
A_THOUGHT = ["reasoning-start", "reasoning-delta"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [say(kind="reasoning"), say()],
            ["start-step", *A_THOUGHT, "reasoning-end", *A_TEXT],
            id="thought-then-text",
        ),
        pytest.param(
            [say(), say(kind="reasoning")],
            ["start-step", *A_TEXT, "text-end", *A_THOUGHT],
            id="text-then-thought",
        ),
        pytest.param(
            [say(), new_step, say()],
            [
                "start-step",
                "text-start",
                "text-delta",
                "text-end",
                "finish-step",
                "start-step",
                "text-start",
                "text-delta",
            ],
            id="a-new-step-ends-the-text",
        ),
        pytest.param(
            [say("a"), say("b"), say("a")],
            ["start-step", *A_TEXT, *A_TEXT, "text-delta"],
            id="two-speakers-side-by-side",
        ),
        pytest.param(
            [say("a"), say("b", kind="reasoning"), lambda w: w.end_texts(), lambda w: w.end_texts()],
            [
                "start-step",
                "text-start",
                "text-delta",
                "reasoning-start",
                "reasoning-delta",
                "text-end",
                "reasoning-end",
            ],
            id="all-texts-end-once",
        ),
        pytest.param([lambda w: w.end_text("nobody")], [], id="ending-what-is-not-open-writes-nothing"),
    ],
)
def test_texts_open_and_end_in_their_step(steps: list[Step], expected: list[str]) -> None:
    assert kinds(play(ChunkWriter(), *steps)) == ["start", *expected]


def test_each_text_has_an_id_of_its_own() -> None:
    written = play(ChunkWriter(), say("a"), say("b"), say("a", kind="reasoning"), new_step, say("a"))
    starts = [chunk["id"] for chunk in written if chunk["type"].endswith("-start")]
    assert starts == ["t1", "t2", "r3", "t4"]


def test_the_kind_of_an_open_text_can_be_asked_for() -> None:
    writer = ChunkWriter()
    play(writer, say("a"), say("b", kind="reasoning"))
    assert [writer.open_text_kind(key) for key in ("a", "b", "c")] == ["text", "reasoning", None]


CITED = [{"url": "u"}]


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_metadata_goes_with_the_opening_and_the_end_of_a_text(kind: Literal["text", "reasoning"]) -> None:
    writer = ChunkWriter()
    written = play(writer, lambda w: w.text("a", kind, "x", ADK), lambda w: w.end_text("a", metadata=ADK))
    assert [chunk.get("providerMetadata") for chunk in written[2:]] == [ADK, None, ADK]


@pytest.mark.parametrize(
    ("version", "metadata", "expected"),
    [
        (7, ADK, {"providerMetadata": ADK, "citations": CITED}),
        (6, None, {"providerMetadata": {"adk": {"citations": CITED}}}),
        (5, ADK, {"providerMetadata": {"adk": {"author": "root", "citations": CITED}}}),
        (6, {"google": {"k": 1}}, {"providerMetadata": {"google": {"k": 1}, "adk": {"citations": CITED}}}),
    ],
)
def test_citations_travel_as_metadata_where_the_client_has_no_field_for_them(
    version: SdkVersion, metadata: Any, expected: Wire
) -> None:
    writer = ChunkWriter(sdk_version=version)
    written = play(writer, say(), lambda w: w.end_text("root", metadata=metadata, citations=CITED))
    assert written[-1] == {"type": "text-end", "id": "t1", **expected}


@pytest.mark.parametrize(("kind", "delta"), [("text", c.TextDelta), ("reasoning", c.ReasoningDelta)])
def test_a_growing_text_tells_how_its_deltas_are_made(kind: Any, delta: type[Any]) -> None:
    writer = ChunkWriter()
    writer.start("m1")
    (*_, first) = writer.text("root", kind, "Hello ")
    make, part_id = writer.growing_text("root")
    assert make is delta
    assert make(part_id, "world") == writer.text("root", kind, "world")[0]
    assert first == delta(part_id, "Hello ")


@pytest.mark.parametrize("version", [5, 6, 7])
def test_no_citations_are_not_told(version: SdkVersion) -> None:
    writer = ChunkWriter(sdk_version=version)
    written = play(writer, say(), lambda w: w.end_text("root", citations=[]))
    assert written[-1] == {"type": "text-end", "id": "t1"}


# -- everything else --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "write", "expected"),
    [
        (6, lambda w: w.part(c.File("u", "image/png")), {"type": "file", "url": "u", "mediaType": "image/png"}),
        (6, lambda w: w.reasoning_file("u", "image/png"), {"type": "file", "url": "u", "mediaType": "image/png"}),
        (7, lambda w: w.reasoning_file("u", "x/y"), {"type": "reasoning-file", "url": "u", "mediaType": "x/y"}),
    ],
)
def test_a_part_that_is_whole_in_one_chunk_stands_in_a_step(version: SdkVersion, write: Step, expected: Wire) -> None:
    written = play(ChunkWriter(sdk_version=version), write, write)
    assert written[1:] == [{"type": "start-step"}, expected, expected]


def test_data_belongs_to_the_message_and_opens_no_step() -> None:
    written = play(ChunkWriter(), lambda w: w.data("note", None), lambda w: w.data("note", [1], id="x"))
    assert written[1:] == [{"type": "data-adk-note", "data": None}, {"type": "data-adk-note", "data": [1], "id": "x"}]


# -- what the grammar forbids -----------------------------------------------------------------------------------------

ON_A_CALL: dict[str, Step] = {
    "tools.input_delta": lambda w: w.tools.input_delta("old", "{"),
    "tools.input_available": lambda w: w.tools.input_available("old", {}),
    "tools.input_error": lambda w: w.tools.input_error("old", "x"),
    "tools.defer": lambda w: w.tools.defer("old", {}),
    "tools.to_client": to_client("old"),
    "tools.to_server": lambda w: w.tools.to_server("old"),
    "tools.approval_request": ask("old"),
    "tools.asked_elsewhere": lambda w: w.tools.asked_elsewhere("old"),
    "tools.output": output("old"),
    "tools.output_known": known("old"),
    "tools.error": error("old"),
    "tools.deny": deny("old"),
}
EVERY_WRITE: dict[str, Step] = {
    "finish": end("finish"),
    "abort": end("abort"),
    "error": end("error"),
    "new_step": new_step,
    "text": say(),
    "tool_input_start": open_input("new"),
    **ON_A_CALL,
    "part": lambda w: w.part(c.File("u", "image/png")),
    "reasoning_file": lambda w: w.reasoning_file("u", "image/png"),
    "data": lambda w: w.data("note", 1),
}


@pytest.mark.parametrize("write", EVERY_WRITE.values(), ids=EVERY_WRITE)
def test_nothing_is_written_before_the_start(write: Step) -> None:
    with pytest.raises(LocalProtocolError):
        write(ChunkWriter())


@pytest.mark.parametrize("how", TERMINALS)
@pytest.mark.parametrize("write", [*EVERY_WRITE.values(), ChunkWriter.start], ids=[*EVERY_WRITE, "start"])
def test_nothing_is_written_after_the_end(write: Step, how: Terminal) -> None:
    writer = ChunkWriter()
    play(writer, say(), call("a"), deferred("old"), ask("old"), end(how))
    with pytest.raises(LocalProtocolError):
        write(writer)


@pytest.mark.parametrize("how", TERMINALS)
@pytest.mark.parametrize("write", EVERY_WRITE.values(), ids=EVERY_WRITE)
def test_nothing_is_written_before_the_start_of_the_next_segment(write: Step, how: Terminal) -> None:
    writer = ChunkWriter()
    play(writer, deferred("old"), ask("old"), end(how))
    writer.new_segment()
    with pytest.raises(LocalProtocolError):
        write(writer)


def new_segment(writer: ChunkWriter) -> list[c.AnyChunk]:
    writer.new_segment()
    return []


# How the call "old" may stand, and what a segment that ends there leaves to others.
STANDING: dict[str, tuple[list[Step], set[str]]] = {
    "unknown": ([], set()),
    "streaming": ([open_input("old")], set()),
    "deferred": ([deferred("old")], set()),
    "at work": ([call("old")], set()),
    "with the client": ([call("old", awaits_client=True)], {"old"}),
    "asked about": ([call("old"), ask("old")], {"old"}),
    "asked about, then the client's": ([deferred("old"), ask("old")], {"old"}),
    "under way": ([call("old"), output("old", preliminary=True)], {"old"}),
    "denied beside another": ([call("other", awaits_client=True), call("old"), deny("old")], {"old", "other"}),
    "denied": ([call("old"), deny("old")], set()),
    "done": ([call("old"), output("old")], set()),
}
OPEN = {"deferred", "at work", "with the client", "asked about", "asked about, then the client's", "under way"}
ALLOWED: dict[str, set[str]] = {
    "tools.input_delta": {"streaming"},
    "tools.input_available": {"streaming"},
    "tools.input_error": {"streaming"},
    "tools.defer": {"streaming"},
    "tools.to_client": {"deferred", "asked about, then the client's"},
    "tools.to_server": {"deferred"},
    "tools.approval_request": {"deferred", "at work", "with the client", "under way"},
    "tools.asked_elsewhere": {"at work", "with the client"},
    "tools.output": OPEN,
    "tools.output_known": OPEN,
    "tools.error": OPEN,
    "tools.deny": OPEN,
}
EVERY_PAIR = [(standing, name) for standing in STANDING for name in ON_A_CALL]


@pytest.mark.parametrize(
    ("standing", "name"), [(standing, name) for standing, name in EVERY_PAIR if standing in ALLOWED[name]]
)
def test_a_call_takes_what_fits_where_it_stands(standing: str, name: str) -> None:
    steps, _ = STANDING[standing]
    play(ChunkWriter(), *steps, ON_A_CALL[name])


@pytest.mark.parametrize(
    ("before", "left", "forbidden"),
    [
        pytest.param([], set(), ChunkWriter.start, id="start-twice"),
        pytest.param([say()], set(), new_segment, id="a-new-segment-in-the-middle-of-a-text"),
        pytest.param([new_step], set(), new_segment, id="a-new-segment-in-the-middle-of-a-step"),
        *(
            pytest.param(*STANDING[standing], open_input("old"), id=f"a-call-id-twice-{standing}")
            for standing in STANDING
            if standing != "unknown"
        ),
        pytest.param([call("old"), output("old"), new_step], set(), open_input("old"), id="a-call-id-in-a-later-step"),
        *(
            pytest.param(*STANDING[standing], ON_A_CALL[name], id=f"{name}-{standing}")
            for standing, name in EVERY_PAIR
            if standing not in ALLOWED[name]
        ),
    ],
)
def test_a_call_out_of_the_grammar_is_our_bug_and_leaves_the_segment_whole(
    before: list[Step], left: set[str], forbidden: Step
) -> None:
    writer = ChunkWriter()
    chunks = writer.start()
    for step in before:
        chunks += step(writer)
    with pytest.raises(LocalProtocolError):
        forbidden(writer)
    assert check_segment(wire([*chunks, *writer.finish("stop")]), 6) == left


def test_version_5_has_no_chunk_for_an_approval() -> None:
    with pytest.raises(LocalProtocolError):
        play(ChunkWriter(sdk_version=5), call("a"), ask("a"))
