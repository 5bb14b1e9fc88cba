"""Calls that were asked about, and the forms in which clients answer them."""

from collections.abc import Callable
from typing import Any, Literal

from adk_stream_protocol.protocol.answers import AskedCall, decode_answers
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey, State

ARGUMENTS: dict[str, Any] = {"to": "Bo", "sum": 5, "deep": {"list": [1, 2]}}
OUTPUT = {"latitude": 1.5}
CONFIRMATION = "adk_request_confirmation"

Part = dict[str, Any]
Said = tuple[bool | None, Any]  # the decision, the result


def asked(
    name: str = "c1",
    runs: Literal["server", "browser"] = "server",
    state: State = State.PENDING,
    *,
    is_gated: bool = True,
    arguments: Any = ARGUMENTS,
    invocation: str = "e-1",
) -> AskedCall:
    """A call whose approval is called `ok-` and its name."""
    approval = CallRecord(
        chat=ChatKey("shop", "ann", "chat"),
        call=CallKey(invocation, name),
        tool="pay",
        arguments=arguments,
        executor=runs,
        state=state,
        asked_at=0.0,
    )
    return AskedCall(wire_id=name, approval_id=f"ok-{name}" if is_gated else None, record=approval)


def said(parts: list[Part], *calls: AskedCall) -> list[Said]:
    return [(answer.approved, answer.result) for answer in decode_answers(parts, calls)]


def tool_part(state: str, call: str = "c1", **more: Any) -> Part:
    return {"type": "tool-pay", "toolCallId": call, "state": state, "input": ARGUMENTS, **more}


def responded(approved: Any, call: str = "c1", **more: Any) -> Part:
    return tool_part("approval-responded", call, approval={"id": f"ok-{call}", "approved": approved, **more})


def confirmation(state: str, call: str = "c1", **more: Any) -> Part:
    asked_about = {"originalFunctionCall": {"id": call, "name": "pay", "args": ARGUMENTS}, "toolConfirmation": {}}
    return {"type": f"tool-{CONFIRMATION}", "toolCallId": f"ok-{call}", "state": state, "input": asked_about, **more}


def confirmed(confirmed: Any, call: str = "c1", **more: Any) -> Part:
    return confirmation("output-available", call, output={"confirmed": confirmed, **more})


def result(call: str, value: Any, key: str = "output") -> Part:
    return {"type": "tool-result", "toolCallId": call, "toolName": "pay", key: value}


def dynamic(part: Part) -> Part:
    return {**part, "type": "dynamic-tool", "toolName": part["type"].removeprefix("tool-")}


DECISIONS: dict[str, Callable[[Any], Part]] = {
    "the tool's part": responded,
    "the tool's part, dynamic": lambda yes: dynamic(responded(yes)),
    "an answered confirmation tool": confirmed,
    "an answered confirmation tool, dynamic": lambda yes: dynamic(confirmed(yes)),
    "an approval on the confirmation tool": lambda yes: confirmation(
        "approval-responded", approval={"id": "any", "approved": yes}
    ),
    "a result for the confirmation": lambda yes: result("ok-c1", {"confirmed": yes}),
    "a wrapped result for the confirmation": lambda yes: result(
        "ok-c1", {"type": "json", "value": {"confirmed": yes}}, "result"
    ),
}
WORDS = {True: "approved", False: "denied"}
SERVER = {f"server, {state}": asked(state=state) for state in State}
BROWSER_STATES = (State.PENDING, State.APPROVED, State.DENIED, State.EXPIRED, State.WITHDRAWN, State.DONE)
GATED = {f"gated browser, {state}": asked("c1", "browser", state) for state in BROWSER_STATES}
FREE = {f"browser, {state}": asked("c1", "browser", state, is_gated=False) for state in BROWSER_STATES[1:]}

OUTPUTS: dict[str, tuple[Part, dict[str, Any]]] = {
    "output": (tool_part("output-available", output=OUTPUT), {"output": OUTPUT}),
    "output, dynamic": (dynamic(tool_part("output-available", output=OUTPUT)), {"output": OUTPUT}),
    "no output": (tool_part("output-available", output=None), {"output": None}),
    "error": (tool_part("output-error", errorText="No signal."), {"error": "No signal."}),
    "result": (result("c1", OUTPUT), {"output": OUTPUT}),
    "result of an older client": (result("c1", OUTPUT, "result"), {"output": OUTPUT}),
    "wrapped result": (result("c1", {"type": "json", "value": OUTPUT}), {"output": OUTPUT}),
    "wrapped text": (result("c1", {"type": "text", "value": "Tokyo"}), {"output": "Tokyo"}),
}


def with_input(value: Any) -> dict[str, Part]:
    return {
        "part": responded(True) | {"input": value},
        "confirmation": confirmed(True) | {"input": {"originalFunctionCall": {"args": value}}},
        "output": tool_part("output-available", output=OUTPUT) | {"input": value},
    }
