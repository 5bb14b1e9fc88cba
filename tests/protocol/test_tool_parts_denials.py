"""ToolParts: a denial waits for the other calls of its step, and comes with them in the order of the calls."""

import pytest

from adk_stream_protocol.protocol.stream import ChunkWriter
from protocol.segment_checker import TERMINALS, Terminal, wire
from protocol.stream_steps import (
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

OPEN_BESIDE: dict[str, list[Step]] = {
    "streaming": [open_input("b")],
    "deferred": [deferred("b")],
    "at work": [call("b")],
    "asked about": [call("b"), ask("b")],
    "asked about, then the client's": [deferred("b"), ask("b")],
    "with the client": [call("b", awaits_client=True)],
}


@pytest.mark.parametrize("beside", OPEN_BESIDE.values(), ids=OPEN_BESIDE)
def test_a_denial_waits_for_the_open_calls_of_its_step(beside: list[Step]) -> None:
    """Beside a denied call the stock tool helper never sends what the client has done with the others."""
    writer = ChunkWriter()
    play(writer, call("a"), ask("a"), *beside)
    assert writer.tools.deny("a", "No.") == []
    assert not writer.tools.can_take_result("a")


@pytest.mark.parametrize(
    "beside",
    [[], [call("b"), output("b")], [call("b"), output("b", preliminary=True)], [call("b"), ask("b"), deny("b")]],
    ids=["nothing", "done", "under way", "denied"],
)
def test_a_denial_waits_for_nothing_else(beside: list[Step]) -> None:
    writer = ChunkWriter()
    play(writer, call("c", awaits_client=True), new_step, *beside, call("a"), ask("a"))
    assert short(wire(writer.tools.deny("a", "No."))) == ["tool-output-denied a"]


RESULTS: dict[str, tuple[Step, list[str]]] = {
    "output": (output("b"), ["tool-output-available b"]),
    "progress": (output("b", preliminary=True), ["tool-output-available b"]),
    "known": (known("b"), []),
    "error": (error("b"), ["tool-output-error b"]),
    "denied": (deny("b"), ["tool-output-denied b"]),
}


@pytest.mark.parametrize(("result", "told"), RESULTS.values(), ids=RESULTS)
def test_a_denial_that_waited_comes_with_the_last_result_in_the_order_of_the_calls(
    result: Step, told: list[str]
) -> None:
    writer = ChunkWriter()
    play(writer, *(call(name) for name in "abcd"), deny("a"), deny("c"), output("d"))
    assert short(wire(result(writer))) == ["tool-output-denied a", *told, "tool-output-denied c"]


def test_a_denial_that_waited_comes_when_arguments_turn_out_never_to_be_whole() -> None:
    writer = ChunkWriter()
    play(writer, call("a"), open_input("b"), deny("a"))
    assert short(wire(writer.tools.input_error("b", "x"))) == ["tool-output-denied a", "tool-input-error b"]


@pytest.mark.parametrize("how", TERMINALS)
def test_a_denial_that_waited_for_the_server_comes_when_that_is_stopped(how: Terminal) -> None:
    written = short(play(ChunkWriter(), call("a"), call("b"), deny("a"), end(how)))
    assert [line for line in written if "output" in line] == ["tool-output-denied a", "tool-output-error b"]


@pytest.mark.parametrize("how", TERMINALS)
def test_a_denial_waits_over_segments(how: Terminal) -> None:
    talk = Talk()
    talk.segment(*(step for name in "abc" for step in (call(name), ask(name))), how=how)
    talk.client.decide("b", False)
    assert talk.segment(deny("b"), at_work=["b"], how=how) == [how]
    talk.client.decide("a", True)
    assert talk.segment(output("a"), at_work=["a"], how=how) == ["tool-output-available a", how]
    talk.client.decide("c", True)
    last = talk.segment(output("c"), say(), at_work=["c"])
    assert last == ["tool-output-denied b", "tool-output-available c", *TEXT]


def test_a_denied_tool_of_the_server_beside_an_approved_one_of_the_browser() -> None:
    talk = Talk()
    talk.segment(call("a"), ask("a"), deferred("b"), ask("b"))
    talk.client.decide("a", False)
    talk.client.decide("b", True)
    assert talk.segment(to_client("b"), deny("a"), at_work=["a"]) == ["tool-input-available b", "finish"]
    talk.client.add_output("b")
    assert talk.segment(known("b"), say()) == ["tool-output-denied a", *TEXT]


A, B, C = ("tool-output-{} a", "tool-output-{} b", "tool-output-{} c")


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (["deny", "output", "output"], [A.format("denied"), B.format("available"), C.format("available")]),
        (["output", "deny", "output"], [A.format("available"), B.format("denied"), C.format("available")]),
        (["output", "error", "deny"], [A.format("available"), B.format("error"), C.format("denied")]),
        (["deny", "error", "deny"], [A.format("denied"), B.format("error"), C.format("denied")]),
        (["deny", "known", "output"], [A.format("denied"), C.format("available")]),
        (["known", "deny", "known"], [B.format("denied")]),
        (["deny", "deny", "deny"], [A.format("denied"), B.format("denied"), C.format("denied")]),
    ],
    ids=lambda value: "-".join(value) if value[0] in {"deny", "output", "known"} else "",
)
def test_results_that_come_together_keep_the_order_of_the_calls(results: list[str], told: list[str]) -> None:
    write = {"deny": deny, "output": output, "error": error, "known": known}
    writer = ChunkWriter()
    play(writer, *(call(name) for name in "abc"))
    steps = [write[kind](name, closing="abc") for name, kind in zip("abc", results, strict=True)]
    assert short(wire([chunk for step in steps for chunk in step(writer)])) == told


def test_a_denial_that_waited_keeps_its_place_among_results_that_come_together() -> None:
    writer = ChunkWriter()
    play(writer, *(call(name) for name in "abcd"), deny("c"))
    steps = [output(name, closing="abd") for name in "abd"]
    assert short(wire([chunk for step in steps for chunk in step(writer)])) == [
        A.format("available"),
        B.format("available"),
        C.format("denied"),
        "tool-output-available d",
    ]


def test_a_denial_waits_for_calls_that_are_not_among_those_that_come_together() -> None:
    writer = ChunkWriter()
    play(writer, *(call(name) for name in "abc"))
    assert short(wire([*deny("a", closing="ab")(writer), *output("b", closing="ab")(writer)])) == [
        "tool-output-available b"
    ]
    assert short(wire(writer.tools.output("c", 1))) == ["tool-output-denied a", "tool-output-available c"]


@pytest.mark.parametrize("beside", [open_input("b"), deferred("b"), call("b"), call("b", awaits_client=True)])
def test_to_version_5_a_denial_is_an_error_and_waits_for_nothing(beside: Step) -> None:
    written = play(ChunkWriter(sdk_version=5), call("a"), beside, deny("a"))
    assert written[-1] == {"type": "tool-output-error", "toolCallId": "a", "errorText": "No."}


def test_to_version_5_a_deferred_call_that_is_denied_shows_what_it_was() -> None:
    written = play(ChunkWriter(sdk_version=5), deferred("a", {"to": "Bo"}), deny("a"))
    assert short(written)[-2:] == ["tool-input-delta a", "tool-output-error a"]
