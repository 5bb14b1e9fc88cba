"""ChunkWriter: each rule of the stream's grammar as a table."""

import contextlib
from collections.abc import Callable
from typing import Any, Literal

import pytest

from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.writer import STOPPED, ChunkWriter
from protocol.segment_checker import TERMINALS, Terminal, Wire, check_segment, kinds, stock_client_posts_again, wire

Step = Callable[[ChunkWriter], list[c.AnyChunk]]


def play(writer: ChunkWriter, *steps: Step) -> list[Wire]:
    """What the client reads when the segment starts and goes through these steps."""
    return wire([*writer.start("m1"), *(chunk for step in steps for chunk in step(writer))])


# The steps of the tables below, by short names. A call is named by its id.

new_step: Step = ChunkWriter.new_step


def say(key: str = "root", text: str = "hi", kind: Literal["text", "reasoning"] = "text") -> Step:
    return lambda w: w.text(key, kind, text)


def open_input(call: str, **options: Any) -> Step:
    return lambda w: w.tool_input_start(call, "add", **options)


def call(name: str, *, awaits_client: bool = False, **options: Any) -> Step:
    return lambda w: [
        *w.tool_input_start(name, "add", **options),
        *w.tool_input_available(name, {}, awaits_client=awaits_client),
    ]


def output(name: str, **options: Any) -> Step:
    return lambda w: w.tool_output(name, 1, **options)


def end(how: Terminal) -> Step:
    endings: dict[Terminal, Step] = {
        "finish": lambda w: w.finish("stop"),
        "abort": lambda w: w.abort(),
        "error": lambda w: w.error("It broke."),
    }
    return endings[how]


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


ADK = {"adk": {"author": "root"}}
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


# -- tools ------------------------------------------------------------------------------------------------------------


def test_a_call_keeps_its_flags_from_start_to_output() -> None:
    flags = {"providerExecuted": True, "dynamic": True}
    written = play(
        ChunkWriter(),
        open_input("a", provider_executed=True, dynamic=True),
        lambda w: w.tool_input_delta("a", "{}"),
        lambda w: w.tool_input_available("a", None, metadata=ADK),
        output("a", preliminary=True),
        lambda w: w.tool_output("a", None),
    )
    assert written[2:] == [
        {"type": "tool-input-start", "toolCallId": "a", "toolName": "add", **flags},
        {"type": "tool-input-delta", "toolCallId": "a", "inputTextDelta": "{}"},
        {
            "type": "tool-input-available",
            "toolCallId": "a",
            "toolName": "add",
            "input": None,
            "providerMetadata": ADK,
            **flags,
        },
        {"type": "tool-output-available", "toolCallId": "a", "output": 1, "preliminary": True, **flags},
        {"type": "tool-output-available", "toolCallId": "a", "output": None, **flags},
    ]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (5, {"type": "tool-output-error", "toolCallId": "a", "errorText": "No."}),
        (6, {"type": "tool-output-denied", "toolCallId": "a"}),
        (7, {"type": "tool-output-denied", "toolCallId": "a"}),
    ],
)
def test_a_denial_is_an_error_where_the_client_has_none(version: SdkVersion, expected: Wire) -> None:
    written = play(ChunkWriter(sdk_version=version), call("a"), lambda w: w.tool_denied("a", "No."))
    assert written[-1] == expected


@pytest.mark.parametrize(("how", "text"), [("finish", STOPPED), ("abort", STOPPED), ("error", "It broke.")])
def test_calls_without_a_result_are_told_why_when_the_segment_ends(how: Terminal, text: str) -> None:
    written = play(ChunkWriter(), call("a"), open_input("b", dynamic=True), end(how))
    assert [chunk for chunk in written if chunk["type"].endswith("-error")] == [
        {"type": "tool-output-error", "toolCallId": "a", "errorText": text},
        {
            "type": "tool-input-error",
            "toolCallId": "b",
            "toolName": "add",
            "input": None,
            "errorText": text,
            "dynamic": True,
        },
    ]


@pytest.mark.parametrize("how", TERMINALS)
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([call("a", awaits_client=True)], id="a-tool-of-the-browser"),
        pytest.param([call("a"), lambda w: w.tool_approval_request("a", "ok")], id="an-approval"),
        pytest.param([call("a"), lambda w: w.tool_awaits_client("a")], id="a-confirmation-by-other-means"),
    ],
)
def test_a_call_that_awaits_the_client_is_left_to_it(asked: list[Step], how: Terminal) -> None:
    writer = ChunkWriter()
    written = play(writer, call("server"), output("server"), *asked, end(how))
    assert writer.awaits_client
    assert check_segment(written, 6) == {"a"}
    assert kinds(written).count("start-step") == 1, "a further step would hide the call from the client's helper"


@pytest.mark.parametrize(
    ("steps", "awaits_client", "awaits_results"),
    [
        pytest.param([call("a")], False, False, id="the-server's-own-call"),
        pytest.param([call("a"), output("a", preliminary=True)], False, True, id="a-job-that-goes-on"),
        pytest.param([call("a"), output("a", preliminary=True), output("a")], False, False, id="a-job-that-is-done"),
        pytest.param([call("a", awaits_client=True)], True, True, id="a-call-of-the-client's"),
        pytest.param([call("a", awaits_client=True), output("a")], False, False, id="a-call-answered-after-all"),
    ],
)
def test_what_goes_on_after_the_segment_can_be_asked_for(
    steps: list[Step], awaits_client: bool, awaits_results: bool
) -> None:
    writer = ChunkWriter()
    play(writer, *steps, end("finish"))
    assert (writer.awaits_client, writer.awaits_results) == (awaits_client, awaits_results)


def test_an_approval_names_its_call() -> None:
    written = play(ChunkWriter(), call("a"), lambda w: w.tool_approval_request("a", "ok"))
    assert written[-1] == {"type": "tool-approval-request", "approvalId": "ok", "toolCallId": "a"}


@pytest.mark.parametrize(("kind", "delta"), [("text", c.TextDelta), ("reasoning", c.ReasoningDelta)])
def test_a_growing_text_tells_how_its_deltas_are_made(kind: Any, delta: type[Any]) -> None:
    writer = ChunkWriter()
    writer.start("m1")
    (*_, first) = writer.text("root", kind, "Hello ")
    make, part_id = writer.growing_text("root")
    assert make is delta
    assert make(part_id, "world") == writer.text("root", kind, "world")[0]
    assert first == delta(part_id, "Hello ")


def test_a_tool_is_at_work_from_its_whole_arguments_to_its_result() -> None:
    writer = ChunkWriter()
    writer.start("m1")
    writer.tool_input_start("c1", "pay")
    assert not writer.runs_a_tool
    writer.tool_input_available("c1", {})
    assert writer.runs_a_tool
    writer.tool_output("c1", {})
    assert not writer.runs_a_tool


def test_the_books_on_a_call_can_be_read() -> None:
    writer = ChunkWriter(answered_calls=["old"])
    books: list[tuple[bool, bool, bool]] = []

    def note(w: ChunkWriter) -> list[c.AnyChunk]:
        books.append((w.knows_call("a"), w.can_take_result("a"), w.is_idle))
        return []

    play(writer, note, open_input("a"), note, lambda w: w.tool_input_available("a", {}), note, output("a"), note)
    assert books == [(False, False, True), (True, False, False), (True, True, False), (True, False, True)]
    assert writer.can_take_result("old")
    writer.text("root", "text", "hi")
    assert not writer.is_idle


# -- steps: the client must not take the end of a turn for its own turn ----------------------------------------------


def test_results_of_earlier_calls_come_before_the_first_step_of_a_continuation() -> None:
    writer = ChunkWriter(answered_calls=["a", "b", "c"])
    written = play(
        writer, output("a"), lambda w: w.tool_denied("b", "No."), lambda w: w.tool_error("c", "x"), say(), end("finish")
    )
    assert kinds(written) == [
        "start",
        *("tool-output-available", "tool-output-denied", "tool-output-error"),
        *("start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"),
    ]


ONE_MORE_STEP = {
    "finish": ["start-step", "finish-step", {"type": "finish", "finishReason": "stop", "messageMetadata": {}}],
    "abort": ["start-step", {"type": "message-metadata", "messageMetadata": {}}, "finish-step", {"type": "abort"}],
}


@pytest.mark.parametrize("how", ["finish", "abort"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([call("a"), output("a")], id="output"),
        pytest.param([call("a"), output("a", preliminary=True)], id="progress-that-old-clients-take-for-a-result"),
        pytest.param([call("a"), lambda w: w.tool_error("a", "x")], id="error"),
        pytest.param([call("a"), lambda w: w.tool_denied("a", "x")], id="denial"),
        pytest.param([open_input("a"), lambda w: w.tool_input_error("a", "x")], id="arguments-never-whole"),
        pytest.param([call("a")], id="no-result-until-the-end"),
        pytest.param([call("a"), output("a"), say()], id="text-in-the-same-step-does-not-help"),
    ],
)
def test_a_turn_that_ends_on_a_tool_gets_one_more_step_that_is_written(steps: list[Step], how: Terminal) -> None:
    written = play(ChunkWriter(), *steps, end(how))
    tail = [chunk if len(chunk) > 1 or chunk["type"] == "abort" else chunk["type"] for chunk in written]
    assert tail[-5 if how == "abort" else -4 :] == ["finish-step", *ONE_MORE_STEP[how]]
    assert not stock_client_posts_again(written)


@pytest.mark.parametrize("how", ["finish", "abort"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([call("a"), output("a"), new_step, say()], id="text-in-a-step-after"),
        pytest.param([call("a", provider_executed=True), output("a")], id="a-tool-of-the-model-service"),
    ],
)
def test_no_further_step_is_made_where_none_is_needed(steps: list[Step], how: Terminal) -> None:
    before = kinds(play(ChunkWriter(), *steps)).count("start-step")
    assert kinds(play(ChunkWriter(), *steps, end(how))).count("start-step") == before


@pytest.mark.parametrize("how", ["finish", "abort"])
def test_a_step_that_stays_empty_after_a_tool_is_written_all_the_same(how: Terminal) -> None:
    written = play(ChunkWriter(), call("a"), output("a"), new_step, end(how))
    assert not stock_client_posts_again(written)


@pytest.mark.parametrize("how", ["finish", "abort"])
def test_a_continuation_without_a_word_ends_in_a_written_step(how: Terminal) -> None:
    """The client's last step holds the call that it just answered: without a new one it answers for ever."""
    written = play(ChunkWriter(answered_calls=["a"]), end(how))
    assert not stock_client_posts_again(written, continues=True)


@pytest.mark.parametrize("how", TERMINALS)
def test_arguments_that_are_not_whole_never_span_two_steps(how: Terminal) -> None:
    """Clients look for them in the current step only, make a second part there, and leave the first streaming."""
    writer = ChunkWriter()
    chunks = [*writer.start(), *writer.tool_input_start("a", "add")]
    with contextlib.suppress(LocalProtocolError):  # refusing is as good as ending them
        chunks += writer.new_step()
    check_segment(wire([*chunks, *end(how)(writer)]), 6)


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

EVERY_WRITE: dict[str, Step] = {
    "finish": end("finish"),
    "abort": end("abort"),
    "error": end("error"),
    "new_step": new_step,
    "text": say(),
    "tool_input_start": open_input("new"),
    "tool_input_delta": lambda w: w.tool_input_delta("old", "{"),
    "tool_input_available": lambda w: w.tool_input_available("old", {}),
    "tool_input_error": lambda w: w.tool_input_error("old", "x"),
    "tool_approval_request": lambda w: w.tool_approval_request("old", "ok"),
    "tool_awaits_client": lambda w: w.tool_awaits_client("old"),
    "tool_output": output("old"),
    "tool_error": lambda w: w.tool_error("old", "x"),
    "tool_denied": lambda w: w.tool_denied("old", "x"),
    "part": lambda w: w.part(c.File("u", "image/png")),
    "reasoning_file": lambda w: w.reasoning_file("u", "image/png"),
    "data": lambda w: w.data("note", 1),
}


@pytest.mark.parametrize("write", EVERY_WRITE.values(), ids=EVERY_WRITE)
def test_nothing_is_written_before_the_start(write: Step) -> None:
    with pytest.raises(LocalProtocolError):
        write(ChunkWriter(answered_calls=["old"]))


@pytest.mark.parametrize("how", TERMINALS)
@pytest.mark.parametrize("write", [*EVERY_WRITE.values(), ChunkWriter.start], ids=[*EVERY_WRITE, "start"])
def test_nothing_is_written_after_the_end(write: Step, how: Terminal) -> None:
    writer = ChunkWriter(answered_calls=["old"])
    play(writer, say(), call("a"), end(how))
    with pytest.raises(LocalProtocolError):
        write(writer)


ON_A_CALL = {name: write for name, write in EVERY_WRITE.items() if name.startswith("tool_")}
del ON_A_CALL["tool_input_start"]  # makes its call


@pytest.mark.parametrize(
    ("before", "forbidden"),
    [
        pytest.param([], ChunkWriter.start, id="start-twice"),
        pytest.param([open_input("old")], open_input("old"), id="a-call-id-twice"),
        pytest.param([call("old"), output("old"), new_step], open_input("old"), id="a-call-id-again-in-a-later-step"),
        *(pytest.param([], ON_A_CALL[name], id=f"{name}-of-an-unknown-call") for name in ON_A_CALL),
        *(
            pytest.param([call("old"), output("old")], ON_A_CALL[name], id=f"{name}-of-a-call-that-is-done")
            for name in ON_A_CALL
        ),
        *(
            pytest.param([open_input("old")], ON_A_CALL[name], id=f"{name}-before-the-arguments-are-whole")
            for name in ("tool_approval_request", "tool_awaits_client", "tool_output", "tool_error", "tool_denied")
        ),
        *(
            pytest.param([call("old")], ON_A_CALL[name], id=f"{name}-after-the-arguments-were-whole")
            for name in ("tool_input_delta", "tool_input_available", "tool_input_error")
        ),
    ],
)
def test_a_call_out_of_the_grammar_is_our_bug_and_leaves_the_segment_whole(before: list[Step], forbidden: Step) -> None:
    writer = ChunkWriter()
    chunks = writer.start()
    for step in before:
        chunks += step(writer)
    with pytest.raises(LocalProtocolError):
        forbidden(writer)
    assert check_segment(wire([*chunks, *writer.finish("stop")]), 6) == set()


def test_version_5_has_no_chunk_for_an_approval() -> None:
    with pytest.raises(LocalProtocolError):
        play(ChunkWriter(sdk_version=5), call("a"), lambda w: w.tool_approval_request("a", "ok"))
