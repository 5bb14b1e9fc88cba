"""A replay tells finished calls so that nobody runs them again, and everything else as it was."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import AnyChunk, encode_chunks
from adk_stream_protocol.protocol.replay import replayed
from protocol.test_writer_walks import Walker, moves

ARGUMENTS = {"to": "Bo 😀\u2028", "sum": [1, 2.5, None, {"deep": True}]}
ASKED: list[AnyChunk] = [
    c.ToolInputStart("c1", "pay"),
    c.ToolInputDelta("c1", '{"to":'),
    c.ToolInputDelta("c1", '"Bo"'),
    c.ToolInputAvailable("c1", "pay", ARGUMENTS),
]


def told(*chunks: AnyChunk) -> list[dict[str, Any]]:
    return [json.loads(chunk) for _, chunk in replayed(encode_chunks(chunks))]


@pytest.mark.parametrize(
    "output",
    [c.ToolOutputAvailable("c1", {"paid": 1}), c.ToolOutputError("c1", "No money."), c.ToolOutputDenied("c1")],
    ids=["available", "error", "denied"],
)
def test_a_finished_call_is_its_name_its_whole_arguments_as_text_and_its_output(output: AnyChunk) -> None:
    log = encode_chunks([*ASKED, output])
    start, delta, end = replayed(log)
    assert (start, end) == ((0, log[0]), (4, log[4]))
    place, encoded = delta
    assert place == 3  # where the arguments were whole
    whole = json.loads(encoded)
    assert whole.keys() == {"type", "toolCallId", "inputTextDelta"}
    assert (whole["type"], whole["toolCallId"]) == ("tool-input-delta", "c1")
    assert json.loads(whole["inputTextDelta"]) == ARGUMENTS


@pytest.mark.parametrize("arguments", [None, {}, "", [], 0, 2**70, '\\ " \n \u0000'])
def test_arguments_of_any_shape_survive_as_text(arguments: Any) -> None:
    _, delta, _ = told(
        c.ToolInputStart("c1", "pay"), c.ToolInputAvailable("c1", "pay", arguments), c.ToolOutputAvailable("c1", 1)
    )
    assert json.loads(delta["inputTextDelta"]) == arguments


@pytest.mark.parametrize(
    "so_far",
    [
        ASKED[:1],
        ASKED[:3],
        ASKED,
        [*ASKED, c.ToolApprovalRequest("a1", "c1")],
        [*ASKED, c.ToolOutputAvailable("c1", 50, preliminary=True)],
        [*ASKED[:3], c.ToolInputError("c1", "pay", None, "Stopped.")],
    ],
    ids=["named", "arguments on their way", "called", "asked about", "under way", "arguments never whole"],
)
def test_a_call_without_a_result_is_told_as_it_was(so_far: list[AnyChunk]) -> None:
    log = encode_chunks([c.Start("m"), *so_far])
    assert list(replayed(log)) == list(enumerate(log))


def test_progress_of_a_finished_call_and_the_question_about_it_are_told_in_their_places() -> None:
    chunks = [
        *ASKED,
        c.ToolApprovalRequest("a1", "c1"),
        c.ToolOutputAvailable("c1", 50, preliminary=True),
        c.ToolOutputAvailable("c1", 100),
    ]
    assert [(place, json.loads(chunk)["type"]) for place, chunk in replayed(encode_chunks(chunks))] == [
        (0, "tool-input-start"),
        (3, "tool-input-delta"),
        (4, "tool-approval-request"),
        (5, "tool-output-available"),
        (6, "tool-output-available"),
    ]


def test_only_the_finished_of_several_calls_is_retold() -> None:
    other = [c.ToolInputStart("c2", "pay"), c.ToolInputDelta("c2", "{"), c.ToolInputAvailable("c2", "pay", {})]
    retold = told(*ASKED, *other, c.ToolOutputAvailable("c1", 1))
    assert [(chunk["type"], chunk["toolCallId"]) for chunk in retold] == [
        ("tool-input-start", "c1"),
        ("tool-input-delta", "c1"),
        ("tool-input-start", "c2"),
        ("tool-input-delta", "c2"),
        ("tool-input-available", "c2"),
        ("tool-output-available", "c1"),
    ]


def test_words_that_look_like_a_call_are_words() -> None:
    output, available = encode_chunks([c.ToolOutputAvailable("c1", 1), c.ToolInputAvailable("c1", "pay", 1)])
    log = encode_chunks(
        [
            c.TextDelta("t", output.decode()),
            c.Data("data-a", {"type": "tool-input-available", "toolCallId": "c1"}),
            c.Data("data-tool-output-available", {"toolCallId": "c1"}, "c1"),
        ]
    )
    assert list(replayed([available, *log])) == list(enumerate([available, *log]))


def test_nothing_is_replayed_as_nothing() -> None:
    assert list(replayed([])) == []


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(moves, st.integers(0, 100))
def test_any_walk_replayed_at_any_place_hides_finished_calls_and_nothing_else(walk: list[Any], cut: int) -> None:
    walker = Walker(6, [])
    for move in walk:
        walker.move(*move)
    log = encode_chunks(walker.chunks)[:cut]
    read = [json.loads(chunk) for chunk in log]
    finished = {
        chunk["toolCallId"] for chunk in read if chunk["type"].startswith("tool-output-") and "preliminary" not in chunk
    }
    retold = list(replayed(log))
    places = [place for place, _ in retold]
    assert places == sorted(set(places))

    by_place = {place: json.loads(chunk) for place, chunk in retold}
    for place, chunk in enumerate(read):
        if chunk.get("toolCallId") not in finished:
            assert by_place[place] == chunk
        elif chunk["type"] == "tool-input-delta":
            assert place not in by_place
        elif chunk["type"] == "tool-input-available":
            assert by_place[place]["type"] == "tool-input-delta"
            assert json.loads(by_place[place]["inputTextDelta"]) == chunk["input"]
        else:
            assert by_place[place] == chunk
