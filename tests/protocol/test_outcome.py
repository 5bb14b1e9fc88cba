"""What became of calls, told again to whoever asks again: no more than it should know, and nothing to post about."""

from typing import Any

import pytest

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import AnyChunk
from adk_stream_protocol.protocol.fold import MessageFold, UIMessage
from adk_stream_protocol.protocol.outcome import encode_outcome, results_of
from adk_stream_protocol.protocol.stream import ChunkWriter
from protocol.segment_checker import ClientMessage, wire
from protocol.stream_steps import Step, ask, call, deferred, deny, error, output, say, to_client


def part(call_id: str, state: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool-pay", "toolCallId": call_id, "state": state, "input": {}, **more}


def message(*parts: dict[str, Any]) -> UIMessage:
    return {"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, *parts, {"type": "text", "text": "hi"}]}


OPEN = ("approval-requested", "approval-responded", "input-available")
PAID = part("a", "output-available", output={"paid": 1})
DENIED = part("b", "output-denied", approval={"id": "ok-b"})
FAILED = part("c", "output-error", errorText="No money.")
RESULTS = [
    c.ToolOutputAvailable("a", {"paid": 1}),
    c.ToolOutputDenied("b"),
    c.ToolOutputError("c", "No money."),
]


@pytest.mark.parametrize(
    ("told", "chunks"),
    [
        (PAID, [RESULTS[0]]),
        (part("a", "output-available", output=None), [c.ToolOutputAvailable("a", None)]),
        (DENIED | {"toolCallId": "a"}, [c.ToolOutputDenied("a")]),
        (FAILED | {"toolCallId": "a"}, [c.ToolOutputError("a", "No money.")]),
        *((part("a", state), []) for state in (*OPEN, "input-streaming")),
    ],
    ids=lambda value: value.get("state") if isinstance(value, dict) else "",
)
def test_a_result_is_told_as_it_was_and_what_has_none_is_not_told(told: dict[str, Any], chunks: list[AnyChunk]) -> None:
    assert results_of(message(told), ["a"]) == chunks


def test_progress_is_told_as_progress() -> None:
    under_way = part("a", "output-available", output=50, preliminary=True)
    assert results_of(message(under_way), ["a"]) == [c.ToolOutputAvailable("a", 50, preliminary=True)]


@pytest.mark.parametrize("asked", [["a", "b", "c"], ["c", "a"], [], ["b", "unknown"]])
def test_results_are_told_of_the_calls_that_are_asked_for_in_that_order(asked: list[str]) -> None:
    by_call = dict(zip("abc", RESULTS, strict=True))
    expected = [by_call[name] for name in asked if name in by_call]
    assert results_of(message(PAID, DENIED, FAILED), asked) == expected


def test_a_message_in_which_all_is_said_ends_in_a_step_that_is_written() -> None:
    assert encode_outcome(message(PAID, DENIED, FAILED), "m7", ["a", "b", "c"]) == [
        c.Start("m7"),
        *RESULTS,
        c.StartStep(),
        c.FinishStep(),
        c.Finish("stop", {}),
    ]


@pytest.mark.parametrize("state", OPEN)
def test_a_message_that_still_waits_gets_no_step_that_would_hide_what_it_waits_for(state: str) -> None:
    assert encode_outcome(message(PAID, part("b", state)), "m1", ["a", "b"]) == [
        c.Start("m1"),
        RESULTS[0],
        c.Finish("tool-calls"),
    ]


@pytest.mark.parametrize("state", OPEN)
def test_what_waits_in_an_earlier_step_does_not_keep_the_message_from_its_end(state: str) -> None:
    """The stock helpers look at the last step only: the results there would make them post again."""
    waiting = part("b", state)
    told = {"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, waiting, {"type": "step-start"}, PAID]}
    assert encode_outcome(told, "m1", ["a"]) == [
        c.Start("m1"),
        RESULTS[0],
        c.StartStep(),
        c.FinishStep(),
        c.Finish("stop", {}),
    ]


@pytest.mark.parametrize(
    ("told", "reason"), [([part("a", "input-available")], "tool-calls"), ([PAID], "stop"), ([], "stop")]
)
def test_a_message_without_steps_has_one(told: list[dict[str, Any]], reason: str) -> None:
    *_, finish = encode_outcome({"id": "m1", "role": "assistant", "parts": told}, "m1", [])
    assert isinstance(finish, c.Finish)
    assert finish.finish_reason == reason


class TwoTabs:
    """One tab answers and goes on; the other has the first segment only, answers as well, and is told what became."""

    def __init__(self, *steps: Step) -> None:
        self.writer = ChunkWriter()
        self.told = MessageFold()
        self.other = ClientMessage(6)
        self.other.read(wire(self.segment(*steps)))

    def segment(self, *steps: Step) -> list[AnyChunk]:
        written = [chunk for step in (lambda w: w.start("m1"), *steps) for chunk in step(self.writer)]
        written += self.writer.finish("stop")
        for chunk in written:
            self.told.feed(chunk)
        return written

    def go_on(self, *steps: Step, at_work: str = "") -> None:
        self.writer.new_segment(at_work)
        self.segment(*steps)

    def ask_again(self, *calls: str) -> None:
        self.other.read(wire(encode_outcome(self.told.message(), "m1", calls)))
        assert not self.other.posts_again


@pytest.mark.parametrize("result", [output("a"), error("a"), deny("a")], ids=["output", "error", "denied"])
@pytest.mark.parametrize("said", [True, False])
def test_a_second_tab_learns_what_the_first_has_decided(said: bool, result: Step) -> None:
    tabs = TwoTabs(call("a"), ask("a"))
    tabs.go_on(result, say(), at_work="a")
    tabs.other.decide("a", said)
    tabs.ask_again("a")
    assert tabs.other.unfinished == set()


def test_a_second_tab_learns_the_output_of_a_browser_tool_that_the_first_has_run() -> None:
    tabs = TwoTabs(deferred("a"), ask("a"))
    tabs.go_on(to_client("a"))
    tabs.go_on(output("a"), say())
    tabs.other.decide("a", True)
    tabs.ask_again("a")
    assert tabs.other.unfinished == set()


def test_a_denial_that_waits_for_its_sibling_is_told_with_it_and_not_before() -> None:
    tabs = TwoTabs(call("a"), ask("a"), call("b"), ask("b"))
    tabs.go_on(deny("a"), at_work="a")
    tabs.other.decide("a", False)
    tabs.ask_again("a")
    assert tabs.other.unfinished == {"a", "b"}
    tabs.go_on(output("b"), say(), at_work="b")
    tabs.other.decide("b", True)
    tabs.ask_again("a", "b")
    assert tabs.other.unfinished == set()
