"""The checker finds every way in which a world can disagree, and nothing in a world that agrees."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from adk_stream_protocol.protocol.call_record import CallKey, ChatKey
from support.evidence import ClientStream, Said, World
from support.tool_log import ToolRun
from support.truth import NOT_ASKED, disagreements

CHAT = ChatKey("bank", "ann", "c1")
CALL = CallKey("e-1", "0")
ARGUMENTS = {"amount": 5}
PAID = {"paid": 5}
UNKNOWN = "Whether it took effect is unknown."
WAY = {
    "pending": ["pending"],
    "approved": ["pending", "approved"],
    "denied": ["pending", "denied"],
    "expired": ["pending", "expired"],
    "started": ["pending", "approved", "claimed", "started"],
    "done": ["pending", "approved", "claimed", "started", "done"],
    "failed": ["pending", "approved", "claimed", "started", "failed"],
    "outcome-unknown": ["pending", "approved", "claimed", "started", "outcome-unknown"],
}


# -- pieces of evidence -----------------------------------------------------------------------------------------------


def record(state: str, call: CallKey = CALL, **more: Any) -> Any:
    results: dict[str, Any] = {"done": PAID, "failed": {"error": "The tool pay failed."}}
    result = {"response": results[state], "state": {}} if state in results else None
    said = {"approved": {"pending": None, "expired": None, "denied": False}.get(state, True)}
    known = {"call": call, "tool": "pay", "arguments": ARGUMENTS, "state": state, "result": result, **said}
    return SimpleNamespace(**{**known, **more})


def trail(state: str, call: CallKey = CALL, by: str = "ann", arguments: Any = None) -> list[Any]:
    known = {"call": call, "tool": "pay", "arguments": arguments or ARGUMENTS}
    return [SimpleNamespace(state=passed, by=by, reason=None, **known) for passed in WAY[state]]


def ran(end: str | None = "returned", call: CallKey = CALL, **arguments: Any) -> ToolRun:
    return ToolRun("c1", call, "pay", arguments or ARGUMENTS, end)


def called(call: CallKey = CALL) -> list[Event]:
    """The model's call, and the result that only holds the place until somebody has decided."""
    part = types.Part(function_call=types.FunctionCall(id=call.call_id, name="pay", args=ARGUMENTS))
    asks = EventActions(requested_tool_confirmations={call.call_id: ToolConfirmation(hint="?")})
    made = Event(author="bank", invocation_id=call.invocation_id, content=types.Content(role="model", parts=[part]))
    return [made, answered({"error": "requires confirmation"}, call).model_copy(update={"actions": asks})]


def response(told: Any, call_id: str = "0") -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call_id, name="pay", response=told))


def answered(told: Any, call: CallKey = CALL) -> Event:
    content = types.Content(role="user", parts=[response(told, call.call_id)])
    return Event(author="bank", invocation_id=call.invocation_id, content=content)


def asked_model(told: Any) -> LlmRequest:
    return LlmRequest(contents=[types.Content(role="user", parts=[response(told)])])


def stream(*chunks: dict[str, Any], message: str = "m", **more: Any) -> ClientStream:
    opening: list[dict[str, Any]] = [{"type": "start", "messageId": message}]
    ending: list[dict[str, Any]] = [] if chunks and chunks[-1]["type"] == "cut" else [{"type": "finish"}]
    told = [*opening, *(chunk for chunk in chunks if chunk["type"] != "cut"), *ending]
    return ClientStream(**{"request": "a request", "status": 200, "chunks": told, **more})


def chunk(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"tool-{kind}", "toolCallId": "0", **fields}


ASKED = stream(chunk("input-available", input=ARGUMENTS), chunk("approval-request", approvalId="ok"))


def in_history(state: str, **fields: Any) -> list[dict[str, Any]]:
    part = {"type": "tool-pay", "toolCallId": "0", "state": state, "input": ARGUMENTS, **fields}
    return [{"id": "m", "role": "assistant", "parts": [{"type": "step-start"}, part]}]


SAID_YES = [Said(tool="pay", arguments=ARGUMENTS, approved=True)]
SAID_NO = [Said(tool="pay", arguments=ARGUMENTS, approved=False)]


# -- worlds that agree ------------------------------------------------------------------------------------------------


def world(state: str, run: ToolRun | None, told: Any, *shown: Any, **more: Any) -> World:
    """A call that was asked about, and has come so far."""
    chunks, history = shown
    known: dict[str, Any] = {
        "chat": CHAT,
        "runs": [run] if run else [],
        "records": [record(state)],
        "audit": trail(state),
        "events": [*called(), *([answered(told)] if told else [])],
        "requests": [asked_model(told or {"error": "requires confirmation"})],
        "streams": [
            ASKED,
            *([stream(*chunks, answered=frozenset("0"), recorded_then={CALL: state})] if chunks else []),
        ],
        "history": history,
    }
    return World(**{**known, **more})


def error(text: str) -> dict[str, Any]:
    return {"error": text}


YES = {"approval": {"id": "ok", "approved": True}}
NO = {"approval": {"id": "ok", "approved": False}}
DONE = world(
    "done", ran(), PAID, [chunk("output-available", output=PAID)], in_history("output-available", output=PAID, **YES)
)
PENDING = world("pending", None, None, None, in_history("approval-requested", approval={"id": "ok"}))
DENIED = world("denied", None, error("not run"), [chunk("output-denied")], in_history("output-denied", **NO))
EXPIRED = world(
    "expired", None, error("not run"), [chunk("output-error", errorText="late")], in_history("output-error")
)
FAILED = world(
    "failed",
    ran("raised"),
    error("failed"),
    [chunk("output-error", errorText="It failed.")],
    in_history("output-error", errorText="It failed.", **YES),
)
LOST = world(
    "outcome-unknown",
    ran("cancelled"),
    error(UNKNOWN),
    [chunk("output-error", errorText=UNKNOWN)],
    in_history("output-error", errorText=UNKNOWN, **YES),
)


def refused(reason: str) -> list[Any]:
    *earlier, last = DENIED.audit
    return [*earlier, SimpleNamespace(**{**vars(last), "reason": reason})]


AGREE = {
    "done": DONE,
    "pending": PENDING,
    "denied": DENIED,
    "expired": EXPIRED,
    "failed": FAILED,
    "unknown": LOST,
    "done, and said": replace(DONE, said=SAID_YES),
    "denied, and said": replace(DENIED, said=SAID_NO),
    "denied by a stop": replace(DENIED, said=[], was_stopped=True),
    "refused before anybody was asked": replace(DENIED, said=[], audit=refused(NOT_ASKED), streams=DENIED.streams[1:]),
    "returned and not recorded in time": replace(LOST, runs=[ran()]),
    "died with its process": replace(LOST, runs=[ran(None)]),
    "not told yet": replace(DONE, events=called(), is_settled=False),
    "approved, and the run goes on": replace(
        world("approved", None, None, None, in_history("approval-responded", **YES)), is_settled=False
    ),
    "deleted": replace(DONE, records=[], events=[], requests=[], history=None),
    "deleted, and the id came again": replace(
        DONE, audit=[*trail("pending", CallKey("e-0", "0"), arguments={"amount": 1}), *trail("done")]
    ),
    "deleted, and the same came again": replace(
        DONE, audit=[*trail("pending", CallKey("e-0", "0")), *trail("done")], streams=[ASKED]
    ),
    "deleted, and the id came again, unrecorded": replace(
        DONE,
        records=[],
        events=[],
        requests=[],
        history=[],
        streams=[
            *DONE.streams,
            stream(
                chunk("input-available", input={"amount": 1}), chunk("output-error", errorText="stopped"), message="n"
            ),
        ],
    ),
    "taken back": replace(
        DONE,
        events=[
            *called(),
            Event(author="user", invocation_id="e-2", actions=EventActions(rewind_before_invocation_id="e-1")),
        ],
        requests=[LlmRequest(contents=[])],
        history=[],
    ),
    "an earlier stream was left": replace(DONE, streams=[*DONE.streams, stream({"type": "cut"}, was_left=True)]),
    "doubted while the store was down": replace(
        DONE,
        streams=[ASKED, stream(chunk("output-error", errorText=UNKNOWN))],
        record_was_unreadable=True,
    ),
    "delivered": replace(DONE, records=[record("done", delivered=True)]),
    "a denial that waits for its sibling": replace(
        DENIED,
        history=[{"id": "m", "parts": in_history("approval-responded", **NO)[0]["parts"] + [
            {"type": "tool-pay", "toolCallId": "1", "state": "approval-requested", "input": {}}
        ]}],
    ),
    "a refusal while the store is down": replace(DONE, streams=[*DONE.streams, ClientStream(request="x", status=503)]),
}  # fmt: skip


@pytest.mark.parametrize("name", AGREE)
def test_a_world_that_agrees(name: str) -> None:
    assert disagreements(AGREE[name]) == []


# -- and every way to disagree ----------------------------------------------------------------------------------------


def shows(*chunks: dict[str, Any], base: World = DONE, **more: Any) -> World:
    return replace(base, streams=[ASKED, stream(*chunks, **more)])


def answer(state: str = "done", **more: Any) -> dict[str, Any]:
    return {"answered": frozenset("0"), "recorded_then": {CALL: state}, **more}


TWIN = CallKey("e-2", "0")
FAILURE = in_history("output-error", errorText="The agent could not answer. Try again.")
DISAGREE: dict[str, tuple[World, str]] = {
    "twice": (replace(DONE, runs=[ran(), ran()]), "ran 2 times"),
    "unapproved": (replace(DONE, audit=trail("done", by="eve")), "no approval by the chat's owner"),
    "other arguments": (replace(DONE, runs=[ran(amount=900)]), 'ran as pay({"amount": 900})'),
    "not meant": (replace(DONE, said=SAID_NO), "which nobody has approved"),
    "denied by nobody": (replace(DENIED, said=SAID_YES), "nobody has denied it"),
    "refused after somebody was asked": (replace(DENIED, said=[], audit=refused(NOT_ASKED)), "nobody has denied it"),
    "refused for another reason": (
        replace(DENIED, said=[], audit=refused("no"), streams=DENIED.streams[1:]),
        "nobody has denied it",
    ),
    "done, and never ran": (replace(DONE, runs=[]), "never ran"),
    "pending, and ran": (replace(PENDING, runs=[ran()]), "returned, and it is recorded as pending"),
    "denied, and ran": (replace(DENIED, runs=[ran()]), "returned, and it is recorded as denied"),
    "started, and returned": (
        world("started", ran(), None, None, in_history("approval-responded", **YES)),
        "returned, and it is recorded as started",
    ),
    "cancelled, and failed": (replace(FAILED, runs=[ran("cancelled")]), "cancelled, and it is recorded as failed"),
    "died, and done": (replace(DONE, runs=[ran(None)]), "came to no end, and it is recorded as done"),
    "returned, and failed": (replace(FAILED, runs=[ran()]), "returned, and it is recorded as failed"),
    "done, shown as failed": (
        shows(chunk("output-error", errorText="Try again."), **answer()),
        'shows output-error "Try again.", and it is recorded as done',
    ),
    "done, shown as unknown": (shows(chunk("output-error", errorText=UNKNOWN)), "and it is recorded as done"),
    "done, shown with another result": (shows(chunk("output-available", output={"paid": 6})), "output-available"),
    "done, and its answer ended without": (shows(**answer()), "ended without its outcome"),
    "unknown, and its answer ended without": (
        shows(base=LOST, **answer("outcome-unknown")),
        "ended without its outcome, though it is recorded as outcome-unknown",
    ),
    "done, history failed": (replace(DONE, history=FAILURE), "the history shows output-error"),
    "done, history open": (replace(DONE, history=in_history("approval-responded", **YES)), "shows approval-responded"),
    "done, history without": (replace(DONE, history=[]), "shown 0 times by the history"),
    "done, history twice": (replace(DONE, history=[*(DONE.history or []), *(DONE.history or [])]), "shown 2 times"),
    "denied, shown as done": (shows(chunk("output-available", output=PAID), base=DENIED), "recorded as denied"),
    "expired, shown as done": (shows(chunk("output-available", output=PAID), base=EXPIRED), "recorded as expired"),
    "failed, shown as done": (shows(chunk("output-available", output=PAID), base=FAILED), "recorded as failed"),
    "unknown, shown as done": (shows(chunk("output-available", output=PAID), base=LOST), "as outcome-unknown"),
    "unknown, shown as not run": (shows(chunk("output-error", errorText="not run"), base=LOST), "outcome-unknown"),
    "unknown, shown as denied": (shows(chunk("output-denied"), base=LOST), "recorded as outcome-unknown"),
    "pending, shown as ended": (shows(chunk("output-error", errorText="Stopped."), base=PENDING), "as pending"),
    "pending, history ended": (replace(PENDING, history=FAILURE), "it waits for a decision"),
    "the history tells another decision": (
        replace(DONE, history=in_history("output-available", output=PAID, **NO)),
        "the history shows approved = False",
    ),
    "shown with other arguments": (
        replace(DONE, streams=[stream(chunk("input-available", input={"amount": 1}))]),
        'shows the arguments {"amount": 1}',
    ),
    "asked, and not recorded": (
        shows(chunk("approval-request", toolCallId="7", approvalId="x")),
        "'7' was shown as a call to approve, and is not recorded",
    ),
    "two calls of one id": (
        replace(DONE, records=[*DONE.records, record("done", TWIN)], runs=[ran(), ran(call=TWIN)]),
        "2 calls of this chat have the id '0'",
    ),
    "told another result": (replace(DONE, events=[*called(), answered({"paid": 6})]), "the session tells"),
    "told a failure": (replace(DONE, events=[*called(), answered(PAID), answered(error("aborted"))]), "session tells"),
    "told of a pending call": (replace(PENDING, events=[*called(), answered(error("aborted"))]), "session tells"),
    "told as not run, though unknown": (replace(LOST, events=[*called(), answered(error("no"))]), "session tells"),
    "never told": (replace(DONE, events=called()), "the session never tells its outcome"),
    "the model reads another": (replace(DONE, requests=[asked_model({"paid": 6})]), "the model was last told"),
    "the model reads nothing": (replace(DONE, requests=[LlmRequest(contents=[])]), "the model was last told []"),
    "the trail ends elsewhere": (replace(DONE, audit=trail("started")), "the audit trail ends with started"),
    "left approved": (
        world("approved", None, None, None, in_history("approval-responded", **YES)),
        "was approved, and nobody has run it",
    ),
    "left started": (world("started", ran(None), None, None, in_history("approval-responded", **YES)), "nothing runs"),
    "delivered, and not": (
        replace(DONE, records=[record("done", delivered=True)], events=called(), is_settled=False),
        "marked as delivered",
    ),
    "deleted, and the trail stops": (
        replace(DONE, records=[], audit=trail("started"), events=[], history=None),
        "returned, and it is recorded as started",
    ),
    "deleted, and still recorded": (replace(DONE, history=None), "1 of its calls are still recorded"),
    "a failure of the server's": (
        replace(DONE, streams=[ClientStream(request="GET messages", status=500)]),
        "GET messages was answered with 500",
    ),
    "an answer is refused": (
        replace(DONE, streams=[ClientStream(request="approve", status=409, answered=frozenset("0"))]),
        "refused because the chat is busy",
    ),
    "no end": (replace(DONE, streams=[stream({"type": "cut"})]), "does not come to one end: []"),
    "two ends": (replace(DONE, streams=[stream({"type": "abort"})]), "does not come to one end: ['abort', 'finish']"),
    "no [DONE]": (replace(DONE, streams=[stream(is_done=False)]), "does not come to one end"),
}


@pytest.mark.parametrize("name", DISAGREE)
def test_a_world_that_disagrees(name: str) -> None:
    broken, words = DISAGREE[name]
    assert words in " / ".join(disagreements(broken)), disagreements(broken)


# -- calls of the browser's -------------------------------------------------------------------------------------------


def of_browser(state: str, result: Any, told: Any, history: Any) -> World:
    at_work = world(state, None, told, None, history, browser_tools=frozenset({"pay"}))
    return replace(at_work, records=[record(state, result=result)])


@pytest.mark.parametrize(
    "agrees",
    [
        of_browser("done", {"output": PAID}, PAID, in_history("output-available", output=PAID)),
        of_browser("done", {"output": "Tokyo"}, {"result": "Tokyo"}, in_history("output-available", output="Tokyo")),
        of_browser("done", {"error": "no"}, error("no"), in_history("output-error", errorText="no")),
        of_browser("approved", None, None, in_history("input-available")),
    ],
)
def test_what_the_browser_gave_is_its_result(agrees: World) -> None:
    assert disagreements(agrees) == []


def test_an_error_of_a_browser_call_whose_record_was_deleted_may_be_what_it_gave() -> None:
    shown = [stream(chunk("output-error", errorText="Not run."))]
    deleted = replace(DONE, records=[], runs=[], events=[], history=None, streams=shown)
    assert disagreements(replace(deleted, browser_tools=frozenset({"pay"}))) == []
    assert "recorded as done" in " / ".join(disagreements(replace(deleted, runs=[ran()])))


def test_another_output_than_the_recorded_one_is_found() -> None:
    other = of_browser("done", {"output": PAID}, {"paid": 7}, in_history("output-available", output={"paid": 6}))
    assert len(disagreements(other)) == 3
