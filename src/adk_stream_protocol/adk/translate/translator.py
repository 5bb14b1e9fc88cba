"""ADK events in, UI message chunks out: one translator per message, no I/O, no clock.

The translator says what comes in which order. What each field of an event becomes is listed in
docs/reference/events.md; a test compares that page with ADK's own models.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.call_record import CallKey, Records
from ...protocol.chunks import AnyChunk, DeltaEncoder, ReasoningDelta, SdkVersion, TextDelta
from ...protocol.messages import ApprovalStyle
from ...protocol.stream import ChunkWriter, TextKind
from ..event_parts import (
    ArtifactFile,
    ControlFlow,
    is_aside,
    is_atomic,
    is_model_output,
    model_call_of,
    said_aloud,
    text_kind,
)
from .call_parts import CallParts
from .ending import Ending
from .event_actions import EventActions
from .function_calls import FunctionCalls
from .sources import Sources
from .speakers import Speaker, Speakers
from .whole_parts import WholeParts
from .wire_ids import WireIds

_NO_RECORDS: Records = {}
_TEXT_KINDS: tuple[TextKind, ...] = ("text", "reasoning")


@dataclass(slots=True)
class _GrowingPart:
    """The part that the last event has added to. The next event most likely adds to it, too."""

    model_call: str
    is_thought: bool
    remember: Callable[[str], object]
    delta: type[TextDelta] | type[ReasoningDelta]
    part_id: str
    encode: Callable[[str], bytes]

    def grow(self, text: str) -> list[AnyChunk]:
        self.remember(text)
        return [self.delta(self.part_id, text)]


class Translator:
    def __init__(
        self,
        *,
        root_author: str,
        sdk_version: SdkVersion = 6,
        approval_style: ApprovalStyle | None = None,
        send_state: Collection[str] = (),
        send_nodes: bool = False,
        control_flow: ControlFlow | None = None,
        browser_tools: Collection[str] = (),
    ) -> None:
        self._writer = ChunkWriter(sdk_version=sdk_version)
        style = approval_style or ("confirmation-tool" if sdk_version == 5 else "approval-request")
        self.call_parts = CallParts(self._writer, style)
        self._speakers = Speakers(root_author)
        self._growing: _GrowingPart | None = None
        self._sources = Sources()
        wire_ids = WireIds(self._writer.tools)
        self._whole_parts = WholeParts(self._writer, wire_ids, self._sources)
        self._calls = FunctionCalls(self._writer, self.call_parts, wire_ids, self._whole_parts, control_flow)
        self._calls.browser_tools = browser_tools
        self._actions = EventActions(self._writer, send_state=send_state, send_nodes=send_nodes)
        self._ending = Ending()

    # -- the segment --------------------------------------------------------------------------------------------------

    def start(self, message_id: str) -> list[AnyChunk]:
        return self._writer.start(message_id)

    def pause(self, records: Records = _NO_RECORDS) -> list[AnyChunk]:
        """The message waits for its client's answer."""
        return [*self._settle(records), *self._writer.pause()]

    def _settle(self, records: Records) -> list[AnyChunk]:
        out = [*self._calls.release(records), *self._calls.leave_delegated(records)]
        return [*out, *self.call_parts.settle(records)]

    def pause_stopped(self, records: Records) -> list[AnyChunk]:
        """The message waits for its client's answer, and its run was over."""
        out = self._settle(records)
        self.call_parts.leave_approved(records)
        return [*out, *self._writer.pause_stopped()]

    def new_segment(
        self,
        message_id: str,
        records: Records,
        answered: Collection[CallKey],
        known_outputs: Collection[CallKey] = (),
    ) -> list[AnyChunk]:
        """The message goes on after answers of its client. `known_outputs`: those that the client itself has sent."""
        self._growing = None  # it has ended with its segment
        self._ending.new_segment()
        return self.call_parts.new_segment(message_id, records, answered, known_outputs)

    def end(self, records: Records, ended_by: str | None, failure: str | None) -> list[AnyChunk]:
        """The end of a run: its own (None), a stop, a failure, or a limit. Recorded outcomes are always emitted."""
        recorded = [*self._calls.release(records), *self.call_parts.end_recorded(records)]
        if ended_by is None:
            return [*recorded, *self.finish(records=records)]
        if ended_by == "stop":
            return [*recorded, *self.abort(records=records)]
        if failure is not None:
            return [*recorded, *self.fail(failure, records=records)]
        return [*recorded, *self.finish(ended_by, records=records)]

    def finish(self, limit: str | None = None, *, records: Records = _NO_RECORDS) -> list[AnyChunk]:
        """The run is over: nothing more will come. `limit`: the one that ended it."""
        if limit is not None:
            metadata = self._ending.metadata(limit)
            return [*self._release_and_settle(records), *self._writer.finish("length", metadata)]
        if self._ending.failure is not None:
            return [*self._release_and_settle(records), *self._writer.error(self._ending.failure)]
        out = self._settle(records)
        reason = "tool-calls" if self._writer.tools.awaits_results else self._ending.reason or "stop"
        return [*out, *self._writer.finish(reason, self._ending.metadata())]

    def fail(self, public_text: str, *, records: Records = _NO_RECORDS) -> list[AnyChunk]:
        """The run raised. ADK has reported it in an event before; the client reads it once."""
        return [*self._release_and_settle(records), *self._writer.error(public_text)]

    def abort(self, *, records: Records = _NO_RECORDS) -> list[AnyChunk]:
        return [*self._release_and_settle(records), *self._writer.abort()]

    def _release_and_settle(self, records: Records) -> list[AnyChunk]:
        return [*self._calls.release(records), *self.call_parts.settle(records)]

    def works_on(self, call_id: str) -> None:
        """The server goes on with this call when the segment ends. What waits for the client is in a later step."""
        self._calls.works_on(call_id)

    def half_said(self) -> list[tuple[str, str | None, list[types.Part]]]:
        """What agents have said without coming to an end, by author and branch. ADK keeps none of it."""
        return self._speakers.half_said()

    # -- events -------------------------------------------------------------------------------------------------------

    def feed(
        self,
        event: Event,
        artifacts: Mapping[str, ArtifactFile] | None = None,
        *,
        records: Records = _NO_RECORDS,
    ) -> list[AnyChunk]:
        """The chunks of one event. `artifacts`: where the client finds those that the event names. `records`: what is
        recorded of the chat's calls by now."""
        if event.output_transcription is not None:
            event = said_aloud(event)
        model_call = model_call_of(event)
        if event.partial:
            content, growing = event.content, self._growing
            parts = content.parts if content is not None else None
            if not parts:
                return []
            # Nearly every event is one more word of the same part: it gets the shortest way through.
            if growing is not None and growing.model_call == model_call and len(parts) == 1:
                part = parts[0]
                text = part.text
                if text and growing.is_thought is bool(part.thought):
                    return growing.grow(text)
            released = self._calls.release(records, event) if self._calls.starts_work(event) else []
            return [*released, *self._feed_partial(event, parts)]
        self._growing = None
        parts = (event.content.parts if event.content else None) or []
        results = [part.function_response for part in parts if part.function_response is not None]
        released = self._calls.release(records, event)
        if event.author == "user":  # the user's words are not ours to repeat; a result for an open call is
            before = self.pause(records) if self._calls.are_answered_by(results) else []
            return [*released, *before, *self._take_results(event, results, records)]
        speaker = self._speakers.of(event)
        sources, citations = self._sources.feed(event)
        out = released
        if any(is_model_output(part) for part in parts):
            out += self._model_call(event, speaker)
        if not is_aside(event):
            out += self._parts(event, speaker, parts, citations, records)
        for source in sources:
            out += self._writer.part(source)
        for suggestions_id, html in self._sources.new_suggestions(event):
            out += self._writer.data("search-suggestions", {"html": html}, id=suggestions_id)
        out += self._take_results(event, results, records)
        self._ending.add(event)
        return [*out, *self._actions.encode(event, artifacts or {})]

    def grow(self, text: str, *, is_thought: bool) -> bytes | None:
        """The next piece of the part that the last event has added to, encoded; None if that part cannot take it."""
        growing = self._growing
        if growing is None or growing.is_thought is not is_thought:
            return None
        growing.remember(text)
        return growing.encode(text)

    def _take_results(self, event: Event, results: list[types.FunctionResponse], records: Records) -> list[AnyChunk]:
        return self._calls.take_results(event, self._speakers.of(event), results, records) if results else []

    def _feed_partial(self, event: Event, parts: list[types.Part]) -> list[AnyChunk]:
        self._growing = None
        speaker = self._speakers.of(event)
        out = self._model_call(event, speaker)
        for part in parts:
            if part.text:
                if speaker.call_since_text:
                    speaker.call_since_text = False
                    out += self._writer.end_text(speaker)
                kind = text_kind(part)
                remember = speaker.said.add(kind, model_call_of(event), part.text)
                out += self._writer.text(speaker, kind, part.text, speaker.text_metadata)
                delta, part_id = self._writer.growing_text(speaker)
                encode = DeltaEncoder(delta, part_id).encode
                is_thought = kind == "reasoning"
                self._growing = _GrowingPart(model_call_of(event), is_thought, remember, delta, part_id, encode)
                continue
            self._growing = None
            if part.function_call is not None:
                speaker.call_since_text = True
                out += self._calls.stream(event, speaker, part.function_call)
            elif is_atomic(part):
                speaker.streamed_parts += 1
                out += self._whole_parts.encode(speaker, part)
        return out

    def _model_call(self, event: Event, speaker: Speaker) -> list[AnyChunk]:
        """One model call is one step, unless that would tear apart what is still open: another agent's text, or a call
        that the client must find in the last step to answer it."""
        if not self._speakers.is_new_model_call(event):
            return []
        speaker.metadata = self._speakers.metadata(event, self._calls.worked_on_by(event))
        if speaker.said.is_unconfirmed:  # the same call, going on under another id
            return []
        out = self._writer.end_text(speaker)
        return [*out, *self._writer.new_step()] if self._writer.is_idle else out

    def _parts(
        self,
        event: Event,
        speaker: Speaker,
        parts: list[types.Part],
        citations: list[dict[str, Any]],
        records: Records,
    ) -> list[AnyChunk]:
        """The parts of a whole event: what partial events have not brought already."""
        out: list[AnyChunk] = []
        said: dict[TextKind, int | None] = {}
        for kind in _TEXT_KINDS:
            whole = "".join(part.text for part in parts if part.text and text_kind(part) == kind)
            if whole:
                said[kind] = speaker.said.settle(kind, whole)
        open_kind = self._writer.open_text_kind(speaker)
        if open_kind in said and said[open_kind] is None:
            # A callback or plugin replaced what was streamed. No chunk takes text back, so both stay, marked.
            out += self._writer.end_text(speaker, metadata={"adk": {"replaced": True}})
        last_text = next((part for part in reversed(parts) if part.text and not part.thought), None)
        is_deferred = self._calls.are_deferred(event, speaker)
        for part in parts:
            if part.text:
                out += self._rest_of_text(speaker, text_kind(part), part.text, said)
                if part is last_text and self._writer.open_text_kind(speaker) == "text":
                    out += self._writer.end_text(speaker, citations=citations)
            elif part.function_call is not None:
                out += self._calls.add(event, speaker, part.function_call, records, is_deferred=is_deferred)
            elif is_atomic(part) and not speaker.repeats_part():
                out += self._whole_parts.encode(speaker, part)
        out += self._calls.end_streamed(speaker)
        speaker.end_model_call()
        if any(part.code_execution_result is not None for part in parts):
            speaker.said.forget()  # an executor of ADK's cut the code out of the text; the model is asked anew
        return [*out, *self._writer.end_text(speaker)]

    def _rest_of_text(
        self, speaker: Speaker, kind: TextKind, text: str, said: dict[TextKind, int | None]
    ) -> list[AnyChunk]:
        """What is new in a text. `said`: how many characters of each kind the client has; None if it has others."""
        known = said[kind]
        if known is None:
            replacing = {"adk": {**(speaker.text_metadata or {}).get("adk", {}), "replaces": True}}
            said[kind] = 0
            return self._writer.text(speaker, kind, text, replacing)
        said[kind] = max(0, known - len(text))
        rest = text[known:]
        return self._writer.text(speaker, kind, rest, speaker.text_metadata) if rest else []
