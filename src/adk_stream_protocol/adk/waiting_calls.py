"""The calls of one message that wait for somebody - a person, a browser - and what the client is told of them."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from ..protocol.answers import CONFIRMATION
from ..protocol.approvals import Approval, CallKey, State
from ..protocol.chunks import AnyChunk, ProviderMetadata, ToolOutputAvailable, ToolOutputError
from ..protocol.messages import ApprovalStyle
from ..protocol.writer import ChunkWriter
from .event_parts import REQUEST_INPUT, as_dict
from .outcomes import recorded_response, refusal_text


class WaitingCalls:
    def __init__(self, writer: ChunkWriter, style: ApprovalStyle, approvals: Mapping[CallKey, Approval]) -> None:
        self.approvals = approvals
        """What is recorded about them."""
        self.asked: dict[str, CallKey] = {}
        """The calls that a person was asked about, by the approval's id."""
        self._writer = writer
        self._style = style
        self._browser_calls: dict[str, CallKey] = {}  # by their wire ids, as `_server_calls`
        self._server_calls: dict[str, CallKey] = {}
        self._undecided: set[str] = set()  # wire ids of calls of the server's that a person is being asked about
        self._other_calls: dict[str, CallKey] = {}  # of which a live session may turn out to ask
        self._held: list[str] = []  # wire ids of calls of which nothing is known yet
        self._input_requests: set[str] = set()  # wire ids of questions that no tool has asked: nothing is recorded
        self._questions: dict[str, dict[str, Any]] = {}  # of the confirmation tool, by their ids
        self._known_outputs: set[str] = set()  # wire ids of calls whose output the client has sent itself

    def hold(
        self, key: CallKey, wire_id: str, arguments: dict[str, Any], metadata: ProviderMetadata | None, *, tool: str
    ) -> list[AnyChunk]:
        """A call that outlives the run. Whether a person is asked about it, is recorded only after ADK tells of it."""
        if key in (*self._browser_calls.values(), *self._server_calls.values()):
            key = _NO_CALL  # what is recorded under this id is another call
        self._browser_calls[wire_id] = key
        self._held.append(wire_id)
        if tool == REQUEST_INPUT:
            self._input_requests.add(wire_id)
        return self._writer.tool_held(wire_id, arguments, metadata)

    def note(self, key: CallKey, wire_id: str) -> None:
        """A call that the server runs, as far as ADK tells."""
        self._other_calls[wire_id] = key

    @property
    def has_calls(self) -> bool:
        return bool(self._browser_calls or self._server_calls)

    def outlives_the_run(self, wire_id: str) -> bool:
        return wire_id in self._browser_calls

    def ask(self, key: CallKey, wire_id: str, approval_id: str, arguments: dict[str, Any]) -> list[AnyChunk]:
        """ADK asks a person about a call of the server's. `arguments`: those of its question."""
        if wire_id in self._undecided:
            return []
        self._undecided.add(wire_id)
        out: list[AnyChunk] = []
        if wire_id in self._held:  # a long-running tool of the server's
            self._held.remove(wire_id)
            out += self._writer.tool_to_server(wire_id)
        self._server_calls[wire_id] = key
        return [*out, *self._request(key, wire_id, approval_id, arguments)]

    def _request(self, key: CallKey, wire_id: str, approval_id: str, arguments: dict[str, Any]) -> list[AnyChunk]:
        self.asked[approval_id] = key
        if self._style == "confirmation-tool":
            self._questions[approval_id] = arguments
            return self._writer.tool_awaits_client(wire_id)
        confirmation = as_dict(arguments.get("toolConfirmation"))
        about: dict[str, Any] = {
            "hint": confirmation.get("hint"),
            "payload": confirmation.get("payload"),
            "deadline": _deadline(self.approvals.get(key)),
        }
        about = {name: value for name, value in about.items() if value is not None}
        out = self._writer.tool_approval_request(wire_id, approval_id, reason=about.get("hint"), descriptor=about)
        return [*out, *self._writer.data("approval", about, id=approval_id)]

    def settle(self) -> list[AnyChunk]:
        """Tell what has become of the calls that outlive the run: asked about, or handed to the client."""
        return [*self._ask_recorded(list(self._other_calls)), *self._settle_held(self._held), *self._ask_with_tool()]

    def before_results(self, wire_ids: Collection[str]) -> list[AnyChunk]:
        """What was asked about these calls in a live session: ADK has no event for it."""
        asked = [wire_id for wire_id in wire_ids if self._was_asked_live(wire_id)]
        held = [wire_id for wire_id in self._held if wire_id in asked]
        if not asked:
            return []
        return [*self._ask_recorded(asked), *self._settle_held(held), *self._ask_with_tool()]

    def _was_asked_live(self, wire_id: str) -> bool:
        key = self._other_calls.get(wire_id) or self._browser_calls.get(wire_id)
        approval = self.approvals.get(key) if key else None
        return approval is not None and approval.approval_id is not None and approval.approval_id not in self.asked

    def _ask_recorded(self, wire_ids: Collection[str]) -> list[AnyChunk]:
        out: list[AnyChunk] = []
        for wire_id in wire_ids:
            key = self._other_calls.get(wire_id)
            if key is not None and self._was_asked_live(wire_id) and self._writer.can_take_result(wire_id):
                approval = self.approvals[key]
                out += self.ask(key, wire_id, approval.approval_id or "", _question(approval))
        return out

    def _settle_held(self, wire_ids: Collection[str]) -> list[AnyChunk]:
        out: list[AnyChunk] = []
        for wire_id in list(wire_ids):
            key = self._browser_calls[wire_id]
            approval = self.approvals.get(key)
            if not self._writer.is_held(wire_id):
                self._held.remove(wire_id)
            elif approval is not None and approval.runs == "server":
                out += self.ask(key, wire_id, approval.approval_id or "", _question(approval))
            elif approval is not None:
                self._held.remove(wire_id)
                out += self._hand_over(wire_id, key, approval)
            elif wire_id in self._input_requests:
                self._held.remove(wire_id)
                out += self._writer.tool_to_client(wire_id)
            # else: nobody could answer what is not recorded
        return out

    def _hand_over(self, wire_id: str, key: CallKey, approval: Approval) -> list[AnyChunk]:
        if approval.approval_id is None:
            return self._writer.tool_to_client(wire_id)
        question = _question(approval)
        if self._style == "confirmation-tool":
            out = self._writer.tool_to_client(wire_id)
            return [*out, *self._request(key, wire_id, approval.approval_id, question)]
        out = self._request(key, wire_id, approval.approval_id, question)
        # In a message of the past the answer is known.
        return [*out, *self._writer.tool_to_client(wire_id)] if approval.state in _GIVEN_TO_BROWSER else out

    def _ask_with_tool(self) -> list[AnyChunk]:
        """All questions in one step of their own, when nothing else is open any more: in the calls' step the stock tool
        helper would wait for the calls themselves, and it looks at no step but the last."""
        out = self._writer.new_step() if self._questions else []
        for approval_id, arguments in self._questions.items():
            out += self._writer.tool_input_start(approval_id, CONFIRMATION)
            out += self._writer.tool_input_available(approval_id, arguments, awaits_client=True)
            approval = self.approvals.get(self.asked[approval_id])
            if approval is not None and approval.approved is not None:
                out += self._writer.tool_output(approval_id, _said(approval))
        self._questions.clear()
        return out

    def new_segment(
        self, message_id: str, answered: Collection[CallKey], known_outputs: Collection[CallKey]
    ) -> list[AnyChunk]:
        """The message goes on after answers of its client. `known_outputs`: those that the client has already, since it
        has sent them itself, or was told."""
        calls = {**self._browser_calls, **self._server_calls}
        self._undecided -= {wire_id for wire_id, key in self._server_calls.items() if key in answered}
        self._known_outputs = {wire_id for wire_id, key in calls.items() if key in known_outputs}
        self._writer.new_segment([wire_id for wire_id, key in self._server_calls.items() if key in answered])
        out = self._writer.start(message_id)
        for approval_id, key in self.asked.items():
            if key in answered and self._writer.can_take_result(approval_id):  # the confirmation tool's own call
                out += self._writer.tool_output_known(approval_id)
        for wire_id, key in self._browser_calls.items():
            approval = self.approvals.get(key)
            is_free_now = key in answered and approval is not None and _is_free(approval)
            if is_free_now and self._style == "approval-request":
                out += self._writer.tool_to_client(wire_id)
        return out

    def end_lost(self) -> list[AnyChunk]:
        """Calls that were begun and of whose end ADK was not told: nobody goes on with them."""
        out = self._ask_recorded(list(self._other_calls))
        for wire_id in self._server_calls:
            if self._writer.can_take_result(wire_id) and (text := self.lost_text(wire_id)) is not None:
                out += self._writer.tool_error(wire_id, text)
        return out

    def lost_text(self, wire_id: str) -> str | None:
        """What is told of a call of the server's that failed, or was stopped half-way."""
        approval = self.approvals.get(self._server_calls.get(wire_id, _NO_CALL))
        if approval is None or approval.state not in (State.FAILED, State.UNKNOWN):
            return None
        return recorded_response(approval)["error"] if approval.state is State.FAILED else refusal_text(approval)

    def told_by_client(self, answered: Collection[CallKey]) -> list[AnyChunk]:
        """What the client has written into its message itself: chunks for readers that begin with none of it."""
        out: list[AnyChunk] = []
        for wire_id in self._known_outputs:
            if wire_id in self._server_calls:
                out.append(ToolOutputError(wire_id, self.lost_text(wire_id) or ""))
                continue
            key = self._browser_calls[wire_id]
            result: dict[str, Any] = self.approvals[key].result if key in answered else {}
            if "error" in result:
                out.append(ToolOutputError(wire_id, result["error"]))
            elif "output" in result:
                out.append(ToolOutputAvailable(wire_id, result["output"]))
        for approval_id, key in self.asked.items() if self._style == "confirmation-tool" else ():
            approval = self.approvals.get(key)
            if key in answered and approval is not None and approval.approved is not None:
                out.append(ToolOutputAvailable(approval_id, _said(approval)))
        return out

    def result(self, wire_id: str, closing: Collection[str]) -> list[AnyChunk] | None:
        """The end of a call where the record tells more than ADK's event; None where it does not."""
        if wire_id in self._known_outputs:
            return self._writer.tool_output_known(wire_id, closing=closing)
        key = self._server_calls.get(wire_id) or self._browser_calls.get(wire_id) or _NO_CALL
        approval = self.approvals.get(key)
        if approval is None:
            return None
        if approval.state is State.DENIED or (approval.state is State.EXPIRED and approval.approved is False):
            return self._writer.tool_denied(wire_id, refusal_text(approval), closing=closing)
        if approval.runs == "browser" and approval.state is State.DONE:
            if "error" in approval.result:
                return self._writer.tool_error(wire_id, approval.result["error"], closing=closing)
            return self._writer.tool_output(wire_id, approval.result["output"], closing=closing)
        return None


def _question(approval: Approval) -> dict[str, Any]:
    return {
        "originalFunctionCall": {"id": approval.call.call_id, "name": approval.tool, "args": approval.arguments},
        "toolConfirmation": {"hint": approval.hint or "", "confirmed": False},
    }


def _said(approval: Approval) -> dict[str, Any]:
    said = {"confirmed": approval.approved, "reason": approval.reason, "payload": approval.payload}
    return {name: value for name, value in said.items() if value is not None}


def _is_free(approval: Approval) -> bool:
    return approval.runs == "browser" and approval.state is State.APPROVED


_NO_CALL = CallKey("", "")
_GIVEN_TO_BROWSER = (State.APPROVED, State.DONE)


def _deadline(approval: Approval | None) -> str | None:
    if approval is None or approval.deadline is None:
        return None
    return datetime.fromtimestamp(approval.deadline, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
