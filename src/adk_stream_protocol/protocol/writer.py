"""ChunkWriter: the grammar of one stream segment.

Every method returns the chunks it makes and keeps the books: what is open, in which step, whether the segment ended.
Whatever opens is closed on every path - `finish`, `abort` and `error` may be called at any point and leave a stream
that every release of the AI SDK reads to its end. A call that the grammar forbids is our bug: `LocalProtocolError`.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import LocalProtocolError
from . import chunks as c
from .chunks import AnyChunk, FinishReason, ProviderMetadata, ReasoningDelta, SdkVersion, TextDelta

TextKind = Literal["text", "reasoning"]
CallState = Literal["input-streaming", "input-available", "awaiting-client", "preliminary", "answered", "done"]

_UNFINISHED: tuple[CallState, ...] = ("input-available", "awaiting-client", "preliminary", "answered")

STOPPED = "The call was stopped before it had a result."


@dataclass(slots=True)
class _OpenText:
    kind: TextKind
    id: str


@dataclass(slots=True)
class _Call:
    name: str
    state: CallState
    provider_executed: bool | None = None
    dynamic: bool | None = None


class ChunkWriter:
    """Writes one segment: `start`, steps with their parts, one terminal chunk."""

    def __init__(self, *, sdk_version: SdkVersion = 6, answered_calls: Iterable[str] = ()) -> None:
        """`answered_calls`: calls of earlier segments of the same message, which may get their outputs here."""
        self.sdk_version: SdkVersion = sdk_version
        self._started = False
        self._ended = False
        self._in_step = False
        self._texts: dict[Hashable, _OpenText] = {}
        self._text_count = 0
        self._calls = {call_id: _Call("", "answered") for call_id in answered_calls}
        # A client with the stock tool helper posts again for ever when its last step holds a finished tool.
        self._step_ends_in_tool = bool(self._calls)

    # -- the segment ------------------------------------------------------------------------------------------

    def start(self, message_id: str | None = None, metadata: dict[str, Any] | None = None) -> list[AnyChunk]:
        if self._started:
            raise LocalProtocolError("start twice")
        self._started = True
        return [c.Start(message_id, metadata)]

    def finish(self, reason: FinishReason, metadata: dict[str, Any] | None = None) -> list[AnyChunk]:
        out = self._close_parts(STOPPED)
        if self._calls and not self.awaits_client:
            # The new step counts for the client only if something is written after it: hence the metadata.
            out += self._step_after_tool()
            metadata = metadata or {}
        return self._end([*out, *self._leave_step(), c.Finish(reason, metadata)])

    def abort(self) -> list[AnyChunk]:
        out = self._close_parts(STOPPED)
        if self._calls and not self.awaits_client:
            out += [*self._step_after_tool(), c.MessageMetadata({})]
        return self._end([*out, *self._leave_step(), c.Abort()])

    def error(self, public_text: str) -> list[AnyChunk]:
        return self._end([*self._close_parts(public_text), *self._leave_step(), c.Error(public_text)])

    def _step_after_tool(self) -> list[AnyChunk]:
        return self.new_step() if self._step_ends_in_tool else []

    def _end(self, out: list[AnyChunk]) -> list[AnyChunk]:
        self._require_open()
        self._ended = True
        return out

    def _close_parts(self, reason: str) -> list[AnyChunk]:
        """End open texts, and every call that nobody will answer any more."""
        out = self.end_texts()
        for call_id, call in list(self._calls.items()):
            if call.state == "input-streaming":
                out += self.tool_input_error(call_id, reason)
            elif call.state == "input-available":
                out += self.tool_error(call_id, reason)
        return out

    # -- steps ------------------------------------------------------------------------------------------------

    def new_step(self) -> list[AnyChunk]:
        """A step for a new model call; texts of the step before are ended, since none may span two."""
        self._require_open()
        out = self.end_texts()
        for call_id, call in self._calls.items():
            if call.state == "input-streaming":
                out += self.tool_input_error(call_id, STOPPED)
        out += [*self._leave_step(), c.StartStep()]
        self._in_step = True
        self._step_ends_in_tool = False
        return out

    def need_step(self) -> list[AnyChunk]:
        return [] if self._in_step else self.new_step()

    def _leave_step(self) -> list[AnyChunk]:
        if not self._in_step:
            return []
        self._in_step = False
        return [c.FinishStep()]

    @property
    def awaits_client(self) -> bool:
        """Whether a call of this segment is the client's to answer."""
        return any(call.state == "awaiting-client" for call in self._calls.values())

    @property
    def awaits_results(self) -> bool:
        """Whether a call goes on after this segment, here or at the client."""
        return any(call.state in ("awaiting-client", "preliminary") for call in self._calls.values())

    @property
    def runs_a_tool(self) -> bool:
        """Whether a call has all it needs and no result yet."""
        return any(call.state == "input-available" for call in self._calls.values())

    @property
    def is_idle(self) -> bool:
        """Nothing is open: a new step would separate nothing that belongs together."""
        return not self._texts and not any(
            call.state in ("input-streaming", "input-available", "awaiting-client") for call in self._calls.values()
        )

    # -- text and reasoning -----------------------------------------------------------------------------------

    def text(
        self, key: Hashable, kind: TextKind, delta: str, metadata: ProviderMetadata | None = None
    ) -> list[AnyChunk]:
        """Append to the open part of `key` (one speaker), or open one; `metadata` goes with the opening."""
        open_text = self._texts.get(key)
        if open_text is not None and open_text.kind == kind:
            return [TextDelta(open_text.id, delta) if kind == "text" else ReasoningDelta(open_text.id, delta)]
        out = [*self.end_text(key), *self.need_step()]
        self._text_count += 1
        part_id = f"t{self._text_count}" if kind == "text" else f"r{self._text_count}"
        self._texts[key] = _OpenText(kind, part_id)
        if kind == "text":
            return [*out, c.TextStart(part_id, metadata), TextDelta(part_id, delta)]
        return [*out, c.ReasoningStart(part_id, metadata), ReasoningDelta(part_id, delta)]

    def end_text(
        self,
        key: Hashable,
        *,
        metadata: ProviderMetadata | None = None,
        citations: list[dict[str, Any]] | None = None,
    ) -> list[AnyChunk]:
        open_text = self._texts.pop(key, None)
        if open_text is None:
            return []
        if open_text.kind == "reasoning":
            return [c.ReasoningEnd(open_text.id, metadata)]
        if citations and self.sdk_version < 7:
            metadata = {**(metadata or {}), "adk": {**(metadata or {}).get("adk", {}), "citations": citations}}
            citations = None
        return [c.TextEnd(open_text.id, metadata, citations or None)]

    def end_texts(self) -> list[AnyChunk]:
        return [chunk for key in list(self._texts) for chunk in self.end_text(key)]

    def growing_text(self, key: Hashable) -> tuple[type[TextDelta] | type[ReasoningDelta], str]:
        """How to make the next deltas of the open part, as long as nothing else is written."""
        open_text = self._texts[key]
        return (TextDelta if open_text.kind == "text" else ReasoningDelta), open_text.id

    def open_text_kind(self, key: Hashable) -> TextKind | None:
        open_text = self._texts.get(key)
        return open_text.kind if open_text else None

    # -- tools ------------------------------------------------------------------------------------------------

    def knows_call(self, call_id: str) -> bool:
        return call_id in self._calls

    def can_take_result(self, call_id: str) -> bool:
        call = self._calls.get(call_id)
        return call is not None and call.state in _UNFINISHED

    def tool_input_start(
        self,
        call_id: str,
        name: str,
        *,
        provider_executed: bool | None = None,
        dynamic: bool | None = None,
    ) -> list[AnyChunk]:
        if call_id in self._calls:
            raise LocalProtocolError("tool call id used twice")
        out = self.need_step()
        self._calls[call_id] = _Call(name, "input-streaming", provider_executed, dynamic)
        return [*out, c.ToolInputStart(call_id, name, provider_executed, dynamic)]

    def tool_input_delta(self, call_id: str, text: str) -> list[AnyChunk]:
        self._call(call_id, "input-streaming")
        return [c.ToolInputDelta(call_id, text)]

    def tool_input_available(
        self,
        call_id: str,
        arguments: Any,
        *,
        awaits_client: bool = False,
        metadata: ProviderMetadata | None = None,
    ) -> list[AnyChunk]:
        call = self._call(call_id, "input-streaming")
        call.state = "awaiting-client" if awaits_client else "input-available"
        return [c.ToolInputAvailable(call_id, call.name, arguments, call.provider_executed, metadata, call.dynamic)]

    def tool_input_error(self, call_id: str, text: str) -> list[AnyChunk]:
        """A call whose arguments never became whole."""
        call = self._finish_call(call_id, "input-streaming")
        return [c.ToolInputError(call_id, call.name, None, text, call.provider_executed, call.dynamic)]

    def tool_approval_request(self, call_id: str, approval_id: str) -> list[AnyChunk]:
        if self.sdk_version == 5:
            raise LocalProtocolError("version 5 has no approval chunk")
        call = self._call(call_id, "input-available", "awaiting-client")
        call.state = "awaiting-client"
        return [c.ToolApprovalRequest(approval_id, call_id)]

    def tool_awaits_client(self, call_id: str) -> list[AnyChunk]:
        """The client is asked about this call by other means (the confirmation tool); no chunk of its own."""
        self._call(call_id, "input-available", "awaiting-client").state = "awaiting-client"
        return []

    def tool_output(self, call_id: str, output: Any, *, preliminary: bool = False) -> list[AnyChunk]:
        call = self._finish_call(call_id, *_UNFINISHED)
        if preliminary:  # progress of the server's own work; older clients take it for a result, and post again
            call.state = "preliminary"
        return [c.ToolOutputAvailable(call_id, output, call.provider_executed, call.dynamic, preliminary or None)]

    def tool_error(self, call_id: str, text: str) -> list[AnyChunk]:
        call = self._finish_call(call_id, *_UNFINISHED)
        return [c.ToolOutputError(call_id, text, call.provider_executed, call.dynamic)]

    def tool_denied(self, call_id: str, text: str) -> list[AnyChunk]:
        if self.sdk_version == 5:  # has no denial
            return self.tool_error(call_id, text)
        self._finish_call(call_id, *_UNFINISHED)
        return [c.ToolOutputDenied(call_id)]

    def _call(self, call_id: str, *states: CallState) -> _Call:
        self._require_open()
        call = self._calls.get(call_id)
        if call is None or call.state not in states:
            raise LocalProtocolError(f"tool call is {call.state if call else 'unknown'}, not {states}")
        return call

    def _finish_call(self, call_id: str, *states: CallState) -> _Call:
        call = self._call(call_id, *states)
        call.state = "done"
        if not call.provider_executed:
            self._step_ends_in_tool = True
        return call

    # -- everything else --------------------------------------------------------------------------------------

    def part(self, chunk: c.SourceUrl | c.SourceDocument | c.File) -> list[AnyChunk]:
        """A part that is whole in one chunk."""
        return [*self.need_step(), chunk]

    def reasoning_file(self, url: str, media_type: str) -> list[AnyChunk]:
        chunk = c.ReasoningFile(url, media_type) if self.sdk_version == 7 else c.File(url, media_type)
        return [*self.need_step(), chunk]

    def data(self, name: str, data: Any, *, id: str | None = None) -> list[AnyChunk]:
        """A `data-adk-*` part; belongs to the message, not to a step."""
        self._require_open()
        return [c.Data(f"data-adk-{name}", data, id)]

    def _require_open(self) -> None:
        if not self._started or self._ended:
            raise LocalProtocolError("the segment is not open")
