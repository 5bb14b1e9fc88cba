"""ChunkWriter over the segments of a message: what goes on, what stops with a segment, and what is left behind."""

import pytest

from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.protocol.stream import ChunkWriter
from protocol.segment_checker import TERMINALS, Terminal, kinds, wire
from protocol.stream_steps import (
    TEXT,
    Step,
    Talk,
    ask,
    asked_about_a_tool_of_the_browser,
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
    short,
    to_client,
)

EMPTY_STEP = ["start-step", "finish-step", "finish"]

# -- one segment after the other --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["finish", "abort"])
def test_a_continuation_without_a_word_ends_in_a_written_step(how: Terminal) -> None:
    """The client's last step holds the call that it just answered: without a new one it answers for ever."""
    talk = Talk()
    talk.segment(call("a", awaits_client=True))
    talk.client.add_output("a")
    step = EMPTY_STEP if how == "finish" else ["start-step", "message-metadata", "finish-step", "abort"]
    assert talk.segment(known("a"), how=how) == step


def test_results_of_earlier_calls_come_before_the_first_step_of_a_continuation() -> None:
    talk = Talk()
    talk.segment(*(step for name in "abc" for step in (call(name), ask(name))))
    for name in "abc":
        talk.client.decide(name, name != "b")
    assert talk.segment(output("a"), deny("b"), error("c"), say(), at_work="abc") == [
        "tool-output-available a",
        *("tool-output-denied b", "tool-output-error c"),
        *TEXT,
    ]


def test_a_continuation_stays_in_the_step_that_holds_what_is_still_to_be_answered() -> None:
    """Clients look for it in their last step only; and a whole input in another step would be a second part."""
    talk = Talk()
    talk.segment(call("a"), ask("a"), deferred("b"), ask("b"))
    talk.client.decide("a", True)
    told = talk.segment(output("a"), say(), call("c"), output("c"), at_work=["a"])
    assert told[0] == "tool-output-available a"
    assert not {"start-step", "finish-step"}.intersection(told)
    talk.client.decide("b", True)
    assert talk.segment(to_client("b")) == ["tool-input-available b", "finish"]
    talk.client.add_output("b")
    assert talk.segment(known("b"), say()) == TEXT


def test_a_new_step_is_begun_again_when_nothing_is_left_to_answer() -> None:
    talk = Talk()
    talk.segment(call("a", awaits_client=True), call("b", awaits_client=True))
    talk.client.add_output("a")
    assert "start-step" not in talk.segment(known("a"), say())
    talk.client.add_output("b")
    assert talk.segment(known("b"), say()) == TEXT


def test_what_waits_in_an_earlier_step_keeps_no_segment_in_the_last_one() -> None:
    talk = Talk()
    talk.segment(call("a", awaits_client=True), new_step, say())
    assert talk.segment(say()) == TEXT


def test_a_turn_that_ends_on_a_tool_gets_one_more_step_whatever_waits_in_an_earlier_one() -> None:
    """Otherwise the client posts again, for ever: it looks at its last step only."""
    told = Talk().segment(call("a", awaits_client=True), new_step, call("b"), output("b"))
    assert told[-4:] == ["finish-step", *EMPTY_STEP]


def test_a_text_ends_before_the_next_segment_begins() -> None:
    talk = Talk()
    talk.segment(call("a", awaits_client=True))
    talk.writer.new_segment()
    play(talk.writer, say())  # in the step that waits
    with pytest.raises(LocalProtocolError):
        talk.writer.new_segment()


def test_a_segment_without_any_answer_changes_nothing() -> None:
    talk = asked_about_a_tool_of_the_browser()
    assert talk.segment() == ["finish"]
    talk.client.decide("a", True)
    assert talk.segment(to_client("a")) == ["tool-input-available a", "finish"]


@pytest.mark.parametrize("how", TERMINALS)
def test_ids_go_on_where_the_segment_before_has_stopped(how: Terminal) -> None:
    writer = ChunkWriter()
    play(writer, say(), call("a", awaits_client=True), end(how))
    writer.new_segment()
    written = play(writer, known("a"), say())
    assert [chunk["id"] for chunk in written if chunk["type"] == "text-start"] == ["t2"]
    assert writer.tools.knows("a")


@pytest.mark.parametrize("how", TERMINALS)
@pytest.mark.parametrize("begin", [open_input("a"), deferred("a"), call("a")], ids=["streaming", "deferred", "at work"])
def test_what_the_server_left_undone_takes_no_result_in_a_later_segment(begin: Step, how: Terminal) -> None:
    writer = ChunkWriter()
    play(writer, begin, end(how))
    writer.new_segment()
    writer.start()
    assert not writer.tools.can_take_result("a")
    assert writer.is_idle


@pytest.mark.parametrize("begin", [open_input("a"), deferred("a"), call("a")], ids=["streaming", "deferred", "at work"])
def test_what_the_server_left_undone_before_a_pause_is_not_told_in_a_later_segment_either(begin: Step) -> None:
    """The client was told that it was stopped when the segment itself ended, and has no place for it any more."""
    writer = ChunkWriter()
    play(writer, begin, ChunkWriter.pause)
    writer.new_segment()
    assert not writer.tools.can_take_result("a")
    assert writer.is_idle
    assert not [line for line in short(play(writer, end("finish"))) if line.endswith(" a")]


@pytest.mark.parametrize("how", TERMINALS)
def test_a_call_at_work_is_stopped_with_its_segment(how: Terminal) -> None:
    talk = Talk()
    talk.segment(call("a"), ask("a"), call("b"), ask("b"))
    talk.client.decide("a", True)
    assert talk.segment(at_work=["a"], how=how) == ["tool-output-error a", how]
    assert talk.client.unfinished == {"b"}


def test_a_pause_after_a_run_that_is_over_stops_what_the_server_has_not_finished() -> None:
    writer = ChunkWriter()
    written = play(writer, call("a", awaits_client=True), call("b"), ChunkWriter.pause_stopped)
    assert kinds(written)[-2:] == ["tool-output-error", "finish-step"]
    assert writer.tools.can_take_result("a")
    assert not writer.tools.can_take_result("b")


def test_a_pause_ends_texts_and_the_step_and_leaves_the_calls_alone() -> None:
    writer = ChunkWriter()
    written = play(writer, say(), call("a", awaits_client=True), call("b"), ChunkWriter.pause)
    assert kinds(written)[-2:] == ["text-end", "finish-step"]
    assert writer.tools.awaits_client
    assert writer.tools.can_take_result("a")
    assert writer.pause() == []
    writer.new_segment()
    assert kinds(play(writer, known("a"), say())) == ["start", *TEXT[:3]]


# -- calls that the server goes on with -------------------------------------------------------------------------------


def test_a_call_that_goes_on_is_left_behind_in_an_earlier_step() -> None:
    writer = ChunkWriter()
    play(writer, call("outer"))
    assert kinds(wire(writer.leave_behind(["outer"]))) == ["finish-step", "start-step"]
    assert writer.leave_behind(["outer"]) == []


def test_a_call_is_not_left_behind_while_something_else_of_its_step_is_open() -> None:
    writer = ChunkWriter()
    play(writer, call("outer"), call("sibling"))
    assert writer.leave_behind(["outer"]) == []
    output("sibling")(writer)
    writer.text("speaker", "text", "Hello")
    assert writer.leave_behind(["outer"]) == []
    writer.end_texts()
    assert writer.leave_behind(["outer"]) != []


def test_progress_is_no_result() -> None:
    writer = ChunkWriter()
    play(writer, call("a"))
    assert not writer.tools.has_progress("a")
    output("a", preliminary=True)(writer)
    assert writer.tools.has_progress("a")
    output("a")(writer)
    assert not writer.tools.has_progress("a")
