"""The message that a client makes of a stream, chunk by chunk. `conformance/test_fold_equality.py` asks the clients."""

from typing import Any

import pytest

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import AnyChunk
from adk_stream_protocol.protocol.fold import MessageFold, Part, UIMessage

PAID = {"paid": True}
ABOUT: dict[str, dict[str, Any]] = {"adk": {"author": "clerk"}}


def folded(*chunks: AnyChunk) -> UIMessage:
    fold = MessageFold()
    for chunk in chunks:
        fold.feed(chunk)
    return fold.message()


def call(*later: AnyChunk) -> list[AnyChunk]:
    """A call with its arguments, and what came of it."""
    return [c.ToolInputStart("c1", "pay"), c.ToolInputAvailable("c1", "pay", {"to": "Bo"}), *later]


def shown(*later: AnyChunk) -> list[AnyChunk]:
    """A call whose arguments are only there to be looked at, and what came of it."""
    deltas = [c.ToolInputDelta("c1", text) for text in ('{"to":', '"Bo"}')]
    return [c.ToolInputStart("c1", "pay"), *deltas, *later]


def call_part(state: str, **more: Any) -> Part:
    return {"type": "tool-pay", "toolCallId": "c1", "state": state, "input": {"to": "Bo"}, **more}


@pytest.mark.parametrize(
    ("chunks", "parts"),
    [
        pytest.param([c.TextStart("t")], [{"type": "text", "text": "", "state": "streaming"}], id="text opened"),
        pytest.param(
            [c.TextStart("t"), c.TextDelta("t", "It "), c.TextDelta("t", "is.")],
            [{"type": "text", "text": "It is.", "state": "streaming"}],
            id="text going on",
        ),
        pytest.param(
            [c.TextStart("t", ABOUT), c.TextDelta("t", "It."), c.TextEnd("t")],
            [{"type": "text", "text": "It.", "state": "done", "providerMetadata": ABOUT}],
            id="text with an author",
        ),
        pytest.param(
            [c.TextStart("t", ABOUT), c.TextEnd("t", {"adk": {"replaced": True}}, [{"url": "u"}])],
            [
                {
                    "type": "text",
                    "text": "",
                    "state": "done",
                    "providerMetadata": {"adk": {"replaced": True}},
                    "citations": [{"url": "u"}],
                }
            ],
            id="the end of a text has the last word about it",
        ),
        pytest.param(
            [c.ReasoningStart("r", ABOUT), c.ReasoningDelta("r", "Hm."), c.ReasoningEnd("r")],
            [{"type": "reasoning", "text": "Hm.", "state": "done", "providerMetadata": ABOUT}],
            id="reasoning",
        ),
        pytest.param(
            [c.TextStart("a"), c.TextStart("b"), c.TextDelta("b", "2"), c.TextDelta("a", "1"), c.TextEnd("b")],
            [
                {"type": "text", "text": "1", "state": "streaming"},
                {"type": "text", "text": "2", "state": "done"},
            ],
            id="two speakers at a time",
        ),
        pytest.param(
            [c.TextStart("t"), c.TextDelta("t", "1"), c.TextEnd("t"), c.TextStart("t"), c.TextDelta("t", "2")],
            [
                {"type": "text", "text": "1", "state": "done"},
                {"type": "text", "text": "2", "state": "streaming"},
            ],
            id="an id used again",
        ),
        pytest.param(
            [c.SourceUrl("s", "https://example.org", "E"), c.SourceUrl("s2", "https://example.org")],
            [
                {"type": "source-url", "sourceId": "s", "url": "https://example.org", "title": "E"},
                {"type": "source-url", "sourceId": "s2", "url": "https://example.org"},
            ],
            id="pages",
        ),
        pytest.param(
            [c.SourceDocument("s", "text/plain", "T", "t.txt")],
            [
                {
                    "type": "source-document",
                    "sourceId": "s",
                    "mediaType": "text/plain",
                    "title": "T",
                    "filename": "t.txt",
                }
            ],
            id="document",
        ),
        pytest.param(
            [c.File("/f", "image/png"), c.ReasoningFile("/g", "image/png")],
            [
                {"type": "file", "url": "/f", "mediaType": "image/png"},
                {"type": "reasoning-file", "url": "/g", "mediaType": "image/png"},
            ],
            id="files",
        ),
        pytest.param(
            [c.Data("data-a", 1), c.Data("data-a", 2)],
            [{"type": "data-a", "data": 1}, {"type": "data-a", "data": 2}],
            id="data without an id is added",
        ),
        pytest.param(
            [c.Data("data-a", 1, "x"), c.Data("data-b", 2, "x"), c.Data("data-a", 3, "y"), c.Data("data-a", 4, "x")],
            [
                {"type": "data-a", "id": "x", "data": 4},
                {"type": "data-b", "id": "x", "data": 2},
                {"type": "data-a", "id": "y", "data": 3},
            ],
            id="data with an id replaces its like",
        ),
        pytest.param(
            [c.StartStep(), c.File("/f", "a/b"), c.FinishStep(), c.StartStep(), c.File("/g", "a/b"), c.FinishStep()],
            [
                {"type": "step-start"},
                {"type": "file", "url": "/f", "mediaType": "a/b"},
                {"type": "step-start"},
                {"type": "file", "url": "/g", "mediaType": "a/b"},
            ],
            id="steps",
        ),
        pytest.param([c.Error("No."), c.Abort(), c.FinishStep()], [], id="an end is no part"),
    ],
)
def test_each_chunk_becomes_the_part_that_the_client_shows(chunks: list[AnyChunk], parts: list[Part]) -> None:
    assert folded(*chunks) == {"id": "", "role": "assistant", "parts": parts}


@pytest.mark.parametrize(
    ("chunks", "part"),
    [
        pytest.param(
            [c.ToolInputStart("c1", "pay"), c.ToolInputDelta("c1", '{"to":')],
            {"type": "tool-pay", "toolCallId": "c1", "state": "input-streaming"},
            id="arguments on their way",
        ),
        pytest.param(
            [c.ToolInputStart("c1", "pay", True, True)],
            {
                "type": "dynamic-tool",
                "toolName": "pay",
                "toolCallId": "c1",
                "state": "input-streaming",
                "providerExecuted": True,
            },
            id="a tool that the client does not know",
        ),
        pytest.param(call(), call_part("input-available"), id="called"),
        pytest.param(
            [c.ToolInputStart("c1", "pay"), c.ToolInputAvailable("c1", "pay", {"to": "Bo"}, None, ABOUT)],
            call_part("input-available", callProviderMetadata=ABOUT),
            id="called by another agent",
        ),
        pytest.param(
            [c.ToolInputStart("c1", "pay"), c.ToolInputError("c1", "pay", None, "Stopped.")],
            {"type": "tool-pay", "toolCallId": "c1", "state": "output-error", "errorText": "Stopped."},
            id="arguments that never became whole",
        ),
        pytest.param(
            call(c.ToolApprovalRequest("a1", "c1")),
            call_part("approval-requested", approval={"id": "a1"}),
            id="asked about",
        ),
        pytest.param(
            call(c.ToolOutputAvailable("c1", PAID)), call_part("output-available", output=PAID), id="answered"
        ),
        pytest.param(
            call(c.ToolOutputAvailable("c1", None)), call_part("output-available", output=None), id="answered nothing"
        ),
        pytest.param(
            call(c.ToolOutputAvailable("c1", 50, preliminary=True)),
            call_part("output-available", output=50, preliminary=True),
            id="under way",
        ),
        pytest.param(
            call(c.ToolOutputAvailable("c1", 50, preliminary=True), c.ToolOutputAvailable("c1", PAID)),
            call_part("output-available", output=PAID),
            id="done after progress",
        ),
        pytest.param(
            call(c.ToolOutputError("c1", "No money.")), call_part("output-error", errorText="No money."), id="failed"
        ),
        pytest.param(
            call(c.ToolOutputAvailable("c1", 50, preliminary=True), c.ToolOutputError("c1", "No money.")),
            call_part("output-error", errorText="No money."),
            id="failed after progress",
        ),
        pytest.param(
            call(c.ToolApprovalRequest("a1", "c1"), c.ToolOutputAvailable("c1", PAID)),
            call_part("output-available", output=PAID, approval={"id": "a1"}),
            id="answered after it was asked about",
        ),
        pytest.param(
            call(c.ToolApprovalRequest("a1", "c1"), c.ToolOutputDenied("c1")),
            call_part("output-denied", approval={"id": "a1"}),
            id="denied",
        ),
        pytest.param(
            shown(c.ToolApprovalRequest("a1", "c1")),
            call_part("approval-requested", approval={"id": "a1"}),
            id="asked about, its arguments told as text",
        ),
        pytest.param(
            shown(c.ToolApprovalRequest("a1", "c1", "Pay?", {"hint": "Pay?"})),
            call_part(
                "approval-requested", approval={"id": "a1", "requestReason": "Pay?", "descriptor": {"hint": "Pay?"}}
            ),
            id="asked about with a reason",
        ),
        pytest.param(
            shown(c.ToolApprovalRequest("a1", "c1"), c.ToolOutputDenied("c1")),
            call_part("output-denied", approval={"id": "a1"}),
            id="denied, its arguments told as text",
        ),
        pytest.param(shown(c.ToolOutputDenied("c1")), call_part("output-denied"), id="denied before anybody was asked"),
        pytest.param(
            shown(c.ToolOutputError("c1", "Stopped.")),
            call_part("output-error", errorText="Stopped."),
            id="failed, its arguments told as text",
        ),
        pytest.param(
            shown(c.ToolApprovalRequest("a1", "c1"), c.ToolInputAvailable("c1", "pay", {"to": "Bo"}, None, ABOUT)),
            call_part("input-available", approval={"id": "a1"}, callProviderMetadata=ABOUT),
            id="handed over after it was asked about",
        ),
        pytest.param(
            [
                c.ToolInputStart("c1", "pay", None, False),
                c.ToolInputDelta("c1", '{"to":"Al'),
                *shown(c.ToolApprovalRequest("a1", "c1")),
            ],
            call_part("approval-requested", approval={"id": "a1"}),
            id="told anew",
        ),
        pytest.param(
            [
                c.ToolInputStart("c1", "pay"),
                c.ToolInputDelta("c1", '{"to":'),
                c.ToolInputAvailable("c1", "pay", {"to": "Bo"}),
                c.ToolOutputError("c1", "No money."),
            ],
            call_part("output-error", errorText="No money."),
            id="failed, its arguments cut short as text but told whole",
        ),
        pytest.param(
            [
                c.ToolInputStart("c1", "pay"),
                c.ToolInputDelta("c1", '{"to":'),
                c.ToolInputError("c1", "pay", None, "No."),
            ],
            {"type": "tool-pay", "toolCallId": "c1", "state": "output-error", "errorText": "No."},
            id="arguments cut short",
        ),
        pytest.param(
            [c.ToolInputStart("c1", "pay"), c.ToolOutputError("c1", "Stopped.")],
            {"type": "tool-pay", "toolCallId": "c1", "state": "output-error", "errorText": "Stopped."},
            id="failed before its arguments were told",
        ),
        pytest.param(
            [c.ToolInputStart("c1", "pay"), c.ToolInputDelta("c1", "null"), c.ToolApprovalRequest("a1", "c1")],
            call_part("approval-requested", approval={"id": "a1"}) | {"input": None},
            id="asked about, no arguments",
        ),
    ],
)
def test_a_call_is_one_part_from_its_name_to_its_result(chunks: list[AnyChunk], part: Part) -> None:
    assert folded(*chunks)["parts"] == [part]


def test_results_find_their_calls_in_any_order_and_in_earlier_steps() -> None:
    message = folded(
        *(c.ToolInputStart(call_id, "pay") for call_id in ("c1", "c2")),
        *(c.ToolInputAvailable(call_id, "pay", call_id) for call_id in ("c1", "c2")),
        c.FinishStep(),
        c.StartStep(),
        c.ToolOutputAvailable("c2", 2),
        c.ToolOutputAvailable("c1", 1),
    )
    outputs = [(part["toolCallId"], part["output"]) for part in message["parts"] if part["type"] == "tool-pay"]
    assert outputs == [("c1", 1), ("c2", 2)]


def test_arguments_told_as_text_belong_to_their_call() -> None:
    parts = folded(
        *(c.ToolInputStart(name, "pay") for name in ("c1", "c2")),
        *(c.ToolInputDelta(name, f'"{name}"') for name in ("c2", "c1")),
        *(c.ToolApprovalRequest(f"ok-{name}", name) for name in ("c1", "c2")),
    )["parts"]
    assert [(part["toolCallId"], part["input"]) for part in parts] == [("c1", "c1"), ("c2", "c2")]


def test_a_call_that_is_told_anew_keeps_its_place_and_its_flags() -> None:
    chunks = [c.ToolInputStart("c1", "pay", True, True), c.File("/f", "a/b"), c.ToolInputStart("c1", "pay", True, True)]
    named = {"type": "dynamic-tool", "toolName": "pay", "toolCallId": "c1", "state": "input-streaming"}
    assert folded(*chunks)["parts"] == [
        {**named, "providerExecuted": True},
        {"type": "file", "url": "/f", "mediaType": "a/b"},
    ]


def test_a_chunk_of_a_kind_that_is_not_known_is_our_bug() -> None:
    with pytest.raises(TypeError, match="Chunk"):
        folded(c.Chunk())


@pytest.mark.parametrize("end", [c.Abort(), c.Error("No."), c.Finish("stop")], ids=["stopped", "failed", "finished"])
def test_a_step_in_which_nothing_was_said_is_not_shown(end: AnyChunk) -> None:
    """A client writes a step with what follows it, and after this one nothing does."""
    message = folded(c.StartStep(), c.File("/f", "a/b"), c.FinishStep(), c.StartStep(), c.FinishStep(), end)
    assert message["parts"] == [{"type": "step-start"}, {"type": "file", "url": "/f", "mediaType": "a/b"}]


@pytest.mark.parametrize("written", [c.MessageMetadata({}), c.Finish("stop", {})], ids=["metadata", "finish"])
def test_an_empty_step_is_shown_when_metadata_follow_it(written: AnyChunk) -> None:
    """So that the stock tool helper sees a last step without a finished call."""
    assert folded(c.StartStep(), c.FinishStep(), written)["parts"] == [{"type": "step-start"}]


def test_the_id_is_the_last_that_a_start_named() -> None:
    assert folded(c.Start("m1"))["id"] == "m1"
    assert folded(c.Start("m1"), c.Finish("stop"), c.Start())["id"] == "m1"
    assert folded(c.Start("m1"), c.Start("m2"))["id"] == "m2"


@pytest.mark.parametrize(
    ("chunks", "metadata"),
    [
        ([c.Start("m", {"a": 1}), c.MessageMetadata({"b": 2}), c.Finish("stop", {"c": 3})], {"a": 1, "b": 2, "c": 3}),
        ([c.Start("m", {"a": {"x": 1, "y": {"z": 1}}}), c.Finish(None, {"a": {"y": {"w": 2}}})],
         {"a": {"x": 1, "y": {"z": 1, "w": 2}}}),
        ([c.Start("m", {"a": [1, 2]}), c.Finish(None, {"a": [3]})], {"a": [3]}),
        ([c.Start("m", {"a": {"x": 1}}), c.Finish(None, {"a": 1})], {"a": 1}),
        ([c.Start("m", {"a": 1}), c.Finish(None, {"a": {"x": 1}})], {"a": {"x": 1}}),
        ([c.Start("m"), c.Finish("stop", {})], {}),
        ([c.Start("m", {"a": 1}), c.Finish("stop")], {"a": 1}),
    ],
)  # fmt: skip
def test_metadata_are_merged_object_by_object(chunks: list[AnyChunk], metadata: dict[str, Any]) -> None:
    assert folded(*chunks)["metadata"] == metadata


def test_merging_leaves_the_chunks_as_they_were() -> None:
    first = c.Start("m", {"a": {"x": 1}})
    folded(first, c.Finish("stop", {"a": {"y": 2}}))
    assert first.message_metadata == {"a": {"x": 1}}


def test_a_message_of_which_nobody_said_anything_has_no_metadata() -> None:
    assert folded(c.Start("m"), c.Finish("stop")) == {"id": "m", "role": "assistant", "parts": []}


def test_an_approval_of_the_policys_is_a_question_with_its_answer() -> None:
    asked = c.ToolApprovalRequest("a1", "c1", is_automatic=True)
    message = folded(c.Start("m1"), c.StartStep(), *call(asked, c.ToolApprovalResponse("a1", True)))
    (part,) = [part for part in message["parts"] if "toolCallId" in part]
    assert part["state"] == "approval-responded"
    assert part["approval"] == {"id": "a1", "isAutomatic": True, "approved": True}
