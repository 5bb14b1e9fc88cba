"""ChunkWriter: the grammar of a message's stream, segment by segment.

Every method returns the chunks that it makes, and remembers what is open, in which step, and whether the segment ended.
Whatever opens is closed on every path: `finish`, `abort` and `error` may be called at any point, and leave a stream
that every release of the AI SDK reads to its end. A call that the grammar forbids is our bug: `LocalProtocolError`.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import LocalProtocolError
from . import chunks as c
from .chunks import AnyChunk, FinishReason, ProviderMetadata, ReasoningDelta, SdkVersion, TextDelta
from .segment import Segment
from .tool_parts import STOPPED, ToolParts

TextKind = Literal["text", "reasoning"]


@dataclass(slots=True)
class _OpenText:
    kind: TextKind
    id: str


class ChunkWriter:
    """Writes the segments of one message, each with `start`, steps with their parts, and one terminal chunk.

    `tools` writes what follows the start of a tool's part. It never opens a step.
    """

    def __init__(self, *, sdk_version: SdkVersion = 6) -> None:
        self.sdk_version: SdkVersion = sdk_version
        self._segment = Segment()
        self.tools = ToolParts(self._segment, sdk_version)
        self._in_step = False
        self._texts: dict[Hashable, _OpenText] = {}
        self._text_count = 0

    # -- the segment ------------------------------------------------------------------------------------------

    def start(self, message_id: str | None = None, metadata: dict[str, Any] | None = None) -> list[AnyChunk]:
        self._segment.start()
        return [c.Start(message_id, metadata)]

    def pause(self) -> list[AnyChunk]:
        """End what is open where the message waits for its client's answer."""
        return [*self.end_texts(), *self._leave_step()]

    def pause_stopped(self) -> list[AnyChunk]:
        """As `pause`, where the run was over: what the server had not finished by then was stopped with it."""
        return [*self._close_parts(STOPPED), *self._leave_step()]

    def new_segment(self, at_work: Collection[str] = ()) -> None:
        """The client has answered, and the message goes on. `at_work`: its calls that the server runs now. All other
        calls that the server had left open were stopped when the segment before ended."""
        if self._in_step or self._texts:
            raise LocalProtocolError("the segment before is neither paused nor ended")
        self._segment.renew()
        self.tools.new_segment(at_work)

    def finish(self, reason: FinishReason, metadata: dict[str, Any] | None = None) -> list[AnyChunk]:
        out = self._close_parts(STOPPED)
        if self.tools.has_calls and not self.tools.last_step_waits:
            # The new step counts for the client only if something is written after it: hence the metadata.
            out += self._step_after_tool()
            metadata = metadata or {}
        return self._end([*out, *self._leave_step(), c.Finish(reason, metadata)])

    def abort(self) -> list[AnyChunk]:
        out = self._close_parts(STOPPED)
        if self.tools.has_calls and not self.tools.last_step_waits:
            out += [*self._step_after_tool(), c.MessageMetadata({})]
        return self._end([*out, *self._leave_step(), c.Abort()])

    def error(self, public_text: str) -> list[AnyChunk]:
        return self._end([*self._close_parts(public_text), *self._leave_step(), c.Error(public_text)])

    def _step_after_tool(self) -> list[AnyChunk]:
        return self.new_step() if self.tools.step_ends_with_result else []

    def _end(self, out: list[AnyChunk]) -> list[AnyChunk]:
        self._segment.end()
        return out

    def _close_parts(self, reason: str) -> list[AnyChunk]:
        """End open texts, and every call that nobody will answer any more."""
        return [*self.end_texts(), *self.tools.stop(reason)]

    # -- steps ------------------------------------------------------------------------------------------------

    def new_step(self) -> list[AnyChunk]:
        """A step for a new model call. Texts of the step before are ended, since none may be in two steps."""
        self._segment.require_open()
        out = [*self.end_texts(), *self.tools.new_step(), *self._leave_step(), c.StartStep()]
        self._in_step = True
        return out

    def need_step(self) -> list[AnyChunk]:
        """A step to write in. A segment goes on in the last step of the segment before while that has a call which
        waits for the client: the stock helpers look for it in the last step."""
        self._segment.require_open()
        return [] if self._in_step or self.tools.last_step_waits else self.new_step()

    def _leave_step(self) -> list[AnyChunk]:
        if not self._in_step:
            return []
        self._in_step = False
        return [c.FinishStep()]

    @property
    def is_idle(self) -> bool:
        """Nothing is open: a new step would separate nothing that belongs together."""
        return not self._texts and self.tools.is_idle

    def leave_behind(self, going_on: Collection[str]) -> list[AnyChunk]:
        """Before a call that may wait for the client. Calls that the server goes on with must not stand in its step:
        the stock helpers post nothing while a call of the last step has no result."""
        is_theirs = any(self.tools.is_open_in_last_step(call_id) for call_id in going_on)
        return self.new_step() if is_theirs and not self._texts and self.tools.is_idle_but_for(going_on) else []

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

    # -- other parts ------------------------------------------------------------------------------------------

    def tool_input_start(
        self,
        call_id: str,
        name: str,
        *,
        provider_executed: bool | None = None,
        dynamic: bool | None = None,
    ) -> list[AnyChunk]:
        if self.tools.knows(call_id):
            raise LocalProtocolError("tool call id used twice")
        out = self.need_step()
        return [*out, *self.tools.start(call_id, name, provider_executed, dynamic)]

    def part(self, chunk: c.SourceUrl | c.SourceDocument | c.File) -> list[AnyChunk]:
        """A part that is whole in one chunk."""
        return [*self.need_step(), chunk]

    def reasoning_file(self, url: str, media_type: str) -> list[AnyChunk]:
        chunk = c.ReasoningFile(url, media_type) if self.sdk_version == 7 else c.File(url, media_type)
        return [*self.need_step(), chunk]

    def data(self, name: str, data: Any, *, id: str | None = None) -> list[AnyChunk]:
        """A `data-adk-*` part; belongs to the message, not to a step."""
        self._segment.require_open()
        return [c.Data(f"data-adk-{name}", data, id)]
