"""ADK's function calls and function responses, as the tool parts of one message."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, Records
from ...protocol.chunks import AnyChunk
from ...protocol.stream import ChunkWriter
from ...protocol.tool_parts import STOPPED
from ..event_parts import (
    ABORTED,
    CREDENTIAL,
    QUESTIONS,
    REQUEST_INPUT,
    ControlFlow,
    as_dict,
    auth_request,
    is_hidden,
    is_relayed,
    worked_on_in,
)
from .call_parts import CallPart, CallParts
from .speakers import Speaker
from .whole_parts import WholeParts
from .wire_ids import WireIds


@dataclass(frozen=True, eq=False)
class _DeferredCall:
    event: Event
    speaker: Speaker
    call: types.FunctionCall

    @property
    def key(self) -> CallKey:
        return CallKey(self.event.invocation_id, self.call.id or "")


def _is_long_running(event: Event, call: types.FunctionCall) -> bool:
    return call.id in (event.long_running_tool_ids or ()) and call.name not in QUESTIONS


class FunctionCalls:
    def __init__(
        self,
        writer: ChunkWriter,
        parts: CallParts,
        wire_ids: WireIds,
        whole_parts: WholeParts,
        control_flow: ControlFlow | None,
    ) -> None:
        self._writer = writer
        self._parts = parts
        self._wire_ids = wire_ids
        self._whole_parts = whole_parts
        self._control_flow = control_flow
        self.browser_tools: Collection[str] = ()
        """The names of tools that certainly run in the browser."""
        self._worked_on: dict[str, None] = {}  # ids of calls that an agent works on, or that outlive the segment
        self._deferred: list[_DeferredCall] = []
        self._of_answers: dict[str, list[str]] = {}  # the server's calls, by the events of their model's answers
        self._beside: dict[str, list[str]] = {}  # the same, by each of these calls

    # -- calls --------------------------------------------------------------------------------------------------------

    def stream(self, event: Event, speaker: Speaker, call: types.FunctionCall) -> list[AnyChunk]:
        """What a partial call adds to the arguments that the client sees."""
        if is_hidden(event, call, self._control_flow):  # a partial one is not ADK's own
            return []
        out: list[AnyChunk] = []
        for piece in speaker.arguments.feed(call):
            if piece.opens:
                out += [*self._writer.end_text(speaker), *self._leave_behind({})]
                out += self._writer.tool_input_start(self._wire_ids.new(speaker, piece.call_id), piece.name)
                speaker.streamed_calls.add(piece.call_id)
            if piece.text:
                out += self._writer.tools.input_delta(speaker.wire_ids[piece.call_id], piece.text)
        return out

    def are_deferred(self, event: Event, speaker: Speaker) -> bool:
        """Whether the calls of this event are shown only when it is known who acts on them. A tool of the server that
        goes on after the run must stand in an earlier step than a call that waits for the client: while a call of the
        last step has no result, the stock helpers post nothing. Arguments that have streamed are shown already."""
        if not event.long_running_tool_ids or speaker.streamed_calls:
            return False
        calls = [call for call in event.get_function_calls() if not is_hidden(event, call, self._control_flow)]
        return len(calls) > 1 and any(self._may_go_on(event, call) for call in calls)

    def _may_go_on(self, event: Event, call: types.FunctionCall) -> bool:
        return _is_long_running(event, call) and call.name not in self.browser_tools

    def add(
        self, event: Event, speaker: Speaker, call: types.FunctionCall, records: Records, *, is_deferred: bool = False
    ) -> list[AnyChunk]:
        """A call with its whole arguments."""
        call_id, name, arguments = call.id or "", call.name or "", call.args or {}
        if is_deferred and not is_hidden(event, call, self._control_flow):
            self._deferred.append(_DeferredCall(event, speaker, call))
            return []
        if is_hidden(event, call, self._control_flow):
            return []
        if is_relayed(event) and self._parts.has_call(CallKey(event.invocation_id, call_id)):
            return []  # a remote agent's task ends with what it has sent before
        if name == CONFIRMATION:
            return self._ask(speaker, call_id, arguments, records)
        if name == CREDENTIAL:
            asked_for = str(as_dict(arguments).get("functionCallId"))
            # A workflow's node has no call of its own: the workflow's waits.
            waiting = asked_for if self._wire_ids.of(asked_for) is not None else worked_on_in(event)
            self.works_on(waiting)
            wire_id = self._wire_ids.of(waiting)
            return self._writer.data("auth-request", auth_request(arguments, wire_id), id=call_id)
        out = self._writer.end_text(speaker)
        if call_id in speaker.streamed_calls:
            speaker.streamed_calls.discard(call_id)
        else:
            out += self._leave_behind(records)
            out += self._writer.tool_input_start(self._wire_ids.new(speaker, call_id), name)
        if name not in (*self.browser_tools, REQUEST_INPUT):
            self._beside[call_id] = self._of_answers.setdefault(event.id, [])
            self._beside[call_id].append(call_id)
        is_long_running = call_id in (event.long_running_tool_ids or ())
        part = CallPart(
            speaker.wire_ids[call_id],
            CallKey(event.invocation_id, call_id),
            outlives_run=is_long_running,
            is_input_request=is_long_running and name == REQUEST_INPUT,
        )
        return [*out, *self._parts.add(part, arguments, speaker.metadata)]

    def release(self, records: Records, before: Event | None = None) -> list[AnyChunk]:
        """Show the deferred calls. `before`: the event that follows them. By then each of them has run or waits, unless
        an agent works on one of them: then it is not known yet what becomes of the others."""
        deferred, self._deferred = self._deferred, []
        if not deferred:
            return []
        worked_on = worked_on_in(before) if before is not None else ""
        is_known = all(each.call.id != worked_on for each in deferred)
        may_go_on = [each for each in deferred if is_known and self._may_go_on(each.event, each.call)]
        going_on = [each for each in may_go_on if each.key not in records]
        if len(going_on) == len(deferred):
            going_on = []
        out: list[AnyChunk] = []
        for each in going_on:
            out += self.add(each.event, each.speaker, each.call, records)
            out += self._writer.tools.to_server(each.speaker.wire_ids[each.call.id or ""])
        out += self._writer.leave_behind([each.speaker.wire_ids[each.call.id or ""] for each in going_on])
        others = [each for each in deferred if each not in going_on]
        return out + [chunk for each in others for chunk in self.add(each.event, each.speaker, each.call, records)]

    def end_streamed(self, speaker: Speaker) -> list[AnyChunk]:
        """End the calls whose arguments streamed, and which the whole event does not have."""
        out: list[AnyChunk] = []
        for call_id in speaker.streamed_calls:
            out += self._writer.tools.input_error(speaker.wire_ids[call_id], "The call was not completed.")
        return out

    def _ask(self, speaker: Speaker, approval_id: str, question: dict[str, Any], records: Records) -> list[AnyChunk]:
        original_id = str(as_dict(question.get("originalFunctionCall")).get("id"))
        wire_id = speaker.wire_ids.get(original_id)
        if wire_id is None or not self._writer.tools.can_take_result(wire_id):  # asked for a call of another message
            return []
        return self._parts.ask(wire_id, approval_id, question, records)

    # -- calls that an agent works on ---------------------------------------------------------------------------------

    def worked_on_by(self, event: Event) -> str | None:
        """The wire id of the call that this agent works on."""
        worked_on = worked_on_in(event)
        wire_id = self._wire_ids.of(worked_on)
        if wire_id is not None:  # what stands beside it has no result before it: ADK stores them together
            self._worked_on |= dict.fromkeys([worked_on, *self._beside.get(worked_on, ())])
        return wire_id

    def works_on(self, call_id: str) -> None:
        """The server goes on with this call when the segment ends."""
        self._worked_on[call_id] = None

    @property
    def delegated(self) -> list[str]:
        """The wire ids of the calls that the server goes on with."""
        found = (self._wire_ids.of(call_id) for call_id in self._worked_on)
        return [wire_id for wire_id in found if wire_id is not None and self._writer.tools.can_take_result(wire_id)]

    def _leave_behind(self, records: Records) -> list[AnyChunk]:
        """A client takes whole arguments in its last step only, so they come before the next one begins."""
        going_on = [wire_id for wire_id in self.delegated if self._parts.goes_on(wire_id, records)]
        deferred = [wire_id for wire_id in going_on if self._writer.tools.is_deferred(wire_id)]
        out = [chunk for wire_id in deferred for chunk in self._writer.tools.to_server(wire_id)]
        return [*out, *self._writer.leave_behind(going_on)]

    def starts_work(self, event: Event) -> bool:
        """Whether this event is of an agent that works on a deferred call."""
        return any(each.call.id == worked_on_in(event) for each in self._deferred)

    def leave_delegated(self, records: Records) -> list[AnyChunk]:
        """The run ends while agents work on calls: one has asked the user back, or a tool runs in the background."""
        out: list[AnyChunk] = []
        for wire_id in self.delegated:
            tools = self._writer.tools
            is_open = not tools.has_progress(wire_id) and self._parts.goes_on(wire_id, records) is not False
            is_asked = self._parts.waits_for_person(wire_id, records) or self._parts.is_to_be_asked(wire_id, records)
            if is_open and not is_asked:
                out += self._writer.tools.output(wire_id, {"status": "pending"}, preliminary=True)
        return out

    # -- results ------------------------------------------------------------------------------------------------------

    def are_answered_by(self, results: Sequence[types.FunctionResponse]) -> bool:
        """Whether the client has answered, so that a segment ended here. The author does not say so: agents working on
        a task get results from the user, too."""
        return any(
            result.name == CONFIRMATION or self._parts.outlives_the_run(self._wire_ids.of(result.id or "") or "")
            for result in results
        )

    def take_results(
        self, event: Event, speaker: Speaker, results: Sequence[types.FunctionResponse], records: Records
    ) -> list[AnyChunk]:
        speaker.said.forget()
        taken: dict[str, types.FunctionResponse] = {}
        for result in results:
            wire_id = speaker.wire_ids.get(result.id or "") or self._wire_ids.of(result.id or "")
            if wire_id is None or not self._writer.tools.can_take_result(wire_id):
                continue  # a hidden call's, another message's, or a second result
            if result.id in event.actions.requested_tool_confirmations:
                continue  # a placeholder: the real result follows the person's answer
            taken[wire_id] = result
        out = self._parts.before_results(taken, records)
        for wire_id, result in taken.items():
            if event.error_code == ABORTED:
                # ADK's own response to a call that it aborted. The client reads what is recorded, or that it stopped.
                recorded = self._parts.recorded_end(wire_id, records, taken)
                out += self._writer.tools.error(wire_id, STOPPED, closing=taken) if recorded is None else recorded
                continue
            recorded = self._parts.result(wire_id, records, taken)
            out += self._result(event, wire_id, result, taken) if recorded is None else recorded
        return out

    def _result(
        self, event: Event, wire_id: str, result: types.FunctionResponse, closing: Collection[str]
    ) -> list[AnyChunk]:
        response = result.response or {}
        if response.keys() == {"error"}:
            return self._writer.tools.error(wire_id, str(response["error"]), closing=closing)
        is_progress = self._parts.outlives_the_run(wire_id) and event.author != "user"
        is_progress = is_progress or result.id in event.actions.requested_auth_configs  # it runs again
        out = self._writer.tools.output(wire_id, response, preliminary=is_progress, closing=closing)
        for file in result.parts or ():
            out += self._whole_parts.encode_result_file(file)
        return out
