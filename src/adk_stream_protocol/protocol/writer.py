"""ChunkWriter: the grammar of a message's stream, segment by segment.

Every method returns the chunks it makes and keeps the books: what is open, in which step, whether the segment ended.
Whatever opens is closed on every path - `finish`, `abort` and `error` may be called at any point and leave a stream
that every release of the AI SDK reads to its end. A call that the grammar forbids is our bug: `LocalProtocolError`.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import LocalProtocolError
from . import chunks as c
from .chunks import AnyChunk, FinishReason, ProviderMetadata, ReasoningDelta, SdkVersion, TextDelta
from .digest import shown_arguments

TextKind = Literal["text", "reasoning"]
CallState = Literal[
    "input-streaming",
    "held",  # the client knows of the call, but not that it could act
    "input-available",  # the server is at work on it
    "awaiting-approval",
    "awaiting-client",
    "preliminary",
    "denied",  # and the client is not told before its siblings have their results
    "done",
]

_WAITING: tuple[CallState, ...] = ("awaiting-approval", "awaiting-client")
_UNFINISHED: tuple[CallState, ...] = ("held", "input-available", *_WAITING, "preliminary")
_OPEN: tuple[CallState, ...] = ("input-streaming", "held", "input-available", *_WAITING)

STOPPED = "The call was stopped before it had a result."


@dataclass(slots=True)
class _OpenText:
    kind: TextKind
    id: str


@dataclass(slots=True)
class _Call:
    name: str
    state: CallState
    step: int
    provider_executed: bool | None = None
    dynamic: bool | None = None
    streamed: str = ""
    arguments: Any = None
    metadata: ProviderMetadata | None = None
    is_whole: bool = False  # to the client, who acts on it at once


class ChunkWriter:
    """Writes the segments of one message, each with `start`, steps with their parts, and one terminal chunk."""

    def __init__(self, *, sdk_version: SdkVersion = 6) -> None:
        self.sdk_version: SdkVersion = sdk_version
        self._started = False
        self._ended = False
        self._in_step = False
        self._texts: dict[Hashable, _OpenText] = {}
        self._text_count = 0
        self._calls: dict[str, _Call] = {}
        # A message may have thousands of calls: those that are not done, and those of each step.
        self._undone: dict[str, _Call] = {}
        self._by_step: dict[int, dict[str, _Call]] = {}
        self._step_count = 0
        # A client with the stock tool helper posts again for ever when its last step holds a finished tool.
        self._step_ends_in_tool = False

    # -- the segment ------------------------------------------------------------------------------------------

    def start(self, message_id: str | None = None, metadata: dict[str, Any] | None = None) -> list[AnyChunk]:
        if self._started:
            raise LocalProtocolError("start twice")
        self._started = True
        return [c.Start(message_id, metadata)]

    def pause(self) -> list[AnyChunk]:
        """As far as the message goes before its client answers."""
        return [*self.end_texts(), *self._leave_step()]

    def new_segment(self, at_work: Collection[str] = ()) -> None:
        """The client has answered, and the message goes on. `at_work`: its calls that the server runs now. What else
        the server had left open was told as stopped when the segment before ended."""
        if self._in_step or self._texts:
            raise LocalProtocolError("the segment before is neither paused nor ended")
        self._started = self._ended = False
        for call_id, call in self._calls.items():
            if call_id in at_work:
                call.state = "input-available"
            elif call.state in ("input-streaming", "held", "input-available"):
                call.state = "done"
        self._undone = dict(self._calls)

    def finish(self, reason: FinishReason, metadata: dict[str, Any] | None = None) -> list[AnyChunk]:
        out = self._close_parts(STOPPED)
        if self._calls and not self._last_step_waits:
            # The new step counts for the client only if something is written after it: hence the metadata.
            out += self._step_after_tool()
            metadata = metadata or {}
        return self._end([*out, *self._leave_step(), c.Finish(reason, metadata)])

    def abort(self) -> list[AnyChunk]:
        out = self._close_parts(STOPPED)
        if self._calls and not self._last_step_waits:
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
        for call_id, call in self._still_undone().items():
            if call.state == "input-streaming":
                out += self.tool_input_error(call_id, reason)
            elif call.state in ("held", "input-available"):
                out += self.tool_error(call_id, reason)
        return out

    # -- steps ------------------------------------------------------------------------------------------------

    def new_step(self) -> list[AnyChunk]:
        """A step for a new model call; texts of the step before are ended, since none may span two."""
        self._require_open()
        out = self.end_texts()
        for call_id, call in self._still_undone().items():
            if call.state == "input-streaming":
                out += self.tool_input_error(call_id, STOPPED)
        out += [*self._leave_step(), c.StartStep()]
        self._in_step = True
        self._step_count += 1
        self._step_ends_in_tool = False
        return out

    def need_step(self) -> list[AnyChunk]:
        """A step to write in. A segment goes on in the step before while that holds a call which waits for the client:
        the stock helpers look for it in the last step."""
        self._require_open()
        return [] if self._in_step or self._last_step_waits else self.new_step()

    def _leave_step(self) -> list[AnyChunk]:
        if not self._in_step:
            return []
        self._in_step = False
        return [c.FinishStep()]

    @property
    def awaits_client(self) -> bool:
        """Whether a call of this segment is the client's to answer."""
        return any(call.state in _WAITING for call in self._still_undone().values())

    @property
    def _last_step_waits(self) -> bool:
        """Whether the client must find a call of its own in the last step: the stock helpers look at no other."""
        return any(call.state in _WAITING for call in self._by_step.get(self._step_count, {}).values())

    @property
    def awaits_results(self) -> bool:
        """Whether a call goes on after this segment, here or at the client."""
        return any(call.state in (*_WAITING, "preliminary") for call in self._still_undone().values())

    @property
    def is_idle(self) -> bool:
        """Nothing is open: a new step would separate nothing that belongs together."""
        return not self._texts and not any(call.state in _OPEN for call in self._still_undone().values())

    def _still_undone(self) -> dict[str, _Call]:
        self._undone = {call_id: call for call_id, call in self._undone.items() if call.state != "done"}
        return self._undone

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

    def is_deferred(self, call_id: str) -> bool:
        return self._calls[call_id].state == "held"

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
        call = _Call(name, "input-streaming", self._step_count, provider_executed, dynamic)
        self._calls[call_id] = self._undone[call_id] = call
        self._by_step.setdefault(call.step, {})[call_id] = call
        return [*out, c.ToolInputStart(call_id, name, provider_executed, dynamic)]

    def tool_input_delta(self, call_id: str, text: str) -> list[AnyChunk]:
        self._call(call_id, "input-streaming").streamed += text
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
        call.arguments, call.metadata = arguments, metadata
        return self._whole_input(call_id, call)

    def tool_deferred(self, call_id: str, arguments: Any, metadata: ProviderMetadata | None = None) -> list[AnyChunk]:
        """The call is whole, but whether the client may act on it, or a person is asked first, is not known yet."""
        call = self._call(call_id, "input-streaming")
        call.state, call.arguments, call.metadata = "held", arguments, metadata
        return []

    def tool_to_client(self, call_id: str) -> list[AnyChunk]:
        """A held call is the client's to answer now; it acts at once."""
        call = self._call(call_id, "held", "awaiting-approval")
        if call.is_whole:
            raise LocalProtocolError("the client has the whole input")
        call.state = "awaiting-client"
        return self._whole_input(call_id, call)

    def tool_to_server(self, call_id: str, *, is_asked: bool = False) -> list[AnyChunk]:
        """A held call turns out to be the server's own. `is_asked`: a person is to approve what he sees of it."""
        call = self._call(call_id, "held")
        call.state = "input-available"
        if is_asked:
            call.arguments = shown_arguments(call.arguments)
        return self._whole_input(call_id, call)

    def _whole_input(self, call_id: str, call: _Call) -> list[AnyChunk]:
        call.is_whole = True
        return [
            c.ToolInputAvailable(
                call_id, call.name, call.arguments, call.provider_executed, call.metadata, call.dynamic
            )
        ]

    def _shown_input(self, call_id: str, call: _Call) -> list[AnyChunk]:
        """The arguments of a held call to look at: as text, since a client acts on a whole input."""
        if call.state != "held":
            return []
        text = c.encode_json(call.arguments).decode()
        if text == call.streamed:
            return []
        if text.startswith(call.streamed):
            return [c.ToolInputDelta(call_id, text[len(call.streamed) :])]
        again = c.ToolInputStart(call_id, call.name, call.provider_executed, call.dynamic)
        return [again, c.ToolInputDelta(call_id, text)]  # the start makes the client forget what it has

    def tool_input_error(self, call_id: str, text: str) -> list[AnyChunk]:
        """A call whose arguments never became whole."""
        call = self._call(call_id, "input-streaming")
        chunk = c.ToolInputError(call_id, call.name, None, text, call.provider_executed, call.dynamic)
        return self._settled(call_id, chunk, ())

    def tool_approval_request(
        self, call_id: str, approval_id: str, *, reason: str | None = None, descriptor: dict[str, Any] | None = None
    ) -> list[AnyChunk]:
        """`reason` and `descriptor`: what the person is told, for clients that can carry it."""
        if self.sdk_version == 5:
            raise LocalProtocolError("version 5 has no approval chunk")
        call = self._call(call_id, "held", "input-available", "awaiting-client")
        out = self._shown_input(call_id, call)
        call.state = "awaiting-approval"
        if self.sdk_version == 7:
            return [*out, c.ToolApprovalRequest(approval_id, call_id, reason, descriptor)]
        return [*out, c.ToolApprovalRequest(approval_id, call_id)]

    def tool_awaits_client(self, call_id: str) -> list[AnyChunk]:
        """The client is asked about this call by other means (the confirmation tool); no chunk of its own."""
        self._call(call_id, "input-available", "awaiting-client").state = "awaiting-client"
        return []

    # Results. `closing`: the calls that get theirs together with this one.

    def tool_output(
        self, call_id: str, output: Any, *, preliminary: bool = False, closing: Collection[str] = ()
    ) -> list[AnyChunk]:
        call = self._call(call_id, *_UNFINISHED)
        before = self._whole_input(call_id, call) if call.state == "held" else []
        chunk = c.ToolOutputAvailable(call_id, output, call.provider_executed, call.dynamic, preliminary or None)
        out = self._settled(call_id, chunk, closing)
        if preliminary:  # progress of the server's own work; older clients take it for a result, and post again
            call.state = "preliminary"
        return [*before, *out]

    def tool_output_known(self, call_id: str, *, closing: Collection[str] = ()) -> list[AnyChunk]:
        """The client itself has sent the output: it needs no chunk."""
        self._call(call_id, *_UNFINISHED)
        return self._settled(call_id, None, closing)

    def tool_error(self, call_id: str, text: str, *, closing: Collection[str] = ()) -> list[AnyChunk]:
        call = self._call(call_id, *_UNFINISHED)
        before = self._shown_input(call_id, call)
        chunk = c.ToolOutputError(call_id, text, call.provider_executed, call.dynamic)
        return [*before, *self._settled(call_id, chunk, closing)]

    def tool_denied(self, call_id: str, text: str, *, closing: Collection[str] = ()) -> list[AnyChunk]:
        if self.sdk_version == 5:  # has no denial
            return self.tool_error(call_id, text, closing=closing)
        call = self._call(call_id, *_UNFINISHED)
        before = self._shown_input(call_id, call)
        call.state = "denied"
        return [*before, *self._settled(call_id, None, closing)]

    def _settled(self, call_id: str, result: AnyChunk | None, closing: Collection[str]) -> list[AnyChunk]:
        """The result of a call, with the denials that waited for it: a client whose step holds a denied call does not
        send what it knows of the others."""
        call = self._calls[call_id]
        call.state = "denied" if call.state == "denied" else "done"
        if not call.provider_executed:
            self._step_ends_in_tool = True
        siblings = self._by_step[call.step]
        if any(other.state in _OPEN and id not in closing for id, other in siblings.items()):
            return [result] if result is not None else []
        out: list[AnyChunk] = []
        waits = False  # for the result of an earlier call, which is on its way
        for id, other in siblings.items():
            waits = waits or other.state in _OPEN
            if other.state == "denied" and not waits:
                other.state = "done"
                out.append(c.ToolOutputDenied(id))
            elif id == call_id and result is not None:
                out.append(result)
        return out

    def _call(self, call_id: str, *states: CallState) -> _Call:
        self._require_open()
        call = self._calls.get(call_id)
        if call is None or call.state not in states:
            raise LocalProtocolError(f"tool call is {call.state if call else 'unknown'}, not {states}")
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
