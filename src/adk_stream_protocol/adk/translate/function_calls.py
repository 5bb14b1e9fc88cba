"""ADK's function calls and function responses, as the tool parts of one message."""

from collections.abc import Collection, Sequence
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, Records
from ...protocol.chunks import AnyChunk
from ...protocol.stream import ChunkWriter
from ...protocol.tool_parts import STOPPED
from ..event_parts import ABORTED, CREDENTIAL, REQUEST_INPUT, ControlFlow, as_dict, auth_request, is_hidden
from .call_parts import CallPart, CallParts
from .speakers import Speaker
from .whole_parts import WholeParts
from .wire_ids import WireIds


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
        self._delegated: set[str] = set()  # wire ids of calls that an agent works on

    # -- calls --------------------------------------------------------------------------------------------------------

    def stream(self, event: Event, speaker: Speaker, call: types.FunctionCall) -> list[AnyChunk]:
        """What a partial call adds to the arguments that the client sees."""
        if is_hidden(event, call, self._control_flow):  # a partial one is not ADK's own
            return []
        out: list[AnyChunk] = []
        for piece in speaker.arguments.feed(call):
            if piece.opens:
                out += self._writer.end_text(speaker)
                out += self._writer.tool_input_start(self._wire_ids.new(speaker, piece.call_id), piece.name)
                speaker.streamed_calls.add(piece.call_id)
            if piece.text:
                out += self._writer.tools.input_delta(speaker.wire_ids[piece.call_id], piece.text)
        return out

    def add(self, event: Event, speaker: Speaker, call: types.FunctionCall, records: Records) -> list[AnyChunk]:
        """A call with its whole arguments."""
        call_id, name, arguments = call.id or "", call.name or "", call.args or {}
        if is_hidden(event, call, self._control_flow):
            return []
        if name == CONFIRMATION:
            return self._ask(speaker, call_id, arguments, records)
        if name == CREDENTIAL:
            return self._writer.data("auth-request", auth_request(arguments), id=call_id)
        out = self._writer.end_text(speaker)
        if call_id in speaker.streamed_calls:
            speaker.streamed_calls.discard(call_id)
        else:
            out += self._writer.tool_input_start(self._wire_ids.new(speaker, call_id), name)
        is_long_running = call_id in (event.long_running_tool_ids or ())
        part = CallPart(
            speaker.wire_ids[call_id],
            CallKey(event.invocation_id, call_id),
            outlives_run=is_long_running,
            is_input_request=is_long_running and name == REQUEST_INPUT,
        )
        return [*out, *self._parts.add(part, arguments, speaker.metadata)]

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
        """The wire id of the call that this agent works on. An agent that runs as a tool has the call's id behind its
        name."""
        wire_id = self._wire_ids.of((event.branch or "").rpartition(".")[2].partition("@")[2])
        if wire_id is not None:
            self._delegated.add(wire_id)
        return wire_id

    def works_on(self, call_id: str) -> None:
        """The segment will end while the server is at this call."""
        self._delegated.add(self._wire_ids.of(call_id) or "")

    def delegate(self, call_id: str) -> list[AnyChunk]:
        """An agent that runs as this tool is about to ask the client, in a step of its own."""
        wire_id = self._wire_ids.of(call_id) or ""
        if not self._writer.tools.can_take_result(wire_id) or wire_id in self._delegated:
            return []
        self._delegated.add(wire_id)
        return self._emit_pending(wire_id)

    def leave_delegated(self, records: Records) -> list[AnyChunk]:
        """The run ends while agents work on calls: one has asked the user back, or a tool runs in the background."""
        out: list[AnyChunk] = []
        for wire_id in self._delegated:
            if self._writer.tools.can_take_result(wire_id) and not self._parts.is_to_be_asked(wire_id, records):
                out += self._emit_pending(wire_id)
        return out

    def _emit_pending(self, wire_id: str) -> list[AnyChunk]:
        return self._writer.tools.output(wire_id, {"status": "pending"}, preliminary=True)

    # -- results ------------------------------------------------------------------------------------------------------

    def are_answered_by(self, results: Sequence[types.FunctionResponse]) -> bool:
        """Whether the client has answered: here a segment ended. Agents at a task have results from the user, too."""
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
        out = self._writer.tools.output(wire_id, response, preliminary=is_progress, closing=closing)
        for file in result.parts or ():
            out += self._whole_parts.encode_result_file(file)
        return out
