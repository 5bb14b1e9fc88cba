"""A replay tells finished calls so that nobody runs them again, and everything else as it was."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import AnyChunk, encode_chunks
from protocol.test_stream_walks import Walker, moves
from support.replays import replayed

ARGUMENTS = {"to": "Bo 😀\u2028", "sum": [1, 2.5, None, {"deep": True}]}
ASKED: list[AnyChunk] = [
    c.ToolInputStart("c1", "pay"),
    c.ToolInputDelta("c1", '{"to":'),
    c.ToolInputDelta("c1", '"Bo"'),
    c.ToolInputAvailable("c1", "pay", ARGUMENTS),
]


def told(*chunks: AnyChunk) -> list[dict[str, Any]]:
    return [json.loads(chunk) for _, chunk in replayed([], encode_chunks(chunks))]


def kinds(events: Iterable[tuple[int | None, bytes]]) -> list[tuple[int | None, str]]:
    return [(place, json.loads(chunk)["type"]) for place, chunk in events]


@pytest.mark.parametrize(
    "output",
    [c.ToolOutputAvailable("c1", {"paid": 1}), c.ToolOutputError("c1", "No money."), c.ToolOutputDenied("c1")],
    ids=["available", "error", "denied"],
)
def test_a_finished_call_is_its_name_its_whole_arguments_as_text_and_its_output(output: AnyChunk) -> None:
    log = encode_chunks([*ASKED, output])
    start, delta, end = replayed([], log)
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
    assert list(replayed([], log)) == list(enumerate(log))


def test_progress_of_a_finished_call_and_the_question_about_it_are_told_in_their_places() -> None:
    chunks = [
        *ASKED,
        c.ToolApprovalRequest("a1", "c1"),
        c.ToolOutputAvailable("c1", 50, preliminary=True),
        c.ToolOutputAvailable("c1", 100),
    ]
    assert kinds(replayed([], encode_chunks(chunks))) == [
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
    assert list(replayed([], [available, *log])) == list(enumerate([available, *log]))


def test_nothing_is_replayed_as_nothing() -> None:
    assert list(replayed([], [])) == []


# -- calls whose arguments were only shown, as text -------------------------------------------------------------------

SHOWN: list[AnyChunk] = [
    c.ToolInputStart("c1", "locate"),
    c.ToolInputDelta("c1", '{"a":'),
    c.ToolInputDelta("c1", "1}"),
]
ASKED_FIRST = [*SHOWN, c.ToolApprovalRequest("a1", "c1")]


@pytest.mark.parametrize(
    "chunks",
    [
        [*ASKED_FIRST, c.ToolOutputDenied("c1")],
        [*ASKED_FIRST, c.ToolOutputError("c1", "Expired.")],
        [*ASKED_FIRST, c.ToolOutputAvailable("c1", {"here": 1})],
        [*SHOWN, c.ToolOutputError("c1", "Stopped.")],
        [c.ToolInputStart("c1", "locate"), c.ToolInputDelta("c1", "["), *ASKED_FIRST, c.ToolOutputDenied("c1")],
    ],
    ids=["denied", "expired", "answered together with its approval", "stopped", "told anew"],
)
def test_a_finished_call_keeps_the_arguments_that_were_told_as_text_alone(chunks: list[AnyChunk]) -> None:
    log = encode_chunks(chunks)
    assert list(replayed([], log)) == list(enumerate(log))


def test_a_call_that_was_handed_over_after_its_approval_is_not_handed_over_again() -> None:
    handed_over = [c.ToolInputAvailable("c1", "locate", {"a": 1}), c.ToolOutputAvailable("c1", {"here": 1})]
    types = [chunk["type"] for chunk in told(*ASKED_FIRST, *handed_over)]
    assert "tool-input-available" not in types
    assert types[-1] == "tool-output-available"
    texts = [chunk["inputTextDelta"] for chunk in told(*ASKED_FIRST, *handed_over) if "inputTextDelta" in chunk]
    assert json.loads(texts[-1]) == {"a": 1}


# -- earlier segments -------------------------------------------------------------------------------------------------

FIRST = encode_chunks([c.Start("m"), c.StartStep(), *ASKED, c.ToolApprovalRequest("a1", "c1"), c.FinishStep()])


def test_earlier_segments_come_first_without_a_place_and_the_message_starts_once() -> None:
    running = encode_chunks([c.Start("m"), c.StartStep(), c.TextStart("t1"), c.TextDelta("t1", "Paid.")])
    events = list(replayed(FIRST, running))
    assert events[: len(FIRST)] == [(None, chunk) for chunk in FIRST]
    assert events[len(FIRST) :] == list(enumerate(running))[1:]


def test_a_call_of_an_earlier_segment_that_the_running_one_has_finished_is_told_as_finished() -> None:
    running = encode_chunks([c.Start("m"), c.ToolOutputAvailable("c1", {"paid": 1})])
    assert kinds(replayed(FIRST, running)) == [
        (None, "start"),
        (None, "start-step"),
        (None, "tool-input-start"),
        (None, "tool-input-delta"),
        (None, "tool-approval-request"),
        (None, "finish-step"),
        (1, "tool-output-available"),
    ]


def test_a_reader_who_comes_before_the_running_segment_has_begun_gets_the_earlier_ones() -> None:
    assert list(replayed(FIRST, [])) == [(None, chunk) for chunk in FIRST]


# -- any message ------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(moves, st.integers(0, 100), st.booleans())
def test_any_walk_replayed_at_any_place_hides_finished_calls_and_nothing_else(
    walk: list[Any], cut: int, has_earlier: bool
) -> None:
    walker = Walker(6, ["e1", "e2"] if has_earlier else [])
    for move in walk:
        walker.any_move(*move)
    earlier = encode_chunks([chunk for segment in walker.segments for chunk in segment])
    running = encode_chunks(walker.chunks)[:cut]
    retold = list(replayed(earlier, running))
    places: list[int | None] = [*(None for _ in earlier), *range(len(running))]
    log = list(zip(places, [*earlier, *running], strict=True))
    if earlier and running:
        del log[len(earlier)]  # the start of the running segment
    whole = {chunk["toolCallId"] for chunk in read(log) if chunk["type"] == "tool-input-available"}
    finished = {
        chunk["toolCallId"]
        for chunk in read(log)
        if chunk["type"].startswith("tool-output-") and "preliminary" not in chunk
    }
    rest = iter(retold)
    for (place, encoded), chunk in zip(log, read(log), strict=True):
        call_id = chunk.get("toolCallId")
        if call_id in finished & whole and chunk["type"] == "tool-input-delta":
            continue  # a preview
        told_place, told_chunk = next(rest)
        assert told_place == place
        if call_id in finished and chunk["type"] == "tool-input-available":
            retold_as = json.loads(told_chunk)
            assert (retold_as["type"], retold_as["toolCallId"]) == ("tool-input-delta", call_id)
            assert json.loads(retold_as["inputTextDelta"]) == chunk["input"]
        else:
            assert told_chunk == encoded
    assert list(rest) == []


def read(log: list[tuple[int | None, bytes]]) -> list[dict[str, Any]]:
    return [json.loads(chunk) for _, chunk in log]
