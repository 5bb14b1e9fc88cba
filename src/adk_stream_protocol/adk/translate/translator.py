"""ADK events in, UI message chunks out: one translator per message, no I/O, no clock.

What each field of an event becomes is listed in docs/reference/events.md; a test holds that page and ADK's own models
against each other.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.adk.events import Event
from google.genai import types

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, Records
from ...protocol.chunks import AnyChunk, File, FinishReason, ProviderMetadata, ReasoningDelta, SdkVersion, TextDelta
from ...protocol.messages import ApprovalStyle
from ...protocol.stream import STOPPED, ChunkWriter, TextKind
from ..event_parts import (
    ABORTED,
    CREDENTIAL,
    FINISH_REASONS,
    REQUEST_INPUT,
    TURN_ENDS,
    ArtifactFile,
    ControlFlow,
    as_dict,
    auth_request,
    data_file,
    is_aside,
    is_atomic,
    is_hidden,
    is_model_output,
    model_call_of,
    said_aloud,
    text_kind,
)
from ..failures import public_failure_text
from .call_parts import NO_RECORDS, CallParts
from .sources import Sources
from .spoken_text import SpokenText
from .tool_arguments import StreamedArguments
from .usage import Usage

_TEXT_KINDS: tuple[TextKind, ...] = ("text", "reasoning")


@dataclass(eq=False)
class _Speaker:
    """One agent on one branch; parallel agents speak at the same time."""

    metadata: ProviderMetadata | None
    said: SpokenText = field(default_factory=SpokenText)
    arguments: StreamedArguments = field(default_factory=StreamedArguments)
    shown_calls: set[str] = field(default_factory=set[str])  # whose arguments are streaming
    call_since_text: bool = False  # a partial event brought a call: words that follow are another part
    shown_parts: int = 0  # files, code and the like from partial events, which the aggregate repeats
    wire_ids: dict[str, str] = field(default_factory=dict[str, str])  # of the calls, by ADK's id for them
    open_code: list[str] = field(default_factory=list[str])  # calls at the model's service without a result yet


@dataclass(slots=True)
class _GrowingPart:
    """The part that the last event has added to, and most likely the next one will."""

    model_call: str
    is_thought: bool
    remember: Callable[[str], None]
    delta: type[TextDelta] | type[ReasoningDelta]
    part_id: str


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
    ) -> None:
        self._writer = ChunkWriter(sdk_version=sdk_version)
        style = approval_style or ("confirmation-tool" if sdk_version == 5 else "approval-request")
        self.tools = CallParts(self._writer, style)
        self._root_author = root_author
        self._send_state = send_state
        self._send_nodes = send_nodes
        self._control_flow = control_flow
        self._speakers: dict[tuple[str, str | None], _Speaker] = {}
        self._growing: _GrowingPart | None = None
        self._seen_model_calls: set[str] = set()
        self._wire_ids: dict[str, str] = {}  # of all speakers, where only the newest has a repeated id
        self._delegated: set[str] = set()  # wire ids of calls that an agent works on
        self._code_count = 0
        self._sources = Sources()
        self._usage = Usage()
        self._finish_reason: FinishReason | None = None
        self._failure: str | None = None
        self._interrupted = False

    # -- the segment --------------------------------------------------------------------------------------------------

    def start(self, message_id: str) -> list[AnyChunk]:
        return self._writer.start(message_id)

    def pause(self, records: Records = NO_RECORDS) -> list[AnyChunk]:
        """As far as the message goes before its client answers."""
        return [*self.tools.settle(records), *self._writer.pause()]

    def new_segment(
        self,
        message_id: str,
        records: Records,
        answered: Collection[CallKey],
        known_outputs: Collection[CallKey] = (),
    ) -> list[AnyChunk]:
        """The message goes on after answers of its client. `known_outputs`: those that the client itself has sent."""
        self._finish_reason = self._failure = None
        self._interrupted = False
        return self.tools.new_segment(message_id, records, answered, known_outputs)

    def finish(self, limit: str | None = None, *, records: Records = NO_RECORDS) -> list[AnyChunk]:
        """The run is over: nothing more will come. `limit`: which one has ended it."""
        if limit is not None:
            metadata = {**(self._usage.metadata() or {}), "limit": limit}
            return [*self.tools.settle(records), *self._writer.finish("length", metadata)]
        if self._failure is not None:
            return [*self.tools.settle(records), *self._writer.error(self._failure)]
        out: list[AnyChunk] = []
        for call_id in self._delegated:
            # An agent at work on a task has asked the user back; or a tool is at work beside the conversation.
            if self._writer.tools.can_take_result(call_id) and not self.tools.is_to_be_asked(call_id, records):
                out += self._writer.tools.output(call_id, {"status": "pending"}, preliminary=True)
        out += self.tools.settle(records)
        reason = "tool-calls" if self._writer.tools.awaits_results else self._finish_reason or "stop"
        metadata = self._usage.metadata()
        if self._interrupted:
            metadata = {**(metadata or {}), "interrupted": True}
        return [*out, *self._writer.finish(reason, metadata)]

    def fail(self, public_text: str, *, records: Records = NO_RECORDS) -> list[AnyChunk]:
        """The run raised. ADK has told of it in an event before; the client hears it once."""
        return [*self.tools.settle(records), *self._writer.error(public_text)]

    def abort(self, *, records: Records = NO_RECORDS) -> list[AnyChunk]:
        return [*self.tools.settle(records), *self._writer.abort()]

    def end(self, records: Records, ended_by: str | None, failure: str | None) -> list[AnyChunk]:
        """The end of a run: its own (None), a stop, a failure, or a limit. Recorded outcomes are always emitted."""
        recorded = self.tools.end_recorded(records)
        if ended_by is None:
            return [*recorded, *self.finish(records=records)]
        if ended_by == "stop":
            return [*recorded, *self.abort(records=records)]
        if failure is not None:
            return [*recorded, *self.fail(failure, records=records)]
        return [*recorded, *self.finish(ended_by, records=records)]

    def delegate(self, call_id: str) -> list[AnyChunk]:
        """An agent that runs as this tool is about to ask the client, in a step of its own."""
        wire_id = self._wire_ids.get(call_id, "")
        if not self._writer.tools.can_take_result(wire_id) or wire_id in self._delegated:
            return []
        self.works_on(call_id)
        return self._writer.tools.output(wire_id, {"status": "pending"}, preliminary=True)

    def works_on(self, call_id: str) -> None:
        """The segment will end while the server is at this call."""
        self._delegated.add(self._wire_ids.get(call_id, ""))

    def half_said(self) -> list[tuple[str, str | None, list[types.Part]]]:
        """What agents have said without coming to an end, by author and branch. ADK keeps none of it."""
        said = [(key, speaker.said.unconfirmed()) for key, speaker in self._speakers.items()]
        return [
            (author, branch, [types.Part(text=text, thought=kind == "reasoning" or None) for kind, text in pieces])
            for (author, branch), pieces in said
            if pieces
        ]

    # -- events -------------------------------------------------------------------------------------------------------

    def feed(
        self,
        event: Event,
        artifacts: Mapping[str, ArtifactFile] | None = None,
        *,
        records: Records = NO_RECORDS,
    ) -> list[AnyChunk]:
        """The chunks of one event. `artifacts`: where the ones that it names are to be found. `records`: what is
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
                    growing.remember(text)
                    return [growing.delta(growing.part_id, text)]
            return self._feed_partial(event, parts)
        self._growing = None
        out: list[AnyChunk] = []
        parts = (event.content.parts if event.content else None) or []
        if event.author == "user":  # the user's words are not ours to repeat; a result for an open call is
            before = self.pause(records) if self._answers_calls(parts) else []
            return [*before, *self._tool_results(event, parts, records)]
        speaker = self._speaker(event)
        sources, citations = self._sources.feed(event)
        if any(is_model_output(part) for part in parts):
            out += self._model_call(event, speaker)
        out += self._parts(event, speaker, parts, citations, records)
        for source in sources:
            out += self._writer.part(source)
        for suggestions_id, html in self._sources.new_suggestions(event):
            out += self._writer.data("search-suggestions", {"html": html}, id=suggestions_id)
        out += self._tool_results(event, parts, records)
        self._note_end(event)
        return [*out, *self._actions(event, artifacts or {})]

    def _answers_calls(self, parts: Iterable[types.Part]) -> bool:
        """Whether the client has answered: here a segment ended. Agents at a task have results from the user, too."""
        answers = [part.function_response for part in parts if part.function_response is not None]
        return any(
            answer.name == CONFIRMATION or self.tools.outlives_the_run(self._wire_ids.get(answer.id or "", ""))
            for answer in answers
        )

    def _feed_partial(self, event: Event, parts: list[types.Part]) -> list[AnyChunk]:
        self._growing = None
        speaker = self._speaker(event)
        out = self._model_call(event, speaker)
        for part in parts:
            if part.text:
                if speaker.call_since_text:
                    speaker.call_since_text = False
                    out += self._writer.end_text(speaker)
                kind = text_kind(part)
                remember = speaker.said.add(kind, model_call_of(event), part.text)
                out += self._writer.text(speaker, kind, part.text, speaker.metadata)
                delta, part_id = self._writer.growing_text(speaker)
                self._growing = _GrowingPart(model_call_of(event), kind == "reasoning", remember, delta, part_id)
                continue
            self._growing = None
            if part.function_call is not None:
                speaker.call_since_text = True
                out += self._streamed_arguments(event, speaker, part.function_call)
            elif is_atomic(part):
                speaker.shown_parts += 1
                out += self._atomic(speaker, part)
        return out

    def _speaker(self, event: Event) -> _Speaker:
        key = (event.author, event.branch)
        speaker = self._speakers.get(key)
        if speaker is None:
            speaker = self._speakers[key] = _Speaker(None)
        return speaker

    def _about(self, event: Event) -> ProviderMetadata | None:
        about: dict[str, Any] = {} if event.author == self._root_author else {"author": event.author}
        if event.output_transcription is not None:
            about["transcript"] = True
        # An agent that runs as a tool has the call's id behind its name.
        call_id = (event.branch or "").rpartition(".")[2].partition("@")[2]
        if call_id in self._wire_ids:
            about["toolCallId"] = self._wire_ids[call_id]
            self._delegated.add(self._wire_ids[call_id])
        return {"adk": about} if about else None

    def _model_call(self, event: Event, speaker: _Speaker) -> list[AnyChunk]:
        """One model call is one step, unless that would tear apart what is still open: another agent's text, or a call
        that the client must find in the last step to answer it."""
        model_call = model_call_of(event)
        if model_call in self._seen_model_calls:
            return []
        self._seen_model_calls.add(model_call)
        speaker.metadata = self._about(event)
        if speaker.said.is_unconfirmed:  # the same call, going on under another id
            return []
        out = self._writer.end_text(speaker)
        return [*out, *self._writer.new_step()] if self._writer.is_idle else out

    def _parts(
        self,
        event: Event,
        speaker: _Speaker,
        parts: list[types.Part],
        citations: list[dict[str, Any]],
        records: Records,
    ) -> list[AnyChunk]:
        if is_aside(event):  # the whole is still to come
            return []
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
        for part in parts:
            if part.text:
                out += self._rest_of_text(speaker, text_kind(part), part.text, said)
                if part is last_text and self._writer.open_text_kind(speaker) == "text":
                    out += self._writer.end_text(speaker, citations=citations)
            elif part.function_call is not None:
                out += self._tool_call(event, speaker, part.function_call, records)
            elif is_atomic(part) and not self._repeats(speaker):
                out += self._atomic(speaker, part)
        for call_id in speaker.shown_calls:  # streamed, but the aggregate does not know them
            out += self._writer.tools.input_error(speaker.wire_ids[call_id], "The call was not completed.")
        speaker.shown_calls.clear()
        speaker.shown_parts = 0
        speaker.call_since_text = False
        speaker.arguments.clear()
        if any(part.code_execution_result is not None for part in parts):
            speaker.said.forget()  # an executor of ADK's cut the code out of the text; the model is asked anew
        return [*out, *self._writer.end_text(speaker)]

    def _rest_of_text(
        self, speaker: _Speaker, kind: TextKind, text: str, said: dict[TextKind, int | None]
    ) -> list[AnyChunk]:
        known = said[kind]
        if known is None:
            replacing = {"adk": {**(speaker.metadata or {}).get("adk", {}), "replaces": True}}
            said[kind] = 0
            return self._writer.text(speaker, kind, text, replacing)
        said[kind] = max(0, known - len(text))
        rest = text[known:]
        return self._writer.text(speaker, kind, rest, speaker.metadata) if rest else []

    # -- tools --------------------------------------------------------------------------------------------------------

    def _streamed_arguments(self, event: Event, speaker: _Speaker, call: types.FunctionCall) -> list[AnyChunk]:
        if is_hidden(event, call, self._control_flow):  # a partial one is not ADK's own
            return []
        out: list[AnyChunk] = []
        for piece in speaker.arguments.feed(call):
            if piece.opens:
                out += self._writer.end_text(speaker)
                out += self._writer.tool_input_start(self._new_wire_id(speaker, piece.call_id), piece.name)
                speaker.shown_calls.add(piece.call_id)
            if piece.text:
                out += self._writer.tools.input_delta(speaker.wire_ids[piece.call_id], piece.text)
        return out

    def _tool_call(self, event: Event, speaker: _Speaker, call: types.FunctionCall, records: Records) -> list[AnyChunk]:
        call_id, name, arguments = call.id or "", call.name or "", call.args or {}
        if is_hidden(event, call, self._control_flow):
            return []
        if name == CONFIRMATION:
            return self._approval(speaker, call_id, arguments, records)
        if name == CREDENTIAL:
            return self._writer.data("auth-request", auth_request(arguments), id=call_id)
        out = self._writer.end_text(speaker)
        if call_id in speaker.shown_calls:
            speaker.shown_calls.discard(call_id)
        else:
            out += self._writer.tool_input_start(self._new_wire_id(speaker, call_id), name)
        wire_id = speaker.wire_ids[call_id]
        is_long_running = call_id in (event.long_running_tool_ids or ())
        return [
            *out,
            *self.tools.add(
                CallKey(event.invocation_id, call_id),
                wire_id,
                arguments,
                speaker.metadata,
                outlives_run=is_long_running,
                is_input_request=is_long_running and name == REQUEST_INPUT,
            ),
        ]

    def _new_wire_id(self, speaker: _Speaker, call_id: str) -> str:
        """The call's id, unless an earlier call of the message has it: LiteLLM's fall back to "0" in every step."""
        wire_id, count = call_id, 1
        while self._writer.tools.knows(wire_id):
            count += 1
            wire_id = f"{call_id}-{count}"
        speaker.wire_ids[call_id] = self._wire_ids[call_id] = wire_id
        return wire_id

    def _approval(
        self, speaker: _Speaker, approval_id: str, question: dict[str, Any], records: Records
    ) -> list[AnyChunk]:
        original_id = str(as_dict(question.get("originalFunctionCall")).get("id"))
        wire_id = speaker.wire_ids.get(original_id)
        if wire_id is None or not self._writer.tools.can_take_result(wire_id):  # asked for a call of another message
            return []
        return self.tools.ask(wire_id, approval_id, question, records)

    def _tool_results(self, event: Event, parts: Iterable[types.Part], records: Records) -> list[AnyChunk]:
        results: dict[str, types.FunctionResponse] = {}
        for part in parts:
            result = part.function_response
            if result is None:
                continue
            speaker = self._speaker(event)
            speaker.said.forget()
            call_id = speaker.wire_ids.get(result.id or "") or self._wire_ids.get(result.id or "")
            if call_id is None or not self._writer.tools.can_take_result(call_id):
                continue  # a hidden call's, another message's, or a second result
            if result.id in event.actions.requested_tool_confirmations:
                continue  # a placeholder: the real result follows the person's answer
            results[call_id] = result
        out = self.tools.before_results(results, records)
        for call_id, result in results.items():
            if event.error_code == ABORTED:
                # ADK seals open calls, not always in time to tell: say it as the writer does
                told = self.tools.recorded_end(call_id, records, results)
                out += self._writer.tools.error(call_id, STOPPED, closing=results) if told is None else told
                continue
            recorded = self.tools.result(call_id, records, results)
            out += self._tool_result(event, call_id, result, results) if recorded is None else recorded
        return out

    def _tool_result(
        self, event: Event, call_id: str, result: types.FunctionResponse, closing: Collection[str]
    ) -> list[AnyChunk]:
        response = result.response or {}
        if response.keys() == {"error"}:
            return self._writer.tools.error(call_id, str(response["error"]), closing=closing)
        is_progress = self.tools.outlives_the_run(call_id) and event.author != "user"
        out = self._writer.tools.output(call_id, response, preliminary=is_progress, closing=closing)
        for media in result.parts or ():
            if media.inline_data is not None:
                out += self._writer.part(data_file(media.inline_data.data, media.inline_data.mime_type))
            elif media.file_data is not None:
                out += self._linked_file(media.file_data.file_uri, media.file_data.mime_type)
        return out

    # -- files, code and server-side tools ----------------------------------------------------------------------------

    def _repeats(self, speaker: _Speaker) -> bool:
        """Whether a partial event has shown this part already. They come in the same order, so counting will do."""
        if speaker.shown_parts == 0:
            return False
        speaker.shown_parts -= 1
        return True

    def _atomic(self, speaker: _Speaker, part: types.Part) -> list[AnyChunk]:
        """A part that is never split over events."""
        out = self._writer.end_text(speaker)
        if part.inline_data is not None:
            shown = data_file(part.inline_data.data, part.inline_data.mime_type)
            if part.thought:
                return [*out, *self._writer.reasoning_file(shown.url, shown.media_type)]
            return [*out, *self._writer.part(shown)]
        if part.file_data is not None:
            return [*out, *self._linked_file(part.file_data.file_uri, part.file_data.mime_type)]
        if part.executable_code is not None:
            code = part.executable_code
            language = code.language.value if code.language else "LANGUAGE_UNSPECIFIED"
            return [
                *out,
                *self._server_call(speaker, code.id, "code_execution", {"language": language, "code": code.code}),
            ]
        if part.code_execution_result is not None:
            return [*out, *self._code_result(speaker, part.code_execution_result)]
        if part.tool_call is not None:
            name = part.tool_call.tool_type.value.lower() if part.tool_call.tool_type else "server_tool"
            return [*out, *self._server_call(speaker, part.tool_call.id, name, part.tool_call.args or {})]
        answer = part.tool_response
        return [*out, *self._server_result(speaker, answer.id, answer.response or {})] if answer is not None else out

    def _linked_file(self, uri: str | None, media_type: str | None) -> list[AnyChunk]:
        media_type = media_type or "application/octet-stream"
        if uri and uri.startswith(("https://", "http://")):
            return self._writer.part(File(uri, media_type))
        name = (uri or "file").rstrip("/").rpartition("/")[2]
        return self._writer.part(self._sources.document(uri or name, name, media_type))

    def _server_call(self, speaker: _Speaker, given_id: str | None, name: str, arguments: Any) -> list[AnyChunk]:
        """Code and tools that run at the model's service. Ids are mostly missing; then results come in order."""
        self._code_count += 1
        call_id = self._new_wire_id(speaker, given_id or f"{name}-{self._code_count}")
        speaker.open_code.append(call_id)
        out = self._writer.tool_input_start(call_id, name, provider_executed=True, dynamic=True)
        return [*out, *self._writer.tools.input_available(call_id, arguments)]

    def _code_result(self, speaker: _Speaker, result: types.CodeExecutionResult) -> list[AnyChunk]:
        outcome = result.outcome.value if result.outcome else "OUTCOME_UNSPECIFIED"
        return self._server_result(speaker, result.id, {"outcome": outcome, "output": result.output or ""})

    def _server_result(self, speaker: _Speaker, given_id: str | None, output: Any) -> list[AnyChunk]:
        call_id = speaker.wire_ids.get(given_id or "")
        if call_id not in speaker.open_code:
            call_id = speaker.open_code[0] if speaker.open_code else None
        if call_id is None:
            return []
        speaker.open_code.remove(call_id)
        return self._writer.tools.output(call_id, output)

    # -- the rest of an event -----------------------------------------------------------------------------------------

    def _note_end(self, event: Event) -> None:
        self._usage.add(event)
        if event.finish_reason is not None:
            self._finish_reason = FINISH_REASONS.get(event.finish_reason.value, "other")
        if event.turn_complete_reason is not None:
            self._finish_reason = TURN_ENDS.get(event.turn_complete_reason.value, "content-filter")
        if event.interrupted:
            self._interrupted = True
        if event.error_code is None:
            if event.content is not None:
                self._failure = None  # the run went on after it
            return
        known = FINISH_REASONS.get(event.error_code)
        if known is not None:
            self._finish_reason = known
        else:
            self._failure = public_failure_text(event.error_code)

    def _actions(self, event: Event, artifacts: Mapping[str, ArtifactFile]) -> list[AnyChunk]:
        actions = event.actions
        out: list[AnyChunk] = []
        for filename, version in actions.artifact_delta.items():
            out += self._writer.data("artifact", {"filename": filename, "version": version})
            if filename in artifacts:
                out += self._writer.part(File(artifacts[filename].url, artifacts[filename].media_type))
        if self._send_state:
            shared = {key: value for key, value in actions.state_delta.items() if key in self._send_state}
            if shared:
                out += self._writer.data("state", shared)
        if actions.transfer_to_agent:
            out += self._writer.data("agent", {"agent": actions.transfer_to_agent})
        for widget in actions.render_ui_widgets or ():
            out += self._writer.data("widget", widget.model_dump(mode="json", by_alias=True), id=widget.id)
        if actions.set_model_response is not None:
            out += self._writer.data("output", actions.set_model_response)
        if self._send_nodes and (event.output is not None or actions.route is not None):
            node = {"path": event.node_info.path, "output": event.output, "route": actions.route}
            out += self._writer.data("node", {name: value for name, value in node.items() if value is not None})
        return out
