"""ToolParts: tools from their arguments to their results, and the steps that keep a client from posting for ever."""

import contextlib

import pytest

from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.stream import ChunkWriter
from adk_stream_protocol.protocol.tool_parts import STOPPED
from protocol.segment_checker import TERMINALS, Terminal, Wire, check_segment, kinds, stock_client_posts_again, wire
from protocol.stream_steps import (
    ADK,
    Step,
    ask,
    call,
    deferred,
    deny,
    end,
    error,
    new_step,
    open_input,
    output,
    play,
    say,
    to_client,
)

# -- tools ------------------------------------------------------------------------------------------------------------


def test_a_call_keeps_its_flags_from_start_to_output() -> None:
    flags = {"providerExecuted": True, "dynamic": True}
    written = play(
        ChunkWriter(),
        open_input("a", provider_executed=True, dynamic=True),
        lambda w: w.tools.input_delta("a", "{}"),
        lambda w: w.tools.input_available("a", None, metadata=ADK),
        output("a", preliminary=True),
        lambda w: w.tools.output("a", None),
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
    written = play(ChunkWriter(sdk_version=version), call("a"), deny("a"))
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
        pytest.param([call("a"), ask("a")], id="an-approval"),
        pytest.param([deferred("a"), to_client("a")], id="a-tool-of-the-browser-that-was-deferred"),
        pytest.param([deferred("a"), ask("a")], id="an-approval-before-the-browser"),
        pytest.param([call("a"), lambda w: w.tools.asked_elsewhere("a")], id="a-confirmation-by-other-means"),
    ],
)
def test_a_call_that_awaits_the_client_is_left_to_it(asked: list[Step], how: Terminal) -> None:
    writer = ChunkWriter()
    written = play(writer, call("server"), output("server"), *asked, end(how))
    assert writer.tools.awaits_client
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
        pytest.param([deferred("a")], False, False, id="a-deferred-call-that-nobody-took"),
        pytest.param([call("a"), ask("a")], True, True, id="a-call-that-a-person-is-asked-about"),
        pytest.param([call("a"), ask("a"), deny("a")], False, False, id="a-call-that-was-denied"),
    ],
)
def test_what_goes_on_after_the_segment_can_be_asked_for(
    steps: list[Step], awaits_client: bool, awaits_results: bool
) -> None:
    writer = ChunkWriter()
    play(writer, *steps, end("finish"))
    assert (writer.tools.awaits_client, writer.tools.awaits_results) == (awaits_client, awaits_results)


def test_the_books_on_a_call_can_be_read() -> None:
    writer = ChunkWriter()
    books: list[tuple[bool, bool, bool]] = []

    def note(w: ChunkWriter) -> list[c.AnyChunk]:
        books.append((w.tools.knows("a"), w.tools.can_take_result("a"), w.is_idle))
        return []

    play(writer, note, open_input("a"), note, lambda w: w.tools.input_available("a", {}), note, output("a"), note)
    assert books == [(False, False, True), (True, False, False), (True, True, False), (True, False, True)]
    writer.text("root", "text", "hi")
    assert not writer.is_idle


@pytest.mark.parametrize(
    "steps",
    [[deferred("a")], [deferred("a"), to_client("a")], [deferred("a"), ask("a")], [call("a"), ask("a")]],
    ids=["deferred", "with the client", "asked about, then the client's", "asked about"],
)
def test_what_waits_can_take_a_result_and_a_new_step_would_tear_it_off(steps: list[Step]) -> None:
    writer = ChunkWriter()
    play(writer, *steps)
    assert writer.tools.knows("a")
    assert writer.tools.can_take_result("a")
    assert not writer.is_idle
    assert writer.tools.is_deferred("a") == (len(steps) == 1)


# -- steps: the client must not take the end of a turn for its own turn ----------------------------------------------


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
        pytest.param([call("a"), error("a")], id="error"),
        pytest.param([call("a"), deny("a")], id="denial"),
        pytest.param([open_input("a"), lambda w: w.tools.input_error("a", "x")], id="arguments-never-whole"),
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


@pytest.mark.parametrize("how", TERMINALS)
def test_arguments_that_are_not_whole_never_span_two_steps(how: Terminal) -> None:
    """Clients look for them in the current step only, make a second part there, and leave the first streaming."""
    writer = ChunkWriter()
    chunks = [*writer.start(), *writer.tool_input_start("a", "add")]
    with contextlib.suppress(LocalProtocolError):  # refusing is as good as ending them
        chunks += writer.new_step()
    check_segment(wire([*chunks, *end(how)(writer)]), 6)


# -- what others decide -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [5, 6, 7])
def test_what_the_policy_approves_is_told_to_clients_that_know_such_approvals(version: SdkVersion) -> None:
    writer = ChunkWriter(sdk_version=version)
    written = play(
        writer,
        call("a"),
        lambda w: w.tools.approved_automatically("a", "ask-1"),
        output("a"),
    )
    told = [chunk for chunk in wire(written) if chunk["type"].startswith("tool-approval-")]
    request = {"type": "tool-approval-request", "approvalId": "ask-1", "toolCallId": "a", "isAutomatic": True}
    response = {"type": "tool-approval-response", "approvalId": "ask-1", "approved": True}
    assert told == ([request, response] if version == 7 else [])


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_call_that_others_decide_about_shows_its_arguments_and_no_question(version: SdkVersion) -> None:
    writer = ChunkWriter(sdk_version=version)
    play(writer, deferred("a"))
    assert wire(writer.tools.others_are_asked("a"))[-1]["type"] == "tool-input-delta"
    assert writer.tools.awaits_client
    assert wire(writer.tools.to_client("a"))[-1]["type"] == "tool-input-available"
