"""ToolParts: the life of a tool call's part in the stream, from the start of its input to its result.

Every method returns the chunks that it makes. A move that the state of a call forbids is our bug: `LocalProtocolError`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import LocalProtocolError
from . import chunks as c
from .chunks import AnyChunk, ProviderMetadata, SdkVersion
from .digest import shown_arguments
from .segment import Segment

CallState = Literal[
    "input-streaming",
    "deferred",  # the arguments are whole, but the client has no whole input yet, on which it would act
    "input-available",  # the server is at work on it
    "awaiting-approval",
    "awaiting-client",
    "preliminary",
    "denied",  # the chunk that says so waits until the calls of the same step have their results
    "done",
]

_WAITING: tuple[CallState, ...] = ("awaiting-approval", "awaiting-client")
_UNFINISHED: tuple[CallState, ...] = ("deferred", "input-available", *_WAITING, "preliminary")
_OPEN: tuple[CallState, ...] = ("input-streaming", "deferred", "input-available", *_WAITING)

STOPPED = "The call was stopped before it had a result."


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
    is_whole: bool = False  # the client has the whole input, and acts on it at once


class ToolParts:
    """The tool calls of one message."""

    def __init__(self, segment: Segment, sdk_version: SdkVersion) -> None:
        self._segment = segment
        self._sdk_version = sdk_version
        self._calls: dict[str, _Call] = {}
        # A message may have thousands of calls: those that are not done, and those of each step.
        self._undone: dict[str, _Call] = {}
        self._by_step: dict[int, dict[str, _Call]] = {}
        self._step_count = 0
        self.step_ends_with_result = False
        """Whether the last step ends with a finished call. A client with the stock tool helper would then post again
        for ever."""

    # -- segments and steps -----------------------------------------------------------------------------------

    def new_segment(self, at_work: Collection[str]) -> None:
        """`at_work`: the calls that the server runs now."""
        for call_id, call in self._calls.items():
            if call_id in at_work:
                call.state = "input-available"
            elif call.state in ("input-streaming", "deferred", "input-available"):
                call.state = "done"
        self._undone = dict(self._calls)

    def new_step(self) -> list[AnyChunk]:
        """Calls whose input is still streaming end with the step before."""
        streaming = [call_id for call_id, call in self._still_undone().items() if call.state == "input-streaming"]
        out = [chunk for call_id in streaming for chunk in self.input_error(call_id, STOPPED)]
        self._step_count += 1
        self.step_ends_with_result = False
        return out

    def stop(self, reason: str) -> list[AnyChunk]:
        """End every call that nobody will answer any more."""
        out: list[AnyChunk] = []
        for call_id, call in self._still_undone().items():
            if call.state == "input-streaming":
                out += self.input_error(call_id, reason)
            elif call.state in ("deferred", "input-available"):
                out += self.error(call_id, reason)
        return out

    @property
    def last_step_waits(self) -> bool:
        """Whether a call of the last step is the client's to answer: the stock helpers look at no other step."""
        return any(call.state in _WAITING for call in self._by_step.get(self._step_count, {}).values())

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    @property
    def awaits_client(self) -> bool:
        """Whether a call of this segment is the client's to answer."""
        return any(call.state in _WAITING for call in self._still_undone().values())

    @property
    def awaits_results(self) -> bool:
        """Whether a call goes on after this segment, here or at the client."""
        return any(call.state in (*_WAITING, "preliminary") for call in self._still_undone().values())

    @property
    def is_idle(self) -> bool:
        return self.is_idle_but_for(())

    def is_idle_but_for(self, going_on: Collection[str]) -> bool:
        return not any(call.state in _OPEN and id not in going_on for id, call in self._still_undone().items())

    def is_open_in_last_step(self, call_id: str) -> bool:
        return self.can_take_result(call_id) and self._calls[call_id].step == self._step_count

    def _still_undone(self) -> dict[str, _Call]:
        self._undone = {call_id: call for call_id, call in self._undone.items() if call.state != "done"}
        return self._undone

    # -- input ------------------------------------------------------------------------------------------------

    def knows(self, call_id: str) -> bool:
        return call_id in self._calls

    def is_deferred(self, call_id: str) -> bool:
        return self._calls[call_id].state == "deferred"

    def has_progress(self, call_id: str) -> bool:
        return self._calls[call_id].state == "preliminary"

    def can_take_result(self, call_id: str) -> bool:
        call = self._calls.get(call_id)
        return call is not None and call.state in _UNFINISHED

    def start(
        self, call_id: str, name: str, provider_executed: bool | None = None, dynamic: bool | None = None
    ) -> list[AnyChunk]:
        """A new part in the last step; `ChunkWriter.tool_input_start` makes sure that there is one."""
        call = _Call(name, "input-streaming", self._step_count, provider_executed, dynamic)
        self._calls[call_id] = self._undone[call_id] = call
        self._by_step.setdefault(call.step, {})[call_id] = call
        return [c.ToolInputStart(call_id, name, provider_executed, dynamic)]

    def input_delta(self, call_id: str, text: str) -> list[AnyChunk]:
        self._call(call_id, "input-streaming").streamed += text
        return [c.ToolInputDelta(call_id, text)]

    def input_available(
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

    def defer(self, call_id: str, arguments: Any, metadata: ProviderMetadata | None = None) -> list[AnyChunk]:
        """The arguments are whole. Whether the client may act on them, or a person is asked first, is not known yet."""
        call = self._call(call_id, "input-streaming")
        call.state, call.arguments, call.metadata = "deferred", arguments, metadata
        return []

    def to_client(self, call_id: str) -> list[AnyChunk]:
        """A deferred call is the client's to answer now; it acts at once."""
        call = self._call(call_id, "deferred", "awaiting-approval")
        if call.is_whole:
            raise LocalProtocolError("the client has the whole input")
        call.state = "awaiting-client"
        return self._whole_input(call_id, call)

    def to_server(self, call_id: str, *, is_asked: bool = False) -> list[AnyChunk]:
        """A deferred call turns out to be the server's own. `is_asked`: a person is to approve the arguments shown."""
        call = self._call(call_id, "deferred")
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
        """The arguments of a deferred call to look at: as text, since a client acts on a whole input."""
        if call.state != "deferred":
            return []
        text = c.encode_json(call.arguments).decode()
        if text == call.streamed:
            return []
        if text.startswith(call.streamed):
            return [c.ToolInputDelta(call_id, text[len(call.streamed) :])]
        again = c.ToolInputStart(call_id, call.name, call.provider_executed, call.dynamic)
        return [again, c.ToolInputDelta(call_id, text)]  # the start makes the client forget what it has

    def input_error(self, call_id: str, text: str) -> list[AnyChunk]:
        """A call whose arguments never became whole."""
        call = self._call(call_id, "input-streaming")
        chunk = c.ToolInputError(call_id, call.name, None, text, call.provider_executed, call.dynamic)
        return self._settled(call_id, chunk, ())

    # -- questions --------------------------------------------------------------------------------------------

    def approval_request(
        self, call_id: str, approval_id: str, *, reason: str | None = None, descriptor: dict[str, Any] | None = None
    ) -> list[AnyChunk]:
        """`reason` and `descriptor`: what the person reads, for clients that can carry it."""
        if self._sdk_version == 5:
            raise LocalProtocolError("version 5 has no approval chunk")
        call = self._call(call_id, "deferred", "input-available", "awaiting-client", "preliminary")
        out = self._shown_input(call_id, call)
        call.state = "awaiting-approval"
        if self._sdk_version == 7:
            return [*out, c.ToolApprovalRequest(approval_id, call_id, reason, descriptor)]
        return [*out, c.ToolApprovalRequest(approval_id, call_id)]

    def approved_automatically(self, call_id: str, approval_id: str) -> list[AnyChunk]:
        """Nobody was asked: the application's policy has approved it."""
        call = self._call(call_id, "deferred", "input-available", "awaiting-client")
        if self._sdk_version != 7:  # the others know only questions to people
            return []
        request = c.ToolApprovalRequest(approval_id, call_id, is_automatic=True)
        return [*self._shown_input(call_id, call), request, c.ToolApprovalResponse(approval_id, True)]

    def others_are_asked(self, call_id: str) -> list[AnyChunk]:
        """People are asked about this call who are not in this chat: its client gets no question."""
        call = self._call(call_id, "deferred", "input-available", "awaiting-client", "preliminary")
        out = self._shown_input(call_id, call)
        call.state = "awaiting-approval"
        return out

    def asked_elsewhere(self, call_id: str) -> list[AnyChunk]:
        """Another part asks the client about this call (the confirmation tool); this one gets no chunk."""
        self._call(call_id, "input-available", "awaiting-client").state = "awaiting-client"
        return []

    # -- results ----------------------------------------------------------------------------------------------
    # `closing`: the calls that get their results together with this one.

    def output(
        self, call_id: str, output: Any, *, preliminary: bool = False, closing: Collection[str] = ()
    ) -> list[AnyChunk]:
        call = self._call(call_id, *_UNFINISHED)
        before = self._whole_input(call_id, call) if call.state == "deferred" else []
        chunk = c.ToolOutputAvailable(call_id, output, call.provider_executed, call.dynamic, preliminary or None)
        out = self._settled(call_id, chunk, closing)
        if preliminary:  # progress of the server's own work; older clients take it for a result, and post again
            call.state = "preliminary"
        return [*before, *out]

    def output_known(self, call_id: str, *, closing: Collection[str] = ()) -> list[AnyChunk]:
        """The client itself has sent the output: it needs no chunk."""
        self._call(call_id, *_UNFINISHED)
        return self._settled(call_id, None, closing)

    def error(self, call_id: str, text: str, *, closing: Collection[str] = ()) -> list[AnyChunk]:
        call = self._call(call_id, *_UNFINISHED)
        before = self._shown_input(call_id, call)
        chunk = c.ToolOutputError(call_id, text, call.provider_executed, call.dynamic)
        return [*before, *self._settled(call_id, chunk, closing)]

    def deny(self, call_id: str, text: str, *, closing: Collection[str] = ()) -> list[AnyChunk]:
        if self._sdk_version == 5:  # has no denial
            return self.error(call_id, text, closing=closing)
        call = self._call(call_id, *_UNFINISHED)
        before = self._shown_input(call_id, call)
        call.state = "denied"
        return [*before, *self._settled(call_id, None, closing)]

    def _settled(self, call_id: str, result: AnyChunk | None, closing: Collection[str]) -> list[AnyChunk]:
        """The result of a call, with the denials that waited for it: a client whose step has a denied call does not
        send what it knows of the others."""
        call = self._calls[call_id]
        call.state = "denied" if call.state == "denied" else "done"
        if not call.provider_executed:
            self.step_ends_with_result = True
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
        self._segment.require_open()
        call = self._calls.get(call_id)
        if call is None or call.state not in states:
            raise LocalProtocolError(f"tool call is {call.state if call else 'unknown'}, not {states}")
        return call
