"""CallParts: what the client reads of the calls of one message, from ADK's events and the records together.

Where both say something, the record counts. Methods get the records as arguments: there is no copy here that could be
out of date.
"""

from collections.abc import Collection, Iterable
from typing import Any

from ...protocol.answers import CONFIRMATION
from ...protocol.approval_chain import BY_POLICY
from ...protocol.call_keys import work_key
from ...protocol.call_record import CallKey, CallRecord, Records, State
from ...protocol.chunks import AnyChunk, ProviderMetadata, ToolOutputAvailable, ToolOutputError
from ...protocol.digest import has_large_integer, shown_arguments
from ...protocol.messages import ApprovalStyle
from ...protocol.stream import ChunkWriter
from ..calls.long_running import STILL_AT_WORK
from ..calls.outcomes import refusal_text
from ..calls.policy import is_for_people
from ..event_parts import as_dict
from .approval_card import card_of
from .call_part import CallPart, show_automatic, show_chain, show_others
from .recorded_chunks import decision_of, is_denied, question_of, recorded_chunk, work_of

_NO_CALL = CallKey("", "")
_GIVEN_TO_BROWSER = (State.APPROVED, State.DONE)


class CallParts:
    def __init__(self, writer: ChunkWriter, style: ApprovalStyle) -> None:
        self._writer = writer
        self._style = style
        self._parts: dict[str, CallPart] = {}
        self._calls: set[CallKey] = set()
        self._asked: dict[str, CallPart] = {}  # by the ids under which people were asked
        self._open: dict[str, CallPart] = {}  # those that may still get a result, and perhaps others
        self._questions: dict[str, dict[str, Any]] = {}  # of the confirmation tool, by their ids, not sent yet

    # -- calls --------------------------------------------------------------------------------------------------------

    def add(self, part: CallPart, arguments: dict[str, Any], metadata: ProviderMetadata | None) -> list[AnyChunk]:
        """A call has its whole arguments. It is deferred while it is not known who acts on it, or how it is shown."""
        if part.call in self._calls:
            part.call = _NO_CALL  # the record under this id is another call's
        self._calls.add(part.call)
        self._parts[part.wire_id] = self._open[part.wire_id] = part
        if part.outlives_run or has_large_integer(arguments):
            return self._writer.tools.defer(part.wire_id, arguments, metadata)
        return self._writer.tools.input_available(part.wire_id, arguments, metadata=metadata)

    def has_call(self, call: CallKey) -> bool:
        return call in self._calls

    def outlives_the_run(self, wire_id: str) -> bool:
        part = self._parts.get(wire_id)
        return part is not None and part.outlives_run

    def is_to_be_asked(self, wire_id: str, records: Records) -> bool:
        """Whether a live session is about to ask a person about this call."""
        part = self._parts.get(wire_id)
        return part is not None and self._was_asked_live(part, records)

    def waits_for_person(self, wire_id: str, records: Records) -> bool:
        part = self._parts.get(wire_id)
        if part is None or not part.is_undecided:
            return False
        record = records.get(part.call)
        return record is None or not record.is_decided

    def has_asked(self, call: CallKey, records: Records) -> bool:
        """Whether the client can answer this call."""
        part = next((part for part in self._parts.values() if part.call == call), None)
        record = records.get(call)
        if part is None or record is None:
            return False
        if not record.asks_owner:
            return part.shown_version is not None
        return part.approval_id is not None if record.approval_id else not self._writer.tools.is_deferred(part.wire_id)

    def asked_as(self, approval_id: str, records: Records) -> CallRecord | None:
        """The record of the call that a person was asked about under this id."""
        part = self._asked.get(approval_id)
        return records.get(part.call) if part is not None and part.approval_id == approval_id else None

    # -- questions ----------------------------------------------------------------------------------------------------

    def ask(self, wire_id: str, approval_id: str, question: dict[str, Any], records: Records) -> list[AnyChunk]:
        """A person is asked about a call of the server. `question`: the arguments of ADK's confirmation call."""
        part = self._parts[wire_id]
        record = records.get(part.call)
        if record is not None and not record.asks_owner:
            return show_others(self._writer, part, record)
        if record is not None and record.decided_by == BY_POLICY:
            return show_automatic(self._writer, part, record)
        if part.is_undecided:
            return []
        part.is_undecided = part.is_servers = True
        out = self._writer.tools.to_server(wire_id, is_asked=True) if self._writer.tools.is_deferred(wire_id) else []
        return [*out, *self._request(part, approval_id, question, records)]

    def _request(self, part: CallPart, approval_id: str, question: dict[str, Any], records: Records) -> list[AnyChunk]:
        part.approval_id = approval_id
        confirmation = as_dict(question.get("toolConfirmation"))
        if not is_for_people(confirmation.get("hint")):
            confirmation = {**confirmation, "hint": ""}
            question = {**question, "toolConfirmation": confirmation}
        self._asked.setdefault(approval_id, part)
        if self._style == "confirmation-tool":
            self._questions[approval_id] = shown_arguments(question)
            return self._writer.tools.asked_elsewhere(part.wire_id)
        record = records.get(part.call)
        hint, payload = confirmation.get("hint") or None, confirmation.get("payload")
        if record is not None:
            about = card_of(record, hint, payload)
            part.shown_version = record.version
        else:
            about = {"hint": hint, "payload": shown_arguments(payload)}
            about = {name: value for name, value in about.items() if value is not None}
        out = self._writer.tools.approval_request(part.wire_id, approval_id, reason=about.get("hint"), descriptor=about)
        return [*out, *self._writer.data("approval", about, id=approval_id)]

    def settle(self, records: Records) -> list[AnyChunk]:
        """Emit what is decided about open calls: a person is asked about them, or they are the client's to answer."""
        return self._settle(self._still_open(), records)

    def _settle(self, parts: Collection[CallPart], records: Records) -> list[AnyChunk]:
        return [
            *self._ask_recorded(parts, records),
            *self._settle_deferred(parts, records),
            *self._ask_with_tool(records),
        ]

    def _still_open(self) -> Collection[CallPart]:
        self._open = {id: part for id, part in self._open.items() if self._writer.tools.can_take_result(id)}
        return self._open.values()

    def before_results(self, wire_ids: Iterable[str], records: Records) -> list[AnyChunk]:
        """The questions that a live session asked about these calls: ADK has no events for them."""
        known = [self._parts[wire_id] for wire_id in wire_ids if wire_id in self._parts]
        answered = [chunk for part in known for chunk in self._end_question(part, records)]
        parts = [part for part in known if self._was_asked_live(part, records)]
        return [*answered, *self._settle(parts, records)] if parts else answered

    def _end_question(self, part: CallPart, records: Records) -> list[AnyChunk]:
        """Of the confirmation tool: it was answered while a segment was open, which therefore shows the answer."""
        if part.approval_id is None or not self._writer.tools.can_take_result(part.approval_id):
            return []
        record = records.get(part.call)
        if record is None or record.approved is None:
            return self._writer.tools.output_known(part.approval_id)
        return self._writer.tools.output(part.approval_id, decision_of(record))

    def _was_asked_live(self, part: CallPart, records: Records) -> bool:
        record = records.get(part.call)
        if record is None or record.approval_id is None:
            return False
        return part.approval_id is None if record.asks_owner else part.shown_version != record.version

    def _ask_recorded(self, parts: Iterable[CallPart], records: Records) -> list[AnyChunk]:
        out: list[AnyChunk] = []
        for part in parts:
            can_be_asked = not part.outlives_run and self._writer.tools.can_take_result(part.wire_id)
            if can_be_asked and self._was_asked_live(part, records):
                out += self._ask_as_recorded(part, records[part.call], records)
        return out

    def _ask_as_recorded(self, part: CallPart, record: CallRecord, records: Records) -> list[AnyChunk]:
        return self.ask(part.wire_id, record.approval_id or "", question_of(record), records)

    def _settle_deferred(self, parts: Iterable[CallPart], records: Records) -> list[AnyChunk]:
        out: list[AnyChunk] = []
        for part in parts:
            if not self._writer.tools.is_deferred(part.wire_id):
                continue
            record = records.get(part.call)
            if not part.outlives_run:  # deferred for its large integers; nobody was asked about it
                out += self._writer.tools.to_server(part.wire_id)
                continue
            if record is not None and record.executor == "server":
                out += self._ask_as_recorded(part, record, records)
            elif record is not None:
                out += self._hand_over(part, record, records)
            elif part.is_input_request:
                out += self._writer.tools.to_client(part.wire_id)
            # else: no answer could be recorded
        return out

    def _hand_over(self, part: CallPart, record: CallRecord, records: Records) -> list[AnyChunk]:
        if record.approval_id is None:
            return self._writer.tools.to_client(part.wire_id)
        if not record.asks_owner:
            out = show_others(self._writer, part, record)
            return [*out, *self._writer.tools.to_client(part.wire_id)] if record.state in _GIVEN_TO_BROWSER else out
        if record.decided_by == BY_POLICY:
            out = show_automatic(self._writer, part, record)
            return [*out, *self._writer.tools.to_client(part.wire_id)]
        question = question_of(record)
        if self._style == "confirmation-tool":
            out = self._writer.tools.to_client(part.wire_id)
            return [*out, *self._request(part, record.approval_id, question, records)]
        out = self._request(part, record.approval_id, question, records)
        # In a replayed message the answer is known already.
        return [*out, *self._writer.tools.to_client(part.wire_id)] if record.state in _GIVEN_TO_BROWSER else out

    def _ask_with_tool(self, records: Records) -> list[AnyChunk]:
        """All questions in one step of their own, when nothing else is open any more. In the step of the calls, the
        stock tool helper would wait for the calls themselves. It looks only at the last step."""
        out = self._writer.new_step() if self._questions else []
        for approval_id, question in self._questions.items():
            out += self._writer.tool_input_start(approval_id, CONFIRMATION)
            out += self._writer.tools.input_available(approval_id, question, awaits_client=True)
            record = self.asked_as(approval_id, records)
            if record is not None and record.owner_said is not None:
                out += self._writer.tools.output(approval_id, decision_of(record))
        self._questions.clear()
        return out

    # -- segments -----------------------------------------------------------------------------------------------------

    def new_segment(
        self,
        message_id: str,
        records: Records,
        answered: Collection[CallKey],
        known_outputs: Collection[CallKey],
    ) -> list[AnyChunk]:
        """The message goes on after answers of its client. `known_outputs`: calls whose outputs the client has."""
        at_work: list[str] = []
        for part in self._parts.values():
            part.is_known = part.call in known_outputs
            if part.is_servers and part.call in answered:
                part.is_undecided = False
                at_work.append(part.wire_id)
        self._writer.new_segment(at_work)
        self._open = dict(self._parts)
        out = self._writer.start(message_id)
        taken_up = [part for part in self._parts.values() if part.call in answered]
        for part in taken_up:  # the confirmation tool's own call
            if part.approval_id is not None and self._writer.tools.can_take_result(part.approval_id):
                out += self._writer.tools.output_known(part.approval_id)
        for part in taken_up:
            record = records.get(part.call)
            if record is not None:
                out += show_chain(self._writer, part, record)
            is_free = record is not None and record.executor == "browser" and record.state is State.APPROVED
            is_shown = self._style == "approval-request" or (record is not None and not record.asks_owner)
            if is_free and part.outlives_run and is_shown:
                out += self._writer.tools.to_client(part.wire_id)
        return out

    def sent_by_client(self, records: Records, answered: Collection[CallKey]) -> list[AnyChunk]:
        """The answers that the client has written into its own message, as chunks for readers that do not have them."""
        out: list[AnyChunk] = []
        for part in self._parts.values():
            record = records.get(part.call)
            if record is None or part.call not in answered:
                continue
            if part.is_known:
                out.append(recorded_chunk(part.wire_id, record))
            if self._style == "confirmation-tool" and part.approval_id in self._asked and record.owner_said is not None:
                out.append(ToolOutputAvailable(part.approval_id, decision_of(record)))
        return out

    # -- results ------------------------------------------------------------------------------------------------------

    def result(self, wire_id: str, records: Records, closing: Collection[str]) -> list[AnyChunk] | None:
        """The result of a call, where the record says more than ADK's event; None where it does not."""
        part = self._parts.get(wire_id)
        if part is None:
            return None
        if part.is_known:
            return self._writer.tools.output_known(wire_id, closing=closing)
        if (record := records.get(part.call)) is None:
            return None
        is_browsers = record.executor == "browser" and record.state is State.DONE
        return self._recorded_result(part, record, closing) if is_browsers or is_denied(record) else None

    def end_recorded(self, records: Records) -> list[AnyChunk]:
        """The run is over, for whatever reason. Calls that have ended get the recorded outcome. Calls that may still go
        on stay open."""
        parts = self._still_open()
        out = self._ask_recorded(parts, records)
        for part in parts:
            work, record = work_of(part.call, records), records.get(part.call)
            if work is not None:
                out += self._work_so_far(part, work, ())
            elif record is not None and record.is_final:
                out += [*self._settle_deferred([part], records), *self._recorded_result(part, record, ())]
            elif record is not None and record.executor == "server" and record.decided_by == BY_POLICY:
                out += self._settle_deferred([part], records)
        self.leave_approved(records)
        return out

    def leave_approved(self, records: Records) -> None:
        """Calls of the server that are approved and have not ended may go on after this run: they stay open."""
        for part in self._still_open():
            record = records.get(part.call)
            if part.is_servers and not part.is_undecided and record is not None and not record.is_final:
                self._writer.tools.asked_elsewhere(part.wire_id)

    def show_work(self, work: CallRecord) -> list[AnyChunk]:
        """How far a long-running call is, or its end, as the application has reported it last."""
        part = self._part_of(work)
        if part is None or not self._writer.tools.can_take_result(part.wire_id):
            return []
        return self._work_so_far(part, work, ())

    def goes_on(self, wire_id: str, records: Records) -> bool | None:
        """Whether the server goes on with this call; None if that is not known yet, and it may be the client's."""
        call = self._parts[wire_id].call
        if not self._writer.tools.is_deferred(wire_id) or work_of(call, records) is not None:
            return True
        return False if call in records and records[call].executor == "browser" else None

    def _work_so_far(self, part: CallPart, work: CallRecord, closing: Collection[str]) -> list[AnyChunk]:
        if work.is_final:
            return self._recorded_result(part, work, closing)
        if work.state is State.APPROVED and work.result is not None:
            return self._writer.tools.output(part.wire_id, work.result["output"], preliminary=True, closing=closing)
        if self._writer.tools.has_progress(part.wire_id):
            return []
        return self._writer.tools.output(part.wire_id, STILL_AT_WORK, preliminary=True, closing=closing)

    def has_work(self, work: CallRecord) -> bool:
        return self._part_of(work) is not None

    def _part_of(self, work: CallRecord) -> CallPart | None:
        return next((part for part in self._parts.values() if work.call in (part.call, work_key(part.call))), None)

    def recorded_end(self, wire_id: str, records: Records, closing: Collection[str]) -> list[AnyChunk] | None:
        """What is recorded of a call that ADK has aborted: its outcome, or the work that goes on; None if nothing
        is."""
        part = self._parts.get(wire_id)
        if part is None:
            return None
        work, record = work_of(part.call, records), records.get(part.call)
        if work is not None:
            return self._work_so_far(part, work, closing)
        return self._recorded_result(part, record, closing) if record is not None and record.is_final else None

    def _recorded_result(self, part: CallPart, record: CallRecord, closing: Collection[str]) -> list[AnyChunk]:
        if part.is_known:
            return self._writer.tools.output_known(part.wire_id, closing=closing)
        if is_denied(record) and (record.chain is None or part.approval_id is not None):
            return self._writer.tools.deny(part.wire_id, refusal_text(record), closing=closing)
        chunk = recorded_chunk(part.wire_id, record)
        if isinstance(chunk, ToolOutputError):
            return self._writer.tools.error(part.wire_id, chunk.error_text, closing=closing)
        return self._writer.tools.output(part.wire_id, chunk.output, closing=closing)
