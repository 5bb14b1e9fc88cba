"""The judge of streams must be able to say no: one broken stream for each of its rules."""

from typing import Any

import pytest

from protocol.segment_checker import ClientMessage, Wire

START: Wire = {"type": "start", "messageId": "m1"}
STEP: Wire = {"type": "start-step"}
END_STEP: Wire = {"type": "finish-step"}
FINISH: Wire = {"type": "finish", "finishReason": "stop"}
WRITTEN: Wire = {**FINISH, "messageMetadata": {}}
TEXT: Wire = {"type": "text-start", "id": "t"}
WORDS: Wire = {"type": "text-delta", "id": "t", "delta": "hi"}
END_TEXT: Wire = {"type": "text-end", "id": "t"}


def tool(kind: str, call: str = "a", **more: Any) -> Wire:
    return {"type": f"tool-{kind}", "toolCallId": call, **more}


def begin(call: str = "a") -> Wire:
    return tool("input-start", call, toolName="add")


def delta(text: str = "{}", call: str = "a") -> Wire:
    return tool("input-delta", call, inputTextDelta=text)


def whole(call: str = "a") -> Wire:
    return tool("input-available", call, toolName="add", input={})


def ask(call: str = "a") -> Wire:
    return tool("approval-request", call, approvalId=f"ok-{call}")


def output(call: str = "a", **more: Any) -> Wire:
    return tool("output-available", call, output=1, **more)


def in_step(*chunks: Wire) -> list[Wire]:
    return [START, STEP, *chunks, END_STEP, FINISH]


def read(*segments: list[Wire], decided: dict[str, bool] | None = None, version: Any = 6) -> ClientMessage:
    """The decisions come after the first segment."""
    message = ClientMessage(version)
    for number, segment in enumerate(segments):
        message.read(segment)
        for call, approved in (decided or {}).items() if number == 0 else ():
            message.decide(call, approved)
    return message


SHOWN_AND_ASKED = in_step(begin(), delta(), ask())
BOTH_ASKED = in_step(begin(), whole(), ask(), begin("b"), delta("{}", "b"), ask("b"))


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param([[STEP, END_STEP, FINISH]], id="no start"),
        pytest.param([[START]], id="no end"),
        pytest.param([[START, FINISH, FINISH]], id="two ends"),
        pytest.param([[START, START, FINISH]], id="two starts"),
        pytest.param([in_step(), [{**START, "messageId": "m2"}, FINISH]], id="another message"),
        pytest.param([[START, STEP, FINISH]], id="a step left open"),
        pytest.param([[START, END_STEP, FINISH]], id="a step ended that was none"),
        pytest.param([[START, STEP, STEP, END_STEP, FINISH]], id="a step in a step"),
        pytest.param([[START, TEXT, END_TEXT, FINISH]], id="a text outside of a step"),
        pytest.param([[START, STEP, TEXT, END_STEP, STEP, END_TEXT, END_STEP, FINISH]], id="a text over two steps"),
        pytest.param([in_step(TEXT)], id="a text left open"),
        pytest.param([in_step(WORDS)], id="words without a text"),
        pytest.param([in_step(TEXT, TEXT, END_TEXT)], id="a text twice"),
        pytest.param([in_step(TEXT), [START, WORDS, END_TEXT, FINISH]], id="a text over two segments"),
        pytest.param([[START, {"type": "file", "url": "u", "mediaType": "a/b"}, FINISH]], id="a file without a step"),
        pytest.param([[START, begin(), FINISH]], id="a call outside of a step"),
        pytest.param([in_step(begin())], id="arguments left open"),
        pytest.param([in_step(begin(), whole(), begin())], id="a call twice"),
        pytest.param([in_step(begin(), delta(), whole(), delta())], id="arguments after they were whole"),
        pytest.param([in_step(begin(), whole(), whole())], id="whole twice"),
        pytest.param([in_step(whole())], id="a call without its name"),
        pytest.param([[START, STEP, begin(), END_STEP, STEP, whole(), END_STEP, FINISH]], id="whole in another step"),
        pytest.param([in_step(begin(), {**whole(), "toolName": "pay"})], id="another tool"),
        pytest.param([in_step(begin(), delta("{"), ask())], id="asked about half the arguments"),
        pytest.param([in_step(begin(), ask())], id="asked about nothing"),
        pytest.param([in_step(begin(), whole(), ask(), ask())], id="asked twice"),
        pytest.param([SHOWN_AND_ASKED, [START, delta(), FINISH]], id="arguments in another segment"),
        pytest.param([in_step(begin(), output())], id="a result without arguments"),
        pytest.param([in_step(begin(), whole(), output(), output())], id="two results"),
        pytest.param([[START, output(), FINISH]], id="a result of nothing"),
        pytest.param([in_step(begin(), delta(), ask(), whole())], id="handed over before the person agreed"),
        pytest.param([in_step({**TEXT, "more": 1}, END_TEXT)], id="a field that is not known"),
        pytest.param([[{**START, "messageId": None}, FINISH]], id="null"),
        pytest.param([[START, {"type": "finish", "finishReason": "unknown"}]], id="a reason that is not known"),
        pytest.param([in_step(begin(), whole(), {**ask(), "reason": "x"})], id="a field of version 7"),
        pytest.param([in_step({"type": "reasoning-file", "url": "u", "mediaType": "a/b"})], id="a chunk of version 7"),
        pytest.param([in_step({**TEXT, "providerMetadata": {"adk": 1}}, END_TEXT)], id="flat metadata"),
        pytest.param(
            [in_step(begin(), whole(), ask(), begin("b"), whole("b"), tool("output-denied"))],
            id="denied beside a call of the client's",
        ),
    ],
)
def test_no_client_reads_this(segments: list[list[Wire]]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        read(*segments)


@pytest.mark.parametrize(
    ("segments", "decided"),
    [
        pytest.param([SHOWN_AND_ASKED, [START, whole(), FINISH]], {"a": False}, id="handed over though denied"),
        pytest.param([SHOWN_AND_ASKED, [START, FINISH]], {"a": True}, id="a decision without a result"),
        pytest.param([BOTH_ASKED, [START, FINISH]], {"a": True, "b": False}, id="two decisions without a result"),
        pytest.param([BOTH_ASKED, [START, tool("output-denied"), FINISH]], {"a": False}, id="denied beside a question"),
        pytest.param(
            [BOTH_ASKED, [START, tool("output-denied"), STEP, TEXT, END_TEXT, END_STEP, output("b"), FINISH]],
            {"a": False, "b": True},
            id="denied before the other's result",
        ),
        pytest.param(
            [SHOWN_AND_ASKED, [START, STEP, TEXT, END_TEXT, whole(), END_STEP, FINISH]],
            {"a": True},
            id="handed over in another step",
        ),
        pytest.param(
            [in_step(begin(), whole(), ask()), [START, whole(), FINISH]], {"a": True}, id="handed over a second time"
        ),
    ],
)
def test_no_client_reads_this_after_it_was_asked(segments: list[list[Wire]], decided: dict[str, bool]) -> None:
    with pytest.raises(AssertionError):
        read(*segments, decided=decided)


@pytest.mark.parametrize(
    ("segments", "decided", "unfinished"),
    [
        pytest.param([in_step(TEXT, WORDS, END_TEXT)], {}, set(), id="words"),
        pytest.param(
            [in_step(begin(), delta("{"), begin(), delta(), ask())], {}, {"a"}, id="told anew and asked about"
        ),
        pytest.param([SHOWN_AND_ASKED, [START, whole(), FINISH]], {"a": True}, {"a"}, id="handed over"),
        pytest.param([BOTH_ASKED, [START, whole("b"), FINISH]], {"a": False, "b": True}, {"a", "b"}, id="denial kept"),
        pytest.param(
            [BOTH_ASKED, [START, tool("output-denied"), output("b"), STEP, END_STEP, WRITTEN]],
            {"a": False, "b": True},
            set(),
            id="denied together with the other's result",
        ),
        pytest.param(
            [BOTH_ASKED, [START, output(), TEXT, WORDS, END_TEXT, FINISH]], {"a": True}, {"b"}, id="on in the last step"
        ),
        pytest.param([in_step(begin(), whole(), output(preliminary=True))], {}, {"a"}, id="progress"),
    ],
)
def test_clients_read_this(segments: list[list[Wire]], decided: dict[str, bool], unfinished: set[str]) -> None:
    assert read(*segments, decided=decided).unfinished == unfinished


FINISHED = [begin(), whole(), output()]


@pytest.mark.parametrize(
    ("segment", "posts"),
    [
        pytest.param(in_step(*FINISHED), True, id="a result"),
        pytest.param(in_step(*FINISHED, TEXT, END_TEXT), True, id="a result and words"),
        pytest.param(in_step(begin(), whole(), output(preliminary=True)), True, id="progress, to older clients"),
        pytest.param([START, STEP, *FINISHED, END_STEP, STEP, END_STEP, FINISH], True, id="a step that is not written"),
        pytest.param([START, STEP, *FINISHED, END_STEP, STEP, END_STEP, WRITTEN], False, id="a step that is written"),
        pytest.param([*in_step(*FINISHED)[:-1], {"type": "error", "errorText": "x"}], False, id="an error"),
        pytest.param(in_step(*FINISHED, begin("b"), whole("b")), False, id="something is to be answered"),
        pytest.param(
            in_step({**begin(), "providerExecuted": True}, whole(), output()), False, id="the model's service"
        ),
        pytest.param(in_step(TEXT, END_TEXT), False, id="words"),
    ],
)
def test_stock_helpers_post_when_their_last_step_holds_nothing_but_results(segment: list[Wire], posts: bool) -> None:
    assert read(segment).posts_again == posts


AUTOMATIC: list[Wire] = [
    {"type": "tool-approval-request", "toolCallId": "a", "approvalId": "p", "isAutomatic": True},
    {"type": "tool-approval-response", "approvalId": "p", "approved": True},
]


def test_what_the_policy_has_decided_is_left_without_a_result_by_a_failed_run_alone() -> None:
    segment = in_step(begin(), whole(), *AUTOMATIC)
    with pytest.raises(AssertionError, match="a decision is left without a result"):
        read(segment, version=7)
    failed = read([*segment[:-1], {"type": "error", "errorText": "x"}], version=7)
    assert not failed.posts_again


def test_stock_helpers_post_when_all_is_decided() -> None:
    message = read(BOTH_ASKED)
    assert not message.posts_again
    message.decide("a", True)
    assert not message.posts_again
    message.decide("b", False)
    assert message.posts_again
