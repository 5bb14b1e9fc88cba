"""ChunkWriter over the segments of a message: calls that a person or a browser answers, and what becomes of them."""

from datetime import date
from typing import Any

import pytest

from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.stream import ChunkWriter
from adk_stream_protocol.protocol.tool_parts import STOPPED
from protocol.segment_checker import TERMINALS, Terminal, Wire, kinds, wire
from protocol.stream_steps import (
    ADK,
    Step,
    Talk,
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
    short,
    to_client,
)

TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]
EMPTY_STEP = ["start-step", "finish-step", "finish"]

# -- calls of which it is not known yet who acts --------------------------------------------------------------------

TO_BO = {"to": "Bo"}
WHOLE = '{"to":"Bo"}'


def test_a_deferred_call_is_told_by_its_name_only() -> None:
    assert short(play(ChunkWriter(), deferred("a", TO_BO)))[1:] == ["start-step", "tool-input-start a"]


@pytest.mark.parametrize("flags", [{}, {"provider_executed": False, "dynamic": True}], ids=["plain", "flagged"])
@pytest.mark.parametrize(
    ("decide", "then"),
    [
        (to_client("a"), []),
        (lambda w: w.tools.to_server("a"), []),
        (output("a"), ["tool-output-available"]),
        (output("a", preliminary=True), ["tool-output-available"]),
    ],
    ids=["the client", "the server", "a result", "progress"],
)
def test_whoever_acts_is_told_the_whole_input(decide: Step, then: list[str], flags: dict[str, Any]) -> None:
    writer = ChunkWriter()
    written = play(writer, deferred("a", TO_BO, streamed='{"to', metadata=ADK, **flags), decide)
    told = [chunk for chunk in written if chunk["type"] == "tool-input-available"]
    on_wire = {"providerExecuted": False, "dynamic": True} if flags else {}
    assert told == [
        {
            "type": "tool-input-available",
            "toolCallId": "a",
            "toolName": "add",
            "input": TO_BO,
            "providerMetadata": ADK,
            **on_wire,
        }
    ]
    assert kinds(written)[-1 - len(then) :] == ["tool-input-available", *then]


def test_a_call_that_was_deferred_is_with_whom_it_was_given_to() -> None:
    for give, is_the_clients in [(to_client("a"), True), (lambda w: w.tools.to_server("a"), False)]:
        writer = ChunkWriter()
        play(writer, deferred("a"), give)
        assert writer.tools.awaits_client == is_the_clients


def test_a_large_integer_that_a_person_is_asked_about_is_shown_in_all_its_figures() -> None:
    large = {"account": 2**53 + 1}
    for is_asked, shown in [(False, large), (True, {"account": "9007199254740993"})]:
        writer = ChunkWriter()
        writer.start("m1")
        writer.tool_input_start("a", "pay")
        writer.tools.defer("a", large)
        (chunk,) = writer.tools.to_server("a", is_asked=is_asked)
        assert getattr(chunk, "input") == shown  # noqa: B009


ANEW = {"type": "tool-input-start", "toolCallId": "a", "toolName": "add"}


@pytest.mark.parametrize(
    ("decide", "then"),
    [
        (ask("a"), "tool-approval-request"),
        (deny("a"), "tool-output-denied"),
        (error("a"), "tool-output-error"),
        *((end(how), "tool-output-error") for how in TERMINALS),
    ],
    ids=["asked about", "denied", "failed", *TERMINALS],
)
@pytest.mark.parametrize(
    ("streamed", "expected"),
    [
        pytest.param("", [{"inputTextDelta": WHOLE}], id="nothing-streamed-yet"),
        pytest.param('{"to', [{"inputTextDelta": '":"Bo"}'}], id="the-rest"),
        pytest.param(WHOLE, [], id="all-streamed"),
        pytest.param('{"to": "Bo"}', [ANEW, {"inputTextDelta": WHOLE}], id="streamed-in-other-words"),
        pytest.param('{"to":"Al', [ANEW, {"inputTextDelta": WHOLE}], id="streamed-something-else"),
    ],
)
def test_whoever_only_looks_is_shown_the_input_as_text(
    streamed: str, expected: list[Wire], decide: Step, then: str
) -> None:
    """A client acts at once on a whole input, so nobody gets one who must not act."""
    writer = ChunkWriter()
    play(writer, deferred("a", TO_BO, streamed=streamed))
    *shown, result = wire(decide(writer))[: len(expected) + 1]
    assert shown == [{"type": "tool-input-delta", "toolCallId": "a", **chunk} for chunk in expected]
    assert result["type"] == then


def test_an_input_told_anew_keeps_the_flags_of_its_call() -> None:
    written = play(ChunkWriter(), deferred("a", TO_BO, streamed="[", provider_executed=False, dynamic=True), ask("a"))
    starts = [chunk for chunk in written if chunk["type"] == "tool-input-start"]
    assert starts[0] == starts[1] == {**ANEW, "providerExecuted": False, "dynamic": True}


def test_an_input_that_json_has_no_place_for_is_shown_all_the_same() -> None:
    written = play(ChunkWriter(), deferred("a", {"on": date(2026, 1, 2)}), ask("a"))
    assert [chunk["inputTextDelta"] for chunk in written if "inputTextDelta" in chunk] == ['{"on":"2026-01-02"}']


@pytest.mark.parametrize(("how", "text"), [("finish", STOPPED), ("abort", STOPPED), ("error", "It broke.")])
def test_a_deferred_call_that_nobody_took_is_told_as_stopped(how: Terminal, text: str) -> None:
    written = play(ChunkWriter(), deferred("a"), end(how))
    assert [chunk["errorText"] for chunk in written if chunk["type"] == "tool-output-error"] == [text]


# -- approvals --------------------------------------------------------------------------------------------------------

ABOUT: dict[str, Any] = {"reason": "Pay?", "descriptor": {"hint": "Pay?", "payload": None}}
IDS = {"type": "tool-approval-request", "approvalId": "ok-a", "toolCallId": "a"}


@pytest.mark.parametrize(
    "begin", [call("a"), call("a", awaits_client=True), deferred("a")], ids=["call", "client", "deferred"]
)
@pytest.mark.parametrize(
    ("version", "about", "expected"),
    [
        (6, {}, IDS),
        (6, ABOUT, IDS),
        (7, {}, IDS),
        (7, ABOUT, {**IDS, "reason": "Pay?", "approvalDescriptor": ABOUT["descriptor"]}),
    ],
)
def test_an_approval_names_its_call_and_says_to_version_7_what_it_is_about(
    version: SdkVersion, about: dict[str, Any], expected: Wire, begin: Step
) -> None:
    assert play(ChunkWriter(sdk_version=version), begin, ask("a", **about))[-1] == expected


def test_without_a_word_about_the_version_the_client_is_one_of_version_6() -> None:
    assert play(ChunkWriter(), call("a"), ask("a", **ABOUT))[-1] == IDS


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (output("a"), "tool-output-available a"),
        (error("a"), "tool-output-error a"),
        (deny("a"), "tool-output-denied a"),
    ],
)
@pytest.mark.parametrize("version", [6, 7])
def test_a_tool_of_the_server_is_shown_asked_about_and_run(version: SdkVersion, result: Step, told: str) -> None:
    talk = Talk(version)
    shown = ["start-step", "tool-input-start a", "tool-input-available a", "tool-approval-request a"]
    assert talk.segment(call("a"), ask("a")) == [*shown, "finish-step", "finish"]
    talk.client.decide("a", told != "tool-output-denied a")
    assert talk.segment(result, say(), at_work=["a"]) == [told, *TEXT]
    assert talk.client.unfinished == set()


ASKED = ["start-step", "tool-input-start a", "tool-input-delta a", "tool-approval-request a", "finish-step", "finish"]


def asked_about_a_tool_of_the_browser(version: SdkVersion = 6, **options: Any) -> Talk:
    talk = Talk(version)
    assert talk.segment(deferred("a", TO_BO, **options), ask("a")) == ASKED
    return talk


def test_a_tool_of_the_browser_is_shown_as_text_handed_over_when_approved_and_known_when_answered() -> None:
    talk = asked_about_a_tool_of_the_browser()
    talk.client.decide("a", True)
    assert talk.segment(to_client("a")) == ["tool-input-available a", "finish"]
    assert talk.writer.tools.awaits_client
    talk.client.add_output("a")
    assert talk.segment(known("a"), say()) == TEXT


def test_what_is_handed_over_after_the_approval_is_what_was_called() -> None:
    writer = ChunkWriter()
    play(writer, deferred("a", TO_BO, metadata=ADK, dynamic=True), ask("a"), end("finish"))
    writer.new_segment()
    assert play(writer, to_client("a"))[1:] == [
        {
            "type": "tool-input-available",
            "toolCallId": "a",
            "toolName": "add",
            "input": TO_BO,
            "providerMetadata": ADK,
            "dynamic": True,
        }
    ]


def test_an_approval_and_the_output_of_the_browser_may_come_together() -> None:
    talk = asked_about_a_tool_of_the_browser()
    talk.client.decide("a", True)
    talk.client.add_output("a")
    assert talk.segment(known("a"), say()) == TEXT


def test_a_tool_of_the_browser_that_is_denied_is_never_handed_over() -> None:
    talk = asked_about_a_tool_of_the_browser()
    talk.client.decide("a", False)
    assert talk.segment(deny("a"), say()) == ["tool-output-denied a", *TEXT]


def test_another_tab_is_told_the_output_that_the_first_has_sent() -> None:
    talk = Talk()
    talk.segment(deferred("a"), to_client("a"))
    assert talk.segment(output("a"), say()) == ["tool-output-available a", *TEXT]


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


def test_a_pause_ends_texts_and_the_step_and_leaves_the_calls_alone() -> None:
    writer = ChunkWriter()
    written = play(writer, say(), call("a", awaits_client=True), call("b"), ChunkWriter.pause)
    assert kinds(written)[-2:] == ["text-end", "finish-step"]
    assert writer.tools.awaits_client
    assert writer.tools.can_take_result("a")
    assert writer.pause() == []
    writer.new_segment()
    assert kinds(play(writer, known("a"), say())) == ["start", *TEXT[:3]]
