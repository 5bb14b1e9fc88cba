"""ChunkWriter with calls of which it is not known yet who acts, and with approvals."""

from datetime import date
from typing import Any

import pytest

from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.stream import ChunkWriter
from adk_stream_protocol.protocol.tool_parts import STOPPED
from protocol.segment_checker import TERMINALS, Terminal, Wire, kinds, wire
from protocol.stream_steps import (
    ADK,
    TEXT,
    TO_BO,
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
    output,
    play,
    say,
    short,
    to_client,
)

# -- calls of which it is not known yet who acts --------------------------------------------------------------------

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
